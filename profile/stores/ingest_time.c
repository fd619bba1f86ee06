/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/stores/ingest_time.h"

#include <time.h>

enum { DIGITS_MAX = 19 };
#define SECOND UINT64_C(1000000000)
#define DAY (UINT64_C(86400) * SECOND)

static const struct unit {
	const char *name;
	uint64_t ns;
} units[] = {
	{ "s", SECOND },        { "m", 60 * SECOND }, { "min", 60 * SECOND },
	{ "h", 3600 * SECOND }, { "d", DAY },         { "w", 7 * DAY },
	{ "mon", 30 * DAY },    { "M", 30 * DAY },    { "y", 365 * DAY },
};

static bool is_digit(uint8_t c)
{
	return c >= '0' && c <= '9';
}

/* Plausible as a date: then it is one, and no time in the first year of the epoch. */
static bool date(uint64_t number, uint64_t *ns)
{
	struct tm tm = { .tm_year = (int)(number / 10000) - 1900,
			 .tm_mon = (int)(number / 100 % 100) - 1,
			 .tm_mday = (int)(number % 100) };
	if (tm.tm_year < 70 || tm.tm_mon < 0 || tm.tm_mon > 11 || tm.tm_mday < 1 || tm.tm_mday > 31)
		return false;
	*ns = (uint64_t)timegm(&tm) * SECOND;
	return number < 25000000;
}

static bool scaled(uint64_t number, uint64_t unit, uint64_t *ns)
{
	return !__builtin_mul_overflow(number, unit, ns) && *ns <= INT64_MAX;
}

static bool absolute(struct view text, uint64_t *ns)
{
	uint64_t number = 0;
	unsigned digits = 0;
	for (size_t i = 0; i < text.len; i++) {
		uint8_t c = text.at[i];
		if (c == '_' || c == ',' || c == ' ')
			continue;
		if (!is_digit(c) || ++digits > DIGITS_MAX)
			return false;
		number = number * 10 + (c - '0');
	}
	if (digits == 8 && date(number, ns))
		return true;
	return digits && scaled(number,
				digits == 13   ? SECOND / 1000
				: digits == 16 ? SECOND / 1000000
				: digits == 19 ? 1
					       : SECOND,
				ns);
}

static bool relative(struct view text, uint64_t now, uint64_t *ns)
{
	size_t at = 4; /* behind "now-" */
	uint64_t number = 0, distance;
	if (text.len < at || memcmp(text.at, "now", 3) || (text.at[3] != '-' && text.at[3] != '+'))
		return false;
	for (; at < text.len && is_digit(text.at[at]) && at < 4 + DIGITS_MAX; at++)
		number = number * 10 + (text.at[at] - '0');
	struct view name = { text.at + at, text.len - at };
	for (size_t i = 0; i < sizeof units / sizeof *units && at > 4; i++)
		if (view_is(name, units[i].name) && scaled(number, units[i].ns, &distance)) {
			*ns = text.at[3] == '-' ? now - distance : now + distance;
			return text.at[3] == '+' ? *ns <= INT64_MAX : distance <= now;
		}
	return false;
}

uint64_t ingest_time(struct view text, uint64_t now)
{
	uint64_t ns = now;
	return absolute(text, &ns) || relative(text, now, &ns) ? ns : now;
}
