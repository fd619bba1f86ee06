/* SPDX-License-Identifier: Apache-2.0 */
#include "config/scalar.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int digit_value(char c)
{
	if (is_digit(c))
		return c - '0';
	if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
		return (c | 0x20) - 'a' + 10;
	return 99;
}

/* Base by prefix, as strconv.ParseInt(text, 0, 64). */
static bool parse_integer(const char *text, int64_t *out)
{
	bool negative = *text == '-';
	text += *text == '-' || *text == '+';
	int base = 10;
	if (text[0] == '0' && text[1]) {
		char kind = (char)(text[1] | 0x20);
		base = kind == 'x' ? 16 : kind == 'b' ? 2 : 8;
		text += kind == 'x' || kind == 'b' || kind == 'o' ? 2 : 1;
	}
	uint64_t value = 0, limit = (uint64_t)INT64_MAX + negative;
	if (!*text)
		return false;
	for (; *text; text++) {
		int digit = digit_value(*text);
		if (digit >= base || value > (limit - (uint64_t)digit) / (uint64_t)base)
			return false;
		value = value * (uint64_t)base + (uint64_t)digit;
	}
	*out = negative ? (int64_t)(0 - value) : (int64_t)value;
	return true;
}

static const char *skip_digits(const char *at)
{
	while (is_digit(*at))
		at++;
	return at;
}

/* [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)? */
static bool is_float(const char *at)
{
	at += *at == '-' || *at == '+';
	const char *whole = skip_digits(at);
	bool digits = whole > at;
	if (*whole == '.') {
		const char *fraction = skip_digits(whole + 1);
		digits = digits || fraction > whole + 1;
		whole = fraction;
	}
	if (!digits)
		return false;
	if ((*whole | 0x20) == 'e') {
		const char *exponent = whole + 1;
		exponent += *exponent == '-' || *exponent == '+';
		whole = skip_digits(exponent);
		if (whole == exponent)
			return false;
	}
	return *whole == '\0';
}

static bool parse_word(const char *text, struct scalar *out)
{
	static const struct {
		const char *word;
		struct scalar is;
	} words[] = {
		{ "true", { SCALAR_BOOL, .truth = true } },
		{ "True", { SCALAR_BOOL, .truth = true } },
		{ "TRUE", { SCALAR_BOOL, .truth = true } },
		{ "false", { SCALAR_BOOL } },
		{ "False", { SCALAR_BOOL } },
		{ "FALSE", { SCALAR_BOOL } },
		{ ".nan", { SCALAR_FLOAT, .number = NAN } },
		{ ".NaN", { SCALAR_FLOAT, .number = NAN } },
		{ ".NAN", { SCALAR_FLOAT, .number = NAN } },
		{ ".inf", { SCALAR_FLOAT, .number = INFINITY } },
		{ ".Inf", { SCALAR_FLOAT, .number = INFINITY } },
		{ ".INF", { SCALAR_FLOAT, .number = INFINITY } },
		{ "+.inf", { SCALAR_FLOAT, .number = INFINITY } },
		{ "+.Inf", { SCALAR_FLOAT, .number = INFINITY } },
		{ "+.INF", { SCALAR_FLOAT, .number = INFINITY } },
		{ "-.inf", { SCALAR_FLOAT, .number = -INFINITY } },
		{ "-.Inf", { SCALAR_FLOAT, .number = -INFINITY } },
		{ "-.INF", { SCALAR_FLOAT, .number = -INFINITY } },
	};
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
		if (strcmp(text, words[i].word) != 0)
			continue;
		*out = words[i].is;
		return true;
	}
	return false;
}

struct scalar scalar_of(const struct node *node)
{
	struct scalar s = { SCALAR_STRING };
	if (node->kind != NODE_SCALAR || node->quoted || parse_word(node->text, &s))
		return s;
	char first = node->text[0];
	if (!is_digit(first) && first != '-' && first != '+' && first != '.')
		return s;
	char plain[400]; /* longer than any double written out */
	size_t len = 0;
	for (const char *at = node->text; *at && len < sizeof plain; at++)
		if (*at != '_')
			plain[len++] = *at;
	if (len == sizeof plain)
		return s;
	plain[len] = '\0';
	if (first != '.' && parse_integer(plain, &s.integer)) {
		s.kind = SCALAR_INT;
	} else if (is_float(plain)) {
		s.kind = SCALAR_FLOAT;
		s.number = strtod(plain, NULL);
	}
	return s;
}

const char *scalar_type_name(const struct node *node)
{
	static const char *const scalars[] = { "a string", "a whole number", "a decimal number",
					       "a boolean" };
	switch (node->kind) {
	case NODE_NULL:
		return "nothing";
	case NODE_LIST:
		return "a list";
	case NODE_MAP:
		return "a map";
	default:
		return scalars[scalar_of(node).kind];
	}
}

static const struct unit {
	const char *name;
	uint64_t ns;
} units[] = {
	{ "ns", 1 },
	{ "us", 1000 },
	{ "\xc2\xb5s", 1000 },
	{ "\xce\xbcs", 1000 }, /* micro sign, Greek mu */
	{ "ms", 1000000 },
	{ "s", 1000000000 },
	{ "m", UINT64_C(60000000000) },
	{ "h", UINT64_C(3600000000000) },
};

static const struct unit *find_unit(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
		if (strlen(units[i].name) == len && memcmp(units[i].name, name, len) == 0)
			return &units[i];
	return NULL;
}

/* Digits as value/scale. A fraction ends where 64 bits do; a whole number must fit: else false. */
static bool read_digits(const char **at, bool fraction, uint64_t *value, double *scale)
{
	*value = 0;
	*scale = 1;
	for (bool full = false; is_digit(**at); ++*at) {
		uint64_t digit = (uint64_t)(**at - '0');
		if (*value > ((UINT64_C(1) << 63) - digit) / 10) {
			if (!fraction)
				return false;
			full = true;
		}
		if (full)
			continue;
		*value = *value * 10 + digit;
		*scale *= 10;
	}
	return true;
}

const char *scalar_duration_hint(const char *text, char out[DURATION_HINT])
{
	size_t digits = text ? strspn(text, "0123456789") : 0;
	bool short_number = digits && digits < 6;
	if (short_number && !text[digits])
		snprintf(out, DURATION_HINT, "write %ss", text);
	else if (short_number && !strcmp(text + digits, "d"))
		snprintf(out, DURATION_HINT, "write %ldh", strtol(text, NULL, 10) * 24);
	else
		snprintf(out, DURATION_HINT,
			 "write a number and a unit (h, m, s, ms, us or ns), such as 1m30s");
	return out;
}

static bool refuse_duration(const char *text, struct error *err)
{
	char hint[DURATION_HINT];
	return error_set(err, ERROR_CONFIG, "must be a duration, got \"%.60s\"; %s", text,
			 scalar_duration_hint(NULL, hint));
}

static bool refuse_range(const char *text, struct error *err)
{
	return error_set(err, ERROR_CONFIG, "must be a duration of at most 2562047h, got \"%.60s\"",
			 text);
}

static bool refuse_unit(const char *text, const char *unit, size_t len, struct error *err)
{
	char hint[DURATION_HINT];
	scalar_duration_hint(text, hint);
	if (!len)
		return error_set(err, ERROR_CONFIG, "must have a unit, got \"%.60s\"; %s", text,
				 hint);
	return error_set(err, ERROR_CONFIG, "has the unknown unit \"%.*s\" in \"%.60s\"; %s",
			 (int)(len < 20 ? len : 20), unit, text, hint);
}

/* One "1.5h". */
static bool read_term(const char **at, uint64_t *total, const char *text, struct error *err)
{
	uint64_t whole, part = 0;
	double scale, part_scale = 1;
	const char *begin = *at;
	bool fits = read_digits(at, false, &whole, &scale);
	bool digits = *at > begin;
	if (fits && **at == '.') {
		const char *dot = ++*at;
		read_digits(at, true, &part, &part_scale);
		digits = digits || *at > dot;
	}
	if (!fits)
		return refuse_range(text, err);
	if (!digits)
		return refuse_duration(text, err);
	size_t len = strcspn(*at, ".0123456789");
	const struct unit *unit = find_unit(*at, len);
	if (!unit)
		return refuse_unit(text, *at, len, err);
	*at += len;
	uint64_t limit = UINT64_C(1) << 63,
		 ns = (uint64_t)((double)part * ((double)unit->ns / part_scale));
	if (whole > limit / unit->ns || (ns += whole * unit->ns) > limit || ns > limit - *total)
		return refuse_range(text, err);
	*total += ns;
	return true;
}

bool scalar_duration(const char *text, int64_t *ns, struct error *err)
{
	const char *at = text;
	bool negative = *at == '-';
	at += *at == '-' || *at == '+';
	*ns = 0;
	if (strcmp(at, "0") == 0)
		return true;
	uint64_t total = 0;
	do {
		if (!read_term(&at, &total, text, err))
			return false;
	} while (*at);
	if (total > (uint64_t)INT64_MAX + negative)
		return refuse_range(text, err);
	*ns = negative ? (int64_t)(0 - total) : (int64_t)total;
	return true;
}

/* value / 10^places without trailing zeros, then the unit. */
static void add_decimal(struct bytes *out, uint64_t value, int places, const char *unit)
{
	char digits[32];
	uint64_t scale = 1;
	for (int i = 0; i < places; i++)
		scale *= 10;
	int len = snprintf(digits, sizeof digits, "%llu", (unsigned long long)(value / scale));
	if (value % scale) {
		len += snprintf(digits + len, sizeof digits - (size_t)len, ".%0*llu", places,
				(unsigned long long)(value % scale));
		while (digits[len - 1] == '0')
			len--;
	}
	bytes_add(out, digits, (size_t)len);
	bytes_add_text(out, unit);
}

void scalar_add_duration(struct bytes *out, int64_t ns)
{
	uint64_t left = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
	if (ns < 0)
		bytes_add_byte(out, '-');
	if (left == 0) {
		bytes_add_text(out, "0s");
	} else if (left < 1000) {
		add_decimal(out, left, 0, "ns");
	} else if (left < 1000000) {
		add_decimal(out, left, 3, "us");
	} else if (left < 1000000000) {
		add_decimal(out, left, 6, "ms");
	} else {
		uint64_t minutes = left / UINT64_C(60000000000);
		if (minutes >= 60)
			bytes_format(out, "%lluh", (unsigned long long)(minutes / 60));
		if (minutes)
			bytes_format(out, "%llum", (unsigned long long)(minutes % 60));
		add_decimal(out, left % UINT64_C(60000000000), 9, "s");
	}
}
