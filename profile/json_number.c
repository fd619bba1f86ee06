/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/json_number.h"

#include <math.h>
#include <stdlib.h>

static const char not_number[] = "is not a number";
static const char not_integer[] = "is not an integer";
static const char out_of_range[] = "is out of range";

/* A number in parts. */
struct decimal {
	bool negative;
	struct view whole, fraction;
	int64_t exponent; /* limited to +-10^9 */
};

static struct view digits(struct view *text)
{
	struct view found = { text->at, 0 };
	while (found.len < text->len && text->at[found.len] >= '0' && text->at[found.len] <= '9')
		found.len++;
	text->at += found.len;
	text->len -= found.len;
	return found;
}

static bool next_is(struct view *text, uint8_t c)
{
	if (!text->len || text->at[0] != c)
		return false;
	text->at++;
	text->len--;
	return true;
}

static bool read_exponent(struct view *text, int64_t *exponent)
{
	bool negative = next_is(text, '-');
	if (!negative)
		next_is(text, '+');
	struct view number = digits(text);
	int64_t value = 0;
	for (size_t i = 0; i < number.len && value < 1000000000; i++)
		value = value * 10 + (number.at[i] - '0');
	*exponent = negative ? -value : value;
	return number.len > 0;
}

static bool read_decimal(struct view text, struct decimal *d)
{
	*d = (struct decimal){ .negative = next_is(&text, '-') };
	d->whole = digits(&text);
	if (!d->whole.len)
		return false;
	if (next_is(&text, '.')) {
		d->fraction = digits(&text);
		if (!d->fraction.len)
			return false;
	}
	if (next_is(&text, 'e') || next_is(&text, 'E'))
		if (!read_exponent(&text, &d->exponent))
			return false;
	return !text.len;
}

static bool push_digit(uint64_t *value, uint8_t digit)
{
	return !__builtin_mul_overflow(*value, 10, value) &&
	       !__builtin_add_overflow(*value, digit, value);
}

/* The digits up to the place of the decimal point; those behind it must be zeros. */
static const char *magnitude(const struct decimal *d, uint64_t *value)
{
	size_t count = d->whole.len + d->fraction.len;
	int64_t point = (int64_t)d->whole.len + d->exponent;
	*value = 0;
	for (size_t i = 0; i < count; i++) {
		uint8_t digit =
			i < d->whole.len ? d->whole.at[i] : d->fraction.at[i - d->whole.len];
		digit = (uint8_t)(digit - '0');
		if ((int64_t)i >= point && digit)
			return not_integer;
		if ((int64_t)i < point && !push_digit(value, digit))
			return out_of_range;
	}
	for (int64_t i = (int64_t)count; *value && i < point; i++)
		if (!push_digit(value, 0))
			return out_of_range;
	return NULL;
}

static const char *parse_integer(struct view text, bool *negative, uint64_t *value)
{
	struct decimal d;
	if (!read_decimal(text, &d))
		return not_number;
	*negative = d.negative;
	return magnitude(&d, value);
}

/* Up to 19 digits: what nearly all are. */
static bool parse_short(struct view text, uint64_t *value)
{
	uint64_t sum = 0;
	if (!text.len || text.len > 19)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		uint32_t digit = (uint32_t)text.at[i] - '0';
		if (digit > 9)
			return false;
		sum = sum * 10 + digit;
	}
	*value = sum;
	return true;
}

const char *json_number_integer(struct view text, const struct json_number_range *range,
				uint64_t *value)
{
	bool negative = false;
	if (!parse_short(text, value)) {
		const char *fault = parse_integer(text, &negative, value);
		if (fault)
			return fault;
	}
	if (*value > (negative ? range->below : range->above))
		return out_of_range;
	if (negative)
		*value = -*value;
	return NULL;
}

const char *json_number_double(struct view text, double *value)
{
	struct decimal d;
	if (!read_decimal(text, &d))
		return not_number;
	*value = strtod((const char *)text.at, NULL);
	return isinf(*value) ? out_of_range : NULL;
}
