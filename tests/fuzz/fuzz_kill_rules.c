/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/kill_rules.h"

#include <stdlib.h>

/* A file of the kill switch is refused with a line, or becomes rules that are found again when they
 * are printed and parsed. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check_again(const struct kill_rules *rules)
{
	struct error err = { 0 };
	struct bytes text;
	bytes_init(&text, (size_t)16 << 20);
	for (uint32_t i = 0; i < rules->count; i++) {
		kill_rule_print(&rules->at[i], &text);
		bytes_add_byte(&text, '\n');
	}
	struct kill_rules *again = kill_rules_parse(bytes_view(&text), &err);
	if (!again || again->count != rules->count)
		abort();
	for (uint32_t i = 0; i < rules->count; i++)
		if (!kill_rules_has(again, &rules->at[i]))
			abort();
	kill_rules_unref(&again);
	bytes_fini(&text);
}

static void check_decisions(const struct kill_rules *rules)
{
	for (uint32_t i = 0; i < rules->count; i++) {
		const struct kill_rule *r = &rules->at[i];
		struct view name = r->name ? view_of(r->name) : (struct view){ 0 };
		struct view service = r->service ? view_of(r->service) : (struct view){ 0 };
		if (r->scope == KILL_TENANT_SERVICE && !r->allow &&
		    !kill_rules_data(rules, name, service))
			abort();
		if (r->scope == KILL_DESTINATION && !r->allow &&
		    !kill_rules_destination(rules, r->name))
			abort();
		/* what is killed before it is decoded is killed for every service */
		if (kill_rules_request(rules, name, true) && !kill_rules_data(rules, name, service))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct error err = { 0 };
	struct kill_rules *rules = kill_rules_parse((struct view){ data, len }, &err);
	if ((rules == NULL) != (err.kind == ERROR_CONFIG))
		abort();
	if (!rules)
		return 0;
	check_again(rules);
	check_decisions(rules);
	struct kill_rules *both = kill_rules_join(rules, rules);
	if (both->count != 2 * rules->count || kill_rules_total(both) != kill_rules_total(rules))
		abort();
	kill_rules_unref(&both);
	kill_rules_unref(&rules);
	return 0;
}
