/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/config/fixture.h"

#include "config/scalar.h"

static struct node *parse(const char *yaml, size_t len, struct error *err)
{
	error_clear(err);
	return config_parse("c.yaml", yaml, len, err);
}

static void expect_error(const char *yaml, size_t len, const char *text)
{
	struct error err;
	assert_null(parse(yaml, len, &err));
	assert_int_equal(err.kind, ERROR_CONFIG);
	assert_string_equal(err.text, text);
}

static void nodes_remember_where_they_stood(void **state)
{
	(void)state;
	struct error err;
	static const char yaml[] = "a:\n  b: 1\n  c:\n  - x\n  - {d: 'y'}\n";
	struct node *tree = parse(yaml, strlen(yaml), &err);
	const struct node *a = node_get(tree, "a"), *c = node_get(a, "c");
	assert_int_equal(a->line, 1);
	assert_int_equal(node_get(a, "b")->line, 2);
	assert_int_equal(node_get(a, "b")->column, 3);
	assert_int_equal(c->children[1]->line, 5);
	assert_int_equal(c->children[1]->column, 5);
	assert_true(node_get(c->children[1], "d")->quoted);
	assert_string_equal(node_get(c->children[1], "d")->source, "c.yaml");
	assert_null(node_get(a, "z"));
	assert_null(node_get(c, "z"));
	node_unref(&tree);
	assert_null(tree);
}

static void equal_nodes_are_the_same_configuration(void **state)
{
	static const struct {
		const char *a, *b;
		bool equal;
	} cases[] = {
		{ "{a: 1, b: [x, {c: d}]}", "b:\n- x\n- c: d\na: 1\n", true },
		{ "{a: , b: {}}", "{b: {}, a: }", true },
		{ "{a: 1}", "{a: 2}", false },
		{ "{a: 1}", "{a: '1'}", false },
		{ "{a: 1}", "{b: 1}", false },
		{ "{a: 1}", "{a: 1, b: 1}", false },
		{ "{a: }", "{a: {}}", false },
		{ "{a: {}}", "{a: []}", false },
		{ "[x, y]", "[y, x]", false },
		{ "[x, {a: 1}]", "[x, {a: 2}]", false },
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct error err;
		struct node *a = parse(cases[i].a, strlen(cases[i].a), &err);
		struct node *b = parse(cases[i].b, strlen(cases[i].b), &err);
		struct node *copy = node_copy(a);
		assert_int_equal(node_equal(a, b), cases[i].equal);
		assert_int_equal(node_equal(b, a), cases[i].equal);
		assert_true(node_equal(a, copy));
		node_unref(&a);
		node_unref(&b);
		node_unref(&copy);
	}
}

static void scalars_resolve_as_in_yaml_v3(void **state)
{
	static const struct {
		const char *text, *type;
		double number;
	} cases[] = {
		{ "0", "a whole number", 0 },
		{ "-0", "a whole number", 0 },
		{ "+5", "a whole number", 5 },
		{ "0123", "a whole number", 83 },
		{ "0o17", "a whole number", 15 },
		{ "0x1F", "a whole number", 31 },
		{ "-0x1f", "a whole number", -31 },
		{ "0b101", "a whole number", 5 },
		{ "1_000", "a whole number", 1000 },
		{ "089", "a decimal number", 89 },
		{ "1.5", "a decimal number", 1.5 },
		{ ".5", "a decimal number", .5 },
		{ "5.", "a decimal number", 5 },
		{ "1e3", "a decimal number", 1000 },
		{ "-1.5E-2", "a decimal number", -.015 },
		{ "9223372036854775807", "a whole number", 9223372036854775807.0 },
		{ "-9223372036854775808", "a whole number", -9223372036854775808.0 },
		{ "9223372036854775808", "a decimal number", 9223372036854775808.0 },
		{ "true", "a boolean", 1 },
		{ "False", "a boolean", 0 },
		{ "TRUE", "a boolean", 1 },
		{ "yes", "a string", 0 },
		{ "off", "a string", 0 },
		{ "tRUE", "a string", 0 },
		{ "~", "nothing", 0 },
		{ "null", "nothing", 0 },
		{ "Null", "nothing", 0 },
		{ "nil", "a string", 0 },
		{ "'1'", "a string", 0 },
		{ "\"true\"", "a string", 0 },
		{ "'~'", "a string", 0 },
		{ "1.2.3", "a string", 0 },
		{ "1e", "a string", 0 },
		{ "0x", "a string", 0 },
		{ "0xg", "a string", 0 },
		{ "1s", "a string", 0 },
		{ "-", "nothing", 0 },
		{ "+", "a string", 0 },
		{ ".", "a string", 0 },
		{ "..", "a string", 0 },
		{ "2001-01-01", "a string", 0 },
		{ "!!str 5", "a string", 0 },
		{ "!!int '5'", "a whole number", 5 },
		{ "! 5", "a string", 0 },
		{ "!!null ''", "nothing", 0 },
		{ "|\n  5\n", "a string", 0 },
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct error err;
		struct node *node = parse(cases[i].text, strlen(cases[i].text), &err);
		assert_non_null(node);
		if (strcmp(cases[i].text, "-") == 0) { /* a list of one null */
			assert_int_equal(node->children[0]->kind, NODE_NULL);
			node_unref(&node);
			continue;
		}
		assert_string_equal(scalar_type_name(node), cases[i].type);
		struct scalar s = scalar_of(node);
		double number = s.kind == SCALAR_INT ? (double)s.integer : s.number + s.truth;
		assert_true(number == cases[i].number);
		node_unref(&node);
	}
}

#define WRITE "write a number and a unit (h, m, s, ms, us or ns), such as 1m30s"
#define RANGE "must be a duration of at most 2562047h, got "

static void durations_are_go_s(void **state)
{
	static const struct {
		const char *text;
		int64_t ns;
		const char *printed;
	} good[] = {
		{ "0", 0, "0s" },
		{ "300ms", 300000000, "300ms" },
		{ "1.5h", INT64_C(5400000000000), "1h30m0s" },
		{ "1h30m", INT64_C(5400000000000), "1h30m0s" },
		{ "-2s", -2000000000, "-2s" },
		{ ".5s", 500000000, "500ms" },
		{ "1.s", 1000000000, "1s" },
		{ "1us1\xc2\xb5s1\xce\xbcs", 3000, "3us" },
		{ "1500us", 1500000, "1.5ms" },
		{ "1m0.25s", INT64_C(60250000000), "1m0.25s" },
		{ "0.3333333333333333333h", INT64_C(1200000000000), "20m0s" },
		{ "9223372036854775807ns", INT64_MAX, "2562047h47m16.854775807s" },
		{ "-9223372036854775808ns", INT64_MIN, "-2562047h47m16.854775808s" },
	};
	static const char *const bad[][2] = {
		{ "", "must be a duration, got \"\"; " WRITE },
		{ "s", "must be a duration, got \"s\"; " WRITE },
		{ ".s", "must be a duration, got \".s\"; " WRITE },
		{ "1", "must have a unit, got \"1\"; write 1s" },
		{ "1s2", "must have a unit, got \"1s2\"; " WRITE },
		{ "1 s", "has the unknown unit \" s\" in \"1 s\"; " WRITE },
		{ "1d", "has the unknown unit \"d\" in \"1d\"; write 24h" },
		{ "--1s", "must be a duration, got \"--1s\"; " WRITE },
		{ "1s-1s", "has the unknown unit \"s-\" in \"1s-1s\"; " WRITE },
		{ "9223372036854775808ns", RANGE "\"9223372036854775808ns\"" },
		{ "99999999999999999999s", RANGE "\"99999999999999999999s\"" },
		{ "2562047h48m", RANGE "\"2562047h48m\"" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		int64_t ns;
		struct bytes out;
		bytes_init(&out, 100);
		assert_true(scalar_duration(good[i].text, &ns, NULL));
		assert_int_equal(ns, good[i].ns);
		scalar_add_duration(&out, ns);
		assert_true(view_is(bytes_view(&out), good[i].printed));
		bytes_fini(&out);
	}
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		int64_t ns;
		struct error err;
		assert_false(scalar_duration(bad[i][0], &ns, &err));
		assert_string_equal(err.text, bad[i][1]);
	}
}

static void bad_yaml_names_its_place(void **state)
{
	static const char *const cases[][2] = {
		{ "a: 1\nb: [1,\n",
		  "c.yaml:3:1: not valid YAML: did not find expected node content" },
		{ "a: 1\n b: 2",
		  "c.yaml:2:3: not valid YAML: mapping values are not allowed in this context" },
		{ "a: 'x", "c.yaml:1:6: not valid YAML: found unexpected end of stream" },
		{ "b: 1\na: \xff", "c.yaml:2:4: not valid YAML: invalid leading UTF-8 octet" },
		{ "a: 1\nb: 2\na: 3", "c.yaml:3:1: key \"a\" is already defined at line 1" },
		{ "a: {x: 1, y: 2, x: 3}", "c.yaml:1:17: key \"x\" is already defined at line 1" },
		{ "? [a]\n: b", "c.yaml:1:3: a key must be a plain string" },
		{ "a: *x", "c.yaml:1:4: unknown anchor" },
		{ "a: &x {b: *x}", "c.yaml:1:11: unknown anchor" },
		{ "a: !!binary aGk=", "c.yaml:1:4: unsupported tag" },
		{ "a: !mine [1]", "c.yaml:1:4: unsupported tag" },
		{ "a: \"x\\0y\"", "c.yaml:1:4: NUL character in a value" },
		{ "\"a\\0\": 1", "c.yaml:1:1: NUL character in a value" },
		{ "a: 1\n---\nb: 2", "c.yaml:2:1: more than one document; only one is supported" },
		{ "a: {<<: 5}", "c.yaml:1:9: '<<' requires a map or a list of maps" },
		{ "a: {<<: [[{}]]}", "c.yaml:1:10: '<<' requires a map or a list of maps" },
		{ "a: {<<: {}, <<: {}}", "c.yaml:1:13: more than one '<<' in one map" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		expect_error(cases[i][0], strlen(cases[i][0]), cases[i][1]);
	expect_error("a: \0", 4, "c.yaml:1:4: not valid YAML: control characters are not allowed");
}

static const char *text_at(const struct node *tree, const char *map, const char *key)
{
	const struct node *node = node_get(node_get(tree, map), key);
	return node ? node->text : NULL;
}

static void anchors_and_merge_keys_work(void **state)
{
	(void)state;
	static const char yaml[] = "base: &b {x: 1, y: 2}\n"
				   "other: &o {y: 3, z: 4}\n"
				   "copy: *b\n"
				   "one: {<<: *b, y: 9}\n"
				   "two:\n  x: 0\n  <<: [*b, *o]\n"
				   "chain: {<<: {<<: *o, w: 5}}\n"
				   "plain: {'<<': 6}\n";
	struct error err;
	struct node *tree = parse(yaml, strlen(yaml), &err);
	assert_non_null(tree);
	assert_string_equal(text_at(tree, "copy", "y"), "2");
	assert_string_equal(text_at(tree, "one", "x"), "1");
	assert_string_equal(text_at(tree, "one", "y"), "9");
	assert_null(text_at(tree, "one", "<<"));
	assert_string_equal(text_at(tree, "two", "x"), "0");
	assert_string_equal(text_at(tree, "two", "y"), "2");
	assert_string_equal(text_at(tree, "two", "z"), "4");
	assert_string_equal(text_at(tree, "chain", "z"), "4");
	assert_string_equal(text_at(tree, "chain", "w"), "5");
	assert_string_equal(text_at(tree, "plain", "<<"), "6");
	node_unref(&tree);
}

static void deep_nesting_is_refused(void **state)
{
	(void)state;
	struct error err;
	size_t len = 200000;
	char *yaml = memory_new(len);
	memset(yaml, '[', len);
	assert_null(parse(yaml, len, &err));
	for (size_t i = 0; i + 1 < len; i += 2)
		memcpy(yaml + i, "- ", 2);
	assert_null(parse(yaml, len, &err));
	assert_string_equal(err.text, "c.yaml:1:203: nested deeper than 100 levels");
	memory_free(yaml);
}

static void a_billion_laughs_are_refused(void **state)
{
	(void)state;
	struct bytes yaml;
	bytes_init(&yaml, 1 << 20);
	bytes_add_text(&yaml, "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
	for (int i = 1; i < 10; i++)
		bytes_format(
			&yaml,
			"a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n",
			i, i, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
	struct error err;
	assert_null(parse((char *)yaml.at, yaml.len, &err));
	assert_non_null(strstr(err.text, "more than 100000 values"));
	bytes_fini(&yaml);
}

static void big_texts_behind_aliases_are_refused(void **state)
{
	(void)state;
	struct bytes yaml;
	bytes_init(&yaml, 4 << 20);
	bytes_add_text(&yaml, "a: &a ");
	for (int i = 0; i < 1 << 20; i++)
		bytes_add_byte(&yaml, 'x');
	bytes_add_text(&yaml, "\nb:\n");
	for (int i = 0; i < 200; i++)
		bytes_add_text(&yaml, "- *a\n");
	struct error err;
	assert_null(parse((char *)yaml.at, yaml.len, &err));
	assert_string_equal(err.text, "c.yaml:64:3: more than 64 MiB of strings");
	bytes_fini(&yaml);
}

static void a_huge_text_is_refused(void **state)
{
	(void)state;
	expect_error("a", (16 << 20) + 1, "c.yaml: larger than 16 MiB");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_remember_where_they_stood),
		cmocka_unit_test(equal_nodes_are_the_same_configuration),
		cmocka_unit_test(scalars_resolve_as_in_yaml_v3),
		cmocka_unit_test(durations_are_go_s),
		cmocka_unit_test(bad_yaml_names_its_place),
		cmocka_unit_test(anchors_and_merge_keys_work),
		cmocka_unit_test(deep_nesting_is_refused),
		cmocka_unit_test(a_billion_laughs_are_refused),
		cmocka_unit_test(big_texts_behind_aliases_are_refused),
		cmocka_unit_test(a_huge_text_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
