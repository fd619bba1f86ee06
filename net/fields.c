/* SPDX-License-Identifier: Apache-2.0 */
#include "net/fields.h"

#include "base/memory.h"
#include "base/quote.h"

/* How the entries of a text are written. */
struct form {
	const char *what;
	char separator;
	bool plus_is_blank;
	bool trim;
};

static const struct form query_form = { "query parameter", '&', .plus_is_blank = true };
static const struct form pairs_form = { "attribute", ',', .trim = true };

void fields_init(struct fields *f, const struct fields_limits *limits)
{
	*f = (struct fields){ .limits = limits };
	bytes_init(&f->text, limits->total + 2 * limits->count);
}

void fields_fini(struct fields *f)
{
	bytes_fini(&f->text);
	memory_free(f->at);
	f->at = NULL;
	f->count = 0;
}

static bool over(const struct fields *f, const char *what, size_t limit, struct error *err)
{
	return error_set(err, ERROR_TOO_LARGE, "entry %zu: more than %zu %s", f->count + 1, limit,
			 what);
}

bool fields_add(struct fields *f, struct view name, struct view value, struct error *err)
{
	const struct fields_limits *limits = f->limits;
	if (f->count == limits->count)
		return over(f, "entries", limits->count, err);
	if (name.len > limits->name)
		return over(f, "bytes in the name", limits->name, err);
	if (value.len > limits->value)
		return over(f, "bytes in the value", limits->value, err);
	if ((name.len && memchr(name.at, 0, name.len)) ||
	    (value.len && memchr(value.at, 0, value.len)))
		return error_set(err, ERROR_INVALID, "entry %zu: contains a NUL byte",
				 f->count + 1);
	if (!bytes_reserve(&f->text, name.len + value.len + 2))
		return over(f, "bytes in total", limits->total, err);
	bytes_add(&f->text, name.at, name.len);
	bytes_add_byte(&f->text, 0);
	bytes_add(&f->text, value.at, value.len);
	bytes_add_byte(&f->text, 0);
	f->count++;
	return true;
}

static int hex_digit(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool unescape(struct view in, bool plus_is_blank, struct bytes *out)
{
	for (size_t i = 0; i < in.len; i++) {
		uint8_t c = in.at[i];
		if (c == '+' && plus_is_blank) {
			c = ' ';
		} else if (c == '%') {
			if (in.len - i < 3 || hex_digit(in.at[i + 1]) < 0 ||
			    hex_digit(in.at[i + 2]) < 0)
				return false;
			c = (uint8_t)(hex_digit(in.at[i + 1]) << 4 | hex_digit(in.at[i + 2]));
			i += 2;
		}
		if (!bytes_add_byte(out, c))
			return false;
	}
	return true;
}

/* UTF-8 without controls. */
static bool clean(struct view text)
{
	while (text.len) {
		uint32_t code = 0;
		size_t len = quote_utf8(text.at, text.len, &code);
		if (!len || code < 0x20 || code == 0x7f)
			return false;
		text = (struct view){ text.at + len, text.len - len };
	}
	return true;
}

static struct view trimmed(struct view text)
{
	while (text.len && (*text.at == ' ' || *text.at == '\t'))
		text = (struct view){ text.at + 1, text.len - 1 };
	while (text.len && (text.at[text.len - 1] == ' ' || text.at[text.len - 1] == '\t'))
		text.len--;
	return text;
}

static struct view part(struct view entry, size_t from, size_t to, bool trim)
{
	struct view v = { entry.at + from, to - from };
	return trim ? trimmed(v) : v;
}

static bool add_escaped(struct fields *f, const struct form *form, struct view entry,
			struct error *err)
{
	const uint8_t *equals = memchr(entry.at, '=', entry.len);
	size_t name_len = equals ? (size_t)(equals - entry.at) : entry.len;
	struct view name = part(entry, 0, name_len, form->trim);
	struct view value = part(entry, equals ? name_len + 1 : entry.len, entry.len, form->trim);
	struct bytes text;
	bytes_init(&text, entry.len + 1);
	bool ok = unescape(name, form->plus_is_blank, &text);
	size_t split = text.len;
	ok = ok && unescape(value, form->plus_is_blank, &text);
	name = (struct view){ text.at, split };
	value = (struct view){ text.at ? text.at + split : NULL, text.len - split };
	if (!ok)
		error_set(err, ERROR_INVALID, "entry %zu: invalid percent escape", f->count + 1);
	else if (!name.len)
		ok = error_set(err, ERROR_INVALID, "entry %zu: empty name", f->count + 1);
	else if (!clean(name) || !clean(value))
		ok = error_set(err, ERROR_INVALID,
			       "entry %zu: not valid UTF-8, or contains control characters",
			       f->count + 1);
	else
		ok = fields_add(f, name, value, err);
	bytes_fini(&text);
	return ok;
}

static bool add_all(struct fields *f, const struct form *form, const char *text, struct error *err)
{
	for (const char *at = text, *end;; at = end + 1) {
		end = strchr(at, form->separator);
		struct view entry = { (const uint8_t *)at, end ? (size_t)(end - at) : strlen(at) };
		if (form->trim)
			entry = trimmed(entry);
		if (entry.len && !add_escaped(f, form, entry, err))
			return error_prefix(err, "%s", form->what);
		if (!end)
			return true;
	}
}

bool fields_add_query(struct fields *f, const char *query, struct error *err)
{
	return add_all(f, &query_form, query, err);
}

bool fields_add_pairs(struct fields *f, const char *pairs, struct error *err)
{
	return add_all(f, &pairs_form, pairs, err);
}

const struct metadatum *fields_list(struct fields *f)
{
	memory_free(f->at);
	f->at = memory_array(f->count + 1, sizeof *f->at);
	const char *text = (const char *)f->text.at;
	for (size_t i = 0; i < f->count; i++) {
		f->at[i].name = text;
		f->at[i].value = text + strlen(text) + 1;
		text = f->at[i].value + strlen(f->at[i].value) + 1;
	}
	return f->at;
}

bool fields_unique(struct fields *f, struct error *err)
{
	const struct metadatum *at = fields_list(f);
	for (size_t i = 0; i < f->count; i++)
		for (size_t k = 0; k < i; k++)
			if (!strcmp(at[i].name, at[k].name))
				return error_set(err, ERROR_INVALID,
						 "entry %zu: repeats the name of entry %zu", i + 1,
						 k + 1);
	return true;
}

void fields_lower(struct fields *f)
{
	uint8_t *text = f->text.at;
	for (size_t i = 0; i < f->count; i++) {
		for (; *text; text++)
			if (*text >= 'A' && *text <= 'Z')
				*text |= 0x20;
		text += strlen((char *)text + 1) + 2;
	}
}
