/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "pipeline/kill_rules.h"

static struct kill_rules *parse(const char *text)
{
	struct error err;
	error_clear(&err);
	struct kill_rules *rules = kill_rules_parse(view_of(text), &err);
	if (!rules)
		print_message("%s\n", err.text);
	assert_non_null(rules);
	return rules;
}

static bool kills(const char *text, const char *tenant, const char *service)
{
	struct kill_rules *rules = parse(text);
	bool kills = kill_rules_data(rules, view_of(tenant), view_of(service)) != NULL;
	kill_rules_unref(&rules);
	return kills;
}

static void the_most_specific_rule_decides(void **state)
{
	static const char rules[] = "kill everything\n"
				    "allow tenant good\n"
				    "kill service noisy # too much\n"
				    "allow tenant vip service noisy\n";
	(void)state;
	assert_true(kills(rules, "any", "any"));
	assert_false(kills(rules, "good", "any"));
	assert_true(kills(rules, "good", "noisy"));
	assert_false(kills(rules, "vip", "noisy"));
	assert_true(kills(rules, "vip", "other"));
	assert_false(kills("", "any", "any"));
	assert_false(kills("kill tenant a", "", "a"));
	assert_false(kills("kill service a", "a", ""));
}

static void names_may_be_quoted(void **state)
{
	(void)state;
	assert_true(kills("kill service \"check out\"", "", "check out"));
	assert_true(kills("kill service \"a#b\"#note", "", "a#b"));
	assert_true(kills("kill service \"a\\\"\\\\\"", "", "a\"\\"));
	assert_true(kills("\tkill  service\ta \r\n", "", "a"));
	assert_true(kills("kill service a#note", "", "a"));
	assert_true(kills("kill tenant \"service\" service b", "service", "b"));
}

static void a_kill_wins_over_an_allow_of_the_same(void **state)
{
	struct kill_rules *file = parse("kill service a\nallow service b"),
			  *admin = parse("allow service a\nkill service b");
	struct kill_rules *all = kill_rules_join(file, admin);
	(void)state;
	assert_int_equal(all->count, 4);
	assert_non_null(kill_rules_data(all, view_of(""), view_of("a")));
	assert_non_null(kill_rules_data(all, view_of(""), view_of("b")));
	kill_rules_unref(&all);
	all = kill_rules_join(NULL, admin);
	assert_null(kill_rules_data(all, view_of(""), view_of("a")));
	kill_rules_unref(&all);
	kill_rules_unref(&file);
	kill_rules_unref(&admin);
}

static bool request(const char *text, const char *tenant, bool final)
{
	struct kill_rules *rules = parse(text);
	bool kills = kill_rules_request(rules, view_of(tenant), final) != NULL;
	kill_rules_unref(&rules);
	return kills;
}

/* Before decoding, only what no service and no attribute can still allow is killed. */
static void a_request_is_killed_early_only_if_nothing_can_allow_it(void **state)
{
	(void)state;
	assert_true(request("kill everything", "", false));
	assert_true(request("kill tenant a", "a", true));
	assert_false(request("kill tenant a", "b", true));
	assert_false(request("kill tenant a\nallow service s", "a", true));
	assert_false(request("kill everything\nallow tenant a", "a", true));
	assert_true(request("kill everything\nallow tenant a", "b", true));
	assert_false(request("kill everything\nallow tenant a", "", false));
	assert_false(request("kill everything\nallow tenant a service s", "b", true));
	assert_false(request("kill service s", "", true));
}

static void destinations_have_their_own_rules(void **state)
{
	struct kill_rules *rules = parse("kill destination *\nallow destination otlp/a\n"
					 "kill service \"*\"");
	(void)state;
	assert_null(kill_rules_destination(rules, "otlp/a"));
	assert_non_null(kill_rules_destination(rules, "otlp/b"));
	kill_rules_unref(&rules);
	rules = parse("kill everything");
	assert_null(kill_rules_destination(rules, "otlp/a"));
	assert_true(kill_rules_total(rules));
	kill_rules_unref(&rules);
	rules = parse("kill everything\nallow service a\nallow destination x");
	assert_false(kill_rules_total(rules));
	assert_true(kill_rules_about_data(rules));
	kill_rules_unref(&rules);
	rules = parse("kill destination a\nallow service a");
	assert_false(kill_rules_about_data(rules));
	kill_rules_unref(&rules);
}

static void a_faulty_line_is_named_and_nothing_of_it_is_repeated(void **state)
{
	static const char *const faulty[] = {
		"stop everything",       "kill",
		"kill planet",           "kill tenant",
		"kill tenant a b",       "kill service",
		"kill everything x",     "\"kill\" everything",
		"kill service \"a",      "kill service \"a\"b",
		"kill service \"a\\n\"", "kill service \x01",
		"kill service \xff",     "kill tenant a service",
		"kill service \"\"",
	};
	(void)state;
	for (size_t i = 0; i < sizeof faulty / sizeof *faulty; i++) {
		struct error err;
		char *text = memory_format("# first\nkill service good\n%s\n", faulty[i]);
		error_clear(&err);
		assert_null(kill_rules_parse(view_of(text), &err));
		assert_int_equal(err.kind, ERROR_CONFIG);
		assert_memory_equal(err.text, "line 3: ", 8);
		assert_null(strstr(err.text, "planet"));
		memory_free(text);
	}
}

static void too_many_rules_are_an_error(void **state)
{
	struct bytes text;
	struct error err;
	(void)state;
	bytes_init(&text, 1 << 20);
	for (int i = 0; i <= KILL_RULES_MAX; i++)
		bytes_format(&text, "kill service s%d\n", i);
	assert_null(kill_rules_parse(bytes_view(&text), &err));
	bytes_fini(&text);
}

static void a_printed_rule_is_the_same_rule(void **state)
{
	static const char *const lines[] = {
		"kill everything",
		"allow tenant a",
		"kill tenant a service b",
		"kill service \"a b\"",
		"kill service \"a\\\\\\\"\"",
		"kill destination otlp_grpc/x",
		"allow destination *",
		"kill destination \"*\"",
	};
	(void)state;
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		struct kill_rules *rules = parse(lines[i]);
		struct bytes out;
		bytes_init(&out, 1000);
		kill_rule_print(&rules->at[0], &out);
		assert_true(view_is(bytes_view(&out), lines[i]));
		bytes_fini(&out);
		kill_rules_unref(&rules);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_most_specific_rule_decides),
		cmocka_unit_test(names_may_be_quoted),
		cmocka_unit_test(a_kill_wins_over_an_allow_of_the_same),
		cmocka_unit_test(a_request_is_killed_early_only_if_nothing_can_allow_it),
		cmocka_unit_test(destinations_have_their_own_rules),
		cmocka_unit_test(a_faulty_line_is_named_and_nothing_of_it_is_repeated),
		cmocka_unit_test(too_many_rules_are_an_error),
		cmocka_unit_test(a_printed_rule_is_the_same_rule),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
