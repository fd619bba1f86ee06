/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "net/host_port.h"
#include "net/http/http_internal.h"

enum {
	ACCEPTS_PER_TURN = 1024,
	LINGERERS = 64,
	READS_PER_TURN = 4, /* from one lingering socket */
	NS_PER_MS = 1000000,
	RETRY_MS = 100
};

#define LINGER_NS (2000ull * NS_PER_MS)

struct lingerer {
	int socket;
	uint64_t until;
};

struct http_listener {
	struct http_listener_options options;
	char address[300];
	pthread_t thread;
	bool running;
	/* guards socket, closing, inbox, arrived; I/O threads take it, so it is held shortly */
	pthread_mutex_t mutex;
	int socket; /* -1: closed, see http_listener_refuse */
	bool closing;
	struct lingerer inbox[LINGERERS]; /* on their way to lingerers */
	size_t arrived;
	/* listener thread; the count is read by others, and grows under the mutex */
	struct lingerer lingerers[LINGERERS];
	_Atomic size_t lingering;
	int spare;          /* a spare descriptor, closed when none is left */
	bool starved;       /* accept failed and there was no spare: try again a moment later */
	uint64_t turn_next; /* the time that the owner's turn returned */
	char *name;         /* the key by which the socket is shared (net/sockets.h) */
};

bool http_endpoint_parse(const char *transport, const char *text, struct http_endpoint *out,
			 struct error *err)
{
	*out = (struct http_endpoint){ .family = AF_UNSPEC, .is_unix = !strcmp(transport, "unix") };
	if (out->is_unix) {
		size_t len = strlen(text);
		if (!len || len >= sizeof((struct sockaddr_un *)0)->sun_path)
			return error_set(err, ERROR_CONFIG,
					 "endpoint: a socket path must be 1 to 107 bytes long, not "
					 "%zu",
					 len);
		memcpy(out->host, text, len + 1);
		return true;
	}
	out->family = !strcmp(transport, "tcp4")   ? AF_INET
		      : !strcmp(transport, "tcp6") ? AF_INET6
						   : AF_UNSPEC;
	struct host_port parts;
	if (!host_port_parse("endpoint", text, 0, &parts, err))
		return false;
	if (parts.host_len >= sizeof out->host)
		return error_set(err, ERROR_CONFIG, "endpoint: the host is longer than 255 bytes");
	memcpy(out->host, parts.host, parts.host_len);
	snprintf(out->port, sizeof out->port, "%u", parts.number);
	return true;
}

static bool cannot_listen(const struct http_endpoint *e, int number, struct error *err)
{
	bool v6 = strchr(e->host, ':');
	return error_set(err, ERROR_CONFIG, "endpoint: cannot listen on %s%s%s%s%s: %s",
			 v6 ? "[" : "", e->host, v6 ? "]" : "", e->is_unix ? "" : ":", e->port,
			 strerror(number));
}

/* A socket file without a listener is left over from a process that was killed. */
static void remove_stale(const struct sockaddr_un *address)
{
	struct stat status;
	if (stat(address->sun_path, &status) < 0 || !S_ISSOCK(status.st_mode))
		return;
	int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (probe >= 0 && connect(probe, (const struct sockaddr *)address, sizeof *address) < 0 &&
	    errno == ECONNREFUSED)
		unlink(address->sun_path);
	if (probe >= 0)
		close(probe);
}

/* Returns the listening socket, or -1 with errno. */
static int bind_one(int family, const struct sockaddr *address, socklen_t len, bool both)
{
	static const int yes = 1, no = 0;
	int s = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s < 0)
		return -1;
	if (family != AF_UNIX)
		setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
	if (family == AF_INET6)
		setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, both ? &no : &yes, sizeof yes);
	if (!bind(s, address, len) && !listen(s, SOCKETS_BACKLOG))
		return s;
	int number = errno;
	close(s);
	errno = number;
	return -1;
}

static int bind_unix(const struct http_endpoint *e, struct error *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	memcpy(address.sun_path, e->host, strlen(e->host) + 1);
	remove_stale(&address);
	int s = bind_one(AF_UNIX, (const struct sockaddr *)&address, sizeof address, false);
	if (s < 0)
		cannot_listen(e, errno, err);
	return s;
}

/* The first address of a name that works, IPv4 first. Without a name, or for ::, both families. */
static int bind_tcp(const struct http_endpoint *e, struct error *err)
{
	static const int order[] = { AF_INET, AF_INET6 };
	bool all = !*e->host, both = e->family == AF_UNSPEC && (all || !strcmp(e->host, "::"));
	struct addrinfo hints = { .ai_family = e->family,
				  .ai_socktype = SOCK_STREAM,
				  .ai_flags = AI_PASSIVE };
	struct addrinfo *found;
	int code = getaddrinfo(all ? NULL : e->host, e->port, &hints, &found);
	if (code) {
		error_set(err, ERROR_CONFIG, "endpoint: cannot resolve the host: %s",
			  gai_strerror(code));
		return -1;
	}
	int s = -1, number = EAFNOSUPPORT;
	for (int i = 0; i < 2 && s < 0; i++) {
		int family = order[all ? 1 - i : i];
		for (struct addrinfo *a = found; a && s < 0; a = a->ai_next) {
			if (a->ai_family != family)
				continue;
			s = bind_one(family, a->ai_addr, a->ai_addrlen, both);
			number = s < 0 && (number == EAFNOSUPPORT || errno != EAFNOSUPPORT)
					 ? errno
					 : number;
		}
	}
	freeaddrinfo(found);
	if (s < 0)
		cannot_listen(e, number, err);
	return s;
}

static void describe(struct http_listener *l)
{
	struct sockaddr_storage address;
	socklen_t len = sizeof address;
	char host[NI_MAXHOST], port[NI_MAXSERV];
	if (l->options.endpoint.is_unix ||
	    getsockname(l->socket, (struct sockaddr *)&address, &len) < 0 ||
	    getnameinfo((struct sockaddr *)&address, len, host, sizeof host, port, sizeof port,
			NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		snprintf(l->address, sizeof l->address, "%s", l->options.endpoint.host);
	else
		snprintf(l->address, sizeof l->address,
			 address.ss_family == AF_INET6 ? "[%.200s]:%s" : "%.200s:%s", host, port);
}

struct http_listener *http_listener_new(const struct http_listener_options *options,
					struct error *err)
{
	char *name = memory_format("%s %s", options->transport, options->address);
	int s = sockets_share(&options->sockets, name);
	bool shared = s >= 0;
	if (!shared)
		s = options->endpoint.is_unix ? bind_unix(&options->endpoint, err)
					      : bind_tcp(&options->endpoint, err);
	if (s < 0) {
		memory_free(name);
		return NULL;
	}
	if (!shared)
		sockets_add(&options->sockets, name, s);
	struct http_listener *l = memory_new(sizeof *l);
	l->options = *options;
	l->socket = s;
	l->name = name;
	l->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	pthread_mutex_init(&l->mutex, NULL);
	describe(l);
	return l;
}

const char *http_listener_address(const struct http_listener *l)
{
	return l->address;
}

void http_listener_wake(struct http_listener *l)
{
	eventfd_write(l->options.deadlines->wake, 1);
}

/* No descriptor is left: closes the spare one, accepts the connection with it and closes the
 * connection, so that the peer is informed and the backlog does not wake us again and again.
 * Without a spare, accepting pauses for a moment. */
static void shed(struct http_listener *l)
{
	l->starved = l->spare < 0;
	if (l->spare >= 0) {
		close(l->spare);
		int victim = accept4(l->socket, NULL, NULL, SOCK_CLOEXEC);
		if (victim >= 0) {
			metric_add(l->options.no_files, 1);
			close(victim);
		}
	}
	l->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void accept_all(struct http_listener *l)
{
	for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
		struct sockaddr_storage address = { 0 };
		socklen_t len = sizeof address;
		pthread_mutex_lock(&l->mutex);
		int s = l->socket < 0 ? -1
				      : accept4(l->socket, (struct sockaddr *)&address, &len,
						SOCK_CLOEXEC | SOCK_NONBLOCK);
		int number = l->socket < 0 ? EAGAIN : errno;
		if (s < 0 &&
		    (number == EMFILE || number == ENFILE || number == ENOBUFS || number == ENOMEM))
			shed(l);
		pthread_mutex_unlock(&l->mutex);
		if (s >= 0)
			l->options.accepted(l->options.context, s, (struct sockaddr *)&address,
					    len);
		else if (number == EAGAIN || l->starved)
			return;
	}
}

void http_listener_linger(struct http_listener *l, int socket)
{
	shutdown(socket, SHUT_WR);
	pthread_mutex_lock(&l->mutex);
	bool taken = l->arrived + atomic_load(&l->lingering) < LINGERERS && !l->closing;
	if (taken)
		l->inbox[l->arrived++] = (struct lingerer){ socket, clock_now() + LINGER_NS };
	pthread_mutex_unlock(&l->mutex);
	if (taken)
		http_listener_wake(l);
	else
		close(socket);
}

/* Reads and discards what is there; false if the peer is done. */
static bool read_away(int socket)
{
	char waste[16384];
	ssize_t got;
	for (int i = 0; i < READS_PER_TURN; i++) {
		got = recv(socket, waste, sizeof waste, MSG_DONTWAIT);
		if (got <= 0)
			return got < 0 && (errno == EAGAIN || errno == EINTR);
	}
	return true;
}

/* Takes the sockets that other threads have left. False: closing. */
static bool collect_lingerers(struct http_listener *l)
{
	pthread_mutex_lock(&l->mutex);
	size_t count = atomic_load(&l->lingering);
	memcpy(l->lingerers + count, l->inbox, l->arrived * sizeof *l->inbox);
	atomic_store(&l->lingering, count + l->arrived);
	l->arrived = 0;
	bool open = !l->closing;
	pthread_mutex_unlock(&l->mutex);
	return open;
}

/* Closes lingering sockets whose peer is done or whose deadline has passed; all if the listener is
 * closing. Returns the earliest deadline of the remaining ones. */
static uint64_t pass_lingerers(struct http_listener *l, uint64_t now)
{
	bool open = collect_lingerers(l);
	uint64_t next = UINT64_MAX;
	size_t count = atomic_load(&l->lingering);
	for (size_t i = 0; i < count;) {
		struct lingerer *x = &l->lingerers[i];
		if (open && x->until > now && read_away(x->socket)) {
			next = x->until < next ? x->until : next;
			i++;
			continue;
		}
		close(x->socket);
		*x = l->lingerers[--count];
	}
	atomic_store(&l->lingering, count);
	return next;
}

static int milliseconds(uint64_t now, uint64_t next)
{
	if (next == UINT64_MAX)
		return -1;
	uint64_t ms = next > now ? (next - now + NS_PER_MS - 1) / NS_PER_MS : 0;
	return ms > 3600000 ? 3600000 : (int)ms;
}

/* Fills the poll set: the wake-up event, the listening socket, the owner's descriptor, the
 * lingering sockets. */
static nfds_t watch(const struct http_listener *l, struct pollfd *set)
{
	nfds_t count = 0;
	set[count++] = (struct pollfd){ .fd = l->options.deadlines->wake, .events = POLLIN };
	set[count++] = (struct pollfd){ .fd = l->starved ? -1 : l->socket, .events = POLLIN };
	set[count++] = (struct pollfd){ .fd = l->options.watched, .events = POLLIN };
	for (size_t i = 0; i < l->lingering; i++)
		set[count++] = (struct pollfd){ .fd = l->lingerers[i].socket, .events = POLLIN };
	return count;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* One turn: waits, accepts, ends connections that exceeded a deadline, calls the owner. False:
 * closing. */
static bool turn(struct http_listener *l)
{
	struct pollfd set[3 + LINGERERS];
	uint64_t now = clock_now(), next = http_deadlines_pass(l->options.deadlines, now);
	next = earlier(next, pass_lingerers(l, now));
	if (l->starved)
		next = earlier(next, now + RETRY_MS * (uint64_t)NS_PER_MS);
	next = earlier(next, l->turn_next);
	pthread_mutex_lock(&l->mutex);
	nfds_t count = watch(l, set);
	bool closing = l->closing;
	pthread_mutex_unlock(&l->mutex);
	if (closing)
		return false;
	l->starved = false;
	if (poll(set, count, milliseconds(now, next)) < 0)
		return true;
	eventfd_t ignored;
	if (set[0].revents)
		eventfd_read(l->options.deadlines->wake, &ignored);
	if (set[1].revents)
		accept_all(l);
	l->turn_next = l->options.turn(l->options.context, clock_now());
	return true;
}

static void *run(void *argument)
{
	struct http_listener *l = argument;
	pthread_setname_np(pthread_self(), "http-listener");
	while (turn(l))
		;
	return NULL;
}

bool http_listener_start(struct http_listener *l, struct error *err)
{
	l->running = thread_start(&l->thread, run, l, err);
	return l->running;
}

void http_listener_refuse(struct http_listener *l)
{
	pthread_mutex_lock(&l->mutex);
	if (l->socket >= 0) {
		bool last = sockets_close(&l->options.sockets, l->name, l->socket);
		if (last && l->options.endpoint.is_unix)
			unlink(l->options.endpoint.host);
	}
	l->socket = -1;
	pthread_mutex_unlock(&l->mutex);
	http_listener_wake(l);
}

void http_listener_stop(struct http_listener *l)
{
	http_listener_refuse(l);
	pthread_mutex_lock(&l->mutex);
	l->closing = true;
	pthread_mutex_unlock(&l->mutex);
	http_listener_wake(l);
	if (l->running)
		pthread_join(l->thread, NULL);
	l->running = false;
	pass_lingerers(l, 0);
}

void http_listener_unref(struct http_listener **listener)
{
	struct http_listener *l = *listener;
	if (!l)
		return;
	http_listener_stop(l);
	if (l->spare >= 0)
		close(l->spare);
	pthread_mutex_destroy(&l->mutex);
	memory_free(l->name);
	memory_free(l);
	*listener = NULL;
}
