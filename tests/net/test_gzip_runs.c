/* SPDX-License-Identifier: Apache-2.0 */
/* compress_gzip: bodies with different kinds of contents. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "tests/support/packed.h"
#include "tests/support/shell.h"

#define MIB ((size_t)1 << 20)

/* Wherever the sections are, decompression returns the body; `gzip` agrees. */
static size_t check_sections(const struct bytes *body, struct cuts cuts)
{
	struct error err;
	struct bytes out;
	char path[] = "/tmp/portcullis-gzip-XXXXXX";
	bytes_init(&out, body->len * 2 + 1024);
	assert_true(compress_gzip(bytes_view(body), &cuts, &out, &err));
	check_inflates_to(CODING_GZIP, bytes_view(&out), body, body->len + 1);
	size_t made = out.len;
	int file = mkstemp(path);
	assert_int_equal(write(file, out.at, out.len), out.len);
	close(file);
	assert_int_equal(shell("gzip -t <%s && test $(gzip -dc <%s | "
			       "wc -c) = %zu",
			       path, path, body->len),
			 0);
	remove(path);
	bytes_fini(&out);
	return made;
}

static void sections_are_coded_one_by_one(void **state)
{
	(void)state;
	static const size_t sizes[] = { 0, 5000, 96 << 10, (96 << 10) + 1, 300000, 700000 };
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		size_t len = sizes[i];
		const size_t cuts[][7] = {
			{ 0 },
			{ len, len, len, len, len, len, len },
			{ 0, 1, len / 9, len / 9, len / 8, len / 2, len - len / 9 },
			{ len / 7, len / 6, len / 5, len / 4, len / 3, len / 2, len - len / 200 }
		};
		struct bytes bodies[] = { sample(len), zeros(len) };
		for (size_t k = 0; k < sizeof cuts / sizeof *cuts; k++)
			for (int b = 0; b < 2; b++)
				for (size_t text = 0; text < 6; text++)
					check_sections(&bodies[b],
						       (struct cuts){ cuts[k], 7, text });
		bytes_fini(&bodies[0]);
		bytes_fini(&bodies[1]);
	}
}

static size_t cut_at(const struct bytes *body, size_t cut)
{
	const size_t cuts[] = { cut, body->len };
	struct error err;
	struct bytes out;
	bytes_init(&out, body->len);
	assert_true(compress_gzip(bytes_view(body), &(struct cuts){ cuts, 2, 0 }, &out, &err));
	size_t made = out.len;
	bytes_fini(&out);
	return made;
}

/* Text of letters, then of digits: separate codes save more than the flush between them costs. */
static void sections_make_fewer_bytes(void **state)
{
	(void)state;
	for (size_t len = 200000; len < MIB; len += 500000) {
		uint64_t noise = 88172645463325252u;
		struct bytes body;
		bytes_init(&body, len);
		for (size_t i = 0; i < len; i++) {
			next_noise(&noise);
			bytes_add_byte(&body,
				       (uint8_t)(i < len / 2 ? 'a' + noise % 16 : '0' + noise % 8));
		}
		assert_true(cut_at(&body, len / 2) < cut_at(&body, len / 2 + 12000));
		bytes_fini(&body);
	}
}

/* With any amount of room, either everything can be decompressed or nothing is written. Nothing is
 * written past the end. */
static void sections_keep_to_the_maximum(void **state)
{
	(void)state;
	enum { LEN = 100000, GUARD = 64 };
	static const size_t cuts[] = { 60000, LEN };
	struct bytes body = sample(LEN);
	size_t whole = cut_at(&body, cuts[0]);
	for (size_t max = 0, made = 0; max < LEN + 2000;
	     max += max < 200 || max / 100 == whole / 100 ? 1 : 97) {
		struct error err;
		struct bytes out = { memory_new(max + GUARD + BYTES_SLACK), 0, max, max };
		memset(out.at + max, 0xa5, GUARD);
		bool ok =
			compress_gzip(bytes_view(&body), &(struct cuts){ cuts, 2, 0 }, &out, &err);
		for (int i = 0; i < GUARD; i++)
			assert_int_equal(out.at[max + (size_t)i], 0xa5);
		assert_true(ok >= !!made && out.len <= max);
		made = out.len;
		if (ok)
			check_inflates_to(CODING_GZIP, bytes_view(&out), &body, LEN);
		memory_free(out.at);
	}
	bytes_fini(&body);
}

/* Names as in profiles. */
static void add_names(struct bytes *b, size_t until, uint64_t *noise)
{
	static const char *const words[] = { "github.com/",  "runtime.",   "java.util.", "Handler",
					     "process",      "(*Client).", "read",       "Object",
					     "write",        "/usr/lib/",  "internal/",  ".func1",
					     "::operator()", "get",        "Stream",     ".go",
					     "Request",      "_start" };
	while (b->len < until) {
		bytes_add(b, "\x2a", 2);
		size_t name = b->len;
		for (unsigned left = 2 + next_noise(noise) % 4; left; left--)
			bytes_add_text(b,
				       words[next_noise(noise) % (sizeof words / sizeof *words)]);
		b->at[name - 1] = (uint8_t)(b->len - name);
	}
}

/* Locations with one line each. Several of them may share a function. */
static void add_records(struct bytes *b, size_t until, uint64_t *noise)
{
	for (unsigned i = 0, function = 0; b->len < until; i++) {
		function += next_noise(noise) % 2;
		uint8_t line = (uint8_t)(next_noise(noise) % 128),
			high = (uint8_t)(next_noise(noise) % 8);
		const uint8_t location[] = { 0x12,
					     10,
					     0x08,
					     1,
					     0x1a,
					     6,
					     0x08,
					     (uint8_t)(function | 0x80),
					     (uint8_t)(function >> 7 & 0x7f),
					     0x10,
					     line | 0x80,
					     high };
		bytes_add(b, location, sizeof location);
	}
}

/* Every byte, and repeats of every length at every distance, between the data from which the codes
 * were made. */
static void add_rarities(struct bytes *b, size_t until, uint64_t *noise)
{
	for (unsigned i = 0; b->len < until; i++) {
		add_names(b, b->len + 40, noise);
		bytes_add_byte(b, (uint8_t)i);
		size_t len = 3 + i * 7 % 256,
		       back = next_noise(noise) % (b->len < 32768 ? b->len : 32768);
		bytes_reserve(b, len);
		for (size_t k = 0; k < len; k++)
			bytes_add_byte(b, b->at[b->len - 1 - back]);
	}
}

static size_t own_code(const struct bytes *body)
{
	struct bytes out = deflated(CODING_GZIP, body);
	size_t made = out.len;
	bytes_fini(&out);
	return made;
}

/* If there is enough text, it gets the code for text; the data around it gets the code for
 * records. */
static void text_is_told_from_records(void **state)
{
	(void)state;
	uint64_t noise = 88172645463325252u;
	struct bytes body;
	bytes_init(&body, MIB);
	add_records(&body, 30000, &noise);
	size_t text = body.len;
	add_names(&body, 60000, &noise);
	size_t behind = body.len;
	add_records(&body, 64000, &noise);
	size_t told = check_sections(&body, (struct cuts){ (size_t[]){ text, behind }, 2, 0 });
	assert_true(told <
		    check_sections(&body, (struct cuts){ (size_t[]){ 0, text, behind }, 3, 0 }) *
			    9 / 10);
	assert_int_equal(check_sections(&body,
					(struct cuts){ (size_t[]){ text, text + 20000 }, 2, 0 }),
			 own_code(&body));
	bytes_fini(&body);
}

static void codes_made_before_have_every_symbol(void **state)
{
	(void)state;
	uint64_t noise = 88172645463325252u;
	for (size_t len = 500; len < 96 << 10; len = len * 5 / 4) {
		struct bytes body;
		bytes_init(&body, MIB);
		add_rarities(&body, len, &noise);
		size_t cuts[] = { 0, len / 4, len, body.len };
		for (size_t text = 0; text < 3; text++)
			assert_true(check_sections(&body, (struct cuts){ cuts, 4, text }) <
				    body.len * 2 / 3);
		bytes_fini(&body);
	}
}

/* Any content is no larger than with its own code. */
static void content_of_another_kind_gets_a_code_of_its_own(void **state)
{
	(void)state;
	static const char *const alphabets[] = { "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789abcdef",
						 "\xe4\xb8\xad\xe6\x96\x87\x8d\x9a" };
	for (size_t a = 0; a < sizeof alphabets / sizeof *alphabets; a++) {
		uint64_t noise = 88172645463325252u;
		struct bytes body;
		bytes_init(&body, MIB);
		for (size_t i = 0; i < 16000; i++)
			bytes_add_byte(
				&body,
				(uint8_t)alphabets[a][next_noise(&noise) % strlen(alphabets[a])]);
		assert_int_equal(check_sections(&body,
						(struct cuts){ (size_t[]){ 0, body.len }, 2, 0 }),
				 own_code(&body));
		bytes_fini(&body);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sections_are_coded_one_by_one),
		cmocka_unit_test(sections_make_fewer_bytes),
		cmocka_unit_test(sections_keep_to_the_maximum),
		cmocka_unit_test(text_is_told_from_records),
		cmocka_unit_test(codes_made_before_have_every_symbol),
		cmocka_unit_test(content_of_another_kind_gets_a_code_of_its_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
