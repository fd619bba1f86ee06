/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "exporters/load_balancing_choice.h"

/* Keys and endpoints are fixed, and so are all hashes: what holds once, holds always. */
enum { KEYS = 20000, MAX = 64 };

static struct load_balancing_candidate candidates[MAX];
static uint32_t before[KEYS], after[KEYS];

static void make_candidates(size_t count)
{
	char endpoint[32];
	for (size_t i = 0; i < count; i++) {
		int len = snprintf(endpoint, sizeof endpoint, "10.0.%zu.7:4317", i);
		candidates[i] = (struct load_balancing_candidate){
			load_balancing_hash(endpoint, (size_t)len), (uint32_t)i + 1, false
		};
	}
}

static void choose_all(size_t count, uint32_t chosen[KEYS])
{
	char service[32];
	for (size_t k = 0; k < KEYS; k++) {
		int len = snprintf(service, sizeof service, "service-%zu", k);
		chosen[k] = load_balancing_choose(candidates, count,
						  load_balancing_hash(service, (size_t)len));
		assert_in_range(chosen[k], 1, MAX);
	}
}

static size_t count_of(const uint32_t chosen[KEYS], uint32_t member)
{
	size_t count = 0;
	for (size_t k = 0; k < KEYS; k++)
		count += chosen[k] == member;
	return count;
}

/* Within five standard deviations of a fair share, all of them. */
static bool is_fair(size_t got, double trials, double members)
{
	double share = trials / members, difference = (double)got - share;
	return difference * difference < 25 * share * (1 - 1 / members);
}

static void all_members_get_their_share(void **state)
{
	static const size_t counts[] = { 1, 2, 3, 5, 16, 64 };
	(void)state;
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		make_candidates(counts[i]);
		choose_all(counts[i], before);
		for (uint32_t m = 1; m <= counts[i] && counts[i] > 1; m++)
			assert_true(is_fair(count_of(before, m), KEYS, (double)counts[i]));
	}
}

/* Removes the second of `count`. */
static void remove_second(size_t count)
{
	memmove(&candidates[1], &candidates[2], (count - 2) * sizeof *candidates);
}

static void a_member_that_leaves_moves_only_its_share_to_all_others(void **state)
{
	size_t moved[MAX + 1] = { 0 }, own;
	(void)state;
	make_candidates(8);
	choose_all(8, before);
	remove_second(8);
	choose_all(7, after);
	own = count_of(before, 2);
	for (size_t k = 0; k < KEYS; k++) {
		if (before[k] == 2)
			moved[after[k]]++;
		else
			assert_int_equal(after[k], before[k]);
	}
	for (uint32_t m = 1; m <= 8; m++)
		assert_true(m == 2 ? !moved[m] : is_fair(moved[m], (double)own, 7));
}

static void a_member_that_joins_takes_only_its_share(void **state)
{
	(void)state;
	make_candidates(8);
	choose_all(7, before);
	choose_all(8, after);
	for (size_t k = 0; k < KEYS; k++)
		assert_true(after[k] == 8 || after[k] == before[k]);
	assert_true(is_fair(count_of(after, 8), KEYS, 8));
}

static void the_order_of_the_list_does_not_matter(void **state)
{
	(void)state;
	make_candidates(8);
	choose_all(8, before);
	for (size_t i = 0; i < 4; i++) {
		struct load_balancing_candidate c = candidates[i];
		candidates[i] = candidates[7 - i];
		candidates[7 - i] = c;
	}
	choose_all(8, after);
	assert_memory_equal(before, after, sizeof before);
}

/* As if it had left, unless all are avoided. */
static void an_avoided_member_gets_nothing_if_there_are_others(void **state)
{
	(void)state;
	make_candidates(8);
	candidates[1].avoided = true;
	choose_all(8, before);
	remove_second(8);
	choose_all(7, after);
	assert_memory_equal(before, after, sizeof before);
	make_candidates(8);
	choose_all(8, before);
	for (size_t i = 0; i < 8; i++)
		candidates[i].avoided = true;
	choose_all(8, after);
	assert_memory_equal(before, after, sizeof before);
}

/* Gateways of different releases must choose alike. */
static void choices_never_change(void **state)
{
	static const char *const services[] = { "checkout", "cart", "", "payment" };
	static const uint32_t members[] = { 4, 7, 8, 1 };
	(void)state;
	make_candidates(8);
	for (size_t i = 0; i < sizeof services / sizeof *services; i++) {
		uint64_t key = load_balancing_hash(services[i], strlen(services[i]));
		assert_int_equal(load_balancing_choose(candidates, 8, key), members[i]);
	}
	assert_int_equal(load_balancing_choose(candidates, 0, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_members_get_their_share),
		cmocka_unit_test(a_member_that_leaves_moves_only_its_share_to_all_others),
		cmocka_unit_test(a_member_that_joins_takes_only_its_share),
		cmocka_unit_test(the_order_of_the_list_does_not_matter),
		cmocka_unit_test(an_avoided_member_gets_nothing_if_there_are_others),
		cmocka_unit_test(choices_never_change),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
