/* SPDX-License-Identifier: Apache-2.0 */
#include "processors/regex.h"
#include "base/memory.h"
#include "processors/go_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <assert.h>
#include <ctype.h>
#include <string.h>

/* Of a search: this number of steps and STEPS_PER_BYTE for each byte of the text, up to the
 * maximum. */
#define STEPS_MIN 1000
#define STEPS_PER_BYTE 128
#define MATCH_LIMIT 100000
#define DEPTH_LIMIT 10000
#define HEAP_LIMIT_KIB 1024 /* the library keeps it for the next search; a thread of ours has one */

/* Of one hostile text: quadratic patterns pass COST_TEXT * COST_TEXT / 2 steps. */
#define COST_TEXT 1024
#define COST_STEPS (STEPS_PER_BYTE * COST_TEXT)

struct regex {
	pcre2_code *code;
	unsigned groups;
	const char *names[REGEX_GROUPS_MAX + 1]; /* inside code */
};

struct regex_memory {
	pcre2_match_data *match;
	pcre2_match_context *limits;
	const size_t *offsets; /* inside match */
	unsigned groups;       /* of the last match: what lies behind is older */
};

static pcre2_code *compile_plain(const char *pattern, unsigned flags, uint32_t more,
				 struct error *err)
{
	uint32_t options = PCRE2_NEVER_BACKSLASH_C | more;
	if (!(flags & REGEX_BYTES))
		options |= PCRE2_UTF | PCRE2_MATCH_INVALID_UTF;
	if (flags & REGEX_WHOLE)
		options |= PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_DOLLAR_ENDONLY;
	if (flags & REGEX_GO)
		options |= PCRE2_DOLLAR_ENDONLY | PCRE2_ALT_CIRCUMFLEX;
	int code;
	size_t at;
	pcre2_code *compiled = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, options,
					     &code, &at, NULL);
	if (!compiled) {
		char why[120];
		pcre2_get_error_message(code, (PCRE2_UCHAR *)why, sizeof why);
		if (flags & REGEX_GO) /* the offset would be that of the translation */
			error_set(err, ERROR_CONFIG, "invalid regular expression: %s", why);
		else
			error_set(err, ERROR_CONFIG, "invalid regular expression: %s at offset %zu",
				  why, at);
	}
	return compiled;
}

static pcre2_code *compile(const char *pattern, unsigned flags, uint32_t more, struct error *err)
{
	struct bytes text;
	pcre2_code *compiled = NULL;
	if (!(flags & REGEX_GO))
		return compile_plain(pattern, flags, more, err);
	bytes_init(&text, SIZE_MAX / 2);
	if (go_pattern_translate(pattern, &text, err))
		compiled = compile_plain((char *)text.at, flags, more, err);
	bytes_fini(&text);
	return compiled;
}

static void find_names(struct regex *regex)
{
	uint32_t count = 0, size = 0;
	PCRE2_SPTR table = NULL;
	pcre2_pattern_info(regex->code, PCRE2_INFO_NAMECOUNT, &count);
	pcre2_pattern_info(regex->code, PCRE2_INFO_NAMEENTRYSIZE, &size);
	pcre2_pattern_info(regex->code, PCRE2_INFO_NAMETABLE, &table);
	for (; count; count--, table += size)
		regex->names[table[0] << 8 | table[1]] = (const char *)table + 2;
}

struct regex *regex_new(const char *pattern, unsigned flags, struct error *err)
{
	pcre2_code *code = compile(pattern, flags, 0, err);
	if (!code)
		return NULL;
	uint32_t groups = 0;
	pcre2_pattern_info(code, PCRE2_INFO_CAPTURECOUNT, &groups);
	if (groups > REGEX_GROUPS_MAX) {
		pcre2_code_free(code);
		error_set(err, ERROR_CONFIG, "the regular expression has more than %d groups",
			  REGEX_GROUPS_MAX);
		return NULL;
	}
	struct regex *regex = memory_new(sizeof *regex);
	regex->code = code;
	regex->groups = groups;
	find_names(regex);
	return regex;
}

void regex_unref(struct regex **regex)
{
	if (!*regex)
		return;
	pcre2_code_free((*regex)->code);
	memory_free(*regex);
	*regex = NULL;
}

unsigned regex_groups(const struct regex *regex)
{
	return regex->groups;
}

const char *regex_group_name(const struct regex *regex, unsigned group)
{
	assert(group <= REGEX_GROUPS_MAX);
	return regex->names[group];
}

struct regex_memory *regex_memory_new(void)
{
	struct regex_memory *memory = memory_new(sizeof *memory);
	memory->match = pcre2_match_data_create(REGEX_GROUPS_MAX + 1, NULL);
	memory->limits = pcre2_match_context_create(NULL);
	assert(memory->match && memory->limits);
	pcre2_set_depth_limit(memory->limits, DEPTH_LIMIT);
	pcre2_set_heap_limit(memory->limits, HEAP_LIMIT_KIB);
	memory->offsets = pcre2_get_ovector_pointer(memory->match);
	return memory;
}

void regex_memory_unref(struct regex_memory **memory)
{
	if (!*memory)
		return;
	pcre2_match_data_free((*memory)->match);
	pcre2_match_context_free((*memory)->limits);
	memory_free(*memory);
	*memory = NULL;
}

enum regex_result regex_find(const struct regex *regex, struct regex_memory *memory,
			     struct view text, size_t from)
{
	if (text.len > REGEX_TEXT_MAX)
		return REGEX_ERROR;
	size_t steps = STEPS_MIN + STEPS_PER_BYTE * text.len;
	pcre2_set_match_limit(memory->limits, steps < MATCH_LIMIT ? (uint32_t)steps : MATCH_LIMIT);
	int found =
		pcre2_match(regex->code, text.at, text.len, from, 0, memory->match, memory->limits);
	memory->groups = found > 0 ? (unsigned)found : 0;
	if (found > 0)
		return REGEX_YES;
	return found == PCRE2_ERROR_NOMATCH ? REGEX_NO : REGEX_ERROR;
}

struct regex_span regex_group(const struct regex_memory *memory, unsigned group)
{
	const size_t *pair = memory->offsets + 2 * group;
	if (group >= memory->groups || pair[0] == PCRE2_UNSET || pair[0] > pair[1])
		return (struct regex_span){ 0 };
	return (struct regex_span){ pair[0], pair[1], true };
}

static int count_step(pcre2_callout_block *block, void *context)
{
	(void)block;
	unsigned *steps = context;
	return ++*steps > COST_STEPS ? PCRE2_ERROR_CALLOUT : 0;
}

/* All matches of a text, as a scan looks for them; false when that takes too many steps. */
static bool cheap_on(const pcre2_code *code, struct regex_memory *memory, const uint8_t *text,
		     size_t len)
{
	unsigned steps = 0;
	pcre2_set_callout(memory->limits, count_step, &steps);
	for (size_t from = 0; from <= len;) {
		int found = pcre2_match(code, text, len, from, 0, memory->match, memory->limits);
		if (found == PCRE2_ERROR_NOMATCH)
			return true;
		if (found < 0)
			return false;
		from = memory->offsets[1] > from ? memory->offsets[1] : from + 1;
	}
	return true;
}

/* A unit repeated, then an end that no plain class expects. */
static bool cheap_on_unit(const pcre2_code *code, struct regex_memory *memory, const char *unit,
			  size_t unit_len)
{
	static const char ends[] = { 0, '\x01', '\n' };
	uint8_t text[COST_TEXT];
	for (size_t i = 0; i < sizeof text; i++)
		text[i] = (uint8_t)unit[i % unit_len];
	for (size_t i = 0; i < sizeof ends; i++) {
		if (ends[i])
			text[sizeof text - 1] = (uint8_t)ends[i];
		if (!cheap_on(code, memory, text, sizeof text))
			return false;
	}
	return true;
}

static bool cheap(const pcre2_code *code, struct regex_memory *memory, const char *pattern)
{
	static const char *const units[] = { "a",  "A",  "0",  "7",  " ",  ".",  "-",
					     "/",  ":",  "@",  "_",  "%",  "=",  "+",
					     "\\", "a.", "a-", "a/", "a@", "a ", "0.",
					     "0-", "0:", "aA", "a0", "ab", "a,", "a=b&" };
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (!cheap_on_unit(code, memory, units[i], strlen(units[i])))
			return false;
	/* What the pattern itself speaks of: its characters and its neighbouring pairs. */
	bool seen[256] = { false };
	for (const char *c = pattern; *c; c++) {
		if (!seen[(uint8_t)*c] && !cheap_on_unit(code, memory, c, 1))
			return false;
		seen[(uint8_t)*c] = true;
		if (isalnum((unsigned char)c[0]) && isalnum((unsigned char)c[1]) &&
		    !cheap_on_unit(code, memory, c, 2))
			return false;
	}
	return true;
}

bool regex_check_cost(const char *pattern, unsigned flags, struct error *err)
{
	pcre2_code *code =
		compile(pattern, flags,
			PCRE2_AUTO_CALLOUT | PCRE2_NO_START_OPTIMIZE | PCRE2_NO_AUTO_POSSESS, err);
	if (!code)
		return false;
	struct regex_memory *memory = regex_memory_new();
	pcre2_set_match_limit(memory->limits, 10 * COST_STEPS);
	uint32_t empty = 0;
	pcre2_pattern_info(code, PCRE2_INFO_MATCHEMPTY, &empty);
	bool ok = true;
	if (empty && flags & REGEX_NOT_EMPTY)
		ok = error_set(err, ERROR_CONFIG, "the pattern must not match the empty string");
	else if (!cheap(code, memory, pattern))
		ok = error_set(err, ERROR_CONFIG,
			       "the pattern is too expensive: on a hostile string it takes more "
			       "than %d steps per byte; limit its repetitions, or begin it "
			       "with a literal",
			       COST_STEPS / COST_TEXT);
	regex_memory_unref(&memory);
	pcre2_code_free(code);
	return ok;
}
