/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/fuzz/fuzz_tokens.h"

/* The cases of RFC 8259, and that yajl sees them as we do. NUL bytes are written as '@'. */
static const char *const valid[] = {
	"{}",
	"[]",
	" \t\r\n[ \t\r\n] \t\r\n",
	"{ \"a\" : 1 , \"b\" : [ ] }",
	"{\"\":0}",
	"{\"a\":1,\"a\":2,\"a\":{\"a\":[]}}",
	"[[],[[]],{}]",
	"[null,true,false,\"\",0]",
	/* numbers: never converted, so there is no range */
	"[0,-0,1,-1,10,123456789012345678901234567890]",
	"[0.0,0.10,-1.5,1e0,1E+00,1e-999999,0e9,1.0e10]",
	"[1\n,2\t, 3 ]",
	"[1234567,12345678,123456789,1234567890123456,9999999999999999999,1]",
	"[\"1234567\",\"12345678\",\"1234567890123456\",\"007\",\"\",\"1 \",1]",
	/* strings */
	"[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"]",
	"[\"\\u0000\\u001f\\u0022\\u005C\\uffff\\uFFFE\"]",
	"[\"\\ud83d\\ude00\\uD800\\uDC00\\udbff\\udfff\"]",
	"{\"\\u0061\\n\":\"\\u0062\"}",
	"[\"\x7f\"]",
	"[\"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80\"]",
	"[\"\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf\xf0\x90\x80\x80"
	"\xf4\x8f\xbf\xbf\"]",
	"[\"\xe2\x80\xa8\xef\xbb\xbf\xef\xbf\xbe\"]", /* separators, BOM, no character */
	"[\"[{,:}]// /* \",\"'\"]",
	"[\"0123456789abcde\",\"0123456789abcdef\",\"0123456789abcdefg\"]",
	/* implementation-defined: a half of a pair is U+FFFD */
	"[\"\\ud800\",\"\\udc00\",\"\\ud800\\ud800\\udc00\",\"\\ud800x\",\"\\ud800\\n\"]",
	"[\"\\ud800\\u0041\",\"\\udc00\\ud800\",\"\\ud83d\\\\ude00\"]",
};

static const char *const invalid[] = {
	/* not one object or array */
	"",
	" ",
	"1",
	"\"a\"",
	"null",
	"{}{}",
	"[] []",
	"[],",
	"{}]",
	"[1]x",
	"[1]@",
	"@[1]",
	"x[1]",
	"\xef\xbb\xbf[1]",
	"\xff\xfe[\0]\0",
	/* truncated */
	"{",
	"[",
	"[1",
	"[1,",
	"[1,2",
	"[\"a",
	"[\"a\\",
	"[\"a\\\"",
	"[\"a\\\"]",
	"[\"a\\u12",
	"[\"a\\u123]",
	"[\"\\ud800\\u]",
	"[\"\xf0\x9f]",
	"{\"a",
	"{\"a\"",
	"{\"a\":",
	"{\"a\":1",
	"{\"a\":[1]",
	"{\"a\":{}",
	"[[]",
	"[tru",
	"[-",
	/* structure */
	"[1,]",
	"[,1]",
	"[,]",
	"[1,,2]",
	"[1 2]",
	"[1;2]",
	"[}",
	"{]",
	"[1}",
	"{\"a\":1]",
	"{\"a\":1,}",
	"{,\"a\":1}",
	"{\"a\"}",
	"{\"a\":}",
	"{\"a\",1}",
	"{\"a\" 1}",
	"{\"a\"::1}",
	"{\"a\":1:2}",
	"{:1}",
	"{a:1}",
	"{'a':1}",
	"{1:1}",
	"{null:1}",
	"{[]:1}",
	"{\"a\":1 \"b\":2}",
	/* words */
	"[nul]",
	"[nulll]",
	"[Null]",
	"[TRUE]",
	"[fals e]",
	"[undefined]",
	"[NaN]",
	"[Infinity]",
	"[-Infinity]",
	/* numbers */
	"[01]",
	"[-01]",
	"[00]",
	"[+1]",
	"[-]",
	"[--1]",
	"[- 1]",
	"[1.]",
	"[.5]",
	"[-.5]",
	"[1.e1]",
	"[1e]",
	"[1e+]",
	"[1e1.5]",
	"[1E 5]",
	"[0x10]",
	"[1_000]",
	"[1a]",
	"[1-]",
	"[1.2.3]",
	"[1\"]",
	"[\xd9\xa1]", /* a digit, but not of ASCII */
	/* strings */
	"['a']",
	"[\"\\x41\"]",
	"[\"\\a\"]",
	"[\"\\0\"]",
	"[\"\\'\"]",
	"[\"\\ \"]",
	"[\"\\\n\"]",
	"[\"\\U0041\"]",
	"[\"\\u12g4\"]",
	"[\"\\u+123\"]",
	"[\"\\u 123\"]",
	"[\"\\u123\"]",
	"[\"\\u\"]",
	"[\"\n\"]",
	"[\"\t\"]",
	"[\"\x1f\"]",
	"[\"a@b\"]",
	"[\"a\"b]",
	/* not UTF-8 */
	"[\"\x80\"]",
	"[\"\xbf\"]",
	"[\"\xc3\"]",
	"[\"\xc0\xaf\"]",
	"[\"\xc1\xbf\"]",
	"[\"\xe0\x9f\xbf\"]",
	"[\"\xe2\x82\"]",
	"[\"\xed\xa0\x80\"]",
	"[\"\xed\xbf\xbf\"]",
	"[\"\xf0\x8f\xbf\xbf\"]",
	"[\"\xf0\x9f\x98\"]",
	"[\"\xf4\x90\x80\x80\"]",
	"[\"\xf5\x80\x80\x80\"]",
	"[\"\xff\"]",
	"[\"\xc3\\n\"]",
	"{\"\xc3\":1}",
	"[\xc3\xbc]",
	/* white space */
	"[1\v]",
	"[\f1]",
	"[\xc2\xa0]",
	"[\xe2\x80\xa8]",
	"\v[1]",
	"[1]\f",
	"[@1]",
	/* extensions */
	"[1] // no",
	"[1] /* no */",
	"/* no */ [1]",
	"[1 /* no */]",
	"[1 // no\n]",
	"[1 # no\n]",
	"{\"a\":\"b\" \"c\"}",
	"{\"a\"=1}",
};

enum { LEN_MAX = 4096 };

static size_t document_of(const char *written, char *document)
{
	size_t len = strlen(written);
	for (size_t i = 0; i < len; i++)
		document[i] = written[i] == '@' ? 0 : written[i];
	return len;
}

static void valid_documents_have_the_tokens_of_yajl(void **state)
{
	char document[LEN_MAX];
	(void)state;
	for (size_t i = 0; i < sizeof valid / sizeof *valid; i++)
		if (!tokens_check(document, document_of(valid[i], document)))
			fail_msg("%s was not read", valid[i]);
}

static void invalid_documents_are_refused_as_by_yajl(void **state)
{
	char document[LEN_MAX];
	(void)state;
	for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++)
		if (tokens_check(document, document_of(invalid[i], document)))
			fail_msg("%s was read", invalid[i]);
}

static void every_front_of_a_document_is_truncated(void **state)
{
	char document[LEN_MAX];
	(void)state;
	for (size_t i = 0; i < sizeof valid / sizeof *valid; i++) {
		size_t len = document_of(valid[i], document);
		while (len && strchr(" \t\r\n", document[len - 1]))
			len--;
		while (len)
			assert_false(tokens_check(document, --len));
	}
}

static void depth_is_limited_to_the_level(void **state)
{
	char document[LEN_MAX];
	(void)state;
	for (size_t depth = TOKENS_DEPTH - 1; depth <= TOKENS_DEPTH + 1; depth++) {
		memset(document, '[', depth);
		memset(document + depth, ']', depth);
		assert_int_equal(tokens_check(document, 2 * depth), depth <= TOKENS_DEPTH);
		memset(document, '[', 2 * depth);
		assert_false(tokens_check(document, 2 * depth));
	}
}

static uint32_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005 + 1442695040888963407;
	return (uint32_t)(*seed >> 33);
}

/* Changes, removes, inserts or repeats some bytes. */
static size_t mutate(char *document, size_t len, uint64_t *seed)
{
	static const char often[] = "\"\\{}[],:0123456789eE+-.untrflsa/ \n\x80\xc3\xed\xa0";
	size_t at = next_random(seed) % (len + 1);
	char byte = next_random(seed) % 8 ? often[next_random(seed) % (sizeof often - 1)]
					  : (char)next_random(seed);
	switch (next_random(seed) % 4) {
	case 0:
		document[at < len ? at : 0] = byte;
		return len;
	case 1:
		memmove(document + at, document + at + (at < len), len - at);
		return len - (at < len);
	case 2:
		memmove(document + at + 1, document + at, len - at);
		document[at] = byte;
		return len + 1;
	default:
		memmove(document + len, document + at, len - at);
		return len + (len - at);
	}
}

static void changed_documents_are_seen_as_by_yajl(void **state)
{
	uint64_t seed = 7;
	uint32_t read = 0, refused = 0;
	char document[LEN_MAX];
	(void)state;
	for (int round = 0; round < 3000; round++)
		for (size_t i = 0; i < sizeof valid / sizeof *valid; i++) {
			size_t len = document_of(valid[i], document);
			uint32_t times = next_random(&seed) % 3;
			for (uint32_t n = 0; n < times && len; n++)
				len = mutate(document, len, &seed);
			bool ok = tokens_check(document, len);
			read += ok;
			refused += !ok;
		}
	assert_true(read > 20000 && refused > 20000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(valid_documents_have_the_tokens_of_yajl),
		cmocka_unit_test(invalid_documents_are_refused_as_by_yajl),
		cmocka_unit_test(every_front_of_a_document_is_truncated),
		cmocka_unit_test(depth_is_limited_to_the_level),
		cmocka_unit_test(changed_documents_are_seen_as_by_yajl),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
