/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_KAFKA_KAFKA_EVENTS_H
#define NET_KAFKA_KAFKA_EVENTS_H

#include <librdkafka/rdkafka.h>

#include "base/log.h"
#include "net/kafka/kafka_client.h"
#include "net/loop.h"

enum { KAFKA_LOGGED = 8 };

/*
 * A queue of librdkafka's events that wakes the loop through an event descriptor, and what the log
 * says of the client's errors: the first one at once, the same one once a minute at most, and that
 * it works again. For this folder only.
 */
struct kafka_events_options {
	struct loop *loop;
	const struct log *log;
	const struct kafka_client_config *config;
	/* runs on the loop thread; it calls kafka_events_woken first, and then polls until the
	 * queue is empty */
	void (*ready)(void *argument, int fd, unsigned events);
	void *argument;
};

struct kafka_events {
	struct kafka_events_options options; /* borrowed */
	rd_kafka_queue_t *queue;
	int fd; /* becomes readable when the queue is no longer empty */
	struct loop_socket *socket;
	struct kafka_result trouble; /* why connections fail; without a reason: they do not */
	/* The log: the lines about errors that were written last, newest first. */
	struct kafka_logged {
		int code;
		enum cause_kind cause;
		uint64_t at; /* clock_now; 0: none */
	} logged[KAFKA_LOGGED];
	uint64_t failing_since; /* clock_now; 0: the log does not say that it fails */
};

struct kafka_failure {
	struct kafka_result why;
	bool fatal; /* the client must be replaced */
};

/* Takes the queue, also on failure. [loop thread] */
bool kafka_events_open(struct kafka_events *events, rd_kafka_queue_t *queue,
		       const struct kafka_events_options *options, struct error *err);
/* False: there is nothing new. */
bool kafka_events_woken(int fd);
/* `ready` is not called any more when it returns. [any thread] */
void kafka_events_leave(struct kafka_events *events);
/* After kafka_events_leave, before the client is destroyed. */
void kafka_events_close(struct kafka_events *events);

/* The client has failed with this code, which has no event of its own. */
void kafka_events_log(struct kafka_events *events, rd_kafka_resp_err_t code);
/* The same for an error event. */
struct kafka_failure kafka_events_error(struct kafka_events *events, rd_kafka_t *rk,
					rd_kafka_event_t *event);
/* Something was successful. */
void kafka_events_work(struct kafka_events *events);

#endif
