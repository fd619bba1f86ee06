/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/profiles.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
#define EACH_TABLE(X) \
	X(strings) X(attributes) X(indices) X(functions) X(mappings) X(lines) X(locations) \
	X(stacks) X(links) X(samples) X(profiles) X(scopes) X(entities) X(resources)
/* clang-format on */

void profiles_fini(struct profiles *p)
{
#define X(t) memory_free(p->t.at);
	EACH_TABLE(X)
#undef X
	bytes_fini(&p->added);
	*p = (struct profiles){ 0 };
}

static bool add_zero_entries(struct profiles *p)
{
#define X(t) \
	if (!profiles_room(p, &p->t, 1)) \
		return false; \
	memset(&p->t.at[p->t.count++], 0, sizeof *p->t.at);
	X(strings)
	X(attributes)
	X(functions)
	X(mappings)
	X(locations)
	X(stacks)
	X(links)
#undef X
	return true;
}

/* So that a place in them can be computed even when nothing is there. */
static bool make_tables(struct profiles *p)
{
#define X(t) \
	if (!profiles_room(p, &p->t, 1)) \
		return false;
	EACH_TABLE(X)
#undef X
	return true;
}

bool profiles_reset(struct profiles *p, struct request *request, struct view input,
		    size_t table_bytes_max)
{
#define X(t) p->t.count = 0;
	EACH_TABLE(X)
#undef X
	p->request = request;
	p->input = input;
	p->added.len = 0;
	p->added.max = table_bytes_max < PROFILES_INPUT_MAX ? table_bytes_max : PROFILES_INPUT_MAX;
	p->dictionary_attributes = p->dictionary_strings = 1;
	p->rejected_profiles = p->rejected_samples = p->repaired_strings = 0;
	p->rejection[0] = '\0';
	p->table_bytes_max = table_bytes_max;
	p->over_cap = false;
	return input.len <= PROFILES_INPUT_MAX && make_tables(p) && add_zero_entries(p);
}

static void *copy_table(const void *at, uint32_t count, size_t size)
{
	void *copy = memory_array((size_t)count + 1, size);
	if (count)
		memcpy(copy, at, count * size);
	return copy;
}

void profiles_copy(struct profiles *to, const struct profiles *from)
{
	*to = *from;
	bytes_init(&to->added, from->added.max);
	if (from->added.len)
		bytes_add(&to->added, from->added.at, from->added.len);
#define X(t) \
	to->t.at = copy_table(from->t.at, from->t.count, sizeof *to->t.at); \
	to->t.room = from->t.count + 1;
	EACH_TABLE(X)
#undef X
}

struct profiles_mark profiles_mark(const struct profiles *p)
{
	struct profiles_mark mark = { .repaired_strings = p->repaired_strings,
				      .added = p->added.len,
				      .over_cap = p->over_cap };
	uint32_t *count = mark.count;
#define X(t) *count++ = p->t.count;
	EACH_TABLE(X)
#undef X
	return mark;
}

void profiles_rewind(struct profiles *p, const struct profiles_mark *mark)
{
	const uint32_t *count = mark->count;
#define X(t) p->t.count = *count++;
	EACH_TABLE(X)
#undef X
	p->repaired_strings = mark->repaired_strings;
	p->added.len = mark->added;
	p->over_cap = mark->over_cap;
}

size_t profiles_capacity(const struct profiles *p)
{
	size_t held = p->added.room;
#define X(t) held += (size_t)p->t.room * sizeof *p->t.at;
	EACH_TABLE(X)
#undef X
	return held;
}

void profiles_shrink(struct profiles *p, size_t keep)
{
	if (profiles_capacity(p) > keep) {
		struct audit *audit = p->audit;
		profiles_fini(p);
		p->audit = audit;
	}
}

size_t profiles_used(const struct profiles *p)
{
	size_t used = p->added.len;
#define X(t) used += (size_t)p->t.count * sizeof *p->t.at;
	EACH_TABLE(X)
#undef X
	return used;
}

static size_t texts_referred_to(const struct profiles *p)
{
	const struct string *strings = p->strings.at;
	size_t bytes = 0;
	for (const struct attribute *a = p->attributes.at, *end = a + p->attributes.count; a < end;
	     a++) {
		bytes += strings[a->key].text.len + strings[a->unit].text.len;
		if (a->type == VALUE_STRING)
			bytes += strings[a->string].text.len;
	}
	return bytes;
}

bool profiles_within_cap(const struct profiles *p)
{
	return !p->over_cap && profiles_used(p) <= p->table_bytes_max &&
	       texts_referred_to(p) <= p->table_bytes_max;
}

bool profiles_grow(struct profiles *p, void *at_member, uint32_t count, uint32_t *room,
		   uint32_t more, size_t size)
{
	uint64_t need = (uint64_t)count + more;
	if (need > UINT32_MAX / 2 || profiles_used(p) + more * size > p->table_bytes_max) {
		p->over_cap = true;
		return false;
	}
	uint64_t want = *room ? *room : 16;
	while (want < need)
		want *= 2;
	void *at;
	memcpy(&at, at_member, sizeof at);
	at = memory_resize(at, want * size);
	memcpy(at_member, &at, sizeof at);
	*room = (uint32_t)want;
	return true;
}

double attribute_number(const struct attribute *a)
{
	int64_t bits = attribute_integer(a);
	double number;
	memcpy(&number, &bits, sizeof number);
	return number;
}

void attribute_set_number(struct attribute *a, double value)
{
	int64_t bits;
	memcpy(&bits, &value, sizeof bits);
	attribute_set_integer(a, bits);
}

struct span profiles_bytes_new(struct profiles *p, const void *data, size_t len)
{
	uint32_t at = (uint32_t)p->added.len;
	if (!bytes_add(&p->added, data, len)) {
		p->over_cap = true;
		return (struct span){ 0 };
	}
	return (struct span){ at | SPAN_ADDED, (uint32_t)len };
}

uint32_t profiles_text_new(struct profiles *p, const void *text, size_t len)
{
	if (!len)
		return 0;
	struct span span = profiles_bytes_new(p, text, len);
	if (!span.len || !profiles_room(p, &p->strings, 1))
		return 0;
	p->strings.at[p->strings.count] = (struct string){ .text = span };
	return p->strings.count++;
}

uint32_t profiles_attribute_new(struct profiles *p, struct attribute attribute)
{
	if (!profiles_room(p, &p->attributes, 1))
		return 0;
	p->attributes.at[p->attributes.count] = attribute;
	return p->attributes.count++;
}

struct list profiles_list_copy(struct profiles *p, struct list list, uint32_t more)
{
	if (!profiles_room(p, &p->indices, list.count + more))
		return (struct list){ 0 };
	struct list copy = { p->indices.count, list.count };
	if (list.count + more == 0)
		return copy;
	memcpy(p->indices.at + copy.first, p->indices.at + list.first,
	       list.count * sizeof *p->indices.at);
	memset(p->indices.at + copy.first + list.count, 0, more * sizeof *p->indices.at);
	p->indices.count += list.count + more;
	return copy;
}

void profiles_reject(struct profiles *p, struct profile *profile, const char *text)
{
	if (!p->rejected_profiles)
		snprintf(p->rejection, sizeof p->rejection, "%s", text);
	profile->fault = FAULT_VALUE;
	p->rejected_profiles++;
	p->rejected_samples += profile->samples.count;
}

bool profiles_over_cap(const struct profiles *p, struct error *err)
{
	return error_set(err, ERROR_TOO_LARGE,
			 "the request's tables and the strings that they refer to would need "
			 "more than %zu bytes of memory",
			 p->table_bytes_max);
}
