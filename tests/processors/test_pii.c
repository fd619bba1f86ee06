/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"
#include "tests/processors/policy_fixture.h"
#include "tests/processors/specimens.h"

extern const struct component_factory pii_processor;

#define TEST(name) cmocka_unit_test_teardown(name, close_policy)

static void open_policy(const char *yaml)
{
	open_processor(&pii_processor, yaml);
}

static void run(void)
{
	if (!policy_run(&policy, &p))
		fail_msg("%s", policy.err.text);
}

static void collect_text(struct profiles *tables, uint32_t *string, uint8_t *changed, void *out)
{
	(void)changed;
	struct view text = string_view(tables, *string);
	bytes_add(out, text.at, text.len);
}

/* The value of a sample's attribute after the processor; "<none>" if the attribute was removed. */
static const char *value_after(const char *text)
{
	tables_init(&p, NULL, 1);
	p.samples.at[0].attributes = tables_list(&p, tables_attribute(&p, "k", text), 0);
	run();
	return tables_find(&p, p.samples.at[0].attributes, "k")
		       ? tables_value(&p, p.samples.at[0].attributes, "k")
		       : "<none>";
}

static const char *file_after(const char *text)
{
	tables_init(&p, NULL, 1);
	uint32_t function = tables_function(&p, "f", text);
	run();
	return tables_string(&p, p.functions.at[function].filename);
}

static void specimens_are_masked_and_near_misses_stay(void **state)
{
	(void)state;
	unsigned wrong = 0;
	open_policy("{}");
	for (int warm = 0; warm < 2; warm++) {
		for (size_t i = 0; i < COUNT(hits); i++) {
			const char *out = value_after(hits[i].in);
			if (strcmp(out, hits[i].out) != 0 && ++wrong)
				print_error("%s -> %s, not %s\n", hits[i].in, out, hits[i].out);
		}
		for (size_t i = 0; i < COUNT(misses); i++) {
			const char *out = value_after(misses[i]);
			if (strcmp(out, misses[i]) != 0 && ++wrong)
				print_error("%s -> %s\n", misses[i], out);
		}
	}
	assert_int_equal(wrong, 0);
}

static void every_text_site_is_scanned(void **state)
{
	(void)state;
	open_policy("{}");
	assert_true(profiles_room(&p, &p.mappings, 1));
	uint32_t mail = tables_text(&p, "CANARY.x@example.com");
	uint32_t function = tables_function(&p, "", "");
	p.functions.at[function] =
		(struct function){ .name = mail, .system_name = mail, .filename = mail };
	p.mappings.at[p.mappings.count++] = (struct mapping){ .filename = mail };
	p.scopes.at[0].name = p.scopes.at[0].version = p.scopes.at[0].schema_url = mail;
	p.resources.at[0].schema_url = mail;
	p.profiles.at[0].sample_type = p.profiles.at[0].period_type =
		(struct value_kind){ mail, mail };
	uint32_t entity = tables_entity(&p, "", "id", "id");
	p.entities.at[entity].type = p.entities.at[entity].schema_url = mail;
	p.resources.at[0].entities = (struct list){ 0, 1 };
	for (enum site site = SITE_SCOPE_NAME; site < SITE_COUNT; site++) {
		struct bytes seen;
		bytes_init(&seen, 1 << 20);
		sites_each_text(&p, site, (struct sites_settled){ 0 }, collect_text, &seen);
		assert_non_null(memmem(seen.at, seen.len, "CANARY", 6));
		bytes_fini(&seen);
	}
	run();
	assert_false(tables_reach(&p, "CANARY"));
	assert_int_equal(p.functions.at[function].changed, 1);
	assert_int_equal(p.mappings.at[1].changed, 1);
	assert_int_equal(p.scopes.at[0].changed, 1);
	assert_int_equal(p.resources.at[0].changed, 1);
	assert_int_equal(p.profiles.at[0].changed, 1);
	assert_int_equal(policy_count(&policy, "otelcol_processor_pii_masked_strings", "role",
				      "value"),
			 0);
	/* Once as a path, once as another string. */
	assert_int_equal(policy_count(&policy, "otelcol_processor_pii_masked_strings", "detector",
				      "email"),
			 2);
}

static void values_units_nested_values_numbers_and_bytes_are_scanned(void **state)
{
	(void)state;
	open_policy("number_keys: [card, double, list]");
	uint32_t mail = tables_attribute(&p, "x", "CANARY@example.com");
	uint32_t fine = tables_attribute(&p, "fine", "fine");
	uint32_t map = tables_nested(&p, VALUE_KVLIST, "m", fine, mail, 0);
	uint32_t array = tables_nested(&p, VALUE_ARRAY, "a", map, fine, 0);
	uint32_t unit = tables_attribute(&p, "u", "1");
	uint32_t card = tables_integer(&p, "card", 4111111111111111);
	uint32_t number = tables_integer(&p, "double", 0);
	uint32_t plain = tables_integer(&p, "plain", 42);
	uint32_t data = tables_integer(&p, "data", 4222222222222);
	uint32_t list =
		tables_nested(&p, VALUE_ARRAY, "list", tables_integer(&p, "", 4111111111111111), 0);
	uint32_t bytes = tables_attribute(&p, "b", "");
	p.attributes.at[unit].unit = tables_text(&p, "CANARY@example.com");
	p.attributes.at[number].type = VALUE_DOUBLE;
	attribute_set_number(&p.attributes.at[number], 4111111111111111.0);
	p.attributes.at[bytes].type = VALUE_BYTES;
	p.attributes.at[bytes].bytes = profiles_bytes_new(&p, "\xff CANARY@example.com", 20);
	p.resources.at[0].attributes = tables_list(&p, mail, array, unit, 0);
	p.scopes.at[0].attributes = tables_list(&p, card, number, plain, bytes, data, list, 0);
	p.samples.at[0].attributes = tables_list(&p, fine, 0);
	run();
	assert_false(tables_reach(&p, "CANARY"));
	assert_false(tables_reach(&p, "4111111111111111"));
	assert_int_equal(tables_find(&p, p.scopes.at[0].attributes, "card")->type, VALUE_STRING);
	/* Numbers of keys that are not named are data, whatever they look like. */
	assert_int_equal(tables_find(&p, p.scopes.at[0].attributes, "data")->type, VALUE_INT);
	assert_int_equal(attribute_integer(tables_find(&p, p.scopes.at[0].attributes, "data")),
			 4222222222222);
	assert_string_equal(tables_value(&p, p.scopes.at[0].attributes, "double"), "****");
	assert_int_equal(tables_find(&p, p.scopes.at[0].attributes, "b")->type, VALUE_BYTES);
	assert_int_equal(attribute_integer(tables_find(&p, p.scopes.at[0].attributes, "plain")),
			 42);
	assert_int_equal(p.indices.at[p.samples.at[0].attributes.first], fine);
	assert_int_equal(p.samples.at[0].changed, 0);
	assert_int_equal(p.resources.at[0].attributes.count, 3);
}

#define GNU "process.executable.build_id.gnu"
#define CARD "4111111111111111"
/* IDs in which the pattern below has a match. */
#define HEX8 \
	"face" \
	"0123456789ab"
#define GO20 "facefaceface-facefac"

static void add_mapping(void)
{
	assert_true(profiles_room(&p, &p.mappings, 1));
	p.mappings.at[p.mappings.count++] = (struct mapping){ 0 };
}

/* The value that remains at a sample, or at a mapping. */
static const char *id_after(const char *key, const char *value, bool at_mapping)
{
	tables_init(&p, NULL, 1);
	struct list list = tables_list(&p, tables_attribute(&p, key, value), 0);
	add_mapping();
	*(at_mapping ? &p.mappings.at[1].attributes : &p.samples.at[0].attributes) = list;
	run();
	return tables_value(&p,
			    at_mapping ? p.mappings.at[1].attributes : p.samples.at[0].attributes,
			    key);
}

static void ids_are_never_touched(void **state)
{
	(void)state;
	static const struct {
		const char *key, *value;
		bool at_mapping;
	} rows[] = {
		{ GNU, HEX8, true },
		{ GNU, HEX8 HEX8 "01234567", true },
		{ "process.executable.build_id.htlhash", HEX8 HEX8, true },
		{ "process.executable.build_id.go", GO20 "/" GO20, true },
		{ "trace_id", HEX8 HEX8, false },
		{ "span_id", HEX8, false },
		{ "trace_id", HEX8 HEX8, true },
	};
	open_policy("patterns: {word: {pattern: 'face'}}");
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_string_equal(id_after(rows[i].key, rows[i].value, rows[i].at_mapping),
				    rows[i].value);
}

static void what_only_looks_like_an_id_is_scanned(void **state)
{
	(void)state;
	static const struct {
		const char *key, *value, *after;
		bool at_mapping;
	} rows[] = {
		/* a build ID at another site, or of a length that no linker produces */
		{ GNU, HEX8, "****0123456789ab", false },
		{ GNU, "face01", "****01", true },
		{ "process.executable.build_id.go", GO20 "/" GO20,
		  "************-****fac/************-****fac", false },
		{ "process.executable.build_id.go", "face/face", "****/****", true },
		{ "process.executable.build_id.htlhash", HEX8, "****0123456789ab", true },
		/* decimal digits only: a card number */
		{ GNU, CARD, "****", true },
		{ "span_id", CARD, "****", false },
		/* the length of the other ID */
		{ "trace_id", HEX8, "****0123456789ab", false },
		{ "span_id", HEX8 HEX8, "****0123456789ab****0123456789ab", false },
		{ "span_id", "alice@example.com", "****", false },
	};
	open_policy("patterns: {word: {pattern: 'face'}}");
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_string_equal(id_after(rows[i].key, rows[i].value, rows[i].at_mapping),
				    rows[i].after);
}

static void an_id_of_a_mapping_is_scanned_where_a_sample_has_it_too(void **state)
{
	(void)state;
	open_policy("patterns: {word: {pattern: 'face'}}");
	tables_init(&p, NULL, 1);
	uint32_t id = tables_attribute(&p, GNU, HEX8);
	add_mapping();
	p.samples.at[0].attributes = tables_list(&p, id, 0);
	p.mappings.at[1].attributes = tables_list(&p, id, 0);
	run();
	assert_string_equal(tables_value(&p, p.samples.at[0].attributes, GNU), "****0123456789ab");
	assert_string_equal(tables_value(&p, p.mappings.at[1].attributes, GNU), HEX8);
}

static void uuid_is_off_until_named(void **state)
{
	(void)state;
	open_policy("detectors: {uuid: {}}");
	assert_string_equal(value_after("id f81d4fae-7dec-11d0-a765-00a0c91e6bf6"), "id ****");
}

static void patterns_of_places_are_off_until_named_and_have_roles(void **state)
{
	(void)state;
	open_policy("detectors: {user_name: {}, generated_path: {}}");
	assert_string_equal(value_after("worker-user-alice"), "worker-user-****");
	assert_string_equal(value_after("/tmp/alice/x.so"), "/tmp/alice/x.so");
	assert_string_equal(file_after("/tmp/alice/x.so"), "/tmp/*/x.so");
	assert_string_equal(file_after("worker-user-alice"), "worker-user-alice");
	close_policy(state);
	open_policy("detectors: {command_line: {roles: [file, value]}}");
	assert_string_equal(file_after("/bin/java -jar a.jar"), "/bin/java ****");
	assert_string_equal(value_after("/bin/java -jar a.jar"), "/bin/java ****");
	close_policy(state);
	open_policy("{}");
	assert_string_equal(value_after("worker-user-alice"), "worker-user-alice");
	assert_string_equal(file_after("/tmp/alice/x.so"), "/tmp/alice/x.so");
}

static void detectors_can_be_switched_off(void **state)
{
	(void)state;
	open_policy("detectors: {email: {enabled: false}}");
	assert_string_equal(value_after("alice@example.com"), "alice@example.com");
	assert_string_equal(value_after("192.0.2.1"), "****");
}

#define KEY "0123456789abcdef0123456789abcdef"

static void hash_gives_the_same_token_for_the_same_text(void **state)
{
	(void)state;
	char first[64];
	open_policy("{action: hash, hmac_key: " KEY "}");
	snprintf(first, sizeof first, "%s", value_after("alice@example.com"));
	assert_int_equal(strlen(first), 21);
	assert_memory_equal(first, "hash_", 5);
	assert_string_equal(value_after("alice@example.com"), first);
	assert_string_not_equal(value_after("bob@example.com"), first);
	char in_text[80];
	snprintf(in_text, sizeof in_text, "<%s>", first);
	assert_string_equal(value_after("<alice@example.com>"), in_text);
	assert_string_equal(value_after(in_text), in_text);
	close_policy(state);
	open_policy("{action: hash, hmac_key: x" KEY "}");
	assert_string_not_equal(value_after("alice@example.com"), first);
}

static void drop_removes_attributes_and_empties_texts(void **state)
{
	(void)state;
	open_policy("{action: drop, normalize_paths: false}");
	assert_string_equal(value_after("to alice@example.com"), "<none>");
	assert_string_equal(file_after("/x/alice@example.com/y.c"), "");
	tables_init(&p, NULL, 1);
	uint32_t array =
		tables_nested(&p, VALUE_ARRAY, "a", tables_attribute(&p, "", "CANARY@example.com"),
			      tables_attribute(&p, "", "stays"), 0);
	p.samples.at[0].attributes = tables_list(&p, array, 0);
	run();
	assert_int_equal(tables_find(&p, p.samples.at[0].attributes, "a")->children.count, 1);
	assert_true(tables_reach(&p, "stays"));
	assert_false(tables_reach(&p, "CANARY"));
}

static void a_detector_has_its_own_roles_and_action(void **state)
{
	(void)state;
	open_policy("{roles: [file], detectors: {email: {roles: [value], action: drop}}}");
	assert_string_equal(value_after("alice@example.com"), "<none>");
	assert_string_equal(value_after("192.0.2.1"), "192.0.2.1");
	assert_string_equal(file_after("/x/192.0.2.1/y"), "/x/****/y");
	assert_string_equal(file_after("/x/alice@example.com/y"), "/x/alice@example.com/y");
}

static void one_text_in_two_roles_gets_what_each_role_demands(void **state)
{
	(void)state;
	open_policy("{roles: [file]}");
	uint32_t function = tables_function(&p, "", "");
	uint32_t mail = tables_text(&p, "alice@example.com");
	p.functions.at[function] = (struct function){ .name = mail, .filename = mail };
	run();
	assert_int_equal(p.functions.at[function].name, mail);
	assert_string_equal(tables_string(&p, p.functions.at[function].filename), "****");
}

static void workspaces_are_normalised_in_paths_only(void **state)
{
	(void)state;
	open_policy("{}");
	for (size_t i = 0; i < COUNT(paths); i++)
		assert_string_equal(file_after(paths[i][0]), paths[i][1]);
	assert_string_equal(value_after("/builds/group/project/x"), "/builds/group/project/x");
	close_policy(state);
	open_policy("{normalize_paths: false, detectors: {home_directory: {enabled: false}}}");
	assert_string_equal(file_after("/home/alice/x"), "/home/alice/x");
	close_policy(state);
	open_policy("{detectors: {home_directory: {enabled: false}}}");
	assert_string_equal(file_after("/home/alice/x"), "/home/*/x");
	assert_string_equal(value_after("/home/alice/x"), "/home/alice/x");
}

static void a_long_text_is_masked_whole_if_anything_could_match(void **state)
{
	(void)state;
	char text[9001];
	open_policy("{}");
	memset(text, 'a', sizeof text);
	text[9000] = '\0';
	assert_int_equal(strlen(value_after(text)), 9000);
	text[5000] = '@';
	text[5100] = '.';
	assert_string_equal(value_after(text), "****");
	assert_int_equal(policy_count(&policy, "otelcol_processor_pii_masked_strings", "detector",
				      "too_long"),
			 1);
}

static void many_hits_in_one_text_are_masked_whole(void **state)
{
	(void)state;
	char text[8001];
	open_policy("{}");
	for (size_t i = 0; i < 8000; i += 10)
		memcpy(text + i, "a@bb.test ", 11);
	assert_string_equal(value_after(text), "****");
}

static void repeat(char *text, size_t size, const char *part)
{
	size_t len = strlen(part);
	for (size_t at = 0; at + len < size; at += len)
		memcpy(text + at, part, len + 1);
}

/* A hostile string needs more effort than it is worth; what people and programs write does not. */
static void a_text_that_is_too_dense_is_masked_whole(void **state)
{
	(void)state;
	char dense[513] = "", plain[513] = "";
	repeat(dense, sizeof dense, ";pwd=a/");
	repeat(plain, sizeof plain, "Cc: alice@example.com, ");
	open_policy("{}");
	assert_string_equal(value_after(dense), "****");
	assert_int_equal(policy_count(&policy, "otelcol_processor_pii_masked_strings", "detector",
				      "too_long"),
			 1);
	assert_memory_equal(value_after(plain), "Cc: ****, Cc: ****, ", 20);
	close_policy(state);
	open_policy("{detectors: {credential: {action: drop}}}");
	assert_string_equal(value_after(dense), "<none>");
}

/* Its few bytes cost less to read, which is left for its rules. */
static void a_short_text_with_a_number_in_groups_loses_the_number_alone(void **state)
{
	(void)state;
	open_policy("{}");
	assert_string_equal(value_after("lambda for AT79 6591 5435 4502 6988"), "lambda for ****");
	assert_string_equal(value_after("id=2221%201233%201464%204328 state=open"),
			    "id=**** state=open");
}

static void masks_keep_utf8_whole(void **state)
{
	(void)state;
	open_policy("{}");
	assert_string_equal(value_after("\xe2\x82\xac"
					"alice@example.com\xe2\x82\xac"),
			    "****");
	assert_string_equal(file_after("/home/\xc3\xa9lise/x"), "/home/*/x");
	char text[600] = "/home/";
	for (size_t i = 6; i < 306; i += 3)
		memcpy(text + i, "\xe2\x82\xac", 4);
	const char *out = file_after(text);
	struct view rest = view_of(out);
	for (size_t i = 0; i < rest.len; i++)
		if (rest.at[i] == '*')
			assert_true(i + 1 == rest.len || (rest.at[i + 1] & 0xc0) != 0x80);
}

static void the_operators_patterns_are_used_and_their_cost_is_checked(void **state)
{
	(void)state;
	open_policy("patterns: {employee: {pattern: 'EMP-[0-9]{6}', roles: [value]}}");
	assert_string_equal(value_after("by EMP-123456!"), "by ****!");
	assert_string_equal(file_after("EMP-123456"), "EMP-123456");
	assert_int_equal(policy_count(&policy, "otelcol_processor_pii_masked_strings", "detector",
				      "employee"),
			 1);
}

static void bad_configurations_are_refused(void **state)
{
	(void)state;
	static const char *const rows[][2] = {
		{ "action: hash", "hmac_key of at least 32 bytes" },
		{ "{action: hash, hmac_key: short}", "hmac_key must have at least 32 bytes" },
		{ "detectors: {email: {action: hash}}",
		  "detectors::email: action hash requires an hmac_key" },
		{ "patterns: {x: {pattern: 'a*'}}",
		  "patterns::x::pattern: the pattern must not match the empty string" },
		{ "patterns: {x: {pattern: '\\w+[.-]?\\w+@'}}",
		  "patterns::x::pattern: the pattern is too expensive" },
		{ "patterns: {x: {pattern: '('}}",
		  "patterns::x::pattern: invalid regular expression" },
		{ "patterns: {x: {pattern: 'a', action: hash}}", "patterns::x: action hash" },
		{ "roles: [key]", "roles[0]: unknown role" },
		{ "detectors: {email: {roles: [names]}}", "roles[0]: unknown role" },
		{ "detectors: {mail: {}}", "mail" },
		{ "action: erase", "erase" },
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_false(policy_open(&policy, &pii_processor, rows[i][0]));
		if (!strstr(policy.err.text, rows[i][1]))
			fail_msg("row %zu: %s", i, policy.err.text);
		if (i + 1 < COUNT(rows))
			close_policy(state);
	}
}

static void verdicts_survive_a_full_cache(void **state)
{
	(void)state;
	open_policy("{}");
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 70000; i += 100) {
			tables_init(&p, NULL, 100);
			for (int n = 0; n < 100; n++) {
				char text[80];
				snprintf(text, sizeof text, "%s%d%s", n % 2 ? "user" : "fine",
					 i + n, n % 2 ? "@example.com and more and more" : "");
				p.samples.at[n].attributes =
					tables_list(&p, tables_attribute(&p, "k", text), 0);
			}
			run();
			assert_false(tables_reach(&p, "@example"));
			assert_true(tables_reach(&p, "fine"));
		}
}

/* Collect uses them instead of hashing the strings again. */
static void hashes_left_behind_are_those_of_the_texts(void **state)
{
	(void)state;
	open_policy("{}");
	for (int again = 0; again < 2; again++) {
		uint32_t left = 0;
		tables_init(&p, NULL, 1);
		tables_function(&p, "main", "a.c");
		tables_function(&p, "a name that is longer than sixteen bytes", "mail@example.com");
		run();
		for (uint32_t i = 0; i < p.strings.count; i++) {
			struct view text = string_view(&p, i);
			uint32_t hash = (uint32_t)hash_bytes_128(text.at, text.len).low;
			if (p.strings.at[i].hash)
				assert_int_equal(p.strings.at[i].hash, hash);
			left += p.strings.at[i].hash != 0;
		}
		assert_true(left >= 4);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(specimens_are_masked_and_near_misses_stay),
		TEST(every_text_site_is_scanned),
		TEST(values_units_nested_values_numbers_and_bytes_are_scanned),
		TEST(ids_are_never_touched),
		TEST(what_only_looks_like_an_id_is_scanned),
		TEST(an_id_of_a_mapping_is_scanned_where_a_sample_has_it_too),
		TEST(uuid_is_off_until_named),
		TEST(patterns_of_places_are_off_until_named_and_have_roles),
		TEST(detectors_can_be_switched_off),
		TEST(hash_gives_the_same_token_for_the_same_text),
		TEST(drop_removes_attributes_and_empties_texts),
		TEST(a_detector_has_its_own_roles_and_action),
		TEST(one_text_in_two_roles_gets_what_each_role_demands),
		TEST(workspaces_are_normalised_in_paths_only),
		TEST(a_long_text_is_masked_whole_if_anything_could_match),
		TEST(many_hits_in_one_text_are_masked_whole),
		TEST(a_text_that_is_too_dense_is_masked_whole),
		TEST(a_short_text_with_a_number_in_groups_loses_the_number_alone),
		TEST(masks_keep_utf8_whole),
		TEST(the_operators_patterns_are_used_and_their_cost_is_checked),
		TEST(bad_configurations_are_refused),
		TEST(verdicts_survive_a_full_cache),
		TEST(hashes_left_behind_are_those_of_the_texts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
