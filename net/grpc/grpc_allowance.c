/* SPDX-License-Identifier: Apache-2.0 */
#include "net/grpc/grpc_allowance.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <grpc/support/sync.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "net/client_socket.h"
#include "net/tls/tls_failure.h"

#define KNOWN_VERSION "29." /* the prefix of core's version string, in 1.51 */

/* Types of core, from src/core/lib/iomgr/socket_mutator.h of 1.51. */
struct usage {
	int fd, usage;
};
struct mutator;
struct mutator_functions {
	/* never called if mutate_for is set */
	bool (*mutate)(int fd, struct mutator *mutator);
	int (*compare)(struct mutator *one, struct mutator *other);
	void (*destroy)(struct mutator *mutator);
	bool (*mutate_for)(const struct usage *usage, struct mutator *mutator);
};
struct mutator {
	const struct mutator_functions *functions;
	gpr_refcount refs;
};

struct noted {
	_Atomic enum cause_kind kind; /* CAUSE_NONE: nothing */
	_Atomic uint64_t at;          /* clock_now */
};

/* Never freed, but reused: the descriptor of a closed socket refers to its allowance until the
 * descriptor is registered again. */
struct grpc_allowance {
	struct mutator mutator; /* first: core's pointer is ours */
	_Atomic int64_t left;   /* bytes */
	_Atomic int64_t flying; /* the sum of the shares of requests in flight */
	_Atomic unsigned overruns;
	_Atomic uint64_t paused_until; /* 0: not paused */
	/* since the last answer: the last failure of TLS, and how the last connection ended over
	 * which nothing had been received */
	struct noted tls, end;
	struct grpc_allowance *next; /* the next one in `spare` */
};

static pthread_mutex_t spare_lock = PTHREAD_MUTEX_INITIALIZER; /* guards spare */
static struct grpc_allowance *spare;

/* One entry per descriptor, used if core has connected it. Untouched pages cost no memory. */
static struct connection {
	struct grpc_allowance *_Atomic allowance;
	_Atomic bool heard; /* something has been received */
} connections[CLIENT_SOCKETS_MAX];

/* ---- callbacks of core */

/* Registers a socket before it is connected. False: the connection is not opened. */
static bool register_socket(const struct usage *usage, struct mutator *mutator)
{
	struct grpc_allowance *a = (struct grpc_allowance *)mutator;
	if (clock_now() < atomic_load(&a->paused_until) ||
	    !client_socket_watch(usage->fd, CLIENT_SOCKET_BLOCKS))
		return false;
	if (atomic_load(&a->paused_until)) {
		atomic_store(&a->paused_until, 0);
		atomic_store(&a->left, GRPC_ALLOWANCE_MAX + atomic_load(&a->flying));
	}
	struct connection *c = &connections[usage->fd];
	atomic_store(&c->heard, false);
	atomic_store(&c->allowance, a);
	return true;
}

static int compare(struct mutator *one, struct mutator *other)
{
	return (one > other) - (one < other);
}

static void destroy(struct mutator *mutator)
{
	struct grpc_allowance *a = (struct grpc_allowance *)mutator;
	pthread_mutex_lock(&spare_lock);
	a->next = spare;
	spare = a;
	pthread_mutex_unlock(&spare_lock);
}

static const struct mutator_functions functions = { .compare = compare,
						    .destroy = destroy,
						    .mutate_for = register_socket };

/* ---- reading */

static void overrun(struct grpc_allowance *a)
{
	uint64_t none = 0; /* not 0: another connection of the same destination was first */
	if (atomic_compare_exchange_strong(&a->paused_until, &none,
					   clock_now() + GRPC_ALLOWANCE_PAUSE_NS))
		atomic_fetch_add(&a->overruns, 1);
}

/* Core has closed the registered socket, and another socket has its number. */
static bool is_another_socket(int fd, struct connection *c)
{
	if (client_socket_is_watched(fd))
		return false;
	atomic_store(&c->allowance, NULL);
	return true;
}

static void note(struct noted *noted, enum cause_kind kind)
{
	atomic_store(&noted->at, clock_now());
	atomic_store(&noted->kind, kind);
}

static void note_tls_failure(void *context, enum cause_kind kind)
{
	note(&((struct grpc_allowance *)context)->tls, kind);
}

/* Core handles what it has received on the same thread. */
static void watch_tls(struct grpc_allowance *a)
{
	tls_failure_watch(a ? note_tls_failure : NULL, a);
}

static bool may_receive(int fd, int64_t bytes)
{
	struct connection *c = &connections[fd];
	struct grpc_allowance *a = atomic_load_explicit(&c->allowance, memory_order_relaxed);
	watch_tls(a);
	if (!a)
		return true;
	if (!atomic_load_explicit(&c->heard, memory_order_relaxed))
		atomic_store_explicit(&c->heard, true, memory_order_relaxed);
	if (atomic_fetch_sub(&a->left, bytes) >= bytes &&
	    !atomic_load_explicit(&a->paused_until, memory_order_relaxed))
		return true;
	if (is_another_socket(fd, c)) {
		atomic_fetch_add(&a->left, bytes);
		return true;
	}
	overrun(a);
	return false;
}

static void note_end(int fd, bool reset)
{
	struct connection *c = &connections[fd];
	struct grpc_allowance *a = atomic_load_explicit(&c->allowance, memory_order_relaxed);
	if (a && !atomic_load(&c->heard) && !is_another_socket(fd, c))
		note(&a->end, reset ? CAUSE_RESET : CAUSE_CLOSED);
}

__attribute__((visibility("default"))) ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	ssize_t got = syscall(SYS_recvmsg, fd, message, flags);
	if (fd < 0 || fd >= CLIENT_SOCKETS_MAX || (flags & MSG_ERRQUEUE) ||
	    (got > 0 && may_receive(fd, got)))
		return got;
	if (got <= 0) {
		got = client_socket_after_read(fd, got);
		if (!got || errno == ECONNRESET || errno == EPIPE)
			note_end(fd, got < 0);
		return got;
	}
	errno = ECONNRESET;
	return -1;
}

/* ---- lifetime */

static struct grpc_allowance *take_spare(void)
{
	pthread_mutex_lock(&spare_lock);
	struct grpc_allowance *a = spare;
	if (a)
		spare = a->next;
	pthread_mutex_unlock(&spare_lock);
	return a ? a : memory_new(sizeof *a);
}

static void forget(struct grpc_allowance *a)
{
	atomic_store_explicit(&a->tls.kind, CAUSE_NONE, memory_order_relaxed);
	atomic_store_explicit(&a->end.kind, CAUSE_NONE, memory_order_relaxed);
}

struct grpc_allowance *grpc_allowance_new(struct error *err)
{
	assert(dlsym(RTLD_DEFAULT, "recvmsg") == (void *)recvmsg); /* core calls ours */
	if (strncmp(grpc_version_string(), KNOWN_VERSION, strlen(KNOWN_VERSION))) {
		error_set(err, ERROR_INTERNAL,
			  "gRPC C core %s is not supported: this build can limit the "
			  "connections of version %sx only",
			  grpc_version_string(), KNOWN_VERSION);
		return NULL;
	}
	struct grpc_allowance *a = take_spare();
	a->mutator.functions = &functions;
	gpr_ref_init(&a->mutator.refs, 1);
	atomic_store(&a->left, GRPC_ALLOWANCE_MAX);
	atomic_store(&a->flying, 0);
	atomic_store(&a->overruns, 0);
	atomic_store(&a->paused_until, 0);
	forget(a);
	return a;
}

static void release(void *allowance)
{
	struct grpc_allowance *a = allowance;
	if (gpr_unref(&a->mutator.refs))
		destroy(&a->mutator);
}

void grpc_allowance_unref(struct grpc_allowance **slot)
{
	struct grpc_allowance *a = *slot;
	*slot = NULL;
	if (a)
		release(a);
}

static void *copy_argument(void *allowance)
{
	gpr_ref(&((struct grpc_allowance *)allowance)->mutator.refs);
	return allowance;
}

static int compare_arguments(void *one, void *other)
{
	return compare(one, other);
}

grpc_arg grpc_allowance_argument(struct grpc_allowance *allowance)
{
	static const grpc_arg_pointer_vtable kept = { copy_argument, release, compare_arguments };
	return (grpc_arg){ .type = GRPC_ARG_POINTER,
			   .key = (char *)GRPC_ARG_SOCKET_MUTATOR,
			   .value.pointer = { allowance, &kept } };
}

static int64_t share_of(size_t request_bytes)
{
	return (int64_t)(request_bytes / GRPC_ALLOWANCE_SHARE);
}

void grpc_allowance_begin(struct grpc_allowance *a, size_t request_bytes)
{
	atomic_fetch_add(&a->flying, share_of(request_bytes));
	atomic_fetch_add(&a->left, share_of(request_bytes));
}

static void cap(struct grpc_allowance *a)
{
	int64_t left = atomic_load(&a->left), max = GRPC_ALLOWANCE_MAX + atomic_load(&a->flying);
	while (left > max && !atomic_compare_exchange_weak(&a->left, &left, max))
		continue;
}

/* The share of a request without a reply is taken back. Otherwise a destination could receive an
 * allowance for failed attempts alone. */
void grpc_allowance_end(struct grpc_allowance *a, size_t request_bytes, bool answered)
{
	atomic_fetch_sub(&a->flying, share_of(request_bytes));
	atomic_fetch_add(&a->left, answered ? GRPC_ALLOWANCE_REPLY : -share_of(request_bytes));
	if (answered)
		forget(a);
	cap(a);
}

void grpc_allowance_tick(struct grpc_allowance *a)
{
	atomic_fetch_add(&a->left, GRPC_ALLOWANCE_TICK);
	cap(a);
}

unsigned grpc_allowance_overruns(const struct grpc_allowance *allowance)
{
	return atomic_load(&allowance->overruns);
}

static enum cause_kind recent(const struct noted *noted)
{
	bool is_recent = clock_now() - atomic_load(&noted->at) < GRPC_ALLOWANCE_NOTED_NS;
	return is_recent ? atomic_load(&noted->kind) : CAUSE_NONE;
}

struct cause grpc_allowance_reached(const struct grpc_allowance *allowance, bool secure)
{
	enum cause_kind tls = recent(&allowance->tls), end = recent(&allowance->end);
	if (tls || !end)
		return (struct cause){ tls, 0 };
	return (struct cause){ secure ? CAUSE_TLS_CLOSED : end,
			       end == CAUSE_RESET ? ECONNRESET : 0 };
}
