/* SPDX-License-Identifier: Apache-2.0 */
#include "net/client_socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

static ssize_t send_plainly(int fd)
{
	return send(fd, "more", 4, MSG_NOSIGNAL);
}

static ssize_t send_parts(int fd)
{
	struct iovec parts[] = { { (char *)"mo", 2 }, { (char *)"re", 2 } };
	return sendmsg(fd, &(struct msghdr){ .msg_iov = parts, .msg_iovlen = 2 }, MSG_NOSIGNAL);
}

enum { UNWATCHED = -1 };

/* A connection over loopback whose server has said "why" and then reset it. Returns the client's
 * end. */
static int make_reset(int way)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof at;
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &size), 0);
	assert_true(way == UNWATCHED || client_socket_watch(client, way));
	assert_int_equal(connect(client, (struct sockaddr *)&at, sizeof at), 0);
	int server = accept(listener, NULL, NULL);
	assert_int_equal(write(server, "why", 3), 3);
	setsockopt(server, SOL_SOCKET, SO_LINGER, &(struct linger){ 1, 0 }, sizeof(struct linger));
	close(server);
	close(listener);
	poll(&(struct pollfd){ .fd = client }, 1, -1); /* the reset has arrived */
	return client;
}

static void a_reset_follows_what_the_server_has_said(void **state)
{
	static ssize_t (*const ways[])(int fd) = { send_plainly, send_parts };
	char data[8];
	(void)state;
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		int fd = make_reset(CLIENT_SOCKET_DONE);
		assert_int_equal(ways[i](fd), 4);
		assert_int_equal(ways[i](fd), 4);
		assert_int_equal(recv(fd, data, sizeof data, 0), 3);
		assert_memory_equal(data, "why", 3);
		errno = 0;
		assert_int_equal(recv(fd, data, sizeof data, 0), -1);
		assert_int_equal(errno, ECONNRESET);
		close(fd);
	}
}

/* What an edge-triggered epoll reports. */
static int woken(int epoll)
{
	struct epoll_event event;
	return epoll_wait(epoll, &event, 1, 0) == 1 ? (int)event.events & (EPOLLIN | EPOLLOUT) : 0;
}

static void a_write_blocks_while_the_reader_has_something_to_read(void **state)
{
	char data[8];
	(void)state;
	int fd = make_reset(CLIENT_SOCKET_BLOCKS), epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event edges = { .events = EPOLLIN | EPOLLOUT | EPOLLET };
	assert_return_code(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &edges), errno);
	assert_int_equal(woken(epoll), EPOLLIN | EPOLLOUT);
	assert_int_equal(woken(epoll), 0);
	assert_int_equal(send_parts(fd), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(woken(epoll), EPOLLIN | EPOLLOUT);
	assert_int_equal(recv(fd, data, sizeof data, 0), 3);
	assert_int_equal(send_parts(fd), -1);
	assert_int_equal(errno, ECONNRESET);
	assert_int_equal(recv(fd, data, sizeof data, 0), -1);
	assert_int_equal(errno, ECONNRESET);
	close(epoll);
	close(fd);
}

static void a_write_fails_at_last_if_nobody_reads(void **state)
{
	int fd = make_reset(CLIENT_SOCKET_BLOCKS);
	(void)state;
	for (int i = 0; i < CLIENT_SOCKET_BLOCKS_MAX; i++) {
		assert_int_equal(send_parts(fd), -1);
		assert_int_equal(errno, EAGAIN);
	}
	assert_int_equal(send_parts(fd), -1);
	assert_int_equal(errno, ECONNRESET);
	close(fd);
}

static void others_are_as_they_were(void **state)
{
	char data[8];
	(void)state;
	int fd = make_reset(UNWATCHED);
	assert_int_equal(send_plainly(fd), -1);
	assert_int_equal(errno, ECONNRESET);
	assert_int_equal(send_parts(fd), -1);
	assert_int_equal(errno, EPIPE);
	assert_int_equal(recv(fd, data, sizeof data, 0), 3);
	assert_int_equal(recv(fd, data, sizeof data, 0), 0);
	close(fd);
}

/* The number of a closed descriptor is given to the next one. */
static void another_socket_with_the_same_number_is_not_watched(void **state)
{
	(void)state;
	int first = make_reset(CLIENT_SOCKET_DONE);
	assert_true(client_socket_is_watched(first));
	int other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(dup2(other, first), first);
	assert_false(client_socket_is_watched(first));
	close(first);
	assert_false(client_socket_is_watched(first));
	close(other);
	assert_false(client_socket_watch(CLIENT_SOCKETS_MAX, CLIENT_SOCKET_DONE));
	assert_false(client_socket_watch(-1, CLIENT_SOCKET_DONE));
	assert_false(client_socket_is_watched(CLIENT_SOCKETS_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reset_follows_what_the_server_has_said),
		cmocka_unit_test(a_write_blocks_while_the_reader_has_something_to_read),
		cmocka_unit_test(a_write_fails_at_last_if_nobody_reads),
		cmocka_unit_test(others_are_as_they_were),
		cmocka_unit_test(another_socket_with_the_same_number_is_not_watched),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
