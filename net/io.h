/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_IO_H
#define NET_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/*
 * The I/O threads: one per core, each with a libuv loop of its own. A connection lives on one of
 * them from accept to close, so what belongs to it needs no lock. A thread must never wait: every
 * other connection on it waits too.
 *
 * Functions marked [any] may be called from any thread; what is posted runs on the thread that it
 * was posted to, in the order of posting.
 */
struct io;
struct io_thread;
struct uv_loop_s;

/* Starts `count` threads (at least 1). */
struct io *io_start(uint32_t count, struct error *err);
/* Everything that lives on the threads must be closed before. Accepts NULL. */
void io_stop(struct io **io);

uint32_t io_count(const struct io *io);
struct io_thread *io_thread_at(struct io *io, uint32_t index);
/* 0 up to io_count - 1. [any] */
uint32_t io_thread_index(const struct io_thread *thread);
/* Is this the thread? [any] */
bool io_here(const struct io_thread *thread);
/* [the thread] */
struct uv_loop_s *io_loop(struct io_thread *thread);
/* Counts the turns of its loop. Each turn serves everything that is ready at the same time. [the
 * thread] */
uint64_t io_turn(const struct io_thread *thread);

/* A posted call; part of the caller's object, which `run` may free. It can be posted once at a
 * time. */
struct io_post {
	struct io_post *next;
	void (*run)(struct io_post *post);
};

void io_post(struct io_thread *thread, struct io_post *post); /* [any] */
/* Returns when run(argument) has run there; at once where this is the thread. [any] */
void io_call(struct io_thread *thread, void (*run)(void *argument), void *argument);

/* The read buffer and the write buffer that all connections of the thread share. Their content is
 * undefined once the callback that filled them has returned. Each is at least `bytes` long: it
 * grows to the largest size that was requested. [the thread] */
uint8_t *io_read_buffer(struct io_thread *thread, size_t bytes);
uint8_t *io_write_buffer(struct io_thread *thread, size_t bytes);

#endif
