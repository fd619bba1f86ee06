/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/otlp/encode_references.h"
#include "base/hash.h"
#include "base/memory.h"
#include "profile/wire.h"

/* Field numbers: opentelemetry-proto 1.11. */
enum {
	REQUEST_RESOURCES = 1,
	REQUEST_DICTIONARY = 2,
	DICTIONARY_STRINGS = 5,
	RESOURCE_PROFILES_RESOURCE = 1,
	RESOURCE_PROFILES_SCOPES = 2,
	RESOURCE_ATTRIBUTES = 1,
	SCOPE_PROFILES_SCOPE = 1,
	SCOPE_ATTRIBUTES = 3,
	KEY_VALUE_KEY = 1,
	KEY_VALUE_VALUE = 2,
	KEY_VALUE_STRINDEX = 3,
	VALUE_ARRAY = 5,
	VALUE_KVLIST = 6,
	LIST_VALUES = 1
};

/* The string table: open addressing, at most half full. */
struct table {
	struct place {
		struct view text;
		uint32_t index;
		bool used;
	} * places;
	size_t room, used; /* room: a power of two */
	uint32_t next;     /* index of the next string */
};

struct rewrite {
	struct table strings;
	struct bytes added; /* the new strings, as fields of the dictionary */
	struct bytes *out;
	bool full;
};

/* Writes the fields of a message. */
typedef void write_fields(struct rewrite *r, struct view message);

/* ---- the string table ---- */

static struct place *place_of(const struct table *t, struct view text)
{
	size_t i = (size_t)hash_bytes(text.at, text.len) & (t->room - 1);
	while (t->places[i].used && !view_equal(t->places[i].text, text))
		i = (i + 1) & (t->room - 1);
	return &t->places[i];
}

static void grow(struct table *t)
{
	struct table old = *t;
	t->room = old.room ? old.room * 2 : 64;
	t->places = memory_array(t->room, sizeof *t->places);
	for (size_t i = 0; i < old.room; i++)
		if (old.places[i].used)
			*place_of(t, old.places[i].text) = old.places[i];
	memory_free(old.places);
}

/* The index of the string, which is `index` if it is not in the table yet. */
static uint32_t intern(struct table *t, struct view text, uint32_t index)
{
	if (t->used * 2 >= t->room)
		grow(t);
	struct place *place = place_of(t, text);
	t->used += !place->used;
	if (!place->used)
		*place = (struct place){ text, index, true };
	return place->index;
}

static void read_strings(struct table *t, struct view dictionary)
{
	struct wire w = wire_of(dictionary);
	struct wire_field f;
	while (wire_next(&w, &f))
		if (f.number == DICTIONARY_STRINGS && f.type == WIRE_LEN)
			intern(t, f.view, t->next++);
}

static void read_table(struct table *t, struct view request)
{
	struct wire w = wire_of(request);
	struct wire_field f;
	while (wire_next(&w, &f))
		if (f.number == REQUEST_DICTIONARY && f.type == WIRE_LEN)
			read_strings(t, f.view);
}

/* ---- writing ---- */

static void copy_field(struct rewrite *r, const struct wire_field *f)
{
	bool ok;
	if (f->type == WIRE_LEN)
		ok = wire_add_len(r->out, f->number, f->view);
	else if (f->type == WIRE_FIXED64)
		ok = wire_add_fixed64(r->out, f->number, f->value);
	else
		ok = wire_add_varint(r->out, f->number, f->value);
	r->full |= !ok;
}

/* The length is known when the message has been written, so the message is then moved. */
static void put_message(struct rewrite *r, uint32_t number, struct view message,
			write_fields *fields)
{
	uint8_t head[20];
	size_t start = r->out->len;
	fields(r, message);
	size_t len = r->out->len - start;
	size_t head_len =
		(size_t)(wire_put_varint(wire_put_tag(head, number, WIRE_LEN), len) - head);
	if (r->full || !bytes_reserve(r->out, head_len)) {
		r->full = true;
		return;
	}
	memmove(r->out->at + start + head_len, r->out->at + start, len);
	memcpy(r->out->at + start, head, head_len);
	r->out->len += head_len;
}

/* Copies the fields, except that messages with this number are written by `fields`. */
static void put_fields(struct rewrite *r, struct view message, uint32_t number,
		       write_fields *fields)
{
	struct wire w = wire_of(message);
	struct wire_field f;
	while (!r->full && wire_next(&w, &f))
		if (f.number == number && f.type == WIRE_LEN)
			put_message(r, number, f.view, fields);
		else
			copy_field(r, &f);
}

static void put_key(struct rewrite *r, struct view key)
{
	uint32_t index = intern(&r->strings, key, r->strings.next);
	if (index == r->strings.next) {
		r->strings.next++;
		r->full |= !wire_add_len(&r->added, DICTIONARY_STRINGS, key);
	}
	r->full |= !wire_add_varint(r->out, KEY_VALUE_STRINDEX, index);
}

/* ---- the messages ---- */

static void put_value(struct rewrite *r, struct view value);

static void put_key_value(struct rewrite *r, struct view message)
{
	struct wire w = wire_of(message);
	struct wire_field f;
	struct view key = { 0 };
	while (!r->full && wire_next(&w, &f))
		if (f.number == KEY_VALUE_KEY)
			key = f.view;
		else if (f.number == KEY_VALUE_VALUE)
			put_message(r, f.number, f.view, put_value);
	put_key(r, key);
}

static void put_kvlist(struct rewrite *r, struct view list)
{
	put_fields(r, list, LIST_VALUES, put_key_value);
}

static void put_array(struct rewrite *r, struct view list)
{
	put_fields(r, list, LIST_VALUES, put_value);
}

static void put_value(struct rewrite *r, struct view value)
{
	struct wire w = wire_of(value);
	struct wire_field f;
	while (!r->full && wire_next(&w, &f))
		if (f.number == VALUE_KVLIST)
			put_message(r, f.number, f.view, put_kvlist);
		else if (f.number == VALUE_ARRAY)
			put_message(r, f.number, f.view, put_array);
		else
			copy_field(r, &f);
}

static void put_resource(struct rewrite *r, struct view resource)
{
	put_fields(r, resource, RESOURCE_ATTRIBUTES, put_key_value);
}

static void put_scope(struct rewrite *r, struct view scope)
{
	put_fields(r, scope, SCOPE_ATTRIBUTES, put_key_value);
}

static void put_scope_profiles(struct rewrite *r, struct view message)
{
	put_fields(r, message, SCOPE_PROFILES_SCOPE, put_scope);
}

static void put_resource_profiles(struct rewrite *r, struct view message)
{
	struct wire w = wire_of(message);
	struct wire_field f;
	while (!r->full && wire_next(&w, &f))
		if (f.number == RESOURCE_PROFILES_RESOURCE)
			put_message(r, f.number, f.view, put_resource);
		else if (f.number == RESOURCE_PROFILES_SCOPES)
			put_message(r, f.number, f.view, put_scope_profiles);
		else
			copy_field(r, &f);
}

/* The new strings follow the others: entry 0 is always there. */
static void put_dictionary(struct rewrite *r, struct view dictionary)
{
	struct wire w = wire_of(dictionary);
	struct wire_field f;
	bool pending = true;
	while (!r->full && wire_next(&w, &f)) {
		if (pending && f.number > DICTIONARY_STRINGS) {
			r->full |= !bytes_add(r->out, r->added.at, r->added.len);
			pending = false;
		}
		copy_field(r, &f);
	}
	if (pending)
		r->full |= !bytes_add(r->out, r->added.at, r->added.len);
}

/* The dictionary is behind the resources, whose keys add to it. */
static void put_request(struct rewrite *r, struct view request)
{
	struct wire w = wire_of(request);
	struct wire_field f;
	while (!r->full && wire_next(&w, &f))
		put_message(r, f.number, f.view,
			    f.number == REQUEST_DICTIONARY ? put_dictionary
							   : put_resource_profiles);
}

bool encode_references(const struct packet *packet, struct bytes *out, struct error *err)
{
	struct rewrite r = { .out = out };
	bytes_init(&r.added, out->max);
	read_table(&r.strings, bytes_view(&packet->otlp));
	put_request(&r, bytes_view(&packet->otlp));
	memory_free(r.strings.places);
	bytes_fini(&r.added);
	return !r.full ||
	       error_set(err, ERROR_TOO_LARGE, "the request exceeds %zu bytes", out->max);
}
