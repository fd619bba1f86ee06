/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_KAFKA_KAFKA_EVENTS_H
#define NET_KAFKA_KAFKA_EVENTS_H

#include <librdkafka/rdkafka.h>

#include "base/log.h"
#include "net/loop.h"

/*
 * A queue of librdkafka's events that wakes the loop through an event descriptor. For this folder
 * only.
 */
struct kafka_events {
	struct loop *loop;
	rd_kafka_queue_t *queue;
	int fd; /* becomes readable when the queue is no longer empty */
	struct loop_socket *socket;
	rd_kafka_resp_err_t last_error;
	uint64_t last_error_at;
	/* Why connections fail; the user resets it to 0 when something was successful. */
	rd_kafka_resp_err_t trouble;
};

struct kafka_failure {
	rd_kafka_resp_err_t code;
	bool fatal; /* the client must be replaced */
};

/* Takes the queue, also on failure. `ready` runs on the loop thread; it calls kafka_events_woken
 * first, and then polls until the queue is empty. [loop thread] */
bool kafka_events_open(struct kafka_events *events, struct loop *loop, rd_kafka_queue_t *queue,
		       void (*ready)(void *argument, int fd, unsigned events), void *argument,
		       struct error *err);
/* False: there is nothing new. */
bool kafka_events_woken(int fd);
/* `ready` is not called any more when it returns. [any thread] */
void kafka_events_leave(struct kafka_events *events);
/* After kafka_events_leave, before the client is destroyed. */
void kafka_events_close(struct kafka_events *events);

/* Logs an error of the client by the name of its code and its cause, unless the same one was logged
 * less than a minute ago. */
void kafka_events_log(struct kafka_events *events, const struct log *log, rd_kafka_resp_err_t code);
/* The same for an error event. */
struct kafka_failure kafka_events_error(struct kafka_events *events, const struct log *log,
					rd_kafka_t *rk, rd_kafka_event_t *event);

#endif
