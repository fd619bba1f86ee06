/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump_otlp_tool FILE...: prints what our decoder reads from OTLP requests, as one JSON line for
 * each request, with every reference resolved and all strings in hex.
 * tests/profile/otlp/test_decode_oracle.py compares it with the result of an independent protobuf
 * implementation. With --time N FILE, it decodes the file N times (for callgrind).
 */
#include "profile/otlp/decode_otlp.h"
#include "profile/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void put_view(struct view v)
{
	putchar('"');
	for (size_t i = 0; i < v.len; i++)
		printf("%02x", v.at[i]);
	putchar('"');
}

static void put_string(const struct profiles *p, uint32_t string)
{
	put_view(string_view(p, string));
}

static void put_attribute(const struct profiles *p, uint32_t i);

static void put_children(const struct profiles *p, struct list children)
{
	putchar('[');
	for (uint32_t i = 0; i < children.count; i++) {
		printf("%s", i ? "," : "");
		put_attribute(p, children.first + i);
	}
	putchar(']');
}

static void put_attribute(const struct profiles *p, uint32_t i)
{
	const struct attribute *a = &p->attributes.at[i];
	printf("[");
	put_string(p, a->key);
	printf(",");
	put_string(p, a->unit);
	printf(",%d,", a->type);
	if (a->type == VALUE_STRING)
		put_string(p, a->string);
	else if (a->type == VALUE_BOOL)
		printf("%u", a->boolean);
	else if (a->type == VALUE_INT || a->type == VALUE_DOUBLE)
		printf("%" PRId64, attribute_integer(a)); /* the bits of a double */
	else if (a->type == VALUE_BYTES)
		put_view(span_view(p, a->bytes));
	else if (a->type != VALUE_EMPTY)
		put_children(p, a->children);
	else
		printf("null");
	printf("]");
}

static void put_attributes(const struct profiles *p, struct list list)
{
	putchar('[');
	for (uint32_t i = 0; i < list.count; i++) {
		printf("%s", i ? "," : "");
		put_attribute(p, p->indices.at[list.first + i]);
	}
	putchar(']');
}

static void put_strings(const struct profiles *p, struct list list)
{
	putchar('[');
	for (uint32_t i = 0; i < list.count; i++) {
		printf("%s", i ? "," : "");
		put_string(p, p->indices.at[list.first + i]);
	}
	putchar(']');
}

static void put_function(const struct profiles *p, uint32_t i)
{
	const struct function *f = &p->functions.at[i];
	putchar('[');
	put_string(p, f->name);
	putchar(',');
	put_string(p, f->system_name);
	putchar(',');
	put_string(p, f->filename);
	printf(",%" PRId64 "]", f->start_line);
}

static void put_mapping(const struct profiles *p, uint32_t i)
{
	const struct mapping *m = &p->mappings.at[i];
	printf("[%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", m->start, m->limit, m->offset);
	put_string(p, m->filename);
	putchar(',');
	put_attributes(p, m->attributes);
	putchar(']');
}

static void put_location(const struct profiles *p, uint32_t i)
{
	const struct location *l = &p->locations.at[i];
	putchar('[');
	put_mapping(p, l->mapping);
	printf(",%" PRIu64 ",[", l->address);
	for (uint32_t n = 0; n < l->lines.count; n++) {
		const struct line *line = &p->lines.at[l->lines.first + n];
		printf("%s[", n ? "," : "");
		put_function(p, line->function);
		printf(",%" PRId64 ",%" PRId64 "]", line->line, line->column);
	}
	printf("],");
	put_attributes(p, l->attributes);
	putchar(']');
}

static void put_stack(const struct profiles *p, uint32_t i)
{
	struct list list = p->stacks.at[i].locations;
	putchar('[');
	for (uint32_t n = 0; n < list.count; n++) {
		printf("%s", n ? "," : "");
		put_location(p, p->indices.at[list.first + n]);
	}
	putchar(']');
}

static void put_numbers(struct view v, bool fixed)
{
	struct wire w = wire_of(v);
	putchar('[');
	for (const char *comma = ""; wire_more(&w); comma = ",")
		printf("%s%" PRId64, comma, (int64_t)(fixed ? wire_fixed64(&w) : wire_varint(&w)));
	putchar(']');
}

static void put_sample(const struct profiles *p, const struct sample *s)
{
	const struct link *link = &p->links.at[s->link];
	putchar('[');
	put_stack(p, s->stack);
	putchar(',');
	put_attributes(p, s->attributes);
	putchar(',');
	put_view((struct view){ link->trace_id, sizeof link->trace_id });
	putchar(',');
	put_view((struct view){ link->span_id, sizeof link->span_id });
	putchar(',');
	put_numbers(span_view(p, s->values), false);
	putchar(',');
	put_numbers(span_view(p, s->timestamps), true);
	putchar(']');
}

static void put_kind(const struct profiles *p, bool has, struct value_kind kind)
{
	printf("[%d,", has);
	put_string(p, kind.type);
	putchar(',');
	put_string(p, kind.unit);
	printf("],");
}

static void put_profile(const struct profiles *p, const struct profile *f)
{
	printf("[%d,", f->fault);
	put_kind(p, f->has_sample_type, f->sample_type);
	put_kind(p, f->has_period_type, f->period_type);
	printf("%" PRIu64 ",%" PRIu64 ",%" PRId64 ",%u,", f->time, f->duration, f->period,
	       f->dropped_attributes);
	put_view(span_view(p, f->profile_id));
	putchar(',');
	put_attributes(p, f->attributes);
	printf(",[");
	for (uint32_t i = 0; i < f->samples.count; i++) {
		printf("%s", i ? "," : "");
		put_sample(p, &p->samples.at[f->samples.first + i]);
	}
	printf("]]");
}

static void put_scope(const struct profiles *p, const struct scope *s)
{
	putchar('[');
	put_string(p, s->name);
	putchar(',');
	put_string(p, s->version);
	putchar(',');
	put_string(p, s->schema_url);
	printf(",%u,", s->dropped_attributes);
	put_attributes(p, s->attributes);
	printf(",[");
	for (uint32_t i = 0; i < s->profiles.count; i++) {
		printf("%s", i ? "," : "");
		put_profile(p, &p->profiles.at[s->profiles.first + i]);
	}
	printf("]]");
}

static void put_entity(const struct profiles *p, const struct entity *e)
{
	putchar('[');
	put_string(p, e->schema_url);
	putchar(',');
	put_string(p, e->type);
	putchar(',');
	put_strings(p, e->id_keys);
	putchar(',');
	put_strings(p, e->description_keys);
	putchar(']');
}

static void put_resource(const struct profiles *p, const struct resource *r)
{
	putchar('[');
	put_string(p, r->schema_url);
	printf(",%u,", r->dropped_attributes);
	put_attributes(p, r->attributes);
	printf(",[");
	for (uint32_t i = 0; i < r->entities.count; i++) {
		printf("%s", i ? "," : "");
		put_entity(p, &p->entities.at[r->entities.first + i]);
	}
	printf("],[");
	for (uint32_t i = 0; i < r->scopes.count; i++) {
		printf("%s", i ? "," : "");
		put_scope(p, &p->scopes.at[r->scopes.first + i]);
	}
	printf("]]");
}

static bool read_file(const char *name, struct bytes *out)
{
	FILE *file = fopen(name, "rb");
	bytes_init(out, PROFILES_INPUT_MAX);
	if (!file || !bytes_reserve(out, 1))
		return false;
	for (size_t got = 1; got > 0; out->len += got) {
		if (!bytes_reserve(out, 1 << 16))
			return false;
		got = fread(out->at + out->len, 1, 1 << 16, file);
	}
	fclose(file);
	return true;
}

static void dump(struct profiles *p, const char *name)
{
	struct error error = { 0 };
	struct bytes input;
	if (!read_file(name, &input) || !profiles_reset(p, NULL, bytes_view(&input), 1 << 30)) {
		fprintf(stderr, "cannot read %s\n", name);
		exit(1);
	}
	if (!decode_otlp(p, &error)) {
		printf("{\"error\":\"%s\"}\n", error.text);
	} else {
		printf("{\"rejected\":%u,\"rejection\":\"%s\",\"resources\":[",
		       p->rejected_profiles, p->rejection);
		for (uint32_t i = 0; i < p->resources.count; i++) {
			printf("%s", i ? "," : "");
			put_resource(p, &p->resources.at[i]);
		}
		printf("]}\n");
	}
	bytes_fini(&input);
}

static int repeat(struct profiles *p, int times, const char *name)
{
	struct error error = { 0 };
	struct bytes input;
	if (!read_file(name, &input))
		return 1;
	for (int i = 0; i < times; i++)
		if (!profiles_reset(p, NULL, bytes_view(&input), 1 << 30) ||
		    !decode_otlp(p, &error))
			return 1;
	printf("%zu bytes, tables of %zu bytes\n", input.len, profiles_used(p));
	bytes_fini(&input);
	return 0;
}

int main(int argc, char **argv)
{
	struct profiles p = { 0 };
	int status = 0;
	if (argc == 4 && strcmp(argv[1], "--time") == 0)
		status = repeat(&p, (int)strtol(argv[2], NULL, 10), argv[3]);
	else
		for (int i = 1; i < argc; i++)
			dump(&p, argv[i]);
	profiles_fini(&p);
	return status;
}
