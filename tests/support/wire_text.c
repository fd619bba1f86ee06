/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/wire_text.h"
#include "profile/wire.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

static void must(bool ok, const char *at)
{
	if (!ok) {
		fprintf(stderr, "wire_text: mistake at: %.40s\n", at);
		abort();
	}
}

static const char *blanks(const char *at)
{
	while (isspace((unsigned char)*at))
		at++;
	return at;
}

static const char *number(const char *at, uint64_t *value)
{
	char *end;
	*value = *at == '-' ? (uint64_t)strtoll(at, &end, 0) : strtoull(at, &end, 0);
	must(end != at, at);
	return end;
}

static uint8_t hex_byte(const char *at)
{
	must(isxdigit((unsigned char)at[0]) && isxdigit((unsigned char)at[1]), at);
	return (uint8_t)strtoul((char[]){ at[0], at[1], '\0' }, NULL, 16);
}

static const char *hex(struct bytes *out, const char *at)
{
	for (; isxdigit((unsigned char)*at); at += 2)
		must(bytes_add_byte(out, hex_byte(at)), at);
	return at;
}

static const char *quoted(struct bytes *out, const char *at)
{
	while (*at != '\'') {
		must(*at != '\0', at);
		bool escaped = at[0] == '\\' && at[1] == 'x';
		must(bytes_add_byte(out, escaped ? hex_byte(at + 2) : (uint8_t)*at), at);
		at += escaped ? 4 : 1;
	}
	return at + 1;
}

static const char *numbers(struct bytes *out, const char *at, char close)
{
	for (at = blanks(at); *at != close; at = blanks(at)) {
		uint64_t value;
		uint8_t put[10];
		at = number(at, &value);
		uint8_t *end =
			close == ']' ? wire_put_varint(put, value) : wire_put_fixed64(put, value);
		must(bytes_add(out, put, (size_t)(end - put)), at);
	}
	return at + 1;
}

static const char *fields(struct bytes *out, const char *at, char close);

static const char *payload(struct bytes *out, const char *at, uint32_t field)
{
	struct bytes inner;
	bytes_init(&inner, out->max);
	char kind = *at++;
	if (kind == '{')
		at = fields(&inner, at, '}');
	else if (kind == '\'')
		at = quoted(&inner, at);
	else if (kind == '#')
		at = hex(&inner, at);
	else if (kind == '[' || kind == '<')
		at = numbers(&inner, at, kind == '[' ? ']' : '>');
	else
		must(false, at - 1);
	must(wire_add_len(out, field, bytes_view(&inner)), at);
	bytes_fini(&inner);
	return at;
}

static const char *scalar(struct bytes *out, const char *at, uint32_t field)
{
	static const char kinds[] = "=@%!";
	static const enum wire_type types[] = { WIRE_VARINT, WIRE_FIXED64, WIRE_FIXED32 };
	ptrdiff_t kind = strchr(kinds, *at) - kinds;
	uint64_t value;
	uint8_t put[24], *end = put;
	at = number(at + 1, &value);
	if (kind == 3)
		end = wire_put_tag(put, field, (enum wire_type)value);
	else
		end = wire_put_tag(put, field, types[kind]);
	if (kind == 0)
		end = wire_put_varint(end, value);
	if (kind == 1 || kind == 2)
		end = wire_put_fixed64(end, value) - (kind == 2 ? 4 : 0);
	must(bytes_add(out, put, (size_t)(end - put)), at);
	return at;
}

static const char *fields(struct bytes *out, const char *at, char close)
{
	for (at = blanks(at); *at != close; at = blanks(at)) {
		uint64_t field;
		if (*at == '~') {
			at = hex(out, at + 1);
			continue;
		}
		at = number(at, &field);
		if (*at && strchr("=@%!", *at))
			at = scalar(out, at, (uint32_t)field);
		else
			at = payload(out, at, (uint32_t)field);
	}
	return close ? at + 1 : at;
}

void wire_text(struct bytes *out, const char *text)
{
	fields(out, text, '\0');
}
