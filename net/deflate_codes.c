/* SPDX-License-Identifier: Apache-2.0 */
#include "net/deflate_codes.h"

#include <assert.h>
#include <isa-l/igzip_lib.h>
#include <pthread.h>

enum { LITERALS = ISAL_DEF_LIT_LEN_SYMBOLS, DISTANCES = ISAL_DEF_DIST_SYMBOLS, LONGEST = 15 };

/*
 * How many bits each symbol is worth, a hexadecimal digit each: -log2 of its share. First the
 * literals, the end of a block and the lengths, then the distances. Printed by
 * tests/support/deflate_codes_tool.
 */
static const char weights[DEFLATE_CODES][LITERALS + DISTANCES + 1] = {
	"8667777857688888586999997969999989799999886a986777787878888aaaaa9999999a999a999a9a999aaaa9aabab7a676757786a877667a66678998abbbbb8a9a99aa9aaaaaaa99a9aaaaa9aaaaaa9aaaa9aaaaaaaaaaaaaaaaaaaaaaaaaa9aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa9aaaaaaaaaaaaaaaaaaaaaaaaaaabc55566677889899999aaaacbbcc9ccbca54443544444445555656676789",
	"76666767575888884868888868589898797999999989988877777777778aaaaaa9999aaa9a9aaa9aa9aaaaaaa9aababaa877867998a989888a8889aaa9abbbbb7999999999999999999999999999999a9a9a999999999999999999a99a99a999999999999999a99a9999999999a9a999999a999a9a999a999a999999aa9999a99c5556677899a9bbbbcccccccccc9ccbcc54432545454555566767777889",
	"abbab9b9a9a8a9999999a9aaaaaaabaa9aaababb774aa85687888989999aabab9998998999ba99998b989aa9bababbb6b575646675a856555a55568887abcbbcccccbccccccccccbccbccccccccbcccccccbccccccccccccccccccbcccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccac55666777788777788999acbbccccc9ca76554444344445455555666779",
};

static struct isal_hufftables codes[DEFLATE_CODES];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static uint64_t frequency(char digit)
{
	return UINT64_C(1) << (LONGEST - (digit <= '9' ? digit - '0' : digit - 'a' + 10));
}

static void make_codes(void)
{
	for (unsigned c = 0; c < DEFLATE_CODES; c++) {
		struct isal_huff_histogram histogram = { 0 };
		for (unsigned i = 0; i < LITERALS; i++)
			histogram.lit_len_histogram[i] = frequency(weights[c][i]);
		for (unsigned i = 0; i < DISTANCES; i++)
			histogram.dist_histogram[i] = frequency(weights[c][LITERALS + i]);
		int failed = isal_create_hufftables(&codes[c], &histogram);
		assert(!failed);
		(void)failed;
	}
}

struct isal_hufftables *deflate_code(enum deflate_code code)
{
	pthread_once(&once, make_codes);
	return &codes[code];
}
