/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "net/compress.h"
#include "profile/pprof/decode_pprof.h"
#include "tests/support/corpus.h"

/* Real pprofs, truncated at any byte: rejected with a reason, or complete without the missing part.
 * No read past the end. */
enum { FILE_MOST = 16384, INFLATED_MOST = 1 << 20 };

static struct profiles p;

static void decode_cut(struct view cut)
{
	struct error err = { 0 };
	assert_true(profiles_reset(&p, NULL, cut, (size_t)INFLATED_MOST * 64));
	if (!decode_pprof(&p, p.input, NULL, &err)) {
		assert_int_equal(err.kind, ERROR_INVALID);
		assert_true(strncmp(err.text, "pprof: ", 7) == 0);
	}
}

static void inflate_cut(struct view cut)
{
	struct error err = { 0 };
	struct bytes out;
	bytes_init(&out, INFLATED_MOST);
	if (bytes_reserve(&out, 1) && !compress_inflate(compress_sniff(cut), cut, &out, &err))
		assert_int_equal(err.kind, ERROR_INVALID);
	bytes_fini(&out);
}

static void cut_inflated(const char *name, struct view file)
{
	struct error err = { 0 };
	struct bytes out;
	bytes_init(&out, INFLATED_MOST);
	assert_true(bytes_reserve(&out, 1));
	if (compress_inflate(compress_sniff(file), file, &out, &err))
		corpus_cut(bytes_view(&out), decode_cut);
	else
		assert_non_null(strstr(name, "broken"));
	bytes_fini(&out);
}

static void cut_compressed(const char *name, struct view file)
{
	(void)name;
	if (compress_sniff(file) != CODING_IDENTITY)
		corpus_cut(file, inflate_cut);
}

static void real_pprofs_cut_at_any_byte_are_harmless(void **state)
{
	(void)state;
	if (!corpus_each("pprof", FILE_MOST, cut_inflated))
		skip();
}

static void malformed_files_cut_at_any_byte_are_harmless(void **state)
{
	(void)state;
	if (!corpus_each("malformed", FILE_MOST, cut_inflated))
		skip();
}

static void compressed_files_cut_at_any_byte_are_harmless(void **state)
{
	(void)state;
	if (!corpus_each("pprof", FILE_MOST, cut_compressed))
		skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(real_pprofs_cut_at_any_byte_are_harmless),
		cmocka_unit_test(malformed_files_cut_at_any_byte_are_harmless),
		cmocka_unit_test(compressed_files_cut_at_any_byte_are_harmless),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	profiles_fini(&p);
	return failed;
}
