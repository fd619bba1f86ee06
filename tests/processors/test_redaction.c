/* SPDX-License-Identifier: Apache-2.0 */
#include "processors/regex.h"
#include "tests/processors/policy_fixture.h"

extern const struct component_factory redaction_processor;

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define REMOVED "otelcol_processor_redaction_removed_attributes"
#define MASKED "otelcol_processor_redaction_masked_strings"

static void open_policy(const char *yaml)
{
	open_processor(&redaction_processor, yaml);
}

/* Opens the policy and runs it on a resource with one attribute. */
static void run_on(const char *yaml, uint32_t (*make)(const char *key, const char *value),
		   const char *key, const char *value)
{
	open_policy(yaml);
	p.resources.at[0].attributes = tables_list(&p, make(key, value), 0);
	assert_true(policy_run(&policy, &p));
}

static uint32_t make_string(const char *key, const char *value)
{
	return tables_attribute(&p, key, value);
}

static uint32_t make_integer(const char *key, const char *value)
{
	return tables_integer(&p, key, strtoll(value, NULL, 10));
}

static uint32_t make_bool(const char *key, const char *value)
{
	struct attribute a = { .key = tables_text(&p, key), .type = VALUE_BOOL };
	a.boolean = strcmp(value, "true") == 0;
	return profiles_attribute_new(&p, a);
}

static uint32_t make_bytes(const char *key, const char *value)
{
	struct attribute a = { .key = tables_text(&p, key), .type = VALUE_BYTES };
	a.bytes = profiles_bytes_new(&p, value, strlen(value));
	return profiles_attribute_new(&p, a);
}

/* What becomes of one attribute of the resource; NULL: it is removed, "=": it is unchanged. Results
 * are those of the Collector's processor on the attributes of a log record
 * (tests/interop/test_redaction.py). */
static const struct {
	const char *yaml;
	uint32_t (*make)(const char *key, const char *value);
	const char *key, *value, *result;
} cases[] = {
	{ "{}", make_string, "a", "v", NULL },
	{ "allowed_keys: []", make_string, "a", "v", NULL },
	{ "allowed_keys: [a]", make_string, "a", "v", "=" },
	{ "allowed_keys: [a]", make_string, "A", "v", NULL },
	{ "allow_all_keys: true", make_string, "b", "v", "=" },
	{ "ignored_keys: [b]", make_string, "b", "v", "=" },
	{ "ignored_key_patterns: [^saf]", make_string, "safe.x", "v", "=" },
	{ "ignored_key_patterns: [^saf]", make_string, "unsafe", "v", NULL },
	/* values */
	{ "{allow_all_keys: true, blocked_values: ['4[0-9]{3}']}", make_string, "a", "x 4111 4222",
	  "x **** ****" },
	{ "{allow_all_keys: true, blocked_values: [b+, '\\*c']}", make_string, "a", "abbc",
	  "a*******" },
	{ "{allow_all_keys: true, blocked_values: [v], allowed_values: [ok]}", make_string, "a",
	  "v ok", "=" },
	{ "{allow_all_keys: true, blocked_values: [v], ignored_keys: [a]}", make_string, "a", "v",
	  "=" },
	{ "{allow_all_keys: true, blocked_values: ['.*']}", make_string, "a", "v\nw",
	  "****\n****" },
	{ "{allow_all_keys: true, blocked_values: [v]}", make_string, "v", "w", "=" },
	/* keys */
	{ "{allow_all_keys: true, blocked_key_patterns: ['.*token.*']}", make_string, "my_token_1",
	  "v", "****" },
	{ "{allow_all_keys: true, blocked_key_patterns: [token]}", make_string, "Token", "v", "=" },
	{ "{allow_all_keys: true, blocked_key_patterns: [token]}", make_string, "token", "",
	  "****" },
	{ "{allow_all_keys: true, blocked_key_patterns: [token]}", make_string, "token", "a\nb\n",
	  "****\n****\n****" },
	{ "{allow_all_keys: true, blocked_key_patterns: [token], allowed_values: [ok]}",
	  make_string, "token", "is ok", "=" },
	{ "{allow_all_keys: true, blocked_key_patterns: [token], ignored_keys: [token]}",
	  make_string, "token", "v", "=" },
	{ "{allowed_keys: [a], blocked_key_patterns: [token]}", make_string, "token", "v", NULL },
	{ "{allow_all_keys: true, blocked_key_patterns: [token]}", make_integer, "token", "7",
	  "****" },
	/* types */
	{ "{allow_all_keys: true, blocked_values: ['4111']}", make_integer, "a", "4111", "=" },
	{ "{allow_all_keys: true, redact_all_types: true, blocked_values: ['4111']}", make_integer,
	  "a", "-41110", "-****0" },
	{ "{allow_all_keys: true, redact_all_types: true, blocked_values: [ru]}", make_bool, "a",
	  "true", "t****e" },
	{ "{allow_all_keys: true, redact_all_types: true, blocked_values: [YWJj]}", make_bytes, "a",
	  "abc", "****" },
	{ "{allow_all_keys: true, redact_all_types: true, allowed_values: ['^4'], "
	  "blocked_values: ['4111']}",
	  make_integer, "a", "4111", "=" },
	{ "{allow_all_keys: true, blocked_values: ['^$']}", make_integer, "a", "4111", "****" },
	/* hashes */
	{ "{allow_all_keys: true, blocked_values: [abc], hash_function: md5}", make_string, "a",
	  "<abc>", "<900150983cd24fb0d6963f7d28e17f72>" },
	{ "{allow_all_keys: true, blocked_values: [abc], hash_function: SHA1}", make_string, "a",
	  "abc", "a9993e364706816aba3e25717850c26c9cd0d89d" },
	{ "{allow_all_keys: true, blocked_values: [abc], hash_function: sha3}", make_string, "a",
	  "abc", "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532" },
	{ "{allow_all_keys: true, blocked_values: ['what.*'], hash_function: hmac-sha256, "
	  "hmac_key: 0123456789abcdef0123456789abcdef}",
	  make_string, "a", "what do ya want for nothing?",
	  "137e6557c3c13a1ca5dc7e52a389a0f86be8cb4db4ae61c62396058b00acacd0" },
	{ "{allow_all_keys: true, blocked_values: ['what.*'], hash_function: hmac-sha512, "
	  "hmac_key: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef}",
	  make_string, "a", "what do ya want for nothing?",
	  "844aae8a303761d0992c23c8473f1a410656b1a3840b4a305fe5f8e5a67a5a61793b28a2d0e26339eddf1df03aa180db21e94013402bfac903a849fcef9adc57" },
	{ "{allow_all_keys: true, blocked_key_patterns: [a], hash_function: md5}", make_string, "a",
	  "abc", "900150983cd24fb0d6963f7d28e17f72" },
};

static void an_attribute_becomes_what_the_collector_makes_of_it(void **state)
{
	for (size_t i = 0; i < COUNT(cases); i++) {
		run_on(cases[i].yaml, cases[i].make, cases[i].key, cases[i].value);
		struct list list = p.resources.at[0].attributes;
		const struct attribute *a = tables_find(&p, list, cases[i].key);
		const char *result = cases[i].result;
		bool same = result && strcmp(result, "=") == 0;
		if (!result != !a)
			fail_msg("%zu: %s", i, a ? "it passed" : "it was removed");
		assert_int_equal(p.resources.at[0].changed, !same);
		if (a && same)
			assert_int_equal(a->changed, 0);
		else if (a && strcmp(tables_value(&p, list, cases[i].key), result) != 0)
			fail_msg("%zu: \"%s\" instead of \"%s\"", i,
				 tables_value(&p, list, cases[i].key), result);
		if (i + 1 < COUNT(cases))
			close_policy(state);
	}
}

static void bad_configurations_are_refused(void **state)
{
	static const struct {
		const char *yaml, *why;
	} bad[] = {
		{ "blocked_values: ['(?=x)']", "blocked_values[0]: invalid regular expression" },
		{ "blocked_values: [a, '[b']", "blocked_values[1]: invalid regular expression" },
		{ "allowed_values: ['(']", "allowed_values[0]" },
		{ "blocked_key_patterns: [a**]", "blocked_key_patterns[0]" },
		{ "ignored_key_patterns: ['\\1']", "ignored_key_patterns[0]" },
		{ "blocked_values: ['(a+)+b']", "blocked_values[0]: the pattern is too expensive" },
		{ "ignored_key_patterns: ['(a+)+b']",
		  "ignored_key_patterns[0]: the pattern is too" },
		{ "hash_function: sha256", "hash_function: unknown" },
		{ "{hash_function: hmac-sha256, hmac_key: short}", "at least 32 bytes" },
		{ "hash_function: hmac-sha512", "at least 64 bytes" },
		{ "summary: loud", "summary" },
		{ "url_sanitizer: {enabled: true}", "url_sanitizer: not supported" },
		{ "db_sanitizer: {valkey: {enabled: true}}", "db_sanitizer: not supported" },
		{ "db_sanitizer: {oracle: {}}", "invalid keys: oracle" },
		{ "roles: [values]", "roles[0]: unknown role" },
	};
	for (size_t i = 0; i < COUNT(bad); i++) {
		if (policy_open(&policy, &redaction_processor, bad[i].yaml))
			fail_msg("accepted: %s", bad[i].yaml);
		if (!strstr(policy.err.text, bad[i].why) || strstr(policy.err.text, "short"))
			fail_msg("%s: %s", bad[i].yaml, policy.err.text);
		close_policy(state);
	}
	open_policy("{url_sanitizer: {enabled: false, attributes: [url]}, db_sanitizer: {sql: "
		    "{attributes: [q]}, sanitize_span_name: false}, summary: debug, hash_function: "
		    "''}");
}

static void all_sites_are_redacted(void **state)
{
	(void)state;
	open_policy("{allowed_keys: [a], blocked_values: [CANARY]}");
	uint32_t good = tables_attribute(&p, "a", "x CANARY y"),
		 bad = tables_attribute(&p, "b", "CANARY");
	uint32_t function = tables_function(&p, "f CANARY", "CANARY.c");
	assert_true(profiles_room(&p, &p.mappings, 1) && profiles_room(&p, &p.locations, 1));
	p.mappings.at[p.mappings.count++] =
		(struct mapping){ .filename = tables_text(&p, "/CANARY/lib"),
				  .attributes = tables_list(&p, bad, good, 0) };
	p.locations.at[p.locations.count++] =
		(struct location){ .attributes = tables_list(&p, good, bad, 0) };
	p.functions.at[function].system_name = tables_text(&p, "CANARY");
	p.resources.at[0].attributes = tables_list(&p, bad, good, 0);
	p.resources.at[0].schema_url = tables_text(&p, "https://CANARY");
	p.resources.at[0].entities =
		(struct list){ tables_entity(&p, "t CANARY", "a", "CANARY"), 1 };
	p.scopes.at[0].attributes = tables_list(&p, good, bad, 0);
	p.scopes.at[0].name = tables_text(&p, "CANARY");
	p.profiles.at[0].attributes = tables_list(&p, bad, good, 0);
	p.profiles.at[0].sample_type.unit = tables_text(&p, "CANARY");
	p.profiles.at[0].profile_id = profiles_bytes_new(&p, "CANARY..CANARY..", 16);
	p.samples.at[0].attributes = tables_list(&p, good, bad, good, 0);
	assert_true(profiles_room(&p, &p.links, 1));
	p.links.at[p.links.count] = (struct link){ .trace_id = "CANARY" };
	p.samples.at[1].link = p.links.count++;
	assert_true(policy_run(&policy, &p));
	assert_false(tables_reach(&p, "CANARY"));
	assert_int_equal(p.profiles.at[0].profile_id.len, 0);
	assert_int_equal(p.resources.at[0].entities.count, 0);
	assert_int_equal(p.samples.at[0].attributes.count, 2);
	assert_string_equal(tables_value(&p, p.samples.at[0].attributes, "a"), "x **** y");
	assert_string_equal(tables_string(&p, p.functions.at[function].name), "f ****");
	static const char *const named[] = { "resource", "scope",    "profile",
					     "sample",   "location", "mapping" };
	for (size_t i = 0; i < COUNT(named); i++) {
		assert_int_equal(policy_count(&policy, MASKED, "site", named[i]), 1);
		/* of the Profile, its ID too */
		assert_int_equal(policy_count(&policy, REMOVED, "site", named[i]), 1 + (i == 2));
	}
	assert_int_equal(policy_count(&policy, REMOVED, "site", "link"), 1);
	assert_int_equal(policy_count(&policy, REMOVED, "site", "entity"), 1);
	assert_int_equal(policy_count(&policy, MASKED, "site", "function.filename"), 1);
}

static void fields_pass_if_their_keys_do(void **state)
{
	static const struct {
		const char *yaml;
		bool passes;
	} policies[] = {
		{ "allowed_keys: [profile_id, trace_id, span_id, id]", true },
		{ "ignored_keys: [profile_id, trace_id, span_id, id]", true },
		{ "allow_all_keys: true", true },
		{ "allowed_keys: [trace_id]", false },
		{ "{allow_all_keys: true, blocked_key_patterns: ['(profile|span)_id']}", false },
	};
	for (size_t i = 0; i < COUNT(policies); i++) {
		open_policy(policies[i].yaml);
		p.profiles.at[0].profile_id = profiles_bytes_new(&p, "0123456789abcdef", 16);
		assert_true(profiles_room(&p, &p.links, 1));
		p.links.at[p.links.count] = (struct link){ .trace_id = "t" };
		p.samples.at[1].link = p.links.count++;
		assert_true(policy_run(&policy, &p));
		assert_int_equal(p.profiles.at[0].profile_id.len != 0, policies[i].passes);
		assert_int_equal(p.samples.at[1].link != 0, policies[i].passes);
		if (i + 1 < COUNT(policies))
			close_policy(state);
	}
}

static void nested_values_are_treated_by_themselves(void **state)
{
	(void)state;
	open_policy("{allowed_keys: [m, a], ignored_keys: [i], blocked_key_patterns: [^t$], "
		    "blocked_values: [CANARY]}");
	uint32_t inner = tables_nested(&p, VALUE_KVLIST, "a", tables_attribute(&p, "a", "CANARY"),
				       tables_attribute(&p, "x", "CANARY"), 0);
	uint32_t ignored =
		tables_nested(&p, VALUE_KVLIST, "i", tables_attribute(&p, "x", "SEEN"), 0);
	uint32_t list = tables_nested(&p, VALUE_ARRAY, "m", inner, ignored,
				      tables_attribute(&p, "", "a CANARY"), 0);
	uint32_t map = tables_nested(&p, VALUE_KVLIST, "a", inner, ignored,
				     tables_attribute(&p, "x", "CANARY"), 0);
	p.resources.at[0].attributes = tables_list(&p, list, map, 0);
	assert_true(policy_run(&policy, &p));
	assert_false(tables_reach(&p, "CANARY"));
	/* In an array, keys have no meaning. */
	assert_true(tables_reach(&p, "SEEN"));
	assert_true(tables_reach(&p, "a ****"));
}

static void a_blocked_map_is_masked_as_a_whole(void **state)
{
	(void)state;
	open_policy("{allow_all_keys: true, blocked_key_patterns: [^m]}");
	uint32_t map = tables_nested(&p, VALUE_KVLIST, "m", tables_attribute(&p, "a", "CANARY"), 0);
	p.attributes.at[map].unit = tables_text(&p, "CANARY");
	p.resources.at[0].attributes = tables_list(&p, map, 0);
	assert_true(policy_run(&policy, &p));
	assert_string_equal(tables_value(&p, p.resources.at[0].attributes, "m"), "****");
	assert_false(tables_reach(&p, "CANARY"));
}

static void units_are_searched_even_if_the_value_is_allowed(void **state)
{
	(void)state;
	open_policy("{allow_all_keys: true, allowed_values: [^ok], blocked_values: [CANARY]}");
	uint32_t a = tables_attribute(&p, "a", "ok CANARY");
	p.attributes.at[a].unit = tables_text(&p, "CANARY");
	p.resources.at[0].attributes = tables_list(&p, a, 0);
	assert_true(policy_run(&policy, &p));
	const struct attribute *left = tables_find(&p, p.resources.at[0].attributes, "a");
	assert_string_equal(tables_string(&p, left->string), "ok CANARY");
	assert_string_equal(tables_string(&p, left->unit), "****");
}

static void the_unit_of_a_blocked_key_needs_to_be_allowed_too(void **state)
{
	(void)state;
	open_policy("{allow_all_keys: true, blocked_key_patterns: [^size$], allowed_values: "
		    "['^(5|MiB)$']}");
	uint32_t one = tables_attribute(&p, "size", "5"), two = tables_attribute(&p, "size", "5");
	p.attributes.at[one].unit = tables_text(&p, "MiB");
	p.attributes.at[two].unit = tables_text(&p, "CANARY");
	p.samples.at[0].attributes = tables_list(&p, one, 0);
	p.samples.at[1].attributes = tables_list(&p, two, 0);
	assert_true(policy_run(&policy, &p));
	for (int i = 0; i < 2; i++) {
		const struct attribute *left = tables_find(&p, p.samples.at[i].attributes, "size");
		assert_string_equal(tables_string(&p, left->string), "5");
		assert_string_equal(tables_string(&p, left->unit), i ? "" : "MiB");
	}
}

static void structural_attributes_and_ids_stay(void **state)
{
	static const char id[] = "4111111111111111111111111111111111111a11";
	static const char *const yamls[] = {
		"blocked_values: ['4[0-9]{12}']",
		"{allow_all_keys: true, blocked_values: ['4[0-9]{12}']}",
		"structural: deny",
		"blocked_key_patterns: [build_id]",
	};
	for (size_t i = 0; i < COUNT(yamls); i++) {
		open_policy(yamls[i]);
		uint32_t a = tables_attribute(&p, "process.executable.build_id.gnu", id);
		assert_true(profiles_room(&p, &p.mappings, 1));
		p.mappings.at[p.mappings.count++] =
			(struct mapping){ .attributes = tables_list(&p, a, 0) };
		p.resources.at[0].attributes = tables_list(&p, a, 0);
		assert_true(policy_run(&policy, &p));
		struct list left = p.mappings.at[1].attributes;
		assert_int_equal(left.count, i != 2);
		if (left.count)
			assert_string_equal(tables_value(&p, left,
							 "process.executable.build_id.gnu"),
					    i == 3 ? "****" : id);
		/* At another site it is like any other. */
		assert_int_equal(p.resources.at[0].attributes.count, i == 1);
		if (i + 1 < COUNT(yamls))
			close_policy(state);
	}
}

static void a_key_that_was_invalid_is_neither_allowed_nor_ignored(void **state)
{
	(void)state;
	open_policy("{allowed_keys: ['a\xef\xbf\xbd'], ignored_keys: ['a\xef\xbf\xbd']}");
	uint32_t bad = tables_attribute(&p, "a\xef\xbf\xbd", "CANARY");
	p.attributes.at[bad].bad_key = 1;
	p.resources.at[0].attributes = tables_list(&p, bad, 0);
	assert_true(policy_run(&policy, &p));
	assert_int_equal(p.resources.at[0].attributes.count, 0);
}

static void what_cannot_be_searched_is_masked(void **state)
{
	(void)state;
	char text[REGEX_TEXT_MAX + 2], key[1100];
	open_policy("{allow_all_keys: true, blocked_values: [z], allowed_values: [a], "
		    "blocked_key_patterns: [z], ignored_key_patterns: [k]}");
	memset(text, 'a', sizeof text);
	text[sizeof text - 1] = '\0';
	memset(key, 'k', sizeof key);
	key[sizeof key - 1] = '\0';
	uint32_t function = tables_function(&p, text, "");
	p.resources.at[0].attributes = tables_list(&p, tables_attribute(&p, "long", text),
						   tables_attribute(&p, key, "b"), 0);
	assert_true(policy_run(&policy, &p));
	assert_string_equal(tables_value(&p, p.resources.at[0].attributes, "long"), "****");
	assert_string_equal(tables_value(&p, p.resources.at[0].attributes, key), "****");
	assert_string_equal(tables_string(&p, p.functions.at[function].name), "****");
	assert_int_equal(policy_count(&policy, MASKED, "reason", "limit"), 2);
	assert_int_equal(policy_count(&policy, MASKED, "reason", "key"), 1);
}

/* Their base64 is longer than the tables may be. The second pattern matches what is not there. */
static void bytes_without_room_for_their_string_are_masked(void **state)
{
	static const char *const policies[] = {
		"{allow_all_keys: true, redact_all_types: true, blocked_values: [YWJj]}",
		"{allow_all_keys: true, redact_all_types: true, allowed_values: [^$], "
		"blocked_key_patterns: [^b$]}",
	};
	static char text[60001];
	memset(text, 'a', sizeof text - 1);
	for (size_t i = 0; i < COUNT(policies); i++) {
		open_policy(policies[i]);
		uint32_t bytes = make_bytes("b", text);
		p.resources.at[0].attributes = tables_list(&p, bytes, 0);
		p.table_bytes_max = profiles_used(&p) + 4000;
		assert_true(policy_run(&policy, &p));
		assert_string_equal(tables_value(&p, p.resources.at[0].attributes, "b"), "****");
		assert_int_equal(policy_count(&policy, MASKED, "reason", "limit"), 1);
		if (i + 1 < COUNT(policies))
			close_policy(state);
	}
}

/* A match is replaced by something longer: the bound is on matches. */
static void many_matches_mask_the_whole_string(void **state)
{
	(void)state;
	char text[600];
	open_policy("{allow_all_keys: true, blocked_values: [z]}");
	memset(text, 'z', sizeof text);
	text[sizeof text - 1] = '\0';
	p.resources.at[0].attributes = tables_list(&p, tables_attribute(&p, "a", text),
						   tables_attribute(&p, "b", text + 599 - 512), 0);
	assert_true(policy_run(&policy, &p));
	assert_string_equal(tables_value(&p, p.resources.at[0].attributes, "a"), "****");
	assert_int_equal(strlen(tables_value(&p, p.resources.at[0].attributes, "b")), 4 * 512);
}

static void an_empty_summary_is_silent(void **state)
{
	(void)state;
	open_policy("{allowed_keys: [a], summary: ''}");
	p.resources.at[0].attributes = tables_list(&p, tables_attribute(&p, "b", "v"), 0);
	assert_true(policy_run(&policy, &p));
	assert_int_equal(p.resources.at[0].attributes.count, 0);
}

static void roles_select_strings(void **state)
{
	(void)state;
	open_policy("{allow_all_keys: true, blocked_values: [CANARY], roles: [file]}");
	uint32_t function = tables_function(&p, "CANARY", "CANARY");
	p.resources.at[0].attributes = tables_list(&p, tables_attribute(&p, "a", "CANARY"), 0);
	assert_true(policy_run(&policy, &p));
	assert_string_equal(tables_string(&p, p.functions.at[function].name), "CANARY");
	assert_string_equal(tables_string(&p, p.functions.at[function].filename), "****");
	assert_string_equal(tables_value(&p, p.resources.at[0].attributes, "a"), "CANARY");
}

static int64_t count_at(struct list list, const char *key)
{
	const struct attribute *a = tables_find(&p, list, key);
	return a ? attribute_integer(a) : -1;
}

static void a_summary_has_counts_and_no_names(void **state)
{
	(void)state;
	open_policy("{allowed_keys: [a, b], ignored_keys: [i], blocked_values: [CANARY], "
		    "allowed_values: [fine], summary: debug}");
	uint32_t masked = tables_attribute(&p, "a", "CANARY"),
		 ok = tables_attribute(&p, "b", "fine");
	uint32_t bad = tables_attribute(&p, "DENIED", "CANARY"),
		 free = tables_attribute(&p, "i", "v");
	uint32_t earlier = tables_integer(&p, "redaction.masked.count", 5);
	uint32_t text = tables_attribute(&p, "redaction.masked.count", "DENIED");
	p.resources.at[0].attributes = tables_list(&p, masked, ok, bad, free, earlier, text, 0);
	p.scopes.at[0].attributes = tables_list(&p, ok, 0);
	/* Of two Profiles, each has its own samples. */
	assert_true(profiles_room(&p, &p.profiles, 2));
	p.profiles.at[1] = p.profiles.at[2] = p.profiles.at[0];
	p.profiles.count = 3;
	p.profiles.at[0].samples = (struct list){ 0, 1 };
	p.profiles.at[1].samples = (struct list){ 1, 0 };
	p.profiles.at[2].samples = (struct list){ 1, 1 };
	p.scopes.at[0].profiles.count = 3;
	p.profiles.at[0].attributes = tables_list(&p, bad, 0);
	p.samples.at[0].attributes = tables_list(&p, bad, bad, masked, 0);
	p.samples.at[1].attributes = tables_list(&p, masked, earlier, 0);
	assert_true(policy_run(&policy, &p));

	struct list resource = p.resources.at[0].attributes;
	assert_int_equal(count_at(resource, "redaction.redacted.count"), 2);
	assert_int_equal(count_at(resource, "redaction.masked.count"), 6);
	assert_int_equal(count_at(resource, "redaction.allowed.count"), 1);
	assert_int_equal(count_at(resource, "redaction.ignored.count"), 1);
	assert_int_equal(resource.count, 3 + 4);
	assert_int_equal(count_at(p.scopes.at[0].attributes, "redaction.allowed.count"), 1);
	assert_int_equal(p.scopes.at[0].attributes.count, 2);
	assert_int_equal(count_at(p.profiles.at[0].attributes, "redaction.redacted.count"), 3);
	assert_int_equal(count_at(p.profiles.at[0].attributes, "redaction.masked.count"), 1);
	assert_int_equal(p.profiles.at[1].attributes.count, 0);
	assert_int_equal(count_at(p.profiles.at[2].attributes, "redaction.masked.count"), 1);
	/* An earlier count has no place at a sample. */
	assert_int_equal(count_at(p.profiles.at[2].attributes, "redaction.redacted.count"), 1);
	assert_int_equal(p.samples.at[1].attributes.count, 1);
	assert_int_equal(p.profiles.at[2].changed, 1);
	assert_false(tables_reach(&p, "DENIED"));
	assert_false(tables_reach(&p, "CANARY"));
}

static void a_summary_counts_allowed_values_even_if_none_are_blocked(void **state)
{
	(void)state;
	open_policy("{allow_all_keys: true, allowed_values: [fine], summary: info}");
	p.resources.at[0].attributes = tables_list(&p, tables_attribute(&p, "a", "fine"), 0);
	assert_true(policy_run(&policy, &p));
	assert_int_equal(count_at(p.resources.at[0].attributes, "redaction.allowed.count"), 1);
}

static void a_silent_policy_has_no_place_for_counts(void **state)
{
	(void)state;
	open_policy("{allowed_keys: [a], blocked_values: [v]}");
	p.resources.at[0].attributes =
		tables_list(&p, tables_attribute(&p, "a", "v"),
			    tables_integer(&p, "redaction.masked.count", 5), 0);
	assert_true(policy_run(&policy, &p));
	assert_int_equal(p.resources.at[0].attributes.count, 1);
}

static void a_request_without_effect_is_not_changed(void **state)
{
	(void)state;
	open_policy("{allow_all_keys: true, blocked_values: [z], summary: info}");
	uint32_t function = tables_function(&p, "f", "g"), strings = p.strings.count;
	p.resources.at[0].attributes = tables_list(&p, tables_attribute(&p, "a", "b"), 0);
	strings = p.strings.count;
	for (int i = 0; i < 2; i++)
		assert_true(policy_run(&policy, &p));
	assert_int_equal(p.strings.count, strings);
	assert_int_equal(p.functions.at[function].changed, 0);
	assert_int_equal(p.resources.at[0].changed, 0);
	assert_int_equal(p.resources.at[0].attributes.count, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, close_policy)
	const struct CMUnitTest tests[] = {
		TEST(an_attribute_becomes_what_the_collector_makes_of_it),
		TEST(bad_configurations_are_refused),
		TEST(all_sites_are_redacted),
		TEST(fields_pass_if_their_keys_do),
		TEST(nested_values_are_treated_by_themselves),
		TEST(a_blocked_map_is_masked_as_a_whole),
		TEST(units_are_searched_even_if_the_value_is_allowed),
		TEST(the_unit_of_a_blocked_key_needs_to_be_allowed_too),
		TEST(structural_attributes_and_ids_stay),
		TEST(a_key_that_was_invalid_is_neither_allowed_nor_ignored),
		TEST(what_cannot_be_searched_is_masked),
		TEST(many_matches_mask_the_whole_string),
		TEST(an_empty_summary_is_silent),
		TEST(bytes_without_room_for_their_string_are_masked),
		TEST(roles_select_strings),
		TEST(a_summary_has_counts_and_no_names),
		TEST(a_summary_counts_allowed_values_even_if_none_are_blocked),
		TEST(a_silent_policy_has_no_place_for_counts),
		TEST(a_request_without_effect_is_not_changed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
