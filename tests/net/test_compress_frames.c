/* SPDX-License-Identifier: Apache-2.0 */
#include "net/compress.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/memory.h"
#include "tests/support/packed.h"

/* Snappy, LZ4 and raw deflate: streams that other implementations made of TEXT (python-snappy,
 * python-lz4, zlib), and streams that are wrong in one place. */

#define MIB ((size_t)1 << 20)
#define SENTENCE "a profile of a profile of a profile; "
#define TEXT SENTENCE SENTENCE SENTENCE "end"
#define SNAPPY_BLOCK "7230612070726f66696c65206f6620560d00003b5a18003232009a250008656e64"
#define SNAPPY_ID "ff060000734e61507059"
#define SNAPPY_CHUNK "00250000eb1b4bf0" SNAPPY_BLOCK
#define LZ4_BLOCK "23000000df612070726f66696c65206f66200d00031f3b1800040932000f250012503b20656e64"
/* with checksums of the block and of the content */
#define LZ4_HEAD "04224d187c40720000000000000058"
#define LZ4_CHECKED LZ4_HEAD LZ4_BLOCK "aa832a19000000007fad0ba4"

static struct bytes of_hex(const char *hex)
{
	struct bytes b;
	bytes_init(&b, strlen(hex) / 2);
	for (size_t i = 0; hex[i]; i += 2) {
		char digits[] = { hex[i], hex[i + 1], 0 };
		bytes_add_byte(&b, (uint8_t)strtoul(digits, NULL, 16));
	}
	return b;
}

static void check_means(enum coding coding, const char *hex, const char *text)
{
	struct bytes packed = of_hex(hex), want;
	bytes_init(&want, strlen(text));
	bytes_add_text(&want, text);
	check_inflates_to(coding, bytes_view(&packed), &want, want.len);
	check_inflates_to(coding, bytes_view(&packed), &want, MIB);
	bytes_fini(&want);
	bytes_fini(&packed);
}

static void check_kind(enum coding coding, const char *hex, size_t max, enum error_kind want)
{
	struct bytes packed = of_hex(hex), out;
	enum error_kind kind;
	assert_false(inflates(coding, bytes_view(&packed), max, &out, &kind));
	assert_int_equal(kind, want);
	bytes_fini(&out);
	bytes_fini(&packed);
}

static void check_damaged(enum coding coding, const char *hex)
{
	check_kind(coding, hex, MIB, ERROR_INVALID);
}

static void others_streams_are_read(void **state)
{
	(void)state;
	check_means(CODING_SNAPPY, SNAPPY_BLOCK, TEXT);
	check_means(CODING_SNAPPY, SNAPPY_ID SNAPPY_CHUNK, TEXT);
	check_means(CODING_SNAPPY_FRAMED, SNAPPY_ID SNAPPY_CHUNK, TEXT);
	check_means(CODING_LZ4, LZ4_CHECKED, TEXT);
	check_means(CODING_ZLIB, "4b542828ca4fcbcc4955c84f5348c4cab1c6214e8ea2d4bc1400", TEXT);
}

static void linked_lz4_blocks_refer_to_the_blocks_before(void **state)
{
	(void)state;
	check_means(CODING_LZ4,
		    "04224d1844405e" LZ4_BLOCK "0a0000000f72005a503b20656e640000000033e48244",
		    TEXT TEXT);
	/* the same blocks in a frame that says they are independent */
	check_damaged(CODING_LZ4,
		      "04224d186440a7" LZ4_BLOCK "0a0000000f72005a503b20656e640000000033e48244");
}

static void a_frame_may_not_refer_to_the_frame_before(void **state)
{
	(void)state;
	check_damaged(CODING_LZ4, LZ4_CHECKED "04224d1840"
					      "40c0"
					      "0a0000000f72005a503b20656e6400000000");
}

static void frames_are_joined_and_skippable_parts_skipped(void **state)
{
	(void)state;
	check_means(CODING_LZ4, "522a4d1803000000616263" LZ4_CHECKED LZ4_CHECKED, TEXT TEXT);
	check_means(CODING_SNAPPY_FRAMED,
		    SNAPPY_ID "fe020000aaaa" SNAPPY_CHUNK "800000"
			      "00" SNAPPY_ID SNAPPY_CHUNK,
		    TEXT TEXT);
}

static void damaged_snappy_frames_are_errors(void **state)
{
	(void)state;
	static const char *const streams[] = {
		SNAPPY_CHUNK,
		SNAPPY_ID "00250000ec1b4bf0" SNAPPY_BLOCK, /* checksum */
		SNAPPY_ID "00260000eb1b4bf0" SNAPPY_BLOCK, /* length */
		SNAPPY_ID "00030000aabbcc",                /* no room for the checksum */
		SNAPPY_ID "02010000aa",                    /* reserved, not skippable */
		SNAPPY_ID "ff060000734e61507058",
		SNAPPY_ID "000000",
		/* a chunk that states 65537 bytes */
		SNAPPY_ID "000b000000000000818004fe0100fe0100",
		SNAPPY_ID,
	};
	for (size_t i = 0; i + 1 < sizeof streams / sizeof *streams; i++)
		check_damaged(CODING_SNAPPY_FRAMED, streams[i]);
	check_means(CODING_SNAPPY_FRAMED, SNAPPY_ID, "");
	check_damaged(CODING_SNAPPY_FRAMED, "");
}

static void damaged_lz4_frames_are_errors(void **state)
{
	(void)state;
	static const char *const streams[] = {
		"02214c18",                                 /* the legacy format */
		LZ4_HEAD,                                   /* no block */
		"04224d187c41720000000000000058" LZ4_BLOCK, /* reserved bit */
		"04224d183c40720000000000000058" LZ4_BLOCK, /* version 0 */
		"04224d187c40720000000000000059" LZ4_BLOCK, /* checksum of the header */
		"04224d18604082"
		"05000100"
		"00000000", /* longer than a block */
		"04224d18604082"
		"0100000010"
		"00000000", /* no sequence */
		LZ4_HEAD LZ4_BLOCK "ab832a19000000007fad0ba4",
		LZ4_HEAD LZ4_BLOCK "aa832a190000000080ad0ba4",
		"522a4d1804000000616263",
	};
	for (size_t i = 0; i < sizeof streams / sizeof *streams; i++)
		check_damaged(CODING_LZ4, streams[i]);
}

/* A size that is stated, and that the body cannot have, allocates nothing. */
static void stated_sizes_are_only_claims(void **state)
{
	(void)state;
	struct bytes packed = of_hex("ffffffff0f0061"), out;
	enum error_kind kind;
	assert_true(compress_stated_size(CODING_SNAPPY, bytes_view(&packed)) == UINT32_MAX);
	assert_false(inflates(CODING_SNAPPY, bytes_view(&packed), 1000 * MIB, &out, &kind));
	assert_int_equal(kind, ERROR_INVALID);
	assert_int_equal(out.room, 0);
	bytes_fini(&packed);
	check_kind(CODING_SNAPPY, SNAPPY_BLOCK, 113, ERROR_TOO_LARGE);
	check_kind(CODING_LZ4, LZ4_CHECKED, 113, ERROR_TOO_LARGE);
}

static void an_lz4_frame_with_a_false_size_is_an_error(void **state)
{
	(void)state;
	struct bytes plain = sample(1000), packed = deflated(CODING_LZ4, &plain), out;
	enum error_kind kind;
	/* magic, FLG with the content size, BD, eight bytes of size, checksum */
	assert_true(packed.at[4] & 0x08);
	packed.at[6]++;
	packed.at[14] = (uint8_t)(hash_xxh32(packed.at + 4, 10) >> 8);
	assert_false(inflates(CODING_LZ4, bytes_view(&packed), MIB, &out, &kind));
	assert_int_equal(kind, ERROR_INVALID);
	bytes_fini(&out);
	packed.at[13] = 0x7f;
	packed.at[14] = (uint8_t)(hash_xxh32(packed.at + 4, 10) >> 8);
	assert_false(inflates(CODING_LZ4, bytes_view(&packed), MIB, &out, &kind));
	assert_int_equal(kind, ERROR_TOO_LARGE);
	assert_true(out.room < 10000);
	bytes_fini(&out);
	bytes_fini(&packed);
	bytes_fini(&plain);
}

static void every_flipped_bit_of_an_lz4_frame_is_noticed(void **state)
{
	(void)state;
	struct bytes packed = of_hex(LZ4_CHECKED), out;
	for (size_t i = 0; i < packed.len * 8; i++) {
		enum error_kind kind;
		packed.at[i / 8] ^= (uint8_t)(1 << i % 8);
		assert_false(inflates(CODING_LZ4, bytes_view(&packed), MIB, &out, &kind));
		packed.at[i / 8] ^= (uint8_t)(1 << i % 8);
		bytes_fini(&out);
	}
	bytes_fini(&packed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(others_streams_are_read),
		cmocka_unit_test(linked_lz4_blocks_refer_to_the_blocks_before),
		cmocka_unit_test(a_frame_may_not_refer_to_the_frame_before),
		cmocka_unit_test(frames_are_joined_and_skippable_parts_skipped),
		cmocka_unit_test(damaged_snappy_frames_are_errors),
		cmocka_unit_test(damaged_lz4_frames_are_errors),
		cmocka_unit_test(stated_sizes_are_only_claims),
		cmocka_unit_test(an_lz4_frame_with_a_false_size_is_an_error),
		cmocka_unit_test(every_flipped_bit_of_an_lz4_frame_is_noticed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
