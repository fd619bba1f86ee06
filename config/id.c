/* SPDX-License-Identifier: Apache-2.0 */
#include "config/id.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "base/memory.h"
#include "base/quote.h"

enum { TYPE_MAX = 63, NAME_MAX_BYTES = 1024 };

/* Blocks of separators, controls and symbols (Unicode Z, C, S). */
static const struct {
	uint32_t first, last;
} refused[] = {
	{ 0x0000, 0x0020 }, { '$', '$' },         { '+', '+' },          { '<', '>' },
	{ '^', '^' },       { '`', '`' },         { '|', '|' },          { '~', '~' },
	{ 0x007f, 0x00a0 }, { 0x00a2, 0x00a6 },   { 0x00a8, 0x00a9 },    { 0x00ac, 0x00b1 },
	{ 0x00b4, 0x00b4 }, { 0x00b8, 0x00b8 },   { 0x00d7, 0x00d7 },    { 0x00f7, 0x00f7 },
	{ 0x02c2, 0x02c5 }, { 0x02d2, 0x02df },   { 0x061c, 0x061c },    { 0x1680, 0x1680 },
	{ 0x180e, 0x180e }, { 0x2000, 0x200f },   { 0x2028, 0x202f },    { 0x2044, 0x2044 },
	{ 0x205f, 0x206f }, { 0x20a0, 0x20cf },   { 0x2190, 0x2307 },    { 0x230c, 0x2328 },
	{ 0x232b, 0x2767 }, { 0x2794, 0x27c4 },   { 0x27f0, 0x2982 },    { 0x2999, 0x29d7 },
	{ 0x29dc, 0x2bff }, { 0x2e80, 0x3000 },   { 0xd800, 0xf8ff },    { 0xfeff, 0xfeff },
	{ 0xfff0, 0xffff }, { 0x1f000, 0x1fbef }, { 0xe0000, 0x10ffff },
};

static bool is_refused(uint32_t code)
{
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
		if (code >= refused[i].first && code <= refused[i].last)
			return true;
	return false;
}

static bool check_type(const char *type, size_t len, struct error *err)
{
	bool ok = len <= TYPE_MAX && isalpha((unsigned char)type[0]);
	for (size_t i = 0; ok && i < len; i++)
		ok = isalnum((unsigned char)type[i]) || type[i] == '_';
	return ok || error_set(err, ERROR_CONFIG, "invalid character(s) in type \"%.*s\"",
			       (int)(len < 100 ? len : 100), type);
}

static bool check_name(const char *name, size_t len, struct error *err)
{
	int shown = (int)quote_fit(name, len, 100);
	if (len > NAME_MAX_BYTES)
		return error_set(err, ERROR_CONFIG,
				 "name \"%.*s\" is longer than 1024 characters (%zu characters)",
				 shown, name, len);
	for (size_t i = 0, n; i < len; i += n) {
		uint32_t code = 0;
		n = quote_utf8(name + i, len - i, &code);
		if (!n || is_refused(code))
			return error_set(err, ERROR_CONFIG, "invalid character(s) in name \"%.*s\"",
					 shown, name);
	}
	return true;
}

static const char *trim(const char *at, size_t *len)
{
	for (; *len && isspace((unsigned char)*at); ++at)
		--*len;
	while (*len && isspace((unsigned char)at[*len - 1]))
		--*len;
	return at;
}

bool config_id_parse(const char *text, struct config_id *id, struct error *err)
{
	const char *slash = strchr(text, '/');
	size_t type_len = slash ? (size_t)(slash - text) : strlen(text);
	size_t name_len = slash ? strlen(slash + 1) : 0;
	const char *type = trim(text, &type_len), *name = slash ? trim(slash + 1, &name_len) : "";
	if (!slash && !type_len)
		return error_set(err, ERROR_CONFIG, "id must not be empty");
	if (!type_len || (slash && !name_len))
		return error_set(err, ERROR_CONFIG,
				 "in \"%.100s\" id: the part %s / should not be empty", text,
				 type_len ? "after" : "before");
	if ((slash && !check_name(name, name_len, err)) || !check_type(type, type_len, err))
		return false;
	*id = (struct config_id){
		.text = memory_format("%.*s%s%.*s", (int)type_len, type, slash ? "/" : "",
				      (int)name_len, name),
		.type_len = type_len,
	};
	return true;
}

void config_id_fini(struct config_id *id)
{
	memory_free(id->text);
	*id = (struct config_id){ 0 };
}
