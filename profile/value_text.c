/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/value_text.h"
#include "base/base64.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The decimal digits of a finite number, without zeros at the end, as d.ddd * 10^exponent. */
struct decimal {
	char digits[20];
	int count, exponent;
};

/* Any number of 15 digits survives the way through a normal double; subnormal ones have fewer. */
static void shortest(double size, struct decimal *d)
{
	char text[VALUE_TEXT_ROOM];
	int precision = fpclassify(size) == FP_SUBNORMAL ? 0 : 14;
	do
		snprintf(text, sizeof text, "%.*e", precision, size);
	while (strtod(text, NULL) != size && ++precision < 17);
	d->digits[0] = text[0];
	if (precision)
		memcpy(d->digits + 1, text + 2, (size_t)precision);
	d->count = precision + 1;
	while (d->count > 1 && d->digits[d->count - 1] == '0')
		d->count--;
	d->exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10);
}

static char *put_chars(char *at, char c, int count)
{
	for (; count > 0; count--)
		*at++ = c;
	return at;
}

static char *put_digits(char *at, const char *digits, int count)
{
	memcpy(at, digits, (size_t)count);
	return at + count;
}

static char *put_plain(char *at, const struct decimal *d)
{
	int whole = d->exponent + 1; /* digits before the point */
	if (whole <= 0) {
		at = put_chars(put_digits(at, "0.", 2), '0', -whole);
		return put_digits(at, d->digits, d->count);
	}
	if (d->count <= whole)
		return put_chars(put_digits(at, d->digits, d->count), '0', whole - d->count);
	*(at = put_digits(at, d->digits, whole)) = '.';
	return put_digits(at + 1, d->digits + whole, d->count - whole);
}

static char *put_scientific(char *at, const char *end, const struct decimal *d)
{
	*at++ = d->digits[0];
	if (d->count > 1) {
		*at++ = '.';
		at = put_digits(at, d->digits + 1, d->count - 1);
	}
	return at + snprintf(at, (size_t)(end - at), "e%+d", d->exponent);
}

struct view value_text_double(double number, char room[VALUE_TEXT_ROOM])
{
	struct decimal d;
	double size = fabs(number);
	char *at = room;
	if (isnan(number))
		return view_of("NaN");
	if (isinf(number))
		return view_of(number < 0 ? "-Infinity" : "Infinity");
	if (signbit(number))
		*at++ = '-';
	shortest(size, &d);
	bool plain = size == 0 || (size >= 1e-6 && size < 1e21);
	at = plain ? put_plain(at, &d) : put_scientific(at, room + VALUE_TEXT_ROOM, &d);
	return (struct view){ (const uint8_t *)room, (size_t)(at - room) };
}

bool value_text_scalar(const struct profiles *p, const struct attribute *a,
		       char room[VALUE_TEXT_ROOM], struct view *out)
{
	switch ((enum value_type)a->type) {
	case VALUE_STRING:
		*out = string_view(p, a->string);
		return true;
	case VALUE_BOOL:
		*out = view_of(a->boolean ? "true" : "false");
		return true;
	case VALUE_INT:
		snprintf(room, VALUE_TEXT_ROOM, "%" PRId64, attribute_integer(a));
		*out = view_of(room);
		return true;
	case VALUE_DOUBLE:
		*out = value_text_double(attribute_number(a), room);
		return true;
	default:
		return false;
	}
}

static bool add_escape(struct bytes *out, uint8_t byte)
{
	static const char shorts[] = "\bb\tt\nn\ff\rr\"\"\\\\";
	for (const char *s = shorts; *s; s += 2)
		if ((uint8_t)*s == byte)
			return bytes_add(out, (char[]){ '\\', s[1] }, 2);
	return bytes_format(out, "\\u%04x", byte);
}

bool value_text_quote(struct bytes *out, struct view text)
{
	const uint8_t *at = text.at, *end = at + text.len, *plain = at;
	bool ok = bytes_add_byte(out, '"');
	for (; at < end; at++) {
		if (*at >= 0x20 && *at != '"' && *at != '\\')
			continue;
		ok &= bytes_add(out, plain, (size_t)(at - plain)) && add_escape(out, *at);
		plain = at + 1;
	}
	return ok && bytes_add(out, plain, (size_t)(end - plain)) && bytes_add_byte(out, '"');
}

static bool add_json(const struct profiles *p, const struct attribute *a, struct bytes *out);

static bool add_children(const struct profiles *p, struct list children, bool keyed,
			 struct bytes *out)
{
	bool ok = bytes_add_byte(out, keyed ? '{' : '[');
	for (uint32_t i = 0; i < children.count && ok; i++) {
		const struct attribute *child = &p->attributes.at[children.first + i];
		ok = (!i || bytes_add_byte(out, ',')) &&
		     (!keyed || (value_text_quote(out, string_view(p, child->key)) &&
				 bytes_add_byte(out, ':'))) &&
		     add_json(p, child, out);
	}
	return ok && bytes_add_byte(out, keyed ? '}' : ']');
}

static bool add_quoted(struct bytes *out, struct view plain)
{
	return bytes_add_byte(out, '"') && bytes_add(out, plain.at, plain.len) &&
	       bytes_add_byte(out, '"');
}

/* Recursion ends at VALUE_DEPTH_MAX: decoders refuse what is deeper. */
static bool add_json(const struct profiles *p, const struct attribute *a, struct bytes *out)
{
	char room[VALUE_TEXT_ROOM];
	struct view text;
	switch ((enum value_type)a->type) {
	case VALUE_EMPTY:
		return bytes_add_text(out, "null");
	case VALUE_STRING:
		return value_text_quote(out, string_view(p, a->string));
	case VALUE_BYTES:
		return bytes_add_byte(out, '"') && base64_add(out, span_view(p, a->bytes), true) &&
		       bytes_add_byte(out, '"');
	case VALUE_ARRAY:
	case VALUE_KVLIST:
		return add_children(p, a->children, a->type == VALUE_KVLIST, out);
	case VALUE_DOUBLE:
		if (!isfinite(attribute_number(a)))
			return add_quoted(out, value_text_double(attribute_number(a), room));
		/* fall through */
	default:
		return value_text_scalar(p, a, room, &text) && bytes_add(out, text.at, text.len);
	}
}

bool value_text_add(const struct profiles *p, const struct attribute *a, struct bytes *out)
{
	char room[VALUE_TEXT_ROOM];
	struct view text;
	if (value_text_scalar(p, a, room, &text))
		return bytes_add(out, text.at, text.len);
	if (a->type == VALUE_BYTES)
		return base64_add(out, span_view(p, a->bytes), true);
	return a->type == VALUE_EMPTY || add_json(p, a, out);
}
