/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "processors/pii_scan.h"

#include <assert.h>

/* The tables of an engine, from the rows of the detectors that are used. */
#define MANY_RULES 16 /* of one detector */

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
	return place >= rule->literal_len || byte == (uint8_t)rule->literal[place];
}

/* May the byte follow the pair? The run of a number goes on, unless it may have one digit. */
static bool is_behind(const struct pii_rule *rule, uint8_t byte)
{
	bool goes_on = pii_is(byte, rule->run_kind == PII_RUN_HEX ? PII_HEX : PII_DIGIT);
	if (rule->runs && (goes_on || !(rule->runs & PII_RUN(1))))
		return goes_on;
	return is_anchor(rule, rule->behind, rule->back + 1u, byte);
}

static void add_rule(pii_rule_set *set, size_t rule)
{
	(*set)[rule / 64] |= 1ull << rule % 64;
}

/* The rule's bit in the tables that lead to it. */
static void form_anchor(struct pii_engine *engine, size_t index)
{
	const struct pii_rule *rule = engine->rules[index].rule;
	for (int i = 0; i < 256; i++) {
		struct pii_meaning *byte = &engine->meanings[i];
		if (is_anchor(rule, rule->before, rule->back - 1u, (uint8_t)i))
			add_rule(&byte->before, index);
		if (is_anchor(rule, rule->first, rule->back, (uint8_t)i))
			add_rule(&byte->first, index);
		if (is_behind(rule, (uint8_t)i))
			add_rule(&byte->behind, index);
		if (is_anchor(rule, rule->prior, rule->back - 2u, (uint8_t)i))
			add_rule(&engine->prior[i], index);
		if (is_anchor(rule, rule->next, rule->back + 2u, (uint8_t)i))
			add_rule(&engine->next[i], index);
	}
}

/* And in those of the rules that have runs. */
static void form_runs(struct pii_run_rules *rules, const struct pii_rule *rule, uint64_t bit)
{
	bool is_hex = rule->run_kind == PII_RUN_HEX;
	uint64_t *first = is_hex ? rules->hex : rules->digits,
		 *second = is_hex ? rules->second_hex : rules->second_digits;
	rules->any |= bit;
	for (int run = 0; run <= PII_RUN_MAX; run++) {
		first[run] |= !run || rule->runs & PII_RUN(run) ? bit : 0;
		second[run] |= !rule->second || rule->second & PII_RUN(run) ? bit : 0;
	}
	for (int i = 0; i < 256; i++) {
		rules->behind[i] |= !rule->behind || is_in_set(rule->behind, (uint8_t)i) ? bit : 0;
		rules->mark[i] |= !rule->mark || is_in_set(rule->mark, (uint8_t)i) ? bit : 0;
	}
}

/* The rule's bit where a string has what it needs. */
static void form_enough(struct pii_enough *enough, const struct pii_rule *rule, size_t index)
{
	const struct pii_needs *needs = &rule->needs;
	const unsigned counts[] = { needs->digits, needs->dots, needs->colons, needs->dashes };
	const unsigned all = (1 << PII_CLASS_BITS) - 1;
	assert(needs->length <= PII_LENGTH_MAX);
	for (size_t length = needs->length; length <= PII_LENGTH_MAX; length++)
		add_rule(&enough->length[length], index);
	for (int lane = 0; lane < 4; lane++) {
		assert(counts[lane] <= PII_COUNTED_MAX);
		for (unsigned count = counts[lane]; count <= PII_COUNTED_MAX; count++)
			add_rule(&enough->counts[lane][count], index);
	}
	for (int part = 0; part < 3; part++) {
		unsigned wanted = needs->classes >> part * PII_CLASS_BITS & all,
			 barred = rule->unless >> part * PII_CLASS_BITS & all;
		for (unsigned has = 0; has <= all; has++)
			if ((has & wanted) == wanted && !(has & barred))
				add_rule(&enough->classes[part][has], index);
	}
}

static void form_literal(struct pii_active_rule *active)
{
	active->literal = active->rule->literal;
	active->literal_len = active->rule->literal_len;
	size_t len = active->literal_len < 8 ? active->literal_len : 8;
	memset(&active->mask, 0xff, len);
	memcpy(&active->start, active->literal, len);
}

/* What a call of a rule costs that does not say it. */
#define EFFORT_CALL 150

static void form_rule(struct pii_engine *engine, int detector, const struct pii_rule *rule)
{
	size_t index = engine->rule_count++;
	assert(index < PII_RULES_MAX);
	engine->rules[index] = (struct pii_active_rule){
		.rule = rule,
		.find = rule->find,
		.back = rule->back,
		.effort = rule->effort ? rule->effort : EFFORT_CALL,
		.detector = (uint8_t)detector,
	};
	if (!rule->first)
		form_literal(&engine->rules[index]);
	form_anchor(engine, index);
	form_enough(&engine->enough, rule, index);
	if (rule->runs)
		form_runs(&engine->run_rules[index / 64], rule, 1ull << index % 64);
	for (int role = 0; role < ROLE_COUNT; role++)
		if (engine->actions[role][detector] != PII_LEAVE) {
			add_rule(&engine->rules_of[role], index);
			add_rule(&engine->rules_with[role][engine->actions[role][detector]], index);
		}
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
	engine->effort = PII_EFFORT;
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
