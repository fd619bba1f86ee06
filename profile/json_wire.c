/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/json_wire.h"

#include <math.h>
#include <stdio.h>

#include "base/base64.h"
#include "base/json.h"
#include "profile/json_number.h"
#include "profile/wire.h"

/* A message takes at most two levels of JSON, its object and the array around it; the rest of
 * JSON_DEPTH_MAX is for values of unknown fields. */
enum { NAME_MAX_LEN = 64, GUESSES = 64 };

/* A message that is open: an object of the document. */
struct frame {
	const struct json_wire_message *message;
	const struct json_wire_field *field; /* of the last key; NULL: unknown */
	size_t start;                        /* of its content in the output */
	uint32_t index;                      /* of the element of the list */
	bool in_list;
};

struct translator {
	struct json json;
	struct bytes *out;
	uint32_t mark;
	uint32_t depth; /* open frames */
	uint8_t next[GUESSES];
	struct frame frames[JSON_WIRE_DEPTH];
};

static struct frame *top(struct translator *t)
{
	return &t->frames[t->depth - 1];
}

/* Where the translator is: "profiles[2].period". The names are those of the tables. */
static void describe(const struct translator *t, char *path, size_t size)
{
	size_t len = 0;
	for (uint32_t i = 0; i < t->depth && len < size; i++) {
		const struct frame *f = &t->frames[i];
		if (!f->field)
			break;
		len += (size_t)snprintf(path + len, size - len, "%s%s", i ? "." : "",
					f->field->name);
		if (f->in_list && len < size)
			len += (size_t)snprintf(path + len, size - len, "[%u]", f->index);
	}
	if (len >= size)
		memcpy(path + size - 4, "...", 4);
}

static bool refuse(const struct translator *t, const char *what)
{
	char path[280] = "the JSON";
	describe(t, path, sizeof path);
	return error_set(t->json.err, ERROR_INVALID, "%s: %s", path, what);
}

/* ---- output */

/* A length whose content has been written behind the one byte that was left for it. */
static bool close_long_length(struct bytes *out, size_t start, size_t len)
{
	size_t more = wire_varint_len(len) - 1;
	if (!bytes_reserve(out, more))
		return false;
	memmove(out->at + start + more, out->at + start, len);
	out->len += more;
	wire_put_varint(out->at + start - 1, len);
	return true;
}

JSON_HOT bool close_length(struct bytes *out, size_t start)
{
	size_t len = out->len - start;
	if (len > 0x7f)
		return close_long_length(out, start, len);
	out->at[start - 1] = (uint8_t)len;
	return true;
}

/* Tag and one byte for the length; *start is where the content begins. */
JSON_HOT bool open_length(struct bytes *out, uint32_t number, size_t *start)
{
	if (!bytes_reserve(out, 8))
		return false;
	uint8_t *at = wire_put_tag(out->at + out->len, number, WIRE_LEN);
	*start = out->len = (size_t)(at + 1 - out->at);
	return true;
}

/* Elements of packed lists have no tag. */
static bool put_varint(struct translator *t, const struct json_wire_field *field, uint64_t value)
{
	struct bytes *out = t->out;
	if (!bytes_reserve(out, 20))
		return false;
	uint8_t *at = out->at + out->len;
	if (!field->repeated)
		at = wire_put_tag(at, field->number, WIRE_VARINT);
	out->len = (size_t)(wire_put_varint(at, value) - out->at);
	return true;
}

static bool put_fixed64(struct translator *t, const struct json_wire_field *field, uint64_t value)
{
	struct bytes *out = t->out;
	if (!bytes_reserve(out, 20))
		return false;
	uint8_t *at = out->at + out->len;
	if (!field->repeated)
		at = wire_put_tag(at, field->number, WIRE_FIXED64);
	out->len = (size_t)(wire_put_fixed64(at, value) - out->at);
	return true;
}

/* ---- values */

static const struct json_number_range ranges[] = {
	[JSON_WIRE_INT32] = { (uint64_t)INT32_MAX + 1, INT32_MAX },
	[JSON_WIRE_ENUM] = { (uint64_t)INT32_MAX + 1, INT32_MAX },
	[JSON_WIRE_INT64] = { (uint64_t)INT64_MAX + 1, INT64_MAX },
	[JSON_WIRE_UINT32] = { 0, UINT32_MAX },
	[JSON_WIRE_UINT64] = { 0, UINT64_MAX },
	[JSON_WIRE_FIXED64] = { 0, UINT64_MAX },
};

static bool put_digits(struct translator *t, const struct json_wire_field *field, uint64_t value)
{
	if (value > ranges[field->kind].above)
		return refuse(t, "is out of range");
	return field->kind == JSON_WIRE_FIXED64 ? put_fixed64(t, field, value)
						: put_varint(t, field, value);
}

static bool put_integer(struct translator *t, const struct json_wire_field *field, struct view text)
{
	uint64_t value;
	const char *fault = json_number_integer(text, &ranges[field->kind], &value);
	if (fault)
		return refuse(t, fault);
	return field->kind == JSON_WIRE_FIXED64 ? put_fixed64(t, field, value)
						: put_varint(t, field, value);
}

static bool put_double(struct translator *t, const struct json_wire_field *field, bool quoted,
		       struct view text)
{
	double value;
	uint64_t bits;
	if (quoted && view_is(text, "NaN"))
		value = NAN;
	else if (quoted && view_is(text, "Infinity"))
		value = INFINITY;
	else if (quoted && view_is(text, "-Infinity"))
		value = -INFINITY;
	else {
		const char *fault = json_number_double(text, &value);
		if (fault)
			return refuse(t, fault);
	}
	memcpy(&bits, &value, sizeof bits);
	return put_fixed64(t, field, bits);
}

static bool put_name(struct translator *t, const struct json_wire_field *field, struct view text)
{
	for (const struct json_wire_enum *e = field->names; e->name; e++)
		if (view_is(text, e->name))
			return put_varint(t, field, (uint64_t)(int64_t)e->number);
	return refuse(t, "is not a known name");
}

static int nibble(uint8_t c)
{
	return c >= '0' && c <= '9'                     ? c - '0'
	       : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
							: -1;
}

static bool put_hex(struct translator *t, uint32_t number, struct view text)
{
	struct bytes *out = t->out;
	size_t start;
	if (text.len % 2)
		return refuse(t, "is not hexadecimal");
	if (!open_length(out, number, &start) || !bytes_reserve(out, text.len / 2))
		return false;
	for (size_t i = 0; i < text.len; i += 2) {
		int high = nibble(text.at[i]), low = nibble(text.at[i + 1]);
		if (high < 0 || low < 0)
			return refuse(t, "is not hexadecimal");
		out->at[out->len++] = (uint8_t)(high << 4 | low);
	}
	return close_length(out, start);
}

static bool put_base64(struct translator *t, uint32_t number, struct view text)
{
	struct bytes *out = t->out;
	size_t start;
	if (!open_length(out, number, &start) || !bytes_reserve(out, text.len / 4 * 3 + 3))
		return false;
	return base64_decode(out, text) ? close_length(out, start) : refuse(t, "is not base64");
}

static bool put_string(struct translator *t, const struct json_wire_field *field, struct view text)
{
	switch (field->kind) {
	case JSON_WIRE_STRING:
		return wire_add_len(t->out, field->number, text);
	case JSON_WIRE_BASE64:
		return put_base64(t, field->number, text);
	case JSON_WIRE_HEX:
		return put_hex(t, field->number, text);
	case JSON_WIRE_DOUBLE:
		return put_double(t, field, true, text);
	case JSON_WIRE_ENUM:
		return put_name(t, field, text);
	case JSON_WIRE_BOOL:
		return refuse(t, "is not true or false");
	case JSON_WIRE_MESSAGE:
		return refuse(t, "is not an object");
	default:
		return put_integer(t, field, text);
	}
}

static const char *what_is_missing(const struct json_wire_field *field)
{
	switch (field->kind) {
	case JSON_WIRE_STRING:
	case JSON_WIRE_BASE64:
	case JSON_WIRE_HEX:
		return "is not a string";
	case JSON_WIRE_BOOL:
		return "is not true or false";
	case JSON_WIRE_MESSAGE:
		return "is not an object";
	default:
		return "is not a number";
	}
}

static bool put_number(struct translator *t, const struct json_wire_field *field, struct view text)
{
	switch (field->kind) {
	case JSON_WIRE_STRING:
	case JSON_WIRE_BASE64:
	case JSON_WIRE_HEX:
	case JSON_WIRE_BOOL:
	case JSON_WIRE_MESSAGE:
		return refuse(t, what_is_missing(field));
	case JSON_WIRE_DOUBLE:
		return put_double(t, field, false, text);
	default:
		return put_integer(t, field, text);
	}
}

static bool put_boolean(struct translator *t, const struct json_wire_field *field, bool value)
{
	return field->kind == JSON_WIRE_BOOL ? put_varint(t, field, value)
					     : refuse(t, what_is_missing(field));
}

/* ---- names */

static const struct json_wire_field *find(const struct json_wire_message *m, struct view name)
{
	for (uint32_t i = 0; i < m->count; i++)
		if (m->fields[i].len == name.len && json_same(m->fields[i].name, name.at, name.len))
			return &m->fields[i];
	return NULL;
}

/* The lowerCamelCase of a name in snake_case: 0 if it is none, or longer than any that we know. */
static size_t camel(struct view name, uint8_t *camel)
{
	size_t len = 0;
	bool upper = false, snake = false;
	if (name.len > NAME_MAX_LEN)
		return 0;
	for (size_t i = 0; i < name.len; i++) {
		uint8_t c = name.at[i];
		if (c >= 'A' && c <= 'Z')
			return 0;
		snake |= c == '_';
		if (c != '_')
			camel[len++] = upper && c >= 'a' && c <= 'z' ? (uint8_t)(c - 32) : c;
		upper = c == '_';
	}
	return snake ? len : 0;
}

/* A name with escapes may be longer as it is written. */
static const struct json_wire_field *find_other(const struct json_wire_message *m, struct view name,
						bool escaped)
{
	uint8_t plain[6 * NAME_MAX_LEN], other[NAME_MAX_LEN];
	if (name.len > sizeof plain)
		return NULL;
	if (escaped) {
		name = (struct view){ plain, json_unescape(name, plain) };
		const struct json_wire_field *field = find(m, name);
		if (field)
			return field;
	}
	size_t len = camel(name, other);
	return len ? find(m, (struct view){ other, len }) : NULL;
}

/* The number of the field that followed the last time: messages of a kind have the same fields in
 * the same order. Two may share a place; then the guess is wrong, and no more. */
static uint8_t *guess_after(struct translator *t, const struct frame *f)
{
	uintptr_t place = f->field ? (uintptr_t)f->field : (uintptr_t)f->message;
	return &t->next[place / 8 % GUESSES];
}

/* The next member's field, NULL if it is unknown. False: there is none, or a fault. */
static bool take_name(struct translator *t, struct frame *f)
{
	const struct json_wire_message *m = f->message;
	uint8_t *guess = guess_after(t, f);
	const struct json_wire_field *field = &m->fields[*guess < m->count ? *guess : 0];
	struct view name;
	if (json_key_is(&t->json, field->name, field->len)) {
		f->field = field;
		return true;
	}
	if (!json_key(&t->json, &name))
		return false;
	f->field = t->json.escaped ? NULL : find(m, name);
	if (!f->field)
		f->field = find_other(m, name, t->json.escaped);
	if (f->field)
		*guess = (uint8_t)(f->field - m->fields);
	return true;
}

/* ---- structure */

static bool push(struct translator *t, const struct json_wire_message *message)
{
	if (t->depth == JSON_WIRE_DEPTH)
		return refuse(t, "is nested too deeply");
	struct frame *f = &t->frames[t->depth++];
	f->message = message;
	f->field = NULL;
	f->start = t->out->len;
	f->in_list = false;
	return true;
}

/* An object has been entered. */
static bool begin_message(struct translator *t, const struct json_wire_field *field)
{
	size_t start;
	if (field->kind != JSON_WIRE_MESSAGE)
		return refuse(t, what_is_missing(field));
	return open_length(t->out, field->number, &start) && push(t, field->message);
}

static bool end_message(struct translator *t)
{
	size_t start = top(t)->start;
	t->depth--;
	if (!t->depth)
		return true;
	top(t)->index++;
	return close_length(t->out, start);
}

/* ---- values */

/* Decodes a string where it is in no one's way: behind what the output may grow by with it. */
static bool decode(struct translator *t, struct view *text)
{
	struct bytes *out = t->out;
	size_t behind = text->len + 32;
	if (!bytes_reserve(out, behind + text->len + 1))
		return false;
	uint8_t *at = out->at + out->len + behind;
	*text = (struct view){ at, json_unescape(*text, at) };
	at[text->len] = 0; /* of a number, json_number_double reads on to what is none */
	return true;
}

static bool put_text(struct translator *t, const struct json_wire_field *field, struct view text)
{
	return (!t->json.escaped || decode(t, &text)) && put_string(t, field, text);
}

/* Of a field that is no list, or an element. */
static bool take_other(struct translator *t, const struct json_wire_field *field)
{
	struct view text;
	enum json_token token = json_value(&t->json, &text);
	switch (token) {
	case JSON_FAULT:
		return false;
	case JSON_NULL:
		return !top(t)->in_list || refuse(t, "is null");
	case JSON_FALSE:
	case JSON_TRUE:
		return put_boolean(t, field, token == JSON_TRUE);
	case JSON_NUMBER:
		return put_number(t, field, text);
	case JSON_STRING:
		return put_text(t, field, text);
	case JSON_OBJECT:
		return begin_message(t, field);
	default:
		t->mark = field->list;
		return !t->mark && refuse(t, what_is_missing(field));
	}
}

static bool is_integer(const struct json_wire_field *field)
{
	return field->kind >= JSON_WIRE_INT32 && field->kind <= JSON_WIRE_FIXED64;
}

static bool take_value(struct translator *t, const struct json_wire_field *field)
{
	uint64_t value;
	return is_integer(field) && json_digits(&t->json, &value) ? put_digits(t, field, value)
								  : take_other(t, field);
}

/* ---- lists */

static bool is_packed(const struct json_wire_field *field)
{
	return field->kind >= JSON_WIRE_BOOL && field->kind <= JSON_WIRE_ENUM;
}

/* At most four bytes. Whether one or two is not predictable, so it is no branch. */
static uint8_t *put_small_varint(uint8_t *at, uint32_t value)
{
	uint32_t second = value >= 0x80;
	if (__builtin_expect(value >= 0x4000, 0))
		return wire_put_varint(at, value);
	at[0] = (uint8_t)(value | second << 7);
	at[1] = (uint8_t)(value >> 7);
	return at + 1 + second;
}

/* Most elements are small: up to seven digits are in the range of each kind. */
static bool put_small(struct translator *t, const struct json_wire_field *field)
{
	uint32_t values[32];
	size_t count;
	while ((count = json_small_numbers(&t->json, values, 32))) {
		if (!bytes_reserve(t->out, 8 * count))
			return false;
		uint8_t *at = t->out->at + t->out->len;
		if (field->kind == JSON_WIRE_FIXED64)
			for (size_t i = 0; i < count; i++)
				at = wire_put_fixed64(at, values[i]);
		else
			for (size_t i = 0; i < count; i++)
				at = put_small_varint(at, values[i]);
		t->out->len = (size_t)(at - t->out->at);
		top(t)->index += (uint32_t)count;
	}
	return true;
}

/* All of it: its elements open nothing. */
static bool take_packed(struct translator *t, const struct json_wire_field *field)
{
	struct frame *f = top(t);
	size_t start;
	bool small = is_integer(field) && *t->json.at != '"';
	if (!open_length(t->out, field->number, &start) || (small && !put_small(t, field)))
		return false;
	for (; json_element(&t->json); f->index++)
		if (!take_value(t, field))
			return false;
	f->in_list = false;
	if (t->json.fault)
		return false;
	if (f->index)
		return close_length(t->out, start);
	t->out->len = start - wire_len_len(field->number, 0);
	return true;
}

static bool take_list(struct translator *t, const struct json_wire_field *field)
{
	struct frame *f = top(t);
	struct view text;
	if (json_peek(&t->json) != JSON_ARRAY) {
		enum json_token token = json_value(&t->json, &text);
		return token == JSON_NULL || (token && refuse(t, "is not an array"));
	}
	f->in_list = true;
	f->index = 0;
	return json_enter(&t->json) && (!is_packed(field) || take_packed(t, field));
}

static bool take_element(struct translator *t, struct frame *f)
{
	if (json_element(&t->json)) {
		if (f->field->kind == JSON_WIRE_MESSAGE && json_peek(&t->json) == JSON_OBJECT)
			return json_enter(&t->json) && begin_message(t, f->field);
		bool ok = take_value(t, f->field);
		f->index += ok;
		return ok;
	}
	f->in_list = false;
	return !t->json.fault;
}

/* ---- members */

static bool take_field(struct translator *t, const struct json_wire_field *field)
{
	if (field->kind == JSON_WIRE_MARK) {
		t->mark = field->number;
		return false;
	}
	return field->repeated ? take_list(t, field) : take_value(t, field);
}

static bool take_member(struct translator *t, struct frame *f)
{
	if (!take_name(t, f))
		return !t->json.fault && end_message(t);
	return f->field ? take_field(t, f->field) : json_skip(&t->json);
}

static bool take_document(struct translator *t, const struct json_wire_message *message)
{
	if (json_peek(&t->json) != JSON_OBJECT)
		return refuse(t, "is not an object");
	bool ok = json_enter(&t->json) && push(t, message);
	while (ok && t->depth) {
		struct frame *f = top(t);
		ok = f->in_list ? take_element(t, f) : take_member(t, f);
	}
	return ok;
}

bool json_wire_translate(const struct json_wire_message *message, struct view document,
			 struct bytes *out, uint32_t *mark, struct error *err)
{
	struct translator t;
	t.out = out;
	t.mark = t.depth = 0;
	memset(t.next, 0, sizeof t.next);
	/* An empty message has an address too. */
	bool ok = bytes_reserve(out, 1) && json_begin(&t.json, document, JSON_DEPTH_MAX, err) &&
		  take_document(&t, message);
	if (mark)
		*mark = t.mark;
	return ok;
}
