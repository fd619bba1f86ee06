/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "net/idempotency_key.h"

#define UUID "8e03978e-40d5-43dd-bc93-6894a57f9324"

static enum idempotency_key find(const char *value, struct view *key)
{
	const struct metadatum headers[] = { { "content-type", UUID },
					     { "Idempotency-Key", value },
					     { 0 } };
	return idempotency_key_find(headers, key);
}

static void what_is_written_is_read(void **state)
{
	(void)state;
	char text[IDEMPOTENCY_KEY_SIZE];
	struct view key;
	idempotency_key_write((struct hash128){ .low = 0xfedcba9876543210, .high = 0x0123 }, text);
	assert_string_equal(text, "\"0000000000000123fedcba9876543210\"");
	assert_int_equal(find(text, &key), IDEMPOTENCY_KEY_VALID);
	assert_true(view_is(key, "0000000000000123fedcba9876543210"));
}

static void quotes_make_no_difference(void **state)
{
	(void)state;
	struct view key;
	assert_int_equal(find(UUID, &key), IDEMPOTENCY_KEY_VALID);
	assert_true(view_is(key, UUID));
	assert_int_equal(find("\"" UUID "\"", &key), IDEMPOTENCY_KEY_VALID);
	assert_true(view_is(key, UUID));
}

static void other_values_are_invalid(void **state)
{
	(void)state;
	static const char *const values[] = {
		"",
		"\"",
		"\"\"",
		"123456789012345",
		"\"123456789012345\"",
		"12345678901234567890123456789012345678901234567890123456789012345",
		"\"" UUID,
		UUID "\"",
		"\"" UUID "\";a=1",
		UUID ", " UUID,
		"1234567890123456 ",
		"12345678901234\xc3\xbc",
		"1234567890123456\n",
	};
	struct view key;
	for (size_t i = 0; i < sizeof values / sizeof *values; i++)
		assert_int_equal(find(values[i], &key), IDEMPOTENCY_KEY_INVALID);
	assert_int_equal(find("1234567890123456", &key), IDEMPOTENCY_KEY_VALID);
	assert_int_equal(find("1234567890123456789012345678901234567890123456789012345678901234",
			      &key),
			 IDEMPOTENCY_KEY_VALID);
}

static void none_and_two_are_told_apart(void **state)
{
	(void)state;
	const struct metadatum none[] = { { "idempotency-keys", UUID }, { 0 } }, two[] = {
		{ "idempotency-key", UUID }, { "Idempotency-Key", UUID }, { 0 }
	};
	struct view key;
	assert_int_equal(idempotency_key_find(NULL, &key), IDEMPOTENCY_KEY_NONE);
	assert_int_equal(idempotency_key_find(none, &key), IDEMPOTENCY_KEY_NONE);
	assert_int_equal(idempotency_key_find(two, &key), IDEMPOTENCY_KEY_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(quotes_make_no_difference),
		cmocka_unit_test(other_values_are_invalid),
		cmocka_unit_test(none_and_two_are_told_apart),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
