/* SPDX-License-Identifier: Apache-2.0 */
#include "processors/pii_scan.h"
#include "base/memory.h"
#include "processors/pii_text.h"

#include <assert.h>
#include <stdlib.h>

#define FOUND_MAX 512 /* hits in one text; more, and all of it is masked */
#define TOKEN_BYTES 8 /* of an HMAC in a token */
#define OUT_MAX (1 << 20)
#define MANY_RULES 16 /* of one detector */

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

/* Is a byte of a set, as struct pii_rule writes them? */
static bool is_in_set(const char *set, uint8_t byte)
{
	bool inverted = *set == '^', found = false;
	for (const char *c = set + inverted; *c && !found; c++) {
		bool range = c[1] == '-' && c[2];
		found = byte >= (uint8_t)c[0] && byte <= (uint8_t)c[range ? 2 : 0];
		c += range ? 2 : 0;
	}
	return found != inverted;
}

/* May the byte stand at a place of the rule's anchor, which is given by a set or by the rule's
 * literal? */
static bool is_anchor(const struct pii_rule *rule, const char *set, unsigned place, uint8_t byte)
{
	if (set || rule->first)
		return !set || is_in_set(set, byte);
	return byte == (uint8_t)rule->literal[place];
}

static void add_rule(pii_rule_set *set, size_t rule)
{
	(*set)[rule / 64] |= 1ull << rule % 64;
}

/* The rule's bit in the tables that lead to it. */
static void form_anchor(struct pii_engine *engine, size_t index)
{
	const struct pii_rule *rule = engine->rules[index];
	for (int i = 0; i < 256; i++) {
		struct pii_meaning *byte = &engine->meanings[i];
		if (is_anchor(rule, rule->before, rule->back - 1u, (uint8_t)i))
			add_rule(&byte->before, index);
		if (is_anchor(rule, rule->first, rule->back, (uint8_t)i))
			add_rule(&byte->first, index);
		if (!rule->runs || is_in_set(rule->behind, (uint8_t)i))
			add_rule(&byte->behind, index);
	}
	for (int run = 1; run <= PII_RUN_MAX; run++)
		if (!rule->runs || rule->runs & PII_RUN(run))
			add_rule(&engine->runs[run], index);
}

static void form_rule(struct pii_engine *engine, int detector, const struct pii_rule *rule)
{
	size_t index = engine->rule_count++;
	assert(index < PII_RULES_MAX);
	engine->rules[index] = rule;
	engine->detector_of[index] = (uint8_t)detector;
	engine->literal_len[index] = rule->literal ? strlen(rule->literal) : 0;
	form_anchor(engine, index);
	for (int role = 0; role < ROLE_COUNT; role++)
		if (engine->actions[role][detector] != PII_LEAVE)
			add_rule(&engine->active_rules[role], index);
}

/* Does the detector do anything, in any role? */
static bool is_used(const struct pii_engine *engine, int detector)
{
	bool used = false;
	for (int role = 0; role < ROLE_COUNT; role++)
		used = used || engine->actions[role][detector] != PII_LEAVE;
	return used;
}

/* Detectors of many rules come last, so that the others are in one word of the set: a string that
 * selects rules of two words is searched twice. Those that are not used would take their places. */
static void form_rules(struct pii_engine *engine)
{
	pii_meanings_init(engine->meanings);
	for (int many = 0; many < 2; many++)
		for (int detector = 0; detector < PII_PATTERNS; detector++) {
			const struct pii_detector_info *info = &pii_detectors[detector];
			for (size_t i = 0; i < info->rule_count; i++)
				if ((info->rule_count > MANY_RULES) == many &&
				    is_used(engine, detector))
					form_rule(engine, detector, &info->rules[i]);
		}
}

/* Roles with equal actions share a class, named by the first of them. */
static void form_classes(struct pii_engine *engine)
{
	for (int role = 0; role < ROLE_COUNT; role++) {
		int class = 0;
		while (memcmp(engine->actions[class], engine->actions[role],
			      sizeof engine->actions[role]) != 0)
			class ++;
		engine->class_of[role] = (uint8_t) class;
		for (int i = 0; i < PII_DETECTORS_MAX; i++)
			engine->active[class] |= engine->actions[class][i] != PII_LEAVE;
	}
}

bool pii_engine_init(struct pii_engine *engine, char *const *patterns, size_t count,
		     struct error *err)
{
	assert(count <= PII_DETECTORS_MAX - PII_PATTERNS);
	engine->patterns = memory_array(count, sizeof *engine->patterns);
	form_classes(engine);
	form_rules(engine);
	for (; engine->pattern_count < count; engine->pattern_count++) {
		struct regex **pattern = &engine->patterns[engine->pattern_count];
		*pattern = regex_new(patterns[engine->pattern_count], 0, err);
		if (!*pattern)
			return false;
	}
	return true;
}

void pii_engine_fini(struct pii_engine *engine)
{
	for (size_t i = 0; i < engine->pattern_count; i++)
		regex_unref(&engine->patterns[i]);
	memory_free(engine->patterns);
}

static uint8_t stronger(uint8_t a, uint8_t b)
{
	return a > b ? a : b;
}

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
		.name = detector == PII_HOME_DIRECTORY || detector == PII_GENERATED_PATH ||
			detector == PII_WORKSPACE,
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

/* One text and the rules of one word of the set that may match in it; `from` says from where on
 * each may. */
struct scan {
	const struct pii_engine *engine;
	const uint8_t *actions;
	struct pii_found *found;
	struct view text;
	unsigned word;
	uint64_t rules;
	size_t from[64];
};

static void try_rule(struct scan *s, unsigned bit, size_t anchor)
{
	unsigned index = s->word * 64 + bit;
	const struct pii_rule *rule = s->engine->rules[index];
	size_t at = anchor - rule->back;
	struct regex_span span;
	if (anchor < rule->back || at < s->from[bit])
		return;
	if (!rule->first && !pii_has_at(s->text, at, rule->literal, s->engine->literal_len[index]))
		return;
	if (rule->find(rule, s->text, at, &s->from[bit], &span)) {
		unsigned detector = s->engine->detector_of[index];
		add_part(s->found, detector, s->actions[detector], span);
		if (s->from[bit] < span.end)
			s->from[bit] = span.end;
	}
}

/* Of the rules whose anchor is the digit at `at`, those that its run of digits fits. */
static uint64_t fit_numbers(const struct scan *s, uint64_t rules, size_t at)
{
	size_t run = pii_run(s->text, at, PII_DIGIT, PII_RUN_MAX);
	rules &= s->engine->runs[run][s->word];
	if (run == PII_RUN_MAX)
		return rules;
	return rules & s->engine->meanings[pii_byte(s->text, at + run)].behind[s->word];
}

static void run_rules(struct scan *s)
{
	const struct pii_meaning *meanings = s->engine->meanings;
	const uint8_t *text = s->text.at;
	size_t len = s->text.len;
	unsigned word = s->word;
	uint64_t before = meanings[0].before[word], rules = s->rules;
	for (size_t i = 0; i < len; i++) {
		const struct pii_meaning *byte = &meanings[text[i]];
		uint64_t found = before & byte->first[word] & rules;
		before = byte->before[word];
		if (!found)
			continue;
		if (text[i] >= '0' && text[i] <= '9')
			found = fit_numbers(s, found, i);
		for (; found; found &= found - 1)
			try_rule(s, (unsigned)__builtin_ctzll(found), i);
	}
}

/* The rules of a role that could match; without `select`, all of them. */
static pii_rule_set select_rules(const struct pii_engine *engine, enum site_role role,
				 struct view text, bool select)
{
	pii_rule_set rules;
	struct pii_summary summary = pii_summary(engine->meanings, text, &rules);
	if (!select)
		return engine->active_rules[role];
	rules &= engine->active_rules[role];
	for (unsigned word = 0; word < PII_RULE_WORDS; word++)
		for (uint64_t left = rules[word]; left; left &= left - 1) {
			unsigned bit = (unsigned)__builtin_ctzll(left);
			if (!pii_can_match(&summary, &engine->rules[word * 64 + bit]->needs))
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
		const char *literal = engine->rules[i]->literal;
		if ((rules[i / 64] >> i % 64 & 1) &&
		    (!literal || memmem(text.at, text.len, literal, engine->literal_len[i])))
			action = stronger(actions[engine->detector_of[i]], action);
	}
	return action;
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
	for (unsigned word = 0; word < PII_RULE_WORDS && !too_long; word++)
		if (rules[word])
			run_rules(&(struct scan){
				engine, actions, found, text, word, rules[word], { 0 } });
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

static int compare_parts(const void *a, const void *b)
{
	const struct part *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->end < y->end) - (x->end > y->end); /* the longest first */
}

/* They are found in the order of their anchors, so most often nothing is to be done. */
static void sort_parts(struct pii_found *found)
{
	size_t i = 1;
	while (i < found->count && compare_parts(&found->parts[i - 1], &found->parts[i]) <= 0)
		i++;
	if (i < found->count)
		qsort(found->parts, found->count, sizeof *found->parts, compare_parts);
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
static void add_token(struct bytes *out, const struct digest_key *key, struct view text)
{
	uint8_t digest[DIGEST_SIZE];
	char hex[2 * TOKEN_BYTES];
	digest_hmac(key, text, digest);
	digest_hex(digest, TOKEN_BYTES, hex);
	bytes_add_text(out, token_prefix);
	bytes_add(out, hex, sizeof hex);
}

static void add_replacement(const struct pii_engine *engine, struct bytes *out, struct view text,
			    uint8_t action, bool name)
{
	if (action == PII_HASH)
		add_token(out, &engine->hmac, text);
	else
		bytes_add_text(out, name ? PII_NAME_MASK : PII_MASK_TEXT);
}

static void replace(const struct pii_engine *engine, struct pii_scratch *scratch, struct view text)
{
	struct pii_found *found = scratch->found;
	struct bytes *out = &scratch->out;
	size_t at = 0;
	out->len = 0;
	if (found->whole) {
		add_replacement(engine, out, text, found->action, false);
		return;
	}
	join_parts(found, text);
	for (size_t i = 0; i < found->count; i++) {
		const struct part *part = &found->parts[i];
		struct view old = { text.at + part->start, part->end - part->start };
		bytes_add(out, text.at + at, part->start - at);
		add_replacement(engine, out, old, part->action, part->name);
		at = part->end;
	}
	bytes_add(out, text.at + at, text.len - at);
}

struct pii_verdict pii_scan_plain(const struct pii_engine *engine, struct pii_scratch *scratch,
				  enum site_role role, struct view text, bool select)
{
	/* Nothing that replace adds can be refused: FOUND_MAX tokens and a text that was searched.
	 */
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
