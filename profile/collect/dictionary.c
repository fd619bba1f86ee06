/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/collect/dictionary.h"
#include "base/hash.h"
#include "base/memory.h"

#include <assert.h>

enum { COMMON_MIN = 8 }; /* frames; fewer are written as fast as they are copied */

void dictionary_init(struct dictionary *d, size_t max)
{
	*d = (struct dictionary){ 0 };
	for (unsigned t = 0; t < DICTIONARY_TABLES; t++)
		intern_init(&d->tables[t], PUT_LEN(t + 1), max);
	canonical_init(&d->canonical, max);
}

void dictionary_fini(struct dictionary *d)
{
	for (unsigned t = 0; t < DICTIONARY_TABLES; t++)
		intern_fini(&d->tables[t]);
	canonical_fini(&d->canonical);
	memory_free(d->block.at);
	memory_free(d->touched.at);
	memory_free(d->list.at);
	memory_free(d->stamps.at);
}

void dictionary_reset(struct dictionary *d)
{
	for (unsigned t = 0; t < DICTIONARY_TABLES; t++)
		intern_reset(&d->tables[t]);
}

static void open_maps(struct dictionary *d, const struct profiles *p)
{
	const uint32_t counts[DICTIONARY_TABLES] = {
		[MAPPINGS] = p->mappings.count,   [LOCATIONS] = p->locations.count,
		[FUNCTIONS] = p->functions.count, [LINKS] = p->links.count,
		[STRINGS] = p->strings.count,     [ATTRIBUTES] = p->attributes.count,
		[STACKS] = p->stacks.count,
	};
	uint64_t total = counts[ATTRIBUTES]; /* keys */
	for (unsigned t = 0; t < DICTIONARY_TABLES; t++)
		total += counts[t];
	d->block.count = 0;
	array_reserve(&d->block, total);
	memset(d->block.at, 0, total * sizeof *d->block.at);
	uint32_t *at = d->block.at;
	for (unsigned t = 0; t < DICTIONARY_TABLES; t++) {
		d->maps[t] = at;
		at += counts[t];
		intern_warm(&d->tables[t], counts[t]);
	}
	d->keys = at;
}

static void wipe_touched(struct dictionary *d)
{
	for (uint32_t i = 0; i < d->touched.count; i++)
		d->block.at[d->touched.at[i]] = 0;
	d->touched.count = 0;
}

void dictionary_begin(struct dictionary *d, const struct profiles *p, size_t inline_max)
{
	if (d->same_tables && d->p)
		wipe_touched(d);
	else
		open_maps(d, p);
	for (unsigned t = 0; t < DICTIONARY_TABLES; t++)
		intern_mark(&d->tables[t]);
	d->p = p;
	d->last_stack = (struct list){ 0 };
	canonical_begin(&d->canonical, inline_max);
}

void dictionary_rollback(struct dictionary *d)
{
	for (unsigned t = 0; t < DICTIONARY_TABLES; t++)
		intern_rollback(&d->tables[t]);
}

static __attribute__((noinline)) void touch(struct dictionary *d, enum dictionary_table t,
					    uint32_t theirs)
{
	array_push(&d->touched) = (uint32_t)(&d->maps[t][theirs] - d->block.at);
}

static uint32_t remember(struct dictionary *d, enum dictionary_table t, uint32_t theirs,
			 uint32_t ours, uint32_t changed)
{
	if (__builtin_expect(d->same_tables, 0))
		touch(d, t, theirs);
	return d->maps[t][theirs] = ours ? ours | changed : 0;
}

static uint32_t put_entry(struct dictionary *d, enum dictionary_table t, const uint8_t *start,
			  const uint8_t *end)
{
	return intern_put(&d->tables[t], start, (size_t)(end - start));
}

static uint32_t changed_if(bool changed)
{
	return changed ? DICTIONARY_CHANGED : 0;
}

static inline uint32_t put_string(struct dictionary *d, uint32_t string, struct view v,
				  uint32_t hash)
{
	return remember(d, STRINGS, string,
			intern_put_hashed(&d->tables[STRINGS], hash, v.at, v.len), 0);
}

static __attribute__((noinline)) uint32_t put_unhashed(struct dictionary *d, uint32_t string,
						       struct view v)
{
	return put_string(d, string, v, (uint32_t)hash_bytes_128(v.at, v.len).low);
}

uint32_t dictionary_string_new(struct dictionary *d, uint32_t string)
{
	assert(string < d->p->strings.count);
	const struct string *s = &d->p->strings.at[string];
	struct view v = span_view(d->p, s->text);
	if (!v.len)
		return 0;
	return s->hash ? put_string(d, string, v, s->hash) : put_unhashed(d, string, v);
}

uint32_t dictionary_attribute_new(struct dictionary *d, uint32_t attribute)
{
	assert(attribute < d->p->attributes.count);
	const struct attribute *a = &d->p->attributes.at[attribute];
	struct intern *table = &d->tables[ATTRIBUTES];
	uint32_t key = d->keys[attribute] = dictionary_string(d, a->key);
	if (table->full ||
	    !canonical_attribute(&d->canonical, d->p, a, key, dictionary_string(d, a->unit))) {
		table->full = true;
		return 0;
	}
	struct view bytes = bytes_view(&d->canonical.out);
	return remember(d, ATTRIBUTES, attribute, intern_put(table, bytes.at, bytes.len),
			changed_if(a->changed));
}

/* A stamp for each of our strings. */
static void add_stamps(struct dictionary *d)
{
	if (d->stamps.count >= d->tables[STRINGS].count)
		return;
	uint32_t more = d->tables[STRINGS].count - d->stamps.count;
	array_reserve(&d->stamps, more);
	memset(d->stamps.at + d->stamps.count, 0, more * sizeof *d->stamps.at);
	d->stamps.count += more;
}

static uint32_t next_stamp(struct dictionary *d)
{
	if (++d->stamp == 0) {
		memset(d->stamps.at, 0, d->stamps.count * sizeof *d->stamps.at);
		d->stamp = 1;
	}
	return d->stamp;
}

/* Does the list already contain the key? Then this attribute is not copied, because nothing would
 * refer to it. */
static bool key_stands(struct dictionary *d, uint32_t attribute, uint32_t stamp)
{
	uint32_t key = dictionary_string(d, d->p->attributes.at[attribute].key);
	add_stamps(d);
	return d->stamps.at[key] == stamp;
}

uint32_t dictionary_attributes_new(struct dictionary *d, struct list list, struct indices *out)
{
	const uint32_t *theirs = d->p->indices.at + list.first, *end = theirs + list.count;
	const uint32_t *known = d->maps[ATTRIBUTES], *keys = d->keys;
	uint32_t *stamps = d->stamps.at, stamp = next_stamp(d), changed = 0;
	array_reserve(out, list.count);
	uint32_t *at = out->at + out->count;
	for (; theirs < end; theirs++) {
		uint32_t ours = known[*theirs];
		if (__builtin_expect(!ours, 0)) {
			bool passed = !*theirs || key_stands(d, *theirs, stamp);
			stamps = d->stamps.at;
			if (passed)
				continue;
			ours = dictionary_attribute_new(d, *theirs);
		}
		uint32_t key = keys[*theirs];
		changed |= ours;
		*at = DICTIONARY_INDEX(ours);
		at += stamps[key] != stamp;
		stamps[key] = stamp;
	}
	out->count = (uint32_t)(at - out->at);
	return changed & DICTIONARY_CHANGED;
}

static __attribute__((noinline)) uint8_t *put_new_list(struct dictionary *d, uint8_t *at,
						       uint8_t tag, struct list list,
						       uint32_t *changed)
{
	d->list.count = 0;
	*changed |= dictionary_attributes(d, list, &d->list);
	return put_packed(at, tag, d->list.at, d->list.count);
}

/* Writes the attributes of the record that is being copied to `at`, which has list_room for
 * them. */
static inline uint8_t *put_list(struct dictionary *d, uint8_t *at, uint8_t tag, struct list list,
				uint32_t *changed)
{
	if (!list.count)
		return at;
	uint32_t known = d->maps[ATTRIBUTES][d->p->indices.at[list.first]];
	if (list.count > 1 || !known)
		return put_new_list(d, at, tag, list, changed);
	*changed |= known & DICTIONARY_CHANGED;
	return put_packed_one(at, tag, DICTIONARY_INDEX(known));
}

static size_t list_room(struct list list)
{
	return PUT_MAX + (size_t)list.count * 5;
}

static uint32_t function_new(struct dictionary *d, uint32_t function)
{
	assert(function < d->p->functions.count);
	const struct function *f = &d->p->functions.at[function];
	uint8_t *start = intern_room(&d->tables[FUNCTIONS], 4 * PUT_MAX);
	if (!start)
		return 0;
	/* File names first: a file has many functions, and the first entries have the shortest
	 * indices. */
	uint32_t filename = dictionary_string(d, f->filename);
	uint8_t *at = put_number(start, PUT_VARINT(1), dictionary_string(d, f->name));
	at = put_number(at, PUT_VARINT(2), dictionary_string(d, f->system_name));
	at = put_number(at, PUT_VARINT(3), filename);
	at = put_number(at, PUT_VARINT(4), (uint64_t)f->start_line);
	return remember(d, FUNCTIONS, function, put_entry(d, FUNCTIONS, start, at),
			changed_if(f->changed));
}

static uint32_t function_of(struct dictionary *d, uint32_t function)
{
	if (!function)
		return 0;
	uint32_t known = d->maps[FUNCTIONS][function];
	return known ? known : function_new(d, function);
}

static uint32_t mapping_new(struct dictionary *d, uint32_t mapping)
{
	assert(mapping < d->p->mappings.count);
	const struct mapping *m = &d->p->mappings.at[mapping];
	uint8_t *start = intern_room(&d->tables[MAPPINGS], 4 * PUT_MAX + list_room(m->attributes));
	if (!start)
		return 0;
	uint32_t changed = changed_if(m->changed);
	uint8_t *at = put_number(start, PUT_VARINT(1), m->start);
	at = put_number(at, PUT_VARINT(2), m->limit);
	at = put_number(at, PUT_VARINT(3), m->offset);
	at = put_number(at, PUT_VARINT(4), dictionary_string(d, m->filename));
	at = put_list(d, at, PUT_LEN(5), m->attributes, &changed);
	return remember(d, MAPPINGS, mapping, put_entry(d, MAPPINGS, start, at), changed);
}

static uint32_t mapping_of(struct dictionary *d, uint32_t mapping)
{
	if (!mapping)
		return 0;
	uint32_t known = d->maps[MAPPINGS][mapping];
	return known ? known : mapping_new(d, mapping);
}

#define LINE_MAX (PUT_HEADER + 3 * PUT_MAX)
static_assert(LINE_MAX < PUT_HEADER + 0x80, "a line is a short message");

static inline uint8_t *put_line(uint8_t *header, const struct line *l, uint32_t function)
{
	uint8_t *at = put_number(header + PUT_HEADER, PUT_VARINT(1), function);
	at = put_number(at, PUT_VARINT(2), (uint64_t)l->line);
	at = put_number(at, PUT_VARINT(3), (uint64_t)l->column);
	return put_close_short(header, PUT_LEN(3), at);
}

/* Location 0 is copied too, as an empty entry, to keep its place in the stack. */
static __attribute__((noinline)) uint32_t location_new(struct dictionary *d, uint32_t location)
{
	assert(location < d->p->locations.count);
	const struct location *l = &d->p->locations.at[location];
	uint8_t *start =
		intern_room(&d->tables[LOCATIONS], 2 * PUT_MAX + (size_t)l->lines.count * LINE_MAX +
							   list_room(l->attributes));
	if (!start)
		return 0;
	uint32_t mapping = mapping_of(d, l->mapping), changed = changed_if(l->changed) | mapping;
	uint8_t *at = put_number(start, PUT_VARINT(1), DICTIONARY_INDEX(mapping));
	at = put_number(at, PUT_VARINT(2), l->address);
	const struct line *line = d->p->lines.at + l->lines.first, *end = line + l->lines.count;
	for (; line < end; line++) {
		uint32_t function = function_of(d, line->function);
		changed |= function;
		at = put_line(at, line, DICTIONARY_INDEX(function));
	}
	at = put_list(d, at, PUT_LEN(4), l->attributes, &changed);
	return remember(d, LOCATIONS, location, put_entry(d, LOCATIONS, start, at),
			changed & DICTIONARY_CHANGED);
}

/* The number of frames at the root that two stacks have in common; 0 if too few to be
 * worthwhile. */
static inline uint32_t common_frames(const uint32_t *indices, struct list a, struct list b)
{
	uint32_t max = a.count < b.count ? a.count : b.count, n = COMMON_MIN;
	const uint32_t *x = indices + a.first + a.count, *y = indices + b.first + b.count;
	if (max < COMMON_MIN || memcmp(x - COMMON_MIN, y - COMMON_MIN, COMMON_MIN * sizeof *x) != 0)
		return 0;
	while (n < max && x[-1 - (ptrdiff_t)n] == y[-1 - (ptrdiff_t)n])
		n++;
	return n;
}

/* The bytes of one of our stacks without its first frames. */
static struct view frames_behind(const struct intern *t, uint32_t ours, uint32_t first)
{
	const struct intern_entry *entry = &t->entries[ours];
	const uint8_t *at = t->wire.at + entry->at, *end = at + entry->len;
	for (first += 2; first; at++) /* the tag and the length are varints too */
		first -= *at < 0x80;
	return (struct view){ at, (size_t)(end - at) };
}

/* Consecutive stacks often come from walking one tree: their common frames are already in the bytes
 * of the last stack. Copies these before `end` and removes them from the list. Returns the start of
 * the copy. */
static inline uint8_t *put_common(struct dictionary *d, struct list *locations, uint8_t *end)
{
	uint32_t common = common_frames(d->p->indices.at, d->last_stack, *locations);
	uint32_t others = d->last_stack.count - common;
	if (!common || others > common)
		return end;
	struct view bytes = frames_behind(&d->tables[STACKS], d->last_stack_ours, others);
	locations->count -= common;
	return memcpy(end - bytes.len, bytes.at, bytes.len);
}

/* A stack is written from its end, where the root is: root frames are in most stacks, and the first
 * entries of a table have the shortest indices. */
uint32_t dictionary_stack_new(struct dictionary *d, uint32_t stack)
{
	assert(stack < d->p->stacks.count);
	const struct stack *s = &d->p->stacks.at[stack];
	size_t room = list_room(s->locations);
	uint8_t *end = intern_room(&d->tables[STACKS], room);
	if (!end)
		return 0;
	end += room;
	struct list left = s->locations;
	uint8_t *at = put_common(d, &left, end);
	const uint32_t *leaf = d->p->indices.at + left.first, *known = d->maps[LOCATIONS];
	const uint32_t *theirs = leaf + left.count;
	uint32_t changed = changed_if(s->changed);
	while (theirs > leaf) {
		uint32_t ours = known[*--theirs];
		if (__builtin_expect(!ours, 0))
			ours = location_new(d, *theirs);
		changed |= ours;
		at = put_index_before(at, DICTIONARY_INDEX(ours));
	}
	if (at < end)
		at = put_header_before(at, PUT_LEN(1), (size_t)(end - at));
	uint32_t ours = put_entry(d, STACKS, at, end);
	d->last_stack = ours && !(changed & DICTIONARY_CHANGED) ? s->locations : (struct list){ 0 };
	d->last_stack_ours = ours;
	return remember(d, STACKS, stack, ours, changed & DICTIONARY_CHANGED);
}

uint32_t dictionary_link_new(struct dictionary *d, uint32_t link)
{
	static const uint8_t zero[24];
	assert(link < d->p->links.count);
	const struct link *l = &d->p->links.at[link];
	uint8_t *at = intern_room(&d->tables[LINKS], sizeof zero + 2 * PUT_MAX);
	if (!at)
		return 0;
	if (memcmp(l->trace_id, zero, 16) == 0 && memcmp(l->span_id, zero, 8) == 0)
		return changed_if(l->changed);
	at[0] = PUT_LEN(1);
	at[1] = 16;
	memcpy(at + 2, l->trace_id, 16);
	at[18] = PUT_LEN(2);
	at[19] = 8;
	memcpy(at + 20, l->span_id, 8);
	return remember(d, LINKS, link, put_entry(d, LINKS, at, at + 28), changed_if(l->changed));
}

size_t dictionary_size(const struct dictionary *d)
{
	size_t size = 0;
	for (unsigned t = 0; t < DICTIONARY_TABLES; t++)
		size += d->tables[t].full ? DICTIONARY_FULL : d->tables[t].wire.len;
	return size;
}

uint8_t *dictionary_put(const struct dictionary *d, uint8_t *at)
{
	for (unsigned t = 0; t < DICTIONARY_TABLES; t++) {
		memcpy(at, d->tables[t].wire.at, d->tables[t].wire.len);
		at += d->tables[t].wire.len;
	}
	return at;
}

size_t dictionary_footprint(const struct dictionary *d)
{
	size_t held = d->canonical.out.room + intern_footprint(&d->canonical.keys) +
		      ((size_t)d->block.room + d->touched.room + d->list.room + d->stamps.room) *
			      sizeof(uint32_t);
	for (unsigned t = 0; t < DICTIONARY_TABLES; t++)
		held += intern_footprint(&d->tables[t]);
	return held;
}
