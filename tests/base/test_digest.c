/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/digest.h"

static void hmac_is(struct view secret, const char *data, const char *expected)
{
	struct digest_key key;
	uint8_t digest[DIGEST_SIZE];
	char hex[2 * DIGEST_SIZE + 1] = { 0 };
	digest_key_init(&key, secret);
	for (int again = 0; again < 2; again++) {
		digest_hmac(&key, view_of(data), digest);
		digest_hex(digest, sizeof digest, hex);
		assert_string_equal(hex, expected);
	}
}

/* RFC 4231, test cases 1, 2 and 6: keys that are short, and longer than a block. */
static void hmacs_are_those_of_the_rfc(void **state)
{
	(void)state;
	uint8_t secret[131];
	memset(secret, 0x0b, 20);
	hmac_is((struct view){ secret, 20 }, "Hi There",
		"b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
	hmac_is(view_of("Jefe"), "what do ya want for nothing?",
		"5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	memset(secret, 0xaa, sizeof secret);
	hmac_is((struct view){ secret, sizeof secret },
		"Test Using Larger Than Block-Size Key - "
		"Hash Key First",
		"60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

/* FIPS 202 and RFC 4231, test case 2. */
static void others_are_those_of_their_standards(void **state)
{
	(void)state;
	uint8_t digest[DIGEST_MAX];
	char hex[2 * DIGEST_MAX + 1] = { 0 };
	digest_sha3_256(view_of(""), digest);
	digest_hex(digest, DIGEST_SIZE, hex);
	assert_string_equal(hex,
			    "a7ffc6f8bf1ed76651c14756a061d662f580ff4de43b49fa82d80a4b80f8434a");
	digest_hmac_sha512(view_of("Jefe"), view_of("what do ya want for nothing?"), digest);
	digest_hex(digest, DIGEST_SHA512_SIZE, hex);
	assert_string_equal(hex,
			    "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554"
			    "9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hmacs_are_those_of_the_rfc),
		cmocka_unit_test(others_are_those_of_their_standards),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
