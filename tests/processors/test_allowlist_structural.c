/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/processors/policy_fixture.h"

extern const struct component_factory allowlist_processor;

static void open_policy(const char *yaml)
{
	open_processor(&allowlist_processor, yaml);
}

/* The attributes of the profile format itself: which of them are kept without being listed, and
 * where. */

/* The sites (mapping, location, scope) at which the attribute is kept. */
static unsigned structural_sites(uint32_t attribute)
{
	assert_true(profiles_room(&p, &p.mappings, 1) && profiles_room(&p, &p.locations, 1));
	p.mappings.at[p.mappings.count++] =
		(struct mapping){ .attributes = tables_list(&p, attribute, 0) };
	p.locations.at[p.locations.count++] =
		(struct location){ .attributes = tables_list(&p, attribute, 0) };
	p.scopes.at[0].attributes = tables_list(&p, attribute, 0);
	p.samples.at[0].attributes = tables_list(&p, attribute, 0);
	p.resources.at[0].attributes = tables_list(&p, attribute, 0);
	assert_true(policy_run(&policy, &p));
	assert_int_equal(p.samples.at[0].attributes.count + p.resources.at[0].attributes.count, 0);
	unsigned found = p.mappings.at[1].attributes.count |
			 p.locations.at[1].attributes.count << 1 |
			 p.scopes.at[0].attributes.count << 2;
	tables_init(&p, NULL, 2);
	return found;
}

enum { MAPPING = 1, LOCATION = 2, SCOPE = 4 };

#define GNU "process.executable.build_id.gnu"
#define HTLHASH "process.executable.build_id.htlhash"
#define GO "process.executable.build_id.go"
#define HEX4 "cafe0123"
#define HEX8 "cafebabe01234567"
#define GO20 "Xy_9-zXy_9-zXy_9-z12"

static void structural_attributes_pass_at_their_site_with_their_grammar(void **state)
{
	(void)state;
	static const struct {
		const char *key, *value;
		unsigned sites;
	} rows[] = {
		{ GNU, HEX8, MAPPING },
		{ GNU, HEX8 HEX8, MAPPING },
		{ GNU, HEX8 HEX8 HEX4, MAPPING },
		{ GNU, HEX8 HEX8 HEX8 HEX8, MAPPING },
		{ GNU, "CAFEBABE01234567", MAPPING },
		{ GNU, "4111111111111111", MAPPING },
		{ GNU, HEX4, 0 },
		{ GNU, HEX8 HEX4, 0 },
		{ GNU, HEX8 HEX8 "a", 0 },
		{ GNU, HEX8 HEX8 HEX8, 0 },
		{ GNU, HEX8 HEX8 HEX8 HEX8 HEX8 HEX8 HEX8 HEX8, 0 },
		{ GNU, "cafebabe0123456g", 0 },
		{ GNU, "cafebabe012345\n", 0 },
		{ GNU, "not hex", 0 },
		{ GNU, "", 0 },
		{ HTLHASH, HEX8 HEX8, MAPPING },
		{ HTLHASH, HEX8, 0 },
		{ HTLHASH, HEX8 HEX8 HEX4, 0 },
		{ HTLHASH, "alice@example.com", 0 },
		{ GO, GO20 "/" GO20, MAPPING },
		{ GO, GO20 "/" GO20 "/" GO20 "/" GO20, MAPPING },
		{ GO, GO20, 0 },
		{ GO, GO20 "/" GO20 "/" GO20, 0 },
		{ GO, GO20 "/" GO20 "/" GO20 "/" GO20 "/" GO20, 0 },
		{ GO, GO20 "/" GO20 "/" GO20 "/" GO20 "/" GO20 "/" GO20, 0 },
		{ GO, GO20 "x/" GO20, 0 },
		{ GO, GO20 "/" GO20 "/", 0 },
		{ GO, GO20 "/Xy_9-zXy_9-zXy_9-z1/", 0 },
		{ GO, GO20 "+" GO20, 0 },
		{ GO, GO20 "/Xy_9+zXy_9-zXy_9-z12", 0 },
		{ GO, "Xy_9-z/abc/def/ghi", 0 },
		{ GO, "Xy_9-z/abc", 0 },
		{ GO, "/home/alice", 0 },
		{ "profile.frame.type", "kernel", LOCATION },
		{ "profile.frame.type", "abort-marker", LOCATION },
		{ "profile.frame.type", "unknown", LOCATION },
		{ "profile.frame.type", "alice", 0 },
		{ "pprof.scope.default_sample_type", "cpu", SCOPE },
		{ "pprof.scope.default_sample_type", "alice", 0 },
		{ "pprof.mapping.has_functions", "true", 0 },
		{ "pprof.profile.comment", "hello", 0 },
	};
	open_policy("{}");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (structural_sites(tables_attribute(&p, rows[i].key, rows[i].value)) !=
		    rows[i].sites)
			fail_msg("row %zu: %s", i, rows[i].value);
}

static void structural_booleans_and_orders_pass(void **state)
{
	(void)state;
	open_policy("{}");
	uint32_t flag = tables_integer(&p, "pprof.mapping.has_functions", 1);
	p.attributes.at[flag].type = VALUE_BOOL;
	assert_int_equal(structural_sites(flag), MAPPING);
	uint32_t folded = tables_integer(&p, "pprof.location.is_folded", 1);
	assert_int_equal(structural_sites(folded), 0);
	static const struct {
		int64_t a, b;
		unsigned sites;
	} orders[] = {
		{ 0, 1, SCOPE }, { 1, 0, SCOPE }, { 1, 1, 0 }, { 0, 2, 0 }, { -1, 0, 0 },
	};
	for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
		assert_true(profiles_room(&p, &p.profiles, 1));
		p.profiles.at[p.profiles.count++] = p.profiles.at[0];
		p.scopes.at[0].profiles.count = 2;
		uint32_t order = tables_nested(&p, VALUE_ARRAY, "pprof.scope.sample_type_order",
					       tables_integer(&p, "", orders[i].a),
					       tables_integer(&p, "", orders[i].b), 0);
		assert_int_equal(structural_sites(order), orders[i].sites);
	}
}

static void the_type_of_a_profile_that_does_not_leave_is_no_sample_type(void **state)
{
	(void)state;
	static const struct {
		uint8_t fault, dropped;
		unsigned sites;
	} rows[] = {
		{ 0, 0, SCOPE },
		{ FAULT_INDEX, 0, 0 },
		{ 0, 1, 0 },
	};
	open_policy("{}");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_true(profiles_room(&p, &p.profiles, 1));
		struct profile *second = &p.profiles.at[p.profiles.count++];
		*second = (struct profile){ .fault = rows[i].fault, .dropped = rows[i].dropped };
		second->sample_type.type = tables_text(&p, "second");
		p.scopes.at[0].profiles.count = 2;
		uint32_t said = tables_attribute(&p, "pprof.scope.default_sample_type", "second");
		assert_int_equal(structural_sites(said), rows[i].sites);
	}
}

static void a_structural_attribute_with_a_unit_is_denied(void **state)
{
	(void)state;
	open_policy("{}");
	uint32_t id = tables_attribute(&p, GNU, HEX8);
	p.attributes.at[id].unit = tables_text(&p, "CANARY");
	assert_int_equal(structural_sites(id), 0);
}

static void structural_deny_takes_them_out(void **state)
{
	(void)state;
	open_policy("structural: deny");
	assert_int_equal(structural_sites(tables_attribute(&p, "profile.frame.type", "go")), 0);
}

static void listed_values_hold_for_structural_attributes(void **state)
{
	(void)state;
	open_policy("values: {profile.frame.type: [go], pprof.mapping.has_functions: [true]}");
	assert_int_equal(structural_sites(tables_attribute(&p, "profile.frame.type", "go")),
			 LOCATION);
	assert_int_equal(structural_sites(tables_attribute(&p, "profile.frame.type", "kernel")), 0);
	for (int value = 0; value <= 1; value++) {
		uint32_t flag = tables_integer(&p, "pprof.mapping.has_functions", value);
		p.attributes.at[flag].type = VALUE_BOOL;
		assert_int_equal(structural_sites(flag), value ? MAPPING : 0);
	}
}

static void a_permitted_structural_attribute_gets_the_overflow_value(void **state)
{
	(void)state;
	open_policy("{location: [profile.frame.type], values: {profile.frame.type: [go]}}");
	assert_true(profiles_room(&p, &p.locations, 1));
	p.locations.at[p.locations.count++] = (struct location){
		.attributes =
			tables_list(&p, tables_attribute(&p, "profile.frame.type", "kernel"), 0)
	};
	assert_true(policy_run(&policy, &p));
	assert_string_equal(tables_value(&p, p.locations.at[1].attributes, "profile.frame.type"),
			    "other");
}

#define TEST(name) cmocka_unit_test_teardown(name, close_policy)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(structural_attributes_pass_at_their_site_with_their_grammar),
		TEST(structural_booleans_and_orders_pass),
		TEST(the_type_of_a_profile_that_does_not_leave_is_no_sample_type),
		TEST(a_structural_attribute_with_a_unit_is_denied),
		TEST(structural_deny_takes_them_out),
		TEST(listed_values_hold_for_structural_attributes),
		TEST(a_permitted_structural_attribute_gets_the_overflow_value),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
