/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "connectors/routing_condition.h"
#include "tests/support/open.h"

/* A resource with a=v, quoted="say \"hi\"", n=5, d=5.0, yes=true, empty; a twice. */
static struct profiles p;

static uint32_t add(const char *key, struct attribute a)
{
	a.key = profiles_text_new(&p, key, strlen(key));
	return profiles_attribute_new(&p, a);
}

static uint32_t add_text(const char *key, const char *text)
{
	return add(key, (struct attribute){ .type = VALUE_STRING,
					    .string = profiles_text_new(&p, text, strlen(text)) });
}

static int setup(void **state)
{
	(void)state;
	struct attribute n = { .type = VALUE_INT }, d = { .type = VALUE_DOUBLE };
	attribute_set_integer(&n, 5);
	attribute_set_number(&d, 5.0);
	profiles_reset(&p, NULL, (struct view){ 0 }, (size_t)1 << 20);
	const uint32_t all[] = { add_text("a", "v"),
				 add_text("quoted", "say \"hi\""),
				 add("n", n),
				 add("d", d),
				 add("yes", (struct attribute){ .type = VALUE_BOOL, .boolean = 1 }),
				 add("empty", (struct attribute){ .type = VALUE_EMPTY }),
				 add_text("a", "second") };
	uint32_t count = sizeof all / sizeof *all;
	struct list list = profiles_list_copy(&p, (struct list){ 0 }, count);
	memcpy(&p.indices.at[list.first], all, sizeof all);
	list.count = count;
	open_resource(&p, list);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	profiles_fini(&p);
	return 0;
}

static struct error why;

static bool holds_as(const char *text, bool statement, enum routing_context context)
{
	error_clear(&why);
	struct routing_condition *c = routing_condition_parse(text, statement, context, &why);
	if (!c)
		fail_msg("%s: %s", text, why.text);
	bool holds = routing_condition_holds(c, &p, &p.resources.at[p.resources.count - 1]);
	routing_condition_free(&c);
	return holds;
}

static bool holds(const char *text)
{
	return holds_as(text, false, ROUTING_RESOURCE);
}

static void values_are_compared_as_in_ottl(void **state)
{
	static const char *const true_ones[] = {
		"attributes[\"a\"] == \"v\"",
		" resource . attributes [ \"a\" ]==\"v\" ",
		"attributes[\"quoted\"] == \"say \\\"hi\\\"\"",
		"attributes[\"n\"] == 5",
		"attributes[\"d\"] == 5",
		"attributes[\"n\"] != -5",
		"attributes[\"n\"] != \"5\"",
		"attributes[\"yes\"] == true",
		"attributes[\"yes\"] != false",
		"attributes[\"missing\"] == nil",
		"attributes[\"empty\"] == nil",
		"attributes[\"a\"] != nil",
		"attributes[\"missing\"] != \"v\"",
	};
	(void)state;
	for (size_t i = 0; i < sizeof true_ones / sizeof *true_ones; i++)
		if (!holds(true_ones[i]))
			fail_msg("%s", true_ones[i]);
	assert_false(holds("attributes[\"a\"] == \"second\""));
	assert_false(holds("attributes[\"a\"] == \"V\""));
	assert_false(holds("attributes[\"missing\"] == \"\""));
	assert_false(holds("attributes[\"yes\"] == 1"));
}

static void and_binds_tighter_than_or_and_not_tightest(void **state)
{
	(void)state;
	assert_true(holds("attributes[\"a\"] == \"v\" or attributes[\"n\"] == 1 and "
			  "attributes[\"n\"] == 2"));
	assert_false(holds("(attributes[\"a\"] == \"v\" or attributes[\"n\"] == 1) and "
			   "attributes[\"n\"] == 2"));
	assert_false(holds("not attributes[\"a\"] == \"v\" and attributes[\"n\"] == 5"));
	assert_true(holds("not (attributes[\"a\"] == \"v\" and attributes[\"n\"] == 4)"));
}

static void a_statement_is_a_condition_after_its_function(void **state)
{
	(void)state;
	assert_true(holds_as("route() where attributes[\"a\"] == \"v\"", true, ROUTING_RESOURCE));
}

static void metadata_of_the_request_is_compared(void **state)
{
	const struct metadatum metadata[] = { { "x-env", "canary" }, { NULL, NULL } };
	struct request request = { .metadata = metadata };
	(void)state;
	p.request = &request;
	assert_true(holds_as("request[\"X-Env\"] == \"canary\"", false, ROUTING_REQUEST));
	assert_true(holds_as("request[\"other\"] == nil", false, ROUTING_REQUEST));
	p.request = NULL;
	assert_false(holds_as("request[\"X-Env\"] == \"canary\"", false, ROUTING_REQUEST));
}

static void refuse(const char *text, bool statement, const char *expected)
{
	error_clear(&why);
	struct routing_condition *c =
		routing_condition_parse(text, statement, ROUTING_RESOURCE, &why);
	if (c || why.kind != ERROR_CONFIG || !strstr(why.text, expected) ||
	    strstr(why.text, "secret"))
		fail_msg("%s: %s", text, why.text);
}

static void everything_else_is_an_error_that_names_the_place(void **state)
{
	(void)state;
	refuse("", false, "at character 1: expected attributes");
	refuse("true", false, "functions and other paths are not supported");
	refuse("IsMatch(attributes[\"a\"], \"secret\")", false, "functions and other paths");
	refuse("attributes[\"a\"]", false, "at character 16: expected == or !=");
	refuse("attributes[\"a\"] > 1", false, "other operators");
	refuse("attributes[\"a\"] == 1.5", false, "only decimal integers");
	refuse("attributes[\"a\"] == 0x1F", false, "only decimal integers");
	refuse("attributes[\"a\"] == 1234567890123456789", false, "too many digits");
	refuse("attributes[\"a\"] == secret", false, "expected a string, an integer");
	refuse("attributes[\"a\"] == \"secret", false, "does not end");
	refuse("attributes[\"a\"] == \"secret\\n\"", false, "as escapes");
	refuse("attributes[\"a\" == 1", false, "expected ]");
	refuse("attributes.a == 1", false, "expected [\"key\"]");
	refuse("(attributes[\"a\"] == 1", false, "expected )");
	refuse("attributes[\"a\"] == 1 xor", false, "expected `and`, `or` or the end");
	refuse("not not attributes[\"a\"] == 1", false, "functions and other paths");
	refuse("request[\"a\"] == \"secret\"", false, "functions and other paths");
	refuse("delete_key(attributes, \"secret\")", true, "other statements are not supported");
	refuse("attributes[\"a\"] == 1", true, "other statements are not supported");
}

static void length_depth_and_terms_are_bounded(void **state)
{
	char *text = memory_new(2 * ROUTING_CONDITION_BYTES + 64);
	(void)state;
	memset(text, '(', ROUTING_CONDITION_DEPTH);
	refuse(text, false, "too many nested");
	memset(text, ' ', ROUTING_CONDITION_BYTES + 1);
	refuse(text, false, "too long");
	size_t len = 0;
	for (int i = 0; i <= ROUTING_CONDITION_NODES / 2; i++)
		len += (size_t)snprintf(text + len, 64, "%sattributes[\"\"]==1", i ? " or " : "");
	refuse(text, false, "too many terms");
	memory_free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(values_are_compared_as_in_ottl, setup, teardown),
		cmocka_unit_test_setup_teardown(and_binds_tighter_than_or_and_not_tightest, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_statement_is_a_condition_after_its_function,
						setup, teardown),
		cmocka_unit_test_setup_teardown(metadata_of_the_request_is_compared, setup,
						teardown),
		cmocka_unit_test_setup_teardown(everything_else_is_an_error_that_names_the_place,
						setup, teardown),
		cmocka_unit_test_setup_teardown(length_depth_and_terms_are_bounded, setup,
						teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
