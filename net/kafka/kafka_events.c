/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kafka/kafka_events.h"

#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "net/kafka/kafka_instance.h"

#define SECOND_NS UINT64_C(1000000000)
/* The same error is logged this often at most. */
#define REPEAT_NS (60 * SECOND_NS)

/* librdkafka writes when the queue is no longer empty, which may have happened before: its threads
 * run already. */
static void watch(struct kafka_events *e)
{
	static const uint64_t one = 1;
	rd_kafka_queue_io_event_enable(e->queue, e->fd, &one, sizeof one);
	e->socket = loop_socket_new(e->options.loop, e->fd, e->options.ready, e->options.argument);
	loop_socket_watch(e->socket, LOOP_READABLE);
	eventfd_write(e->fd, one);
}

bool kafka_events_open(struct kafka_events *e, rd_kafka_queue_t *queue,
		       const struct kafka_events_options *options, struct error *err)
{
	*e = (struct kafka_events){ .options = *options, .queue = queue };
	e->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (e->fd < 0) {
		rd_kafka_queue_destroy(queue);
		return error_set(err, ERROR_INTERNAL, "cannot create an event descriptor");
	}
	watch(e);
	return true;
}

bool kafka_events_woken(int fd)
{
	uint64_t count;
	return read(fd, &count, sizeof count) > 0;
}

static void leave(void *argument)
{
	loop_socket_unref(&((struct kafka_events *)argument)->socket);
}

void kafka_events_leave(struct kafka_events *e)
{
	loop_call(e->options.loop, leave, e);
}

void kafka_events_close(struct kafka_events *e)
{
	rd_kafka_queue_io_event_enable(e->queue, -1, NULL, 0);
	rd_kafka_queue_destroy(e->queue);
	close(e->fd);
}

/* ---- the log ---- */

/* That no broker is reachable follows from errors of connections, and says less. */
static bool is_repeated(const struct kafka_events *e, const struct kafka_logged *fresh)
{
	bool follows = fresh->code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN;
	for (const struct kafka_logged *l = e->logged; l < e->logged + KAFKA_LOGGED; l++)
		if (l->at && fresh->at - l->at < REPEAT_NS &&
		    (follows || (fresh->code == l->code && fresh->cause == l->cause)))
			return true;
	return false;
}

static void log_failure(struct kafka_events *e, const struct kafka_failure *failure)
{
	enum { FIELDS_MAX = 8 };
	struct log_field fields[FIELDS_MAX];
	const struct kafka_result *why = &failure->why;
	size_t count = 0;
	char *brokers = kafka_client_join(&e->options.config->brokers);
	fields[count++] = (struct log_field)log_text("endpoint", brokers);
	fields[count++] = (struct log_field)log_text("error", why->reason);
	fields[count++] =
		(struct log_field)log_text("code",
					   rd_kafka_err2name((rd_kafka_resp_err_t)why->code));
	if (why->cause.kind) {
		fields[count++] = (struct log_field)log_text("cause", cause_text(why->cause.kind));
		fields[count++] = (struct log_field)log_text("stage", cause_stage(why->cause.kind));
	}
	if (why->cause.os_error)
		fields[count++] =
			(struct log_field)log_text("errno", strerrorname_np(why->cause.os_error));
	fields[count++] = (struct log_field)log_bool("fatal", failure->fatal);
	log_warn_fields(e->options.log, "The Kafka client reports an error.", fields, count);
	memory_free(brokers);
}

static void note_failure(struct kafka_events *e, const struct kafka_failure *failure)
{
	const struct kafka_logged fresh = { failure->why.code, failure->why.cause.kind,
					    clock_now() };
	if (is_repeated(e, &fresh))
		return;
	memmove(e->logged + 1, e->logged, (KAFKA_LOGGED - 1) * sizeof *e->logged);
	e->logged[0] = fresh;
	if (!e->failing_since)
		e->failing_since = fresh.at;
	log_failure(e, failure);
}

void kafka_events_log(struct kafka_events *e, rd_kafka_resp_err_t code)
{
	note_failure(e, &(struct kafka_failure){ kafka_judge(code), false });
}

void kafka_events_work(struct kafka_events *e)
{
	e->trouble = (struct kafka_result){ 0 };
	if (!e->failing_since)
		return;
	char *brokers = kafka_client_join(&e->options.config->brokers);
	log_info(e->options.log, "The Kafka client works again.", log_text("endpoint", brokers),
		 log_number("failed_for_s",
			    (int64_t)((clock_now() - e->failing_since) / SECOND_NS)));
	memory_free(brokers);
	e->failing_since = 0;
}

/* ---- errors ---- */

static bool is_of_connections(int code)
{
	return code == RD_KAFKA_RESP_ERR__TRANSPORT || code == RD_KAFKA_RESP_ERR__RESOLVE ||
	       code == RD_KAFKA_RESP_ERR__SSL || code == RD_KAFKA_RESP_ERR__AUTHENTICATION;
}

struct kafka_failure kafka_events_error(struct kafka_events *e, rd_kafka_t *rk,
					rd_kafka_event_t *event)
{
	char text[8];
	int code = rd_kafka_event_error(event);
	struct kafka_failure failure = { .fatal = code == RD_KAFKA_RESP_ERR__FATAL };
	if (failure.fatal)
		code = rd_kafka_fatal_error(rk, text, sizeof text);
	failure.why = kafka_explain(code, rd_kafka_event_error_string(event),
				    kafka_instance_tls_cause(rk));
	if (is_of_connections(failure.why.code))
		e->trouble = failure.why;
	note_failure(e, &failure);
	return failure;
}
