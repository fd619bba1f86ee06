/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/base64.h"

static struct view text_view(const char *text)
{
	return (struct view){ (const uint8_t *)text, strlen(text) };
}

static const struct {
	const char *data, *text, *bare;
} vectors[] = {
	/* RFC 4648, section 10 */
	{ "", "", "" },
	{ "f", "Zg==", "Zg" },
	{ "fo", "Zm8=", "Zm8" },
	{ "foo", "Zm9v", "Zm9v" },
	{ "foob", "Zm9vYg==", "Zm9vYg" },
	{ "fooba", "Zm9vYmE=", "Zm9vYmE" },
	{ "foobar", "Zm9vYmFy", "Zm9vYmFy" },
};

static void assert_bytes(struct bytes *b, const char *expected)
{
	assert_int_equal(b->len, strlen(expected));
	if (b->len)
		assert_memory_equal(b->at, expected, b->len);
	bytes_fini(b);
}

static void the_vectors_are_encoded_with_and_without_padding(void **state)
{
	struct bytes out;
	(void)state;
	for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
		bytes_init(&out, 100);
		assert_true(base64_add(&out, text_view(vectors[i].data), true));
		assert_bytes(&out, vectors[i].text);
		bytes_init(&out, 100);
		assert_true(base64_add(&out, text_view(vectors[i].data), false));
		assert_bytes(&out, vectors[i].bare);
	}
}

static void the_vectors_are_decoded_with_and_without_padding(void **state)
{
	struct bytes out;
	(void)state;
	for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
		bytes_init(&out, 100);
		assert_true(base64_decode(&out, text_view(vectors[i].text)));
		assert_bytes(&out, vectors[i].data);
		bytes_init(&out, 100);
		assert_true(base64_decode(&out, text_view(vectors[i].bare)));
		assert_bytes(&out, vectors[i].data);
	}
}

static void every_byte_survives_at_every_length(void **state)
{
	uint8_t data[256];
	struct bytes text, back;
	(void)state;
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)(255 - i);
	for (size_t len = 0; len <= sizeof data; len++) {
		bytes_init(&text, 1000);
		bytes_init(&back, 1000);
		assert_true(base64_add(&text, (struct view){ data, len }, len % 2));
		assert_true(base64_decode(&back, (struct view){ text.at, text.len }));
		assert_int_equal(back.len, len);
		if (len)
			assert_memory_equal(back.at, data, len);
		bytes_fini(&text);
		bytes_fini(&back);
	}
}

static void what_is_not_base64_is_refused(void **state)
{
	static const char *const texts[] = {
		"Z",    "Zm9vY", "Zg=",  "Zg===",  "Zm8==", "Zm9v=", "Zm9v==",  "=",    "==",
		"====", "Zm=v",  "Z=g=", "Zm9v\n", " Zg==", "Zm9.",  "Zm9\x80", "Zm9*",
	};
	struct bytes out;
	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		bytes_init(&out, 100);
		if (base64_decode(&out, text_view(texts[i])))
			fail_msg("%s was decoded", texts[i]);
		bytes_fini(&out);
	}
	bytes_init(&out, 100);
	assert_false(base64_decode(&out, (struct view){ (const uint8_t *)"Zm\0v", 4 }));
	bytes_fini(&out);
}

static void the_alphabet_for_urls_is_decoded_too(void **state)
{
	struct bytes out;
	(void)state;
	bytes_init(&out, 100);
	assert_true(base64_decode(&out, text_view("-_-_")));
	assert_true(base64_decode(&out, text_view("+/+/")));
	assert_bytes(&out, "\xfb\xff\xbf\xfb\xff\xbf");
}

static void a_full_buffer_is_an_error(void **state)
{
	struct bytes out;
	(void)state;
	bytes_init(&out, 7);
	assert_false(base64_add(&out, text_view("fooba"), true));
	bytes_fini(&out);
	bytes_init(&out, 4);
	assert_false(base64_decode(&out, text_view("Zm9vYmE=")));
	bytes_fini(&out);
	bytes_init(&out, 5);
	assert_true(base64_decode(&out, text_view("Zm9vYmE=")));
	assert_bytes(&out, "fooba");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_vectors_are_encoded_with_and_without_padding),
		cmocka_unit_test(the_vectors_are_decoded_with_and_without_padding),
		cmocka_unit_test(every_byte_survives_at_every_length),
		cmocka_unit_test(what_is_not_base64_is_refused),
		cmocka_unit_test(the_alphabet_for_urls_is_decoded_too),
		cmocka_unit_test(a_full_buffer_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
