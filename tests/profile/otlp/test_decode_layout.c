/* SPDX-License-Identifier: Apache-2.0 */
/* The layouts of Sample that are accepted, and those that are rejected by name:
 * profile/otlp/decode_layout.h. */
#include "profile/wire.h"
#include "tests/profile/otlp/otlp_fixture.h"

#include <stdio.h>

#define OLD_3 "the layout of OTLP 1.3 (v1experimental)"
#define OLD_4 "the layout of OTLP 1.4 or 1.5"
#define OLD_7 "the layout of OTLP 1.7"
#define OLD_8 "the layout of OTLP 1.8"
#define OLD_9 "the layout of OTLP 1.9"
#define AMBIGUOUS "ambiguous"

struct layout_case {
	const char *samples;
	const char *refusal; /* NULL: accepted */
};

static const struct layout_case cases[] = {
	/* 1.10 and newer */
	{ "2{1=1 2[1] 3=1 4[5] 5<7>}", NULL },
	{ "2{1=1 4[5]}", NULL },
	{ "2{1=1 5<7>}", NULL },
	{ "2{1=1} 2{} 2{1=1 4[5]}", NULL },
	{ "2{1=1 3=1 5<7>}", NULL },
	{ "2{1=1 2[1] 5<7>}", NULL },
	{ "2{1=1 2[0 1 2] 5<7>} 2{1=2 5<7>}", NULL },
	/* unpacked */
	{ "2{1=1 2=1 3=1 4=5 5@7}", NULL },
	{ "2{1=1 2=1 4=5}", NULL },
	{ "2{1=1 3=1 4=5}", NULL },
	{ "2{1=1 4=5 4=6}", NULL },
	{ "2{1=1 2=1 5@7}", NULL },
	{ "2{1=1 2=1 4[5]}", NULL },
	/* the only value, since a sample must have one */
	{ "2{1=1 4=5}", NULL },
	{ "2{1=1 4=5} 2{1=1 2[1] 4=5}", NULL },
	{ "2{1=1 4=5} 2{1=1 2[1] 3[1]}", OLD_9 },
	/* one sample decides for all */
	{ "2{1=1 2[1]} 2{1=1 4[5]}", NULL },
	{ "2{1=1 2[1] 5<7>} 2{1=1 3=1 5<7>}", NULL },
	{ "2{1=1 4=5} 2{1=1 4=5 4=5}", NULL },
	{ "2{1=1 2[1] 5<7>} 2{1=1 2[700] 3[1] 5<7>}", OLD_9 },
	/* 1.8 and 1.9: values in 2, attributes in 3, link in 4 */
	{ "2{1=1 2[700] 3[1] 4=1 5<7>}", OLD_9 },
	{ "2{1=1 2[1] 3[1]}", OLD_9 },
	{ "2{1=1 2[1] 4=1}", OLD_9 },
	{ "2{1=1 2[1] 4=1 5<7>}", OLD_9 },
	{ "2{1=1 2[1]}", OLD_9 },
	{ "2{1=1 2[1]} 2{1=1 2[2] 5<7>}", OLD_9 },
	{ "2{1=1 2[700] 5<7>}", AMBIGUOUS },
	{ "2{1=1 2[1] 5<7>} 2{1=1 2[3] 5<7>}", AMBIGUOUS },
	{ "2{1=1 2=700 5@7}", AMBIGUOUS },
	/* 1.4 to 1.7: start and length of the stack in 1 and 2 */
	{ "2{1=1 2=9 3[5] 4[1] 5=1 6[7]}", OLD_7 },
	{ "2{1=1 2=9 3[5]}", OLD_7 },
	{ "2{2=9 3[5] 4[1]}", OLD_7 },
	{ "2{1=1 2=9 6[7]}", OLD_7 },
	{ "2{1=1 2=9 3=5}", OLD_7 },
	{ "2{1=1 2=9}", OLD_7 },
	{ "2{1=1 2=9 4[1] 5=1}", OLD_7 },
	/* 1.3: pprof's Sample with more */
	{ "2{1[1 2 3] 2[5]}", OLD_3 },
	{ "2{1[1 2 3] 2[5] 3{1=1 2=2} 10[1] 13[7]}", OLD_3 },
	{ "2{2[5] 7=4 8=9}", OLD_3 },
	{ "2{2[5] 3{1=1} 7=4 8=9}", OLD_3 },
	/* unknown fields are no evidence beside these */
	{ "2{1=1 2[1] 4[5] 6[7] 7=5 14=1}", NULL },
};

static void samples_decide_the_layout(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		char text[1000];
		snprintf(text, sizeof text, "%s 1{2{2{} 2{%s}}}", DICTIONARY, cases[i].samples);
		if (cases[i].refusal)
			expect_refused(text, ERROR_INVALID, cases[i].refusal);
		else
			expect_decoded(text);
	}
}

static void evidence_is_pooled_over_all_profiles(void **state)
{
	(void)state;
	expect_refused(DICTIONARY "1{2{2{2{1=1 2[1] 5<7>}}}} 1{2{2{} 2{2{1=1 2[2] "
				  "3[1]}}}}",
		       ERROR_INVALID, OLD_9);
}

/* Profile had other field numbers before 1.9, so these cannot be decoded at all. */
static void a_profile_of_an_older_layout_is_named_too(void **state)
{
	(void)state;
	expect_refused(DICTIONARY REQUEST("2{1{1=1 2=2} 2{1=1 2[5] 3[1]} 7[1] "
					  "8#00112233445566778899aabbccddeeff}"),
		       ERROR_INVALID, OLD_8);
	expect_refused(REQUEST("2{1{} 2{1=1 2=9 3[5]} 3{} 4{} 5[1 2 3] 7{} 10'' "
			       "10'x' 11=5}"),
		       ERROR_INVALID, OLD_4);
	expect_refused(REQUEST("2{1#00112233445566778899aabbccddeeff 2@1 3@2 8{1{} 2{1[1] 2[5]}}}"),
		       ERROR_INVALID, OLD_3);
}

static void a_bad_attribute_does_not_make_the_layout_ambiguous(void **state)
{
	(void)state;
	expect_decoded("2{" STRINGS TABLES
		       "6{1=99}} " REQUEST("2{2{1=1 2[3] 5<7>}} 2{2{1=1 2[1] 5<7>}}"));
	assert_int_equal(tables.rejected_profiles, 1);
}

static void another_mistake_is_told_as_what_it_is(void **state)
{
	(void)state;
	expect_refused(DICTIONARY REQUEST("2{2{1=1 2[1] 4[5]} 6'x'}"), ERROR_INVALID,
		       "profiles[0].period");
	expect_refused(DICTIONARY REQUEST("2{2{1=1 2[1] 5<5>} 6'x'}"), ERROR_INVALID,
		       "profiles[0].period");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_decide_the_layout),
		cmocka_unit_test(evidence_is_pooled_over_all_profiles),
		cmocka_unit_test(a_profile_of_an_older_layout_is_named_too),
		cmocka_unit_test(a_bad_attribute_does_not_make_the_layout_ambiguous),
		cmocka_unit_test(another_mistake_is_told_as_what_it_is),
	};
	return cmocka_run_group_tests(tests, NULL, fixture_end);
}
