/* SPDX-License-Identifier: Apache-2.0 */
#include "processors/pii_scan.h"
#include "base/digest.h"
#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>

#define FOUND_MAX 512 /* hits in one text; more, and all of it is masked */
#define TOKEN_BYTES 8 /* of an HMAC in a token */
#define OUT_MAX (1 << 20)

static const char token_prefix[] = "hash_";
#define TOKEN_LEN (sizeof token_prefix - 1 + 2 * TOKEN_BYTES)

struct pii_found {
	size_t count;
	bool whole; /* too many, or an engine gave up: the text goes as a whole */
	uint8_t action; /* the strongest that hit */
	uint64_t hits;
	struct part {
		size_t start, end;
		uint8_t action;
		bool name; /* in a path */
	} parts[FOUND_MAX];
};

static bool compile(struct pii_engine *engine, enum pii_detector detector,
		    const struct pii_rule *rule, const char *pattern, struct error *err)
{
	struct pii_compiled *compiled = &engine->rules[engine->rule_count];
	compiled->regex = regex_new(pattern, rule ? REGEX_BYTES : 0, err);
	compiled->detector = detector;
	compiled->rule = rule;
	if (rule)
		compiled->needs = rule->needs;
	if (rule && rule->literal)
		compiled->needs.pairs = pii_summary(view_of(rule->literal)).pairs;
	if (!compiled->regex)
		return false;
	engine->rule_count++;
	return true;
}

/* Roles with equal actions share a class, named by the first of them. */
static void form_classes(struct pii_engine *engine)
{
	for (int role = 0; role < ROLE_COUNT; role++) {
		int class = 0;
		while (memcmp(engine->actions[class], engine->actions[role],
			      sizeof engine->actions[role]) != 0)
			class++;
		engine->class_of[role] = (uint8_t)class;
		for (int i = 0; i < PII_DETECTORS_MAX; i++)
			engine->active[class] |= engine->actions[class][i] != PII_LEAVE;
	}
}

bool pii_engine_init(struct pii_engine *engine, char *const *patterns, size_t count, struct error *err)
{
	assert(count <= PII_DETECTORS_MAX - PII_PATTERNS);
	engine->rules = memory_array(pii_rule_count + count, sizeof *engine->rules);
	form_classes(engine);
	for (size_t i = 0; i < pii_rule_count; i++)
		if (!compile(engine, pii_rules[i].detector, &pii_rules[i], pii_rules[i].pattern, err))
			return false;
	for (size_t i = 0; i < count; i++)
		if (!compile(engine, (enum pii_detector)(PII_PATTERNS + i), NULL, patterns[i], err))
			return false;
	return true;
}

void pii_engine_fini(struct pii_engine *engine)
{
	for (size_t i = 0; i < engine->rule_count; i++)
		regex_unref(&engine->rules[i].regex);
	memory_free(engine->rules);
}

static uint8_t stronger(uint8_t a, uint8_t b)
{
	return a > b ? a : b;
}

static void add_part(struct pii_found *found, const struct pii_compiled *rule, uint8_t action,
		     struct regex_span span)
{
	found->hits |= 1ull << rule->detector;
	found->action = stronger(action, found->action);
	if (found->count == FOUND_MAX) {
		found->whole = true;
		return;
	}
	found->parts[found->count++] = (struct part){
		.start = span.start,
		.end = span.end,
		.action = action,
		.name = rule->detector == PII_HOME_DIRECTORY || rule->detector == PII_WORKSPACE,
	};
}

/* All hits of one rule. */
static void run_rule(const struct pii_compiled *rule, struct regex_memory *memory, struct view text,
		     uint8_t action, struct pii_found *found)
{
	for (size_t from = 0; from < text.len && !found->whole;) {
		enum regex_result result = regex_find(rule->regex, memory, text, from);
		if (result == REGEX_NO)
			return;
		if (result == REGEX_ERROR) {
			add_part(found, rule, action, (struct regex_span){ 0 });
			found->whole = true;
			return;
		}
		struct regex_span whole = regex_group(memory, 0), span = whole;
		if (rule->rule && regex_group(memory, 1).set)
			span = regex_group(memory, 1);
		bool hit = span.end > span.start;
		if (hit && rule->rule && rule->rule->confirm)
			hit = rule->rule->confirm(text, &span);
		if (hit)
			add_part(found, rule, action, span);
		/* What was no hit may hide one that begins a little later. */
		size_t next = hit ? span.end : whole.start + 1;
		from = next > from ? next : from + 1;
	}
}

static void run_rules(const struct pii_engine *engine, struct pii_scratch *scratch,
		      const uint8_t *actions, struct view text, bool select)
{
	struct pii_summary summary = pii_summary(text);
	struct pii_found *found = scratch->found;
	for (size_t i = 0; i < engine->rule_count && !found->whole; i++) {
		const struct pii_compiled *rule = &engine->rules[i];
		uint8_t action = actions[rule->detector];
		if (action == PII_LEAVE ||
		    (select && !pii_can_match(&summary, &rule->needs)))
			continue;
		if (text.len <= REGEX_TEXT_MAX) {
			run_rule(rule, scratch->regex, text, action, found);
		} else {
			found->hits = 1ull << PII_TOO_LONG;
			found->action = stronger(action, found->action);
		}
	}
	found->whole |= found->hits >> PII_TOO_LONG & 1;
}

static int compare_parts(const void *a, const void *b)
{
	const struct part *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->end < y->end) - (x->end > y->end); /* the longest first */
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
	qsort(found->parts, found->count, sizeof *found->parts, compare_parts);
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
static void add_token(struct bytes *out, struct view key, struct view text)
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
		add_token(out, engine->hmac_key, text);
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
	/* Nothing that replace adds can be refused: FOUND_MAX tokens and a text that was searched. */
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
	run_rules(engine, scratch, engine->actions[role], text, select);
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
	return (struct pii_verdict){ PII_CHANGED, entry->hits,
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
