/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_IO_H
#define NET_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/*
 * The I/O threads: of each kind one per core, each with a libuv loop of its own. A connection lives
 * on one of them from accept to close, so what belongs to it needs no lock. A thread must never
 * wait: every other connection on it waits too.
 *
 * Functions marked [any] may be called from any thread; what is posted runs on the thread that it
 * was posted to, in the order of posting.
 */
struct io;
struct io_thread;
struct uv_loop_s;

/* By what their connections speak. A library decides how long HTTP/1.1 takes. It must not delay the
 * others. */
enum io_kind {
	IO_HTTP_2, /* and gRPC */
	IO_HTTP_1,
	IO_KINDS
};

/* Starts `count` threads of each kind (at least 1). */
struct io *io_start(uint32_t count, struct error *err);
/* Everything that lives on the threads must be closed before. Accepts NULL. */
void io_stop(struct io **io);

uint32_t io_count(const struct io *io); /* the number of threads of each kind */
struct io_thread *io_thread_at(struct io *io, enum io_kind kind, uint32_t index);
/* Differs between all threads of all kinds: 0 up to IO_KINDS * io_count - 1. Those of IO_HTTP_2 are
 * below io_count. [any] */
uint32_t io_thread_index(const struct io_thread *thread);
/*
 * The index of the thread of this kind with the least load; `load` returns what a thread has. Of
 * equal ones, each call prefers another, whoever calls: servers with one connection each do not all
 * use the same thread. [any]
 */
uint32_t io_least_busy(struct io *io, enum io_kind kind,
		       int64_t (*load)(const void *context, uint32_t index), const void *context);
/* Is this the thread? [any] */
bool io_here(const struct io_thread *thread);
/* [the thread] */
struct uv_loop_s *io_loop(struct io_thread *thread);
/*
 * Bytes of requests that the current turn of the thread's loop has run: a measure of how long its
 * other connections have waited. A turn serves everything that is ready at the same time. Whoever
 * runs a request counts it, and may count more for work that its size does not reflect. [the
 * thread]
 */
size_t io_turn_bytes(const struct io_thread *thread);
void io_turn_count(struct io_thread *thread, size_t bytes);

/* A posted call; part of the caller's object, which `run` may free. It can be posted once at a
 * time. */
struct io_post {
	struct io_post *next;
	void (*run)(struct io_post *post);
};

void io_post(struct io_thread *thread, struct io_post *post); /* [any] */
/* Returns when run(argument) has run there; at once where this is the thread. [any] */
void io_call(struct io_thread *thread, void (*run)(void *argument), void *argument);

/* When `ready` is called next, besides when the descriptor is readable. */
enum io_more {
	IO_DONE,  /* not at all */
	IO_AGAIN, /* in the next turn */
	IO_LATER  /* a few milliseconds later */
};

/*
 * A descriptor that the thread watches, of a library that does its own I/O. `ready` is called when
 * it is readable, and when it has asked for it. All [the thread].
 */
struct io_watch;
struct io_watch *io_watch_new(struct io_thread *thread, int fd,
			      enum io_more (*ready)(void *context), void *context,
			      struct error *err);
/* `ready` is called in the next turn. Not to be called in `ready`. */
void io_watch_again(struct io_watch *watch);
/* The descriptor may be closed afterwards. Accepts NULL. */
void io_watch_unref(struct io_watch **watch);

/* The read buffer and the write buffer that all connections of the thread share. Their content is
 * undefined once the callback that filled them has returned. Each is at least `bytes` long: it
 * grows to the largest size that was requested. [the thread] */
uint8_t *io_read_buffer(struct io_thread *thread, size_t bytes);
uint8_t *io_write_buffer(struct io_thread *thread, size_t bytes);

#endif
