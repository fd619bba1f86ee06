/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of 1.3 to 1.7. One pass over the tags counts the entries of each table and finds where
 * they are. Each table is then moved in a pass of its own over that part, so that its entries
 * follow each other: first strings, then attributes, whose keys become strings, then the others,
 * whose flags become attributes.
 */
#include "profile/otlp/bridge_old.h"

#include "base/hash.h"

static bool add_number(struct bytes *to, uint32_t number)
{
	if (!bytes_reserve(to, 10))
		return false;
	to->len = (size_t)(wire_put_varint(to->at + to->len, number) - to->at);
	return true;
}

/* Adds to each of four varints of two bytes, which are in one word, if all of them are at most
 * `last` and no sum exceeds two bytes; last: below 2^14. */
static inline bool move_pairs(uint64_t *word, uint64_t base, uint64_t last)
{
	static const uint64_t each = 0x0001000100010001;
	uint64_t x = *word;
	if ((x & 0x8080808080808080) != 0x0080008000800080)
		return false;
	x = (x & 0x007f007f007f007f) | (x & 0x7f007f007f007f00) >> 1;
	uint64_t within = (last | 0x8000) * each - x, sum = x + base * each;
	*word = (sum & 0x007f007f007f007f) | (sum & 0x3f803f803f803f80) << 1 | 0x0080008000800080;
	return (within & 0x8000800080008000) == 0x8000800080008000 && !(sum & 0xc000c000c000c000);
}

/* Most numbers have one or two bytes. */
static inline uint8_t *put_short(uint8_t *at, uint32_t number)
{
	if (number >= 0x4000)
		return wire_put_varint(at, number);
	at[0] = (uint8_t)(number & 0x7f);
	if (number < 0x80)
		return at + 1;
	at[0] |= 0x80;
	at[1] = (uint8_t)(number >> 7);
	return at + 2;
}

uint8_t *old_put_moved(const struct old *o, struct view packed, enum bridge_table table,
		       uint8_t *at)
{
	uint64_t base = o->base[table], have = o->have[table];
	uint64_t last = have > 0x4000 ? 0x3fff : have - 1;
	bool short_base = base < 0x4000 && have;
	struct wire w = wire_of(packed);
	while (wire_more(&w)) {
		uint64_t word = wire_load(w.at);
		if (short_base && w.end - w.at >= 8 && move_pairs(&word, base, last)) {
			wire_store(at, word);
			at += 8;
			w.at += 8;
			continue;
		}
		uint64_t index = wire_varint(&w);
		at = put_short(at, index < have ? (uint32_t)(base + index) : BRIDGE_BEYOND);
	}
	return wire_done(&w) ? at : wire_put_varint(at, BRIDGE_BEYOND);
}

bool old_move_list(struct old *o, const struct wire_field *field, enum bridge_table table,
		   struct bytes *to)
{
	if (field->type == WIRE_VARINT)
		return add_number(to, old_move(o, table, field->value));
	if (!bytes_reserve(to, 5 * field->view.len + 5))
		return false;
	uint8_t *end = old_put_moved(o, field->view, table, to->at + to->len);
	to->len = (size_t)(end - to->at);
	return true;
}

static bool measure(struct old *o, struct view message, uint32_t unused,
		    bool (*none)(struct old *o, struct view view))
{
	struct old_reader r = old_read(message, &o->layout->tables);
	(void)unused;
	(void)none;
	while (old_next(&r)) {
		struct old_extent *extent = &o->extent[r.role];
		if (!o->have[r.role]++)
			extent->from = r.from;
		while (old_again(&r))
			o->have[r.role]++;
		extent->to = r.w.at;
	}
	return old_done(o, &r);
}

/* Calls `entry` for each entry of a table. */
static bool each_entry(struct old *o, struct view message, uint32_t table,
		       bool (*entry)(struct old *o, struct view view))
{
	struct old_reader r = old_read(old_part(message, o->extent[table]), &o->layout->tables);
	while (old_next(&r)) {
		if (r.role != table)
			continue;
		do
			if (!entry(o, r.field.view))
				return false;
		while (old_again(&r));
	}
	return true;
}

/* Calls one of the two for the origin, or for every occurrence of the dictionary. */
static bool each_part(struct old *o, struct view origin, uint32_t table,
		      bool (*entry)(struct old *o, struct view view),
		      bool (*part)(struct old *o, struct view message, uint32_t table,
				   bool (*entry)(struct old *o, struct view view)))
{
	struct wire w = wire_of(origin);
	struct wire_field field;
	if (!o->layout->dictionary)
		return part(o, origin, table, entry);
	while (wire_next(&w, &field))
		if (field.number == 2 && field.type == WIRE_LEN &&
		    !part(o, field.view, table, entry))
			return false;
	return true;
}

static bool each(struct old *o, struct view origin, uint32_t table,
		 bool (*entry)(struct old *o, struct view view))
{
	return !o->have[table] || each_part(o, origin, table, entry, each_entry);
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
static bool move_string(struct old *o, struct view view)
{
	struct bytes *to = &o->b->table[BRIDGE_STRING];
	bool first = !o->has_first;
	o->has_first = true;
	if (first)
		return true;
	if (!bytes_reserve(to, view.len + 11))
		return false;
	uint8_t *at = wire_put_tag(to->at + to->len, BRIDGE_STRING, WIRE_LEN);
	at = bridge_copy(wire_put_varint(at, view.len), view.at, view.len);
	to->len = (size_t)(at - to->at);
	return true;
}

static bool keep_string(struct old *o, struct view view)
{
	return bytes_add(&o->buffer[OLD_STRINGS], &view, sizeof view);
}

/* The content of strings is needed for units and for build IDs. */
static bool keep_strings(struct old *o, struct view origin)
{
	o->buffer[OLD_STRINGS].len = 0;
	return (!o->have[OLD_UNIT] && !o->layout->always_mapping) ||
	       each(o, origin, BRIDGE_STRING, keep_string);
}

struct view old_string_at(const struct old *o, uint64_t index)
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
	if (!old_slot_is(slot, OLD_KEY_STRING, hash)) {
		if (!bridge_string(o->b, key, index))
			return false;
		*slot = (struct old_slot){ hash, *index, OLD_KEY_STRING };
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
	while (slots[at].kind && slots[at].hash != hash)
		at = (at + 1) & mask;
	return &slots[at];
}

static uint64_t hash_of(struct view text)
{
	return hash_bytes(text.at, text.len);
}

/* The first unit of a key counts. */
static bool add_unit(struct old *o, struct view view)
{
	struct old_reader r = old_read(view, &old_attribute_unit);
	uint64_t key = 0, unit = 0;
	while (old_next(&r))
		*(r.role == OLD_UNIT_KEY ? &key : &unit) = r.field.value;
	if (!old_done(o, &r))
		return false;
	uint64_t hash = hash_of(old_string_at(o, key));
	struct old_slot *slot = unit_slot(o, hash);
	if (!slot->kind)
		*slot = (struct old_slot){ hash, old_move_string(o, unit), OLD_KEY_UNIT };
	return true;
}

static bool read_units(struct old *o, struct view origin)
{
	struct bytes *units = &o->buffer[OLD_UNITS];
	size_t size = sizeof(struct old_slot) * 4;
	units->len = 0;
	if (!o->have[OLD_UNIT])
		return true;
	while (size < 2 * sizeof(struct old_slot) * o->have[OLD_UNIT])
		size *= 2;
	if (!bytes_reserve(units, size))
		return false;
	memset(units->at, 0, size);
	units->len = size;
	return each(o, origin, OLD_UNIT, add_unit);
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

static bool move_attribute(struct old *o, struct view view)
{
	struct bytes *to = &o->b->table[BRIDGE_ATTRIBUTE];
	struct attribute_parts a;
	if (!read_attribute(o, view, &a) || !bytes_reserve(to, a.value.len + 40))
		return false;
	size_t len = wire_len_len(2, a.value.len) + (a.key ? 1 + wire_varint_len(a.key) : 0) +
		     (a.unit ? 1 + wire_varint_len(a.unit) : 0);
	uint8_t *at = to->at + to->len;
	at = wire_put_varint(wire_put_tag(at, BRIDGE_ATTRIBUTE, WIRE_LEN), len);
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
	return move_attribute(o, message);
}

/* What the tables need as a rule, so that they do not grow in small steps. */
static bool make_room(struct old *o)
{
	for (int i = 1; i < BRIDGE_TABLES; i++) {
		size_t size = o->have[i] ? (size_t)(o->extent[i].to - o->extent[i].from) : 0;
		if (!bytes_reserve(&o->b->table[i], size + size / 8 + 64))
			return false;
	}
	return true;
}

bool old_tables(struct old *o, struct view origin)
{
	memset(o->have, 0, sizeof o->have);
	o->has_first = false;
	o->origin++;
	if (!each_part(o, origin, 0, NULL, measure) || !make_room(o))
		return false;
	take_places(o);
	return each(o, origin, BRIDGE_STRING, move_string) && keep_strings(o, origin) &&
	       read_units(o, origin) && each(o, origin, BRIDGE_ATTRIBUTE, move_attribute) &&
	       each(o, origin, BRIDGE_MAPPING, old_move_mapping) &&
	       each(o, origin, BRIDGE_FUNCTION, old_move_function) &&
	       each(o, origin, BRIDGE_LOCATION, old_move_location) &&
	       each(o, origin, BRIDGE_LINK, old_move_link);
}
