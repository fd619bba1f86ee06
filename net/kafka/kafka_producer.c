/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kafka/kafka_producer.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "net/kafka/kafka_events.h"
#include "net/kafka/kafka_instance.h"
#include "net/kafka/kafka_window.h"

#define POLL_MS 100
#define REPEAT_MAX_MS INT64_C(30000)

/* One client of librdkafka. */
struct line {
	struct kafka_producer *producer;
	rd_kafka_t *rk;
	struct kafka_events events;
	pthread_mutex_t lock; /* guards all that follows, and the order of messages */
	struct kafka_window window;
	struct flight *first, **end; /* those that wait until the window admits them */
};

struct kafka_producer {
	struct kafka_producer_options options;
	struct tls_material material;
	pthread_rwlock_t lock; /* guards `line`: a sender keeps it while it hands over */
	struct line *line;
	_Atomic bool stopping;       /* the line is not replaced any more */
	pthread_mutex_t ending_lock; /* guards `ending`: lines that are being closed */
	pthread_cond_t ended;
	uint32_t ending;
};

/* A message, until it is reported. What librdkafka copies is freed when it has it. */
struct flight {
	void (*done)(void *argument, struct kafka_result result);
	void *argument;
	struct flight *next;
	uint64_t deadline_ns;       /* it waits no longer to be handed over */
	struct kafka_result result; /* how it ended */
	char *topic, *key;
	size_t key_len, size; /* size: at most what it takes in a request */
	struct view value;
	rd_kafka_headers_t *headers;
};

static void replace_line(struct kafka_producer *producer);

/* ---- handing over ---- */

static rd_kafka_headers_t *headers_of(const struct metadatum *list)
{
	if (!list || !list->name)
		return NULL;
	rd_kafka_headers_t *headers = rd_kafka_headers_new(8);
	for (const struct metadatum *m = list; m->name; m++)
		rd_kafka_header_add(headers, m->name, -1, m->value, -1);
	return headers;
}

/* Lengths, offset and time are variable-length numbers (kafka.apache.org, "Record"). */
static size_t size_of(const struct kafka_message *m)
{
	enum { RECORD_BYTES = 64, HEADER_BYTES = 10 };
	size_t size = RECORD_BYTES + m->key.len + m->value.len;
	for (const struct metadatum *h = m->headers; h && h->name; h++)
		size += HEADER_BYTES + strlen(h->name) + (h->value ? strlen(h->value) : 0);
	return size;
}

static struct flight *flight_new(const struct kafka_message *m,
				 void (*done)(void *argument, struct kafka_result result),
				 void *argument)
{
	struct flight *f = memory_new(sizeof *f);
	*f = (struct flight){ .done = done,
			      .argument = argument,
			      .topic = memory_text(m->topic),
			      .key = m->key.at ? memory_text_of(m->key.at, m->key.len) : NULL,
			      .key_len = m->key.len,
			      .size = size_of(m),
			      .value = m->value,
			      .headers = headers_of(m->headers) };
	return f;
}

static void forget_message(struct flight *f)
{
	memory_free(f->topic);
	memory_free(f->key);
	if (f->headers)
		rd_kafka_headers_destroy(f->headers);
	f->topic = f->key = NULL;
	f->headers = NULL;
}

static void finish(struct flight *flight)
{
	struct flight f = *flight;
	forget_message(&f);
	memory_free(flight);
	f.done(f.argument, f.result);
}

static void finish_all(struct flight *list)
{
	while (list) {
		struct flight *next = list->next;
		finish(list);
		list = next;
	}
}

/* Under the lock: its report, which frees it, is taken after that. */
static rd_kafka_resp_err_t produce(struct line *line, struct flight *f)
{
	rd_kafka_resp_err_t code =
		rd_kafka_producev(line->rk, RD_KAFKA_V_TOPIC(f->topic), RD_KAFKA_V_MSGFLAGS(0),
				  RD_KAFKA_V_KEY(f->key, f->key_len),
				  RD_KAFKA_V_VALUE((void *)f->value.at, f->value.len),
				  RD_KAFKA_V_HEADERS(f->headers), RD_KAFKA_V_OPAQUE(f),
				  RD_KAFKA_V_END);
	if (!code)
		f->headers = NULL; /* they are librdkafka's now */
	forget_message(f);
	return code;
}

static struct flight *take_first(struct line *line)
{
	struct flight *f = line->first;
	line->first = f->next;
	if (!line->first)
		line->end = &line->first;
	f->next = NULL;
	return f;
}

/* Hands over what the window admits, in order. Those that librdkafka does not take are returned. */
static struct flight *hand_over(struct line *line)
{
	uint64_t now = clock_now();
	struct flight *failed = NULL, **end = &failed;
	while (line->first && kafka_window_admit(&line->window, (int64_t)line->first->size, now)) {
		struct flight *f = take_first(line);
		rd_kafka_resp_err_t code = produce(line, f);
		if (!code)
			continue;
		kafka_window_release(&line->window);
		f->result = kafka_judge(code);
		*end = f;
		end = &f->next;
	}
	return failed;
}

static void append(struct line *line, struct flight *f)
{
	int64_t timeout_ns = line->producer->options.timeout_ns;
	f->deadline_ns = timeout_ns ? clock_now() + (uint64_t)timeout_ns : UINT64_MAX;
	*line->end = f;
	line->end = &f->next;
}

/* What waits will not be handed over. */
static void cancel_waiting(struct line *line)
{
	struct flight *cancelled = NULL, **end = &cancelled;
	pthread_mutex_lock(&line->lock);
	while (line->first) {
		*end = take_first(line);
		(*end)->result = kafka_judge(RD_KAFKA_RESP_ERR__PURGE_QUEUE);
		end = &(*end)->next;
	}
	pthread_mutex_unlock(&line->lock);
	finish_all(cancelled);
}

static bool is_busy(struct line *line)
{
	pthread_mutex_lock(&line->lock);
	bool busy = line->first || line->window.in_flight;
	pthread_mutex_unlock(&line->lock);
	return busy;
}

/* ---- events ---- */

/* A message that waited for a connection in vain ends by what connections failed with. */
static struct kafka_result result_of(struct line *line, rd_kafka_resp_err_t code)
{
	if (!code)
		kafka_events_work(&line->events);
	return code == RD_KAFKA_RESP_ERR__MSG_TIMED_OUT && line->events.trouble.reason
		       ? line->events.trouble
		       : kafka_judge(code);
}

static struct flight **end_as(struct line *line, struct flight *f, rd_kafka_resp_err_t code,
			      struct flight **end)
{
	f->result = result_of(line, code);
	*end = f;
	return &f->next;
}

/* Others follow before the reports, which may take time, are passed on. */
static void on_reports(struct line *line, rd_kafka_event_t *event)
{
	const rd_kafka_message_t *message;
	struct flight *ended = NULL, **end = &ended;
	pthread_mutex_lock(&line->lock);
	while ((message = rd_kafka_event_message_next(event))) {
		end = end_as(line, message->_private, message->err, end);
		kafka_window_release(&line->window);
	}
	while (line->first && line->first->deadline_ns < clock_now())
		end = end_as(line, take_first(line), RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, end);
	*end = hand_over(line);
	pthread_mutex_unlock(&line->lock);
	finish_all(ended);
}

/* Takes the events that are there, or waits for one. Has the client ended for itself? */
static bool take_events(struct line *line, int wait_ms)
{
	rd_kafka_event_t *event;
	bool fatal = false;
	while ((event = rd_kafka_queue_poll(line->events.queue, wait_ms))) {
		if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_DR)
			on_reports(line, event);
		else if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_ERROR)
			fatal |= kafka_events_error(&line->events, line->rk, event).fatal;
		rd_kafka_event_destroy(event);
		wait_ms = 0;
	}
	return fatal;
}

static void on_ready(void *argument, int fd, unsigned events)
{
	struct line *line = argument;
	struct kafka_producer *p = line->producer;
	(void)events;
	if (kafka_events_woken(fd) && take_events(line, 0) && line == p->line && !p->stopping)
		replace_line(p);
}

/* ---- one client ---- */

static bool is_idempotent(const struct kafka_producer_options *o)
{
	return o->acks == -1;
}

/*
 * librdkafka would repeat what a broker refuses for now until the message has timed out, and then
 * report only that. Its repetitions end before, so that the broker's answer is reported. One takes
 * the delay, or about twice as long if the client asks for the leader first. Topics that do not
 * exist are reported before the timeout too.
 */
static bool set_retries(rd_kafka_conf_t *conf, const struct kafka_producer_options *o,
			int64_t timeout_ms, struct error *err)
{
	int64_t backoff_ms = o->config->metadata.retry.backoff.ns / 1000000;
	int64_t repeat_ms = timeout_ms > 0 ? timeout_ms / 4 * 3 : REPEAT_MAX_MS;
	char text[24];
	if (repeat_ms > REPEAT_MAX_MS)
		repeat_ms = REPEAT_MAX_MS;
	snprintf(text, sizeof text, "%lld", (long long)backoff_ms);
	return kafka_client_set_known(conf, "retry.backoff.max.ms", text, err) &&
	       kafka_client_set_number(conf, "message.send.max.retries",
				       repeat_ms / 2 / backoff_ms + 1, err) &&
	       kafka_client_set_number(conf, "topic.metadata.propagation.max.ms", repeat_ms, err);
}

/* librdkafka counts messages until their report has been freed, and each may be followed by another
 * one during its report. */
static bool set_producer(rd_kafka_conf_t *conf, const struct kafka_producer_options *o,
			 struct error *err)
{
	int64_t messages = 2 * o->in_flight;
	int64_t kbytes = messages * (o->max_message_bytes / 1024 + 1);
	int64_t timeout_ms = kafka_client_ms(o->timeout_ns), wait_ms = timeout_ms;
	if (wait_ms <= 0 || wait_ms > 900000)
		wait_ms = 900000;
	return kafka_client_set(conf, "enable.idempotence", is_idempotent(o) ? "true" : "false",
				err) &&
	       kafka_client_set_number(conf, "acks", o->acks, err) &&
	       kafka_client_set(conf, "compression.codec", o->compression, err) &&
	       kafka_client_set_number(conf, "compression.level", o->compression_level, err) &&
	       kafka_client_set(conf, "partitioner", o->partitioner, err) &&
	       kafka_client_set_number(conf, "message.max.bytes", o->max_message_bytes, err) &&
	       kafka_client_set_number(conf, "batch.size", o->max_message_bytes, err) &&
	       kafka_client_set_number(conf, "batch.num.messages", o->batch_messages, err) &&
	       kafka_client_set_number(conf, "queue.buffering.max.messages", messages, err) &&
	       kafka_client_set_number(conf, "queue.buffering.max.kbytes",
				       kbytes < INT32_MAX ? kbytes : INT32_MAX, err) &&
	       kafka_client_set_number(conf, "linger.ms", o->linger_ns / 1000000, err) &&
	       kafka_client_set_number(conf, "message.timeout.ms", timeout_ms, err) &&
	       kafka_client_set_number(conf, "request.timeout.ms", wait_ms, err) &&
	       set_retries(conf, o, timeout_ms, err) &&
	       kafka_client_set(conf, "allow.auto.create.topics",
				o->create_topics ? "true" : "false", err);
}

static rd_kafka_t *client_new(const struct kafka_producer *p, const struct tls_material *material,
			      struct error *err)
{
	rd_kafka_conf_t *conf = kafka_client_conf(p->options.config, material, err);
	if (!conf)
		return NULL;
	rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_ERROR);
	if (set_producer(conf, &p->options, err))
		return kafka_instance_new(RD_KAFKA_PRODUCER, conf, err);
	rd_kafka_conf_destroy(conf);
	return NULL;
}

static void line_free(struct line *line)
{
	if (line->rk)
		kafka_instance_free(line->rk);
	pthread_mutex_destroy(&line->lock);
	memory_free(line);
}

static struct line *line_new(struct kafka_producer *p, const struct tls_material *material,
			     struct error *err)
{
	struct line *line = memory_new(sizeof *line);
	*line = (struct line){ .producer = p,
			       .window = { .unlimited = !is_idempotent(&p->options),
					   .batch_bytes = p->options.max_message_bytes,
					   .batch_messages = p->options.batch_messages,
					   .linger_ns = (uint64_t)p->options.linger_ns },
			       .end = &line->first };
	pthread_mutex_init(&line->lock, NULL);
	const struct kafka_events_options events = { .loop = p->options.loop,
						     .log = p->options.log,
						     .config = p->options.config,
						     .ready = on_ready,
						     .argument = line };
	line->rk = client_new(p, material, err);
	if (line->rk &&
	    kafka_events_open(&line->events, rd_kafka_queue_get_main(line->rk), &events, err))
		return line;
	line_free(line);
	return NULL;
}

static void cancel(struct line *line)
{
	cancel_waiting(line);
	rd_kafka_purge(line->rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT |
					 RD_KAFKA_PURGE_F_NON_BLOCKING);
}

/* Takes the rest of its reports here. Cancels what is left when the producer stops, and when the
 * time of a replaced client is over: without a timeout, librdkafka would keep it. [pool thread] */
static void line_close(struct line *line)
{
	uint64_t until = clock_now() + (uint64_t)line->producer->options.replaced_ns;
	bool cancelled = false;
	kafka_events_leave(&line->events);
	while (is_busy(line)) {
		if ((line->producer->stopping || clock_now() >= until) && !cancelled) {
			cancel(line);
			cancelled = true;
		}
		take_events(line, POLL_MS);
	}
	kafka_events_close(&line->events);
	line_free(line);
}

/* ---- the client in use ---- */

static void close_old(void *argument)
{
	struct line *line = argument;
	struct kafka_producer *p = line->producer;
	line_close(line);
	pthread_mutex_lock(&p->ending_lock);
	p->ending--;
	pthread_cond_broadcast(&p->ended);
	pthread_mutex_unlock(&p->ending_lock);
}

static void use_line(struct kafka_producer *p, struct line *line)
{
	pthread_rwlock_wrlock(&p->lock);
	struct line *old = p->line;
	p->line = line;
	pthread_rwlock_unlock(&p->lock);
	if (!old)
		return;
	pthread_mutex_lock(&p->ending_lock);
	p->ending++;
	pthread_mutex_unlock(&p->ending_lock);
	loop_work(p->options.loop, close_old, NULL, old);
}

/* On failure the old one stays, whose next error tries again. */
static void replace_line(struct kafka_producer *p)
{
	struct error err = { 0 };
	struct line *line = line_new(p, &p->material, &err);
	if (line)
		use_line(p, line);
	else
		log_error(p->options.log, "Cannot create a new Kafka client.",
			  log_text("error", err.text));
}

/* Everything that changes the client in use runs on the loop. */
struct renewal {
	struct kafka_producer *producer;
	struct tls_material fresh; /* afterwards: what is no longer used */
	bool changed, ok;
	struct error *err;
};

static void renew(void *argument)
{
	struct renewal *r = argument;
	struct kafka_producer *p = r->producer;
	r->changed = !tls_equal(&r->fresh, &p->material);
	struct line *line = r->changed ? line_new(p, &r->fresh, r->err) : NULL;
	r->ok = !r->changed || line;
	if (!line)
		return;
	struct tls_material old = p->material;
	p->material = r->fresh;
	r->fresh = old;
	use_line(p, line);
}

bool kafka_producer_reopen(struct kafka_producer *p, bool *changed, struct error *err)
{
	struct renewal r = { .producer = p, .err = err };
	if (kafka_client_load(p->options.config, &r.fresh, err))
		loop_call(p->options.loop, renew, &r);
	tls_release(&r.fresh);
	*changed = r.changed && r.ok;
	return r.ok;
}

struct kafka_producer *kafka_producer_new(const struct kafka_producer_options *options,
					  struct error *err)
{
	struct kafka_producer *p = memory_new(sizeof *p);
	p->options = *options;
	pthread_rwlock_init(&p->lock, NULL);
	pthread_mutex_init(&p->ending_lock, NULL);
	pthread_cond_init(&p->ended, NULL);
	kafka_client_warn(options->config, options->log);
	if (kafka_client_load(p->options.config, &p->material, err))
		p->line = line_new(p, &p->material, err);
	if (!p->line)
		kafka_producer_unref(&p);
	return p;
}

/* On the loop thread, which may be about to replace the line. */
static void stop_replacing(void *argument)
{
	((struct kafka_producer *)argument)->stopping = true;
}

void kafka_producer_unref(struct kafka_producer **slot)
{
	struct kafka_producer *p = *slot;
	*slot = NULL;
	if (!p)
		return;
	loop_call(p->options.loop, stop_replacing, p);
	if (p->line)
		line_close(p->line);
	pthread_mutex_lock(&p->ending_lock);
	while (p->ending)
		pthread_cond_wait(&p->ended, &p->ending_lock);
	pthread_mutex_unlock(&p->ending_lock);
	tls_release(&p->material);
	pthread_rwlock_destroy(&p->lock);
	pthread_mutex_destroy(&p->ending_lock);
	pthread_cond_destroy(&p->ended);
	memory_free(p);
}

/* ---- sending ---- */

void kafka_producer_send(struct kafka_producer *p, const struct kafka_message *message,
			 void (*done)(void *argument, struct kafka_result result), void *argument)
{
	struct flight *flight = flight_new(message, done, argument);
	pthread_rwlock_rdlock(&p->lock);
	struct line *line = p->line;
	pthread_mutex_lock(&line->lock);
	append(line, flight);
	struct flight *failed = hand_over(line);
	pthread_mutex_unlock(&line->lock);
	pthread_rwlock_unlock(&p->lock);
	finish_all(failed);
}
