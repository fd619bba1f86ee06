/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of 1.3 to 1.7. Each table is moved in a pass of its own over the tags, so that its entries
 * follow each other: first strings, then attributes, whose keys become strings, then the others,
 * whose flags become attributes.
 */
#include "profile/otlp/bridge_old.h"

#include "base/hash.h"

struct old_slot *old_slot_of(struct old *o, uint64_t hash)
{
	struct bytes *cache = &o->buffer[OLD_CACHE];
	return (struct old_slot *)cache->at + (hash & (cache->len / sizeof(struct old_slot) - 1));
}

static bool add_number(struct bytes *to, uint32_t number)
{
	if (!bytes_reserve(to, 10))
		return false;
	to->len = (size_t)(wire_put_varint(to->at + to->len, number) - to->at);
	return true;
}

bool old_move_list(struct old *o, const struct wire_field *field, enum bridge_table table,
		   struct bytes *to)
{
	if (field->type == WIRE_VARINT)
		return add_number(to, old_move(o, table, field->value));
	struct wire w = wire_of(field->view);
	/* a moved index has at most 5 bytes */
	if (!bytes_reserve(to, 5 * field->view.len + 5))
		return false;
	uint8_t *at = to->at + to->len;
	while (wire_more(&w))
		at = wire_put_varint(at, old_move(o, table, wire_varint(&w)));
	if (!wire_done(&w))
		at = wire_put_varint(at, BRIDGE_BEYOND);
	to->len = (size_t)(at - to->at);
	return true;
}

/* Calls `entry` for each entry of the tables in `which` (1 << table). */
static bool each_entry(struct old *o, struct view message, uint32_t which,
		       bool (*entry)(struct old *o, uint32_t table, struct view view))
{
	struct old_reader r = old_read(message, &o->layout->tables);
	while (old_next(&r))
		if (which >> r.role & 1 && !entry(o, r.role, r.field.view))
			return false;
	return old_done(o, &r);
}

/* The same in every occurrence of the dictionary. */
static bool each(struct old *o, struct view origin, uint32_t which,
		 bool (*entry)(struct old *o, uint32_t table, struct view view))
{
	struct wire w = wire_of(origin);
	struct wire_field field;
	if (!o->layout->dictionary)
		return each_entry(o, origin, which, entry);
	while (wire_next(&w, &field))
		if (field.number == 2 && field.type == WIRE_LEN &&
		    !each_entry(o, field.view, which, entry))
			return false;
	return true;
}

static bool count(struct old *o, uint32_t table, struct view view)
{
	(void)view;
	if (table < BRIDGE_TABLES)
		o->have[table]++;
	else
		o->units++;
	return true;
}

/* The place of the origin's entries; the entries themselves follow. */
static void take_places(struct old *o)
{
	for (int i = 1; i < BRIDGE_TABLES; i++) {
		o->base[i] = o->b->count[i];
		o->b->count[i] += o->have[i];
	}
	if (o->have[BRIDGE_STRING]) { /* without its entry 0 */
		o->base[BRIDGE_STRING]--;
		o->b->count[BRIDGE_STRING]--;
	}
}

/* All but the first of the origin. */
static bool move_string(struct old *o, uint32_t table, struct view view)
{
	bool first = !o->has_first;
	o->has_first = true;
	return first || wire_add_len(&o->b->table[table], table, view);
}

static bool keep_string(struct old *o, uint32_t table, struct view view)
{
	(void)table;
	return bytes_add(&o->buffer[OLD_STRINGS], &view, sizeof view);
}

/* The content of strings is needed for units and for build IDs. */
static bool keep_strings(struct old *o, struct view origin)
{
	o->buffer[OLD_STRINGS].len = 0;
	return (!o->units && !o->layout->always_mapping) ||
	       each(o, origin, 1 << BRIDGE_STRING, keep_string);
}

static struct view string_at(const struct old *o, uint64_t index)
{
	const struct bytes *strings = &o->buffer[OLD_STRINGS];
	if (!index || index >= strings->len / sizeof(struct view))
		return (struct view){ NULL, 0 };
	return ((const struct view *)strings->at)[index];
}

/* The string of a key: the same one for the same key as a rule. */
static bool key_string(struct old *o, struct view key, uint64_t hash, uint32_t *index)
{
	struct old_slot *slot = old_slot_of(o, hash);
	if (slot->hash != hash) {
		if (!bridge_string(o->b, key, &slot->index))
			return false;
		slot->hash = hash;
	}
	*index = slot->index;
	return true;
}

/* Units: a hash table by the key, at most half full. */

static struct old_slot *unit_slot(struct old *o, uint64_t hash)
{
	struct bytes *units = &o->buffer[OLD_UNITS];
	size_t mask = units->len / sizeof(struct old_slot) - 1;
	struct old_slot *slots = (struct old_slot *)units->at;
	size_t at = hash & mask;
	while (slots[at].hash && slots[at].hash != hash)
		at = (at + 1) & mask;
	return &slots[at];
}

static uint64_t hash_of(struct view text)
{
	return hash_bytes(text.at, text.len) | 1;
}

/* The first unit of a key counts. */
static bool add_unit(struct old *o, uint32_t table, struct view view)
{
	struct old_reader r = old_read(view, &old_attribute_unit);
	uint64_t key = 0, unit = 0;
	(void)table;
	while (old_next(&r))
		*(r.role == OLD_UNIT_KEY ? &key : &unit) = r.field.value;
	if (!old_done(o, &r))
		return false;
	uint64_t hash = hash_of(string_at(o, key));
	struct old_slot *slot = unit_slot(o, hash);
	if (!slot->hash)
		*slot = (struct old_slot){ hash, old_move_string(o, unit), 0 };
	return true;
}

static bool read_units(struct old *o, struct view origin)
{
	struct bytes *units = &o->buffer[OLD_UNITS];
	size_t size = sizeof(struct old_slot) * 4;
	units->len = 0;
	if (!o->units)
		return true;
	while (size < 2 * sizeof(struct old_slot) * o->units)
		size *= 2;
	if (!bytes_reserve(units, size))
		return false;
	memset(units->at, 0, size);
	units->len = size;
	return each(o, origin, 1 << OLD_UNIT, add_unit);
}

/* Attributes. */

struct attribute_parts {
	uint32_t key, unit;
	struct view value;
};

static bool read_attribute(struct old *o, struct view view, struct attribute_parts *a)
{
	struct old_reader r = old_read(view, &old_key_value);
	struct view key = { NULL, 0 };
	*a = (struct attribute_parts){ 0 };
	while (old_next(&r))
		*(r.role == OLD_KEY ? &key : &a->value) = r.field.view;
	if (!old_done(o, &r))
		return false;
	uint64_t hash = hash_of(key);
	if (o->buffer[OLD_UNITS].len)
		a->unit = unit_slot(o, hash)->index;
	return !key.len || key_string(o, key, hash, &a->key);
}

static bool move_attribute(struct old *o, uint32_t table, struct view view)
{
	struct bytes *to = &o->b->table[table];
	struct attribute_parts a;
	if (!read_attribute(o, view, &a) || !bytes_reserve(to, a.value.len + 40))
		return false;
	size_t len = wire_len_len(2, a.value.len) + (a.key ? 1 + wire_varint_len(a.key) : 0) +
		     (a.unit ? 1 + wire_varint_len(a.unit) : 0);
	uint8_t *at = to->at + to->len;
	at = wire_put_varint(wire_put_tag(at, table, WIRE_LEN), len);
	if (a.key)
		at = wire_put_varint(wire_put_tag(at, 1, WIRE_VARINT), a.key);
	at = wire_put_varint(wire_put_tag(at, 2, WIRE_LEN), a.value.len);
	if (a.value.len)
		memcpy(at, a.value.at, a.value.len);
	at += a.value.len;
	if (a.unit)
		at = wire_put_varint(wire_put_tag(at, 3, WIRE_VARINT), a.unit);
	to->len = (size_t)(at - to->at);
	return true;
}

bool old_inline_attribute(struct old *o, struct view message, uint32_t *index)
{
	*index = o->b->count[BRIDGE_ATTRIBUTE]++;
	o->buffer[OLD_UNITS].len = 0; /* units are for the attributes of the table */
	return move_attribute(o, BRIDGE_ATTRIBUTE, message);
}

/* The other tables. */

static bool add_to_list(struct old *o, uint32_t index)
{
	return add_number(&o->buffer[OLD_LIST], index);
}

static bool move_function(struct old *o, uint32_t table, struct view view)
{
	struct bytes *entry = &o->buffer[OLD_ENTRY];
	struct old_reader r = old_read(view, &o->layout->function);
	entry->len = 0;
	while (old_next(&r)) {
		uint64_t value = r.role == OLD_START_LINE ? r.field.value
							  : old_move_string(o, r.field.value);
		if (!wire_add_varint(entry, r.role, value))
			return false;
	}
	return old_done(o, &r) && wire_add_len(&o->b->table[table], table, bytes_view(entry));
}

static bool move_link(struct old *o, uint32_t table, struct view view)
{
	struct bytes *entry = &o->buffer[OLD_ENTRY];
	struct old_reader r = old_read(view, &old_link);
	entry->len = 0;
	while (old_next(&r))
		if (!wire_add_len(entry, r.role, r.field.view))
			return false;
	return old_done(o, &r) && wire_add_len(&o->b->table[table], table, bytes_view(entry));
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
	enum pprof_key key = build_id_key(string_at(o, more->build_id), more->kind);
	return bridge_text_attribute(o->b, key, string, &index) && add_to_list(o, index);
}

/* The fields of an entry, then the list of its attributes. */
static bool end_entry(struct old *o, uint32_t table, uint32_t attributes)
{
	struct bytes *entry = &o->buffer[OLD_ENTRY], *list = &o->buffer[OLD_LIST];
	return (!list->len || wire_add_len(entry, attributes, bytes_view(list))) &&
	       wire_add_len(&o->b->table[table], table, bytes_view(entry));
}

static bool move_mapping(struct old *o, uint32_t table, struct view view)
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
	return end_entry(o, table, 5);
}

/* What writers send: each field at most once, in order. False: it is not such a line. */
static inline bool read_usual_line(struct view view, uint64_t values[4])
{
	struct wire w = wire_of(view);
	for (uint32_t i = 1; i < 4; i++)
		if (wire_is(&w, WIRE_TAG(i, WIRE_VARINT)))
			values[i] = wire_varint(&w);
	return wire_at_end(&w);
}

static bool read_line(struct old *o, struct view view, uint64_t values[4])
{
	struct old_reader r = old_read(view, &old_line);
	memset(values, 0, 4 * sizeof *values);
	while (old_next(&r))
		values[r.role] = r.field.value;
	return old_done(o, &r);
}

/* Its fields take at most 33 bytes, so its length is one byte. */
static bool put_line(struct old *o, const uint64_t values[4])
{
	struct bytes *entry = &o->buffer[OLD_ENTRY];
	if (!bytes_reserve(entry, 40))
		return false;
	/* a missing function_index is 0, which is a function like any other */
	uint32_t function = o->have[BRIDGE_FUNCTION]
				    ? old_move(o, BRIDGE_FUNCTION, values[OLD_LINE_FUNCTION])
			    : values[OLD_LINE_FUNCTION] ? BRIDGE_BEYOND
							: 0;
	uint8_t *start = wire_put_tag(entry->at + entry->len, 3, WIRE_LEN), *at = start + 1;
	at = wire_put_varint(wire_put_tag(at, 1, WIRE_VARINT), function);
	for (uint32_t i = OLD_LINE_LINE; i <= OLD_LINE_COLUMN; i++)
		if (values[i])
			at = wire_put_varint(wire_put_tag(at, i, WIRE_VARINT), values[i]);
	*start = (uint8_t)(at - start - 1);
	entry->len = (size_t)(at - entry->at);
	return true;
}

static bool move_line(struct old *o, struct view view)
{
	uint64_t values[4] = { 0 };
	return (read_usual_line(view, values) || read_line(o, view, values)) && put_line(o, values);
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
		return move_line(o, r->field.view);
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

/* The same for a location without attributes and flags. Its lines may be there in part. */
static bool usual_location(struct old *o, struct wire w)
{
	struct bytes *entry = &o->buffer[OLD_ENTRY];
	if (o->layout->always_mapping)
		return false;
	if (wire_is(&w, WIRE_TAG(1, WIRE_VARINT)) &&
	    !wire_add_varint(entry, 1, old_move(o, BRIDGE_MAPPING, wire_varint(&w))))
		return false;
	if (wire_is(&w, WIRE_TAG(2, WIRE_VARINT)) && !wire_add_varint(entry, 2, wire_varint(&w)))
		return false;
	while (wire_is(&w, WIRE_TAG(3, WIRE_LEN))) {
		struct view line = wire_len(&w);
		uint64_t values[4] = { 0 };
		if (!read_usual_line(line, values) || !put_line(o, values))
			return false;
	}
	return wire_at_end(&w);
}

static bool move_location(struct old *o, uint32_t table, struct view view)
{
	struct old_reader r = old_read(view, &o->layout->location);
	struct location_more more = { 0 };
	struct bytes *entry = &o->buffer[OLD_ENTRY];
	uint32_t index;
	bool first = o->layout->always_mapping && o->have[BRIDGE_MAPPING];
	entry->len = o->buffer[OLD_LIST].len = 0;
	if (usual_location(o, wire_of(view)))
		return end_entry(o, table, 4);
	entry->len = 0;
	/* The one that follows, if any, counts. */
	if (first && !wire_add_varint(entry, 1, o->base[BRIDGE_MAPPING]))
		return false;
	while (old_next(&r)) {
		entry->len = first && r.role == OLD_MAPPING ? 0 : entry->len;
		first = false;
		if (!location_field(o, &r, &more))
			return false;
	}
	if (!old_done(o, &r))
		return false;
	if (more.folded &&
	    (!bridge_true_attribute(o->b, PPROF_KEY_IS_FOLDED, &index) || !add_to_list(o, index)))
		return false;
	if (more.frame_type &&
	    (!bridge_text_attribute(o->b, PPROF_KEY_FRAME_TYPE, old_move_string(o, more.frame_type),
				    &index) ||
	     !add_to_list(o, index)))
		return false;
	return end_entry(o, table, 4);
}

static bool move_other(struct old *o, uint32_t table, struct view view)
{
	switch (table) {
	case BRIDGE_MAPPING:
		return move_mapping(o, table, view);
	case BRIDGE_LOCATION:
		return move_location(o, table, view);
	case BRIDGE_FUNCTION:
		return move_function(o, table, view);
	default:
		return move_link(o, table, view);
	}
}

bool old_tables(struct old *o, struct view origin)
{
	static const uint32_t others = 1 << BRIDGE_MAPPING | 1 << BRIDGE_LOCATION |
				       1 << BRIDGE_FUNCTION | 1 << BRIDGE_LINK;
	memset(o->have, 0, sizeof o->have);
	o->units = 0;
	o->has_first = false;
	if (!each(o, origin, UINT32_MAX, count))
		return false;
	take_places(o);
	return each(o, origin, 1 << BRIDGE_STRING, move_string) && keep_strings(o, origin) &&
	       read_units(o, origin) && each(o, origin, 1 << BRIDGE_ATTRIBUTE, move_attribute) &&
	       each(o, origin, others, move_other);
}
