/* SPDX-License-Identifier: Apache-2.0 */
#include "processors/pii_scan.h"
#include "base/memory.h"
#include "processors/pii_found.h"

#include <assert.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define OUT_MAX (1 << 20)

/* All hits of one of the operator's patterns. */
static void run_pattern(const struct regex *pattern, unsigned detector, struct regex_memory *memory,
			struct view text, uint8_t action, struct pii_found *found)
{
	for (size_t from = 0; from < text.len && !found->whole;) {
		enum regex_result result = regex_find(pattern, memory, text, from);
		if (result == REGEX_NO)
			return;
		struct regex_span span =
			result == REGEX_YES ? regex_group(memory, 0) : (struct regex_span){ 0 };
		if (result == REGEX_ERROR || span.end > span.start)
			pii_found_add(found, detector, action, &text, &span);
		if (result == REGEX_ERROR)
			found->whole = true;
		from = span.end > from ? span.end : from + 1;
	}
}

/*
 * One text and the rules that may match in it; `from` says from where on each may. A rule that has
 * nothing to find for a while is not awake: its anchors are passed over.
 */
#define SLEEP_MIN 12 /* bytes; for fewer, the check of `from` is enough */

/* The effort of a step, as measured: a byte that is read; the three bytes of an anchor; its rules
 * when the bytes beside it fit; one that does not fit after all; their runs; a match; a rule that
 * falls asleep. */
#define EFFORT_BYTE 26
#define EFFORT_BYTES 28
#define EFFORT_PLACE 38
#define EFFORT_OTHER 22
#define EFFORT_RUNS 70
#define EFFORT_MATCH 245
#define EFFORT_SLEEP 30

struct scan {
	const struct pii_engine *engine;
	const uint8_t *actions;
	struct pii_found *found;
	struct view text;
	pii_rule_set rules, awake;
	size_t wake; /* where the next rule wakes up */
	struct pii_seen seen;
	struct regex_span span;
	uint32_t from[PII_RULES_MAX];
};

static void wake_rules(struct scan *s, size_t at)
{
	s->wake = SIZE_MAX;
	for (unsigned word = 0; word < PII_RULE_WORDS; word++)
		for (uint64_t left = s->rules[word] & ~s->awake[word]; left; left &= left - 1) {
			size_t from = s->from[word * 64 + (unsigned)__builtin_ctzll(left)];
			if (from <= at)
				s->awake[word] |= left & -left;
			else if (from < s->wake)
				s->wake = from;
		}
}

static __attribute__((noinline)) void add_found(struct scan *s, unsigned index)
{
	unsigned detector = s->engine->rules[index].detector;
	pii_spend(&s->seen.runs, EFFORT_MATCH);
	pii_found_add(s->found, detector, s->actions[detector], &s->text, &s->span);
	if (s->seen.from < s->span.end)
		s->seen.from = s->span.end;
}

/* A rule finds nothing before seen.from. */
static inline void let_sleep(struct scan *s, unsigned index, size_t anchor)
{
	size_t from = s->seen.from;
	pii_spend(&s->seen.runs, EFFORT_SLEEP);
	s->from[index] = (uint32_t)from;
	if (from < anchor + SLEEP_MIN)
		return;
	s->awake[index / 64] &= ~(1ull << index % 64);
	if (from < s->wake)
		s->wake = from;
}

/* The comparison of eight bytes decides about the first eight of the literal. */
static inline bool has_literal(struct view text, size_t at, const struct pii_active_rule *rule)
{
	uint64_t bytes;
	memcpy(&bytes, text.at + at, sizeof bytes);
	return (bytes & rule->mask) == rule->start &&
	       (rule->literal_len <= sizeof bytes ||
		pii_has_at(text, at, rule->literal, rule->literal_len));
}

static inline __attribute__((always_inline)) void try_rule(struct scan *s, unsigned index,
							   size_t anchor)
{
	const struct pii_active_rule *active = &s->engine->rules[index];
	size_t at = anchor - active->back, from = s->from[index];
	if (anchor < active->back + from ||
	    (active->literal_len && !has_literal(s->text, at, active))) {
		pii_spend(&s->seen.runs, EFFORT_OTHER);
		return;
	}
	s->seen.from = from;
	if (!pii_spend(&s->seen.runs, active->effort))
		return;
	if (active->find(active->rule, s->text, at, &s->seen, &s->span))
		add_found(s, index);
	if (s->seen.from > from)
		let_sleep(s, index, anchor);
}

/* Which of the bytes that begin here are digits and hex digits: a bit for each. */
#define SHAPE_BYTES 16 /* two runs and the byte between */

struct shape {
	uint32_t digits, hex;
};

static inline struct shape shape_at(const uint8_t *at)
{
#ifdef __SSE2__
	/* Signed bytes: what counts is moved to the lowest ones. */
	__m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
	__m128i digits = _mm_add_epi8(bytes, _mm_set1_epi8((char)(0x80 - '0')));
	__m128i letters = _mm_add_epi8(_mm_or_si128(bytes, _mm_set1_epi8(0x20)),
				       _mm_set1_epi8((char)(0x80 - 'a')));
	digits = _mm_cmplt_epi8(digits, _mm_set1_epi8((char)(0x80 + 10)));
	letters = _mm_cmplt_epi8(letters, _mm_set1_epi8((char)(0x80 + 6)));
	return (struct shape){ (uint32_t)_mm_movemask_epi8(digits),
			       (uint32_t)_mm_movemask_epi8(_mm_or_si128(digits, letters)) };
#else
	struct shape shape = { 0, 0 };
	for (unsigned i = 0; i < SHAPE_BYTES; i++) {
		shape.digits |= (uint32_t)pii_is(at[i], PII_DIGIT) << i;
		shape.hex |= (uint32_t)pii_is(at[i], PII_HEX) << i;
	}
	return shape;
#endif
}

/* The length of the run that begins with the lowest bit; at most PII_RUN_MAX. */
static inline unsigned run_length(uint32_t shape)
{
	return (unsigned)__builtin_ctz(~shape | 1u << PII_RUN_MAX);
}

/* Of the rules that have runs, those that the runs at `at` and what is behind them fit. Behind
 * digits that a rule is about stands no letter. A number that begins with a parenthesis has no run.
 */
static inline uint64_t fit_runs(const struct scan *s, uint64_t rules, const uint8_t *at,
				unsigned word)
{
	static_assert(2 * PII_RUN_MAX + 1 <= SHAPE_BYTES, "two runs");
	const struct pii_run_rules *fit = &s->engine->run_rules[word];
	struct shape shape = shape_at(at);
	unsigned first = run_length(shape.hex), second = run_length(shape.digits);
	uint64_t digits = second == first ? rules & fit->digits[first] : 0;
	uint64_t hex = rules & fit->hex[first];
	if (first == 0 || first == PII_RUN_MAX)
		return digits | hex;
	rules = (digits | hex) & fit->behind[at[first]];
	if (!rules)
		return 0;
	second = run_length(shape.hex >> (first + 1));
	at += first + 1;
	if (rules & hex)
		hex &= fit->second_hex[second] & fit->mark[at[second]];
	if (rules & digits) {
		second = run_length(shape.digits >> (first + 1));
		digits &= fit->second_digits[second] & fit->mark[at[second]];
	}
	return rules & (digits | hex);
}

/* Calls the functions of the rules of a word whose anchor is at `at`, if the run there fits. */
static inline __attribute__((always_inline)) void try_rules(struct scan *s, uint64_t rules,
							    size_t at, unsigned word)
{
	uint64_t measured = rules & s->engine->run_rules[word].any;
	if (measured) {
		pii_spend(&s->seen.runs, EFFORT_RUNS);
		rules = (rules & ~measured) | fit_runs(s, measured, s->text.at + at, word);
	}
	for (; rules; rules &= rules - 1)
		try_rule(s, word * 64 + (unsigned)__builtin_ctzll(rules), at);
}

static inline bool is_none(pii_rule_set rules)
{
	return !(rules[0] | rules[1]);
}

static __attribute__((noinline)) void try_fitting(struct scan *s, pii_rule_set found, size_t at)
{
	static_assert(PII_RULE_WORDS == 2, "each is tried");
	pii_spend(&s->seen.runs, EFFORT_PLACE);
	if (found[0])
		try_rules(s, found[0], at, 0);
	if (found[1])
		try_rules(s, found[1], at, 1);
}

/* Of the rules whose three bytes are around `at`, those that the bytes beside these fit. Not
 * inline, for the loop that calls it needs the registers, and mostly none fits. */
static __attribute__((noinline)) void try_words(struct scan *s, pii_rule_set found, size_t at)
{
	pii_spend(&s->seen.runs, EFFORT_BYTES);
	found &= s->engine->prior[pii_at(s->text, at - 2)] &
		 s->engine->next[pii_at(s->text, at + 2)];
	if (!is_none(found))
		try_fitting(s, found, at);
}

/* A rule is called when the byte behind its pair has been seen, or the NUL behind the string, and
 * the bytes beside these three fit. Stops when no effort is left. */
static void run_rules(struct scan *s)
{
	const struct pii_meaning *meanings = s->engine->meanings;
	const uint8_t *text = s->text.at;
	pii_rule_set before = meanings[0].before, pair = { 0 }, found;
	for (size_t at = 0, end; at <= s->text.len;) {
		end = s->wake <= s->text.len ? s->wake : s->text.len + 1;
		for (; at < end; at++) {
			const struct pii_meaning *byte = &meanings[text[at]];
			found = pair & byte->behind & s->awake;
			pair = before & byte->first;
			before = byte->before;
			if (is_none(found))
				continue;
			try_words(s, found, at - 1);
			if (s->seen.runs.effort < 0)
				return;
			end = s->wake < end ? s->wake : end;
		}
		if (at >= s->wake)
			wake_rules(s, at);
	}
}

static inline size_t at_most(size_t number, size_t max)
{
	return number < max ? number : max;
}

/* The rules that the string has enough for. */
static pii_rule_set rules_enough(const struct pii_enough *enough, const struct pii_summary *has)
{
	static_assert(PII_CLASSES <= 3 * PII_CLASS_BITS, "in three parts");
	const unsigned all = (1 << PII_CLASS_BITS) - 1;
	pii_rule_set rules = enough->length[at_most(has->length, PII_LENGTH_MAX)];
#pragma GCC unroll 4
	for (unsigned lane = 0; lane < 4; lane++)
		rules &= enough->counts[lane][at_most(has->counts >> 16 * lane & PII_COUNT_MAX,
						      PII_COUNTED_MAX)];
	for (unsigned part = 0; part < 3; part++)
		rules &= enough->classes[part][has->classes >> part * PII_CLASS_BITS & all];
	return rules;
}

/* The rules of a role that could match; without `select`, all of them. */
static pii_rule_set select_rules(const struct pii_engine *engine, enum site_role role,
				 struct view text, bool select)
{
	pii_rule_set rules;
	struct pii_summary summary = pii_summary(engine->meanings, text, &rules);
	return select ? rules & engine->rules_of[role] & rules_enough(&engine->enough, &summary)
		      : engine->rules_of[role];
}

/* Without the rules whose literal is missing. */
static pii_rule_set without_missing(const struct pii_engine *engine, struct view text,
				    pii_rule_set rules)
{
	for (size_t i = 0; i < engine->rule_count; i++) {
		const char *literal = engine->rules[i].rule->literal;
		if ((rules[i / 64] >> i % 64 & 1) && literal &&
		    !memmem(text.at, text.len, literal, strlen(literal)))
			rules[i / 64] &= ~(1ull << i % 64);
	}
	return rules;
}

/* The strongest action of the detectors of these rules. */
static uint8_t strongest(const struct pii_engine *engine, enum site_role role, pii_rule_set rules)
{
	uint8_t action = PII_DROP;
	while (action > PII_LEAVE && is_none(rules & engine->rules_with[role][action]))
		action--;
	return action;
}

static struct view with_margins(uint8_t *room, struct view text)
{
	uint8_t *copy = room + PII_MARGIN;
	if (text.len)
		memcpy(copy, text.at, text.len);
	memset(copy + text.len, 0, PII_MARGIN);
	return (struct view){ copy, text.len };
}

/* What the rules may cost. A short string leaves them what fewer bytes cost to read. */
static int64_t effort_of(const struct pii_engine *engine, size_t len)
{
	size_t missing = len < PII_EFFORT_MIN ? PII_EFFORT_MIN - len : 0;
	return (int64_t)(engine->effort * (len + missing) + EFFORT_BYTE * missing);
}

/* False: it would take more effort than a string is worth. */
static bool search_rules(const struct pii_engine *engine, struct pii_found *found, struct view text,
			 const uint8_t *actions, pii_rule_set rules)
{
	struct scan s;
	s.engine = engine;
	s.actions = actions;
	s.found = found;
	s.text = with_margins(found->text, text);
	s.rules = s.awake = rules;
	s.wake = SIZE_MAX;
	s.seen.runs.count = 0;
	s.seen.escape = SIZE_MAX;
	s.seen.runs.effort = effort_of(engine, text.len);
	for (unsigned word = 0; word < PII_RULE_WORDS; word++)
		if (rules[word])
			memset(s.from + word * 64, 0, 64 * sizeof *s.from);
	run_rules(&s);
	return s.seen.runs.effort >= 0;
}

static void search(const struct pii_engine *engine, struct pii_scratch *scratch,
		   enum site_role role, struct view text, bool select)
{
	struct pii_found *found = scratch->found;
	const uint8_t *actions = engine->actions[role];
	pii_rule_set rules = select_rules(engine, role, text, select);
	bool too_long = text.len > REGEX_TEXT_MAX;
	if (too_long)
		rules = without_missing(engine, text, rules);
	else if (!is_none(rules))
		too_long = !search_rules(engine, found, text, actions, rules);
	if (too_long)
		found->action = strongest(engine, role, rules);
	for (size_t i = 0; i < engine->pattern_count; i++) {
		unsigned detector = PII_PATTERNS + (unsigned)i;
		if (actions[detector] != PII_LEAVE && too_long)
			found->action = pii_stronger(actions[detector], found->action);
		else if (actions[detector] != PII_LEAVE && !found->whole)
			run_pattern(engine->patterns[i], detector, scratch->regex, text,
				    actions[detector], found);
	}
	if (too_long && found->action != PII_LEAVE) {
		found->hits |= 1ull << PII_TOO_LONG;
		found->whole = true;
	}
}

struct pii_verdict pii_scan_plain(const struct pii_engine *engine, struct pii_scratch *scratch,
				  enum site_role role, struct view text, bool select)
{
	/* The room for PII_FOUND_MAX tokens and a text that was searched is never refused. */
	static_assert(OUT_MAX >= PII_FOUND_MAX * PII_TOKEN_LEN + REGEX_TEXT_MAX + PII_FOUND_SLACK,
		      "room for every token");
	if (!scratch->found) {
		scratch->found = memory_new(sizeof *scratch->found);
		scratch->regex = regex_memory_new();
		bytes_init(&scratch->out, OUT_MAX);
		bytes_init(&scratch->texts, PII_TEXTS_MAX);
	}
	struct pii_found *found = scratch->found;
	found->count = 0;
	found->hits = 0;
	found->whole = found->tangled = false;
	found->action = PII_LEAVE;
	search(engine, scratch, role, text, select);
	if (!found->hits)
		return (struct pii_verdict){ .outcome = PII_CLEAN };
	if (found->action == PII_DROP)
		return (struct pii_verdict){ PII_DROPPED, found->hits, { 0 } };
	pii_found_replace(found, &engine->hmac, text, &scratch->out);
	return (struct pii_verdict){ PII_CHANGED, found->hits, bytes_view(&scratch->out) };
}

#define LEN_DROPPED UINT32_MAX

static struct pii_verdict recall(const struct pii_scratch *scratch, const struct pii_entry *entry)
{
	if (entry->len == LEN_DROPPED)
		return (struct pii_verdict){ PII_DROPPED, entry->hits, { 0 } };
	return (struct pii_verdict){ PII_CHANGED,
				     entry->hits,
				     { scratch->texts.at + entry->at, entry->len } };
}

/* When the changed texts fill their room, all of them are forgotten. */
static void remember(struct pii_scratch *scratch, struct pii_entry *entry, struct hash128 key,
		     const struct pii_verdict *verdict)
{
	if (!bytes_reserve(&scratch->texts, verdict->text.len)) {
		scratch->texts.len = 0;
		memset(scratch->entries, 0, sizeof scratch->entries);
	}
	*entry = (struct pii_entry){ key, verdict->hits, (uint32_t)scratch->texts.len,
				     (uint32_t)verdict->text.len };
	if (verdict->outcome == PII_DROPPED)
		entry->len = LEN_DROPPED;
	else
		bytes_add(&scratch->texts, verdict->text.at, verdict->text.len);
}

/* The entry of the key; else one for it, whose key is another. */
static struct pii_entry *entry_of(struct pii_scratch *scratch, struct hash128 key)
{
	struct pii_entry *set = scratch->entries[key.low % PII_SETS];
	struct pii_entry *victim = &set[key.high / 2 % PII_WAYS];
	for (struct pii_entry *entry = set; entry < set + PII_WAYS; entry++) {
		if (entry->key.low == key.low && entry->key.high == key.high)
			return entry;
		if (!entry->hits)
			victim = entry;
	}
	return victim;
}

static bool is_clean(const uint64_t *set, uint64_t digest)
{
	bool found = false;
	for (unsigned way = 0; way < PII_CLEAN_WAYS; way++)
		found |= set[way] == digest;
	return found;
}

/* In its favourite place, or the next free one; if there is none, another has to leave. */
static void remember_clean(uint64_t *set, struct hash128 key)
{
	unsigned way = pii_clean_way(key);
	for (unsigned i = 0; set[way] && i < PII_CLEAN_WAYS; i++)
		way = (way + 1) % PII_CLEAN_WAYS;
	set[way] = key.high;
}

struct pii_verdict pii_scan(const struct pii_engine *engine, struct pii_scratch *scratch,
			    enum site_role role, struct view text)
{
	struct hash128 key = pii_key(engine->class_of[role], text);
	uint64_t *clean = scratch->clean[key.low % PII_CLEAN_SETS];
	if (is_clean(clean, key.high))
		return (struct pii_verdict){ .outcome = PII_CLEAN };
	struct pii_entry *entry = entry_of(scratch, key);
	if (entry->key.low == key.low && entry->key.high == key.high)
		return recall(scratch, entry);
	struct pii_verdict verdict = pii_scan_plain(engine, scratch, role, text, true);
	if (verdict.outcome == PII_CLEAN)
		remember_clean(clean, key);
	else
		remember(scratch, entry, key, &verdict);
	return verdict;
}

void pii_scratch_fini(struct pii_scratch *scratch)
{
	regex_memory_unref(&scratch->regex);
	memory_free(scratch->found);
	bytes_fini(&scratch->out);
	bytes_fini(&scratch->texts);
}
