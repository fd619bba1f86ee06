/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "profile/stores/series.h"
#include "tests/support/open.h"

static struct profiles p;
static struct series_rules rules;
static struct series_labels s;

static int setup(void **state)
{
	(void)state;
	rules = (struct series_rules){ .names_max = 30, .name_max = 1024, .value_max = 2048 };
	open_begin(&p, NULL);
	series_init(&s, &rules);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	series_fini(&s);
	profiles_fini(&p);
	return 0;
}

#define LIST(...) open_list(&p, __VA_ARGS__, OPEN_END)
#define TEXT(key, value) open_attribute(&p, key, value)

/* The set that results from these lists, as "a=1,b=2". */
static const char *labels_of(const struct list *lists, int count)
{
	static char text[8192];
	size_t len = 0;
	series_open(&s, &p);
	series_begin(&s);
	series_put(&s, "service_name", view_of("shop"));
	for (int i = 0; i < count; i++)
		series_take(&s, lists[i]);
	series_end(&s);
	text[0] = '\0';
	for (uint32_t i = 0; i < s.count; i++) {
		struct view name = string_view(&p, s.labels[i].name),
			    value = string_view(&p, s.labels[i].value);
		len += (size_t)snprintf(text + len, sizeof text - len, "%s%.*s=%.*s", i ? "," : "",
					(int)name.len, name.at, (int)value.len, value.at);
	}
	return text;
}

#define LABELS(...) \
	labels_of((const struct list[]){ __VA_ARGS__ }, \
		  sizeof((const struct list[]){ __VA_ARGS__ }) / sizeof(struct list))

static void names_take_the_plain_form(void **state)
{
	(void)state;
	struct list list =
		LIST(TEXT("k8s.pod-name", "a"), TEXT("two words", "b"), TEXT("9lives", "c"),
		     TEXT("gr\xc3\xbc\xc3\x9f"
			  "e",
			  "d"));
	assert_string_equal(LABELS(list),
			    "_9lives=c,gr__e=d,k8s_pod_name=a,service_name=shop,two_words=b");
}

static void names_stay_as_they_are_with_utf8(void **state)
{
	(void)state;
	rules.utf8 = true;
	struct list list = LIST(TEXT("k8s.pod-name", "a"), TEXT("two words", "b"),
				TEXT("gr\xc3\xbc\xc3\x9f"
				     "e",
				     "d"));
	assert_string_equal(LABELS(list), "gr\xc3\xbc\xc3\x9f"
					  "e=d,k8s.pod-name=a,service_name=shop,two words=b");
}

static void of_colliding_names_the_first_wins_and_the_other_is_counted(void **state)
{
	(void)state;
	struct list resource = LIST(TEXT("a.b", "1"), TEXT("a-b", "2")),
		    profile = LIST(TEXT("a_b", "3"));
	assert_string_equal(LABELS(resource, profile), "a_b=1,service_name=shop");
	assert_int_equal(s.lost[SERIES_COLLISION], 2);
}

static void a_name_that_says_the_same_is_no_loss(void **state)
{
	(void)state;
	struct list list = LIST(TEXT("service.name", "shop"), TEXT("service_name", "other"));
	assert_string_equal(LABELS(list), "service_name=shop");
	assert_int_equal(s.lost[SERIES_COLLISION], 1);
}

static void values_become_text(void **state)
{
	(void)state;
	struct list list = LIST(open_integer(&p, "pid", -7, ""), TEXT("empty", ""));
	assert_string_equal(LABELS(list), "pid=-7,service_name=shop");
}

static void keys_of_the_store_are_no_labels(void **state)
{
	(void)state;
	struct list list =
		LIST(TEXT("__name__", "x"), TEXT("__delta__", "x"), TEXT("__other__", "x"),
		     TEXT("__session_id__", "y"), TEXT("pprof.doc_url", "z"));
	assert_string_equal(LABELS(list), "__session_id__=y,service_name=shop");
	assert_int_equal(s.lost[SERIES_RESERVED], 1);
}

static void no_key_becomes_a_name_of_the_store(void **state)
{
	(void)state;
	struct list list =
		LIST(TEXT("..delta..", "x"), TEXT("_.", "y"), TEXT("__session_id__", "z"));
	assert_string_equal(LABELS(list), "_=y,__session_id__=z,_delta__=x,service_name=shop");
	assert_int_equal(s.lost[SERIES_RESERVED], 0);
}

static void what_must_be_there_is_cut_too(void **state)
{
	(void)state;
	rules.value_max = 3;
	assert_string_equal(LABELS((struct list){ 0 }), "service_name=sho");
	assert_int_equal(s.lost[SERIES_CUT], 1);
}

static void long_names_go_and_long_values_are_cut_between_characters(void **state)
{
	(void)state;
	rules.name_max = 12;
	rules.value_max = 4;
	struct list list = LIST(TEXT("name_too_long", "x"), TEXT("v", "abc\xc3\xbc"));
	assert_string_equal(LABELS(list), "service_name=shop,v=abc");
	assert_int_equal(s.lost[SERIES_LONG_NAME], 1);
	assert_int_equal(s.lost[SERIES_CUT], 1);
}

static void labels_over_the_limit_go_by_precedence(void **state)
{
	(void)state;
	rules.names_max = 3;
	struct list resource = LIST(TEXT("z", "1")), profile = LIST(TEXT("a", "2"), TEXT("b", "3"));
	assert_string_equal(LABELS(resource, profile), "a=2,service_name=shop,z=1");
	assert_int_equal(s.lost[SERIES_TOO_MANY], 1);
}

static void of_very_many_attributes_the_rest_is_counted_at_once(void **state)
{
	(void)state;
	char key[16];
	struct list list = { 0 };
	for (int i = 0; i < 1000; i++) {
		snprintf(key, sizeof key, "key%d", i);
		uint32_t attribute = TEXT(key, "x");
		struct list one = LIST(attribute);
		list = (struct list){ i ? list.first : one.first, list.count + 1 };
	}
	LABELS(list);
	assert_int_equal(s.count, 30);
	assert_int_equal(s.lost[SERIES_TOO_MANY], 1000 - 29);
}

/* A sample's attributes after cleaning, as "a=1,b=2". */
static const char *sample_of(struct sample *sample, bool *changed)
{
	static char text[8192];
	size_t len = 0;
	*changed = series_clean_sample(&s, sample);
	text[0] = '\0';
	for (uint32_t i = 0; i < sample->attributes.count; i++) {
		const struct attribute *a =
			&p.attributes.at[p.indices.at[sample->attributes.first + i]];
		struct view key = string_view(&p, a->key), value = string_view(&p, a->string);
		assert_int_equal(a->type, VALUE_STRING);
		len += (size_t)snprintf(text + len, sizeof text - len, "%s%.*s=%.*s", i ? "," : "",
					(int)key.len, key.at, (int)value.len, value.at);
	}
	return text;
}

static struct sample *sample_with(struct list attributes)
{
	open_resource(&p, (struct list){ 0 });
	open_scope(&p, "");
	open_profile(&p, "cpu", "nanoseconds");
	return open_value(&p, open_frame(&p, "main"), attributes, 1);
}

static void sample_labels_are_cleaned_below_those_of_the_series(void **state)
{
	(void)state;
	bool changed;
	struct list resource = LIST(TEXT("host", "a"));
	struct sample *sample =
		sample_with(LIST(TEXT("thread-name", "w"), TEXT("host", "b"),
				 open_integer(&p, "bytes", 8, ""), TEXT("thread.name", "v")));
	LABELS(resource);
	assert_string_equal(sample_of(sample, &changed), "thread_name=w");
	assert_true(changed);
	assert_int_equal(s.lost[SERIES_COLLISION], 2);
	assert_int_equal(s.lost[SERIES_NUMBER], 1);
}

static void clean_samples_stay_untouched(void **state)
{
	(void)state;
	bool changed;
	struct sample *sample = sample_with(LIST(TEXT("thread", "w")));
	struct list before = sample->attributes;
	LABELS((struct list){ 0 });
	assert_string_equal(sample_of(sample, &changed), "thread=w");
	assert_false(changed);
	assert_int_equal(sample->attributes.first, before.first);
}

static void numbers_on_samples_become_text_where_wanted(void **state)
{
	(void)state;
	bool changed;
	rules.numbers = true;
	struct sample *sample = sample_with(LIST(open_integer(&p, "bytes", 8, "By")));
	LABELS((struct list){ 0 });
	assert_string_equal(sample_of(sample, &changed), "bytes=8");
	assert_true(changed);
}

static void the_labels_of_samples_count_with_those_of_the_series(void **state)
{
	(void)state;
	bool changed;
	rules.names_max = 3;
	struct list resource = LIST(TEXT("host", "a"));
	struct sample *sample = sample_with(LIST(TEXT("one", "1"), TEXT("two", "2")));
	LABELS(resource);
	assert_string_equal(sample_of(sample, &changed), "one=1");
	assert_int_equal(s.lost[SERIES_TOO_MANY], 1);
}

static void a_link_needs_two_names(void **state)
{
	(void)state;
	bool changed;
	struct sample *sample = sample_with(LIST(TEXT("one", "1"), TEXT("trace_id", "x")));
	sample->link = open_link(&p, 1, 2);
	LABELS((struct list){ 0 });
	assert_string_equal(sample_of(sample, &changed), "one=1");
	assert_int_not_equal(sample->link, 0);
	rules.names_max = 2;
	LABELS((struct list){ 0 });
	assert_string_equal(sample_of(sample, &changed), "one=1");
	assert_int_equal(sample->link, 0);
	assert_true(changed);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(names_take_the_plain_form),
		TEST(names_stay_as_they_are_with_utf8),
		TEST(of_colliding_names_the_first_wins_and_the_other_is_counted),
		TEST(a_name_that_says_the_same_is_no_loss),
		TEST(values_become_text),
		TEST(keys_of_the_store_are_no_labels),
		TEST(no_key_becomes_a_name_of_the_store),
		TEST(what_must_be_there_is_cut_too),
		TEST(long_names_go_and_long_values_are_cut_between_characters),
		TEST(labels_over_the_limit_go_by_precedence),
		TEST(of_very_many_attributes_the_rest_is_counted_at_once),
		TEST(sample_labels_are_cleaned_below_those_of_the_series),
		TEST(clean_samples_stay_untouched),
		TEST(numbers_on_samples_become_text_where_wanted),
		TEST(the_labels_of_samples_count_with_those_of_the_series),
		TEST(a_link_needs_two_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
