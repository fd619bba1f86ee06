/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/delta.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "profile/wire.h"
#include "tests/support/open.h"

/* A heap profile: two samples types that are sums, and one level. */
enum { ALLOC_OBJECTS, ALLOC_SPACE, INUSE_SPACE, TYPES };

struct line_of {
	const char *function, *label;
	int64_t objects, space, inuse;
};

struct scene {
	struct profiles p;
	struct request request;
	struct delta *state;
	struct error err;
};

static void write_profile(struct profiles *p, const char *type, size_t offset,
			  const struct line_of *lines, uint64_t time)
{
	struct profile *profile = open_profile(p, type, "count");
	profile->time = time;
	for (; lines->function; lines++) {
		int64_t value;
		memcpy(&value, (const char *)lines + offset, sizeof value);
		struct list labels = { 0 };
		if (lines->label)
			labels = open_list(p, open_attribute(p, "path", lines->label), OPEN_END);
		open_value(p, open_frame(p, lines->function), labels, value);
	}
}

/* Applies the next profile of the target, and keeps its state. */
static enum delta_result next(struct scene *s, uint64_t time, const struct line_of *lines)
{
	enum delta_result result;
	open_begin(&s->p, &s->request);
	open_resource(&s->p, (struct list){ 0 });
	open_scope(&s->p, "");
	write_profile(&s->p, "alloc_objects", offsetof(struct line_of, objects), lines, time);
	write_profile(&s->p, "alloc_space", offsetof(struct line_of, space), lines, time);
	write_profile(&s->p, "inuse_space", offsetof(struct line_of, inuse), lines, time);
	struct delta *now = delta_apply(&s->p, s->state, &result, &s->err);
	assert_non_null(now);
	delta_unref(&s->state);
	s->state = now;
	return result;
}

static int64_t value(struct scene *s, uint32_t type, uint32_t i)
{
	const struct profile *profile = &s->p.profiles.at[type];
	struct span values = s->p.samples.at[profile->samples.first + i].values;
	struct wire w = wire_of(span_view(&s->p, values));
	assert_true(i < profile->samples.count);
	return (int64_t)wire_varint(&w);
}

static uint32_t samples(struct scene *s)
{
	for (int i = 1; i < TYPES; i++)
		assert_int_equal(s->p.profiles.at[i].samples.count,
				 s->p.profiles.at[0].samples.count);
	return s->p.profiles.at[0].samples.count;
}

static void finish(struct scene *s)
{
	delta_unref(&s->state);
	profiles_fini(&s->p);
}

static const struct line_of first[] = {
	{ "a", NULL, 10, 1000, 500 }, { "b", NULL, 20, 2000, 0 }, { "c", NULL, 30, 3000, 0 }, { 0 }
};

static void sums_become_differences_and_levels_stay(void **state)
{
	const struct line_of later[] = { { "a", NULL, 11, 1100, 700 },
					 { "b", NULL, 20, 2000, 0 },
					 { "new", NULL, 5, 50, 1 },
					 { "c", NULL, 37, 3700, 0 },
					 { 0 } };
	struct scene s = { 0 };
	(void)state;
	assert_int_equal(next(&s, 1000, first), DELTA_FIRST);
	assert_int_equal(next(&s, 4000, later), DELTA_DIFFERENCE);
	assert_int_equal(samples(&s), 3); /* b has nothing left */
	for (int i = 0; i < 3; i++) {
		static const int64_t want[TYPES][3] = { { 1, 5, 7 },
							{ 100, 50, 700 },
							{ 700, 1, 0 } };
		for (uint32_t type = 0; type < TYPES; type++)
			assert_int_equal(value(&s, type, (uint32_t)i), want[type][i]);
	}
	assert_int_equal(s.p.profiles.at[0].time, 1000);
	assert_int_equal(s.p.profiles.at[0].duration, 3000);
	assert_int_equal(next(&s, 5000, later), DELTA_DIFFERENCE);
	assert_int_equal(samples(&s), 2); /* their levels */
	finish(&s);
}

static void samples_that_are_identified_alike_are_added_up(void **state)
{
	const struct line_of twice[] = { { "a", NULL, 10, 10, 0 },
					 { "a", NULL, 20, 20, 0 },
					 { 0 } };
	const struct line_of again[] = { { "a", NULL, 25, 25, 0 }, { "a", NULL, 6, 6, 0 }, { 0 } };
	struct scene s = { 0 };
	(void)state;
	next(&s, 0, twice);
	assert_int_equal(next(&s, 0, again), DELTA_DIFFERENCE);
	assert_int_equal(samples(&s), 1);
	assert_int_equal(value(&s, ALLOC_SPACE, 0), 1);
	finish(&s);
}

static void labels_and_frames_identify_a_sample(void **state)
{
	const struct line_of before[] = { { "a", "x", 1, 1, 0 }, { "a", "y", 5, 5, 0 }, { 0 } };
	const struct line_of after[] = { { "a", "y", 6, 6, 0 }, { "a", "x", 3, 3, 0 }, { 0 } };
	struct scene s = { 0 };
	(void)state;
	next(&s, 0, before);
	assert_int_equal(next(&s, 0, after), DELTA_DIFFERENCE);
	assert_int_equal(value(&s, ALLOC_OBJECTS, 0), 1);
	assert_int_equal(value(&s, ALLOC_OBJECTS, 1), 2);
	finish(&s);
}

static void a_restart_is_a_new_beginning(void **state)
{
	const struct line_of less[] = { { "a", NULL, 9, 1000, 500 },
					{ "b", NULL, 20, 2000, 0 },
					{ "c", NULL, 30, 3000, 0 },
					{ 0 } };
	const struct line_of gone[] = { { "a", NULL, 10, 1000, 500 },
					{ "b", NULL, 20, 2000, 0 },
					{ "d", NULL, 30, 3000, 0 },
					{ 0 } };
	struct scene s = { 0 };
	(void)state;
	next(&s, 1, first);
	assert_int_equal(next(&s, 2, less), DELTA_RESET);
	assert_int_equal(next(&s, 3, first), DELTA_DIFFERENCE);
	assert_int_equal(samples(&s), 1); /* a, with its level */
	assert_int_equal(next(&s, 4, gone), DELTA_RESET);
	assert_int_equal(next(&s, 3, gone), DELTA_RESET); /* its clock went back */
	finish(&s);
}

static void no_difference_is_a_result_of_its_own(void **state)
{
	const struct line_of sums[] = { { "a", NULL, 9, 1000, 0 }, { 0 } };
	struct scene s = { 0 };
	(void)state;
	next(&s, 1, sums);
	assert_int_equal(next(&s, 2, sums), DELTA_NOTHING);
	assert_int_equal(samples(&s), 0);
	finish(&s);
}

static void the_state_is_small(void **state)
{
	struct scene s = { 0 };
	(void)state;
	next(&s, 0, first);
	assert_true(delta_bytes(s.state) <= 64 + 3 * 3 * sizeof(uint64_t));
	assert_int_equal(delta_bytes(NULL), 0);
	finish(&s);
}

static void profiles_with_different_samples_are_refused(void **state)
{
	struct scene s = { 0 };
	enum delta_result result;
	(void)state;
	open_begin(&s.p, &s.request);
	open_resource(&s.p, (struct list){ 0 });
	open_scope(&s.p, "");
	write_profile(&s.p, "alloc_objects", offsetof(struct line_of, objects), first, 0);
	write_profile(&s.p, "alloc_space", offsetof(struct line_of, space), first + 1, 0);
	assert_null(delta_apply(&s.p, NULL, &result, &s.err));
	assert_int_equal(s.err.kind, ERROR_INVALID);
	finish(&s);
}

static void tables_at_their_cap_are_refused(void **state)
{
	struct scene s = { 0 };
	enum delta_result result;
	(void)state;
	next(&s, 0, first);
	s.p.table_bytes_max = profiles_used(&s.p);
	assert_null(delta_apply(&s.p, s.state, &result, &s.err));
	assert_int_equal(s.err.kind, ERROR_TOO_LARGE);
	finish(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_become_differences_and_levels_stay),
		cmocka_unit_test(samples_that_are_identified_alike_are_added_up),
		cmocka_unit_test(labels_and_frames_identify_a_sample),
		cmocka_unit_test(a_restart_is_a_new_beginning),
		cmocka_unit_test(no_difference_is_a_result_of_its_own),
		cmocka_unit_test(the_state_is_small),
		cmocka_unit_test(profiles_with_different_samples_are_refused),
		cmocka_unit_test(tables_at_their_cap_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
