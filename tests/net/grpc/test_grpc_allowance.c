/* SPDX-License-Identifier: Apache-2.0 */
#include "net/grpc/grpc_allowance.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"

/* The socket mutator in the form in which core calls it: the argument of the channel points to it,
 * and its second word is the reference count. */
struct usage {
	int fd, usage;
};
struct functions {
	void *unused[3];
	bool (*mutate_for)(const struct usage *usage, void *mutator);
};

static bool connect_socket(struct grpc_allowance *a, int fd)
{
	void *mutator = grpc_allowance_argument(a).value.pointer.p;
	const struct functions *functions = *(const struct functions **)mutator;
	return functions->mutate_for(&(struct usage){ fd, 0 }, mutator);
}

static struct grpc_allowance *make(void)
{
	struct error err = { 0 };
	struct grpc_allowance *a = grpc_allowance_new(&err);
	assert_non_null(a);
	return a;
}

enum { PART = 1 << 14 };

/* Sends `parts` times PART bytes; returns the number of bytes received. */
static size_t receive(const int sockets[2], unsigned parts)
{
	static char buffer[PART];
	size_t got = 0;
	for (unsigned i = 0; i < parts; i++) {
		struct iovec into = { buffer, sizeof buffer };
		struct msghdr message = { .msg_iov = &into, .msg_iovlen = 1 };
		assert_int_equal(write(sockets[0], buffer, sizeof buffer), sizeof buffer);
		ssize_t n = recvmsg(sockets[1], &message, 0);
		if (n < 0)
			assert_int_equal(errno, ECONNRESET);
		else
			got += (size_t)n;
	}
	return got;
}

static void pair_of(int sockets[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
}

static void close_both(const int sockets[2])
{
	close(sockets[0]);
	close(sockets[1]);
}

static void no_more_is_received_than_is_allowed(void **state)
{
	(void)state;
	int sockets[2];
	struct grpc_allowance *a = make();
	pair_of(sockets);
	assert_true(connect_socket(a, sockets[1]));
	assert_int_equal(receive(sockets, 100), GRPC_ALLOWANCE_MAX);
	assert_int_equal(grpc_allowance_overruns(a), 1);
	assert_false(connect_socket(a, sockets[1])); /* the pause */
	grpc_allowance_unref(&a);
	assert_null(a);
	close_both(sockets);
}

static void what_is_in_flight_replies_and_time_add_to_it(void **state)
{
	(void)state;
	enum { REQUEST = 4 * PART * GRPC_ALLOWANCE_SHARE };
	int sockets[2];
	struct grpc_allowance *a = make();
	pair_of(sockets);
	assert_true(connect_socket(a, sockets[1]));
	grpc_allowance_begin(a, REQUEST);
	assert_int_equal(receive(sockets, 4), 4 * PART); /* the allowance of the call itself */
	grpc_allowance_end(a, REQUEST, true);
	assert_int_equal(receive(sockets, 8), GRPC_ALLOWANCE_MAX);
	grpc_allowance_begin(a, 0);
	grpc_allowance_end(a, 0, true);
	assert_int_equal(receive(sockets, 2), GRPC_ALLOWANCE_REPLY);
	for (int i = 0; i < PART / GRPC_ALLOWANCE_TICK; i++)
		grpc_allowance_tick(a);
	assert_int_equal(receive(sockets, 1), PART);
	assert_int_equal(grpc_allowance_overruns(a), 0);
	assert_int_equal(receive(sockets, 1), 0);
	assert_int_equal(grpc_allowance_overruns(a), 1);
	grpc_allowance_unref(&a);
	close_both(sockets);
}

static void calls_that_nobody_answers_add_nothing(void **state)
{
	(void)state;
	int sockets[2];
	struct grpc_allowance *a = make();
	pair_of(sockets);
	assert_true(connect_socket(a, sockets[1]));
	assert_int_equal(receive(sockets, 2), 2 * PART);
	for (int i = 0; i < 1000; i++) {
		grpc_allowance_begin(a, 1 << 20);
		grpc_allowance_end(a, 1 << 20, false);
	}
	assert_int_equal(receive(sockets, 100), GRPC_ALLOWANCE_MAX - 2 * PART);
	grpc_allowance_unref(&a);
	close_both(sockets);
}

static void it_does_not_pile_up(void **state)
{
	(void)state;
	int sockets[2];
	struct grpc_allowance *a = make();
	pair_of(sockets);
	assert_true(connect_socket(a, sockets[1]));
	for (int i = 0; i < 1000; i++) {
		grpc_allowance_begin(a, 1 << 20);
		grpc_allowance_tick(a);
		grpc_allowance_end(a, 1 << 20, true);
	}
	assert_int_equal(receive(sockets, 100), GRPC_ALLOWANCE_MAX);
	grpc_allowance_unref(&a);
	close_both(sockets);
}

/* Core closes its descriptors without notice. The next owner of the number is not limited, and does
 * not use up the client's allowance. */
static void a_descriptor_that_somebody_else_got_is_let_alone(void **state)
{
	(void)state;
	int first[2], second[2];
	struct grpc_allowance *a = make();
	pair_of(first);
	assert_true(connect_socket(a, first[1]));
	pair_of(second);
	assert_int_equal(dup2(second[1], first[1]), first[1]);
	const int mixed[2] = { second[0], first[1] };
	assert_int_equal(receive(mixed, 100), 100 * PART);
	assert_int_equal(grpc_allowance_overruns(a), 0);
	grpc_allowance_unref(&a);
	close_both(first);
	close_both(second);
}

static void sockets_that_were_not_registered_are_not_bounded(void **state)
{
	(void)state;
	int sockets[2];
	struct grpc_allowance *a = make();
	pair_of(sockets);
	assert_int_equal(receive(sockets, 100), 100 * PART);
	grpc_allowance_unref(&a);
	close_both(sockets);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_more_is_received_than_is_allowed),
		cmocka_unit_test(what_is_in_flight_replies_and_time_add_to_it),
		cmocka_unit_test(calls_that_nobody_answers_add_nothing),
		cmocka_unit_test(it_does_not_pile_up),
		cmocka_unit_test(a_descriptor_that_somebody_else_got_is_let_alone),
		cmocka_unit_test(sockets_that_were_not_registered_are_not_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
