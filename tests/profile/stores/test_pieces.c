/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "profile/collect/collect.h"
#include "profile/collect/split.h"
#include "profile/stores/pieces.h"
#include "tests/support/open.h"

#define MS UINT64_C(1000000)

static struct profiles p;
static struct regroup r;
static struct parts parts;
static struct packet *whole;

static int setup(void **state)
{
	(void)state;
	open_begin(&p, NULL);
	r = (struct regroup){ .slots = slots_new() };
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	parts_fini(&parts);
	packet_unref(&whole);
	slots_unref(&r.slots);
	profiles_fini(&p);
	return 0;
}

/* A series, in the form that regrouping produces. */
static void series(const char *service)
{
	open_resource(&p, open_list(&p, open_attribute(&p, "service_name", service), OPEN_END));
	open_scope(&p, "");
}

static void profile(const char *type, uint64_t time, uint32_t samples)
{
	uint32_t stacks[20];
	for (uint32_t i = 0; i < samples; i++)
		stacks[i] = open_frame(&p, "main");
	open_profile(&p, type, "count")->time = time;
	for (uint32_t i = 0; i < samples; i++)
		open_value(&p, stacks[i], (struct list){ 0 }, 1 + i);
}

static void seal(void)
{
	struct collect_added added;
	struct error err = { 0 };
	struct collect *c = collect_new(
		&(struct collect_limits){ .max_bytes = 1 << 20, .hard_bytes = 1 << 20 });
	assert_int_equal(collect_add(c, &p, false, &added, &err), COLLECT_ADDED);
	whole = collect_seal(c);
	collect_unref(&c);
}

static void cut(struct packet *packet, uint64_t samples)
{
	const struct limits limits = { .samples = samples, .profiles = 1, .resources = 1 };
	struct error err = { 0 };
	uint32_t first = parts.count;
	if (!split_packet(packet, &limits, NULL, &parts, &err) ||
	    !pieces_move(&r, &parts, first, &err))
		fail_msg("%s", err.text);
}

/* The times of the parts, starting at `first`, in ms. */
static const char *times_from(uint32_t first)
{
	static char text[200];
	size_t len = 0;
	text[0] = '\0';
	for (uint32_t i = first; i < parts.count; i++) {
		const struct packet *part = parts.at[i].packet;
		assert_int_equal(part->oldest, part->newest);
		assert_int_equal(part->newest % MS, 3);
		len += (size_t)snprintf(text + len, sizeof text - len, "%s%llu", len ? " " : "",
					(unsigned long long)(part->newest / MS));
	}
	return text;
}

/* The time that regrouping would have used. */
static void take(uint64_t time)
{
	slots_take(r.slots, regroup_key(&p), time);
}

static void pieces_begin_at_the_profiles_own_time_and_follow_by_a_millisecond(void **state)
{
	(void)state;
	series("a");
	profile("cpu", 5 * MS + 3, 7);
	take(5 * MS);
	seal();
	cut(whole, 2);
	assert_string_equal(times_from(0), "5 6 7 8");
	assert_int_equal(r.moved, 3);
}

static void the_types_of_a_pprof_have_the_same_times(void **state)
{
	(void)state;
	series("a");
	profile("cpu", 5 * MS + 3, 5);
	profile("samples", 5 * MS + 3, 7);
	take(5 * MS);
	seal();
	cut(whole, 2);
	assert_string_equal(times_from(0), "5 6 7 5 6 7 8");
}

static void pieces_pass_what_their_series_has(void **state)
{
	(void)state;
	series("a");
	profile("cpu", 5 * MS + 3, 5);
	profile("cpu", 7 * MS + 3, 3);
	take(5 * MS);
	take(7 * MS);
	seal();
	cut(whole, 2);
	assert_string_equal(times_from(0), "5 6 8 7 9");
}

static void series_do_not_share_times(void **state)
{
	(void)state;
	series("a");
	take(6 * MS);
	profile("cpu", 5 * MS + 3, 3);
	series("b");
	profile("cpu", 5 * MS + 3, 3);
	seal();
	cut(whole, 2);
	assert_string_equal(times_from(0), "5 7 5 6");
}

static void a_piece_that_is_cut_again_keeps_its_time_and_takes_none_for_it(void **state)
{
	(void)state;
	series("a");
	profile("cpu", 5 * MS + 3, 12);
	take(5 * MS);
	seal();
	cut(whole, 4);
	assert_string_equal(times_from(0), "5 6 7");
	struct packet *second = packet_ref(parts.at[1].packet);
	cut(second, 4);
	assert_string_equal(times_from(3), "6");
	cut(second, 2);
	assert_string_equal(times_from(4), "6 8");
	packet_unref(&second);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(pieces_begin_at_the_profiles_own_time_and_follow_by_a_millisecond),
		TEST(the_types_of_a_pprof_have_the_same_times),
		TEST(pieces_pass_what_their_series_has),
		TEST(series_do_not_share_times),
		TEST(a_piece_that_is_cut_again_keeps_its_time_and_takes_none_for_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
