/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/config/fixture.h"

static void defaults_come_from_the_rows(void **state)
{
	(void)state;
	struct whole_config c;
	struct node *tree;
	assert_string_equal(bind_text("", &c, &tree), "");
	assert_true(c.on);
	assert_int_equal(c.size, 4);
	assert_true(c.factor == 0.5);
	assert_null(c.path);
	assert_int_equal(c.timeout.ns, 5000000000);
	assert_int_equal(c.keys.count, 2);
	assert_string_equal(c.keys.at[1], "b");
	assert_int_equal(c.level.index, 1);
	assert_null(c.raw);
	assert_int_equal(c.any.kind, ANY_ABSENT);
	assert_int_equal(c.deep.wait.ns, 90000000000);
	assert_false(c.deep.tls.optional.enabled);
	assert_true(c.queue.optional.enabled);
	assert_int_equal(c.queue.queue_size, 1000);
	assert_int_equal(c.queue.sizer.index, 1);
	assert_false(c.batch.optional.enabled);
	release(&c, &tree);
}

static void every_type_is_read(void **state)
{
	(void)state;
	struct whole_config c;
	struct node *tree;
	assert_string_equal(
		bind_text("on: false\nsize: 0x1f\nfactor: 2\npath: /a\ntimeout: 1h1.5s\n"
			  "offset: -3ms\ntoken: hush\nkeys: x,y,\nheaders: {a: b}\n"
			  "level: detailed\nraw: {deep: [1]}\nany: 7\n"
			  "actions:\n- key: k\n  value: 1.5\n- {key: l, value: [p, q]}\n"
			  "named: {one: {key: m, value: 'true'}}\n",
			  &c, &tree),
		"");
	assert_false(c.on);
	assert_int_equal(c.size, 31);
	assert_true(c.factor == 2);
	assert_int_equal(c.timeout.ns, 3601500000000);
	assert_int_equal(c.offset.ns, -3000000);
	assert_string_equal(c.token.text, "hush");
	assert_int_equal(c.keys.count, 3);
	assert_string_equal(c.keys.at[2], "");
	assert_string_equal(c.headers.at[0].value.text, "b");
	assert_int_equal(c.level.index, 2);
	assert_string_equal(c.raw->children[0]->children[0]->text, "1");
	assert_int_equal(c.any.integer, 7);
	const struct item_config *items = c.actions.at;
	assert_int_equal(c.actions.count, 2);
	assert_true(items[0].value.number == 1.5);
	assert_string_equal(items[1].value.tree->children[1]->text, "q");
	const struct item_config *named = c.named.at;
	assert_string_equal(c.named.names[0], "one");
	assert_int_equal(named[0].value.kind, ANY_STRING);
	release(&c, &tree);
}

static const struct {
	const char *yaml, *error;
} faults[] = {
	{ "x: 1", "c.yaml:1:1: 'exporters::file' has invalid keys: x (valid keys: [on size "
		  "factor path timeout offset token keys headers level raw any deep queue "
		  "batch actions named buffer])" },
	{ "on: true\nfoo: 1\nbar: 2",
	  "c.yaml:2:1: 'exporters::file' has invalid keys: foo (valid keys: [on "
	  "size factor path timeout offset token keys headers level raw any deep "
	  "queue batch actions named buffer])" },
	{ "deep:\n  tls:\n    ca: x",
	  "c.yaml:3:5: 'exporters::file::deep::tls' has invalid keys: ca (valid "
	  "keys: [ca_file insecure])" },
	{ "actions:\n- key: a\n- {key: b, val: 1}",
	  "c.yaml:3:12: 'exporters::file::actions[1]' has invalid keys: val (valid "
	  "keys: [key value])" },
	{ "named: {n: {key: a, val: 1}}",
	  "c.yaml:1:21: 'exporters::file::named::n' has invalid keys: val (valid "
	  "keys: [key value])" },
	{ "enabled: true", "c.yaml:1:1: 'exporters::file' has invalid keys: enabled (valid keys: "
			   "[on size factor path timeout offset token keys headers level raw any "
			   "deep queue batch actions named buffer])" },
	{ "queue_size: 1", "c.yaml:1:1: 'exporters::file' has invalid keys: queue_size (put it "
			   "under `queue`)" },
	{ "insecure: true", "c.yaml:1:1: 'exporters::file' has invalid keys: insecure (put it "
			    "under `batch`)" },
	{ "wait: 1s", "c.yaml:1:1: 'exporters::file' has invalid keys: wait (put it under "
		      "`deep`)" },
	{ "deep: {tls: {size: 1}}",
	  "c.yaml:1:14: 'exporters::file::deep::tls' has invalid keys: size (put it under "
	  "`exporters::file`)" },
	{ "on: yes", "c.yaml:1:1: 'exporters::file::on' expected a boolean, got a string; write "
		     "true or false" },
	{ "on: 1", "c.yaml:1:1: 'exporters::file::on' expected a boolean, got a whole number; "
		   "write true or false" },
	{ "size: \"4\"", "c.yaml:1:1: 'exporters::file::size' expected a whole number, got a "
			 "string; write a whole number without quotes" },
	{ "size: 1.5", "c.yaml:1:1: 'exporters::file::size' expected a whole number, got a "
		       "decimal number; write a whole number" },
	{ "size: -2000",
	  "c.yaml:1:1: 'exporters::file::size' must be between 0 and 100, got -2000" },
	{ "size: 9223372036854775808",
	  "c.yaml:1:1: 'exporters::file::size' is out of range, got 9223372036854775808" },
	{ "size: 101", "c.yaml:1:1: 'exporters::file::size' must be between 0 and 100, got 101" },
	{ "size: 13", "c.yaml:1:1: exporters::file: 'size' must not be thirteen" },
	{ "queue: {queue_size: 0}",
	  "c.yaml:1:9: 'exporters::file::queue::queue_size' must be at least 1, got 0" },
	{ "queue: false", "c.yaml:1:1: 'exporters::file::queue' expected a map, got a boolean; "
			  "write {enabled: false}" },
	{ "deep: true", "c.yaml:1:1: 'exporters::file::deep' expected a map, got a boolean; "
			"write keys and values" },
	{ "factor: .inf", "c.yaml:1:1: 'exporters::file::factor' must be a finite number" },
	{ "factor: x", "c.yaml:1:1: 'exporters::file::factor' expected a number, got a string; "
		       "write a number" },
	{ "path: 5", "c.yaml:1:1: 'exporters::file::path' expected a string, got a whole number; "
		     "put it in quotes" },
	{ "path: {a: 1}", "c.yaml:1:1: 'exporters::file::path' expected a string, got a map; "
			  "write one string" },
	{ "timeout: 5", "c.yaml:1:1: 'exporters::file::timeout' expected a duration, got a whole "
			"number; write 5s" },
	{ "timeout: '5'",
	  "c.yaml:1:1: 'exporters::file::timeout' must have a unit, got \"5\"; write 5s" },
	{ "timeout: 5x", "c.yaml:1:1: 'exporters::file::timeout' has the unknown unit \"x\" in "
			 "\"5x\"; write a number and a unit (h, m, s, ms, us or ns), such as "
			 "1m30s" },
	{ "timeout: -1s", "c.yaml:1:1: 'exporters::file::timeout' must not be negative" },
	{ "timeout: 2562048h", "c.yaml:1:1: 'exporters::file::timeout' must be a duration of at "
			       "most 2562047h, got \"2562048h\"" },
	{ "keys: {a: 1}", "c.yaml:1:1: 'exporters::file::keys' expected a list, got a map; begin "
			  "each entry with -" },
	{ "keys: 5", "c.yaml:1:1: 'exporters::file::keys' expected a list, got a whole number; "
		     "put it in [ ]" },
	{ "keys: [a, 5]", "c.yaml:1:11: 'exporters::file::keys[1]' expected a string, got a "
			  "whole number; put it in quotes" },
	{ "headers: {bad: 1}", "c.yaml:1:11: 'exporters::file::headers::bad' expected a string, "
			       "got a whole number; put it in quotes" },
	{ "headers: [{name: foo, value: a}, {name: foo, value: b}]",
	  "c.yaml:1:34: 'exporters::file::headers' lists the name foo twice" },
	{ "headers: [{name: foo}]",
	  "c.yaml:1:11: 'exporters::file::headers[0]' must have a name and a value" },
	{ "level: loud", "c.yaml:1:1: 'exporters::file::level' unsupported value \"loud\" (valid "
			 "values: [\"\" basic detailed])" },
	{ "deep: text", "c.yaml:1:1: 'exporters::file::deep' expected a map, got a string; write "
			"keys and values" },
	{ "actions: {}", "c.yaml:1:1: 'exporters::file::actions' expected a list, got a map; "
			 "begin each entry with -" },
	{ "actions: [{value: 1}]",
	  "c.yaml:1:11: exporters::file::actions[0]: requires a non-empty \"key\"" },
	{ "actions: [{key: ''}]",
	  "c.yaml:1:12: exporters::file::actions[0]: requires a non-empty \"key\"" },
	{ "queue: {enabled: 1}", "c.yaml:1:9: 'exporters::file::queue::enabled' expected a "
				 "boolean, got a whole number; write true or false" },
	{ "size: 1\nold_size: 2",
	  "c.yaml:1:1: \"size\" and its old name \"old_size\" are both set" },
};

static void errors_name_place_and_path(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
		struct whole_config c;
		struct node *tree;
		assert_string_equal(bind_text(faults[i].yaml, &c, &tree), faults[i].error);
		release(&c, &tree);
	}
}

static void optional_sections_have_four_presences(void **state)
{
	static const struct {
		const char *yaml;
		bool tls, queue, batch;
	} cases[] = {
		{ "", false, true, false },
		{ "deep: {tls: }\nqueue:\nbatch:", false, true, true },
		{ "deep: {tls: {}}\nqueue: {}\nbatch: {}", true, true, true },
		{ "deep: {tls: {enabled: false}}\nqueue: {enabled: false}\nbatch: {enabled: false}",
		  false, false, false },
		{ "deep: {tls: {enabled: true}}\nqueue: {enabled: true}\nbatch: {enabled: true}",
		  true, true, true },
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct whole_config c;
		struct node *tree;
		assert_string_equal(bind_text(cases[i].yaml, &c, &tree), "");
		assert_int_equal(c.deep.tls.optional.enabled, cases[i].tls);
		assert_int_equal(c.queue.optional.enabled, cases[i].queue);
		assert_int_equal(c.batch.optional.enabled, cases[i].batch);
		assert_int_equal(c.queue.queue_size, 1000);
		release(&c, &tree);
	}
}

static void a_null_leaves_the_default(void **state)
{
	(void)state;
	struct whole_config c;
	struct node *tree;
	assert_string_equal(bind_text("size:\ntimeout: ~\nkeys: null\nactions:\ndeep:", &c, &tree),
			    "");
	assert_int_equal(c.size, 4);
	assert_int_equal(c.timeout.ns, 5000000000);
	assert_int_equal(c.keys.count, 2);
	assert_int_equal(c.deep.wait.ns, 90000000000);
	release(&c, &tree);
}

static void an_old_name_sets_the_member(void **state)
{
	(void)state;
	struct whole_config c;
	struct node *tree;
	assert_string_equal(bind_text("old_size: 9", &c, &tree), "");
	assert_int_equal(c.size, 9);
	release(&c, &tree);
}

static void headers_may_be_a_list(void **state)
{
	(void)state;
	struct whole_config c;
	struct node *tree;
	assert_string_equal(bind_text("headers: [{name: a, value: x}, {name: b, value: '5'}]", &c,
				      &tree),
			    "");
	assert_int_equal(c.headers.count, 2);
	assert_string_equal(c.headers.at[1].name, "b");
	assert_string_equal(c.headers.at[1].value.text, "5");
	release(&c, &tree);
}

static void note_inert(void *context, const char *path, const struct config_row *row)
{
	char **seen = context;
	char *more = memory_format("%s%s(%s)", *seen ? *seen : "", path, row->help);
	memory_free(*seen);
	*seen = more;
}

static void inert_keys_are_told(void **state)
{
	(void)state;
	struct whole_config c;
	struct node *tree;
	char *seen = NULL;
	assert_string_equal(bind_text("buffer: 5\nsize: 1", &c, &tree), "");
	config_each_inert(&whole_table, tree, "exporters::file", note_inert, &seen);
	assert_string_equal(seen, "exporters::file::buffer(Not needed here.)");
	memory_free(seen);
	release(&c, &tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_come_from_the_rows),
		cmocka_unit_test(every_type_is_read),
		cmocka_unit_test(errors_name_place_and_path),
		cmocka_unit_test(optional_sections_have_four_presences),
		cmocka_unit_test(a_null_leaves_the_default),
		cmocka_unit_test(an_old_name_sets_the_member),
		cmocka_unit_test(headers_may_be_a_list),
		cmocka_unit_test(inert_keys_are_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
