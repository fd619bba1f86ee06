/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/config/fixture.h"

#include "config/problems.h"
#include "config/suggest.h"

static const char tree_yaml[] = "size: 1\n"
				"old_size: 2\n"
				"headers: {a b: x, c: y}\n"
				"deep:\n"
				"  tls:\n"
				"    ca_file: f\n"
				"actions:\n"
				"  - key: k\n"
				"  - {key: l, value: 1}\n"
				"named: {one: {key: m}}\n"
				"raw: {p: {q: [r, s]}}\n";

/* An error of a section, and where it is. */
static const struct {
	const char *why, *placed;
} cases[] = {
	{ "broken", "c.yaml:1:1: x: broken" },
	{ "size: too small", "c.yaml:1:1: x::size: too small" },
	{ "`size` must be more", "c.yaml:1:1: x: `size` must be more" },
	{ "'deep' must be less", "c.yaml:4:1: x: 'deep' must be less" },
	{ "deep: tls: ca_file: cannot read f", "c.yaml:6:5: x::deep::tls::ca_file: cannot read f" },
	{ "deep::tls::ca_file: cannot", "c.yaml:6:5: x::deep::tls::ca_file: cannot" },
	{ "deep: tls: insecure must be off", "c.yaml:5:3: x::deep::tls: insecure must be off" },
	{ "deep: wait: too long", "c.yaml:4:1: x::deep::wait: too long" },
	{ "path: must be specified", "c.yaml:1:1: x::path: must be specified" },
	{ "actions[1]: value: bad", "c.yaml:9:14: x::actions[1]::value: bad" },
	{ "actions[7]: bad", "c.yaml:7:1: x::actions[7]: bad" },
	{ "named[0]: key: bad", "c.yaml:10:15: x::named::one::key: bad" },
	{ "headers[1]: bad", "c.yaml:3:19: x::headers::c: bad" },
	{ "raw: p: q[1]: bad", "c.yaml:11:18: x::raw::p::q[1]: bad" },
	{ "raw[0]: bad", "c.yaml:11:7: x::raw::p: bad" },
	/* no keys */
	{ "time: invalid", "c.yaml:1:1: x: time: invalid" },
	{ "deep: other: bad", "c.yaml:4:1: x::deep: other: bad" },
	{ "deep::other: bad", "c.yaml:1:1: x: deep::other: bad" },
	{ "actions[x]: bad", "c.yaml:1:1: x: actions[x]: bad" },
	{ "", "c.yaml:1:1: x: " },
};

static void an_error_is_placed_at_its_key(void **state)
{
	struct error why, err;
	struct node *tree = config_parse("c.yaml", tree_yaml, sizeof tree_yaml - 1, &err);
	(void)state;
	assert_non_null(tree);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		error_set(&why, ERROR_CONFIG, "%s", cases[i].why);
		assert_false(config_blame(&whole_table, tree, "x", &why, &err));
		assert_string_equal(err.text, cases[i].placed);
	}
	error_set(&why, ERROR_CONFIG, "deep: tls: bad");
	assert_false(config_blame(&whole_table, NULL, "x", &why, &err));
	assert_string_equal(err.text, "x::deep::tls: bad");
	node_unref(&tree);
}

static void an_error_is_placed_at_the_old_name_of_a_key(void **state)
{
	static const char yaml[] = "path: p\nold_size: 2\n";
	struct error why, err;
	struct node *tree = config_parse("c.yaml", yaml, sizeof yaml - 1, &err);
	(void)state;
	error_set(&why, ERROR_CONFIG, "size: bad");
	assert_false(config_blame(&whole_table, tree, "x", &why, &err));
	assert_string_equal(err.text, "c.yaml:2:1: x::old_size: bad");
	node_unref(&tree);
}

static void all_errors_are_found_and_none_twice(void **state)
{
	static const char yaml[] = "sise: 1\nfactor: x\ndeep: {wait: 5}\nlevel: loud\n"
				   "actions: [{keey: a}, {value: 1}]\n";
	static const char *const errors[] = { "1:1", "2:1", "3:8", "4:1", "5:12", "5:22" };
	struct problems problems = { 0 };
	struct whole_config config = { 0 };
	struct error err;
	struct node *tree = config_parse("c.yaml", yaml, sizeof yaml - 1, &err);
	(void)state;
	assert_false(config_bind_all(&whole_table, tree, "x", &config, &problems));
	assert_int_equal(problems.count, sizeof errors / sizeof *errors);
	for (size_t i = 0; i < problems.count; i++) {
		bool found = false;
		for (size_t k = 0; k < problems.count; k++)
			found |= !strncmp(problems.at[k] + strlen("c.yaml:"), errors[i],
					  strlen(errors[i]));
		assert_true(found);
	}
	error_set(&err, ERROR_CONFIG, "%s", problems.at[0]);
	assert_false(problems_add(&problems, &err));
	assert_int_equal(problems.count, sizeof errors / sizeof *errors);
	problems_fini(&problems);
	release(&config, &tree);
}

static void too_many_errors_are_counted(void **state)
{
	struct problems problems = { 0 };
	struct error err;
	(void)state;
	assert_true(problems_none(&problems, &err));
	for (int i = 0; i < PROBLEMS_MAX + 3; i++) {
		error_set(&err, ERROR_CONFIG, "number %d", i);
		problems_add(&problems, &err);
	}
	assert_int_equal(problems.count, PROBLEMS_MAX);
	assert_int_equal(problems.omitted, 3);
	assert_false(problems_none(&problems, &err));
	assert_string_equal(err.text, "number 0");
	problems_fini(&problems);
}

/* A check may read a string that has a default, whatever was reported before. */
static void values_have_their_defaults_beyond_too_many_errors(void **state)
{
	static const char yaml[] = "timeout: 5\nkeys: {a: 1}\nlevel: 1\nsize: 101";
	struct whole_config config = { 0 };
	struct problems problems = { 0 };
	struct error err;
	(void)state;
	struct node *tree = config_parse("c.yaml", yaml, strlen(yaml), &err);
	for (int i = 0; i < PROBLEMS_MAX; i++) {
		error_set(&err, ERROR_CONFIG, "number %d", i);
		problems_add(&problems, &err);
	}
	assert_false(config_bind_all(&whole_table, tree, "exporters::file", &config, &problems));
	assert_int_equal(problems.omitted, 4);
	assert_int_equal(problems_total(&problems), PROBLEMS_MAX + 4);
	assert_int_equal(config.timeout.ns, 5000000000);
	assert_int_equal(config.keys.count, 2);
	assert_int_equal(config.level.index, 1);
	assert_int_equal(config.size, 4);
	problems_fini(&problems);
	release(&config, &tree);
}

static void close_names_are_suggested(void **state)
{
	static const char *const known[] = { "endpoint", "sending_queue", "tls", "timeout", NULL };
	static const struct {
		const char *name, *text;
	} rows[] = {
		{ "endpiont", " (did you mean `endpoint`?)" },
		{ "Endpoint", " (did you mean `endpoint`?)" },
		{ "sending-queue", " (did you mean `sending_queue`?)" },
		{ "queue", " (did you mean `sending_queue`?)" },
		{ "tsl", " (did you mean `tls`?)" },
		{ "tim", "" },
		{ "colour", "" },
		{ "", "" },
		{ NULL, "" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct suggest suggest = { .name = rows[i].name };
		char text[SUGGEST_TEXT];
		for (const char *const *k = known; *k; k++)
			suggest_try(&suggest, *k);
		assert_string_equal(suggest_text(&suggest, text), rows[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_error_is_placed_at_its_key),
		cmocka_unit_test(an_error_is_placed_at_the_old_name_of_a_key),
		cmocka_unit_test(all_errors_are_found_and_none_twice),
		cmocka_unit_test(too_many_errors_are_counted),
		cmocka_unit_test(values_have_their_defaults_beyond_too_many_errors),
		cmocka_unit_test(close_names_are_suggested),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
