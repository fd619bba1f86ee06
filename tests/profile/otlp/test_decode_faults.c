/* SPDX-License-Identifier: Apache-2.0 */
/* Faults in a request: which Profiles they reject, and what is reported to the sender. */
#include "profile/wire.h"
#include "tests/profile/otlp/otlp_fixture.h"
#include "tests/support/corpus.h"

#include <stdio.h>

#define AT "resource_profiles[0].scope_profiles[0].profiles[1]."

/* A request with a valid Profile before and after a faulty one. `more` is added to the
 * dictionary. */
static void costs_one(const char *more, const char *bad, const char *reason)
{
	char text[2000];
	snprintf(text, sizeof text, "2{" STRINGS TABLES "%s} 1{2{" GOOD "%s" GOOD "}}", more, bad);
	expect_decoded(text);
	assert_int_equal(tables.profiles.count, 3);
	assert_int_equal(tables.rejected_profiles, 1);
	assert_int_equal(tables.rejected_samples, tables.profiles.at[1].samples.count);
	assert_true(!tables.profiles.at[0].fault && tables.profiles.at[1].fault &&
		    !tables.profiles.at[2].fault);
	if (!strstr(tables.rejection, reason))
		fail_msg("the reason is: %s\n not: %s", tables.rejection, reason);
}

static void an_index_out_of_range_costs_its_profile(void **state)
{
	(void)state;
	static const char *const cases[][2] = {
		{ "2{2{1=3 4[1]}}",
		  AT "samples[0].stack_index 3 is out of range for stack_table (3 entries)" },
		{ "2{2{4[1]} 2{1=-1 4[1]}}",
		  AT "samples[1].stack_index is out of range for stack_table" },
		{ "2{2{3=3 4[1]}}", AT "samples[0].link_index 3 is out of range for link_table" },
		{ "2{2{3=-1 4[1]}}", AT "samples[0].link_index is out of range for link_table" },
		{ "2{2{2[1 9] 4[1]}}",
		  AT "samples[0].attribute_indices 9 is out of range for attribute_table" },
		{ "2{2{2=9 4[1]}}",
		  AT "samples[0].attribute_indices 9 is out of range for attribute_table" },
		{ "2{2{2[-1] 4[1]}}",
		  AT "samples[0].attribute_indices is out of range for attribute_table" },
		{ "2{2{2[0 1 2 0 1 2 0 1 3] 4[1]}}", "attribute_indices 3 is out of range" },
		{ "2{2{2[300 1 2 0 1 2 0 1] 4[1]}}", "attribute_indices 300 is out of range" },
		{ "2{2{2[300 301 302 303 1] 4[1]}}", "attribute_indices 300 is out of range" },
		{ "2{2{2[0x100000001] 4[1]}}", "attribute_indices is out of range" },
		{ "2{11[9]}",
		  AT "attribute_indices 9 is out of range for attribute_table (3 entries)" },
		{ "2{11=9}", AT "attribute_indices 9" },
		{ "2{1{1=7}}",
		  AT "sample_type.type_strindex 7 is out of range for string_table (7 entries)" },
		{ "2{1{2=-1}}", AT "sample_type.unit_strindex is out of range for string_table" },
		{ "2{5{1=7}}", AT "period_type.type_strindex 7" },
		{ "2{5{2=7}}", AT "period_type.unit_strindex 7" },
	};
	for (size_t i = 0; i < COUNT(cases); i++)
		costs_one("", cases[i][0], cases[i][1]);
}

static void an_index_just_in_range_is_good(void **state)
{
	(void)state;
	expect_decoded(DICTIONARY REQUEST("2{1{1=6 2=6} 2{1=2 3=2 2[2 2 2 2 2 2 2 2 2] 4[1]} "
					  "11[2]}"));
	assert_int_equal(tables.rejected_profiles, 0);
}

/* New entries have index 3 (mappings, locations, ...), so that the valid ones are not changed. */
static void a_bad_entry_costs_who_reaches_it(void **state)
{
	(void)state;
	static const char *const cases[][3] = {
		{ "3{1=99} 2{3{1=3}} 7{1[1 3]}", "2{2{1=3 4[1]}}",
		  "function_table[3].name_strindex 99" },
		{ "3{2=-1} 2{3{1=3}} 7{1[1 3]}", "2{2{1=3 4[1]}}",
		  "function_table[3].system_name_strindex" },
		{ "3{3=99} 2{3{1=3}} 7{1=1 1=3}", "2{2{1=3 4[1]}}",
		  "function_table[3].filename_strindex" },
		{ "2{3{} 3{1=99}} 7{1[3]}", "2{2{1=3 4[1]}}",
		  "location_table[3].lines.function_index 99" },
		{ "2{1=99} 7{1[3]}", "2{2{1=3 4[1]}}", "location_table[3].mapping_index 99" },
		{ "2{4[99]} 7{1[3]}", "2{2{1=3 4[1]}}", "location_table[3].attribute_indices 99" },
		{ "1{4=99} 2{1=3} 7{1[3]}", "2{2{1=3 4[1]}}",
		  "mapping_table[3].filename_strindex 99" },
		{ "1{5[99]} 2{1=3} 7{1[3]}", "2{2{1=3 4[1]}}",
		  "mapping_table[3].attribute_indices 99" },
		{ "6{1=99} 1{5[3]} 2{1=3} 7{1[3]}", "2{2{1=3 4[1]}}",
		  "attribute_table[3].key_strindex 99" },
		{ "6{1=99} 2{4[3]} 7{1[3]}", "2{2{1=3 4[1]}}",
		  "attribute_table[3].key_strindex 99" },
		{ "6{1=5 3=99}", "2{2{2[1 3] 4[1]}}", "attribute_table[3].unit_strindex 99" },
		{ "6{1=5 2{8=99}}", "2{2{2=3 4[1]}}",
		  "attribute_table[3].string_value_strindex 99" },
		{ "6{1=5 2{5{1{1'x'} 1{6{1{3=99}}}}}}", "2{11[3]}",
		  "attribute_table[3].key_strindex 99" },
		{ "7{1[1 99]}", "2{2{1=3 4[1]}}", "stack_table[3].location_indices 99" },
		{ "7{1[-1]}", "2{2{1=3 4[1]}}", "stack_table[3].location_indices is out of range" },
		{ "7{1#80}", "2{2{1=3 4[1]}}", "stack_table[3].location_indices is truncated" },
		{ "4{1#00}", "2{2{3=3 4[1]}}", "link_table[3].trace_id has the wrong length" },
		{ "4{2#00112233445566778899}", "2{2{3=3 4[1]}}",
		  "link_table[3].span_id has the wrong length" },
	};
	for (size_t i = 0; i < COUNT(cases); i++)
		costs_one(cases[i][0], cases[i][1], cases[i][2]);
}

static void a_bad_entry_that_nobody_reaches_costs_nothing(void **state)
{
	(void)state;
	expect_decoded("2{" STRINGS TABLES
		       "3{1=99} 2{3{1=3}} 7{1[3]} 4{1#00} 6{1=99} 1{4=99}} " REQUEST(GOOD));
	assert_int_equal(tables.rejected_profiles, 0);
	assert_string_equal(tables.rejection, "");
}

static void numbers_that_do_not_fill_their_field_cost_their_profile(void **state)
{
	(void)state;
	costs_one("", "2{2{4[1] 5#00112233445566}}",
		  AT "samples[0].timestamps_unix_nano is not a multiple of 8 bytes");
	costs_one("", "2{2{4#0180}}", AT "samples[0].values contains a malformed varint");
	costs_one("", "2{2{4#ffffffffffffffffff02}}",
		  AT "samples[0].values contains a malformed varint");
	/* Neither is complete by itself; only both together are. */
	costs_one("", "2{2{4#80 4#01}}", AT "samples[0].values contains a malformed varint");
	costs_one("", "2{2{4[1] 5#00112233445566 5#77}}", "is not a multiple of 8 bytes");
	costs_one("", "2{2{2#80 4[1]}}", AT "samples[0].attribute_indices is truncated");
}

static void a_sample_without_values_and_timestamps_costs_its_profile(void **state)
{
	(void)state;
	costs_one("", "2{2{4[1]} 2{1=1}}", AT "samples[1].values and timestamps are both empty");
	costs_one("", "2{2{}}", "both empty");
	costs_one("", "2{2{1=1 2[1] 4[]}}", "both empty");
	expect_decoded(DICTIONARY REQUEST("2{2{4[0]}} 2{2{5<0>}}"));
	assert_int_equal(tables.rejected_profiles, 0);
}

static void a_profile_id_has_16_bytes_or_none(void **state)
{
	(void)state;
	costs_one("", "2{7#001122}", AT "profile_id has the wrong length");
	expect_decoded(REQUEST("2{7''} 2{7#00112233445566778899aabbccddeeff}"));
	assert_int_equal(tables.profiles.at[0].profile_id.len, 0);
	assert_int_equal(tables.rejected_profiles, 0);
}

static void a_bad_resource_or_scope_costs_its_profiles(void **state)
{
	(void)state;
	expect_decoded(DICTIONARY "1{1{1{3=99}} 2{" GOOD GOOD "}} 1{2{" GOOD
				  "} 2{1{3{1'k' 2{8=7}}} " GOOD "}}");
	assert_int_equal(tables.rejected_profiles, 3);
	assert_int_equal(tables.rejected_samples, 3);
	assert_false(tables.profiles.at[2].fault);
	assert_true(tables.profiles.at[3].fault);
	assert_string_equal(
		tables.rejection,
		"resource_profiles[0].key_strindex 99 is out of range for string_table (7 "
		"entries)");
}

static void a_request_of_only_bad_profiles_is_refused(void **state)
{
	(void)state;
	expect_refused(DICTIONARY REQUEST("2{2{1=9 4[1]}} 2{11[9]}"), ERROR_INVALID,
		       "profiles[0].samples[0].stack_index 9 is out of range for stack_table (3 "
		       "entries)");
}

static void malformed_bytes_refuse_the_request(void **state)
{
	(void)state;
	static const char *const cases[][2] = {
		{ "~0a", "resource_profiles is truncated" },
		{ "~0a05", "resource_profiles is truncated" },
		{ "3!3", "the request contains an invalid tag" },
		{ "3!4", "the request contains an invalid tag" },
		{ "3!6", "the request contains an invalid tag" },
		{ "~0000", "the request contains an invalid tag" },
		{ "2{5'' 3{} 3{~08}}", "function_table[1].name_strindex is truncated" },
		{ "2{3{} 3{~08ffffffffffffffffffff01}}",
		  "name_strindex contains a varint of more than 64 bits" },
		{ "2{3{} 3{9!3}}", "function_table[1] contains an invalid tag" },
		{ "2{6{} 6{2{3'x'}}}",
		  "attribute_table[1].int_value contains a known field with the wrong" },
		{ "2{1=5}", "mapping_table contains a known field with the wrong wire type" },
		{ "1{1{1{1=5}}}",
		  "resource_profiles[0].key contains a known field with the wrong wire type" },
		{ "1{2{} 2{1{1=5}}}",
		  "resource_profiles[0].scope_profiles[1].name contains a known" },
		{ "1{2{2{} 2{3=5}}}",
		  "profiles[1].time_unix_nano contains a known field with the wrong" },
		{ "1{2{2{2{4[1] 4@5}}}}",
		  "profiles[0].samples[0].values contains a known field with the wrong" },
		{ "1{2{2{2{} 2{~22}}}}", "profiles[0].samples[1].values is truncated" },
		{ "1{1{3{3=1}}}", "resource_profiles[0].id_keys contains a known field" },
		{ "1%5", "resource_profiles contains a known field with the wrong wire type" },
	};
	for (size_t i = 0; i < COUNT(cases); i++)
		expect_refused(cases[i][0], ERROR_INVALID, cases[i][1]);
}

static void no_text_of_the_sender_is_in_an_error(void **state)
{
	(void)state;
	static const char *const cases[] = {
		"2{5'' 5'SECRET' 6{} 6{1=1 2{1'SECRET' 3'SECRET'}}}",
		"1{1{1{1'SECRET' 3=9}} 2{1{1'SECRET'} 2{}}}",
		"1{1{1{1'SECRET' 2{5{1{1'SECRET'} 1{2'SECRET'}}}}}}",
		"1{2{2{7'SECRET'}}}",
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_false(decode(cases[i]));
		assert_null(strstr(error.text, "SECRET"));
	}
}

/* --- truncated at any byte --- */

static void decode_cut(struct view cut)
{
	if (!decode_bytes(cut, 1 << 30))
		assert_int_equal(error.kind, ERROR_INVALID);
}

static void a_request_cut_at_any_byte_is_harmless(void **state)
{
	(void)state;
	expect_decoded("1{1{1{1'service.name' 2{5{1{6{1{1'k' 2{7#0001}}}}}}} 3{2't' 3'k'}} 3's'"
		       " 2{1{1'scope' 3{1'k' 3=1}} 2{1{1=1 2=2} 2{1=1 2[1 2] 3=1 4[5 300] 5<1 2>}"
		       " 2{4=1 4=2 5@3} 7#000102030405060708090a0b0c0d0e0f 11[2]}}} " DICTIONARY);
	corpus_cut(bytes_view(&input), decode_cut);
}

static void cut_request(const char *name, struct view file)
{
	if (strstr(name, ".pb"))
		corpus_cut(file, decode_cut);
}

static void real_requests_cut_at_any_byte_are_harmless(void **state)
{
	(void)state;
	if (!corpus_each("otlp", 16384, cut_request))
		skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_index_out_of_range_costs_its_profile),
		cmocka_unit_test(an_index_just_in_range_is_good),
		cmocka_unit_test(a_bad_entry_costs_who_reaches_it),
		cmocka_unit_test(a_bad_entry_that_nobody_reaches_costs_nothing),
		cmocka_unit_test(numbers_that_do_not_fill_their_field_cost_their_profile),
		cmocka_unit_test(a_sample_without_values_and_timestamps_costs_its_profile),
		cmocka_unit_test(a_profile_id_has_16_bytes_or_none),
		cmocka_unit_test(a_bad_resource_or_scope_costs_its_profiles),
		cmocka_unit_test(a_request_of_only_bad_profiles_is_refused),
		cmocka_unit_test(malformed_bytes_refuse_the_request),
		cmocka_unit_test(no_text_of_the_sender_is_in_an_error),
		cmocka_unit_test(a_request_cut_at_any_byte_is_harmless),
		cmocka_unit_test(real_requests_cut_at_any_byte_are_harmless),
	};
	return cmocka_run_group_tests(tests, NULL, fixture_end);
}
