/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "net/peer_count.h"

static bool same(const char *a, const char *b)
{
	return peer_key_equal(peer_key_of_address(a), peer_key_of_address(b));
}

static void an_ipv6_host_is_one_peer_whatever_of_its_network_it_uses(void **state)
{
	(void)state;
	assert_true(same("2001:db8:1:2::1", "2001:0db8:1:2:ffff::7"));
	assert_false(same("2001:db8:1:2::1", "2001:db8:1:3::1"));
	assert_false(same("10.0.0.1", "10.0.0.2"));
	assert_true(same(NULL, ""));
	assert_false(same(NULL, "10.0.0.1"));
}

static void an_identity_is_no_address(void **state)
{
	char longer[1000];
	(void)state;
	memset(longer, 'x', sizeof longer);
	longer[999] = '\0';
	struct hash128 whole = peer_key_of_identity(longer);
	assert_true(peer_key_equal(whole, peer_key_of_identity(longer)));
	longer[998] = 'y';
	assert_false(peer_key_equal(whole, peer_key_of_identity(longer)));
	assert_false(
		peer_key_equal(peer_key_of_address("10.0.0.1"), peer_key_of_identity("10.0.0.1")));
}

static void a_peer_has_as_many_as_it_may(void **state)
{
	struct peer_count *count = peer_count_new();
	struct hash128 a = peer_key_of_address("10.0.0.1"), b = peer_key_of_address("10.0.0.2");
	(void)state;
	assert_int_equal(peer_count_add(count, a, 2), 1);
	assert_int_equal(peer_count_add(count, a, 2), 2);
	assert_int_equal(peer_count_add(count, a, 2), 0);
	assert_int_equal(peer_count_add(count, b, 2), 1);
	peer_count_remove(count, a);
	assert_int_equal(peer_count_add(count, a, 2), 2);
	assert_int_equal(peer_count_add(count, a, 0), 3); /* no limit */
	peer_count_remove(count, b);
	for (int i = 0; i < 3; i++)
		peer_count_remove(count, a);
	peer_count_unref(&count);
	assert_null(count);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_ipv6_host_is_one_peer_whatever_of_its_network_it_uses),
		cmocka_unit_test(an_identity_is_no_address),
		cmocka_unit_test(a_peer_has_as_many_as_it_may),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
