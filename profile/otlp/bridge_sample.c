/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of 1.3 to 1.7. Each is read once and becomes a record, because a Profile with several
 * types has a value of each sample for every type.
 */
#include "profile/otlp/bridge_old.h"

#include "base/hash.h"

/* A sample as it is read. */
struct reading {
	struct view message;
	uint64_t number[OLD_SAMPLE_FIELDS];
	struct view list[OLD_SAMPLE_FIELDS];
	uint32_t has, split; /* 1 << role; split: in several pieces, or unpacked: to be gathered */
};

static inline bool has(const struct reading *s, enum old_sample role)
{
	return s->has >> role & 1;
}

/* All numbers of a repeated field, packed. */
static bool gather(struct old *o, const struct reading *s, uint32_t role, struct view *view)
{
	struct bytes *gathered = &o->buffer[OLD_GATHERED];
	struct old_reader r = old_read(s->message, &o->layout->sample);
	gathered->len = 0;
	while (old_next(&r)) {
		if (r.role != role)
			continue;
		if (r.field.type == WIRE_LEN) {
			if (!bytes_add(gathered, r.field.view.at, r.field.view.len))
				return false;
			continue;
		}
		if (!bytes_reserve(gathered, 10))
			return false;
		gathered->len =
			(size_t)(wire_put_varint(gathered->at + gathered->len, r.field.value) -
				 gathered->at);
	}
	*view = bytes_view(gathered);
	return true;
}

static inline bool packed(struct old *o, const struct reading *s, enum old_sample role,
			  struct view *view)
{
	*view = s->list[role];
	return !(s->split >> role & 1) || gather(o, s, role, view);
}

/* What writers send: each field at most once, packed, in the order of the numbers. False: it is not
 * such a sample. */
static inline void usual_number(struct wire *w, struct reading *s, uint32_t number,
				enum old_sample role)
{
	if (!wire_is(w, WIRE_TAG(number, WIRE_VARINT)))
		return;
	s->has |= UINT32_C(1) << role;
	s->number[role] = wire_varint(w);
}

static inline void usual_list(struct wire *w, struct reading *s, uint32_t number,
			      enum old_sample role)
{
	if (!wire_is(w, WIRE_TAG(number, WIRE_LEN)))
		return;
	s->has |= UINT32_C(1) << role;
	s->list[role] = wire_len(w);
}

static bool usual_1_3(struct wire w, struct reading *s)
{
	usual_list(&w, s, 1, OLD_LOCATIONS);
	usual_list(&w, s, 2, OLD_VALUES);
	usual_list(&w, s, 3, OLD_LABEL);
	while (wire_is(&w, WIRE_TAG(3, WIRE_LEN)))
		wire_len(&w);
	usual_number(&w, s, 7, OLD_RANGE_START);
	usual_number(&w, s, 8, OLD_RANGE_LENGTH);
	if (wire_is(&w, WIRE_TAG(9, WIRE_VARINT))) /* stacktrace_id_index */
		wire_varint(&w);
	usual_list(&w, s, 10, OLD_SAMPLE_ATTRIBUTES);
	usual_number(&w, s, 12, OLD_SAMPLE_LINK);
	usual_list(&w, s, 13, OLD_TIMESTAMPS);
	return wire_at_end(&w);
}

static bool usual_1_4(struct wire w, struct reading *s)
{
	usual_number(&w, s, 1, OLD_RANGE_START);
	usual_number(&w, s, 2, OLD_RANGE_LENGTH);
	usual_list(&w, s, 3, OLD_VALUES);
	usual_list(&w, s, 4, OLD_SAMPLE_ATTRIBUTES);
	usual_number(&w, s, 5, OLD_SAMPLE_LINK);
	usual_list(&w, s, 6, OLD_TIMESTAMPS);
	return wire_at_end(&w);
}

static bool read_sample(struct old *o, struct view view, struct reading *s)
{
	*s = (struct reading){ .message = view };
	if (o->layout->container.count ? usual_1_3(wire_of(view), s) : usual_1_4(wire_of(view), s))
		return true;
	*s = (struct reading){ .message = view };
	struct old_reader r = old_read(view, &o->layout->sample);
	while (old_next(&r)) {
		uint32_t bit = UINT32_C(1) << r.role;
		if (s->has & bit || r.field.type != WIRE_LEN)
			s->split |= bit;
		s->has |= bit;
		if (r.field.type == WIRE_LEN)
			s->list[r.role] = r.field.view;
		else
			s->number[r.role] = r.field.value;
	}
	return old_done(o, &r);
}

/* Stacks. */

/* A new one in stack_table, unless it is there already. */
static bool add_stack(struct old *o, struct view locations, uint32_t *index)
{
	struct bytes *table = &o->b->table[BRIDGE_STACK];
	uint32_t kind = OLD_STACK + o->origin;
	uint64_t hash = hash_bytes(locations.at, locations.len);
	struct old_slot *slot = old_slot_of(o, hash);
	*index = slot->index;
	if (old_slot_is(slot, kind, hash))
		return true;
	if (!bytes_reserve(table, 5 * locations.len + 24))
		return false;
	uint8_t *start = wire_put_tag(table->at + table->len, BRIDGE_STACK, WIRE_LEN) + 1;
	uint8_t *list = wire_put_tag(start, 1, WIRE_LEN) + 1;
	uint8_t *end = old_put_moved(o, locations, BRIDGE_LOCATION, list);
	table->len = (size_t)(bridge_wrap(start, bridge_wrap(list, end)) - table->at);
	*index = o->b->count[BRIDGE_STACK]++;
	*slot = (struct old_slot){ hash, *index, kind };
	return true;
}

/* Ranges may overlap, so a small request may refer to any number of locations. The densest ones
 * that profilers send stay far below the limit. */
static bool pass_range(struct old *o, size_t len)
{
	o->passed += len;
	return o->passed <= o->passed_max ||
	       bridge_malformed(o->b, "Profile",
				"has samples whose ranges of locations overlap too often");
}

static bool move_stack(struct old *o, const struct reading *s, uint32_t *stack)
{
	struct view locations;
	*stack = BRIDGE_BEYOND;
	if (!has(s, OLD_LOCATIONS)) {
		if (!old_range(o, s->number[OLD_RANGE_START], s->number[OLD_RANGE_LENGTH],
			       &locations))
			return true;
	} else if (!packed(o, s, OLD_LOCATIONS, &locations)) {
		return false;
	}
	if (locations.len)
		return pass_range(o, locations.len) && add_stack(o, locations, stack);
	*stack = 0;
	return true;
}

/* Labels of 1.3 become attributes as in profile/pprof: of several with one key, an array. */

struct old_label_set {
	uint64_t number;
	uint32_t key, string, unit; /* strings, moved */
	uint32_t next;              /* the next with this key, plus one */
	bool follows;               /* another one with this key */
};

static bool read_label(struct old *o, struct view view, struct old_label_set *l, uint64_t *key)
{
	struct old_reader r = old_read(view, &old_label);
	*l = (struct old_label_set){ 0 };
	*key = 0;
	while (old_next(&r)) {
		if (r.role == OLD_LABEL_KEY)
			*key = r.field.value;
		else if (r.role == OLD_LABEL_STR)
			l->string = old_move_string(o, r.field.value);
		else if (r.role == OLD_LABEL_NUM)
			l->number = r.field.value;
		else
			l->unit = old_move_string(o, r.field.value);
	}
	l->key = old_move_string(o, *key);
	return old_done(o, &r);
}

/* For each string of the origin: the sample in which it was last a key (high half), and the label
 * (low half). */
static bool make_stamps(struct old *o)
{
	struct bytes *stamps = &o->buffer[OLD_LABEL_STAMPS];
	size_t size = ((size_t)o->have[BRIDGE_STRING] + 1) * sizeof(uint64_t);
	if (stamps->len == size)
		return true;
	stamps->len = 0;
	if (!bytes_reserve(stamps, size))
		return false;
	memset(stamps->at, 0, size);
	stamps->len = size;
	return true;
}

static void chain(struct old *o, uint64_t key, uint32_t position)
{
	struct old_label_set *labels = (struct old_label_set *)o->buffer[OLD_LABELS].at;
	uint64_t *stamps = (uint64_t *)o->buffer[OLD_LABEL_STAMPS].at;
	uint64_t *stamp = &stamps[key < o->have[BRIDGE_STRING] ? key : o->have[BRIDGE_STRING]];
	if (*stamp >> 32 == o->serial) {
		labels[(uint32_t)*stamp].next = position + 1;
		labels[position].follows = true;
	}
	*stamp = o->serial << 32 | position;
}

static bool read_labels(struct old *o, const struct reading *s)
{
	struct bytes *labels = &o->buffer[OLD_LABELS];
	struct old_reader r = old_read(s->message, &o->layout->sample);
	labels->len = 0;
	if (!make_stamps(o))
		return false;
	for (uint32_t i = 0; old_next(&r);) {
		struct old_label_set label;
		uint64_t key;
		if (r.role != OLD_LABEL)
			continue;
		if (!read_label(o, r.field.view, &label, &key) ||
		    !bytes_add(labels, &label, sizeof label))
			return false;
		chain(o, key, i++);
	}
	return true;
}

/* AnyValue: with string_value_strindex or int_value. */
static bool add_value(struct bytes *to, const struct old_label_set *l)
{
	return l->string ? wire_add_varint(to, 8, l->string) : wire_add_varint(to, 3, l->number);
}

/* The number of another unit: the pair [number, unit]. */
static bool add_pair(struct bytes *to, const struct old_label_set *l)
{
	size_t array, element;
	if (!bridge_open(to, 5, &array) || !bridge_open(to, 1, &element) || !add_value(to, l))
		return false;
	bridge_close(to, element);
	if (!bridge_open(to, 1, &element) || !wire_add_varint(to, 8, l->unit))
		return false;
	bridge_close(to, element);
	bridge_close(to, array);
	return true;
}

/* The AnyValue of a chain of labels, and its unit: that of the first number. */
static bool add_array(struct bytes *to, const struct old_label_set *labels,
		      const struct old_label_set *l, uint32_t *unit)
{
	size_t array, element;
	bool has_unit = false;
	if (!bridge_open(to, 5, &array))
		return false;
	for (;; l = &labels[l->next - 1]) {
		if (!l->string && !has_unit) {
			has_unit = true;
			*unit = l->unit;
		}
		if (!bridge_open(to, 1, &element) ||
		    !(l->string || l->unit == *unit ? add_value(to, l) : add_pair(to, l)))
			return false;
		bridge_close(to, element);
		if (!l->next)
			break;
	}
	bridge_close(to, array);
	return true;
}

static bool move_label(struct old *o, const struct old_label_set *labels,
		       const struct old_label_set *l, uint32_t *index)
{
	struct bytes *entry = &o->buffer[OLD_ENTRY];
	uint32_t unit = l->string ? 0 : l->unit;
	uint64_t hash = hash_bytes(l, sizeof *l);
	struct old_slot *slot = old_slot_of(o, hash);
	*index = slot->index;
	if (!l->next && old_slot_is(slot, OLD_LABEL_ATTRIBUTE, hash))
		return true;
	entry->len = 0;
	if (!(l->next ? add_array(entry, labels, l, &unit) : add_value(entry, l)) ||
	    !bridge_attribute(o->b, l->key, bytes_view(entry), unit, index))
		return false;
	if (!l->next)
		*slot = (struct old_slot){ hash, *index, OLD_LABEL_ATTRIBUTE };
	return true;
}

static bool move_labels(struct old *o, const struct reading *s)
{
	struct bytes *labels = &o->buffer[OLD_LABELS], *parts = &o->buffer[OLD_PARTS];
	if (!has(s, OLD_LABEL))
		return true;
	o->serial++;
	if (!read_labels(o, s))
		return false;
	const struct old_label_set *all = (const struct old_label_set *)labels->at;
	for (size_t i = 0; i < labels->len / sizeof *all; i++) {
		uint32_t index;
		if (all[i].follows)
			continue;
		if (!move_label(o, all, &all[i], &index) || !bytes_reserve(parts, 10))
			return false;
		parts->len = (size_t)(wire_put_varint(parts->at + parts->len, index) - parts->at);
	}
	return true;
}

static bool move_attributes(struct old *o, const struct reading *s, struct old_record *record)
{
	struct bytes *parts = &o->buffer[OLD_PARTS];
	struct wire_field field = { .type = WIRE_LEN };
	record->attributes = (uint32_t)parts->len;
	if (!packed(o, s, OLD_SAMPLE_ATTRIBUTES, &field.view) ||
	    !old_move_list(o, &field, BRIDGE_ATTRIBUTE, parts) || !move_labels(o, s))
		return false;
	record->attributes_len = (uint32_t)(parts->len - record->attributes);
	return true;
}

/* Timestamps are varints here. */
static bool move_times(struct old *o, const struct reading *s, struct old_record *record)
{
	struct bytes *parts = &o->buffer[OLD_PARTS];
	struct view view;
	if (!packed(o, s, OLD_TIMESTAMPS, &view))
		return false;
	if (!view.len)
		return true;
	if (!bytes_reserve(parts, 8 * view.len))
		return false;
	struct wire w = wire_of(view);
	uint8_t *start = parts->at + parts->len, *at = start;
	for (; wire_more(&w); at += 8)
		wire_store(at, wire_varint(&w));
	record->bad = !wire_done(&w);
	record->times = (uint32_t)parts->len;
	record->times_len = (uint32_t)(at - start);
	parts->len += record->times_len;
	return true;
}

/* One value for each type. With one type there may also be a value for each timestamp, as later
 * releases have it. Any other number, and malformed ones, leave the sample without values and
 * timestamps, which the decoder rejects. */
static bool move_values(struct old *o, const struct reading *s, struct old_record *record)
{
	struct bytes *parts = &o->buffer[OLD_PARTS];
	size_t types = o->buffer[OLD_TYPES].len / sizeof(struct old_type);
	uint32_t count = 1, times = record->times_len / 8;
	struct view view;
	if (!packed(o, s, OLD_VALUES, &view))
		return false;
	if (view.len != 1 || view.at[0] >= 0x80)
		record->bad |= !wire_packed_ok(view, &count);
	types += !types;
	record->aligned = types == 1 && count > 1 && count == times;
	if (record->bad || (count && count != types && !record->aligned)) {
		record->times_len = 0;
		return true;
	}
	record->values = (uint32_t)parts->len;
	record->values_len = (uint32_t)view.len;
	if (!bytes_reserve(parts, view.len + 1))
		return false;
	parts->len = (size_t)(bridge_copy(parts->at + parts->len, view.at, view.len) - parts->at);
	return true;
}

static bool move_sample(struct old *o, struct view message,
			bool (*take)(struct old *o, const struct old_record *record))
{
	struct bytes *parts = &o->buffer[OLD_PARTS];
	struct old_record record = { 0 };
	struct reading s;
	if (!read_sample(o, message, &s) || !move_stack(o, &s, &record.stack) ||
	    !move_attributes(o, &s, &record) || !move_times(o, &s, &record) ||
	    !move_values(o, &s, &record))
		return false;
	if (parts->len > INT32_MAX || o->b->out->len > INT32_MAX)
		return error_set(o->b->err, ERROR_TOO_LARGE,
				 "a Profile exceeds 2 GiB when it is translated to the current "
				 "version of its protocol");
	if (has(&s, OLD_SAMPLE_LINK))
		record.link = old_move(o, BRIDGE_LINK, s.number[OLD_SAMPLE_LINK]);
	return take(o, &record);
}

bool old_samples(struct old *o, struct view profile,
		 bool (*take)(struct old *o, const struct old_record *record))
{
	struct old_reader r = old_read(old_part(profile, o->samples), &o->layout->profile);
	o->buffer[OLD_PARTS].len = 0;
	while (old_next(&r)) {
		if (r.role != OLD_SAMPLE)
			continue;
		do
			if (!move_sample(o, r.field.view, take))
				return false;
		while (old_again(&r));
	}
	return true;
}
