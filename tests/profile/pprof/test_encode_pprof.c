/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/profile/pprof/pprof_body.h"

static void decoded_pair(void)
{
	begin();
	location(1, 1, 1, 0);
	SAMPLE({ KEY, VALUE });
	SAMPLE({ KEY, VALUE });
	number(PPROF_TIME, 1000);
	must_decode();
}

static void aligned_profiles_become_one_pprof(void **state)
{
	(void)state;
	decoded_pair();
	encode();
	assert_int_equal(out.count, 1);
	assert_int_equal(out.samples, 4);
}

static void profiles_that_differ_become_pprofs_of_their_own(void **state)
{
	(void)state;
	for (int i = 0; i < 8; i++) {
		decoded_pair();
		struct profile *second = &p.profiles.at[1];
		struct sample *s = &p.samples.at[second->samples.first];
		second->time += i == 0;
		second->duration += i == 1;
		second->period += i == 2;
		second->has_period_type = i == 3;
		second->samples.count -= i == 4;
		s->stack -= i == 5;
		s->attributes.count -= i == 6;
		second->sample_type = p.profiles.at[i == 7 ? 0 : 1].sample_type;
		encode();
		assert_int_equal(out.count, 2);
	}
}

static void repeated_types_come_back_as_they_were(void **state)
{
	(void)state;
	begin();
	MESSAGE(PPROF_SAMPLE_TYPE, 1, SAMPLES, 2, COUNT);
	location(1, 1, 1, 0);
	sample(1, 3, (uint64_t[]){ 7, 8, 9 }, 0, NULL);
	must_decode();
	again();
	assert_int_equal(out.count, 1);
	assert_int_equal(p.profiles.count, 3);
	assert_int_equal(value_of(sample_of(2, 0)), 9);
}

static void missing_flags_are_computed_from_lines(void **state)
{
	(void)state;
	decoded_pair();
	p.mappings.at[1].attributes.count = 0;
	again();
	assert_int_equal(mapping_attribute("pprof.mapping.has_functions")->boolean, 1);
	assert_int_equal(mapping_attribute("pprof.mapping.has_line_numbers")->boolean, 1);
	assert_null(mapping_attribute("pprof.mapping.has_filenames"));
	assert_null(mapping_attribute("pprof.mapping.has_inline_frames"));
}

static void flags_that_a_sender_left_off_stay_off(void **state)
{
	(void)state;
	begin();
	MESSAGE(PPROF_MAPPING, 1, 2, 2, 1);
	location(1, 2, 1, 0);
	SAMPLE({ KEY, VALUE });
	must_decode();
	again();
	assert_int_equal(p.mappings.at[1].start, 1);
	assert_int_equal(mapping_attribute("pprof.mapping.has_functions")->boolean, 0);
}

static void unreferenced_entries_do_not_leave(void **state)
{
	(void)state;
	decoded_pair();
	again();
	for (uint32_t i = 0; i < p.strings.count; i++)
		assert_false(string_is(&p, i, "a comment") || string_is(&p, i, "fedcba9876543210"));
}

static struct span packed(const void *bytes, size_t len)
{
	return profiles_bytes_new(&p, bytes, len);
}

static void several_values_are_added(void **state)
{
	(void)state;
	decoded_pair();
	p.samples.at[0].values = packed("\x05\x06\xac\x02", 4);
	again();
	assert_int_equal(value_of(sample_of(0, 0)), 311);
}

#define MOST "\xff\xff\xff\xff\xff\xff\xff\xff\x7f"
#define LEAST "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"
#define MINUS_ONE "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"

static void a_sum_that_does_not_fit_is_the_nearest_that_does(void **state)
{
	(void)state;
	static const struct {
		const char *values;
		size_t len;
		int64_t sum;
	} rows[] = {
		{ MOST MOST, 18, INT64_MAX },
		{ LEAST MINUS_ONE, 20, INT64_MIN },
		{ MOST "\x02" MINUS_ONE MINUS_ONE, 30, INT64_MAX },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		decoded_pair();
		p.samples.at[0].values = packed(rows[i].values, rows[i].len);
		again();
		assert_int_equal(value_of(sample_of(0, 0)), rows[i].sum);
	}
}

static void timestamps_without_values_count(void **state)
{
	(void)state;
	decoded_pair();
	p.samples.at[0].values.len = 0;
	p.samples.at[0].timestamps = packed("\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0", 24);
	again();
	assert_int_equal(value_of(sample_of(0, 0)), 3);
}

/* A value of a kind that labels do not support, in p's tables. */
static struct attribute other_value(int kind)
{
	struct attribute number = { .type = VALUE_DOUBLE };
	struct attribute truth = { .key = SAMPLES, .type = VALUE_BOOL, .boolean = 1 };
	struct attribute nothing = { .key = COUNT, .type = VALUE_EMPTY };
	attribute_set_number(&number, 0.1);
	switch (kind) {
	case 0:
		return truth;
	case 1:
		return nothing;
	case 2:
		return number;
	case 3:
		return (struct attribute){ .type = VALUE_BYTES, .bytes = packed("\xff\1\2\3", 4) };
	default:
		number.children.first = profiles_attribute_new(&p, truth);
		profiles_attribute_new(&p, nothing);
		return (struct attribute){ .type = VALUE_KVLIST,
					   .children = { number.children.first, 2 } };
	}
}

static void other_values_become_text(void **state)
{
	(void)state;
	static const char *const expected[] = { "true", "", "0.1",
						"/wECAw==", "{\"samples\":true,\"count\":null}" };
	for (int i = 0; i < 5; i++) {
		decoded_pair();
		struct attribute value = other_value(i);
		value.key = KEY;
		p.indices.at[sample_of(0, 0)->attributes.first] = profiles_attribute_new(&p, value);
		again();
		const struct attribute *a = attribute_at(sample_of(0, 0)->attributes, 0);
		assert_int_equal(a->type, VALUE_STRING);
		assert_text(a->string, expected[i]);
	}
}

static void both_forms_of_comments_come_back(void **state)
{
	(void)state;
	decoded_pair();
	uint32_t key = profiles_text_new(&p, "pprof.profile.comment.0", 23);
	uint32_t value = profiles_text_new(&p, "kept", 4);
	uint32_t comment = profiles_attribute_new(&p, (struct attribute){ .key = key,
									  .type = VALUE_STRING,
									  .string = value });
	for (int i = 0; i < 2; i++) {
		struct list list = profiles_list_copy(&p, p.profiles.at[i].attributes, 1);
		p.indices.at[list.first + list.count++] = comment;
		p.profiles.at[i].attributes = list;
	}
	again();
	const struct attribute *array = attribute_at(p.profiles.at[0].attributes, 0);
	assert_text(array->key, "pprof.profile.comment");
	assert_text(p.attributes.at[array->children.first].string, "kept");
}

/* One attribute with many values, on many samples, must not become an unbounded body. */
static void blown_up_labels_are_refused(void **state)
{
	(void)state;
	begin();
	location(1, 1, 1, 0);
	for (int i = 0; i < 3000; i++)
		SAMPLE({ KEY, VALUE });
	must_decode();
	uint32_t first = p.attributes.count;
	for (int i = 0; i < 5000; i++)
		profiles_attribute_new(&p, (struct attribute){ .type = VALUE_INT });
	struct attribute array = { .type = VALUE_ARRAY, .children = { first, 5000 } };
	uint32_t big = profiles_attribute_new(&p, array);
	for (uint32_t i = 0; i < p.samples.count; i++)
		p.indices.at[p.samples.at[i].attributes.first] = big;
	assert_false(encode_pprof(&p, false, keep, NULL, &err));
	assert_int_equal(err.kind, ERROR_TOO_LARGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aligned_profiles_become_one_pprof),
		cmocka_unit_test(profiles_that_differ_become_pprofs_of_their_own),
		cmocka_unit_test(repeated_types_come_back_as_they_were),
		cmocka_unit_test(missing_flags_are_computed_from_lines),
		cmocka_unit_test(flags_that_a_sender_left_off_stay_off),
		cmocka_unit_test(unreferenced_entries_do_not_leave),
		cmocka_unit_test(several_values_are_added),
		cmocka_unit_test(a_sum_that_does_not_fit_is_the_nearest_that_does),
		cmocka_unit_test(timestamps_without_values_count),
		cmocka_unit_test(other_values_become_text),
		cmocka_unit_test(both_forms_of_comments_come_back),
		cmocka_unit_test(blown_up_labels_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, forget);
}
