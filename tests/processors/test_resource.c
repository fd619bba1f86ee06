/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "tests/support/policy.h"

extern const struct component_factory resource_processor;

static struct policy policy;
static struct profiles p;
static struct request request;

static void open_policy(const char *yaml)
{
	policy_must_open(&policy, &resource_processor, yaml);
	tables_init(&p, &request, 1);
}

static int close_policy(void **state)
{
	(void)state;
	policy_close(&policy);
	profiles_fini(&p);
	return 0;
}

static void give(uint32_t a, uint32_t b)
{
	p.resources.at[0].attributes = tables_list(&p, a, b, 0);
}

static void run(void)
{
	if (!policy_run(&policy, &p))
		fail_msg("%s", policy.err.text);
}

static const char *value(const char *key)
{
	return tables_value(&p, p.resources.at[0].attributes, key);
}

static const struct attribute *get(const char *key)
{
	return tables_find(&p, p.resources.at[0].attributes, key);
}

static void insert_update_and_upsert_differ(void **state)
{
	(void)state;
	open_policy("attributes: [{key: a, value: new, action: insert}, {key: b, value: new, "
		    "action: insert},{key: c, value: new, action: update}, {key: d, value: new, "
		    "action: update},{key: e, value: new, action: upsert}, {key: f, value: new, "
		    "action: UPSERT}]");
	p.resources.at[0].attributes =
		tables_list(&p, tables_attribute(&p, "a", "old"), tables_attribute(&p, "c", "old"),
			    tables_attribute(&p, "e", "old"), 0);
	run();
	assert_string_equal(value("a"), "old");
	assert_string_equal(value("b"), "new");
	assert_string_equal(value("c"), "new");
	assert_null(get("d"));
	assert_string_equal(value("e"), "new");
	assert_string_equal(value("f"), "new");
	assert_int_equal(p.resources.at[0].attributes.count, 5);
	assert_int_equal(p.resources.at[0].changed, 1);
}

static void many_insertions_grow_the_list(void **state)
{
	(void)state;
	char yaml[2000];
	int len = snprintf(yaml, sizeof yaml, "attributes: [");
	for (int i = 0; i < 30; i++)
		len += snprintf(yaml + len, sizeof yaml - (size_t)len,
				"{key: k%d, value: %d, "
				"action: insert}%s",
				i, i, i < 29 ? "," : "]");
	open_policy(yaml);
	give(tables_attribute(&p, "first", "stays"), 0);
	struct list behind = tables_list(&p, tables_attribute(&p, "x", "untouched"), 0);
	run();
	assert_int_equal(p.resources.at[0].attributes.count, 31);
	assert_string_equal(value("first"), "stays");
	assert_int_equal(attribute_integer(get("k29")), 29);
	assert_string_equal(tables_value(&p, behind, "x"), "untouched");
}

static void a_repeated_key_becomes_one_when_set(void **state)
{
	(void)state;
	open_policy("attributes: [{key: a, value: new, action: upsert}]");
	p.resources.at[0].attributes =
		tables_list(&p, tables_attribute(&p, "x", "1"),
			    tables_attribute(&p, "a", "CANARY1"), tables_attribute(&p, "y", "2"),
			    tables_attribute(&p, "a", "CANARY2"), 0);
	run();
	assert_int_equal(p.resources.at[0].attributes.count, 3);
	assert_string_equal(value("a"), "new");
	assert_string_equal(value("y"), "2");
	assert_false(tables_reach(&p, "CANARY"));
}

static void values_keep_their_types(void **state)
{
	(void)state;
	open_policy("attributes: [{key: i, value: 7, action: insert}, {key: b, value: true, "
		    "action: insert},{key: d, value: 1.5, action: insert}, {key: s, value: '7', "
		    "action: insert},{key: l, value: [x, y], action: insert}]");
	run();
	assert_int_equal(get("i")->type, VALUE_INT);
	assert_int_equal(attribute_integer(get("i")), 7);
	assert_int_equal(get("b")->type, VALUE_BOOL);
	assert_int_equal(get("b")->boolean, 1);
	assert_true(attribute_number(get("d")) == 1.5);
	assert_string_equal(value("s"), "7");
	assert_int_equal(get("l")->type, VALUE_ARRAY);
	assert_int_equal(get("l")->children.count, 2);
	assert_true(tables_reach(&p, "y"));
}

static const struct attribute *child(const struct attribute *a, uint32_t i)
{
	assert_true(i < a->children.count);
	return &p.attributes.at[a->children.first + i];
}

static void lists_and_maps_keep_theirs(void **state)
{
	(void)state;
	open_policy("attributes: [{key: l, value: [1, x, [], 2.5, {k: true}], action: insert},"
		    "{key: m, value: {a: 1, b: {c: [y, ~]}}, action: insert}]");
	run();
	const struct attribute *l = get("l"), *m = get("m");
	assert_int_equal(l->type, VALUE_ARRAY);
	assert_int_equal(l->children.count, 5);
	assert_int_equal(attribute_integer(child(l, 0)), 1);
	assert_true(view_is(string_view(&p, child(l, 1)->string), "x"));
	assert_int_equal(child(l, 2)->type, VALUE_ARRAY);
	assert_int_equal(child(l, 2)->children.count, 0);
	assert_true(attribute_number(child(l, 3)) == 2.5);
	assert_int_equal(child(l, 4)->type, VALUE_KVLIST);
	assert_true(view_is(string_view(&p, child(child(l, 4), 0)->key), "k"));
	assert_int_equal(child(child(l, 4), 0)->boolean, 1);
	assert_int_equal(m->type, VALUE_KVLIST);
	assert_int_equal(m->children.count, 2);
	const struct attribute *c = child(child(m, 1), 0);
	assert_true(view_is(string_view(&p, c->key), "c"));
	assert_int_equal(child(c, 0)->type, VALUE_STRING);
	assert_int_equal(child(c, 1)->type, VALUE_EMPTY);
}

static void delete_takes_a_key_and_what_a_pattern_finds(void **state)
{
	(void)state;
	open_policy("attributes: [{key: a, pattern: '^pod', action: delete}]");
	p.resources.at[0].attributes =
		tables_list(&p, tables_attribute(&p, "pod.name", "CANARY"),
			    tables_attribute(&p, "a", "CANARY"), tables_attribute(&p, "b", "stays"),
			    tables_attribute(&p, "a", "CANARY"), 0);
	run();
	assert_false(tables_reach(&p, "CANARY"));
	assert_int_equal(p.resources.at[0].attributes.count, 1);
	assert_int_equal(p.resources.at[0].changed, 1);
}

static void hash_is_sha256_in_hex(void **state)
{
	(void)state;
	open_policy("attributes: [{key: s, action: hash}, {pattern: 'num', action: hash}]");
	p.resources.at[0].attributes =
		tables_list(&p, tables_attribute(&p, "s", "abc"), tables_attribute(&p, "e", ""),
			    tables_integer(&p, "number", 1), 0);
	run();
	assert_string_equal(value("s"),
			    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	/* sha256 of 01 00 00 00 00 00 00 00 */
	assert_string_equal(value("number"),
			    "7c9fa136d4413fa6173637e883b6998d32e1d675f88cddff9dcbcf331820f4b8");
}

static void extract_makes_an_attribute_of_each_group(void **state)
{
	(void)state;
	open_policy("attributes: [{key: url, pattern: "
		    "'^(?P<scheme>[a-z]+)://(?P<host>[^/]+)(?P<rest>/.*)?', action: extract}]");
	give(tables_attribute(&p, "url", "http://example.com"),
	     tables_attribute(&p, "host", "old"));
	run();
	assert_string_equal(value("scheme"), "http");
	assert_string_equal(value("host"), "example.com");
	assert_non_null(get("rest"));
	assert_int_equal(p.resources.at[0].attributes.count, 4);
}

static void convert_changes_types_or_leaves_them(void **state)
{
	(void)state;
	open_policy("attributes: [{key: s, action: convert, converted_type: int},"
		    "{key: x, action: convert, converted_type: int},"
		    "{key: f, action: convert, converted_type: double},"
		    "{key: i, action: convert, converted_type: string},"
		    "{key: blank, action: convert, converted_type: int}]");
	p.resources.at[0].attributes =
		tables_list(&p, tables_attribute(&p, "s", "-42"), tables_attribute(&p, "x", "42x"),
			    tables_attribute(&p, "f", "2.5e3"), tables_integer(&p, "i", -9),
			    tables_attribute(&p, "blank", " 1"), 0);
	run();
	assert_int_equal(attribute_integer(get("s")), -42);
	assert_string_equal(value("x"), "42x");
	assert_true(attribute_number(get("f")) == 2500);
	assert_string_equal(value("i"), "-9");
	assert_string_equal(value("blank"), " 1");
}

static void doubles_become_text_as_in_the_collector(void **state)
{
	(void)state;
	static const struct {
		double number;
		const char *text;
	} rows[] = {
		{ 1e15, "1000000000000000" },
		{ 1e21, "1e+21" },
		{ -INFINITY, "-Infinity" },
	};
	open_policy("attributes: [{key: d, action: convert, converted_type: string}]");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		uint32_t d = tables_integer(&p, "d", 0);
		p.attributes.at[d].type = VALUE_DOUBLE;
		attribute_set_number(&p.attributes.at[d], rows[i].number);
		give(d, 0);
		run();
		assert_string_equal(value("d"), rows[i].text);
	}
}

static void what_is_not_simple_becomes_base64_or_json(void **state)
{
	(void)state;
	open_policy("attributes: [{key: b, action: convert, converted_type: string},"
		    "{key: l, action: convert, converted_type: string},"
		    "{key: m, action: convert, converted_type: string}]");
	uint32_t bytes = tables_integer(&p, "b", 0), list = tables_integer(&p, "l", 0);
	uint32_t map = tables_integer(&p, "m", 0);
	uint32_t child = tables_integer(&p, "k\"", 7);
	p.attributes.at[bytes].type = VALUE_BYTES;
	p.attributes.at[bytes].bytes = profiles_bytes_new(&p, "\0\1\xff\2", 4);
	p.attributes.at[list].type = VALUE_ARRAY;
	p.attributes.at[map].type = VALUE_KVLIST;
	p.attributes.at[list].children = p.attributes.at[map].children = (struct list){ child, 1 };
	p.resources.at[0].attributes = tables_list(&p, bytes, list, map, 0);
	run();
	assert_string_equal(value("b"), "AAH/Ag==");
	assert_string_equal(value("l"), "[7]");
	assert_string_equal(value("m"), "{\"k\\\"\":7}");
}

static void values_come_from_attributes_and_from_the_request(void **state)
{
	(void)state;
	static const struct metadatum metadata[] = {
		{ "x-team", "a" }, { "x-other", "b" }, { "x-team", "c\xff" }, { 0 }
	};
	static const struct metadatum auth[] = { { "subject", "CN=agent" },
						 { "uri", "spiffe://x/a" },
						 { "dns", "b" },
						 { "uri", "spiffe://x/b" },
						 { 0 } };
	request = (struct request){ .peer = "192.0.2.1", .auth = auth, .metadata = metadata };
	open_policy("attributes: [{key: a, from_attribute: src, action: upsert},"
		    "{key: b, from_attribute: none, action: upsert},"
		    "{key: c, from_context: metadata.X-Team, action: upsert},"
		    "{key: d, from_context: metadata.none, action: upsert},"
		    "{key: e, from_context: client.address, action: upsert},"
		    "{key: f, from_context: auth.subject, action: upsert},"
		    "{key: g, from_context: x-other, action: upsert},"
		    "{key: h, from_context: auth.uri, action: upsert},"
		    "{key: i, from_context: auth.x-other, action: upsert},"
		    "{key: j, from_context: metadata.subject, action: upsert}]");
	give(tables_integer(&p, "src", 5), 0);
	run();
	assert_int_equal(attribute_integer(get("a")), 5);
	assert_null(get("b"));
	assert_string_equal(value("c"), "a;c\xef\xbf\xbd");
	assert_null(get("d"));
	assert_string_equal(value("e"), "192.0.2.1");
	assert_string_equal(value("f"), "CN=agent");
	assert_string_equal(value("g"), "b");
	assert_string_equal(value("h"), "spiffe://x/a;spiffe://x/b");
	assert_null(get("i"));
	assert_null(get("j"));
	request = (struct request){ 0 };
}

static void the_next_request_gets_its_own_context(void **state)
{
	(void)state;
	open_policy("attributes: [{key: a, from_context: client.address, action: upsert}]");
	request.peer = "192.0.2.1";
	run();
	assert_string_equal(value("a"), "192.0.2.1");
	tables_init(&p, &request, 1);
	request.peer = NULL;
	run();
	assert_null(get("a"));
}

static void other_sites_are_left_alone(void **state)
{
	(void)state;
	open_policy("attributes: [{pattern: '.', action: delete}]");
	uint32_t a = tables_attribute(&p, "a", "v");
	p.resources.at[0].attributes = tables_list(&p, a, 0);
	p.scopes.at[0].attributes = tables_list(&p, a, 0);
	p.samples.at[0].attributes = tables_list(&p, a, 0);
	run();
	assert_int_equal(p.resources.at[0].attributes.count, 0);
	assert_int_equal(p.scopes.at[0].attributes.count, 1);
	assert_int_equal(p.samples.at[0].attributes.count, 1);
	assert_int_equal(p.samples.at[0].changed, 0);
}

/* Constants are in the tables of every request. */
static void values_have_a_limit(void **state)
{
	struct bytes yaml;
	(void)state;
	bytes_init(&yaml, 1 << 20);
	bytes_add_text(&yaml, "attributes: [{key: a, action: insert, value: [");
	for (int i = 0; i < 500; i++)
		bytes_format(&yaml, "%d,", i);
	bytes_add_text(&yaml, "]}]");
	bytes_add_byte(&yaml, 0);
	assert_false(policy_open(&policy, &resource_processor, (char *)yaml.at));
	assert_non_null(strstr(policy.err.text, "value: has more than 500 values or 16384 "
						"bytes"));
	bytes_fini(&yaml);
}

static void each_broken_rule_of_an_action_is_named(void **state)
{
	(void)state;
	static const struct {
		const char *action, *text;
	} rows[] = {
		{ "{action: insert, value: 1}",
		  "attributes[1]: the second action requires \"key\"" },
		{ "{key: a, action: invalid}",
		  "attributes[1]::action: must be insert, update, upsert, delete, hash, extract or "
		  "convert" },
		{ "{key: a, value: 1}",
		  "action: must be insert, update, upsert, delete, hash, extract or convert" },
		{ "{key: a, action: insert, value: [[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]}",
		  "attributes[1]::value: is nested deeper than 16 levels" },
		{ "{action: delete}",
		  "the second action, \"delete\", requires \"key\" or \"pattern\"" },
		{ "{key: a, action: UPSERT}",
		  "the second action, \"upsert\", requires \"value\", \"from_attribute\" or "
		  "\"from_context\"" },
		{ "{key: a, action: upsert, value: 1, from_attribute: b}",
		  "the second action has more than one of \"value\", \"from_attribute\" and "
		  "\"from_context\"" },
		{ "{key: a, action: upsert, value: 1, pattern: b}",
		  "attributes[1]::pattern: the action \"upsert\" does not use it" },
		{ "{key: a, action: upsert, value: 1, converted_type: int}",
		  "attributes[1]::converted_type: the action \"upsert\" does not use it" },
		{ "{key: a, action: delete, value: 1}",
		  "does not use \"value\", \"from_attribute\" or \"from_context\"" },
		{ "{key: a, action: hash, pattern: '('}",
		  "attributes[1]::pattern: invalid regular expression: " },
		{ "{action: delete, pattern: '^([a-z]+\\.?)+$'}",
		  "attributes[1]::pattern: the pattern is too expensive" },
		{ "{action: hash, pattern: '(a|aa)+!'}", "the pattern is too expensive" },
		{ "{key: a, action: extract, pattern: '^(?P<x>([a-z]+-?)+)$'}",
		  "the pattern is too expensive" },
		{ "{key: a, action: extract}",
		  "the second action, \"extract\", requires \"pattern\"" },
		{ "{key: a, action: extract, pattern: x}", "must have a named group" },
		{ "{key: a, action: extract, pattern: '(?P<a>x)(y)'}",
		  "each group must have a name" },
		{ "{key: a, action: convert}",
		  "the second action, \"convert\", requires \"converted_type\"; use int, double or "
		  "string" },
		{ "{key: a, action: convert, converted_type: bool}",
		  "attributes[1]::converted_type: must be int, double or string" },
		{ "{key: a, action: convert, converted_type: int, value: 1}",
		  "does not use \"value\", \"from_attribute\", \"from_context\" or \"pattern\"" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char yaml[300];
		snprintf(yaml, sizeof yaml,
			 "attributes: [{key: z, action: "
			 "delete}, %s]",
			 rows[i].action);
		assert_false(policy_open(&policy, &resource_processor, yaml));
		if (!strstr(policy.err.text, rows[i].text))
			fail_msg("row %zu: %s", i, policy.err.text);
		policy_close(&policy);
	}
	assert_false(policy_open(&policy, &resource_processor, "{}"));
	assert_non_null(strstr(policy.err.text, "missing required field \"attributes\""));
}

#define TEST(name) cmocka_unit_test_teardown(name, close_policy)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(insert_update_and_upsert_differ),
		TEST(many_insertions_grow_the_list),
		TEST(a_repeated_key_becomes_one_when_set),
		TEST(values_keep_their_types),
		TEST(lists_and_maps_keep_theirs),
		TEST(delete_takes_a_key_and_what_a_pattern_finds),
		TEST(hash_is_sha256_in_hex),
		TEST(extract_makes_an_attribute_of_each_group),
		TEST(convert_changes_types_or_leaves_them),
		TEST(doubles_become_text_as_in_the_collector),
		TEST(what_is_not_simple_becomes_base64_or_json),
		TEST(values_come_from_attributes_and_from_the_request),
		TEST(the_next_request_gets_its_own_context),
		TEST(other_sites_are_left_alone),
		TEST(values_have_a_limit),
		TEST(each_broken_rule_of_an_action_is_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
