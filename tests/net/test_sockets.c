/* SPDX-License-Identifier: Apache-2.0 */
#include "net/sockets.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

static const _Atomic uint64_t one = 1, two = 2;

static int listening(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_return_code(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
	assert_return_code(listen(fd, 4), 0);
	return fd;
}

static int port_of(int fd)
{
	struct sockaddr_in at;
	socklen_t len = sizeof at;
	assert_return_code(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	return ntohs(at.sin_port);
}

static bool connects(int port)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool ok = connect(fd, (struct sockaddr *)&at, sizeof at) == 0;
	close(fd);
	return ok;
}

static void a_socket_lives_until_its_last_owner_closes_it(void **state)
{
	(void)state;
	struct sockets *sockets = sockets_new();
	struct sockets_access first = { sockets, &one }, second = { sockets, &two };
	int fd = listening(), port = port_of(fd);
	assert_int_equal(sockets_share(&first, "a"), -1);
	sockets_add(&first, "a", fd);
	int shared = sockets_share(&second, "a");
	assert_int_equal(port_of(shared), port);
	assert_true(fcntl(shared, F_GETFD) & FD_CLOEXEC);
	assert_false(sockets_close(&first, "a", fd));
	assert_true(connects(port));
	assert_true(sockets_close(&second, "a", shared));
	assert_false(connects(port));
	assert_int_equal(sockets_share(&first, "a"), -1);
	sockets_unref(&sockets);
}

static void one_owner_never_shares_with_itself(void **state)
{
	(void)state;
	struct sockets *sockets = sockets_new();
	struct sockets_access first = { sockets, &one }, second = { sockets, &two };
	int fds[2] = { listening(), listening() };
	sockets_add(&first, "a", fds[0]);
	assert_int_equal(sockets_share(&first, "a"), -1);
	assert_int_equal(sockets_share(&second, "b"), -1);
	sockets_add(&first, "a", fds[1]);
	int shared[2] = { sockets_share(&second, "a"), sockets_share(&second, "a") };
	assert_int_not_equal(port_of(shared[0]), port_of(shared[1]));
	assert_int_equal(sockets_share(&second, "a"), -1);
	for (int i = 0; i < 2; i++) {
		sockets_close(&first, "a", fds[i]);
		sockets_close(&second, "a", shared[i]);
	}
	sockets_unref(&sockets); /* asserts that nothing is left */
}

static void without_a_table_sockets_are_private(void **state)
{
	(void)state;
	struct sockets_access none = { 0 };
	int fd = listening(), port = port_of(fd);
	sockets_add(&none, "a", fd);
	assert_int_equal(sockets_share(&none, "a"), -1);
	assert_true(sockets_close(&none, "a", fd));
	assert_false(connects(port));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_socket_lives_until_its_last_owner_closes_it),
		cmocka_unit_test(one_owner_never_shares_with_itself),
		cmocka_unit_test(without_a_table_sockets_are_private),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
