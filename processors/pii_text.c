/* SPDX-License-Identifier: Apache-2.0 */
#include "processors/pii_text.h"

#define WINDOWS (PII_WINDOWS_NAME | PII_WINDOWS_WORD)
#define HOST (PII_URL | PII_AUTHORITY | PII_USERINFO)
#define LOOSE (PII_QUERY | HOST | PII_SECRET | PII_SEGMENT | WINDOWS)
#define PLAIN (LOOSE | PII_NAME)
#define LETTER (PLAIN | PII_LOCAL | PII_TOKEN | PII_BASE64 | PII_QUERY_NAME)

/* Later entries override earlier ones. No name of an account of Windows has + = ; , [ or ]. */
const uint32_t pii_kinds[256] = {
	[0x00 ... 0x7f] = PLAIN,
	[0x80 ... 0xff] = PLAIN | PII_HIGH | PII_LOCAL,
	['0' ... '9'] = LETTER | PII_DIGIT,
	['A' ... 'F'] = LETTER | PII_UPPER | PII_HEX_LETTER,
	['G' ... 'Z'] = LETTER | PII_UPPER,
	['a' ... 'f'] = LETTER | PII_LOWER | PII_HEX_LETTER,
	['g' ... 'z'] = LETTER | PII_LOWER,
	['_'] = PLAIN | PII_UNDERSCORE | PII_LOCAL | PII_TOKEN | PII_QUERY_NAME,
	['-'] = PLAIN | PII_DASH | PII_LOCAL | PII_TOKEN | PII_QUERY_NAME,
	['.'] = PLAIN | PII_DOT | PII_LOCAL | PII_TOKEN | PII_QUERY_NAME,
	['~'] = PLAIN | PII_TILDE | PII_TOKEN,
	['+'] = (PLAIN & ~WINDOWS) | PII_LOCAL | PII_TOKEN | PII_BASE64,
	['='] = (PLAIN & ~WINDOWS) | PII_TOKEN,
	['%'] = PLAIN | PII_LOCAL | PII_QUERY_NAME,
	['/'] = PII_SLASH | PII_TOKEN | PII_BASE64 | PII_QUERY | PII_URL | PII_SECRET,
	['\\'] = PII_SLASH | PII_QUERY | PII_URL | PII_SECRET,
	[' '] = PII_WINDOWS_NAME,
	['\t'] = PII_WINDOWS_NAME,
	['\v'] = PII_WINDOWS_NAME,
	['\f'] = PII_WINDOWS_NAME,
	['\r'] = 0,
	['\n'] = 0,
	['"'] = PII_SEGMENT,
	['<'] = PII_SEGMENT,
	['>'] = PII_SEGMENT,
	['\''] = PII_SEGMENT | WINDOWS | PII_LOCAL,
	['|'] = PII_SEGMENT | PII_QUERY | HOST | PII_SECRET,
	['*'] = PII_QUERY | HOST | PII_SECRET,
	['?'] = PII_SEGMENT | PII_QUERY | PII_SECRET,
	[':'] = PII_SEGMENT | PII_QUERY | HOST | PII_SECRET,
	['&'] = PLAIN & ~PII_SECRET,
	['#'] = PLAIN & ~(PII_QUERY | PII_AUTHORITY | PII_USERINFO),
	['@'] = PLAIN & ~PII_USERINFO,
	[';'] = LOOSE & ~PII_SECRET & ~WINDOWS,
	[','] = LOOSE & ~WINDOWS,
	['('] = LOOSE,
	[')'] = LOOSE,
	['{'] = LOOSE,
	['}'] = LOOSE,
	['['] = (LOOSE & ~WINDOWS) | PII_QUERY_NAME,
	[']'] = (LOOSE & ~WINDOWS) | PII_QUERY_NAME,
};

/* The known run of these kinds; an empty one that is at no position if there is none. */
static struct pii_known_run *known_run(struct pii_runs *runs, uint32_t kinds)
{
	for (unsigned i = 0; i < runs->count; i++)
		if (runs->known[i].kinds == kinds)
			return &runs->known[i];
	if (runs->count == PII_RUNS)
		runs->count = 0;
	struct pii_known_run *run = &runs->known[runs->count++];
	*run = (struct pii_known_run){ kinds, 1, 0 };
	return run;
}

/* Of which kinds are all of eight bytes? */
static inline uint32_t common_kinds(const uint8_t *at)
{
	return pii_kinds[at[0]] & pii_kinds[at[1]] & pii_kinds[at[2]] & pii_kinds[at[3]] &
	       pii_kinds[at[4]] & pii_kinds[at[5]] & pii_kinds[at[6]] & pii_kinds[at[7]];
}

size_t pii_run_end(struct pii_runs *runs, struct view text, size_t at, uint32_t kinds)
{
	struct pii_known_run *run = known_run(runs, kinds);
	if (run->start <= at && at <= run->end)
		return run->end;
	const uint8_t *byte = text.at + at, *end = text.at + text.len;
	while (end - byte >= 8 && (common_kinds(byte) & kinds))
		byte += 8;
	while (end - byte >= 4 && pii_is(byte[0], kinds) && pii_is(byte[1], kinds) &&
	       pii_is(byte[2], kinds) && pii_is(byte[3], kinds))
		byte += 4;
	while (byte < end && pii_is(*byte, kinds))
		byte++;
	run->start = at;
	run->end = (size_t)(byte - text.at);
	pii_spend(runs, 16 + 5 * (run->end - at));
	return run->end;
}

size_t pii_run_start(struct pii_runs *runs, struct view text, size_t at, uint32_t kinds)
{
	struct pii_known_run *run = known_run(runs, kinds | PII_BACKWARDS);
	size_t start = at, known = run->end < at ? run->end : 0;
	if (run->start <= at && at <= run->end)
		return run->start;
	while (start > known && pii_is(text.at[start - 1], kinds))
		start--;
	pii_spend(runs, 16 + 5 * (at - start));
	run->start = start == known && run->start < known ? run->start : start;
	run->end = at;
	return run->start;
}
