/* SPDX-License-Identifier: Apache-2.0 */
#include "processors/pii_scan.h"
#include "base/memory.h"

#include <assert.h>

#define FOUND_MAX 512 /* hits in one text; more, and all of it is masked */
#define TOKEN_BYTES 8 /* of an HMAC in a token */
#define OUT_MAX (1 << 20)

static const char token_prefix[] = "hash_";
#define TOKEN_LEN (sizeof token_prefix - 1 + 2 * TOKEN_BYTES)

struct pii_found {
	size_t count;
	bool whole;     /* too many, or an engine gave up: the text goes as a whole */
	uint8_t action; /* the strongest that hit */
	uint64_t hits;
	struct part {
		size_t start, end;
		uint8_t action;
		bool name; /* in a path */
	} parts[FOUND_MAX];
};

static uint8_t stronger(uint8_t a, uint8_t b)
{
	return a > b ? a : b;
}

/* Detectors of names in paths. */
#define NAMES (1ull << PII_HOME_DIRECTORY | 1ull << PII_GENERATED_PATH | 1ull << PII_WORKSPACE)

static void add_part(struct pii_found *found, unsigned detector, uint8_t action,
		     struct regex_span span)
{
	found->hits |= 1ull << detector;
	found->action = stronger(action, found->action);
	if (found->count == FOUND_MAX) {
		found->whole = true;
		return;
	}
	found->parts[found->count++] = (struct part){
		.start = span.start,
		.end = span.end,
		.action = action,
		.name = NAMES >> detector & 1,
	};
}

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
			add_part(found, detector, action, span);
		if (result == REGEX_ERROR)
			found->whole = true;
		from = span.end > from ? span.end : from + 1;
	}
}

/*
 * One text and the rules that may match in it; `from` says from where on each may. A rule that has
 * nothing to find for a while is not awake: its anchors are passed over.
 */
#define SLEEP_MIN 8 /* bytes; for fewer, the check of `from` is enough */

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

/* What a rule has found, or has learnt about where it finds nothing. Not inline, as it is rare. */
static __attribute__((noinline)) void settle(struct scan *s, unsigned index, size_t anchor,
					     bool found)
{
	const struct pii_active_rule *active = &s->engine->rules[index];
	if (found) {
		add_part(s->found, active->detector, s->actions[active->detector], s->span);
		if (s->seen.from < s->span.end)
			s->seen.from = s->span.end;
	}
	size_t from = s->seen.from;
	s->from[index] = (uint32_t)from;
	if (from < anchor + SLEEP_MIN)
		return;
	s->awake[index / 64] &= ~(1ull << index % 64);
	if (from < s->wake)
		s->wake = from;
}

/* Where there are eight bytes, their comparison decides about the first eight of the literal. */
static inline bool has_literal(struct view text, size_t at, const struct pii_active_rule *rule)
{
	uint64_t bytes;
	if (at + sizeof bytes > text.len)
		return pii_has_at(text, at, rule->literal, rule->literal_len);
	memcpy(&bytes, text.at + at, sizeof bytes);
	return (bytes & rule->mask) == rule->start &&
	       (rule->literal_len <= sizeof bytes ||
		pii_has_at(text, at, rule->literal, rule->literal_len));
}

static inline void try_rule(struct scan *s, unsigned index, size_t anchor)
{
	const struct pii_active_rule *active = &s->engine->rules[index];
	size_t at = anchor - active->back, from = s->from[index];
	if (anchor < active->back + from)
		return;
	if (active->literal_len && !has_literal(s->text, at, active))
		return;
	s->seen.from = from;
	bool found = active->rule->find(active->rule, s->text, at, &s->seen, &s->span);
	if (found || s->seen.from > from)
		settle(s, index, anchor, found);
}

/* Of the rules that have runs of a kind, those that a run of this length at `at` fits. A number may
 * begin with a parenthesis, and then has none. */
static inline uint64_t fit_run(const struct scan *s, uint64_t rules, size_t at, unsigned word,
			       enum pii_run_kind kind, size_t run)
{
	rules &= s->engine->runs[kind][run][word];
	if (run == 0 || run == PII_RUN_MAX)
		return rules;
	return rules & s->engine->behind_run[pii_byte(s->text, at + run)][word];
}

static inline uint64_t fit_runs(const struct scan *s, uint64_t rules, size_t at, unsigned word)
{
	uint64_t digits = rules & s->engine->measured[PII_RUN_DIGITS][word], hex = rules & ~digits;
	const uint8_t *start = s->text.at + at, *byte = start;
	size_t left = s->text.len - at, run;
	const uint8_t *end = start + (left < PII_RUN_MAX ? left : PII_RUN_MAX);
	while (byte < end && pii_is(*byte, PII_DIGIT))
		byte++;
	run = (size_t)(byte - start);
	if (digits)
		digits = fit_run(s, digits, at, word, PII_RUN_DIGITS, run);
	if (!hex)
		return digits;
	while (byte < end && pii_is(*byte, PII_HEX))
		byte++;
	run = (size_t)(byte - start);
	return digits | fit_run(s, hex, at, word, PII_RUN_HEX, run);
}

/* Calls the functions of the rules of a word whose anchor is at `at`, if the run there fits. Not
 * inline, for the loop that calls it needs the registers. */
static __attribute__((noinline)) void try_rules(struct scan *s, uint64_t rules, size_t at,
						unsigned word)
{
	uint64_t measured = rules & s->engine->any_run[word];
	if (measured)
		rules = (rules & ~measured) | fit_runs(s, measured, at, word);
	for (; rules; rules &= rules - 1)
		try_rule(s, word * 64 + (unsigned)__builtin_ctzll(rules), at);
}

static bool is_none(pii_rule_set rules)
{
	uint64_t any = 0;
	for (unsigned word = 0; word < PII_RULE_WORDS; word++)
		any |= rules[word];
	return !any;
}

static inline void try_words(struct scan *s, pii_rule_set found, size_t at)
{
	uint64_t words[PII_RULE_WORDS];
	memcpy(words, &found, sizeof words);
	for (unsigned word = 0; word < PII_RULE_WORDS; word++)
		if (words[word])
			try_rules(s, words[word], at, word);
}

/* A rule is called when the byte behind its pair has been seen. */
static void run_rules(struct scan *s)
{
	const struct pii_meaning *meanings = s->engine->meanings;
	const uint8_t *text = s->text.at;
	pii_rule_set before = meanings[0].before, pair = { 0 }, found;
	for (size_t at = 0, end; at < s->text.len;) {
		end = s->wake < s->text.len ? s->wake : s->text.len;
		for (; at < end; at++) {
			const struct pii_meaning *byte = &meanings[text[at]];
			found = pair & byte->behind & s->awake;
			pair = before & byte->first;
			before = byte->before;
			if (is_none(found))
				continue;
			try_words(s, found, at - 1);
			end = s->wake < end ? s->wake : end;
		}
		if (at >= s->wake)
			wake_rules(s, at);
	}
	found = pair & meanings[0].behind & s->awake;
	try_words(s, found, s->text.len - 1);
}

static bool can_match(const struct pii_summary *summary, const struct pii_rule *rule)
{
	return !(summary->classes & rule->unless) && pii_can_match(summary, &rule->needs);
}

/* The rules of a role that could match; without `select`, all of them. */
static pii_rule_set select_rules(const struct pii_engine *engine, enum site_role role,
				 struct view text, bool select)
{
	pii_rule_set rules;
	struct pii_summary summary = pii_summary(engine->meanings, text, &rules);
	if (!select)
		return engine->rules_of[role];
	rules &= engine->rules_of[role];
	for (unsigned word = 0; word < PII_RULE_WORDS; word++)
		for (uint64_t left = rules[word]; left; left &= left - 1) {
			unsigned bit = (unsigned)__builtin_ctzll(left);
			if (!can_match(&summary, engine->rules[word * 64 + bit].rule))
				rules[word] &= ~(1ull << bit);
		}
	return rules;
}

/* The strongest action of the detectors of these rules, but of those whose literal is missing. */
static uint8_t strongest(const struct pii_engine *engine, const uint8_t *actions, struct view text,
			 pii_rule_set rules)
{
	uint8_t action = PII_LEAVE;
	for (size_t i = 0; i < engine->rule_count; i++) {
		const char *literal = engine->rules[i].rule->literal;
		if ((rules[i / 64] >> i % 64 & 1) &&
		    (!literal || memmem(text.at, text.len, literal, strlen(literal))))
			action = stronger(actions[engine->rules[i].detector], action);
	}
	return action;
}

static void search_rules(const struct pii_engine *engine, struct pii_found *found, struct view text,
			 const uint8_t *actions, pii_rule_set rules)
{
	struct scan s;
	s.engine = engine;
	s.actions = actions;
	s.found = found;
	s.text = text;
	s.rules = s.awake = rules;
	s.wake = SIZE_MAX;
	s.seen.runs.count = 0;
	for (unsigned word = 0; word < PII_RULE_WORDS; word++)
		if (rules[word])
			memset(s.from + word * 64, 0, 64 * sizeof *s.from);
	run_rules(&s);
}

static void search(const struct pii_engine *engine, struct pii_scratch *scratch,
		   enum site_role role, struct view text, bool select)
{
	struct pii_found *found = scratch->found;
	const uint8_t *actions = engine->actions[role];
	bool too_long = text.len > REGEX_TEXT_MAX;
	pii_rule_set rules = select_rules(engine, role, text, select);
	if (too_long)
		found->action = strongest(engine, actions, text, rules);
	else if (!is_none(rules))
		search_rules(engine, found, text, actions, rules);
	for (size_t i = 0; i < engine->pattern_count; i++) {
		unsigned detector = PII_PATTERNS + (unsigned)i;
		if (actions[detector] != PII_LEAVE && too_long)
			found->action = stronger(actions[detector], found->action);
		else if (actions[detector] != PII_LEAVE && !found->whole)
			run_pattern(engine->patterns[i], detector, scratch->regex, text,
				    actions[detector], found);
	}
	if (too_long && found->action != PII_LEAVE) {
		found->hits = 1ull << PII_TOO_LONG;
		found->whole = true;
	}
}

/* Of two that begin at the same place, the longer one is first. */
static bool is_before(const struct part *a, const struct part *b)
{
	return a->start < b->start || (a->start == b->start && a->end > b->end);
}

/* They are found in the order of their anchors. Each moves only in front of parts that lie between
 * its start and its anchor, where its rule finds nothing else: by insertion, this is linear. */
static void sort_parts(struct pii_found *found)
{
	struct part *parts = found->parts;
	for (size_t i = 1; i < found->count; i++) {
		if (!is_before(&parts[i], &parts[i - 1]))
			continue;
		struct part part = parts[i];
		size_t to = i;
		for (; to && is_before(&part, &parts[to - 1]); to--)
			parts[to] = parts[to - 1];
		parts[to] = part;
	}
}

/* Sorts, widens to whole characters, and joins what overlaps. */
static void join_parts(struct pii_found *found, struct view text)
{
	size_t kept = 0;
	for (size_t i = 0; i < found->count; i++) {
		struct part *part = &found->parts[i];
		while (part->start && (text.at[part->start] & 0xc0) == 0x80)
			part->start--;
		while (part->end < text.len && (text.at[part->end] & 0xc0) == 0x80)
			part->end++;
	}
	sort_parts(found);
	for (size_t i = 0; i < found->count; i++) {
		struct part *part = &found->parts[i];
		struct part *last = kept ? &found->parts[kept - 1] : NULL;
		if (last && part->start < last->end) {
			last->end = part->end > last->end ? part->end : last->end;
			last->action = stronger(part->action, last->action);
			last->name &= part->name;
		} else {
			found->parts[kept++] = *part;
		}
	}
	found->count = kept;
}

/* The same text always becomes the same token, under the same key. */
static uint8_t *put_token(uint8_t *to, const struct digest_key *key, struct view text)
{
	uint8_t digest[DIGEST_SIZE];
	digest_hmac(key, text, digest);
	memcpy(to, token_prefix, sizeof token_prefix - 1);
	digest_hex(digest, TOKEN_BYTES, (char *)to + sizeof token_prefix - 1);
	return to + TOKEN_LEN;
}

static uint8_t *put_replacement(const struct pii_engine *engine, uint8_t *to, struct view text,
				uint8_t action, bool name)
{
	static const char masks[2][sizeof PII_MASK_TEXT] = { PII_MASK_TEXT, PII_NAME_MASK };
	if (action == PII_HASH)
		return put_token(to, &engine->hmac, text);
	memcpy(to, masks[name], sizeof PII_MASK_TEXT);
	return to + (name ? sizeof PII_NAME_MASK : sizeof PII_MASK_TEXT) - 1;
}

static uint8_t *put_view(uint8_t *to, struct view text)
{
	if (text.len)
		memcpy(to, text.at, text.len);
	return to + text.len;
}

/* The room is reserved for all parts at once. */
static void replace(const struct pii_engine *engine, struct pii_scratch *scratch, struct view text)
{
	struct pii_found *found = scratch->found;
	struct bytes *out = &scratch->out;
	size_t at = 0, count = found->whole ? 1 : found->count;
	out->len = 0;
	if (!bytes_reserve(out, count * TOKEN_LEN + (found->whole ? 0 : text.len)))
		assert(!"room for every token");
	uint8_t *to = out->at;
	if (found->whole) {
		to = put_replacement(engine, to, text, found->action, false);
		at = text.len;
	} else {
		join_parts(found, text);
	}
	for (size_t i = 0; i < found->count && !found->whole; i++) {
		const struct part *part = &found->parts[i];
		struct view old = { text.at + part->start, part->end - part->start };
		to = put_view(to, (struct view){ text.at + at, part->start - at });
		to = put_replacement(engine, to, old, part->action, part->name);
		at = part->end;
	}
	to = put_view(to, (struct view){ text.at + at, text.len - at });
	out->len = (size_t)(to - out->at);
}

struct pii_verdict pii_scan_plain(const struct pii_engine *engine, struct pii_scratch *scratch,
				  enum site_role role, struct view text, bool select)
{
	/* The room for FOUND_MAX tokens and a text that was searched is never refused. */
	static_assert(OUT_MAX >= FOUND_MAX * TOKEN_LEN + REGEX_TEXT_MAX, "room for every token");
	if (!scratch->found) {
		scratch->found = memory_new(sizeof *scratch->found);
		scratch->regex = regex_memory_new();
		bytes_init(&scratch->out, OUT_MAX);
		bytes_init(&scratch->texts, PII_TEXTS_MAX);
	}
	struct pii_found *found = scratch->found;
	found->count = 0;
	found->hits = 0;
	found->whole = false;
	found->action = PII_LEAVE;
	search(engine, scratch, role, text, select);
	if (!found->hits)
		return (struct pii_verdict){ .outcome = PII_CLEAN };
	if (found->action == PII_DROP)
		return (struct pii_verdict){ PII_DROPPED, found->hits, { 0 } };
	replace(engine, scratch, text);
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
