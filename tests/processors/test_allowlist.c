/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/processors/policy_fixture.h"

extern const struct component_factory allowlist_processor;

static void open_policy(const char *yaml)
{
	open_processor(&allowlist_processor, yaml);
}

/* Is an attribute with that key kept at the resource? */
static bool key_passes(const char *key)
{
	tables_init(&p, NULL, 1);
	p.resources.at[0].attributes = tables_list(&p, tables_attribute(&p, key, "v"), 0);
	assert_true(policy_run(&policy, &p));
	return p.resources.at[0].attributes.count == 1;
}

static void only_listed_keys_pass_everywhere(void **state)
{
	(void)state;
	open_policy("keys: [service.name]");
	uint32_t good = tables_attribute(&p, "service.name", "pay");
	uint32_t bad = tables_attribute(&p, "user", "CANARY");
	p.resources.at[0].attributes = tables_list(&p, bad, good, bad, 0);
	p.scopes.at[0].attributes = tables_list(&p, bad, good, 0);
	p.profiles.at[0].attributes = tables_list(&p, good, bad, 0);
	p.samples.at[0].attributes = tables_list(&p, bad, 0);
	p.samples.at[1].attributes = tables_list(&p, good, 0);
	assert_true(policy_run(&policy, &p));
	assert_false(tables_reach(&p, "CANARY"));
	assert_int_equal(p.resources.at[0].attributes.count, 1);
	assert_string_equal(tables_value(&p, p.scopes.at[0].attributes, "service.name"), "pay");
	assert_int_equal(p.samples.at[0].attributes.count, 0);
	assert_int_equal(p.samples.at[0].changed, 1);
	assert_int_equal(p.samples.at[1].changed, 0);
	assert_int_equal(policy_count(&policy, "otelcol_processor_allowlist_denied_attributes",
				      "site", "resource"),
			 2);
	assert_int_equal(policy_count(&policy, "otelcol_processor_allowlist_denied_attributes",
				      "site", "sample"),
			 1);
}

static void an_empty_list_denies_all(void **state)
{
	(void)state;
	static const char *const yamls[] = { "{}", "keys: []", "keys:", "sample: []" };
	for (size_t i = 0; i < sizeof yamls / sizeof *yamls; i++) {
		open_policy(yamls[i]);
		assert_false(key_passes("service.name"));
		assert_false(key_passes(""));
		if (i + 1 < sizeof yamls / sizeof *yamls)
			close_policy(state);
	}
}

static void a_pattern_must_match_the_whole_key(void **state)
{
	(void)state;
	open_policy("key_patterns: ['^k8s\\.(namespace|deployment)\\.name$', 'a|ab', '(?m)^x$']");
	assert_true(key_passes("k8s.namespace.name"));
	assert_true(key_passes("ab"));
	static const char *const evil[] = { "k8s.namespace.name\n",
					    "k8s.namespace.name\nuser",
					    "user\nk8s.namespace.name",
					    "xk8s.namespace.name",
					    "k8s.namespace.names",
					    "k8sznamespace.name",
					    "K8S.namespace.name",
					    "abc",
					    "x\n",
					    "y\nx",
					    "x\ny" };
	for (size_t i = 0; i < sizeof evil / sizeof *evil; i++)
		if (key_passes(evil[i]))
			fail_msg("passed: %s", evil[i]);
}

static void look_alikes_are_other_keys(void **state)
{
	(void)state;
	open_policy("keys: [service.name, 'café']");
	assert_true(key_passes("service.name"));
	assert_true(key_passes("caf\xc3\xa9"));
	static const char *const others[] = { "caf"
					      "e\xcc\x81",
					      "s\xd0\xb5rvice.name",
					      "Service.name",
					      "service.name ",
					      " service.name",
					      "service.name\xe2\x80\x8b",
					      "service\xef\xbc\x8ename",
					      "service.nam",
					      "service.name.x" };
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (key_passes(others[i]))
			fail_msg("passed: %s", others[i]);
}

static void a_key_that_was_invalid_is_denied_whatever_it_says_now(void **state)
{
	(void)state;
	open_policy("keys: ['a\xef\xbf\xbd']");
	uint32_t bad = tables_attribute(&p, "a\xef\xbf\xbd", "CANARY");
	p.attributes.at[bad].bad_key = 1;
	p.samples.at[0].attributes = tables_list(&p, bad, 0);
	assert_true(policy_run(&policy, &p));
	assert_int_equal(p.samples.at[0].attributes.count, 0);
}

static void lists_of_sites_add_to_the_common_list(void **state)
{
	(void)state;
	open_policy("{keys: [common], sample: [thread], resource: [host]}");
	uint32_t thread = tables_attribute(&p, "thread", "T");
	uint32_t host = tables_attribute(&p, "host", "H");
	uint32_t common = tables_attribute(&p, "common", "C");
	/* One record that both sites use. */
	p.resources.at[0].attributes = tables_list(&p, thread, host, common, 0);
	p.samples.at[0].attributes = tables_list(&p, thread, host, common, 0);
	p.profiles.at[0].attributes = tables_list(&p, thread, host, common, 0);
	assert_true(policy_run(&policy, &p));
	assert_null(tables_find(&p, p.resources.at[0].attributes, "thread"));
	assert_non_null(tables_find(&p, p.resources.at[0].attributes, "host"));
	assert_non_null(tables_find(&p, p.samples.at[0].attributes, "thread"));
	assert_null(tables_find(&p, p.samples.at[0].attributes, "host"));
	assert_int_equal(p.profiles.at[0].attributes.count, 1);
}

static void keys_nested_in_maps_and_in_maps_in_arrays_need_permission(void **state)
{
	(void)state;
	open_policy("keys: [m, good]");
	uint32_t good = tables_attribute(&p, "good", "fine");
	uint32_t bad = tables_attribute(&p, "bad", "CANARY");
	uint32_t plain = tables_attribute(&p, "", "element");
	uint32_t map = tables_nested(&p, VALUE_KVLIST, "", good, bad, 0);
	uint32_t array = tables_nested(&p, VALUE_ARRAY, "m", map, plain, 0);
	uint32_t outer = tables_nested(&p, VALUE_KVLIST, "m", bad, array, good, 0);
	uint32_t clean = tables_nested(&p, VALUE_KVLIST, "m", good, 0);
	p.samples.at[0].attributes = tables_list(&p, outer, clean, 0);
	p.samples.at[1].attributes = tables_list(&p, outer, 0);
	assert_true(policy_run(&policy, &p));
	assert_false(tables_reach(&p, "CANARY"));
	assert_false(tables_reach(&p, "bad"));
	assert_true(tables_reach(&p, "fine"));
	assert_true(tables_reach(&p, "element"));
	/* The shared record has not changed, and both samples have the same new record. */
	assert_int_equal(p.attributes.at[outer].children.count, 3);
	assert_int_equal(p.indices.at[p.samples.at[0].attributes.first],
			 p.indices.at[p.samples.at[1].attributes.first]);
	assert_int_equal(p.indices.at[p.samples.at[0].attributes.first + 1], clean);
}

static void values_outside_their_list_become_the_overflow_value(void **state)
{
	(void)state;
	open_policy("{keys: [region, shard, zone], values: {region: [eu, us], shard: [1, true]}, "
		    "overflow_value: else}");
	uint32_t array = tables_nested(&p, VALUE_ARRAY, "region", tables_attribute(&p, "", "eu"),
				       tables_attribute(&p, "", "CANARY"), 0);
	uint32_t odd = tables_attribute(&p, "region", "CANARY");
	p.attributes.at[odd].unit = tables_text(&p, "CANARY");
	p.samples.at[0].attributes =
		tables_list(&p, tables_attribute(&p, "region", "eu"),
			    tables_integer(&p, "shard", 1), tables_attribute(&p, "zone", "any"), 0);
	p.samples.at[1].attributes = tables_list(&p, odd, array, tables_integer(&p, "shard", 2), 0);
	assert_true(policy_run(&policy, &p));
	assert_false(tables_reach(&p, "CANARY"));
	assert_string_equal(tables_value(&p, p.samples.at[0].attributes, "region"), "eu");
	assert_string_equal(tables_value(&p, p.samples.at[0].attributes, "zone"), "any");
	assert_int_equal(attribute_integer(tables_find(&p, p.samples.at[0].attributes, "shard")),
			 1);
	assert_string_equal(tables_value(&p, p.samples.at[1].attributes, "region"), "else");
	assert_string_equal(tables_value(&p, p.samples.at[1].attributes, "shard"), "else");
	assert_int_equal(p.samples.at[0].changed, 0);
	assert_int_equal(p.samples.at[1].changed, 1);
	assert_int_equal(policy_count(&policy, "otelcol_processor_allowlist_overflowed_values",
				      "site", "sample"),
			 3);
}

static void a_unit_outside_the_list_makes_the_overflow_value(void **state)
{
	(void)state;
	static const struct {
		const char *value, *unit, *stays, *stays_unit;
	} rows[] = {
		{ "eu", "", "eu", "" },
		{ "eu", "us", "eu", "us" },
		{ "eu", "CANARY", "other", "" },
		{ "mars", "us", "other", "" },
	};
	open_policy("{keys: [region], values: {region: [eu, us]}}");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		tables_init(&p, NULL, 1);
		uint32_t index = tables_attribute(&p, "region", rows[i].value);
		p.attributes.at[index].unit = tables_text(&p, rows[i].unit);
		p.samples.at[0].attributes = tables_list(&p, index, 0);
		assert_true(policy_run(&policy, &p));
		const struct attribute *a =
			&p.attributes.at[p.indices.at[p.samples.at[0].attributes.first]];
		assert_true(string_is(&p, a->string, rows[i].stays));
		assert_true(string_is(&p, a->unit, rows[i].stays_unit));
	}
	assert_int_equal(policy_count(&policy, "otelcol_processor_allowlist_overflowed_values",
				      "site", "sample"),
			 2);
}

static void listed_values_permit_no_key(void **state)
{
	(void)state;
	open_policy("values: {region: [eu]}");
	assert_false(key_passes("region"));
}

static void a_profile_id_passes_only_with_its_key(void **state)
{
	(void)state;
	static const struct {
		const char *yaml;
		bool stays;
	} rows[] = {
		{ "{}", false },
		{ "keys: [profile_id]", true },
		{ "profile: [profile_id]", true },
		{ "sample: [profile_id]", false },
		{ "key_patterns: ['profile_.*']", true },
		{ "{profile: [profile_id], values: {profile_id: [CANARY-PROFILE-I]}}", false },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		open_policy(rows[i].yaml);
		tables_init(&p, NULL, 1);
		p.profiles.at[0].profile_id = profiles_bytes_new(&p, "CANARY-PROFILE-I", 16);
		assert_true(policy_run(&policy, &p));
		assert_int_equal(p.profiles.at[0].profile_id.len, rows[i].stays ? 16 : 0);
		assert_int_equal(p.profiles.at[0].changed, !rows[i].stays);
		assert_int_equal(policy_count(&policy,
					      "otelcol_processor_allowlist_denied_attributes",
					      "site", "profile"),
				 !rows[i].stays);
		close_policy(NULL);
	}
	open_policy("{}");
}

static void add_link(void)
{
	assert_true(profiles_room(&p, &p.links, 1));
	struct link link = { 0 };
	memcpy(link.trace_id, "CANARY-TRACE-ID!", 16);
	memcpy(link.span_id, "CANARYID", 8);
	p.links.at[p.links.count] = link;
	p.samples.at[0].link = p.links.count++;
}

static void links_pass_only_with_both_keys(void **state)
{
	(void)state;
	static const struct {
		const char *yaml;
		bool passes;
	} rows[] = {
		{ "{}", false },
		{ "keys: [trace_id]", false },
		{ "{keys: [trace_id], sample: [span_id]}", false },
		{ "keys: [trace_id, span_id]", true },
		{ "link: [trace_id, span_id]", true },
		{ "{key_patterns: ['trace_id'], link: [span_id]}", true },
		{ "{link: [trace_id, span_id], values: {trace_id: [CANARY-TRACE-ID!]}}", false },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		open_policy(rows[i].yaml);
		add_link();
		assert_true(policy_run(&policy, &p));
		assert_int_equal(tables_reach(&p, "CANARY"), rows[i].passes);
		assert_int_equal(p.samples.at[0].changed, !rows[i].passes);
		if (i + 1 < sizeof rows / sizeof *rows)
			close_policy(state);
	}
}

static void an_entity_with_any_denied_key_goes_as_a_whole(void **state)
{
	(void)state;
	open_policy("{keys: [id, about], resource: [only.resource], entity: [only.entity]}");
	tables_entity(&p, "kept", "id", "about");
	tables_entity(&p, "CANARY1", "id", "denied");
	tables_entity(&p, "CANARY2", "only.resource", "about");
	tables_entity(&p, "left to collect", "only.entity", "about");
	uint32_t without_id = tables_entity(&p, "CANARY3", "id", "about");
	p.entities.at[without_id].id_keys.count = 0;
	p.resources.at[0].entities = (struct list){ 0, p.entities.count };
	p.resources.at[0].attributes =
		tables_list(&p, tables_attribute(&p, "id", "1"), tables_attribute(&p, "about", "x"),
			    tables_attribute(&p, "denied", "x"),
			    tables_attribute(&p, "only.resource", "x"),
			    tables_attribute(&p, "only.entity", "x"), 0);
	assert_true(policy_run(&policy, &p));
	assert_int_equal(p.resources.at[0].entities.count, 2);
	assert_true(tables_reach(&p, "kept"));
	assert_false(tables_reach(&p, "CANARY"));
	assert_int_equal(p.resources.at[0].changed, 1);
}

static void notes_tell_what_happened(struct audit *audit, enum site site, const char *what,
				     struct view key, struct audit_rule rule)
{
	(void)audit;
	assert_int_equal(site, SITE_SAMPLE);
	assert_string_equal(what, "denied");
	assert_true(view_is(key, "user"));
	assert_null(rule.row);
	function_called();
}

static struct audit_rule permitted_by;

static void remember_rule(struct audit *audit, enum site site, struct view key,
			  struct audit_rule rule)
{
	(void)audit;
	if (site == SITE_SAMPLE && view_is(key, "k"))
		permitted_by = rule;
}

static void the_audit_gets_the_entry_that_permits(void **state)
{
	(void)state;
	static const struct {
		const char *yaml, *row;
		size_t number;
	} rows[] = {
		{ "keys: [a, k]", "keys", 2 },
		{ "{keys: [a], sample: [b, c, k]}", "sample", 3 },
		{ "{keys: [a], sample: [b], key_patterns: ['x+', 'k+']}", "key_patterns", 2 },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct audit audit = { .note = notes_tell_what_happened, .permit = remember_rule };
		open_policy(rows[i].yaml);
		uint32_t good = tables_attribute(&p, "k", "v");
		p.audit = &audit;
		p.samples.at[0].attributes = tables_list(&p, good, 0);
		assert_true(policy_run(&policy, &p));
		p.audit = NULL;
		assert_string_equal(permitted_by.row, rows[i].row);
		assert_int_equal(permitted_by.number, rows[i].number);
		assert_null(permitted_by.name);
		if (i + 1 < sizeof rows / sizeof *rows)
			close_policy(state);
	}
}

static void the_audit_is_told_once_per_entry(void **state)
{
	(void)state;
	open_policy("keys: [a]");
	struct audit audit = { .note = notes_tell_what_happened, .permit = remember_rule };
	uint32_t bad = tables_attribute(&p, "user", "v");
	p.audit = &audit;
	p.samples.at[0].attributes = tables_list(&p, bad, 0);
	p.samples.at[1].attributes = tables_list(&p, bad, 0);
	expect_function_call(notes_tell_what_happened);
	assert_true(policy_run(&policy, &p));
	p.audit = NULL;
}

static void verdicts_survive_many_keys(void **state)
{
	(void)state;
	open_policy("key_patterns: ['good[0-9]+']");
	for (int i = 0; i < 5000; i++) {
		char key[32];
		snprintf(key, sizeof key, "%s%d", i % 2 ? "good" : "bad", i);
		if (key_passes(key) != (i % 2 == 1))
			fail_msg("%s", key);
	}
}

static void bad_configurations_are_refused(void **state)
{
	(void)state;
	static const struct {
		const char *yaml, *text;
	} rows[] = {
		{ "key_patterns: ['(']", "key_patterns[0]: invalid regular expression" },
		{ "key_patterns: [ok, '^([a-z]+\\.?)+$']",
		  "key_patterns[1]: the pattern is too expensive" },
		{ "values: [a]", "map of keys" },
		{ "values: {a: b}", "list of permitted values" },
		{ "values: {a: [[b]]}", "must be a scalar" },
		{ "structural: maybe", "structural" },
		{ "key: [a]", "invalid keys: key" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_false(policy_open(&policy, &allowlist_processor, rows[i].yaml));
		if (!strstr(policy.err.text, rows[i].text))
			fail_msg("row %zu: %s", i, policy.err.text);
		if (i + 1 < sizeof rows / sizeof *rows)
			close_policy(state);
	}
}

static void the_manual_names_every_site(void **state)
{
	(void)state;
	struct bytes out;
	bytes_init(&out, 1 << 20);
	open_policy("{}");
	allowlist_processor.describe(&out);
	for (enum site site = SITE_NONE + 1; site < SITE_COUNT; site++)
		assert_non_null(
			memmem(out.at, out.len, sites[site].name, strlen(sites[site].name)));
	bytes_fini(&out);
}

#define TEST(name) cmocka_unit_test_teardown(name, close_policy)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(only_listed_keys_pass_everywhere),
		TEST(an_empty_list_denies_all),
		TEST(a_pattern_must_match_the_whole_key),
		TEST(look_alikes_are_other_keys),
		TEST(a_key_that_was_invalid_is_denied_whatever_it_says_now),
		TEST(lists_of_sites_add_to_the_common_list),
		TEST(keys_nested_in_maps_and_in_maps_in_arrays_need_permission),
		TEST(values_outside_their_list_become_the_overflow_value),
		TEST(a_unit_outside_the_list_makes_the_overflow_value),
		TEST(listed_values_permit_no_key),
		TEST(a_profile_id_passes_only_with_its_key),
		TEST(links_pass_only_with_both_keys),
		TEST(an_entity_with_any_denied_key_goes_as_a_whole),
		TEST(the_audit_is_told_once_per_entry),
		TEST(the_audit_gets_the_entry_that_permits),
		TEST(verdicts_survive_many_keys),
		TEST(bad_configurations_are_refused),
		TEST(the_manual_names_every_site),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
