/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/open.h"
#include "profile/wire.h"

#include <assert.h>
#include <stdarg.h>

#define OPEN_TABLES_MAX ((size_t)64 << 20)

void open_begin(struct profiles *p, struct request *request)
{
	static const uint8_t nothing[BYTES_SLACK];
	bool ok = profiles_reset(p, request, (struct view){ nothing, 0 }, OPEN_TABLES_MAX);
	assert(ok);
	(void)ok;
}

#define PUSH(p, table, ...) \
	(assert(profiles_room((p), &(p)->table, 1)), \
	 (p)->table.at[(p)->table.count] = (__typeof__(*(p)->table.at)){ __VA_ARGS__ }, \
	 (p)->table.count++)

uint32_t open_text(struct profiles *p, const char *text)
{
	return profiles_text_new(p, text, strlen(text));
}

uint32_t open_attribute(struct profiles *p, const char *key, const char *value)
{
	return profiles_attribute_new(p, (struct attribute){ .key = open_text(p, key),
							     .type = VALUE_STRING,
							     .string = open_text(p, value) });
}

uint32_t open_integer(struct profiles *p, const char *key, int64_t value, const char *unit)
{
	struct attribute a = { .key = open_text(p, key),
			       .type = VALUE_INT,
			       .unit = open_text(p, unit) };
	attribute_set_integer(&a, value);
	return profiles_attribute_new(p, a);
}

uint32_t open_function(struct profiles *p, const char *name)
{
	uint32_t text = open_text(p, name);
	return PUSH(p, functions, .name = text);
}

uint32_t open_mapping(struct profiles *p, const char *filename, struct list attributes)
{
	uint32_t text = open_text(p, filename);
	return PUSH(p, mappings, .filename = text, .attributes = attributes);
}

uint32_t open_location(struct profiles *p, uint32_t mapping, uint64_t address, uint32_t function,
		       struct list attributes)
{
	struct list lines = { p->lines.count, 0 };
	if (function) {
		PUSH(p, lines, .function = function);
		lines.count = 1;
	}
	return PUSH(p, locations, .mapping = mapping, .address = address, .lines = lines,
		    .attributes = attributes);
}

uint32_t open_stack(struct profiles *p, struct list locations)
{
	return PUSH(p, stacks, .locations = locations);
}

uint32_t open_link(struct profiles *p, uint8_t trace, uint8_t span)
{
	struct link link = { 0 };
	memset(link.trace_id, trace, sizeof link.trace_id);
	memset(link.span_id, span, sizeof link.span_id);
	uint32_t index = PUSH(p, links, .fault = 0);
	p->links.at[index] = link;
	return index;
}

struct list open_list(struct profiles *p, ...)
{
	struct list list = { p->indices.count, 0 };
	va_list args;
	va_start(args, p);
	for (uint32_t i; (i = va_arg(args, uint32_t)) != OPEN_END; list.count++) {
		assert(profiles_room(p, &p->indices, 1));
		p->indices.at[p->indices.count++] = i;
	}
	va_end(args);
	return list;
}

struct resource *open_resource(struct profiles *p, struct list attributes)
{
	uint32_t index =
		PUSH(p, resources, .attributes = attributes, .scopes = { p->scopes.count, 0 });
	return &p->resources.at[index];
}

struct scope *open_scope(struct profiles *p, const char *name)
{
	uint32_t text = open_text(p, name);
	uint32_t index = PUSH(p, scopes, .name = text, .profiles = { p->profiles.count, 0 });
	p->resources.at[p->resources.count - 1].scopes.count++;
	return &p->scopes.at[index];
}

struct profile *open_profile(struct profiles *p, const char *type, const char *unit)
{
	struct value_kind kind = { open_text(p, type), open_text(p, unit) };
	uint32_t index = PUSH(p, profiles, .sample_type = kind, .has_sample_type = 1,
			      .samples = { p->samples.count, 0 });
	p->scopes.at[p->scopes.count - 1].profiles.count++;
	return &p->profiles.at[index];
}

struct sample *open_sample(struct profiles *p, uint32_t stack, struct list attributes,
			   uint32_t link, const int64_t *values, const int64_t *times)
{
	uint8_t room[512];
	uint8_t *end = room;
	for (; values && *values != -1; values++)
		end = wire_put_varint(end, (uint64_t)*values);
	struct span value_span = profiles_bytes_new(p, room, (size_t)(end - room));
	for (end = room; times && *times != -1; times++)
		end = wire_put_fixed64(end, (uint64_t)*times);
	struct span time_span = profiles_bytes_new(p, room, (size_t)(end - room));
	uint32_t index = PUSH(p, samples, .stack = stack, .link = link, .attributes = attributes,
			      .values = value_span, .timestamps = time_span);
	p->profiles.at[p->profiles.count - 1].samples.count++;
	return &p->samples.at[index];
}

struct sample *open_value(struct profiles *p, uint32_t stack, struct list attributes, int64_t value)
{
	return open_sample(p, stack, attributes, 0, (int64_t[]){ value, -1 }, NULL);
}

uint32_t open_frame(struct profiles *p, const char *function)
{
	uint32_t location = open_location(p, 0, 0, open_function(p, function), (struct list){ 0 });
	return open_stack(p, open_list(p, location, OPEN_END));
}
