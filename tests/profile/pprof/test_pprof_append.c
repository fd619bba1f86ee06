/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "tests/profile/pprof/pprof_body.h"

/* Several documents in one input, decoded into the same tables. */

static size_t parts[4];

static struct view part(int i)
{
	return (struct view){ body.at + parts[i], parts[i + 1] - parts[i] };
}

/* One document from `begin`, with one sample. The function names differ. */
static void add_document(int i, uint64_t function, uint64_t location_id)
{
	static struct bytes before;
	bytes_fini(&before);
	before = body;
	body = (struct bytes){ 0 };
	begin();
	MESSAGE(PPROF_FUNCTION, 1, 2, 2, function);
	location(location_id, 1, 2, 0);
	number(PPROF_COMMENT, COMMENT);
	sample(location_id, 2, (uint64_t[]){ 3, 30 + (uint64_t)i }, 1,
	       (struct label[]){ { KEY, VALUE, 0, 0 } });
	struct bytes document = body;
	bytes_init(&body, CAP);
	bytes_add(&body, before.at, i ? before.len : 0);
	parts[i] = body.len;
	bytes_add(&body, document.at, document.len);
	parts[i + 1] = body.len;
	bytes_fini(&document);
	bytes_fini(&before);
}

static void start(void)
{
	bytes_reserve(&body, 1);
	assert_true(profiles_reset(&p, NULL, bytes_view(&body), CAP));
}

static const char *function_of(uint32_t profile)
{
	static char name[64];
	const struct sample *s = sample_of(profile, 0);
	struct list stack = p.stacks.at[s->stack].locations;
	assert_int_equal(stack.count, 1);
	const struct location *l = &p.locations.at[p.indices.at[stack.first]];
	assert_int_equal(l->lines.count, 1);
	const struct line *line = &p.lines.at[l->lines.first];
	struct view text = string_view(&p, p.functions.at[line->function].name);
	snprintf(name, sizeof name, "%.*s", (int)text.len, text.at);
	return name;
}

static void documents_are_appended_and_refer_to_their_own_entries(void **state)
{
	(void)state;
	add_document(0, CPU, 1);
	add_document(1, COMMENT, 7); /* location IDs that are not 1, 2, 3 */
	add_document(2, VALUE, 1);
	start();
	for (int i = 0; i < 3; i++)
		assert_true(decode_pprof(&p, part(i), NULL, &err));
	assert_int_equal(p.resources.count, 3);
	assert_int_equal(p.scopes.count, 3);
	assert_int_equal(p.profiles.count, 6);
	static const char *const functions[] = { "cpu", "a comment", "value" };
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(p.resources.at[i].scopes.first, i);
		assert_int_equal(p.scopes.at[i].profiles.first, 2 * i);
		assert_int_equal(p.scopes.at[i].profiles.count, 2);
		assert_int_equal(value_of(sample_of(2 * i, 0)), 3);
		assert_int_equal(value_of(sample_of(2 * i + 1, 0)), 30 + i);
		assert_string_equal(function_of(2 * i), functions[i]);
		assert_text(p.profiles.at[2 * i].sample_type.type, "samples");
		assert_text(p.profiles.at[2 * i + 1].sample_type.unit, "nanoseconds");
		assert_text(attribute_at(sample_of(2 * i, 0)->attributes, 0)->string, "value");
	}
}

static void a_bad_document_leaves_the_tables_as_they_were(void **state)
{
	(void)state;
	add_document(0, CPU, 1);
	add_document(1, 99, 1); /* this string does not exist */
	add_document(2, VALUE, 1);
	start();
	assert_true(decode_pprof(&p, part(0), NULL, &err));
	size_t used = profiles_used(&p);
	assert_false(decode_pprof(&p, part(1), NULL, &err));
	assert_int_equal(err.kind, ERROR_INVALID);
	assert_int_equal(profiles_used(&p), used);
	assert_int_equal(p.profiles.count, 2);
	assert_true(decode_pprof(&p, part(2), NULL, &err));
	assert_int_equal(p.profiles.count, 4);
	assert_string_equal(function_of(0), "cpu");
	assert_string_equal(function_of(2), "value");
}

static void documents_share_the_cap(void **state)
{
	(void)state;
	add_document(0, CPU, 1);
	add_document(1, VALUE, 1);
	start();
	assert_true(decode_pprof(&p, part(0), NULL, &err));
	size_t used = profiles_used(&p);
	p.table_bytes_max = used + used / 2;
	assert_false(decode_pprof(&p, part(1), NULL, &err));
	assert_int_equal(err.kind, ERROR_TOO_LARGE);
	assert_int_equal(profiles_used(&p), used);
	assert_false(p.over_cap);
	assert_string_equal(function_of(0), "cpu");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(documents_are_appended_and_refer_to_their_own_entries,
					  forget),
		cmocka_unit_test_teardown(a_bad_document_leaves_the_tables_as_they_were, forget),
		cmocka_unit_test_teardown(documents_share_the_cap, forget),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
