/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "profile/stores/regroup.h"
#include "tests/support/open.h"

#define MS UINT64_C(1000000)
#define NOW (1000 * MS)

static struct profiles p;
static struct series_rules rules;
static struct series_labels labels;
static struct regroup r;

static int setup(void **state)
{
	(void)state;
	rules = (struct series_rules){ .names_max = 30 };
	open_begin(&p, NULL);
	series_init(&labels, &rules);
	r = (struct regroup){ .series = &labels, .slots = slots_new(), .now = NOW };
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	series_fini(&labels);
	slots_unref(&r.slots);
	profiles_fini(&p);
	return 0;
}

#define NONE ((struct list){ 0 })
#define LIST(...) open_list(&p, __VA_ARGS__, OPEN_END)

static void resource(const char *service)
{
	open_resource(&p, LIST(open_attribute(&p, "service.name", service)));
	open_scope(&p, "");
}

static struct profile *profile_at(const char *type, const char *unit, uint64_t time, int64_t value)
{
	struct profile *f = open_profile(&p, type, unit);
	f->time = time;
	open_value(&p, open_frame(&p, "main"), NONE, value);
	return &p.profiles.at[p.profiles.count - 1];
}

static void regroup(void)
{
	struct error err = { 0 };
	if (!regroup_by_series(&r, &p, &err))
		fail_msg("%s", err.text);
}

static const char *label(uint32_t resource, const char *name)
{
	static char text[100];
	struct list list = p.resources.at[resource].attributes;
	for (uint32_t i = 0; i < list.count; i++) {
		const struct attribute *a = &p.attributes.at[p.indices.at[list.first + i]];
		struct view v = string_view(&p, a->string);
		if (string_is(&p, a->key, name)) {
			snprintf(text, sizeof text, "%.*s", (int)v.len, v.at);
			return text;
		}
	}
	return NULL;
}

/* The Profiles of a resource, as "type:ms:samples". */
static const char *profiles_of(uint32_t resource)
{
	static char text[1000];
	size_t len = 0;
	struct list scopes = p.resources.at[resource].scopes;
	text[0] = '\0';
	for (uint32_t i = 0; i < scopes.count; i++) {
		struct list list = p.scopes.at[scopes.first + i].profiles;
		for (uint32_t k = 0; k < list.count; k++) {
			const struct profile *f = &p.profiles.at[list.first + k];
			struct view type = string_view(&p, f->sample_type.type);
			len += (size_t)snprintf(text + len, sizeof text - len, "%s%.*s:%llu:%u",
						len ? " " : "", (int)type.len, type.at,
						(unsigned long long)(f->time / MS),
						f->samples.count);
		}
	}
	return text;
}

static void each_pprof_becomes_a_resource_by_series_and_time(void **state)
{
	(void)state;
	resource("a");
	profile_at("cpu", "nanoseconds", 9 * MS, 1);
	resource("b");
	profile_at("cpu", "nanoseconds", 5 * MS, 1);
	resource("a");
	profile_at("cpu", "nanoseconds", 7 * MS, 1);
	regroup();
	assert_int_equal(p.resources.count, 3);
	assert_string_equal(label(0, "service_name"), "a");
	assert_string_equal(profiles_of(0), "cpu:7:1");
	assert_string_equal(label(1, "service_name"), "a");
	assert_string_equal(profiles_of(1), "cpu:9:1");
	assert_string_equal(label(2, "service_name"), "b");
	assert_string_equal(profiles_of(2), "cpu:5:1");
}

static void a_scope_with_two_kinds_becomes_two_series(void **state)
{
	(void)state;
	resource("a");
	profile_at("inuse_space", "bytes", 9 * MS, 1);
	profile_at("cpu", "nanoseconds", 9 * MS + 1, 1);
	regroup();
	assert_int_equal(p.resources.count, 2);
	assert_string_equal(label(0, "__name__"), "memory");
	assert_string_equal(label(1, "__name__"), "process_cpu");
}

static void equal_times_of_equal_types_are_merged(void **state)
{
	(void)state;
	resource("a");
	profile_at("cpu", "nanoseconds", 5 * MS, 1)->duration = 2 * MS;
	profile_at("cpu", "nanoseconds", 5 * MS + 10, 2)->duration = 3 * MS;
	regroup();
	assert_string_equal(profiles_of(0), "cpu:5:2");
	const struct profile *f = &p.profiles.at[p.profiles.count - 1];
	assert_true(f->changed);
	assert_int_equal(f->duration, 3 * MS + 10);
	assert_int_equal(r.merged, 1);
}

static void equal_times_of_other_types_and_periods_move(void **state)
{
	(void)state;
	resource("a");
	profile_at("cpu", "nanoseconds", 5 * MS, 1);
	profile_at("cpu", "seconds", 5 * MS + 1, 1);
	profile_at("cpu", "seconds", 5 * MS + 2, 1)->period = 7;
	regroup();
	assert_string_equal(profiles_of(0), "cpu:5:1");
	assert_string_equal(profiles_of(1), "cpu:6:1");
	assert_string_equal(profiles_of(2), "cpu:7:1");
	assert_int_equal(r.moved, 2);
}

static void the_types_of_one_pprof_move_together(void **state)
{
	(void)state;
	uint32_t stack = open_frame(&p, "main");
	for (int i = 0; i < 4; i++) {
		if (i % 2 == 0)
			resource("a");
		struct profile *f = open_profile(&p, i % 2 ? "cpu" : "samples", "count");
		f->time = 5 * MS + (uint64_t)i / 2;
		f->period = i / 2;
		open_value(&p, stack, NONE, 1);
	}
	regroup();
	assert_string_equal(profiles_of(0), "samples:5:1 cpu:5:1");
	assert_string_equal(profiles_of(1), "samples:6:1 cpu:6:1");
}

static void missing_times_are_now_and_missing_types_are_mended(void **state)
{
	(void)state;
	resource("a");
	struct profile *f = profile_at("lock-count", "count", 0, 1);
	f->has_period_type = 0;
	regroup();
	assert_string_equal(profiles_of(0), "lock_count:1000:1");
	const struct profile *corrected = &p.profiles.at[p.profiles.count - 1];
	assert_true(corrected->has_period_type);
	assert_true(string_is(&p, corrected->period_type.type, "lock_count"));
	assert_string_equal(label(0, "__name__"), "lock_count");
}

/* The store accepts no other name here, even if it accepts any label name. */
static void the_name_of_a_series_is_plain_always(void **state)
{
	(void)state;
	rules.utf8 = true;
	resource("a");
	profile_at("my.type", "count", 5 * MS, 1);
	regroup();
	assert_string_equal(profiles_of(0), "my.type:5:1");
	assert_string_equal(label(0, "__name__"), "my_type");
}

static void a_profile_without_type_is_unknown(void **state)
{
	(void)state;
	resource("a");
	profile_at("", "", 5 * MS, 1);
	regroup();
	assert_string_equal(profiles_of(0), "unknown:5:1");
	assert_string_equal(label(0, "__name__"), "unknown");
}

static void services_without_a_name_have_that_of_their_program(void **state)
{
	(void)state;
	open_resource(&p, LIST(open_attribute(&p, "process.executable.name", "nginx")));
	open_scope(&p, "");
	profile_at("cpu", "nanoseconds", 5 * MS, 1);
	open_resource(&p, NONE);
	open_scope(&p, "");
	profile_at("cpu", "nanoseconds", 5 * MS, 1);
	regroup();
	assert_string_equal(label(0, "service_name"), "unknown_service:nginx");
	assert_string_equal(label(1, "service_name"), "unknown_service");
}

static void the_series_of_one_packet_are_bounded(void **state)
{
	(void)state;
	char service[20];
	for (int i = 0; i < 5000; i++) {
		snprintf(service, sizeof service, "s%d", i);
		resource(service);
		profile_at("cpu", "nanoseconds", 5 * MS, 1);
	}
	resource("s7");
	profile_at("cpu", "nanoseconds", 6 * MS, 1);
	resource("another");
	profile_at("samples", "count", 7 * MS, 1);
	regroup();
	assert_int_equal(p.resources.count, 4098);
	assert_string_equal(label(4097, "service_name"), "overflow");
	assert_string_equal(label(4097, "__name__"), "process_cpu");
	assert_string_equal(profiles_of(4097), "cpu:5:904 samples:7:1");
	assert_string_equal(profiles_of(7), "cpu:5:1");
	assert_string_equal(profiles_of(8), "cpu:6:1");
	assert_int_equal(labels.lost[SERIES_TOO_MANY], 905);
}

static void the_requests_of_one_packet_are_bounded(void **state)
{
	(void)state;
	resource("a");
	for (uint64_t i = 0; i < 9000; i++)
		profile_at("cpu", "nanoseconds", (i + 1) * MS, 1);
	resource("b");
	profile_at("cpu", "nanoseconds", 5 * MS, 1);
	regroup();
	assert_int_equal(p.resources.count, 257);
	assert_int_equal(p.resources.at[254].scopes.count, 1);
	assert_int_equal(p.resources.at[255].scopes.count, 9000 - 255);
	assert_string_equal(label(256, "service_name"), "b");
	assert_string_equal(profiles_of(256), "cpu:5:1");
}

static void deep_stacks_keep_the_leaf(void **state)
{
	(void)state;
	r.stack_max = 2;
	resource("a");
	uint32_t leaf = open_location(&p, 0, 1, 0, NONE), root = open_location(&p, 0, 3, 0, NONE);
	uint32_t stack = open_stack(&p, LIST(leaf, open_location(&p, 0, 2, 0, NONE), root));
	open_profile(&p, "cpu", "nanoseconds")->time = 5 * MS;
	open_value(&p, stack, NONE, 1);
	regroup();
	assert_int_equal(p.stacks.at[stack].locations.count, 2);
	assert_int_equal(p.indices.at[p.stacks.at[stack].locations.first], leaf);
	assert_int_equal(r.stacks_cut, 1);
}

static void too_many_samples_become_pprofs_with_all_types(void **state)
{
	(void)state;
	r.samples_max = 2;
	uint32_t stacks[5];
	for (int i = 0; i < 5; i++)
		stacks[i] = open_frame(&p, "main");
	resource("a");
	for (int type = 0; type < 2; type++) {
		open_profile(&p, type ? "cpu" : "samples", "count")->time = 5 * MS;
		for (int i = 0; i < 5; i++)
			open_value(&p, stacks[i], NONE, 1);
	}
	regroup();
	assert_string_equal(profiles_of(0), "samples:5:2 cpu:5:2");
	assert_string_equal(profiles_of(1), "samples:6:2 cpu:6:2");
	assert_string_equal(profiles_of(2), "samples:7:1 cpu:7:1");
}

/* Of seven runs of milliseconds, the table has forgotten the first one. */
static void types_cannot_break_the_list_of_them(void **state)
{
	(void)state;
	static char longest[1026];
	memset(longest, 'x', sizeof longest - 1);
	resource("a");
	struct profile *f = profile_at("a:b-c", "d:e", 5 * MS, 1);
	f->period_type = (struct value_kind){ open_text(&p, "f-g:h"), open_text(&p, ":") };
	f->has_period_type = 1;
	profile_at(longest, "count", 6 * MS, 1);
	regroup();
	const struct profile *corrected = &p.profiles.at[p.profiles.count - 2];
	assert_true(string_is(&p, corrected->sample_type.type, "a_b_c"));
	assert_true(string_is(&p, corrected->sample_type.unit, "d_e"));
	assert_true(string_is(&p, corrected->period_type.type, "f-g_h"));
	assert_true(string_is(&p, corrected->period_type.unit, "_"));
	assert_true(string_is(&p, corrected[1].sample_type.type, "unknown"));
}

static void the_same_series_of_another_request_is_the_same(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 3; i++) {
		char moved[20];
		open_begin(&p, NULL);
		resource("a");
		profile_at("cpu", "nanoseconds", 5 * MS, 1);
		regroup();
		snprintf(moved, sizeof moved, "cpu:%llu:1", (unsigned long long)(5 + i));
		assert_string_equal(profiles_of(0), moved);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_pprof_becomes_a_resource_by_series_and_time),
		TEST(a_scope_with_two_kinds_becomes_two_series),
		TEST(equal_times_of_equal_types_are_merged),
		TEST(equal_times_of_other_types_and_periods_move),
		TEST(the_types_of_one_pprof_move_together),
		TEST(missing_times_are_now_and_missing_types_are_mended),
		TEST(the_name_of_a_series_is_plain_always),
		TEST(a_profile_without_type_is_unknown),
		TEST(services_without_a_name_have_that_of_their_program),
		TEST(the_series_of_one_packet_are_bounded),
		TEST(the_requests_of_one_packet_are_bounded),
		TEST(deep_stacks_keep_the_leaf),
		TEST(too_many_samples_become_pprofs_with_all_types),
		TEST(types_cannot_break_the_list_of_them),
		TEST(the_same_series_of_another_request_is_the_same),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
