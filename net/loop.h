/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_LOOP_H
#define NET_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/*
 * The main loop, on libuv: timers, signals, the thread pool, and all lifecycle state. (I/O threads
 * have loops of their own: net/io.h.) Functions marked [any] may be called from any thread; all
 * others on the loop thread (or before loop_run). Callbacks run on the loop thread, except
 * loop_work's `work`.
 */
struct loop;
struct loop_timer;

struct loop *loop_new(struct error *err);
void loop_unref(struct loop **loop);     /* after loop_run returned */
void loop_run(struct loop *loop);        /* until loop_stop, and until all posted work has run */
void loop_stop(struct loop *loop);       /* [any] */
bool loop_here(const struct loop *loop); /* [any] is this the loop thread? */

/* [any] The only way onto the loop: calls run(argument) there, in the order of posting. */
void loop_post(struct loop *loop, void (*run)(void *argument), void *argument);

/* [any] The same, but returns after run has returned. Runs immediately on the loop thread, and
 * while the loop is not running. */
void loop_call(struct loop *loop, void (*run)(void *argument), void *argument);

/* One-shot timers. Starting a running one moves it. The callback may start it again or free it. */
struct loop_timer *loop_timer_new(struct loop *loop, void (*fire)(void *argument), void *argument);
void loop_timer_start(struct loop_timer *timer, uint64_t delay_ns);
void loop_timer_cancel(struct loop_timer *timer);
/* [any] The timer will not fire any more when it returns. */
void loop_timer_unref(struct loop_timer **timer);

/* Watches a socket that somebody else owns: calls ready(argument, fd, events) whenever a watched
 * event occurs. Must be unreferenced before the socket is closed. */
enum { LOOP_READABLE = 1, LOOP_WRITABLE = 2 };
struct loop_socket;
struct loop_socket *loop_socket_new(struct loop *loop, int fd,
				    void (*ready)(void *argument, int fd, unsigned events),
				    void *argument);
void loop_socket_watch(struct loop_socket *socket, unsigned events);
void loop_socket_unref(struct loop_socket **socket);

/* [any] work(argument) on a pool thread, then done(argument) on the loop thread (done may be NULL).
 */
void loop_work(struct loop *loop, void (*work)(void *argument), void (*done)(void *argument),
	       void *argument);

/* Adds this number of threads to the pool, for work that may hang in the kernel. Call it before the
 * first loop_work and before any other thread runs. UV_THREADPOOL_SIZE in the environment takes
 * precedence. */
void loop_widen_pool(uint32_t threads);

/* Calls back on the loop thread for each delivery of the signal. */
bool loop_signal(struct loop *loop, int number, void (*caught)(void *argument, int number),
		 void *argument, struct error *err);

#endif
