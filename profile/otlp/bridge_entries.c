/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries of the tables of 1.3 to 1.7 that are messages: mappings, locations, functions, links.
 * Requests consist mostly of locations, functions and samples, so these have a fast path for what
 * writers send: each field at most once, in the order of the numbers. It writes an entry where it
 * belongs.
 */
#include "profile/otlp/bridge_old.h"

static bool add_to_list(struct old *o, uint32_t index)
{
	struct bytes *list = &o->buffer[OLD_LIST];
	if (!bytes_reserve(list, 10))
		return false;
	list->len = (size_t)(wire_put_varint(list->at + list->len, index) - list->at);
	return true;
}

/* Its fields, by their numbers in the current layout. False: it is not in the usual form. */
static inline bool usual_function(const struct old *o, struct view view, uint64_t values[static 5])
{
	struct wire w = wire_of(view);
	uint32_t shift = o->layout->shift;
	if (shift && wire_is(&w, WIRE_TAG(1, WIRE_VARINT)))
		wire_varint(&w);
	for (uint32_t i = OLD_NAME; i <= OLD_START_LINE; i++)
		if (wire_is(&w, WIRE_TAG(i + shift, WIRE_VARINT)))
			values[i] = wire_varint(&w);
	return wire_at_end(&w);
}

static bool read_function(struct old *o, struct view view, uint64_t values[static 5])
{
	struct old_reader r = old_read(view, &o->layout->function);
	memset(values, 0, 5 * sizeof *values);
	while (old_next(&r))
		values[r.role] = r.field.value;
	return old_done(o, &r);
}

bool old_move_function(struct old *o, struct view view)
{
	struct bytes *to = &o->b->table[BRIDGE_FUNCTION];
	uint64_t values[5] = { 0 };
	if ((!usual_function(o, view, values) && !read_function(o, view, values)) ||
	    !bytes_reserve(to, 40))
		return false;
	uint8_t *start = wire_put_tag(to->at + to->len, BRIDGE_FUNCTION, WIRE_LEN) + 1;
	uint8_t *at = start;
	for (uint32_t i = OLD_NAME; i < OLD_START_LINE; i++)
		if (values[i])
			at = wire_put_varint(wire_put_tag(at, i, WIRE_VARINT),
					     old_move_string(o, values[i]));
	if (values[OLD_START_LINE])
		at = wire_put_varint(wire_put_tag(at, OLD_START_LINE, WIRE_VARINT),
				     values[OLD_START_LINE]);
	to->len = (size_t)(bridge_wrap(start, at) - to->at);
	return true;
}

bool old_move_link(struct old *o, struct view view)
{
	struct bytes *entry = &o->buffer[OLD_ENTRY];
	struct old_reader r = old_read(view, &old_link);
	entry->len = 0;
	while (old_next(&r))
		if (!wire_add_len(entry, r.role, r.field.view))
			return false;
	return old_done(o, &r) &&
	       wire_add_len(&o->b->table[BRIDGE_LINK], BRIDGE_LINK, bytes_view(entry));
}

/* As profile/pprof names it: Go's build IDs are parts in base64url, joined by slashes. */
static enum pprof_key build_id_key(struct view text, uint64_t kind)
{
	bool slash = false;
	if (kind)
		return PPROF_KEY_BUILD_ID_HTLHASH;
	for (size_t i = 0; i < text.len; i++) {
		uint8_t c = text.at[i], lower = c | 0x20;
		slash |= c == '/';
		if (!((c >= '0' && c <= '9') || (lower >= 'a' && lower <= 'z') || c == '-' ||
		      c == '_' || c == '/'))
			return PPROF_KEY_BUILD_ID_GNU;
	}
	return slash ? PPROF_KEY_BUILD_ID_GO : PPROF_KEY_BUILD_ID_GNU;
}

struct mapping_more {
	uint64_t build_id, kind;
	bool flags[4];
};

static bool mapping_field(struct old *o, const struct old_reader *r, struct mapping_more *more)
{
	struct bytes *entry = &o->buffer[OLD_ENTRY];
	switch (r->role) {
	case OLD_FILENAME:
		return wire_add_varint(entry, r->role, old_move_string(o, r->field.value));
	case OLD_MAPPING_ATTRIBUTES:
		return old_move_list(o, &r->field, BRIDGE_ATTRIBUTE, &o->buffer[OLD_LIST]);
	case OLD_BUILD_ID:
		more->build_id = r->field.value;
		return true;
	case OLD_BUILD_ID_KIND:
		more->kind = r->field.value;
		return true;
	case OLD_HAS_FUNCTIONS:
	case OLD_HAS_FILENAMES:
	case OLD_HAS_LINE_NUMBERS:
	case OLD_HAS_INLINE_FRAMES:
		more->flags[r->role - OLD_HAS_FUNCTIONS] = r->field.value != 0;
		return true;
	default:
		return wire_add_varint(entry, r->role, r->field.value);
	}
}

static bool add_build_id(struct old *o, const struct mapping_more *more)
{
	uint32_t index, string = old_move_string(o, more->build_id);
	if (!string)
		return true;
	enum pprof_key key = build_id_key(old_string_at(o, more->build_id), more->kind);
	return bridge_text_attribute(o->b, key, string, &index) && add_to_list(o, index);
}

/* The fields of an entry, then the list of its attributes. */
static bool end_entry(struct old *o, uint32_t table, uint32_t attributes)
{
	struct bytes *entry = &o->buffer[OLD_ENTRY], *list = &o->buffer[OLD_LIST];
	return (!list->len || wire_add_len(entry, attributes, bytes_view(list))) &&
	       wire_add_len(&o->b->table[table], table, bytes_view(entry));
}

bool old_move_mapping(struct old *o, struct view view)
{
	struct old_reader r = old_read(view, &o->layout->mapping);
	struct mapping_more more = { 0 };
	uint32_t index;
	o->buffer[OLD_ENTRY].len = o->buffer[OLD_LIST].len = 0;
	while (old_next(&r))
		if (!mapping_field(o, &r, &more))
			return false;
	if (!old_done(o, &r) || !add_build_id(o, &more))
		return false;
	for (int i = 0; i < 4; i++)
		if (more.flags[i] &&
		    (!bridge_true_attribute(o->b, PPROF_KEY_HAS_FUNCTIONS + i, &index) ||
		     !add_to_list(o, index)))
			return false;
	return end_entry(o, BRIDGE_MAPPING, 5);
}

/* A line whose function is moved; the other fields are the same in all layouts. */
WIRE_HOT uint8_t *put_line(const struct old *o, uint8_t *at, uint64_t function, struct view others)
{
	/* a missing function_index is 0, which is a function like any other */
	bool none = !function && !o->have[BRIDGE_FUNCTION];
	uint32_t moved = none ? 0 : old_move(o, BRIDGE_FUNCTION, function);
	uint8_t *start = wire_put_tag(at, 3, WIRE_LEN) + 1;
	at = wire_put_varint(wire_put_tag(start, 1, WIRE_VARINT), moved);
	return bridge_wrap(start, bridge_copy(at, others.at, others.len));
}

static bool read_line(struct old *o, struct view view)
{
	struct bytes *entry = &o->buffer[OLD_ENTRY];
	struct old_reader r = old_read(view, &old_line);
	uint64_t values[4] = { 0 };
	uint8_t others[64 + BYTES_SLACK], *at = others;
	while (old_next(&r))
		values[r.role] = r.field.value;
	if (!old_done(o, &r) || !bytes_reserve(entry, 40))
		return false;
	for (uint32_t i = OLD_LINE_LINE; i <= OLD_LINE_COLUMN; i++)
		if (values[i])
			at = wire_put_varint(wire_put_tag(at, i, WIRE_VARINT), values[i]);
	at = put_line(o, entry->at + entry->len, values[OLD_LINE_FUNCTION],
		      (struct view){ others, (size_t)(at - others) });
	entry->len = (size_t)(at - entry->at);
	return true;
}

/* Writes it; NULL: it is not in the usual form. */
WIRE_HOT uint8_t *put_usual_line(const struct old *o, struct view view, uint8_t *at)
{
	struct wire w = wire_of(view);
	uint64_t function = 0;
	if (wire_seems(&w, WIRE_TAG(OLD_LINE_FUNCTION, WIRE_VARINT)))
		function = wire_varint(&w);
	const uint8_t *others = w.at;
	if (wire_seems(&w, WIRE_TAG(OLD_LINE_LINE, WIRE_VARINT)))
		wire_varint(&w);
	if (wire_is(&w, WIRE_TAG(OLD_LINE_COLUMN, WIRE_VARINT)))
		wire_varint(&w);
	return wire_at_end(&w)
		       ? put_line(o, at, function, (struct view){ others, (size_t)(w.at - others) })
		       : NULL;
}

struct location_more {
	uint64_t frame_type;
	bool folded;
};

static bool location_field(struct old *o, const struct old_reader *r, struct location_more *more)
{
	switch (r->role) {
	case OLD_MAPPING:
		return wire_add_varint(&o->buffer[OLD_ENTRY], 1,
				       old_move(o, BRIDGE_MAPPING, r->field.value));
	case OLD_ADDRESS:
		return wire_add_varint(&o->buffer[OLD_ENTRY], r->role, r->field.value);
	case OLD_LINE:
		return read_line(o, r->field.view);
	case OLD_LOCATION_ATTRIBUTES:
		return old_move_list(o, &r->field, BRIDGE_ATTRIBUTE, &o->buffer[OLD_LIST]);
	case OLD_FOLDED:
		more->folded = r->field.value != 0;
		return true;
	default:
		more->frame_type = r->field.value;
		return true;
	}
}

/* Writes the fields of a location without attributes and flags; NULL: it is not in the usual form.
 * Indices of 0 that are not on the wire take at most 4 bytes for each of the entry, and 6. */
static uint8_t *put_usual_location(const struct old *o, struct view view, uint8_t *at)
{
	struct wire w = wire_of(view);
	uint32_t shift = o->layout->shift;
	if (shift && wire_is(&w, WIRE_TAG(1, WIRE_VARINT)))
		wire_varint(&w);
	if (wire_is(&w, WIRE_TAG(1 + shift, WIRE_VARINT)))
		at = wire_put_varint(wire_put_tag(at, 1, WIRE_VARINT),
				     old_move(o, BRIDGE_MAPPING, wire_varint(&w)));
	else if (o->layout->always_mapping && o->have[BRIDGE_MAPPING])
		at = wire_put_varint(wire_put_tag(at, 1, WIRE_VARINT), o->base[BRIDGE_MAPPING]);
	if (wire_is(&w, WIRE_TAG(2 + shift, WIRE_VARINT))) {
		const uint8_t *address = w.at;
		wire_varint(&w);
		at = wire_put_tag(at, 2, WIRE_VARINT);
		if (w.at <= w.end)
			at = bridge_copy(at, address, (size_t)(w.at - address));
	}
	while (at && wire_is(&w, WIRE_TAG(3 + shift, WIRE_LEN)))
		at = put_usual_line(o, wire_len(&w), at);
	return wire_at_end(&w) ? at : NULL;
}

static bool read_location(struct old *o, struct view view, struct location_more *more)
{
	struct old_reader r = old_read(view, &o->layout->location);
	struct bytes *entry = &o->buffer[OLD_ENTRY];
	bool first = o->layout->always_mapping && o->have[BRIDGE_MAPPING];
	entry->len = o->buffer[OLD_LIST].len = 0;
	/* The one that follows, if any, counts. */
	if (first && !wire_add_varint(entry, 1, o->base[BRIDGE_MAPPING]))
		return false;
	while (old_next(&r)) {
		entry->len = first && r.role == OLD_MAPPING ? 0 : entry->len;
		first = false;
		if (!location_field(o, &r, more))
			return false;
	}
	return old_done(o, &r);
}

static bool unusual_location(struct old *o, struct view view)
{
	struct location_more more = { 0 };
	uint32_t index;
	if (!read_location(o, view, &more))
		return false;
	if (more.folded &&
	    (!bridge_true_attribute(o->b, PPROF_KEY_IS_FOLDED, &index) || !add_to_list(o, index)))
		return false;
	if (more.frame_type &&
	    (!bridge_text_attribute(o->b, PPROF_KEY_FRAME_TYPE, old_move_string(o, more.frame_type),
				    &index) ||
	     !add_to_list(o, index)))
		return false;
	return end_entry(o, BRIDGE_LOCATION, 4);
}

bool old_move_location(struct old *o, struct view view)
{
	struct bytes *to = &o->b->table[BRIDGE_LOCATION];
	if (!bytes_reserve(to, 4 * view.len + 64))
		return false;
	uint8_t *start = wire_put_tag(to->at + to->len, BRIDGE_LOCATION, WIRE_LEN) + 1;
	uint8_t *end = put_usual_location(o, view, start);
	if (!end)
		return unusual_location(o, view);
	to->len = (size_t)(bridge_wrap(start, end) - to->at);
	return true;
}
