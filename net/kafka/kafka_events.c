/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kafka/kafka_events.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/kafka/kafka_client.h"

/* The same error is logged this often at most. */
#define REPEAT_NS UINT64_C(60000000000)

bool kafka_events_open(struct kafka_events *e, struct loop *loop, rd_kafka_queue_t *queue,
		       void (*ready)(void *argument, int fd, unsigned events), void *argument,
		       struct error *err)
{
	static const uint64_t one = 1;
	*e = (struct kafka_events){ .loop = loop, .queue = queue };
	e->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (e->fd < 0) {
		rd_kafka_queue_destroy(queue);
		return error_set(err, ERROR_INTERNAL, "cannot create an event descriptor");
	}
	rd_kafka_queue_io_event_enable(queue, e->fd, &one, sizeof one);
	e->socket = loop_socket_new(loop, e->fd, ready, argument);
	loop_socket_watch(e->socket, LOOP_READABLE);
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
	loop_call(e->loop, leave, e);
}

void kafka_events_close(struct kafka_events *e)
{
	rd_kafka_queue_io_event_enable(e->queue, -1, NULL, 0);
	rd_kafka_queue_destroy(e->queue);
	close(e->fd);
}

/* That no broker is reachable follows from errors of connections, and says less. */
static bool is_repeated(const struct kafka_events *e, rd_kafka_resp_err_t code, uint64_t now)
{
	return e->last_error && now - e->last_error_at < REPEAT_NS &&
	       (code == e->last_error || code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN);
}

static void log_failure(struct kafka_events *e, const struct log *log, struct kafka_failure failure,
			const char *cause)
{
	uint64_t now = clock_now();
	if (is_repeated(e, failure.code, now))
		return;
	e->last_error = failure.code;
	e->last_error_at = now;
	log_warn(log, "The Kafka client reports an error.",
		 log_text("error", rd_kafka_err2name(failure.code)), log_text("cause", cause),
		 log_bool("fatal", failure.fatal));
}

void kafka_events_log(struct kafka_events *e, const struct log *log, rd_kafka_resp_err_t code)
{
	int explained = code;
	log_failure(e, log, (struct kafka_failure){ code, false }, kafka_explain(&explained, NULL));
}

static bool is_of_connections(rd_kafka_resp_err_t code)
{
	return code == RD_KAFKA_RESP_ERR__TRANSPORT || code == RD_KAFKA_RESP_ERR__RESOLVE ||
	       code == RD_KAFKA_RESP_ERR__SSL || code == RD_KAFKA_RESP_ERR__AUTHENTICATION;
}

struct kafka_failure kafka_events_error(struct kafka_events *e, const struct log *log,
					rd_kafka_t *rk, rd_kafka_event_t *event)
{
	char text[8];
	int code = rd_kafka_event_error(event);
	bool fatal = code == RD_KAFKA_RESP_ERR__FATAL;
	if (fatal)
		code = rd_kafka_fatal_error(rk, text, sizeof text);
	const char *cause = kafka_explain(&code, rd_kafka_event_error_string(event));
	struct kafka_failure failure = { (rd_kafka_resp_err_t)code, fatal };
	if (is_of_connections(failure.code))
		e->trouble = failure.code;
	log_failure(e, log, failure, cause);
	return failure;
}
