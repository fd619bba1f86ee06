/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/otlp/bridge_private.h"

#include <stdio.h>

void bridge_buffer(const struct bridge *b, struct bytes *buffer)
{
	bytes_init(buffer, b->out->meter ? 0 : b->out->max);
	buffer->meter = b->out->meter;
}

bool bridge_malformed(const struct bridge *b, const char *message, const char *what)
{
	char place[100] = "the request";
	if (b->in_profile)
		snprintf(place, sizeof place,
			 "resource_profiles[%u].scope_profiles[%u].profiles[%u]", b->resource,
			 b->scope, b->profile);
	return error_set(b->err, ERROR_INVALID, "%s: a %s %s", place, message, what);
}

enum { OPEN_LEN = 5 };

bool bridge_open(struct bytes *to, uint32_t number, size_t *start)
{
	if (!bytes_reserve(to, 1 + OPEN_LEN))
		return false;
	to->at[to->len] = (uint8_t)WIRE_TAG(number, WIRE_LEN);
	to->len += 1 + OPEN_LEN;
	*start = to->len;
	return true;
}

void bridge_close(struct bytes *to, size_t start)
{
	size_t len = to->len - start;
	uint8_t *at = to->at + start - OPEN_LEN;
	assert(len <= INT32_MAX);
	for (int i = 0; i < OPEN_LEN - 1; i++, len >>= 7)
		*at++ = (uint8_t)(len | 0x80);
	*at = (uint8_t)(len & 0x7f);
}

bool bridge_string(struct bridge *b, struct view text, uint32_t *index)
{
	*index = b->count[BRIDGE_STRING]++;
	return wire_add_len(&b->table[BRIDGE_STRING], BRIDGE_STRING, text);
}

bool bridge_key(struct bridge *b, enum pprof_key key, uint32_t *index)
{
	if (!b->key[key] && !bridge_string(b, view_of(pprof_keys[key]), &b->key[key]))
		return false;
	*index = b->key[key];
	return true;
}

/* KeyValueAndUnit. */
bool bridge_attribute(struct bridge *b, uint32_t key, struct view value, uint32_t unit,
		      uint32_t *index)
{
	struct bytes *to = &b->table[BRIDGE_ATTRIBUTE];
	size_t start;
	*index = b->count[BRIDGE_ATTRIBUTE]++;
	if (!bridge_open(to, BRIDGE_ATTRIBUTE, &start) || !wire_add_varint(to, 1, key) ||
	    !wire_add_len(to, 2, value) || (unit && !wire_add_varint(to, 3, unit)))
		return false;
	bridge_close(to, start);
	return true;
}

/* AnyValue with string_value_strindex. */
static struct view text_value(uint8_t value[static 11], uint32_t string)
{
	uint8_t *end = wire_put_varint(wire_put_tag(value, 8, WIRE_VARINT), string);
	return (struct view){ value, (size_t)(end - value) };
}

bool bridge_text_attribute(struct bridge *b, enum pprof_key key, uint32_t string, uint32_t *index)
{
	uint8_t value[11];
	uint32_t name;
	return bridge_key(b, key, &name) &&
	       bridge_attribute(b, name, text_value(value, string), 0, index);
}

/* KeyValueAndUnit{key, AnyValue{ArrayValue{AnyValue...}}}. */
bool bridge_texts_attribute(struct bridge *b, enum pprof_key key, struct view strings,
			    uint32_t *index)
{
	struct bytes *to = &b->table[BRIDGE_ATTRIBUTE];
	struct wire w = wire_of(strings);
	size_t entry, value, array;
	uint32_t name;
	*index = b->count[BRIDGE_ATTRIBUTE]++;
	if (!bridge_key(b, key, &name) || !bridge_open(to, BRIDGE_ATTRIBUTE, &entry) ||
	    !wire_add_varint(to, 1, name) || !bridge_open(to, 2, &value) ||
	    !bridge_open(to, 5, &array))
		return false;
	while (wire_more(&w)) {
		uint8_t text[11];
		uint64_t string = wire_varint(&w);
		string = string < BRIDGE_BEYOND ? string : BRIDGE_BEYOND;
		if (!wire_add_len(to, 1, text_value(text, (uint32_t)string)))
			return false;
	}
	bridge_close(to, array);
	bridge_close(to, value);
	bridge_close(to, entry);
	return true;
}

bool bridge_true_attribute(struct bridge *b, enum pprof_key key, uint32_t *index)
{
	static const uint8_t value[] = { WIRE_TAG(2, WIRE_VARINT), 1 };
	uint32_t name;
	if (!b->on[key] &&
	    (!bridge_key(b, key, &name) ||
	     !bridge_attribute(b, name, (struct view){ value, sizeof value }, 0, &b->on[key])))
		return false;
	*index = b->on[key];
	return true;
}

bool bridge_temporality(struct bridge *b, uint64_t temporality, uint32_t *index)
{
	static const char *const names[] = { NULL, "delta", "cumulative" };
	uint8_t value[20];
	*index = 0;
	if (!temporality || temporality >= sizeof names / sizeof *names)
		return true;
	struct view text = view_of(names[temporality]);
	uint8_t *at = wire_put_varint(wire_put_tag(value, 1, WIRE_LEN), text.len);
	memcpy(at, text.at, text.len);
	uint32_t name;
	return bridge_key(b, PPROF_KEY_TEMPORALITY, &name) &&
	       bridge_attribute(b, name, (struct view){ value, text.len + 2 }, 0, index);
}

/* The fields of a ScopeProfiles besides its Profiles: scope and schema_url. */
static bool copy_fields(struct bridge *b, struct view message)
{
	struct wire w = wire_of(message);
	struct wire_field field;
	while (wire_next(&w, &field))
		if ((field.number == 1 || field.number == 3) && field.type == WIRE_LEN &&
		    !wire_add_len(b->out, field.number, field.view))
			return false;
	return true;
}

void bridge_end_scope(struct bridge *b)
{
	if (b->scope_start)
		bridge_close(b->out, b->scope_start);
	b->scope_start = 0;
}

bool bridge_new_scope(struct bridge *b)
{
	bridge_end_scope(b);
	return bridge_open(b->out, 2, &b->scope_start) && copy_fields(b, b->scope_profiles);
}

bool bridge_scope(struct bridge *b)
{
	return b->scope_start || bridge_new_scope(b);
}

/* The next field of a ResourceProfiles or ScopeProfiles: all that are known are LEN. */
static bool next_field(struct wire *w, struct wire_field *field)
{
	if (!wire_next(w, field))
		return false;
	if (field->number <= 3 && field->type != WIRE_LEN)
		wire_fail(w, WIRE_MISMATCH);
	return !w->fault;
}

static bool scope_profiles(struct bridge *b, struct view message,
			   bool (*profile)(struct bridge *b, struct view message))
{
	struct wire w = wire_of(message);
	struct wire_field field;
	b->scope_profiles = message;
	b->profile = 0;
	while (next_field(&w, &field)) {
		if (field.number != 2)
			continue;
		b->in_profile = true;
		if (!profile(b, field.view))
			return false;
		b->in_profile = false;
		b->profile++;
	}
	bridge_end_scope(b);
	return wire_done(&w) ||
	       bridge_malformed(b, "ScopeProfiles message", wire_fault_text(w.fault));
}

static bool resource_profiles(struct bridge *b, struct view message,
			      bool (*profile)(struct bridge *b, struct view message))
{
	struct wire w = wire_of(message);
	struct wire_field field;
	size_t start;
	b->scope = 0;
	if (!bridge_open(b->out, 1, &start) || !copy_fields(b, message))
		return false;
	while (next_field(&w, &field)) {
		if (field.number != 2)
			continue;
		if (!scope_profiles(b, field.view, profile))
			return false;
		b->scope++;
	}
	bridge_close(b->out, start);
	return wire_done(&w) ||
	       bridge_malformed(b, "ResourceProfiles message", wire_fault_text(w.fault));
}

bool bridge_resources(struct bridge *b, struct view request,
		      bool (*profile)(struct bridge *b, struct view message))
{
	struct wire w = wire_of(request);
	while (wire_more(&w)) {
		uint32_t tag = wire_tag(&w);
		if (tag >> 3 != 1)
			wire_skip_run(&w, tag);
		else if (tag != WIRE_TAG(1, WIRE_LEN))
			wire_fail(&w, WIRE_MISMATCH);
		else if (!resource_profiles(b, wire_len(&w), profile))
			return false;
		else
			b->resource++;
	}
	return wire_done(&w) || bridge_malformed(b, "request", wire_fault_text(w.fault));
}

/* The dictionary. Its entries in the current layout, if the request has some, come first. */
static bool write_dictionary(struct bridge *b, struct view request, bool has_current)
{
	struct wire w = wire_of(request);
	struct wire_field field;
	size_t start;
	if (!bridge_open(b->out, 2, &start))
		return false;
	while (has_current && wire_next(&w, &field))
		if (field.number == 2 && field.type == WIRE_LEN &&
		    !bytes_add(b->out, field.view.at, field.view.len))
			return false;
	for (int i = 1; i < BRIDGE_TABLES; i++)
		if (!bytes_add(b->out, b->table[i].at, b->table[i].len))
			return false;
	bridge_close(b->out, start);
	return true;
}

static bool translate(struct bridge *b, enum otlp_generation generation, struct view request)
{
	if (generation == OTLP_1_9)
		return bridge_1_9(b, request);
	if (generation == OTLP_1_8)
		return bridge_1_8(b, request) && write_dictionary(b, request, true);
	return bridge_old(b, generation, request) && write_dictionary(b, request, false);
}

bool bridge_otlp(enum otlp_generation generation, struct view request, struct bytes *out,
		 struct error *err)
{
	struct bridge b = { .out = out, .err = err };
	assert(generation > OTLP_UNKNOWN && generation < OTLP_CURRENT);
	for (int i = 1; i < BRIDGE_TABLES; i++)
		bridge_buffer(&b, &b.table[i]);
	bool ok = translate(&b, generation, request);
	for (int i = 1; i < BRIDGE_TABLES; i++)
		bytes_fini(&b.table[i]);
	return ok;
}
