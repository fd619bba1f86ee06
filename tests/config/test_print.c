/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/config/fixture.h"

#include <stdlib.h>

static char *print_bound(const struct whole_config *config, const struct node *node, bool json,
			 bool redact)
{
	struct bytes out;
	bytes_init(&out, 1 << 20);
	if (json)
		config_print_json(&whole_table, config, node, redact, &out);
	else
		config_print(&whole_table, config, node, 2, redact, &out);
	char *text = memory_text_of(out.at, out.len);
	bytes_fini(&out);
	return text;
}

static char *print(const struct whole_config *config, bool json, bool redact)
{
	return print_bound(config, NULL, json, redact);
}

static const char full[] =
	"on: false\nsize: 7\nfactor: 2\npath: ./x\ntimeout: 90s\noffset: -3ms\n"
	"token: hush\nkeys: []\nheaders: {Authorization: Bearer x, b: ''}\nlevel: ''\n"
	"raw: {deep: [1, [2, {x: 'y'}], {}, []], n: ~, f: .5}\nany: '7'\n"
	"deep: {wait: 1ns, tls: {ca_file: a b}}\nqueue: {enabled: false, queue_size: 5}\n"
	"batch:\nactions: [{key: k, value: 2.0}, {key: l, value: [p, 'no']}]\n"
	"named: {'a b': {key: m}}\nbuffer: 3\n";

static void the_effective_configuration_is_yaml(void **state)
{
	(void)state;
	struct whole_config c;
	struct node *tree;
	assert_string_equal(bind_text(full, &c, &tree), "");
	char *text = print(&c, false, true);
	assert_string_equal(text, "  \"on\": false\n"
				  "  size: 7\n"
				  "  factor: 2\n"
				  "  path: \"./x\"\n"
				  "  timeout: 1m30s\n"
				  "  offset: -3ms\n"
				  "  token: \"[REDACTED]\"\n"
				  "  keys: []\n"
				  "  headers:\n"
				  "    Authorization: \"[REDACTED]\"\n"
				  "    b: \"[REDACTED]\"\n"
				  "  level: \"\"\n"
				  "  raw:\n"
				  "    deep:\n"
				  "      - 1\n"
				  "      -\n"
				  "        - 2\n"
				  "        - x: \"y\"\n"
				  "      - {}\n"
				  "      - []\n"
				  "    \"n\": null\n"
				  "    f: 0.5\n"
				  "  any: \"7\"\n"
				  "  deep:\n"
				  "    wait: 1ns\n"
				  "    tls:\n"
				  "      ca_file: \"a b\"\n"
				  "      insecure: false\n"
				  "  queue:\n"
				  "    enabled: false\n"
				  "    queue_size: 5\n"
				  "    sizer: items\n"
				  "  batch:\n"
				  "    insecure: false\n"
				  "  actions:\n"
				  "    - key: k\n"
				  "      value: 2.0\n"
				  "    - key: l\n"
				  "      value:\n"
				  "        - p\n"
				  "        - \"no\"\n"
				  "  named:\n"
				  "    \"a b\":\n"
				  "      key: m\n"
				  "  buffer: 3\n");
	memory_free(text);
	release(&c, &tree);
}

static void json_says_the_same(void **state)
{
	(void)state;
	struct whole_config c;
	struct node *tree;
	assert_string_equal(bind_text(full, &c, &tree), "");
	char *text = print(&c, true, false);
	assert_string_equal(
		text,
		"{\"on\":false,\"size\":7,\"factor\":2,\"path\":\"./x\",\"timeout\":\"1m30s\","
		"\"offset\":\"-3ms\",\"token\":\"hush\",\"keys\":[],\"headers\":{\"Authorization\":"
		"\"Bearer "
		"x\",\"b\":\"\"},\"level\":\"\",\"raw\":{\"deep\":[1,[2,{\"x\":\"y\"}],{},[]],"
		"\"n\":null,\"f\":0.5},\"any\":\"7\",\"deep\":{\"wait\":\"1ns\",\"tls\":{\"ca_"
		"file\":"
		"\"a "
		"b\",\"insecure\":false}},\"queue\":{\"enabled\":false,\"queue_size\":5,\"sizer\":"
		"\"items\"},\"batch\":{\"insecure\":false},\"actions\":[{\"key\":\"k\",\"value\":2."
		"0},"
		"{\"key\":\"l\",\"value\":[\"p\",\"no\"]}],\"named\":{\"a b\":{\"key\":\"m\"}},"
		"\"buffer\":3}");
	memory_free(text);
	release(&c, &tree);
}

/* Loads what was printed, with expansion, as the program would. */
static struct node *load_printed(const char *text)
{
	char *location = memory_format("yaml:%s", text);
	struct error err = { 0 };
	struct node *tree =
		config_load(&(struct config_sources){ .locations = (const char *[]){ location },
						      .location_count = 1 },
			    &err);
	assert_string_equal(err.text, "");
	memory_free(location);
	return tree;
}

static void what_was_brought_is_printed_as_it_was_written(void **state)
{
	static const char yaml[] =
		"path: a ${env:PRINT_TEXT}\nsize: ${env:PRINT_NUMBER}\ntoken: ${env:PRINT_TEXT}\n"
		"keys: [x, '${PRINT_TEXT}']\nheaders: [{name: '${PRINT_TEXT}', value: v}]\n"
		"raw: {a: '${env:PRINT_TEXT}', b: c}\nany: ${env:PRINT_MAP}\ndeep: {wait: "
		"'${env:PRINT_TIME}'}\n"
		"queue: ${env:PRINT_QUEUE}\nactions: [{key: '${PRINT_TEXT}', value: 1}, "
		"'${env:PRINT_ITEM}']\n"
		"named: ${env:PRINT_NAMED}\n";
	static const char expected[] =
		"  \"on\": true\n  size: \"${env:PRINT_NUMBER}\"\n  factor: 0.5\n  path: \"a "
		"${env:PRINT_TEXT}\"\n"
		"  timeout: 5s\n  offset: 0s\n  token: \"[REDACTED]\"\n  keys:\n    - x\n    - "
		"\"${PRINT_TEXT}\"\n"
		"  headers:\n    \"${PRINT_TEXT}\": \"[REDACTED]\"\n  level: basic\n"
		"  raw:\n    a: \"${env:PRINT_TEXT}\"\n    b: c\n  any: \"${env:PRINT_MAP}\"\n"
		"  deep:\n    wait: \"${env:PRINT_TIME}\"\n  queue: \"${env:PRINT_QUEUE}\"\n"
		"  actions:\n    - key: \"${PRINT_TEXT}\"\n      value: 1\n    - "
		"\"${env:PRINT_ITEM}\"\n"
		"  named: \"${env:PRINT_NAMED}\"\n  buffer: 0\n";
	struct whole_config c = { 0 };
	struct error err = { 0 };
	(void)state;
	setenv("PRINT_TEXT", "secret", 1);
	setenv("PRINT_NUMBER", "99", 1);
	setenv("PRINT_MAP", "{secret: 1}", 1);
	setenv("PRINT_TIME", "99s", 1);
	setenv("PRINT_QUEUE", "{queue_size: 99}", 1);
	setenv("PRINT_ITEM", "{key: secret}", 1);
	setenv("PRINT_NAMED", "{secret: {key: secret}}", 1);
	struct node *tree = load_printed(yaml);
	assert_true(config_bind(&whole_table, tree, "", &c, &err));
	char *redacted = print_bound(&c, tree, false, true),
	     *all = print_bound(&c, tree, false, false);
	char *json = print_bound(&c, tree, true, true), *back = print(&c, false, false);
	assert_string_equal(redacted, expected);
	assert_string_equal(all, back);
	assert_null(strstr(json, "secret"));
	assert_null(strstr(json, "99"));
	memory_free(redacted);
	memory_free(all);
	memory_free(json);
	memory_free(back);
	release(&c, &tree);
}

static void comes_back_the_same(const struct whole_config *config)
{
	struct error err = { 0 };
	char *once = print(config, false, false);
	for (int json = 0; json <= 1; json++) {
		char *text = print(config, json, false);
		struct node *tree = load_printed(text);
		struct whole_config back = { 0 };
		config_bind(&whole_table, tree, "", &back, &err);
		assert_string_equal(err.text, "");
		char *twice = print(&back, false, false);
		assert_string_equal(twice, once);
		if (config->path)
			assert_string_equal(back.path, config->path);
		assert_int_equal(back.any.kind, config->any.kind);
		memory_free(twice);
		memory_free(text);
		release(&back, &tree);
	}
	memory_free(once);
}

static void what_is_printed_loads_again(void **state)
{
	(void)state;
	struct whole_config c;
	struct node *tree;
	assert_string_equal(bind_text(full, &c, &tree), "");
	comes_back_the_same(&c);
	release(&c, &tree);
	assert_string_equal(bind_text("", &c, &tree), "");
	comes_back_the_same(&c);
	release(&c, &tree);
}

static const char *const awkward[] = {
	"",
	" ",
	"a",
	"a: b",
	"a #b",
	"- a",
	"-",
	"--- a",
	"...",
	"? a",
	"&a",
	"*a",
	"!a",
	"%a",
	"@a",
	"`a`",
	"{a}",
	"[a]",
	"a,b",
	"'a'",
	"\"a\"",
	"a\\b",
	"a\nb",
	"a\r\nb",
	"\t",
	"a ",
	" a",
	"true",
	"null",
	"~",
	"NULL",
	"Yes",
	"off",
	"0",
	"0123",
	"0x1f",
	"1e3",
	".inf",
	"1_000",
	"2001-01-01",
	"<<",
	"=",
	"a:",
	":a",
	"a::b",
	"\x01\x1f\x7f",
	"\xc2\x85",
	"\xe2\x80\xa8",
	"\xef\xbb\xbf",
	"ü",
	"\xf0\x9f\x98\x80",
	"\xef\xbf\xbe",
	"$",
	"$$",
	"${",
	"${env:HOME}",
	"$${env:HOME}",
	"^a$",
	"^k8s\\.(namespace|deployment)\\.name$",
	"a${b",
	"}${}",
	"$$$",
};

static void every_string_is_quoted_safely(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof awkward / sizeof awkward[0]; i++) {
		char *text = (char *)awkward[i];
		struct pair pair = { text, { text } };
		struct item_config item = { .key = (char *)"k",
					    .value = { .kind = ANY_STRING, .text = text } };
		const struct whole_config c = {
			.path = text,
			.token = { text },
			.keys = { &text, 1 },
			.headers = { &pair, 1 },
			.any = { .kind = ANY_STRING, .text = text },
			.actions = { .at = &item, .count = 1 },
			.named = { .at = &item, .names = &text, .count = 1 },
			.queue = { .optional.enabled = true, .queue_size = 1 },
		};
		comes_back_the_same(&c);
	}
}

static void long_keys_and_values_come_back(void **state)
{
	(void)state;
	char *text = memory_new(5001);
	memset(text, 'k', 5000);
	struct pair pairs[] = { { text, { text } }, { (char *)"b", { (char *)"x" } } };
	struct item_config item = { .key = text };
	const struct whole_config c = {
		.headers = { pairs, 2 },
		.named = { .at = &item, .names = &text, .count = 1 },
		.queue = { .optional.enabled = true, .queue_size = 1 },
	};
	char *once = print(&c, false, false);
	struct node *tree = load_printed(once);
	const struct node *headers = node_get(tree, "headers");
	assert_string_equal(headers->children[0]->key, text);
	assert_string_equal(node_get(headers, text)->text, text);
	assert_non_null(node_get(node_get(tree, "named"), text));
	node_unref(&tree);
	memory_free(once);
	memory_free(text);
}

static void numbers_keep_their_kind(void **state)
{
	static const double numbers[] = { 0,     1,      -1,      0.1,
					  1e300, 5e-324, 1.0 / 3, 123456789012345680.0,
					  1e15 };
	(void)state;
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
		const struct whole_config c = {
			.factor = numbers[i],
			.any = { .kind = ANY_DOUBLE, .number = numbers[i] },
			.queue = { .optional.enabled = true, .queue_size = 1 },
		};
		comes_back_the_same(&c);
	}
}

static void the_manual_lists_every_row(void **state)
{
	(void)state;
	struct bytes out;
	bytes_init(&out, 1 << 16);
	config_manual(&whole_table, NULL, &out);
	bytes_add_byte(&out, '\0');
	const char *text = (const char *)out.at;
	static const char *const lines[] = {
		"| key | type | default | meaning |\n|---|---|---|---|\n| `on` | bool | `true` | "
		"Whether. |\n",
		"| `size` | integer, 0 to 100 | `4` | Size \\| in pieces. |\n",
		"| `timeout` | duration | `5s` | Timeout. |\n",
		"| `level` | one of `\"\"`, `basic`, `detailed` | `basic` | Level. |\n",
		"| `path` | string | – | Path. |\n",
		"| `deep` | section | – | Deep. |\n| `deep.wait` | duration | `1m30s` | How long. "
		"|\n",
		"| `deep.tls` | section, absent unless given | – | TLS. |\n"
		"| `deep.tls.ca_file` | string | – | Roots. |\n",
		"| `queue` | section, on unless `enabled: false` | – | Queue. |\n"
		"| `queue.queue_size` | integer, 1 or more | `1000` | How many. |\n",
		"| `batch` | section, absent until the key appears | – | Batch. |\n",
		"| `actions` | list of sections | – | List. |\n| `actions[].key` | string | "
		"required | Which. |\n",
		"| `named` | map of sections | – | Map. |\n| `named.<name>.key` | string | "
		"required | Which. |\n",
		"| `buffer` | integer | `0` | **Accepted, no effect.** Not needed here. |\n",
		"| `old_size` |  |  | Old name of `size`. Old name. |\n",
	};
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
		assert_non_null(strstr(text, lines[i]));
	bytes_fini(&out);
}

/* What the manual prints for the fixture, with this list of shared sections. */
static void print_shared(const struct config_manual_section *shared,
			 const struct config_table *table, char *text, size_t size)
{
	struct bytes out;
	bytes_init(&out, size - 1);
	config_manual(table, shared, &out);
	memcpy(text, out.at, out.len);
	text[out.len] = '\0';
	bytes_fini(&out);
}

static void shared_sections_become_links(void **state)
{
	(void)state;
	char text[1 << 14];
	const struct config_manual_section shared[] = { { "Sending queue", &queue_table, "Text." },
							{ 0 } };
	print_shared(shared, &whole_table, text, sizeof text);
	assert_non_null(strstr(text, "| `queue` | section, on unless `enabled: false` | – | Queue. "
				     "Keys: [Sending queue](#sending-queue). |\n"));
	assert_null(strstr(text, "`queue.queue_size`"));
	assert_non_null(strstr(text, "`deep.wait`"));
}

static const struct config_row twice_rows[] = {
	{ .key = "a", .type = CONFIG_TABLE, .table = &deep_table, .help = "A." },
	{ .key = "b", .type = CONFIG_TABLE, .table = &deep_table, .help = "B." },
	{ 0 }
};
static const struct config_table twice_table = { .rows = twice_rows };

static void a_table_that_occurs_again_is_printed_once(void **state)
{
	(void)state;
	char text[1 << 14];
	const struct config_manual_section none[] = { { 0 } };
	print_shared(none, &twice_table, text, sizeof text);
	assert_non_null(strstr(text, "| `a.wait` |"));
	assert_non_null(strstr(text, "| `b` | section | – | B. Keys: as of `a`. |\n"));
	assert_null(strstr(text, "`b.wait`"));
	print_shared(NULL, &twice_table, text, sizeof text);
	assert_non_null(strstr(text, "| `b.wait` |"));
}

static const struct config_row section_rows[] = {
	{ .key = "endpoint", .type = CONFIG_STRING, .help = "Where." },
	{ .key = "path", .type = CONFIG_STRING, .help = "Path." },
	{ .key = "size", .type = CONFIG_STRING, .help = "Size." },
	{ 0 }
};
static const struct config_table section_table = { .rows = section_rows };
static const struct config_row embedding_rows[] = {
	{ .key = "endpoint", .type = CONFIG_STRING, .help = "Where.", .def = "localhost:1" },
	{ .key = "path", .type = CONFIG_STRING, .help = "Path." },
	{ .key = "size", .type = CONFIG_STRING, .help = "Size." },
	{ .key = "own", .type = CONFIG_STRING, .help = "Own." },
	{ 0 }
};
static const struct config_table embedding_table = { .rows = embedding_rows };

static void rows_that_repeat_a_section_are_left_out_unless_their_default_differs(void **state)
{
	(void)state;
	char text[1 << 14];
	const struct config_manual_section shared[] = { { "HTTP servers", &section_table, "Text." },
							{ 0 } };
	print_shared(shared, &embedding_table, text, sizeof text);
	assert_string_equal(text, "| key | type | default | meaning |\n|---|---|---|---|\n"
				  "| `endpoint` | string | `localhost:1` | Where. |\n"
				  "| `own` | string | – | Own. |\n"
				  "\nBesides these, the keys of [HTTP servers](#http-servers), "
				  "at the same level.\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_effective_configuration_is_yaml),
		cmocka_unit_test(json_says_the_same),
		cmocka_unit_test(what_was_brought_is_printed_as_it_was_written),
		cmocka_unit_test(what_is_printed_loads_again),
		cmocka_unit_test(every_string_is_quoted_safely),
		cmocka_unit_test(long_keys_and_values_come_back),
		cmocka_unit_test(numbers_keep_their_kind),
		cmocka_unit_test(the_manual_lists_every_row),
		cmocka_unit_test(shared_sections_become_links),
		cmocka_unit_test(a_table_that_occurs_again_is_printed_once),
		cmocka_unit_test(
			rows_that_repeat_a_section_are_left_out_unless_their_default_differs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
