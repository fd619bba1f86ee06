/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/config/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A tree in one line. Strings are in quotes; `verbatim` strings follow a "!". */
static void flatten(const struct node *node, struct bytes *out)
{
	bool map = node->kind == NODE_MAP;
	if (node->kind == NODE_NULL)
		bytes_add_text(out, "null");
	else if (node->kind == NODE_SCALAR)
		bytes_format(out, node->quoted ? "'%s'" : "%s", node->text);
	else
		bytes_add_text(out, map ? "{" : "[");
	for (size_t i = 0; i < node->count; i++) {
		bytes_format(out, "%s%s%s", i ? ", " : "", map ? node->children[i]->key : "",
			     map ? ": " : "");
		flatten(node->children[i], out);
	}
	if (node->kind == NODE_LIST || map)
		bytes_add_text(out, map ? "}" : "]");
	if (node->verbatim)
		bytes_format(out, "!%s", node->verbatim);
}

/* Loads NULL-terminated locations and sets. Returns the tree or the error as a string, which is
 * valid until the next call. */
static const char *load(const char *const *locations, const char *const *sets)
{
	static char text[4096];
	struct error err = { 0 };
	struct config_sources sources = { .locations = locations, .sets = sets };
	while (locations && locations[sources.location_count])
		sources.location_count++;
	while (sets && sets[sources.set_count])
		sources.set_count++;
	struct node *root = config_load(&sources, &err);
	if (!root) {
		snprintf(text, sizeof text, "%s", err.text);
		return text;
	}
	struct bytes out;
	bytes_init(&out, sizeof text - 1);
	flatten(root, &out);
	snprintf(text, sizeof text, "%.*s", (int)out.len, (const char *)out.at);
	bytes_fini(&out);
	node_unref(&root);
	return text;
}

static const char *load_yaml(const char *yaml)
{
	char *location = memory_format("yaml:%s", yaml);
	const char *text = load((const char *[]){ location, NULL }, NULL);
	memory_free(location);
	return text;
}

static void later_sources_win(void **state)
{
	static const struct {
		const char *one, *two, *result;
	} cases[] = {
		{ "yaml:{a: {b: 1, c: 2}}", "yaml:{a: {c: 3, d: 4}}", "{a: {b: 1, c: 3, d: 4}}" },
		{ "yaml:{a: [1, 2]}", "yaml:{a: [3]}", "{a: [3]}" },
		{ "yaml:{a: {b: 1}}", "yaml:{a: }", "{a: null}" },
		{ "yaml:{a: {b: 1}}", "yaml:{a: {}}", "{a: {b: 1}}" },
		{ "yaml:{a: {b: 1}}", "yaml:a::c: 2", "{a: {b: 1, c: 2}}" },
		{ "yaml:a::b::c: 1", "yaml:a::b::d: 2", "{a: {b: {c: 1, d: 2}}}" },
		{ "yaml:{a: 1}", "yaml:", "{a: 1}" },
		{ "yaml:{a: 1}", "yaml:text",
		  "yaml:1:1: the configuration must be a map, got a string" },
		{ "yaml:{a: 1}", "yaml:[1]",
		  "yaml:1:1: the configuration must be a map, got a list" },
		{ "yaml:{a: 1}", "https://example.com/x",
		  "loading over http or https is not supported here" },
		{ "yaml:{a: 1}", "s3:bucket",
		  "unsupported scheme on URI \"s3:bucket\"; use env, file, yaml, http or https" },
		{ "yaml:{a: 1}", "/nonexistent/x.yaml",
		  "unable to read the file file:/nonexistent/x.yaml: No such file or directory" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_string_equal(load((const char *[]){ cases[i].one, cases[i].two, NULL },
					 NULL),
				    cases[i].result);
}

static void sets_come_last(void **state)
{
	static const char *const file[] = { "yaml:{a: {b: 1, l: [1, 2]}}", NULL };
	static const struct {
		const char *set, *result;
	} cases[] = {
		{ "a.b=2", "{a: {b: 2, l: [1, 2]}}" },
		{ " a.b = x y ", "{a: {b: x y, l: [1, 2]}}" },
		{ "a.l=[3]", "{a: {b: 1, l: [3]}}" },
		{ "a.c={d: 1}", "{a: {b: 1, l: [1, 2], c: {d: 1}}}" },
		{ "a=", "{a: null}" },
		{ "x.y/z.w=1", "{a: {b: 1, l: [1, 2]}, x: {y/z: {w: 1}}}" },
		{ "a.b", "the first --set: missing equals sign; write --set KEY=VALUE" },
		{ "a={x: 1, y: 2, x: 3}", "--set a: key \"x\" is already defined" },
		{ "a=b: c",
		  "--set a: not valid YAML: mapping values are not allowed in this context" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_string_equal(load(file, (const char *[]){ cases[i].set, NULL }),
				    cases[i].result);
}

static void something_must_be_given(void **state)
{
	(void)state;
	assert_string_equal(load(NULL, NULL),
			    "at least one config flag must be provided; write --config FILE");
}

static void references_are_expanded(void **state)
{
	static const struct {
		const char *yaml, *result;
	} cases[] = {
		{ "a: ${env:PC_TEXT}", "{a: 'hello'!hello}" },
		{ "a: ${PC_TEXT}", "{a: 'hello'!hello}" },
		{ "a: $PC_TEXT", "{a: $PC_TEXT}" },
		{ "a: x-${env:PC_TEXT}-y-${env:PC_TEXT}", "{a: 'x-hello-y-hello'}" },
		{ "a: ${env:PC_OCTAL}", "{a: 0123!0123}" },
		{ "a: n${env:PC_OCTAL}", "{a: 'n0123'}" },
		{ "a: ${env:PC_QUOTED}", "{a: '\"0123\"'!\"0123\"}" },
		{ "a: ${env:PC_LIST}", "{a: [1, b]![1, b]}" },
		{ "a: ${env:PC_MAP}", "{a: {x: 'hello'!hello}!{x: 'hello'}}" },
		{ "a: p ${env:PC_LIST}", "{a: 'p [1, b]'}" },
		{ "a: ${env:PC_NONE:-def}", "{a: 'def'!def}" },
		{ "a: ${PC_NONE:-5}", "{a: 5!5}" },
		{ "a: ${env:PC_NONE:-}", "{a: null!}" },
		{ "a: ${env:PC_EMPTY:-def}", "{a: null!}" },
		{ "a: ${env:PC_NONE}", "{a: null!}" },
		{ "a: x${env:PC_NONE}y", "{a: 'xy'}" },
		{ "a: $$${env:PC_TEXT}", "{a: '$hello'}" },
		{ "a: $${env:PC_TEXT}", "{a: ${env:PC_TEXT}}" },
		{ "a: $$x$$$$", "{a: $x$$}" },
		/* As in the Collector, an escaped reference disables expansion of the references
		 * after it. */
		{ "a: $${A} ${env:PC_TEXT}", "{a: ${A} ${env:PC_TEXT}}" },
		{ "a: ${env:PC_TEXT} $${A}", "{a: 'hello ${A}'}" },
		{ "a: ${env:${env:PC_NAME}}", "{a: 'hello'!hello}" },
		{ "a: '${env:PC_OCTAL}'", "{a: 0123!0123}" },
		{ "a: ['${env:PC_TEXT}', {b: \"${env:PC_OCTAL}\"}]",
		  "{a: ['hello'!hello, {b: 0123!0123}]}" },
		{ "a: '${yaml:{b: 2}}'", "{a: '{b: 2}'}" },
		{ "a: '${yaml:[1, 2]}'", "{a: [1, 2]![1, 2]}" },
		{ "a: '^a{2}$'", "{a: '^a{2}$'}" },
		{ "a: '${env:PC_TEXT'", "{a: '${env:PC_TEXT'}" },
		{ "a: '} ${env:PC_TEXT}'", "{a: '} hello'}" },
		{ "a: ${env:PC_BROKEN}", "{a: '[1, {'![1, {}" },
		{ "a: ${env:PC_AGAIN}", "{a: 'hello'!hello}" },
		{ "a: ${env:PC_LINES}", "{a: 'one\ntwo'!one\ntwo}" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_string_equal(load_yaml(cases[i].yaml), cases[i].result);
}

static void bad_references_are_refused(void **state)
{
	static const struct {
		const char *yaml, *error;
	} cases[] = {
		{ "x: 1\na:\n  - ${env:1x}",
		  "yaml:3:5: a[0]: environment variable \"1x\" has invalid name: must match regex "
		  "^[a-zA-Z_][a-zA-Z0-9_]*$" },
		{ "a: ${PC_NONE-hunter2}",
		  "yaml:1:1: a: environment variable \"PC_NONE...\" has invalid name: must match "
		  "regex ^[a-zA-Z_][a-zA-Z0-9_]*$" },
		{ "a: ${}",
		  "yaml:1:1: a: environment variable \"\" has invalid name: must match regex "
		  "^[a-zA-Z_][a-zA-Z0-9_]*$" },
		{ "a: ${s3:x}",
		  "yaml:1:1: a: unsupported scheme on URI \"s3:x\"; use env, file, yaml, "
		  "http or https" },
		{ "a: ${http://x/y}",
		  "yaml:1:1: a: loading over http or https is not supported here" },
		{ "a: ${env:A$B}",
		  "yaml:1:1: a: the uri \"env:A$B\" contains unsupported characters ('$')" },
		{ "a: ${env:PC_SELF}", "yaml:1:1: a: too many recursive expansions" },
		{ "a: ${env:PC_SELF_LIST}", "yaml:1:1: a: too many recursive expansions" },
		{ "a: ${env:PC_LATIN}",
		  "yaml:1:1: a: the content of \"env:PC_LATIN\" is not valid UTF-8" },
		{ "a: ${env:PC_DOUBLE}", "yaml:1:1: a: expands to more than 16 MiB" },
		{ "a: ${file:/nonexistent}",
		  "yaml:1:1: a: unable to read the file file:/nonexistent: No "
		  "such file or directory" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_string_equal(load_yaml(cases[i].yaml), cases[i].error);
}

/* The variables that are not set, of all values in order, each after a blank. */
static void list_unset(const struct node *node, struct bytes *out)
{
	if (node->unset)
		bytes_format(out, " %s", node->unset);
	for (size_t i = 0; i < node->count; i++)
		list_unset(node->children[i], out);
}

static void values_know_the_first_variable_that_is_not_set(void **state)
{
	static const char *const cases[][2] = {
		{ "a: ${env:PC_NONE}\nb: x${PC_NONE}\nc: ${env:PC_NONE:-d}", " PC_NONE PC_NONE" },
		{ "a: ${PC_NONE}${PC_NONE_EITHER}\nb: [1, '${PC_NONE}']", " PC_NONE PC_NONE" },
		{ "a: $PC_NONE\nb: $${PC_NONE}", "" },
		{ "a: ${env:${env:PC_TEXT}}", " ${env:${env:PC_TEXT}}" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char *location = memory_format("yaml:%s", cases[i][0]);
		const char *const locations[] = { location };
		struct config_sources sources = { .locations = locations, .location_count = 1 };
		struct node *tree = config_load(&sources, NULL), *copy = node_copy(tree);
		struct bytes found;
		bytes_init(&found, 1000);
		list_unset(copy, &found);
		assert_true(view_is(bytes_view(&found), cases[i][1]));
		bytes_fini(&found);
		node_unref(&copy);
		node_unref(&tree);
		memory_free(location);
	}
}

static const char *bind_loaded(const char *yaml, struct whole_config *config, struct node **tree)
{
	static struct error err;
	char *location = memory_format("yaml:%s", yaml);
	const char *const locations[] = { location };
	struct config_sources sources = { .locations = locations, .location_count = 1 };
	error_clear(&err);
	*config = (struct whole_config){ 0 };
	*tree = config_load(&sources, &err);
	memory_free(location);
	if (*tree)
		config_bind(&whole_table, *tree, "", config, &err);
	return err.text;
}

static void expanded_values_fit_the_field(void **state)
{
	(void)state;
	struct whole_config c;
	struct node *tree;
	assert_string_equal(
		bind_loaded("path: ${env:PC_OCTAL}\nsize: ${env:PC_OCTAL}\nany: ${env:PC_OCTAL}\n"
			    "token: ${env:PC_QUOTED}\nkeys: ${env:PC_COMMAS}\n"
			    "headers: {a: '${env:PC_OCTAL}'}\nactions: ${env:PC_ITEMS}\n",
			    &c, &tree),
		"");
	assert_string_equal(c.path, "0123");
	assert_int_equal(c.size, 83);
	assert_int_equal(c.any.integer, 83);
	assert_string_equal(c.token.text, "\"0123\"");
	assert_string_equal(c.keys.at[1], "y");
	assert_string_equal(c.headers.at[0].value.text, "0123");
	assert_string_equal(((struct item_config *)c.actions.at)->key, "k");
	release(&c, &tree);
	assert_string_equal(bind_loaded("path: ${env:PC_LIST}", &c, &tree), "");
	assert_string_equal(c.path, "[1, b]");
	release(&c, &tree);
}

static void unset_makes_the_zero_value(void **state)
{
	(void)state;
	struct whole_config c;
	struct node *tree;
	assert_string_equal(bind_loaded("on: ${PC_NONE}\nsize: ${PC_NONE}\nfactor: ${PC_NONE}\n"
					"path: ${PC_NONE}\ntimeout: ${PC_NONE}\ntoken: ${PC_NONE}\n"
					"keys: ${PC_NONE}\nheaders: ${PC_NONE}\nlevel: ${PC_NONE}\n"
					"raw: ${PC_NONE}\nany: ${PC_NONE}\nactions: ${PC_NONE}\n",
					&c, &tree),
			    "");
	assert_false(c.on);
	assert_int_equal(c.size, 0);
	assert_true(c.factor == 0);
	assert_string_equal(c.path, "");
	assert_int_equal(c.timeout.ns, 0);
	assert_string_equal(c.token.text, "");
	assert_int_equal(c.keys.count, 0);
	assert_int_equal(c.level.index, 0);
	assert_null(c.raw);
	release(&c, &tree);
	assert_string_equal(bind_loaded("queue: {queue_size: '${PC_NONE}'}", &c, &tree),
			    "yaml:1:9: 'queue::queue_size' must be at least 1, got ${PC_NONE}; "
			    "the environment variable PC_NONE is not set");
	release(&c, &tree);
}

/* No message may contain "hello", its name, "0123" or the values of the other variables. */
static void messages_show_references_and_not_what_they_brought(void **state)
{
	static const struct {
		const char *yaml, *error;
	} cases[] = {
		{ "size: ${env:PC_OCTAL}${env:PC_OCTAL}",
		  "yaml:1:1: 'size' expected a whole number, got a string from "
		  "${env:PC_OCTAL}${env:PC_OCTAL}; write a whole number" },
		{ "size: -${env:PC_OCTAL}",
		  "yaml:1:1: 'size' expected a whole number, got a string from -${env:PC_OCTAL}; "
		  "write a whole number" },
		{ "size: ${env:PC_BIG}",
		  "yaml:1:1: 'size' must be between 0 and 100, got ${env:PC_BIG}" },
		{ "size: ${env:PC_NEGATIVE}",
		  "yaml:1:1: 'size' must be between 0 and 100, got ${env:PC_NEGATIVE}" },
		{ "timeout: ${env:PC_TEXT}",
		  "yaml:1:1: 'timeout' must be a duration, got \"${env:PC_TEXT}\"; write a "
		  "number and a unit (h, m, s, ms, us or ns), such as 1m30s" },
		{ "timeout: 1${env:PC_TEXT:-s}",
		  "yaml:1:1: 'timeout' must be a duration, got \"1${env:PC_TEXT:-...}\"; "
		  "write a number and a unit (h, m, s, ms, us or ns), such as 1m30s" },
		{ "level: ${env:PC_TEXT}",
		  "yaml:1:1: 'level' unsupported value \"${env:PC_TEXT}\" (valid values: "
		  "[\"\" basic detailed])" },
		{ "deep: ${env:PC_MAP}",
		  "yaml:1:1: 'deep' has invalid keys: ${env:PC_MAP} (valid keys: [wait tls])" },
		{ "named: ${env:PC_NAMED}",
		  "yaml:1:1: 'named[0]' has invalid keys: ${env:PC_NAMED} (valid keys: "
		  "[key value])" },
		{ "headers: ${env:PC_NAMED}",
		  "yaml:1:1: 'headers[0]' expected a string, got a map from ${env:PC_NAMED}; "
		  "write one string" },
		{ "headers: [{name: '${PC_TEXT}', value: a}, {name: hello, value: b}]",
		  "yaml:1:43: 'headers' lists the name hello twice" },
		{ "path: ${file:/nonexistent/${env:PC_TEXT}}",
		  "yaml:1:1: path: \"${file:/nonexistent/${env:PC_TEXT}}\" cannot be read" },
		{ "path: '${env:${env:PC_LIST}}'",
		  "yaml:1:1: path: \"${env:${env:PC_LIST}}\" cannot be read" },
	};
	struct whole_config c;
	struct node *tree;
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		assert_string_equal(bind_loaded(cases[i].yaml, &c, &tree), cases[i].error);
		release(&c, &tree);
	}
}

static void references_are_shown_without_defaults_inline_text_and_urls(void **state)
{
	static const char *const cases[][2] = {
		{ "a ${env:PC_TEXT} b", "a ${env:PC_TEXT} b" },
		{ "${PC_TEXT}", "${PC_TEXT}" },
		{ "${PC_TEXT:-default}", "${PC_TEXT:-...}" },
		{ "${env:PC_TEXT:-${env:PC_NAME}} b", "${env:PC_TEXT:-...} b" },
		{ "${env:${env:PC_NAME}}", "${env:${env:PC_NAME}}" },
		{ "${yaml:inline} ${PC_TEXT}", "${yaml:...} ${PC_TEXT}" },
		{ "plain", NULL },
		{ "$${env:PC_TEXT}", NULL },
	};
	struct whole_config c;
	struct node *tree;
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char *yaml = memory_format("path: '%s'", cases[i][0]);
		assert_string_equal(bind_loaded(yaml, &c, &tree), "");
		const char *reference = node_get(tree, "path")->reference;
		assert_int_equal(!reference, !cases[i][1]);
		if (reference)
			assert_string_equal(reference, cases[i][1]);
		memory_free(yaml);
		release(&c, &tree);
	}
}

static void files_are_read(void **state)
{
	(void)state;
	char path[] = "/tmp/portcullis-test-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "a: 1\nb: [x\n", 11), 11);
	close(fd);
	char expected[200];
	snprintf(expected, sizeof expected,
		 "%s:3:1: not valid YAML: did not find expected ',' or ']'", path);
	assert_string_equal(load((const char *[]){ path, NULL }, NULL), expected);

	char *scheme = memory_format("yaml:{a: '${file:%s}'}", path);
	assert_string_equal(load((const char *[]){ scheme, NULL }, NULL),
			    "{a: 'a: 1\nb: [x\n'!a: 1\nb: [x\n}");
	memory_free(scheme);
	unlink(path);
}

static int set_variables(void **state)
{
	(void)state;
	static const char *const pairs[][2] = {
		{ "PC_TEXT", "hello" },
		{ "PC_OCTAL", "0123" },
		{ "PC_QUOTED", "\"0123\"" },
		{ "PC_LIST", "[1, b]" },
		{ "PC_MAP", "{x: '${PC_TEXT}'}" },
		{ "PC_EMPTY", "" },
		{ "PC_NAME", "PC_TEXT" },
		{ "PC_BROKEN", "[1, {" },
		{ "PC_AGAIN", "${env:PC_TEXT}" },
		{ "PC_SELF", "x${env:PC_SELF}" },
		{ "PC_SELF_LIST", "['${env:PC_SELF_LIST}']" },
		{ "PC_LATIN", "\xe9t\xe9" },
		{ "PC_DOUBLE", "x${env:PC_DOUBLE}${yaml:${env:PC_DOUBLE}}" },
		{ "PC_COMMAS", "x,y" },
		{ "PC_ITEMS", "[{key: k}]" },
		{ "PC_LINES", "one\ntwo" },
		{ "PC_BIG", "123456" },
		{ "PC_NEGATIVE", "-123456" },
		{ "PC_NAMED", "{secret: {hidden: 1}}" },
	};
	for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
		setenv(pairs[i][0], pairs[i][1], 1);
	unsetenv("PC_NONE");
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(later_sources_win),
		cmocka_unit_test(sets_come_last),
		cmocka_unit_test(something_must_be_given),
		cmocka_unit_test(references_are_expanded),
		cmocka_unit_test(bad_references_are_refused),
		cmocka_unit_test(values_know_the_first_variable_that_is_not_set),
		cmocka_unit_test(expanded_values_fit_the_field),
		cmocka_unit_test(unset_makes_the_zero_value),
		cmocka_unit_test(messages_show_references_and_not_what_they_brought),
		cmocka_unit_test(references_are_shown_without_defaults_inline_text_and_urls),
		cmocka_unit_test(files_are_read),
	};
	return cmocka_run_group_tests(tests, set_variables, NULL);
}
