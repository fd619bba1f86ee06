/* SPDX-License-Identifier: Apache-2.0 */
#include "net/h2/private.h"

#include "base/clock.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <unistd.h>

#define PATIENCE_NS UINT64_C(2000000000) /* how long a new connection waits for memory */
/* An idle connection of this age has had its first request read. */
#define BARELY_IDLE_NS UINT64_C(10000000)

enum {
	ACCEPTS_PER_TURN = 64,
	SPARE_FDS = 16,
	RETRY_MS = 20,
	WAITING_MAX = 1024,
};

struct arrival { /* an accepted socket that is handed to its thread */
	struct io_post post;
	struct arrival *next; /* the next one that waits for memory */
	uint64_t since;       /* clock_now */
	struct h2_shard *shard;
	int fd;
	char address[64];
	struct hash128 key;
};

/* The first socket of an endpoint has the endpoint as its key, as for HTTP/1.1 servers, which have
 * only one. */
static char *address_name(const struct h2_server *s)
{
	size_t i = s->listeners.count;
	return i ? memory_format("%s %s#%zu", s->options.transport, s->options.endpoint, i)
		 : memory_format("%s %s", s->options.transport, s->options.endpoint);
}

/* True: the address is now free. */
static bool close_socket(struct h2_listener *l)
{
	bool last = sockets_close(&l->server->options.sockets, l->address, l->fd);
	memory_free(l->address);
	return last;
}

static bool listen_on(struct h2_server *s, const struct h2_address *address, struct error *err)
{
	int port = s->port;
	struct h2_listener *l = &s->listeners.at[s->listeners.count];
	char *name = address_name(s);
	int fd = sockets_share(&s->options.sockets, name);
	if (fd >= 0) {
		port = h2_address_port(fd);
	} else if ((fd = h2_address_listen(address, &port, err)) >= 0) {
		sockets_add(&s->options.sockets, name, fd);
	} else {
		memory_free(name);
		return false;
	}
	s->port = port;
	*l = (struct h2_listener){ .server = s, .fd = fd, .address = name };
	s->listeners.count++;
	return true;
}

bool h2_listeners_open(struct h2_server *s, struct error *err)
{
	bool ok = true;
	for (size_t i = 0; i < s->addresses.count && ok; i++) {
		ok = listen_on(s, &s->addresses.at[i], err);
		/* A name may have addresses of a family that this system does not support. */
		ok = ok || (errno == EAFNOSUPPORT &&
			    s->listeners.count + (s->addresses.count - i - 1) > 0);
	}
	for (size_t i = 0; i < s->listeners.count && !ok; i++)
		close_socket(&s->listeners.at[i]);
	return ok;
}

static void arrive(struct io_post *post)
{
	struct arrival *a = (struct arrival *)post;
	h2_connection_open(a->shard, a->fd, a->address, a->key);
	memory_free(a);
}

static int64_t connections_of(const void *server, uint32_t index)
{
	return atomic_load(&((const struct h2_server *)server)->shards[index].count);
}

/* Charges a new connection. If memory is short, idle connections are closed, on other threads a
 * little later. */
static bool afford(struct h2_server *s)
{
	const struct net_budget *budget = &s->options.budget;
	int64_t cost = h2_server_connection_cost(s);
	if (net_budget_hold(budget, cost))
		return true;
	h2_shard_close_idle(&s->shards[0], H2_IDLE_TO_CLOSE, H2_JUST_ANSWERED_NS, 0);
	h2_server_ask_to_close_idle(s, &s->shards[0], H2_JUST_ANSWERED_NS, 0);
	return net_budget_hold(budget, cost);
}

/* If memory is short, a peer's connections may hold only a little more than what is left for those
 * of other peers, and no idle connection is closed for a peer that has more. */
static bool may_enter(struct h2_server *s, struct hash128 key, enum h2_refusal *why)
{
	int64_t max = s->options.limits.max_connections_per_peer,
		room = net_budget_room(&s->options.budget);
	*why = H2_MAX_CONNECTIONS;
	if (atomic_load(&s->connections) >= s->options.limits.max_connections)
		return false;
	*why = H2_MAX_CONNECTIONS_PER_PEER;
	int64_t count = peer_count_add(s->peers, key, (uint32_t)max);
	if (!count)
		return false;
	bool over = count > (room > 0 ? room / h2_server_connection_cost(s) : 0) + H2_ALWAYS;
	*why = over ? H2_OVER_ITS_SHARE : H2_NO_MEMORY;
	if (!over && afford(s))
		return true;
	peer_count_remove(s->peers, key);
	return false;
}

static void admit(struct h2_server *s, struct arrival *a)
{
	a->shard = &s->shards[io_least_busy(s->options.io, IO_HTTP_2, connections_of, s)];
	a->post.run = arrive;
	atomic_fetch_add(&a->shard->count, 1);
	atomic_fetch_add(&s->connections, 1);
	h2_server_entered(s);
	if (io_here(a->shard->thread))
		arrive(&a->post);
	else
		io_post(a->shard->thread, &a->post);
}

static void refuse(struct h2_server *s, struct arrival *a, enum h2_refusal why)
{
	metric_add(s->counters.refused[why], 1);
	close(a->fd);
	memory_free(a);
}

/* False: it must wait for memory. */
static bool settle(struct h2_server *s, struct arrival *a, bool may_wait)
{
	enum h2_refusal why;
	bool enters = may_enter(s, a->key, &why);
	if (!enters && why == H2_NO_MEMORY && may_wait)
		return false;
	if (enters)
		admit(s, a);
	else
		refuse(s, a, why == H2_OVER_ITS_SHARE ? H2_NO_MEMORY : why);
	return true;
}

static void start_retrying(struct h2_server *s);

static struct arrival *arrival_new(int fd)
{
	struct arrival *a = memory_new(sizeof *a);
	int yes = 1;
	a->fd = fd;
	a->since = clock_now();
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes); /* fails for a unix socket */
	return a;
}

void h2_server_adopt(struct h2_server *s, int fd, const char *address)
{
	struct arrival *a = arrival_new(fd);
	snprintf(a->address, sizeof a->address, "%s", address);
	a->key = peer_key_of_address(a->address);
	admit(s, a);
}

/* Admits connections that wait for memory, in order of arrival. */
static void settle_waiting(struct h2_server *s, uint64_t patience_ns)
{
	uint64_t now = clock_now();
	struct arrival *a;
	while ((a = s->listeners.waiting)) {
		struct arrival *next = a->next;
		if (!settle(s, a, now - a->since < patience_ns))
			return;
		s->listeners.waiting = next;
		s->listeners.waiting_count--;
	}
	s->listeners.last_waiting = &s->listeners.waiting;
}

/* Before a connection is refused because too many wait, even connections that were answered a
 * moment ago are closed. Other threads take a moment for that, so they are asked before. */
static bool may_wait(struct h2_server *s)
{
	if (s->listeners.waiting_count >= WAITING_MAX / 2)
		h2_server_ask_to_close_idle(s, &s->shards[0], BARELY_IDLE_NS, 0);
	if (s->listeners.waiting_count == WAITING_MAX &&
	    h2_shard_close_idle(&s->shards[0], H2_IDLE_TO_CLOSE, BARELY_IDLE_NS, 0))
		settle_waiting(s, PATIENCE_NS);
	return s->listeners.waiting_count < WAITING_MAX;
}

/* [first I/O thread] */
static void take(struct h2_server *s, int fd, const struct sockaddr_storage *from)
{
	struct arrival *a = arrival_new(fd);
	h2_address_host(from, a->address, sizeof a->address);
	a->key = peer_key_of_address(a->address);
	settle_waiting(s, PATIENCE_NS);
	if (!s->listeners.waiting && settle(s, a, true))
		return;
	if (!may_wait(s)) {
		refuse(s, a, H2_NO_MEMORY);
		return;
	}
	*s->listeners.last_waiting = a;
	s->listeners.last_waiting = &a->next;
	s->listeners.waiting_count++;
	start_retrying(s);
}

static bool out_of_descriptors(int code)
{
	return code == EMFILE || code == ENFILE || code == ENOBUFS || code == ENOMEM;
}

static bool is_paused(const struct h2_server *s)
{
	for (size_t i = 0; i < s->listeners.count; i++)
		if (s->listeners.at[i].paused)
			return true;
	return false;
}

static void pause_accepting(struct h2_listener *l)
{
	struct h2_server *s = l->server;
	bool first = !is_paused(s);
	l->paused = true;
	uv_poll_stop(&l->poll);
	start_retrying(s);
	if (first)
		log_warn(s->options.log, "Out of file descriptors; not accepting connections "
					 "until some are free");
}

static void accept_ready(uv_poll_t *poll, int status, int events)
{
	struct h2_listener *l = poll->data;
	(void)status, (void)events;
	for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
		struct sockaddr_storage from = { 0 };
		socklen_t len = sizeof from;
		int fd = accept4(l->fd, (struct sockaddr *)&from, &len,
				 SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0)
			take(l->server, fd, &from);
		else if (out_of_descriptors(errno)) {
			pause_accepting(l);
			return;
		} else if (errno != EINTR && errno != ECONNABORTED)
			return;
	}
}

static bool spare_fds(void)
{
	int fds[SPARE_FDS], count = 0;
	while (count < SPARE_FDS && (fds[count] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		count++;
	for (int i = 0; i < count; i++)
		close(fds[i]);
	return count == SPARE_FDS;
}

static void resume(struct h2_server *s)
{
	if (!is_paused(s) || !spare_fds())
		return;
	for (size_t i = 0; i < s->listeners.count; i++) {
		s->listeners.at[i].paused = false;
		uv_poll_start(&s->listeners.at[i].poll, UV_READABLE, accept_ready);
	}
	log_info(s->options.log, "Accepting connections again",
		 log_text("endpoint", s->options.endpoint));
}

static void retry(uv_timer_t *timer)
{
	struct h2_server *s = timer->data;
	settle_waiting(s, PATIENCE_NS);
	resume(s);
	if (!is_paused(s) && !s->listeners.waiting)
		uv_timer_stop(timer);
}

static void start_retrying(struct h2_server *s)
{
	if (!uv_is_active((uv_handle_t *)&s->listeners.retry))
		uv_timer_start(&s->listeners.retry, retry, RETRY_MS, RETRY_MS);
}

void h2_listeners_start(void *argument)
{
	struct h2_server *s = argument;
	uv_loop_t *loop = io_loop(s->shards[0].thread);
	for (size_t i = 0; i < s->listeners.count; i++) {
		struct h2_listener *l = &s->listeners.at[i];
		uv_poll_init(loop, &l->poll, l->fd);
		l->poll.data = l;
		uv_poll_start(&l->poll, UV_READABLE, accept_ready);
	}
	uv_timer_init(loop, &s->listeners.retry);
	s->listeners.retry.data = s;
	s->listeners.last_waiting = &s->listeners.waiting;
	s->listeners.handles = (int)s->listeners.count + 1;
	s->listeners.open = true;
	h2_server_entered(s);
}

static void handle_gone(struct h2_server *s)
{
	if (--s->listeners.handles == 0)
		h2_server_left(s);
}

static void listener_gone(uv_handle_t *handle)
{
	struct h2_listener *l = handle->data;
	struct h2_server *s = l->server;
	if (close_socket(l) && s->addresses.unix_path)
		unlink(s->addresses.unix_path);
	handle_gone(s);
}

static void timer_gone(uv_handle_t *handle)
{
	handle_gone(handle->data);
}

void h2_listeners_close(void *argument)
{
	struct h2_server *s = argument;
	if (!s->listeners.open)
		return;
	s->listeners.open = false;
	settle_waiting(s, 0);
	for (size_t i = 0; i < s->listeners.count; i++)
		uv_close((uv_handle_t *)&s->listeners.at[i].poll, listener_gone);
	uv_close((uv_handle_t *)&s->listeners.retry, timer_gone);
}
