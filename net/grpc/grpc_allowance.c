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
#include "net/tls/tls_failure.h"

#define KNOWN_VERSION "29."       /* the prefix of core's version string, in 1.51 */
#define DESCRIPTORS_MAX (1 << 20) /* the kernel's default of fs.nr_open */

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

/* Never freed, but reused: the descriptor of a closed socket refers to its allowance until the
 * descriptor is registered again. */
struct grpc_allowance {
	struct mutator mutator; /* first: core's pointer is ours */
	_Atomic int64_t left;   /* bytes */
	_Atomic int64_t flying; /* the sum of the shares of requests in flight */
	_Atomic unsigned overruns;
	_Atomic uint64_t paused_until; /* 0: not paused */
	_Atomic enum cause_kind tls;   /* of the last failure since the last answer */
	_Atomic uint64_t tls_at;       /* clock_now of it */
	struct grpc_allowance *next;   /* the next one in `spare` */
};

static pthread_mutex_t spare_lock = PTHREAD_MUTEX_INITIALIZER; /* guards spare */
static struct grpc_allowance *spare;

/* One entry per descriptor, used if core has connected it. Untouched pages cost no memory. The
 * cookie is the kernel's identifier of the socket. */
static struct connection {
	struct grpc_allowance *_Atomic allowance;
	_Atomic uint64_t cookie;
} connections[DESCRIPTORS_MAX];

static uint64_t cookie_of(int fd)
{
	uint64_t cookie = 0;
	getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &(socklen_t){ sizeof cookie });
	return cookie;
}

/* ---- callbacks of core */

/* Registers a socket before it is connected. False: the connection is not opened. */
static bool register_socket(const struct usage *usage, struct mutator *mutator)
{
	struct grpc_allowance *a = (struct grpc_allowance *)mutator;
	if (usage->fd >= DESCRIPTORS_MAX || clock_now() < atomic_load(&a->paused_until))
		return false;
	if (atomic_load(&a->paused_until)) {
		atomic_store(&a->paused_until, 0);
		atomic_store(&a->left, GRPC_ALLOWANCE_MAX + atomic_load(&a->flying));
	}
	struct connection *c = &connections[usage->fd];
	atomic_store(&c->cookie, cookie_of(usage->fd));
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
	if (cookie_of(fd) == atomic_load(&c->cookie))
		return false;
	atomic_store(&c->allowance, NULL);
	return true;
}

/* Whose connection this thread has read last. Core handles what it has read on the same thread. */
static _Thread_local struct grpc_allowance *reading;

static void note_tls_failure(enum cause_kind kind)
{
	if (!reading)
		return;
	atomic_store(&reading->tls_at, clock_now());
	atomic_store(&reading->tls, kind);
}

static bool may_receive(int fd, int64_t bytes)
{
	struct connection *c = &connections[fd];
	struct grpc_allowance *a = atomic_load_explicit(&c->allowance, memory_order_relaxed);
	reading = a;
	if (!a || (atomic_fetch_sub(&a->left, bytes) >= bytes &&
		   !atomic_load_explicit(&a->paused_until, memory_order_relaxed)))
		return true;
	if (is_another_socket(fd, c)) {
		atomic_fetch_add(&a->left, bytes);
		return true;
	}
	overrun(a);
	return false;
}

__attribute__((visibility("default"))) ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	ssize_t got = syscall(SYS_recvmsg, fd, message, flags);
	if (got <= 0 || fd >= DESCRIPTORS_MAX || may_receive(fd, got))
		return got;
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
	tls_failure_watch(note_tls_failure);
	a->mutator.functions = &functions;
	gpr_ref_init(&a->mutator.refs, 1);
	atomic_store(&a->left, GRPC_ALLOWANCE_MAX);
	atomic_store(&a->flying, 0);
	atomic_store(&a->overruns, 0);
	atomic_store(&a->paused_until, 0);
	atomic_store(&a->tls, CAUSE_NONE);
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
		atomic_store_explicit(&a->tls, CAUSE_NONE, memory_order_relaxed);
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

enum cause_kind grpc_allowance_tls_cause(const struct grpc_allowance *allowance)
{
	bool recent = clock_now() - atomic_load(&allowance->tls_at) < GRPC_ALLOWANCE_TLS_NS;
	return recent ? atomic_load(&allowance->tls) : CAUSE_NONE;
}
