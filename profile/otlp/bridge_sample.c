/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of 1.3 to 1.7. Each is read once and kept as a record, because a Profile with several
 * types has a value of each sample for every type.
 */
#include "profile/otlp/bridge_old.h"

#include "base/hash.h"

/* A sample as it is read. */
struct reading {
	struct view message;
	uint64_t number[OLD_SAMPLE_FIELDS];
	struct view list[OLD_SAMPLE_FIELDS];
	bool has[OLD_SAMPLE_FIELDS];
	bool split[OLD_SAMPLE_FIELDS]; /* it came in several pieces, or unpacked: to be gathered */
};

/* All numbers of a repeated field, packed. */
static bool packed(struct old *o, const struct reading *s, uint32_t role, struct view *view)
{
	struct bytes *gathered = &o->buffer[OLD_GATHERED];
	*view = s->has[role] ? s->list[role] : (struct view){ s->message.at, 0 };
	if (!s->split[role])
		return true;
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

/* What writers send: each field at most once, packed, in order. False: it is not such a sample. */
static bool read_usual(const struct old_message *message, struct reading *s)
{
	struct wire w = wire_of(s->message);
	for (uint32_t i = 1; i < message->count && wire_more(&w); i++) {
		uint32_t role = message->fields[i].role;
		bool list = message->fields[i].types >> WIRE_LEN & 1;
		if (!role || !wire_is(&w, WIRE_TAG(i, list ? WIRE_LEN : WIRE_VARINT)))
			continue;
		s->has[role] = true;
		if (list)
			s->list[role] = wire_len(&w);
		else
			s->number[role] = wire_varint(&w);
		while (role == OLD_LABEL && wire_is(&w, WIRE_TAG(i, WIRE_LEN)))
			wire_len(&w);
	}
	return wire_at_end(&w);
}

static bool read_sample(struct old *o, struct view view, struct reading *s)
{
	*s = (struct reading){ .message = view };
	if (read_usual(&o->layout->sample, s))
		return true;
	*s = (struct reading){ .message = view };
	struct old_reader r = old_read(view, &o->layout->sample);
	while (old_next(&r)) {
		s->split[r.role] = s->has[r.role] || r.field.type != WIRE_LEN;
		s->has[r.role] = true;
		if (r.field.type == WIRE_LEN)
			s->list[r.role] = r.field.view;
		else
			s->number[r.role] = r.field.value;
	}
	return old_done(o, &r);
}

/* Stacks. */

static bool list_of_range(struct old *o, const struct reading *s, bool *beyond)
{
	const struct bytes *indices = &o->buffer[OLD_INDICES];
	struct bytes *list = &o->buffer[OLD_LIST];
	size_t count = indices->len / sizeof(uint32_t);
	list->len = 0;
	uint64_t start = s->number[OLD_RANGE_START], length = s->number[OLD_RANGE_LENGTH];
	*beyond = length && (start > count || length > count - start);
	if (*beyond || !length)
		return true;
	if (!bytes_reserve(list, length * 5))
		return false;
	const uint32_t *from = (const uint32_t *)indices->at + start;
	uint8_t *at = list->at;
	for (uint64_t i = 0; i < length; i++)
		at = wire_put_varint(at, from[i]);
	list->len = (size_t)(at - list->at);
	return true;
}

static bool list_of_locations(struct old *o, const struct reading *s, bool *beyond)
{
	struct wire_field field = { .type = WIRE_LEN };
	o->buffer[OLD_LIST].len = 0;
	*beyond = false;
	return packed(o, s, OLD_LOCATIONS, &field.view) &&
	       old_move_list(o, &field, BRIDGE_LOCATION, &o->buffer[OLD_LIST]);
}

/* A new one in stack_table, unless it is there already. */
static bool add_stack(struct old *o, uint32_t *index)
{
	struct view list = bytes_view(&o->buffer[OLD_LIST]);
	struct bytes *table = &o->b->table[BRIDGE_STACK];
	*index = 0;
	if (!list.len)
		return true;
	uint64_t hash = hash_bytes(list.at, list.len) | 1;
	struct old_slot *slot = old_slot_of(o, hash);
	if (slot->hash == hash) {
		*index = slot->index;
		return true;
	}
	if (!bytes_reserve(table, list.len + 24))
		return false;
	uint8_t *at = wire_put_tag(table->at + table->len, BRIDGE_STACK, WIRE_LEN);
	at = wire_put_varint(at, wire_len_len(1, list.len));
	at = wire_put_varint(wire_put_tag(at, 1, WIRE_LEN), list.len);
	memcpy(at, list.at, list.len);
	table->len = (size_t)(at - table->at) + list.len;
	*index = o->b->count[BRIDGE_STACK]++;
	*slot = (struct old_slot){ hash, *index, 0 };
	return true;
}

static bool move_stack(struct old *o, const struct reading *s, uint32_t *stack)
{
	bool beyond = false;
	if (!(s->has[OLD_LOCATIONS] ? list_of_locations(o, s, &beyond)
				    : list_of_range(o, s, &beyond)))
		return false;
	*stack = BRIDGE_BEYOND;
	return beyond || add_stack(o, stack);
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
	uint64_t hash = hash_bytes(l, sizeof *l) | 1;
	struct old_slot *slot = old_slot_of(o, hash);
	*index = slot->index;
	if (!l->next && slot->hash == hash)
		return true;
	entry->len = 0;
	if (!(l->next ? add_array(entry, labels, l, &unit) : add_value(entry, l)) ||
	    !bridge_attribute(o->b, l->key, bytes_view(entry), unit, index))
		return false;
	if (!l->next)
		*slot = (struct old_slot){ hash, *index, 0 };
	return true;
}

static bool move_labels(struct old *o, const struct reading *s)
{
	struct bytes *labels = &o->buffer[OLD_LABELS], *parts = &o->buffer[OLD_PARTS];
	if (!s->has[OLD_LABEL])
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
	record->times = (uint32_t)parts->len;
	if (!packed(o, s, OLD_TIMESTAMPS, &view))
		return false;
	struct wire w = wire_of(view);
	while (wire_more(&w)) {
		uint64_t time = wire_varint(&w);
		if (!bytes_reserve(parts, 8))
			return false;
		wire_store(parts->at + parts->len, time);
		parts->len += 8;
	}
	record->times_len = (uint32_t)(parts->len - record->times);
	record->bad = !wire_done(&w);
	return true;
}

/* As wire_packed_ok. */
static inline bool count_values(struct view packed, uint32_t *count)
{
	if (packed.len - 1 >= 8)
		return wire_packed_ok(packed, count);
	uint64_t ends =
		~wire_load(packed.at) & UINT64_C(0x8080808080808080) >> (64 - 8 * packed.len);
	*count = (uint32_t)__builtin_popcountll(ends);
	return packed.at[packed.len - 1] < 0x80;
}

/* One value for each type. With one type there may also be a value for each timestamp, as later
 * releases have it. Any other number, and malformed ones, leave the sample without values and
 * timestamps, which the decoder rejects. */
static bool move_values(struct old *o, const struct reading *s, struct old_record *record)
{
	struct bytes *parts = &o->buffer[OLD_PARTS];
	size_t types = o->buffer[OLD_TYPES].len / sizeof(struct old_type);
	uint32_t count, times = record->times_len / 8;
	struct view view;
	if (!packed(o, s, OLD_VALUES, &view))
		return false;
	record->bad |= !count_values(view, &count);
	types += !types;
	record->aligned = types == 1 && count > 1 && count == times;
	if (record->bad || (count && count != types && !record->aligned)) {
		record->times_len = 0;
		return true;
	}
	record->values = (uint32_t)parts->len;
	record->values_len = (uint32_t)view.len;
	if (!bytes_reserve(parts, view.len))
		return false;
	parts->len = (size_t)(bridge_copy(parts->at + parts->len, view.at, view.len) - parts->at);
	return true;
}

static bool move_sample(struct old *o, struct view message)
{
	struct bytes *parts = &o->buffer[OLD_PARTS];
	struct old_record record = { 0 };
	struct reading s;
	if (!read_sample(o, message, &s) || !move_stack(o, &s, &record.stack) ||
	    !move_attributes(o, &s, &record) || !move_times(o, &s, &record) ||
	    !move_values(o, &s, &record))
		return false;
	if (parts->len > INT32_MAX)
		return error_set(o->b->err, ERROR_TOO_LARGE,
				 "a Profile exceeds 2 GiB when it is translated to the current "
				 "version of its protocol");
	if (s.has[OLD_SAMPLE_LINK])
		record.link = old_move(o, BRIDGE_LINK, s.number[OLD_SAMPLE_LINK]);
	return bytes_add(&o->buffer[OLD_RECORDS], &record, sizeof record);
}

bool old_samples(struct old *o, struct view profile)
{
	struct old_reader r = old_read(profile, &o->layout->profile);
	o->buffer[OLD_RECORDS].len = o->buffer[OLD_PARTS].len = 0;
	while (old_next(&r))
		if (r.role == OLD_SAMPLE && !move_sample(o, r.field.view))
			return false;
	return old_done(o, &r);
}
