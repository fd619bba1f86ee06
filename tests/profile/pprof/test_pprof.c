/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/profile/pprof/pprof_body.h"

static void each_sample_type_becomes_a_profile(void **state)
{
	(void)state;
	begin();
	location(1, 1, 1, 0);
	SAMPLE({ KEY, VALUE });
	number(PPROF_TIME, 1111111111111111111);
	number(PPROF_DURATION, 10);
	number(PPROF_PERIOD, (uint64_t)-5);
	must_decode();
	assert_int_equal(p.resources.count, 1);
	assert_int_equal(p.scopes.count, 1);
	assert_int_equal(p.profiles.count, 2);
	assert_text(p.profiles.at[0].sample_type.type, "samples");
	assert_text(p.profiles.at[1].sample_type.unit, "nanoseconds");
	assert_int_equal(value_of(sample_of(0, 0)), 3);
	assert_int_equal(value_of(sample_of(1, 0)), 30);
	assert_int_equal(sample_of(0, 0)->stack, sample_of(1, 0)->stack);
	assert_true(p.profiles.at[1].time == 1111111111111111111);
	assert_true(p.profiles.at[1].period == -5);
	assert_false(p.profiles.at[0].has_period_type);
	assert_int_equal(p.scopes.at[0].attributes.count, 0);
}

/* Lists are shrunk in place, so two Profiles must never share a list. */
static void each_profile_owns_its_lists(void **state)
{
	(void)state;
	begin();
	location(1, 1, 1, 0);
	SAMPLE({ KEY, VALUE });
	SAMPLE({ KEY, VALUE });
	number(PPROF_COMMENT, COMMENT);
	must_decode();
	uint32_t seen[4] = { sample_of(0, 0)->attributes.first, sample_of(0, 1)->attributes.first,
			     sample_of(1, 0)->attributes.first, sample_of(1, 1)->attributes.first };
	for (int i = 0; i < 4; i++)
		for (int k = 0; k < i; k++)
			assert_int_not_equal(seen[i], seen[k]);
	assert_int_equal(p.indices.at[seen[0]], p.indices.at[seen[3]]);
	assert_int_not_equal(p.profiles.at[0].attributes.first, p.profiles.at[1].attributes.first);
}

static void explicit_default_comes_first_and_the_order_is_kept(void **state)
{
	(void)state;
	begin();
	location(1, 1, 1, 0);
	SAMPLE({ KEY, VALUE });
	number(PPROF_DEFAULT_SAMPLE_TYPE, CPU);
	must_decode();
	assert_text(p.profiles.at[0].sample_type.type, "cpu");
	assert_int_equal(value_of(sample_of(0, 0)), 30);
	struct list says = p.scopes.at[0].attributes;
	assert_text(attribute_at(says, 0)->key, "pprof.scope.default_sample_type");
	assert_text(attribute_at(says, 0)->string, "cpu");
	const struct attribute *order = attribute_at(says, 1);
	assert_text(order->key, "pprof.scope.sample_type_order");
	assert_int_equal(attribute_integer(&p.attributes.at[order->children.first]), 1);
	assert_int_equal(attribute_integer(&p.attributes.at[order->children.first + 1]), 0);
	again();
	assert_text(p.profiles.at[0].sample_type.type, "cpu");
}

static void labels_become_attributes(void **state)
{
	(void)state;
	begin();
	location(1, 1, 1, 0);
	SAMPLE({ KEY, VALUE }, { CPU, 0, (uint64_t)-9, NANOSECONDS }, { SAMPLES });
	must_decode();
	struct list list = sample_of(1, 0)->attributes;
	assert_int_equal(list.count, 3);
	assert_int_equal(attribute_at(list, 0)->type, VALUE_STRING);
	assert_text(attribute_at(list, 0)->string, "value");
	assert_int_equal(attribute_at(list, 1)->type, VALUE_INT);
	assert_int_equal(attribute_integer(attribute_at(list, 1)), -9);
	assert_text(attribute_at(list, 1)->unit, "nanoseconds");
	assert_int_equal(attribute_at(list, 2)->type, VALUE_INT);
	assert_int_equal(attribute_integer(attribute_at(list, 2)), 0);
}

static void labels_of_one_key_become_an_array_in_order(void **state)
{
	(void)state;
	begin();
	location(1, 1, 1, 0);
	SAMPLE({ KEY, VALUE }, { CPU, MAIN }, { KEY, 0, 5, COUNT }, { KEY, 0, 6, NANOSECONDS });
	must_decode();
	struct list list = sample_of(0, 0)->attributes;
	assert_int_equal(list.count, 2);
	const struct attribute *array = attribute_at(list, 0);
	assert_int_equal(array->type, VALUE_ARRAY);
	assert_int_equal(array->children.count, 3);
	assert_text(array->unit, "count");
	const struct attribute *element = &p.attributes.at[array->children.first];
	assert_text(element[0].string, "value");
	assert_int_equal(attribute_integer(&element[1]), 5);
	assert_int_equal(element[2].type, VALUE_ARRAY); /* [6, "nanoseconds"] */
	again();
	array = attribute_at(sample_of(0, 0)->attributes, 0);
	assert_int_equal(array->children.count, 3);
	assert_int_equal(p.attributes.at[array->children.first + 2].type, VALUE_ARRAY);
}

static void equal_labels_share_their_attribute(void **state)
{
	(void)state;
	begin();
	location(1, 1, 1, 0);
	SAMPLE({ KEY, VALUE }, { CPU, 0, 1 });
	SAMPLE({ KEY, VALUE }, { CPU, 0, 2 });
	must_decode();
	assert_ptr_equal(attribute_at(sample_of(0, 0)->attributes, 0),
			 attribute_at(sample_of(1, 1)->attributes, 0));
	assert_ptr_not_equal(attribute_at(sample_of(0, 0)->attributes, 1),
			     attribute_at(sample_of(0, 1)->attributes, 1));
}

static void both_ids_become_a_link(void **state)
{
	(void)state;
	begin();
	location(1, 1, 1, 0);
	SAMPLE({ SPAN, SPAN_ID }, { KEY, VALUE }, { TRACE, TRACE_ID });
	must_decode();
	const struct sample *s = sample_of(0, 0);
	assert_int_equal(s->attributes.count, 1);
	assert_int_equal(p.links.at[s->link].trace_id[0], 0x01);
	assert_int_equal(p.links.at[s->link].span_id[7], 0x10);
	again();
	assert_int_equal(p.links.count, 2);
	assert_int_equal(p.links.at[sample_of(0, 0)->link].span_id[0], 0xfe);
}

static void ids_that_could_not_be_restored_stay_attributes(void **state)
{
	(void)state;
	static const struct label cases[][3] = {
		{ { TRACE, TRACE_ID }, { KEY, VALUE }, { KEY, VALUE } },          /* lone */
		{ { SPAN, SPAN_ID }, { KEY, VALUE }, { KEY, VALUE } },            /* lone */
		{ { TRACE, TRACE_ID }, { SPAN, UPPER_SPAN_ID }, { KEY, VALUE } }, /* upper case */
		{ { TRACE, SPAN_ID }, { SPAN, TRACE_ID }, { KEY, VALUE } },       /* lengths */
		{ { TRACE, TRACE_ID }, { SPAN, SPAN_ID }, { SPAN, SPAN_ID } },    /* twice */
		{ { TRACE, 0, 5 }, { SPAN, SPAN_ID }, { KEY, VALUE } },           /* a number */
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin();
		location(1, 1, 1, 0);
		sample(1, 2, (uint64_t[]){ 1, 2 }, 3, cases[i]);
		must_decode();
		assert_int_equal(sample_of(0, 0)->link, 0);
		assert_int_equal(p.links.count, 1);
		assert_true(sample_of(0, 0)->attributes.count >= 2);
	}
}

static void build_ids_go_where_their_form_belongs(void **state)
{
	(void)state;
	begin();
	MESSAGE(PPROF_MAPPING, 1, 2, 6, GO_BUILD_ID);
	must_decode();
	assert_text(mapping_attribute("process.executable.build_id.gnu")->string, "a1b2");
	struct list list = p.mappings.at[2].attributes;
	assert_text(attribute_at(list, 0)->key, "process.executable.build_id.go");
}

static void true_flags_become_attributes(void **state)
{
	(void)state;
	begin();
	location(1, 1, 1, 1);
	must_decode();
	assert_int_equal(mapping_attribute("pprof.mapping.has_functions")->boolean, 1);
	assert_null(mapping_attribute("pprof.mapping.has_filenames"));
	struct list list = p.locations.at[1].attributes;
	assert_text(attribute_at(list, 0)->key, "pprof.location.is_folded");
}

static void entry_0_of_the_strings_is_replaced(void **state)
{
	(void)state;
	bytes_fini(&body);
	bytes_init(&body, CAP);
	text("SECRET");
	text("cpu");
	MESSAGE(PPROF_SAMPLE_TYPE, 1, 1, 2, 0);
	must_decode();
	assert_text(p.profiles.at[0].sample_type.unit, "");
	assert_text(p.profiles.at[0].sample_type.type, "cpu");
}

static void invalid_utf8_is_repaired_and_counted(void **state)
{
	(void)state;
	begin();
	text("a\xff"
	     "b");
	location(1, 1, 1, 0);
	SAMPLE({ COMMENT + 1, COMMENT + 1 });
	must_decode();
	const struct attribute *a = attribute_at(sample_of(0, 0)->attributes, 0);
	assert_text(a->string, "a\xef\xbf\xbd"
			       "b");
	assert_int_equal(a->bad_key, 1);
	assert_int_equal(p.repaired_strings, 1);
}

static void ids_may_be_sparse(void **state)
{
	(void)state;
	begin();
	MESSAGE(PPROF_FUNCTION, 1, UINT64_MAX, 2, KEY);
	MESSAGE(PPROF_MAPPING, 1, 1000, 2, 5);
	location(77, 1000, UINT64_MAX, 0);
	sample(77, 2, (uint64_t[]){ 1, 2 }, 0, NULL);
	must_decode();
	const struct stack *stack = &p.stacks.at[sample_of(0, 0)->stack];
	const struct location *l = &p.locations.at[p.indices.at[stack->locations.first]];
	assert_int_equal(p.mappings.at[l->mapping].start, 5);
	assert_text(p.functions.at[p.lines.at[l->lines.first].function].name, "key");
}

/* .NET's exporters omit the IDs of functions and use their positions. */
static void ids_may_be_absent(void **state)
{
	(void)state;
	begin();
	MESSAGE(PPROF_FUNCTION, 2, KEY);
	location(1, 1, 2, 0);
	must_decode();
	assert_text(p.functions.at[p.lines.at[0].function].name, "key");
}

static void an_empty_stack_is_stack_0(void **state)
{
	(void)state;
	begin();
	struct bytes message;
	bytes_init(&message, 64);
	wire_add_len(&message, PPROF_SAMPLE_VALUES, view_of("\x01\x02"));
	wire_add_len(&body, PPROF_SAMPLE, bytes_view(&message));
	bytes_fini(&message);
	must_decode();
	assert_int_equal(sample_of(0, 0)->stack, 0);
	assert_int_equal(value_of(sample_of(1, 0)), 2);
}

static void attributes_of_the_request_become_the_resource(void **state)
{
	(void)state;
	static const struct metadatum attributes[] = { { "service.name", "checkout" },
						       { "region", "\xff" },
						       { "service.name", "second" },
						       { "empty", "" },
						       { NULL, NULL } };
	begin();
	bytes_reserve(&body, 1);
	profiles_reset(&p, NULL, bytes_view(&body), CAP);
	assert_true(decode_pprof(&p, p.input, attributes, &err));
	struct list list = p.resources.at[0].attributes;
	assert_int_equal(list.count, 3);
	assert_text(attribute_at(list, 0)->string, "checkout");
	assert_text(attribute_at(list, 1)->string, "\xef\xbf\xbd");
	assert_text(attribute_at(list, 2)->string, "");
}

/* What is refused */

static void bad_string(void)
{
	MESSAGE(PPROF_FUNCTION, 1, 9, 3, 99);
}
static void negative_string(void)
{
	MESSAGE(PPROF_FUNCTION, 1, 9, 4, UINT64_MAX);
}
static void bad_type(void)
{
	MESSAGE(PPROF_SAMPLE_TYPE, 1, 99);
}
static void bad_period(void)
{
	MESSAGE(PPROF_PERIOD_TYPE, 2, 99);
}
static void bad_build_id(void)
{
	MESSAGE(PPROF_MAPPING, 1, 9, 6, 99);
}
static void bad_comment(void)
{
	number(PPROF_COMMENT, 99);
}
static void bad_default(void)
{
	number(PPROF_DEFAULT_SAMPLE_TYPE, 99);
}
static void bad_doc_url(void)
{
	number(PPROF_DOC_URL, 99);
}
static void bad_mapping(void)
{
	location(1, 9, 1, 0);
}
static void bad_function(void)
{
	location(1, 1, 9, 0);
}
static void same_function(void)
{
	MESSAGE(PPROF_FUNCTION, 1, 1);
}
static void same_mapping(void)
{
	MESSAGE(PPROF_MAPPING, 1, 1);
}
static void same_location(void)
{
	location(5, 1, 1, 0);
	location(5, 1, 1, 0);
}
static void bad_location(void)
{
	SAMPLE({ KEY, VALUE });
}
static void few_values(void)
{
	location(1, 1, 1, 0);
	sample(1, 1, (uint64_t[]){ 1 }, 0, NULL);
}
static void many_values(void)
{
	location(1, 1, 1, 0);
	sample(1, 3, (uint64_t[]){ 1, 2, 3 }, 0, NULL);
}
static void bad_key(void)
{
	location(1, 1, 1, 0);
	SAMPLE({ KEY, VALUE }, { 99, VALUE });
}
static void bad_value(void)
{
	location(1, 1, 1, 0);
	SAMPLE({ KEY, 99 });
}
static void bad_unit(void)
{
	location(1, 1, 1, 0);
	SAMPLE({ KEY, 0, 1, 99 });
}
static void text_and_number(void)
{
	location(1, 1, 1, 0);
	SAMPLE({ KEY, VALUE, 1 });
}
static void wrong_wire_type(void)
{
	number(PPROF_SAMPLE, 1);
}
static void truncated(void)
{
	bytes_add(&body,
		  "\x32\x05"
		  "ab",
		  4);
}
static void no_types(void)
{
	bytes_fini(&body);
	bytes_init(&body, CAP);
	text("");
}

static void refusals_name_the_field(void **state)
{
	(void)state;
	static const struct {
		void (*add)(void);
		const char *expected;
	} cases[] = {
		{ bad_string, "pprof: function 1: system_name: no such string" },
		{ negative_string, "pprof: function 1: filename: no such string" },
		{ bad_type, "pprof: sample_type 2: type: no such string" },
		{ bad_period, "pprof: period_type 0: unit: no such string" },
		{ bad_build_id, "pprof: mapping 1: build_id: no such string" },
		{ bad_comment, "pprof: comment 0: index: no such string" },
		{ bad_default, "pprof: default_sample_type: no such string" },
		{ bad_doc_url, "pprof: doc_url: no such string" },
		{ bad_mapping, "pprof: location 0: mapping_id: no such mapping" },
		{ bad_function, "pprof: location 0: line: function_id: no such function" },
		{ same_function, "pprof: function 1: id: duplicate" },
		{ same_mapping, "pprof: mapping 1: id: duplicate" },
		{ same_location, "pprof: location 1: id: duplicate" },
		{ bad_location, "pprof: sample 0: location_id: no such location" },
		{ few_values, "pprof: sample 0: value: fewer values than sample types" },
		{ many_values, "pprof: sample 0: value: more values than sample types" },
		{ bad_key, "pprof: sample 0: label 1: key: no such string" },
		{ bad_value, "pprof: sample 0: label 0: str: no such string" },
		{ bad_unit, "pprof: sample 0: label 0: num_unit: no such string" },
		{ text_and_number, "pprof: sample 0: label 0: has both a string and a number" },
		{ no_types, "pprof: sample_type: missing" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin();
		cases[i].add();
		assert_false(decode());
		assert_string_equal(err.text, cases[i].expected);
		assert_int_equal(err.kind, ERROR_INVALID);
	}
}

static void malformed_bodies_are_refused(void **state)
{
	(void)state;
	static const struct {
		void (*add)(void);
		const char *expected;
	} cases[] = {
		{ wrong_wire_type,
		  "pprof: sample: contains a known field with the wrong wire type (at field 2)" },
		{ truncated, "pprof: string_table: is truncated (at field 6)" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin();
		cases[i].add();
		assert_false(decode());
		assert_string_equal(err.text, cases[i].expected);
		assert_int_equal(err.kind, ERROR_INVALID);
	}
}

static void every_truncation_is_refused_or_whole(void **state)
{
	(void)state;
	begin();
	location(1, 1, 1, 1);
	SAMPLE({ SPAN, SPAN_ID }, { KEY, VALUE }, { TRACE, TRACE_ID }, { KEY, 0, 1, COUNT });
	number(PPROF_COMMENT, COMMENT);
	for (size_t whole = body.len; body.len > 0; body.len--) {
		bool ok = decode();
		assert_true(ok || err.kind == ERROR_INVALID);
		assert_true(ok || body.len < whole);
	}
}

static void tables_over_the_cap_are_refused(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 20000; i++)
		MESSAGE(PPROF_FUNCTION, 2, MAIN);
	bytes_reserve(&body, 1);
	profiles_fini(&p);
	profiles_reset(&p, NULL, bytes_view(&body), 100000);
	assert_false(decode_pprof(&p, p.input, NULL, &err));
	assert_int_equal(err.kind, ERROR_TOO_LARGE);
}

/* A small body could have a very large product of samples and sample types. */
static void sample_types_are_bounded(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < PPROF_TYPES_MAX; i++)
		MESSAGE(PPROF_SAMPLE_TYPE, 1, CPU);
	assert_false(decode());
	assert_string_equal(err.text, "pprof: sample_type: more than 256 entries");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_sample_type_becomes_a_profile),
		cmocka_unit_test(each_profile_owns_its_lists),
		cmocka_unit_test(explicit_default_comes_first_and_the_order_is_kept),
		cmocka_unit_test(labels_become_attributes),
		cmocka_unit_test(labels_of_one_key_become_an_array_in_order),
		cmocka_unit_test(equal_labels_share_their_attribute),
		cmocka_unit_test(both_ids_become_a_link),
		cmocka_unit_test(ids_that_could_not_be_restored_stay_attributes),
		cmocka_unit_test(build_ids_go_where_their_form_belongs),
		cmocka_unit_test(true_flags_become_attributes),
		cmocka_unit_test(entry_0_of_the_strings_is_replaced),
		cmocka_unit_test(invalid_utf8_is_repaired_and_counted),
		cmocka_unit_test(ids_may_be_sparse),
		cmocka_unit_test(ids_may_be_absent),
		cmocka_unit_test(an_empty_stack_is_stack_0),
		cmocka_unit_test(attributes_of_the_request_become_the_resource),
		cmocka_unit_test(refusals_name_the_field),
		cmocka_unit_test(malformed_bodies_are_refused),
		cmocka_unit_test(every_truncation_is_refused_or_whole),
		cmocka_unit_test(tables_over_the_cap_are_refused),
		cmocka_unit_test(sample_types_are_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, forget);
}
