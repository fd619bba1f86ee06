/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profile/thin.h"
#include "profile/wire.h"
#include "tests/support/open.h"

enum { SAMPLES = 100 };

static struct profiles tables;

static struct profile *begin(const char *type)
{
	open_begin(&tables, NULL);
	open_resource(&tables, (struct list){ 0 });
	open_scope(&tables, "");
	return open_profile(&tables, type, "count");
}

static struct profile *the_profile(void)
{
	return &tables.profiles.at[0];
}

/* The sum of the values of a sample; each timestamp must have one. */
static uint64_t sum_of(const struct sample *s)
{
	struct wire w = wire_of(span_view(&tables, s->values));
	uint64_t sum = 0;
	uint32_t count = 0;
	for (; wire_more(&w); count++)
		sum += wire_varint(&w);
	assert_true(wire_done(&w));
	if (s->timestamps.len)
		assert_int_equal(count, s->timestamps.len / 8);
	else
		assert_int_equal(count, 1);
	return sum;
}

static uint64_t total(void)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < the_profile()->samples.count; i++)
		sum += sum_of(&tables.samples.at[the_profile()->samples.first + i]);
	return sum;
}

/* Sample i has stack i and the value i * i + 1. */
static void fill(void)
{
	begin("samples");
	for (uint32_t i = 0; i < SAMPLES; i++)
		open_value(&tables, i, (struct list){ 0 }, (int64_t)i * i + 1);
}

static void the_total_is_exact_whatever_is_drawn(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 50; seed++) {
		uint64_t random = seed;
		fill();
		uint64_t before = total();
		assert_true(thin_applies(&tables, the_profile()));
		uint32_t removed = thin_profile(&tables, the_profile(), THIN_ALL / 4, &random);
		assert_int_equal(total(), before);
		assert_int_equal(removed + the_profile()->samples.count, SAMPLES);
		assert_true(the_profile()->samples.count <= SAMPLES / 4);
		assert_false(tables.over_cap);
	}
}

static void each_stack_keeps_its_value_in_expectation(void **state)
{
	enum { ROUNDS = 20000 };
	uint64_t random = 4711;
	double sums[SAMPLES] = { 0 };
	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		fill();
		thin_profile(&tables, the_profile(), THIN_ALL / 10, &random);
		for (uint32_t i = 0; i < the_profile()->samples.count; i++) {
			const struct sample *s =
				&tables.samples.at[the_profile()->samples.first + i];
			sums[s->stack] += (double)sum_of(s);
		}
	}
	/* A value v gets a stratum of about S = 32845 with probability v / S: the standard error of
	 * the mean is at most sqrt(v * S / ROUNDS). Five of them. */
	for (uint32_t i = 0; i < SAMPLES; i++) {
		double v = (double)i * i + 1, error = sums[i] / ROUNDS - v;
		assert_true(error * error < 25 * v * 33000 / ROUNDS);
	}
}

static void a_value_larger_than_a_stratum_is_never_lost(void **state)
{
	uint64_t random = 1;
	(void)state;
	begin("cpu");
	for (uint32_t i = 0; i < 50; i++)
		open_value(&tables, i, (struct list){ 0 }, i == 7 ? 1000000 : 1);
	thin_profile(&tables, the_profile(), THIN_ALL / 10, &random);
	bool found = false;
	for (uint32_t i = 0; i < the_profile()->samples.count; i++)
		found = found || tables.samples.at[the_profile()->samples.first + i].stack == 7;
	assert_true(found);
	assert_int_equal(total(), 1000049);
}

static void timestamps_stay_with_their_values(void **state)
{
	uint64_t random = 3;
	(void)state;
	begin("samples");
	for (uint32_t i = 0; i < 20; i++) {
		const int64_t values[] = { 1, 2, 3, -1 }, times[] = { 10, 20, 30, -1 },
			      none[] = { -1 };
		open_sample(&tables, i, (struct list){ 0 }, 0, i % 2 ? values : none, times);
	}
	thin_profile(&tables, the_profile(), THIN_ALL / 3, &random);
	assert_int_equal(total(), 10 * 6 + 10 * 3);
	for (uint32_t i = 0; i < the_profile()->samples.count; i++) {
		const struct sample *s = &tables.samples.at[the_profile()->samples.first + i];
		for (uint32_t k = 0; k < s->timestamps.len; k += 8) {
			uint64_t time = wire_load(span_at(&tables, s->timestamps) + k);
			assert_true(time == 10 || time == 20 || time == 30);
		}
	}
}

static void a_full_share_changes_nothing(void **state)
{
	uint64_t random = 3;
	(void)state;
	fill();
	size_t added = tables.added.len;
	assert_int_equal(thin_profile(&tables, the_profile(), THIN_ALL, &random), 0);
	assert_int_equal(tables.added.len, added);
	assert_int_equal(the_profile()->samples.count, SAMPLES);
}

static void at_least_one_sample_is_kept(void **state)
{
	uint64_t random = 3;
	(void)state;
	fill();
	uint64_t before = total();
	thin_profile(&tables, the_profile(), 1, &random);
	assert_int_equal(the_profile()->samples.count, 1);
	assert_int_equal(total(), before);
}

static void a_profile_of_zeros_keeps_one(void **state)
{
	uint64_t random = 3;
	(void)state;
	begin("samples");
	for (uint32_t i = 0; i < 5; i++)
		open_value(&tables, i, (struct list){ 0 }, 0);
	assert_int_equal(thin_profile(&tables, the_profile(), 1, &random), 4);
	assert_int_equal(the_profile()->samples.count, 1);
}

static void the_same_state_gives_the_same_result(void **state)
{
	uint64_t a = 99, b = 99;
	uint32_t stacks[SAMPLES], count;
	(void)state;
	fill();
	thin_profile(&tables, the_profile(), THIN_ALL / 4, &a);
	count = the_profile()->samples.count;
	for (uint32_t i = 0; i < count; i++)
		stacks[i] = tables.samples.at[the_profile()->samples.first + i].stack;
	fill();
	thin_profile(&tables, the_profile(), THIN_ALL / 4, &b);
	assert_int_equal(the_profile()->samples.count, count);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(tables.samples.at[the_profile()->samples.first + i].stack,
				 stacks[i]);
	assert_int_equal(a, b);
}

static void types_where_it_would_be_wrong_are_excluded(void **state)
{
	static const char *const cumulative[] = { "alloc_objects", "alloc_space", "contentions",
						  "delay" };
	const int64_t two[] = { 1, 2, -1 }, none[] = { -1 };
	(void)state;
	for (size_t i = 0; i < 4; i++) {
		begin(cumulative[i]);
		open_value(&tables, 1, (struct list){ 0 }, 5);
		assert_false(thin_applies(&tables, the_profile()));
	}
	begin("samples");
	open_value(&tables, 1, (struct list){ 0 }, -5);
	assert_false(thin_applies(&tables, the_profile()));
	begin("samples");
	open_value(&tables, 1, (struct list){ 0 }, INT64_MAX);
	open_value(&tables, 1, (struct list){ 0 }, 1);
	assert_false(thin_applies(&tables, the_profile()));
	begin("samples");
	open_sample(&tables, 1, (struct list){ 0 }, 0, two, none);
	assert_false(thin_applies(&tables, the_profile()));
}

static void the_attribute_decides_before_the_type(void **state)
{
	static const struct {
		const char *type, *temporality;
		bool applies;
	} cases[] = { { "alloc_space", "delta", true }, { "cpu", "cumulative", false } };
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		begin(cases[i].type);
		uint32_t a = open_attribute(&tables, "otlp.profile.aggregation_temporality",
					    cases[i].temporality);
		the_profile()->attributes = open_list(&tables, a, OPEN_END);
		open_value(&tables, 1, (struct list){ 0 }, 5);
		assert_int_equal(thin_applies(&tables, the_profile()), cases[i].applies);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_total_is_exact_whatever_is_drawn),
		cmocka_unit_test(each_stack_keeps_its_value_in_expectation),
		cmocka_unit_test(a_value_larger_than_a_stratum_is_never_lost),
		cmocka_unit_test(timestamps_stay_with_their_values),
		cmocka_unit_test(a_full_share_changes_nothing),
		cmocka_unit_test(at_least_one_sample_is_kept),
		cmocka_unit_test(a_profile_of_zeros_keeps_one),
		cmocka_unit_test(the_same_state_gives_the_same_result),
		cmocka_unit_test(types_where_it_would_be_wrong_are_excluded),
		cmocka_unit_test(the_attribute_decides_before_the_type),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	profiles_fini(&tables);
	return failed;
}
