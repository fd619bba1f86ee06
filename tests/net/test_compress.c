/* SPDX-License-Identifier: Apache-2.0 */
#include "net/compress.h"

#include <pthread.h>
#include <zstd.h>

#include "base/memory.h"
#include "tests/support/packed.h"

#define MIB ((size_t)1 << 20)

static const enum coding codings[] = { CODING_GZIP,   CODING_ZLIB,          CODING_ZSTD,
				       CODING_SNAPPY, CODING_SNAPPY_FRAMED, CODING_LZ4 };
enum { CODINGS = sizeof codings / sizeof *codings };

/* zstd in streaming mode writes neither the content size nor the window size that would replace
 * it. */
static struct bytes streamed_zstd(const struct bytes *in, int window_log)
{
	struct bytes out;
	bytes_init(&out, in->len * 2 + 1024);
	bytes_reserve(&out, out.max);
	ZSTD_CCtx *c = ZSTD_createCCtx();
	ZSTD_CCtx_setParameter(c, ZSTD_c_windowLog, window_log);
	ZSTD_inBuffer from = { in->at, in->len, 0 };
	ZSTD_outBuffer to = { out.at, out.room, 0 };
	while (from.pos < from.size)
		ZSTD_compressStream2(c, &to, &from, ZSTD_e_continue);
	assert_int_equal(ZSTD_compressStream2(c, &to, &from, ZSTD_e_end), 0);
	out.len = to.pos;
	ZSTD_freeCCtx(c);
	return out;
}

static void check_fails(enum coding coding, struct view in, size_t max, enum error_kind want)
{
	struct bytes out;
	enum error_kind kind;
	assert_false(inflates(coding, in, max, &out, &kind));
	assert_int_equal(kind, want);
	bytes_fini(&out);
}

static void sniffs_by_magic(void **state)
{
	(void)state;
	assert_int_equal(compress_sniff(view_of("\x1f\x8b\x08")), CODING_GZIP);
	assert_int_equal(compress_sniff(view_of("\x28\xb5\x2f\xfd")), CODING_ZSTD);
	assert_int_equal(compress_sniff((struct view){ (const uint8_t *)"\xff\x06\0\0sNaPpY", 10 }),
			 CODING_SNAPPY_FRAMED);
	assert_int_equal(compress_sniff((struct view){ (const uint8_t *)"\xff\x06\0\0sNaPp", 9 }),
			 CODING_IDENTITY);
	assert_int_equal(compress_sniff(view_of("\x1f")), CODING_IDENTITY);
	assert_int_equal(compress_sniff(view_of("")), CODING_IDENTITY);
	assert_int_equal(compress_sniff(view_of("\x0a\x1f\x8b")), CODING_IDENTITY);
}

static void knows_the_names(void **state)
{
	(void)state;
	assert_int_equal(compress_named(""), CODING_IDENTITY);
	assert_int_equal(compress_named("identity"), CODING_IDENTITY);
	assert_int_equal(compress_named("GZip"), CODING_GZIP);
	assert_int_equal(compress_named("x-gzip"), CODING_GZIP);
	assert_int_equal(compress_named("deflate"), CODING_ZLIB);
	assert_int_equal(compress_named("zlib"), CODING_ZLIB);
	assert_int_equal(compress_named("zstd"), CODING_ZSTD);
	assert_int_equal(compress_named("snappy"), CODING_SNAPPY);
	assert_int_equal(compress_named("x-snappy-framed"), CODING_SNAPPY_FRAMED);
	assert_int_equal(compress_named("lz4"), CODING_LZ4);
	assert_int_equal(compress_named("br"), CODING_UNKNOWN);
}

static void round_trips_at_every_size(void **state)
{
	(void)state;
	static const size_t sizes[] = { 0, 1, 2, 1023, 1024, 1025, 65536, 98304, 98305, 300000 };
	for (int c = 0; c < CODINGS; c++) {
		for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
			struct bytes plain = sample(sizes[i]),
				     packed = deflated(codings[c], &plain);
			check_inflates_to(codings[c], bytes_view(&packed), &plain, sizes[i]);
			check_inflates_to(codings[c], bytes_view(&packed), &plain, 100 * MIB);
			if (sizes[i])
				check_fails(codings[c], bytes_view(&packed), sizes[i] - 1,
					    ERROR_TOO_LARGE);
			bytes_fini(&plain);
			bytes_fini(&packed);
		}
	}
}

static void identity_is_copied_up_to_the_cap(void **state)
{
	(void)state;
	struct bytes plain = sample(5);
	check_inflates_to(CODING_IDENTITY, bytes_view(&plain), &plain, 5);
	check_fails(CODING_IDENTITY, bytes_view(&plain), 4, ERROR_TOO_LARGE);
	bytes_fini(&plain);
}

static void inflates_behind_what_is_there(void **state)
{
	(void)state;
	struct error err;
	struct bytes plain = sample(5000), packed = deflated(CODING_GZIP, &plain), out;
	bytes_init(&out, 5004);
	bytes_add_text(&out, "head");
	assert_true(compress_inflate(CODING_GZIP, bytes_view(&packed), &out, &err));
	assert_int_equal(out.len, 5004);
	assert_memory_equal(out.at, "head", 4);
	assert_memory_equal(out.at + 4, plain.at, 5000);
	bytes_fini(&out);
	bytes_fini(&plain);
	bytes_fini(&packed);
}

/* Also in a buffer that held something longer before. */
static void zeros_follow_what_was_inflated(void **state)
{
	(void)state;
	static const uint8_t zeros[BYTES_SLACK];
	for (int c = 0; c < CODINGS; c++) {
		struct error err;
		struct bytes plain = sample(5000), packed = deflated(codings[c], &plain), out;
		bytes_init(&out, 50000);
		bytes_reserve(&out, 40000);
		memset(out.at, 0xff, out.room + BYTES_SLACK);
		assert_true(compress_inflate(codings[c], bytes_view(&packed), &out, &err));
		assert_memory_equal(out.at + out.len, zeros, sizeof zeros);
		bytes_fini(&out);
		bytes_fini(&plain);
		bytes_fini(&packed);
	}
}

static void gzip_members_are_joined(void **state)
{
	(void)state;
	struct bytes plain = sample(40000), twice = sample(40000),
		     packed = deflated(CODING_GZIP, &plain), two;
	twice.max = 80000;
	bytes_add(&twice, plain.at, plain.len);
	bytes_init(&two, packed.len * 2);
	bytes_add(&two, packed.at, packed.len);
	bytes_add(&two, packed.at, packed.len);
	check_inflates_to(CODING_GZIP, bytes_view(&two), &twice, 80000);
	check_fails(CODING_GZIP, bytes_view(&two), 79999, ERROR_TOO_LARGE);
	check_fails(CODING_GZIP, (struct view){ two.at, packed.len + 1 }, MIB, ERROR_INVALID);
	bytes_fini(&plain);
	bytes_fini(&twice);
	bytes_fini(&packed);
	bytes_fini(&two);
}

static void zstd_frames_are_joined_and_skippable_ones_skipped(void **state)
{
	(void)state;
	struct bytes plain = sample(3000), packed = deflated(CODING_ZSTD, &plain), all, want;
	bytes_init(&all, MIB);
	bytes_init(&want, MIB);
	for (int i = 0; i < 2; i++) {
		bytes_add(&all, packed.at, packed.len);
		bytes_add(&all, "\x53\x2a\x4d\x18\x03\0\0\0abc", 11);
		bytes_add(&want, plain.at, plain.len);
	}
	check_inflates_to(CODING_ZSTD, bytes_view(&all), &want, 6000);
	check_fails(CODING_ZSTD, bytes_view(&all), 5999, ERROR_TOO_LARGE);
	bytes_fini(&plain);
	bytes_fini(&packed);
	bytes_fini(&all);
	bytes_fini(&want);
}

static void zstd_without_content_size_is_inflated_in_steps(void **state)
{
	(void)state;
	static const size_t sizes[] = { 10, 5000, 131072, 131073, 700000, 5000000 };
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct bytes made[] = { sample(sizes[i]), zeros(sizes[i]) };
		for (int k = 0; k < 2; k++) {
			struct bytes packed = streamed_zstd(&made[k], 20);
			assert_true(ZSTD_getFrameContentSize(packed.at, packed.len) ==
				    ZSTD_CONTENTSIZE_UNKNOWN);
			check_inflates_to(CODING_ZSTD, bytes_view(&packed), &made[k], sizes[i]);
			check_inflates_to(CODING_ZSTD, bytes_view(&packed), &made[k],
					  sizes[i] + 77);
			check_fails(CODING_ZSTD, bytes_view(&packed), sizes[i] - 1,
				    ERROR_TOO_LARGE);
			bytes_fini(&packed);
			bytes_fini(&made[k]);
		}
	}
}

static void a_hostile_zstd_window_allocates_nothing(void **state)
{
	(void)state;
	struct bytes plain = sample(200000), packed = streamed_zstd(&plain, 27);
	check_inflates_to(CODING_ZSTD, bytes_view(&packed), &plain, 200000);
	bytes_fini(&plain);
	bytes_fini(&packed);
}

static void bombs_stop_at_the_cap(void **state)
{
	(void)state;
	struct bytes plain = zeros(50 * MIB);
	for (int c = 0; c < CODINGS; c++) {
		struct bytes bomb = deflated(codings[c], &plain);
		assert_true(bomb.len < plain.len / 15);
		check_fails(codings[c], bytes_view(&bomb), MIB, ERROR_TOO_LARGE);
		check_fails(codings[c], bytes_view(&bomb), plain.len - 1, ERROR_TOO_LARGE);
		bytes_fini(&bomb);
	}
	bytes_fini(&plain);
}

static void a_bomb_that_lies_about_its_size_stops_at_the_cap(void **state)
{
	(void)state;
	struct bytes plain = zeros(20 * MIB), bomb = deflated(CODING_GZIP, &plain), out;
	enum error_kind kind;
	memset(bomb.at + bomb.len - 4, 0, 4);
	check_fails(CODING_GZIP, bytes_view(&bomb), MIB, ERROR_TOO_LARGE);
	check_fails(CODING_GZIP, bytes_view(&bomb), 30 * MIB, ERROR_INVALID);
	bytes_fini(&bomb);
	bytes_fini(&plain);

	plain = sample(10);
	bomb = deflated(CODING_GZIP, &plain);
	memset(bomb.at + bomb.len - 4, 0xff, 4);
	assert_false(inflates(CODING_GZIP, bytes_view(&bomb), 1000 * MIB, &out, &kind));
	assert_int_equal(kind, ERROR_INVALID);
	assert_true(out.room < 100 * 1024);
	bytes_fini(&out);
	bytes_fini(&bomb);
	bytes_fini(&plain);
}

static void every_truncation_is_an_error(void **state)
{
	(void)state;
	for (int c = 0; c <= CODINGS; c++) {
		enum coding coding = c < CODINGS ? codings[c] : CODING_ZSTD;
		struct bytes plain = sample(900);
		struct bytes packed =
			c < CODINGS ? deflated(coding, &plain) : streamed_zstd(&plain, 17);
		for (size_t len = 0; len < packed.len; len++) {
			/* snappy's frames have no end mark: none is a stream too */
			if (coding == CODING_SNAPPY_FRAMED && len == 10)
				continue;
			uint8_t *exact = memory_new(len ? len : 1);
			memcpy(exact, packed.at, len);
			check_fails(coding, (struct view){ exact, len }, MIB, ERROR_INVALID);
			memory_free(exact);
		}
		bytes_fini(&plain);
		bytes_fini(&packed);
	}
}

static void an_empty_body_is_an_error(void **state)
{
	(void)state;
	for (int c = 0; c < CODINGS; c++) {
		check_fails(codings[c], (struct view){ NULL, 0 }, MIB, ERROR_INVALID);
		check_fails(codings[c], (struct view){ NULL, 0 }, 0, ERROR_INVALID);
	}
}

static void trailing_bytes_are_an_error(void **state)
{
	(void)state;
	for (int c = 0; c < CODINGS; c++) {
		struct bytes plain = sample(900), packed = deflated(codings[c], &plain);
		bytes_add(&packed, "rubbish", 7);
		check_fails(codings[c], bytes_view(&packed), MIB, ERROR_INVALID);
		bytes_fini(&plain);
		bytes_fini(&packed);
	}
}

static void foreign_formats_are_refused(void **state)
{
	(void)state;
	check_fails(CODING_UNKNOWN, view_of("x"), MIB, ERROR_UNSUPPORTED);
	check_fails(CODING_ZSTD, view_of("\x27\xb5\x2f\xfd\x24\x04\x01\x01\x01"), MIB,
		    ERROR_INVALID);
	check_fails(CODING_GZIP, view_of("not gzip at all, not at all"), MIB, ERROR_INVALID);
}

/* Data that cannot be compressed still fits the reserved bound, at sizes on both sides of that of a
 * single run. */
static void noise_and_runs_round_trip(void **state)
{
	(void)state;
	for (size_t len = 90000; len < 110000; len += 1999) {
		struct bytes made[] = { zeros(len), zeros(len) };
		uint64_t noise = 88172645463325252u;
		for (size_t i = 0; i < len; i++)
			made[1].at[i] = (uint8_t)(next_noise(&noise) >> 11);
		for (int k = 0; k < 2; k++) {
			struct bytes packed = deflated(CODING_GZIP, &made[k]);
			assert_true(packed.len < (k ? len + 100 : len / 50));
			check_inflates_to(CODING_GZIP, bytes_view(&packed), &made[k], len);
			bytes_fini(&packed);
			bytes_fini(&made[k]);
		}
	}
}

static void deflating_respects_the_maximum(void **state)
{
	(void)state;
	struct error err;
	for (int c = 0; c < CODINGS; c++) {
		struct bytes plain = sample(5000), packed = deflated(codings[c], &plain), out;
		bytes_init(&out, packed.len / 2);
		assert_false(compress_deflate(codings[c], 0, bytes_view(&plain), &out, &err));
		assert_int_equal(err.kind, ERROR_TOO_LARGE);
		assert_int_equal(out.len, 0);
		bytes_fini(&out);
		bytes_fini(&packed);
		bytes_fini(&plain);
	}
}

static void levels_are_heeded(void **state)
{
	(void)state;
	struct error err;
	struct bytes plain = sample(200000), fast = deflated(CODING_GZIP, &plain), again, best;
	bytes_init(&again, MIB);
	bytes_init(&best, MIB);
	assert_true(compress_deflate(CODING_GZIP, 9, bytes_view(&plain), &best, &err));
	assert_true(compress_deflate(CODING_GZIP, 1, bytes_view(&plain), &again, &err));
	assert_true(best.len < fast.len);
	assert_int_equal(again.len, fast.len);
	check_inflates_to(CODING_GZIP, bytes_view(&best), &plain, MIB);
	bytes_fini(&plain);
	bytes_fini(&fast);
	bytes_fini(&again);
	bytes_fini(&best);
}

static void *round_trip(void *argument)
{
	(void)argument;
	struct bytes plain = sample(20000);
	for (int c = 0; c < CODINGS; c++) {
		struct bytes packed = deflated(codings[c], &plain);
		check_inflates_to(codings[c], bytes_view(&packed), &plain, MIB);
		bytes_fini(&packed);
	}
	bytes_fini(&plain);
	return NULL;
}

static void each_thread_has_its_own_tools(void **state)
{
	(void)state;
	pthread_t threads[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, round_trip, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sniffs_by_magic),
		cmocka_unit_test(knows_the_names),
		cmocka_unit_test(round_trips_at_every_size),
		cmocka_unit_test(identity_is_copied_up_to_the_cap),
		cmocka_unit_test(inflates_behind_what_is_there),
		cmocka_unit_test(zeros_follow_what_was_inflated),
		cmocka_unit_test(gzip_members_are_joined),
		cmocka_unit_test(zstd_frames_are_joined_and_skippable_ones_skipped),
		cmocka_unit_test(zstd_without_content_size_is_inflated_in_steps),
		cmocka_unit_test(a_hostile_zstd_window_allocates_nothing),
		cmocka_unit_test(bombs_stop_at_the_cap),
		cmocka_unit_test(a_bomb_that_lies_about_its_size_stops_at_the_cap),
		cmocka_unit_test(every_truncation_is_an_error),
		cmocka_unit_test(an_empty_body_is_an_error),
		cmocka_unit_test(trailing_bytes_are_an_error),
		cmocka_unit_test(foreign_formats_are_refused),
		cmocka_unit_test(noise_and_runs_round_trip),
		cmocka_unit_test(deflating_respects_the_maximum),
		cmocka_unit_test(levels_are_heeded),
		cmocka_unit_test(each_thread_has_its_own_tools),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
