/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/json_wire.h"

#include <math.h>
#include <stdio.h>

#include "base/base64.h"
#include "base/json.h"
#include "profile/json_number.h"
#include "profile/wire.h"

/* A message takes at most two levels of JSON, its object and the array around it; the rest is for
 * values of unknown fields. */
enum { JSON_DEPTH_MAX = 256, NAME_MAX_LEN = 64 };

/* A message that is open: an object of the document. */
struct frame {
	const struct json_wire_message *message;
	const struct json_wire_field *field; /* of the last key; NULL: unknown */
	size_t start;                        /* of its content in the output */
	size_t list;                         /* of the content of the packed list */
	uint32_t next;                       /* the field that probably comes next */
	uint32_t index;                      /* of the element of the list */
	bool in_list;
};

struct translator {
	struct json_reader reader;
	const struct json_wire_message *root;
	struct bytes *out;
	uint32_t mark;
	uint32_t skip;  /* open objects and arrays of an unknown field */
	uint32_t depth; /* open frames */
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
	return error_set(t->reader.err, ERROR_INVALID, "%s: %s", path, what);
}

/* ---- output */

/* A length whose content has been written behind the one byte that was left for it. */
static bool close_length(struct bytes *out, size_t start)
{
	size_t len = out->len - start, more = wire_varint_len(len) - 1;
	if (__builtin_expect(more != 0, 0)) {
		if (!bytes_reserve(out, more))
			return false;
		memmove(out->at + start + more, out->at + start, len);
		out->len += more;
	}
	wire_put_varint(out->at + start - 1, len);
	return true;
}

/* Tag and one byte for the length; *start is where the content begins. */
static bool open_length(struct bytes *out, uint32_t number, size_t *start)
{
	if (!bytes_reserve(out, 8))
		return false;
	uint8_t *at = wire_put_tag(out->at + out->len, number, WIRE_LEN);
	*at++ = 0;
	*start = out->len = (size_t)(at - out->at);
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

static bool put_integer(struct translator *t, const struct json_wire_field *field, struct view text)
{
	static const struct json_number_range ranges[] = {
		[JSON_WIRE_INT32] = { (uint64_t)INT32_MAX + 1, INT32_MAX },
		[JSON_WIRE_ENUM] = { (uint64_t)INT32_MAX + 1, INT32_MAX },
		[JSON_WIRE_INT64] = { (uint64_t)INT64_MAX + 1, INT64_MAX },
		[JSON_WIRE_UINT32] = { 0, UINT32_MAX },
		[JSON_WIRE_UINT64] = { 0, UINT64_MAX },
		[JSON_WIRE_FIXED64] = { 0, UINT64_MAX },
	};
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

static bool is_named(const struct json_wire_field *field, const uint8_t *at, size_t len)
{
	return field->len == len && memcmp(field->name, at, len) == 0;
}

static const struct json_wire_field *find(struct frame *f, const uint8_t *at, size_t len)
{
	const struct json_wire_message *m = f->message;
	for (uint32_t tried = 0, i = f->next; tried < m->count; tried++, i++) {
		i = i < m->count ? i : 0;
		if (is_named(&m->fields[i], at, len)) {
			f->next = i + 1;
			return &m->fields[i];
		}
	}
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

static bool take_key(struct translator *t, struct view name)
{
	struct frame *f = top(t);
	uint8_t other[NAME_MAX_LEN];
	size_t len;
	f->field = find(f, name.at, name.len);
	if (!f->field && (len = camel(name, other)))
		f->field = find(f, other, len);
	if (!f->field || f->field->kind != JSON_WIRE_MARK)
		return true;
	t->mark = f->field->number;
	return false;
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
	f->next = 0;
	f->in_list = false;
	return true;
}

static bool take_object(struct translator *t)
{
	if (!t->depth)
		return push(t, t->root);
	struct frame *f = top(t);
	const struct json_wire_field *field = f->field;
	size_t start;
	if (!field) {
		t->skip = 1;
		return true;
	}
	if (field->kind != JSON_WIRE_MESSAGE)
		return refuse(t, what_is_missing(field));
	if (field->repeated != f->in_list)
		return refuse(t, "is not an array");
	return open_length(t->out, field->number, &start) && push(t, field->message);
}

static bool take_object_end(struct translator *t)
{
	size_t start = top(t)->start;
	t->depth--;
	if (!t->depth)
		return true;
	top(t)->index++;
	return close_length(t->out, start);
}

static bool is_packed(const struct json_wire_field *field)
{
	return field->kind >= JSON_WIRE_BOOL && field->kind <= JSON_WIRE_ENUM;
}

static bool take_array(struct translator *t)
{
	if (!t->depth)
		return refuse(t, "is not an object");
	struct frame *f = top(t);
	if (!f->field) {
		t->skip = 1;
		return true;
	}
	if (f->field->list) {
		t->mark = f->field->list;
		return false;
	}
	if (!f->field->repeated || f->in_list)
		return refuse(t, what_is_missing(f->field));
	f->in_list = true;
	f->index = 0;
	return !is_packed(f->field) || open_length(t->out, f->field->number, &f->list);
}

static bool take_array_end(struct translator *t)
{
	struct frame *f = top(t);
	f->in_list = false;
	if (!is_packed(f->field))
		return true;
	if (f->index)
		return close_length(t->out, f->list);
	t->out->len = f->list - wire_len_len(f->field->number, 0);
	return true;
}

static bool take_null(struct translator *t)
{
	return !top(t)->in_list || refuse(t, "is null");
}

static bool take_scalar(struct translator *t, enum json_token token, struct view text)
{
	struct frame *f = top(t);
	const struct json_wire_field *field = f->field;
	bool ok;
	if (!field)
		return true;
	if (field->repeated != f->in_list)
		return refuse(t, "is not an array");
	if (token == JSON_STRING)
		ok = put_string(t, field, text);
	else if (token == JSON_NUMBER)
		ok = put_number(t, field, text);
	else
		ok = put_boolean(t, field, token == JSON_TRUE);
	f->index++;
	return ok;
}

/* Inside the value of an unknown field. */
static bool skip(struct translator *t, enum json_token token)
{
	if (token == JSON_OBJECT || token == JSON_ARRAY)
		t->skip++;
	else if (token == JSON_OBJECT_END || token == JSON_ARRAY_END)
		t->skip--;
	return true;
}

static bool take(struct json_reader *reader, enum json_token token, struct view text)
{
	struct translator *t = (struct translator *)reader;
	if (t->skip)
		return skip(t, token);
	switch (token) {
	case JSON_KEY:
		return take_key(t, text);
	case JSON_OBJECT:
		return take_object(t);
	case JSON_OBJECT_END:
		return take_object_end(t);
	case JSON_ARRAY:
		return take_array(t);
	case JSON_ARRAY_END:
		return take_array_end(t);
	case JSON_NULL:
		return take_null(t);
	default:
		return take_scalar(t, token, text);
	}
}

static bool read_document(struct translator *t, struct view document, struct error *err)
{
	struct bytes_share share;
	if (!bytes_share(&share, t->out, json_memory(document)))
		return false;
	bool ok = json_read(&t->reader, document, err);
	bytes_unshare(&share, t->out);
	return ok;
}

bool json_wire_translate(const struct json_wire_message *message, struct view document,
			 struct bytes *out, uint32_t *mark, struct error *err)
{
	struct translator t;
	t.reader = (struct json_reader){ .take = take, .depth_max = JSON_DEPTH_MAX };
	t.root = message;
	t.out = out;
	t.mark = t.skip = t.depth = 0;
	/* An empty message has an address too. */
	bool ok = bytes_reserve(out, 1) && read_document(&t, document, err);
	if (mark)
		*mark = t.mark;
	return ok;
}
