/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/collecting.h"

/* ---- merging ---- */

static void untouched_profiles_leave_as_they_came(void **state)
{
	struct fixture *f = *state;
	uint32_t stack = open_frame(&f->p, "main");
	collecting_profile(f);
	open_value(&f->p, stack, NONE, 1);
	open_value(&f->p, stack, NONE, 0);
	open_value(&f->p, stack, NONE, 1);
	assert_collects(f, HEAD "   0:main 1\n   0:main 0\n   0:main 1\n");
	assert_int_equal(f->added.samples_merged, 0);
}

static void only_the_changed_profile_merges(void **state)
{
	struct fixture *f = *state;
	uint32_t stack = open_frame(&f->p, "main");
	collecting_profile(f);
	open_value(&f->p, stack, NONE, 1);
	open_value(&f->p, stack, NONE, 2);
	open_profile(&f->p, "alloc", "b")->changed = 1;
	open_value(&f->p, stack, NONE, 1);
	open_value(&f->p, open_frame(&f->p, "other"), NONE, 5);
	open_value(&f->p, stack, NONE, 2);
	assert_collects(f, HEAD "   0:main 1\n   0:main 2\n"
				"  profile type=alloc/b\n   0:main 3\n   0:other 5\n");
	assert_int_equal(f->added.samples_in, 5);
	assert_int_equal(f->added.samples_merged, 1);
}

/* A processor removed thread IDs, and the two samples became one. */
static void samples_that_lost_their_difference_merge(void **state)
{
	struct fixture *f = *state;
	uint32_t stack = open_frame(&f->p, "main"), k = open_attribute(&f->p, "k", "v");
	collecting_profile(f);
	for (int i = 0; i < 2; i++) {
		struct list list = LIST(k, open_integer(&f->p, "thread.id", i, ""));
		struct sample *s = open_sample(&f->p, stack, list, 0, NULL, TIMES(10 + i, 20 + i));
		s->attributes.count = 1;
		s->changed = 1;
	}
	assert_collects(f, HEAD "   0:main {k=\"v\"} @10 @20 @11 @21\n");
}

/* A mask made two functions equal: the two locations, the stacks and the samples are merged. */
static void functions_masked_into_the_same_text_merge_their_samples(void **state)
{
	struct fixture *f = *state;
	struct profiles *p = &f->p;
	uint32_t a = open_frame(p, "alice"), b = open_frame(p, "bob");
	collecting_profile(f);
	open_value(p, a, NONE, 1);
	open_value(p, b, NONE, 2);
	open_profile(p, "other", "ns");
	uint32_t clean = open_frame(p, "clean");
	open_value(p, clean, NONE, 3);
	open_value(p, clean, NONE, 4);
	uint32_t mask = open_text(p, "***");
	for (uint32_t i = 1; i <= 2; i++) {
		p->functions.at[i].name = mask;
		p->functions.at[i].changed = 1;
	}
	assert_collects(f, HEAD "   0:*** 3\n"
				"  profile type=other/ns\n   0:clean 3\n   0:clean 4\n");
}

static void set_changed(struct profiles *p, int what)
{
	switch (what) {
	case 0:
		p->mappings.at[1].changed = 1;
		break;
	case 1:
		p->attributes.at[1].changed = 1;
		break; /* for the mapping */
	case 2:
		p->attributes.at[2].changed = 1;
		break; /* for the location */
	case 3:
		p->attributes.at[3].changed = 1;
		break; /* for the sample */
	case 4:
		p->locations.at[1].changed = 1;
		break;
	case 5:
		p->stacks.at[1].changed = 1;
		break;
	case 6:
		p->links.at[1].changed = 1;
		break;
	case 7:
		p->functions.at[1].changed = 1;
		break;
	case 8:
		p->samples.at[1].changed = 1;
		break;
	default:
		break;
	}
}

static void a_change_anywhere_that_a_profile_reaches_lets_it_merge(void **state)
{
	struct fixture *f = *state;
	struct profiles *p = &f->p;
	for (int what = 0; what <= 9; what++) {
		open_begin(p, NULL);
		uint32_t mapping = open_mapping(p, "m", LIST(open_attribute(p, "a", "1")));
		uint32_t location = open_location(p, mapping, 1, open_function(p, "f"),
						  LIST(open_attribute(p, "b", "1")));
		uint32_t stack = open_stack(p, LIST(location)), c = open_attribute(p, "c", "1");
		uint32_t link = open_link(p, 1, 2);
		collecting_profile(f);
		for (int i = 0; i < 2; i++)
			open_sample(p, stack, LIST(c), link, TIMES(1), NULL);
		set_changed(p, what);
		assert_int_equal(collecting_add(f), COLLECT_ADDED);
		assert_int_equal(f->added.samples_merged, what == 9 ? 0 : 1);
	}
}

static void attribute_sets_are_equal_in_any_order(void **state)
{
	struct fixture *f = *state;
	uint32_t stack = open_frame(&f->p, "main");
	uint32_t a = open_attribute(&f->p, "a", "1"), b = open_attribute(&f->p, "b", "1"),
		 again = open_attribute(&f->p, "a", "1"), other = open_attribute(&f->p, "a", "2");
	collecting_changed_profile(f);
	open_value(&f->p, stack, LIST(b, a), 1);
	open_value(&f->p, stack, LIST(again, b), 2);
	open_value(&f->p, stack, LIST(other, b), 4);
	open_value(&f->p, stack, LIST(b), 8);
	assert_collects(f, HEAD "   0:main {b=\"1\" a=\"1\"} 3\n   0:main {a=\"2\" b=\"1\"} 4\n"
				"   0:main {b=\"1\"} 8\n");
}

static void long_attribute_sets_merge_too(void **state)
{
	struct fixture *f = *state;
	struct list up = { 0 }, down = { 0 };
	uint32_t all[40];
	char key[8];
	for (int i = 0; i < 40; i++) {
		snprintf(key, sizeof key, "k%d", i);
		all[i] = open_attribute(&f->p, key, "v");
	}
	up = profiles_list_copy(&f->p, up, 40);
	down = profiles_list_copy(&f->p, down, 40);
	for (int i = 0; i < 40; i++) {
		f->p.indices.at[up.first + up.count++] = all[i];
		f->p.indices.at[down.first + down.count++] = all[39 - i];
	}
	collecting_changed_profile(f);
	open_value(&f->p, open_frame(&f->p, "main"), up, 1);
	open_value(&f->p, 1, down, 1);
	assert_int_equal(collecting_add(f), COLLECT_ADDED);
	assert_int_equal(f->added.samples_merged, 1);
}

static void different_links_stay_apart(void **state)
{
	struct fixture *f = *state;
	uint32_t stack = open_frame(&f->p, "main");
	collecting_changed_profile(f);
	open_sample(&f->p, stack, NONE, 0, TIMES(1), NULL);
	open_sample(&f->p, stack, NONE, open_link(&f->p, 1, 1), TIMES(2), NULL);
	open_sample(&f->p, stack, NONE, open_link(&f->p, 1, 1), TIMES(4), NULL);
	open_sample(&f->p, stack, NONE, open_link(&f->p, 0, 0), TIMES(8), NULL);
	assert_collects(f, HEAD
			"   0:main 9\n"
			"   0:main link=01010101010101010101010101010101/0101010101010101 6\n");
}

static void each_timestamp_keeps_its_value(void **state)
{
	struct fixture *f = *state;
	uint32_t stack = open_frame(&f->p, "main");
	collecting_changed_profile(f);
	open_sample(&f->p, stack, NONE, 0, TIMES(5, 300), TIMES(10, 30));
	open_sample(&f->p, stack, NONE, 0, TIMES(7), TIMES(20));
	open_sample(&f->p, stack, NONE, 0, TIMES(9), TIMES(15));
	assert_collects(f, HEAD "   0:main 5 300 7 9 @10 @30 @20 @15\n");
	assert_int_equal(f->added.samples_merged, 2);
}

static void only_equal_shapes_merge(void **state)
{
	struct fixture *f = *state;
	uint32_t stack = open_frame(&f->p, "main");
	collecting_changed_profile(f);
	open_sample(&f->p, stack, NONE, 0, TIMES(1), NULL);
	open_sample(&f->p, stack, NONE, 0, NULL, TIMES(10));
	open_sample(&f->p, stack, NONE, 0, TIMES(2), TIMES(20));
	open_sample(&f->p, stack, NONE, 0, TIMES(1, 2), NULL);
	open_sample(&f->p, stack, NONE, 0, TIMES(3, 4), TIMES(30));
	open_sample(&f->p, stack, NONE, 0, TIMES(3, 4), TIMES(30));
	open_sample(&f->p, stack, NONE, 0, TIMES(5, 6), NULL);
	open_sample(&f->p, stack, NONE, 0, NULL, NULL);
	open_sample(&f->p, stack, NONE, 0, NULL, TIMES(40));
	assert_collects(f, HEAD "   0:main 1\n   0:main @10 @40\n   0:main 2 @20\n   0:main 6 8\n"
				"   0:main 3 4 @30\n   0:main 3 4 @30\n   0:main\n");
	assert_int_equal(f->added.samples_merged, 2);
}

static void sums_that_would_overflow_stay_apart(void **state)
{
	struct fixture *f = *state;
	uint32_t stack = open_frame(&f->p, "main");
	collecting_changed_profile(f);
	open_sample(&f->p, stack, NONE, 0, TIMES(1, INT64_MAX - 1), NULL);
	open_sample(&f->p, stack, NONE, 0, TIMES(2, 1), NULL);
	open_sample(&f->p, stack, NONE, 0, TIMES(4, 1), NULL);
	open_sample(&f->p, stack, NONE, 0, TIMES(8, 5), NULL);
	open_sample(&f->p, stack, NONE, 0, TIMES(16, INT64_MIN), NULL);
	assert_collects(f, HEAD
			"   0:main 3 9223372036854775807\n   0:main 28 -9223372036854775802\n");
	assert_int_equal(f->added.samples_merged, 3);
}

static void an_overflow_leaves_what_was_summed_alone(void **state)
{
	struct fixture *f = *state;
	uint32_t stack = open_frame(&f->p, "main");
	collecting_changed_profile(f);
	open_sample(&f->p, stack, NONE, 0, TIMES(1, INT64_MAX), NULL);
	open_sample(&f->p, stack, NONE, 0, TIMES(2, INT64_MAX), NULL);
	assert_collects(f,
			HEAD "   0:main 1 9223372036854775807\n   0:main 2 9223372036854775807\n");
	assert_int_equal(f->added.samples_merged, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(untouched_profiles_leave_as_they_came),
		TEST(only_the_changed_profile_merges),
		TEST(samples_that_lost_their_difference_merge),
		TEST(functions_masked_into_the_same_text_merge_their_samples),
		TEST(a_change_anywhere_that_a_profile_reaches_lets_it_merge),
		TEST(attribute_sets_are_equal_in_any_order),
		TEST(long_attribute_sets_merge_too),
		TEST(different_links_stay_apart),
		TEST(each_timestamp_keeps_its_value),
		TEST(only_equal_shapes_merge),
		TEST(sums_that_would_overflow_stay_apart),
		TEST(an_overflow_leaves_what_was_summed_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
