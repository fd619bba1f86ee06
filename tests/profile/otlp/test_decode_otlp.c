/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "profile/wire.h"
#include "tests/profile/otlp/otlp_fixture.h"

#include <stdio.h>

static void a_request_becomes_tables(void **state)
{
	(void)state;
	expect_decoded(DICTIONARY
		       "1{1{1{1'service.name' 2{1'shop'}} 2=3} 3'schema-r' 2{1{1'scope' 2'v1' "
		       "3{1'k' 2{2=1}} 4=4} 3'schema-s'  2{1{1=1 2=2} 2{1=1 2[1 2] 3=1 4[5 300] "
		       "5<1000 2000>} 2{1=2 4[1]}    3@1700 4=60 5{1=2 2=1} 6=-9 "
		       "7#000102030405060708090a0b0c0d0e0f 8=2 11[2]}}}");
	const struct resource *r = &tables.resources.at[0];
	const struct scope *s = &tables.scopes.at[0];
	const struct profile *f = &tables.profiles.at[0];
	const struct sample *m = &tables.samples.at[0];
	assert_int_equal(tables.resources.count, 1);
	assert_int_equal(r->dropped_attributes, 3);
	string_must_be(r->schema_url, "schema-r");
	string_must_be(attribute_of(r->attributes, 0)->key, "service.name");
	string_must_be(attribute_of(r->attributes, 0)->string, "shop");
	string_must_be(s->name, "scope");
	string_must_be(s->version, "v1");
	string_must_be(s->schema_url, "schema-s");
	assert_int_equal(attribute_of(s->attributes, 0)->boolean, 1);
	assert_int_equal(s->dropped_attributes, 4);
	string_must_be(f->sample_type.type, "samples");
	string_must_be(f->period_type.unit, "samples");
	assert_true(f->has_sample_type && f->has_period_type);
	assert_true(f->time == 1700 && f->duration == 60 && f->period == -9);
	assert_int_equal(f->profile_id.len, 16);
	assert_int_equal(f->dropped_attributes, 2);
	assert_int_equal(attribute_integer(attribute_of(f->attributes, 0)), -7);
	assert_int_equal(f->samples.count, 2);
	assert_true(m->stack == 1 && m->link == 1 && m->attributes.count == 2);
	expect_bytes(m->values, "\x05\xac\x02", 3);
	assert_int_equal(m->timestamps.len, 16);
	assert_int_equal(tables.samples.at[1].stack, 2);
	assert_int_equal(tables.rejected_profiles, 0);
}

static void a_dictionary_becomes_tables(void **state)
{
	(void)state;
	expect_decoded(DICTIONARY REQUEST(GOOD));
	const struct location *l = &tables.locations.at[1];
	const struct mapping *m = &tables.mappings.at[1];
	const struct function *f = &tables.functions.at[1];
	assert_int_equal(tables.dictionary_strings, 7);
	assert_int_equal(tables.dictionary_attributes, 3);
	assert_true(m->start == 4096 && m->limit == 8192 && m->offset == 512);
	string_must_be(m->filename, "main.c");
	assert_ptr_equal(attribute_of(m->attributes, 0), &tables.attributes.at[1]);
	assert_true(l->mapping == 1 && l->address == 4097 && l->lines.count == 2);
	const struct line *lines = &tables.lines.at[l->lines.first];
	assert_true(lines[0].function == 1 && lines[0].line == 7 && lines[0].column == 8);
	assert_true(lines[1].function == 2 && lines[1].line == 9 && lines[1].column == 0);
	string_must_be(f->name, "main");
	string_must_be(f->filename, "main.c");
	assert_int_equal(f->start_line, 6);
	string_must_be(tables.attributes.at[1].key, "thread.name");
	string_must_be(tables.attributes.at[1].unit, "count");
	const struct stack *s = &tables.stacks.at[1];
	assert_int_equal(s->locations.count, 2);
	assert_int_equal(tables.indices.at[s->locations.first + 1], 2);
	assert_int_equal(tables.links.at[1].span_id[7], 0x17);
}

static void nothing_is_a_valid_request(void **state)
{
	(void)state;
	profiles_fini(&tables); /* no table has any memory yet */
	expect_decoded(REQUEST("2{}"));
	expect_decoded("");
	expect_decoded(DICTIONARY);
	expect_decoded("1{}");
	expect_decoded("1{2{}}");
	assert_int_equal(tables.scopes.count, 1);
	expect_decoded(REQUEST("2{}"));
	assert_int_equal(tables.profiles.count, 1);
	assert_false(tables.profiles.at[0].has_sample_type);
}

static void samples_of_the_ebpf_profiler_decode(void **state)
{
	(void)state;
	expect_decoded("2{" STRINGS
		       "6{2{}} 6{1=5 2{1'w'}} 7{} 2{} 7{1[0]}}" REQUEST("2{2{1=1 2[1] 5<1 2 3>}}"));
	assert_int_equal(tables.samples.at[0].timestamps.len, 24);
	assert_int_equal(tables.samples.at[0].values.len, 0);
}

/* --- entry 0 --- */

static void entry_0_of_each_table_is_the_zero_value(void **state)
{
	(void)state;
	expect_decoded("2{5'SECRET' 5'samples' 1{1=1 4=1 5[1]} 2{1=1 2=7 3{1=1}} 3{1=1} "
		       "4{1#000102030405060708090a0b0c0d0e0f} 6{1=1 2{1'SECRET'}} 6{1=1} 7{1[0 "
		       "0]}}" REQUEST("2{2{4[1]}}"));
	assert_int_equal(string_view(&tables, 0).len, 0);
	assert_true(tables.mappings.at[0].start == 0 && tables.mappings.at[0].filename == 0);
	assert_int_equal(tables.mappings.at[0].attributes.count, 0);
	assert_true(tables.locations.at[0].address == 0 && tables.locations.at[0].lines.count == 0);
	assert_int_equal(tables.functions.at[0].name, 0);
	assert_int_equal(tables.links.at[0].trace_id[1], 0);
	assert_true(tables.attributes.at[0].key == 0 &&
		    tables.attributes.at[0].type == VALUE_EMPTY);
	assert_int_equal(tables.stacks.at[0].locations.count, 0);
	for (uint32_t i = 0; i < tables.strings.count; i++)
		assert_null(memmem(string_view(&tables, i).at, string_view(&tables, i).len,
				   "SECRET", 6));
}

static void entry_0_is_not_even_read(void **state)
{
	(void)state;
	expect_decoded("2{5'\\xff' 3{~08} 6{2{1=1}} 7{1[99]} 4{1'x'}}");
	assert_int_equal(tables.repaired_strings, 0);
}

static void index_0_is_valid_without_a_dictionary(void **state)
{
	(void)state;
	expect_decoded(REQUEST("2{2{1=0 3=0 4[1]}}"));
	assert_int_equal(tables.rejected_profiles, 0);
}

/* --- two dictionaries, order --- */

static void a_second_dictionary_appends(void **state)
{
	(void)state;
	expect_decoded("2{5'' 5'one' 3{} 3{1=1} 6{}} " REQUEST(
		"2{1{1=3 2=1} 2{2[2] 4[1]}}") " 2{5'two' 5'three' 3{1=3} 6{1=2} 6{1=3 2{1'x'}}}");
	assert_int_equal(tables.dictionary_strings, 4);
	assert_int_equal(tables.functions.count, 3);
	string_must_be(tables.functions.at[2].name, "three");
	string_must_be(tables.profiles.at[0].sample_type.type, "three");
	string_must_be(attribute_of(tables.samples.at[0].attributes, 0)->key, "three");
}

static void interleaved_tables_decode(void **state)
{
	(void)state;
	expect_decoded(
		"2{5'' 3{} 5'one' 3{1=1} 5'two' 3{1=2} 2{} 5'three' 2{3{1=3}} 3{1=3}}" REQUEST(
			"2{1{1=3}}"));
	string_must_be(tables.functions.at[1].name, "one");
	string_must_be(tables.functions.at[3].name, "three");
	assert_int_equal(tables.lines.at[0].function, 3);
}

static void too_many_dictionaries_are_refused(void **state)
{
	(void)state;
	expect_refused("2{} 2{} 2{} 2{} 2{} 2{} 2{} 2{} 2{} 2{} 2{} 2{} 2{} 2{} 2{} 2{} 2{}",
		       ERROR_INVALID, "dictionary occurs too often");
}

/* --- references, values --- */

static void references_are_resolved(void **state)
{
	(void)state;
	expect_decoded(DICTIONARY "1{1{1{3=5 2{8=6}} 1{1'inline' 3=0 2{8=0}} 1{1'SECRET' 3=6}"
				  " 1{1'list' 2{6{1{3=5 2{5{1{8=6} 1{1'x'}}}}}}}} 2{" GOOD "}}");
	struct list list = tables.resources.at[0].attributes;
	string_must_be(attribute_of(list, 0)->key, "thread.name");
	string_must_be(attribute_of(list, 0)->string, "worker");
	string_must_be(attribute_of(list, 1)->key, "inline");
	assert_int_equal(attribute_of(list, 1)->type, VALUE_STRING);
	assert_int_equal(attribute_of(list, 1)->string, 0);
	string_must_be(attribute_of(list, 2)->key, "worker");
	const struct attribute *inner =
		&tables.attributes.at[attribute_of(list, 3)->children.first];
	string_must_be(inner->key, "thread.name");
	assert_int_equal(inner->type, VALUE_ARRAY);
	string_must_be(tables.attributes.at[inner->children.first].string, "worker");
}

static void the_last_of_the_oneof_counts(void **state)
{
	(void)state;
	expect_decoded("1{1{1{1'a' 2{1'x' 3=7}} 1{1'b' 2{3=7} 2{1'x'}} 1{1'c' 2{1'x' 2=0}}"
		       " 1{1'd' 2{5{1{3=1}} 5{1{3=2} 1{3=3}}}} 1{1'e' 2{4@0x3ff8000000000000}}"
		       " 1{1'f' 2{7#00ff}} 1{1'g' 2{}} 1{1'h'}}}");
	struct list list = tables.resources.at[0].attributes;
	assert_int_equal(attribute_integer(attribute_of(list, 0)), 7);
	string_must_be(attribute_of(list, 1)->string, "x");
	assert_int_equal(attribute_of(list, 2)->type, VALUE_BOOL);
	const struct attribute *array = attribute_of(list, 3);
	assert_int_equal(array->children.count, 2);
	assert_int_equal(attribute_integer(&tables.attributes.at[array->children.first]), 2);
	assert_true(attribute_number(attribute_of(list, 4)) == 1.5);
	expect_bytes(attribute_of(list, 5)->bytes, "\x00\xff", 2);
	assert_int_equal(attribute_of(list, 6)->type, VALUE_EMPTY);
	assert_int_equal(attribute_of(list, 7)->type, VALUE_EMPTY);
}

static void children_stand_together(void **state)
{
	(void)state;
	expect_decoded("2{5'' 6{} 6{2{5{1{5{1{3=1} 1{3=2}}} 1{6{1{1'k' 2{3=3}} 1{1'l' 2{3=4}}}} "
		       "1{3=5}}}} 6{2{3=6}}} 1{}");
	const struct attribute *at = tables.attributes.at, *top = &at[1];
	assert_int_equal(top->children.count, 3);
	const struct attribute *a = &at[top->children.first];
	assert_true(a[0].type == VALUE_ARRAY && a[1].type == VALUE_KVLIST &&
		    a[2].type == VALUE_INT);
	assert_int_equal(attribute_integer(&at[a[0].children.first + 1]), 2);
	string_must_be(at[a[1].children.first + 1].key, "l");
	assert_int_equal(attribute_integer(&at[2]), 6);
}

static void parts_of_one_owner_stand_together(void **state)
{
	(void)state;
	expect_decoded("2{5'' 6{} 6{2{3=1}} 6{2{3=2}} 7{} 7{1[0]}}1{2{2{2{1=1 2[1] 4[1]} 11[2] "
		       "2{1=1 2[2] 4[2]} 11[1]} 1{3{1'a'}} 2{2{4[3]}} 1{3{1'b'}}}  1{1{1'r1'} "
		       "3{2't' 3'r1' 4'r2' 3'r2'}} 2{2{}} 1{1{1'r2'}}}");
	const struct resource *r = &tables.resources.at[0];
	const struct scope *s = &tables.scopes.at[0];
	const struct profile *f = &tables.profiles.at[0];
	assert_int_equal(r->scopes.count, 2);
	assert_int_equal(s->profiles.count, 2);
	assert_int_equal(f->samples.count, 2);
	assert_int_equal(attribute_integer(attribute_of(f->attributes, 0)), 2);
	assert_int_equal(attribute_integer(attribute_of(f->attributes, 1)), 1);
	assert_int_equal(attribute_integer(attribute_of(tables.samples.at[1].attributes, 0)), 2);
	string_must_be(attribute_of(s->attributes, 1)->key, "b");
	string_must_be(attribute_of(r->attributes, 1)->key, "r2");
	const struct entity *e = &tables.entities.at[r->entities.first];
	assert_true(e->id_keys.count == 2 && e->description_keys.count == 1);
	string_must_be(tables.indices.at[e->id_keys.first + 1], "r2");
	string_must_be(tables.indices.at[e->description_keys.first], "r2");
	string_must_be(e->type, "t");
}

static void a_value_type_that_comes_twice_merges(void **state)
{
	(void)state;
	expect_decoded(DICTIONARY REQUEST("2{1{1=1} 1{2=2}}"));
	string_must_be(tables.profiles.at[0].sample_type.type, "samples");
	string_must_be(tables.profiles.at[0].sample_type.unit, "count");
}

static void nesting_has_a_limit(void **state)
{
	(void)state;
	char text[200], *at = text;
	for (int levels = VALUE_DEPTH_MAX; levels <= VALUE_DEPTH_MAX + 1; levels++) {
		at = stpcpy(text, "1{1{1{2{");
		for (int i = 0; i < levels; i++)
			at = stpcpy(at, "5{1{");
		for (int i = 0; i < levels; i++)
			at = stpcpy(at, "}}");
		stpcpy(at, "}}}}");
		if (levels == VALUE_DEPTH_MAX)
			expect_decoded(text);
		else
			expect_refused(text, ERROR_INVALID, "nested too deep");
	}
}

static void very_deep_nesting_is_refused(void **state)
{
	(void)state;
	/* 10^5 levels, created from the innermost one. */
	static uint8_t deep[1 << 20];
	uint8_t *end = deep + sizeof deep - BYTES_SLACK, *at = end;
	for (int i = 0; i < 100000; i++) {
		uint8_t head[12];
		uint8_t *stop = wire_put_varint(wire_put_tag(head, i % 2 ? 5 : 1, WIRE_LEN),
						(uint64_t)(end - at));
		at -= stop - head;
		memcpy(at, head, (size_t)(stop - head));
	}
	struct bytes request;
	bytes_init(&request, 2 << 20);
	struct view value = { at, (size_t)(end - at) };
	static const uint32_t path[] = { 2, 1, 1, 1 };
	for (size_t i = 0; i < COUNT(path); i++) {
		request.len = 0;
		assert_true(wire_add_len(&request, path[i], value));
		memcpy(deep, request.at, request.len);
		value = (struct view){ deep, request.len };
	}
	assert_false(decode_bytes(bytes_view(&request), 1 << 30));
	assert_non_null(strstr(error.text, "nested too deep"));
	bytes_fini(&request);
}

/* --- packed and unpacked --- */

static void packed_unpacked_and_mixed_are_equal(void **state)
{
	(void)state;
	static const char *const forms[] = {
		"2{2{1=1 2[1 2 1] 3=1 4[1 300 2] 5<7 8>} 11[1 2]}",
		"2{2{1=1 2=1 2=2 2=1 3=1 4=1 4=300 4=2 5@7 5@8} 11=1 11=2}",
		"2{2{4=1 2[1] 5@7 1=1 2=2 4[300] 4[] 5<8> 3=1 2[1] 4=2} 11[1] 11=2}",
		"2{2{4[1] 2[1 2] 5<7> 5[] 1=1 4[300 2] 3=1 2=1 5@8} 11[1] 11[2]}",
	};
	for (size_t i = 0; i < COUNT(forms); i++) {
		char text[1000];
		snprintf(text, sizeof text, "%s 1{2{%s}}", DICTIONARY, forms[i]);
		expect_decoded(text);
		const struct sample *s = &tables.samples.at[0];
		static const uint32_t indices[] = { 1, 2, 1 };
		assert_int_equal(s->attributes.count, 3);
		assert_memory_equal(&tables.indices.at[s->attributes.first], indices,
				    sizeof indices);
		expect_bytes(s->values, "\x01\xac\x02\x02", 4);
		expect_bytes(s->timestamps, "\7\0\0\0\0\0\0\0\x08\0\0\0\0\0\0", 16);
		assert_int_equal(tables.profiles.at[0].attributes.count, 2);
	}
}

static void location_indices_of_every_shape_decode(void **state)
{
	(void)state;
	char text[8000], *at = stpcpy(text, "2{");
	for (int i = 0; i < 400; i++)
		at = stpcpy(at, "2{}");
	stpcpy(at, "7{} 7{1[1 2 3 4 5 6 7 8 300 301 302 303 9 304 10 305 11 12 399]}"
		   "7{1=7 1[8 399] 1=1} 7{1#8180808000}}");
	expect_decoded(text);
	static const uint32_t one[] = { 1,   2,   3, 4,   5,  6,   7,  8,  300, 301,
					302, 303, 9, 304, 10, 305, 11, 12, 399 };
	static const uint32_t two[] = { 7, 8, 399, 1 };
	const struct list *l = &tables.stacks.at[1].locations;
	assert_int_equal(l->count, COUNT(one));
	assert_memory_equal(&tables.indices.at[l->first], one, sizeof one);
	l = &tables.stacks.at[2].locations;
	assert_int_equal(l->count, COUNT(two));
	assert_memory_equal(&tables.indices.at[l->first], two, sizeof two);
	assert_int_equal(tables.indices.at[tables.stacks.at[3].locations.first], 1);
}

/* --- data that is never delivered --- */

static void unknown_fields_and_payloads_are_not_read(void **state)
{
	(void)state;
	expect_decoded("2{" STRINGS
		       "7{} 7{15'SECRET'} 99'SECRET' 6{} 6{1=5 9'SECRET' 2{1'x' 15'SECRET'}}"
		       " 3{} 3{1=1 77@5} 2{} 2{9'SECRET' 3{9%7}} 4{} 4{9'SECRET'} 1{} "
		       "1{9'SECRET'}}1{9'SECRET' 1{9'SECRET' 3{9'SECRET'}} 2{9'SECRET' "
		       "1{9'SECRET'} 2{9'SECRET' 10'SECRET' 99'SECRET' 1{9'SECRET'} 2{1=1 4[1] "
		       "20'SECRET'}}}} 9'SECRET'");
	for (uint32_t i = 0; i < tables.strings.count; i++)
		assert_null(memmem(string_view(&tables, i).at, string_view(&tables, i).len,
				   "SECRET", 6));
	assert_int_equal(tables.added.len, 0);
}

/* --- UTF-8 --- */

static void invalid_utf8_is_repaired_and_counted(void **state)
{
	(void)state;
	expect_decoded("2{5'' 5'a\\xff' 5'ok' 3{} 3{1=1} 6{} 6{1=1 2{1'v'}} 6{1=2 "
		       "2{1'\\xc3'}}}1{1{1{1'\\x80k' 2{6{1{1'\\xed\\xa0\\x80'}}}} 1{3=1}} "
		       "2{1{1'\\xfe'} 2{2{4[1]}}}}");
	string_must_be(tables.functions.at[1].name, "a\xef\xbf\xbd");
	assert_true(tables.attributes.at[1].bad_key);
	assert_false(tables.attributes.at[2].bad_key);
	string_must_be(tables.attributes.at[2].string, "\xef\xbf\xbd");
	struct list list = tables.resources.at[0].attributes;
	assert_true(attribute_of(list, 0)->bad_key);
	string_must_be(attribute_of(list, 0)->key, "\xef\xbf\xbdk");
	assert_true(tables.attributes.at[attribute_of(list, 0)->children.first].bad_key);
	assert_true(attribute_of(list, 1)->bad_key);
	assert_int_equal(tables.repaired_strings, 5);
	assert_int_equal(tables.rejected_profiles, 0);
}

/* --- limits --- */

static void tables_have_a_cap(void **state)
{
	(void)state;
	struct bytes hostile;
	bytes_init(&hostile, 4 << 20);
	assert_true(bytes_reserve(&hostile, 2 << 20));
	static const uint8_t entry[] = { 7 << 3 | WIRE_LEN, 0 };
	for (int i = 0; i < 500000; i++)
		assert_true(bytes_add(&hostile, entry, sizeof entry));
	struct bytes request;
	bytes_init(&request, 4 << 20);
	assert_true(wire_add_len(&request, 2, bytes_view(&hostile)));
	assert_false(decode_bytes(bytes_view(&request), 1 << 20));
	assert_int_equal(error.kind, ERROR_TOO_LARGE);
	assert_true(tables.over_cap);
	assert_true(decode_bytes(bytes_view(&request), 64 << 20));
	/* The capacity is sufficient now, but the cap still applies. */
	assert_false(decode_bytes(bytes_view(&request), 1 << 20));
	assert_int_equal(error.kind, ERROR_TOO_LARGE);
	bytes_fini(&hostile);
	bytes_fini(&request);
}

static void repaired_text_counts_against_the_cap(void **state)
{
	(void)state;
	assert_true(decode("2{5'' 5'\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff'}"));
	size_t needed = profiles_used(&tables);
	assert_true(decode_bytes(bytes_view(&input), needed));
	assert_false(decode_bytes(bytes_view(&input), needed - 1));
	assert_int_equal(error.kind, ERROR_TOO_LARGE);
}

/* The fast readers look at the tags after a message that ends the input. They must neither use nor
 * pass the slack, regardless of its contents. */
static void nothing_behind_the_input_is_read_as_a_field(void **state)
{
	static const char *const lasts[] = {
		REQUEST("2{2{4[5]}}") "2{" STRINGS "2{} 2{}}",
		REQUEST("2{2{4[5]}}") "2{" STRINGS "2{} 2{3{}}}",
		DICTIONARY REQUEST("2{2{4[5]}}"),
	};
	(void)state;
	for (size_t i = 0; i < COUNT(lasts); i++) {
		for (uint8_t tag = 1; tag < 6 * 8; tag++) {
			assert_true(decode(lasts[i]));
			struct location location = tables.locations.at[1];
			uint32_t lines = tables.lines.count, indices = tables.indices.count;
			uint8_t *exact = memory_resize(NULL, input.len + BYTES_SLACK);
			memcpy(exact, input.at, input.len);
			for (size_t n = 0; n < BYTES_SLACK; n++)
				exact[input.len + n] = n % 11 == 0   ? tag + n / 11 * 8
						       : n % 11 < 10 ? 0x80
								     : 1;
			assert_true(decode_bytes((struct view){ exact, input.len }, 1 << 30));
			assert_int_equal(tables.locations.at[1].address, location.address);
			assert_int_equal(tables.locations.at[1].mapping, location.mapping);
			assert_int_equal(tables.lines.count, lines);
			assert_int_equal(tables.indices.count, indices);
			memory_free(exact);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_becomes_tables),
		cmocka_unit_test(a_dictionary_becomes_tables),
		cmocka_unit_test(nothing_is_a_valid_request),
		cmocka_unit_test(samples_of_the_ebpf_profiler_decode),
		cmocka_unit_test(entry_0_of_each_table_is_the_zero_value),
		cmocka_unit_test(entry_0_is_not_even_read),
		cmocka_unit_test(index_0_is_valid_without_a_dictionary),
		cmocka_unit_test(a_second_dictionary_appends),
		cmocka_unit_test(interleaved_tables_decode),
		cmocka_unit_test(too_many_dictionaries_are_refused),
		cmocka_unit_test(references_are_resolved),
		cmocka_unit_test(the_last_of_the_oneof_counts),
		cmocka_unit_test(children_stand_together),
		cmocka_unit_test(parts_of_one_owner_stand_together),
		cmocka_unit_test(a_value_type_that_comes_twice_merges),
		cmocka_unit_test(nesting_has_a_limit),
		cmocka_unit_test(very_deep_nesting_is_refused),
		cmocka_unit_test(packed_unpacked_and_mixed_are_equal),
		cmocka_unit_test(location_indices_of_every_shape_decode),
		cmocka_unit_test(unknown_fields_and_payloads_are_not_read),
		cmocka_unit_test(invalid_utf8_is_repaired_and_counted),
		cmocka_unit_test(nothing_behind_the_input_is_read_as_a_field),
		cmocka_unit_test(tables_have_a_cap),
		cmocka_unit_test(repaired_text_counts_against_the_cap),
	};
	return cmocka_run_group_tests(tests, NULL, fixture_end);
}
