/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_PROFILE_OTLP_OTLP_FIXTURE_H
#define TESTS_PROFILE_OTLP_OTLP_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "profile/otlp/decode_otlp.h"
#include "tests/support/wire_text.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* One open request. All tests decode into the same tables, as a worker does. */
static struct profiles tables;
static struct bytes input;
static struct error error;

static inline bool decode_bytes(struct view bytes, size_t cap)
{
	error_clear(&error);
	return profiles_reset(&tables, NULL, bytes, cap) ? decode_otlp(&tables, &error)
							 : profiles_over_cap(&tables, &error);
}

/* Decodes a request in the notation of wire_text. */
static inline bool decode(const char *text)
{
	bytes_fini(&input);
	bytes_init(&input, 64 << 20);
	wire_text(&input, text);
	return decode_bytes(bytes_view(&input), 1 << 30);
}

static inline void expect_decoded(const char *text)
{
	if (!decode(text))
		fail_msg("refused: %s", error.text);
}

static inline void expect_refused(const char *text, enum error_kind kind, const char *part)
{
	if (decode(text))
		fail_msg("decoded: %s", text);
	assert_int_equal(error.kind, kind);
	if (!strstr(error.text, part))
		fail_msg("the error is: %s\n not about: %s", error.text, part);
}

static inline void string_must_be(uint32_t string, const char *text)
{
	struct view v = string_view(&tables, string);
	if (!view_is(v, text))
		fail_msg("string is '%.*s', not '%s'", (int)v.len, v.at, text);
}

/* The nth attribute of a list. */
static inline const struct attribute *attribute_of(struct list list, uint32_t n)
{
	assert_true(n < list.count);
	return &tables.attributes.at[tables.indices.at[list.first + n]];
}

static inline void expect_bytes(struct span span, const void *data, size_t len)
{
	struct view v = span_view(&tables, span);
	assert_int_equal(v.len, len);
	assert_memory_equal(v.at, data, len);
}

static inline int fixture_end(void **state)
{
	(void)state;
	profiles_fini(&tables);
	bytes_fini(&input);
	return 0;
}

/* A dictionary with valid entries at index 1 and 2 of each table. Strings: 1 samples, 2 count, 3
 * main, 4 main.c, 5 thread.name, 6 worker. */
#define STRINGS "5'' 5'samples' 5'count' 5'main' 5'main.c' 5'thread.name' 5'worker' "
/* clang-format off */
#define TABLES \
	"1{} 1{1=4096 2=8192 3=512 4=4 5[1]} 1{}" \
	"2{} 2{1=1 2=4097 3{1=1 2=7 3=8} 3{1=2 2=9} 4[1]} 2{2=99}" \
	"3{} 3{1=3 2=3 3=4 4=6} 3{1=4}" \
	"4{} 4{1#000102030405060708090a0b0c0d0e0f 2#1011121314151617} 4{}" \
	"6{} 6{1=5 2{1'main'} 3=2} 6{1=6 2{3=-7}}" \
	"7{} 7{1[1 2]} 7{}"
/* clang-format on */
#define DICTIONARY "2{" STRINGS TABLES "}"
/* A valid Profile, and a request of one resource and one scope with these Profiles. */
#define GOOD "2{1{1=1 2=2} 2{1=1 4[5]}}"
#define REQUEST(profiles) "1{2{" profiles "}}"

#endif
