/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kafka/kafka_consumer.h"

#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/quote.h"
#include "net/kafka/kafka_member.h"

#define TICK_NS UINT64_C(1000000000)
#define RENEW_TICKS 10      /* until a client takes the place of one that the group has expelled */
#define RESUBSCRIBE_TICKS 5 /* between questions for topics that do not exist yet */
enum pause { PAUSE_CALLER = 1, PAUSE_FULL = 2 };

/* All on the loop thread, except what `lock` guards. */
struct kafka_consumer {
	struct kafka_consumer_options options;
	struct tls_material material;
	struct member *member;  /* NULL: the group has expelled it, and its successor is to come */
	struct member *leaving; /* they end with their last messages */
	struct loop_timer *timer;
	uint32_t in_hand, full_ticks, ticks, renew_ticks;
	int64_t in_hand_bytes; /* of the values of these messages */
	unsigned pauses;
	bool taking, topic_missing, stopped;
	pthread_mutex_t lock; /* guards `ending`: members that are being closed */
	pthread_cond_t ended;
	uint32_t ending;
};

static void take(struct kafka_consumer *c);
static void retire(struct member *m);
static void end_when_done(struct member *m);

/* ---- partitions ---- */

static void observe(struct kafka_consumer *c)
{
	struct kafka_consumer_state state = { 0 };
	const struct member *m = c->member;
	for (const struct kafka_partition *p = m ? m->partitions.first : NULL; p; p = p->next) {
		int64_t low = -1, high = -1;
		state.partitions++;
		if (p->committable >= 0 &&
		    !rd_kafka_get_watermark_offsets(m->rk, p->topic, p->number, &low, &high) &&
		    high > p->committable)
			state.lag += high - p->committable;
	}
	c->options.observed(c->options.context, &state);
}

static void report_partitions(struct kafka_consumer *c, uint32_t started, uint32_t closed)
{
	c->options.partitions(c->options.context, started, closed);
	observe(c);
}

static void set_pauses(struct kafka_consumer *c, unsigned pauses)
{
	bool before = c->pauses, now = pauses;
	c->pauses = pauses;
	if (before != now && c->member)
		member_set_paused(c->member, now);
}

static void assign(struct member *m, const rd_kafka_topic_partition_list_t *list)
{
	struct kafka_consumer *c = m->consumer;
	member_assign(m, list);
	for (int i = 0; i < list->cnt; i++)
		kafka_partitions_add(&m->partitions, m, list->elems[i].topic,
				     list->elems[i].partition);
	if (c->pauses || m != c->member)
		member_set_paused(m, true);
	kafka_events_work(&m->events);
	report_partitions(c, (uint32_t)list->cnt, 0);
}

static void forget(struct member *m, bool all)
{
	uint32_t count = 0;
	for (struct kafka_partition *p = m->partitions.first, *next; p; p = next) {
		next = p->next;
		if (!all && !p->leaving)
			continue;
		kafka_partitions_remove(&m->partitions, p);
		count++;
	}
	report_partitions(m->consumer, 0, count);
}

static void revoke_now(struct member *m)
{
	rd_kafka_event_t *event = m->revocation;
	m->revocation = NULL;
	member_unassign(m, rd_kafka_event_topic_partition_list(event));
	forget(m, false);
	rd_kafka_event_destroy(event);
}

static void revoke_overdue(struct member *m)
{
	if (m->revocation && clock_now() >= m->revoke_by)
		revoke_now(m);
}

/* Takes the event. */
static void revoke(struct member *m, rd_kafka_event_t *event)
{
	const rd_kafka_topic_partition_list_t *list = rd_kafka_event_topic_partition_list(event);
	for (int i = 0; i < list->cnt; i++) {
		struct kafka_partition *p =
			kafka_partitions_find(&m->partitions, list->elems[i].topic,
					      list->elems[i].partition);
		if (p)
			p->leaving = true;
	}
	m->revocation = event;
	m->revoke_by = clock_now() + KAFKA_REVOKE_WAIT_MS * UINT64_C(1000000);
	if (rd_kafka_assignment_lost(m->rk) || !kafka_partitions_leaving(&m->partitions))
		revoke_now(m);
}

/* Of what has no event of an error. */
static void report_failure(struct member *m, rd_kafka_resp_err_t code)
{
	const struct kafka_consumer_options *o = &m->consumer->options;
	kafka_events_log(&m->events, code);
	o->failed(o->context, kafka_judge(code).reason);
}

/* Takes the event. */
static void on_rebalance(struct member *m, rd_kafka_event_t *event)
{
	rd_kafka_resp_err_t code = rd_kafka_event_error(event);
	if (m->revocation)
		revoke_now(m);
	if (code == RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS) {
		revoke(m, event);
		return;
	}
	if (code == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
		assign(m, rd_kafka_event_topic_partition_list(event));
	} else {
		report_failure(m, code);
		rd_kafka_assign(m->rk, NULL);
		forget(m, true);
	}
	rd_kafka_event_destroy(event);
}

/* ---- messages ---- */

static bool is_full(const struct kafka_consumer *c)
{
	return c->in_hand >= c->options.in_flight_max ||
	       c->in_hand_bytes >= c->options.in_hand_bytes_max;
}

/* Returns how many of them are beyond the maximum. */
static size_t take_bytes(struct kafka_consumer *c, size_t bytes)
{
	c->in_hand_bytes += (int64_t)bytes;
	int64_t beyond = c->in_hand_bytes - c->options.in_hand_bytes_max;
	return beyond <= 0 ? 0 : (size_t)beyond < bytes ? (size_t)beyond : bytes;
}

/* Takes the event. What belongs to no partition of ours is read by others. */
static void on_message(struct member *m, rd_kafka_event_t *event)
{
	struct kafka_consumer *c = m->consumer;
	const rd_kafka_message_t *record = rd_kafka_event_message_next(event);
	struct kafka_partition *p =
		record && !record->err
			? kafka_partitions_find(&m->partitions, rd_kafka_topic_name(record->rkt),
						record->partition)
			: NULL;
	if (!p || p->leaving || m != c->member) {
		rd_kafka_event_destroy(event);
		return;
	}
	c->topic_missing = false;
	kafka_events_work(&m->events);
	m->in_hand++;
	c->in_hand++;
	m->taken_messages++;
	m->taken_bytes += record->len;
	struct kafka_message_in *message = kafka_partition_push(p, record, event);
	message->excess = take_bytes(c, record->len);
	c->options.arrived(c->options.context, message);
}

/* Gives back the record. True: there is something new to commit. */
static bool let_go(struct kafka_message_in *message)
{
	struct member *m = message->from->member;
	m->in_hand--;
	m->consumer->in_hand--;
	m->consumer->in_hand_bytes -= (int64_t)message->value.len;
	rd_kafka_event_destroy(message->event);
	message->event = NULL;
	return kafka_partition_settle(message->from);
}

void kafka_message_finish(struct kafka_message_in **slot)
{
	struct kafka_partition *p = (*slot)->from; /* freed by let_go unless it returns true */
	struct member *m = p->member;
	struct kafka_consumer *c = m->consumer;
	if (let_go(*slot))
		member_store_offset(m, p);
	*slot = NULL;
	if (m->revocation && !kafka_partitions_leaving(&m->partitions))
		revoke_now(m);
	if (m != c->member)
		end_when_done(m);
	take(c);
}

void kafka_message_abandon(struct kafka_message_in **slot)
{
	(*slot)->abandoned = true;
	let_go(*slot);
	*slot = NULL;
}

static bool is_text(const uint8_t *at, size_t len)
{
	uint32_t code;
	for (size_t i = 0, n; i < len; i += n)
		if (!(n = quote_utf8(at + i, len - i, &code)) || !code)
			return false;
	return true;
}

bool kafka_message_headers(const struct kafka_message_in *message, struct fields *fields,
			   struct error *err)
{
	rd_kafka_headers_t *headers;
	const char *name;
	const void *value;
	size_t len;
	if (rd_kafka_message_headers(message->record, &headers))
		return true;
	for (size_t i = 0; !rd_kafka_header_get_all(headers, i, &name, &value, &len); i++) {
		struct view text = { value, value ? len : 0 };
		if (*name && is_text((const uint8_t *)name, strlen(name)) &&
		    is_text(text.at, text.len) && !fields_add(fields, view_of(name), text, err))
			return false;
	}
	return true;
}

/* ---- events ---- */

static void on_commit(struct member *m, rd_kafka_event_t *event)
{
	rd_kafka_resp_err_t code = rd_kafka_event_error(event);
	if (!code)
		kafka_events_work(&m->events);
	else if (code != RD_KAFKA_RESP_ERR__NO_OFFSET)
		report_failure(m, code);
}

/* Is it fatal? */
static bool on_error(struct member *m, rd_kafka_event_t *event)
{
	struct kafka_consumer *c = m->consumer;
	struct kafka_failure failure = kafka_events_error(&m->events, m->rk, event);
	c->topic_missing |= failure.why.cause.kind == CAUSE_TOPIC_MISSING;
	if (failure.why.code != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN)
		c->options.failed(c->options.context, failure.why.reason);
	return failure.fatal;
}

/* Takes the event. */
static void serve(struct member *m, rd_kafka_event_t *event)
{
	struct kafka_consumer *c = m->consumer;
	bool fatal = false;
	switch (rd_kafka_event_type(event)) {
	case RD_KAFKA_EVENT_FETCH:
		on_message(m, event);
		return;
	case RD_KAFKA_EVENT_REBALANCE:
		on_rebalance(m, event);
		return;
	case RD_KAFKA_EVENT_OFFSET_COMMIT:
		on_commit(m, event);
		break;
	case RD_KAFKA_EVENT_ERROR:
		fatal = on_error(m, event);
		break;
	default:
		break;
	}
	rd_kafka_event_destroy(event);
	if (fatal && m == c->member)
		retire(m);
}

/* Hands out messages as long as the caller may have more. While the partitions are paused, none
 * come, and other events do. Each poll also shows librdkafka that the consumer is alive. */
static void take(struct kafka_consumer *c)
{
	rd_kafka_event_t *event;
	if (c->taking || c->stopped)
		return;
	c->taking = true;
	while (c->member && (c->pauses || !is_full(c))) {
		event = rd_kafka_queue_poll(c->member->events.queue, 0);
		if (!event) {
			member_fetch(c->member);
			break;
		}
		serve(c->member, event);
	}
	c->taking = false;
}

static void drain(struct member *m)
{
	rd_kafka_event_t *event;
	while ((event = rd_kafka_queue_poll(m->events.queue, 0)))
		serve(m, event);
}

static void on_ready(void *argument, int fd, unsigned events)
{
	struct member *m = argument;
	(void)events;
	if (!kafka_events_woken(fd))
		return;
	if (m == m->consumer->member)
		take(m->consumer);
	else
		drain(m);
}

/* ---- members ---- */

static struct member *join(struct kafka_consumer *c, const struct tls_material *material,
			   struct error *err)
{
	struct member *m = member_new(&c->options, material, on_ready, err);
	if (m)
		m->consumer = c;
	return m;
}

static void close_one(void *argument)
{
	struct member *m = argument;
	struct kafka_consumer *c = m->consumer;
	member_close(m);
	pthread_mutex_lock(&c->lock);
	c->ending--;
	pthread_cond_broadcast(&c->ended);
	pthread_mutex_unlock(&c->lock);
}

/* Closes a leaving member that has no message left. */
static void end_when_done(struct member *m)
{
	struct kafka_consumer *c = m->consumer;
	struct member **place = &c->leaving;
	if (m->in_hand || c->stopped)
		return;
	while (*place != m)
		place = &(*place)->next;
	*place = m->next;
	forget(m, true);
	pthread_mutex_lock(&c->lock);
	c->ending++;
	pthread_mutex_unlock(&c->lock);
	loop_work(c->options.loop, close_one, NULL, m);
}

/* The consumer does not use it any more. */
static void retire(struct member *m)
{
	struct kafka_consumer *c = m->consumer;
	c->member = NULL;
	c->renew_ticks = RENEW_TICKS;
	m->next = c->leaving;
	c->leaving = m;
	member_set_paused(m, true);
	end_when_done(m);
}

static void use_member(struct kafka_consumer *c, struct member *m)
{
	if (c->member)
		retire(c->member);
	c->member = m;
	take(c);
}

/* ---- once per second ---- */

static void renew_expelled(struct kafka_consumer *c)
{
	struct error err = { 0 };
	if (c->member || c->renew_ticks-- > 1)
		return;
	struct member *m = join(c, &c->material, &err);
	c->renew_ticks = RENEW_TICKS;
	if (m)
		use_member(c, m);
	else
		log_error(c->options.log, "Cannot create a new Kafka client.",
			  log_text("error", err.text));
}

static void check_fullness(struct kafka_consumer *c)
{
	c->full_ticks = is_full(c) ? c->full_ticks + 1 : 0;
	set_pauses(c, c->full_ticks > 1 ? c->pauses | PAUSE_FULL : c->pauses & ~PAUSE_FULL);
}

static void on_tick(void *argument)
{
	struct kafka_consumer *c = argument;
	if (c->member)
		revoke_overdue(c->member);
	for (struct member *m = c->leaving; m; m = m->next)
		revoke_overdue(m);
	if (c->member && c->topic_missing && !c->member->partitions.count &&
	    ++c->ticks % RESUBSCRIBE_TICKS == 0)
		member_subscribe(c->member);
	renew_expelled(c);
	check_fullness(c);
	take(c);
	observe(c);
	loop_timer_start(c->timer, TICK_NS);
}

/* ---- life ---- */

void kafka_consumer_pause(struct kafka_consumer *c)
{
	set_pauses(c, c->pauses | PAUSE_CALLER);
}

void kafka_consumer_resume(struct kafka_consumer *c)
{
	set_pauses(c, c->pauses & ~PAUSE_CALLER);
	take(c);
}

struct kafka_consumer *kafka_consumer_new(const struct kafka_consumer_options *options,
					  struct error *err)
{
	struct kafka_consumer *c = memory_new(sizeof *c);
	c->options = *options;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->ended, NULL);
	kafka_client_warn(options->config, options->log);
	if (kafka_client_load(options->config, &c->material, err))
		c->member = join(c, &c->material, err);
	if (!c->member) {
		kafka_consumer_unref(&c);
		return NULL;
	}
	c->timer = loop_timer_new(options->loop, on_tick, c);
	loop_timer_start(c->timer, TICK_NS);
	return c;
}

/* Everything that changes the client in use runs on the loop. */
struct renewal {
	struct kafka_consumer *consumer;
	struct tls_material fresh; /* afterwards: what is no longer used */
	bool changed, ok;
	struct error *err;
};

static void renew(void *argument)
{
	struct renewal *r = argument;
	struct kafka_consumer *c = r->consumer;
	r->changed = !tls_equal(&r->fresh, &c->material);
	struct member *m = r->changed ? join(c, &r->fresh, r->err) : NULL;
	r->ok = !r->changed || m;
	if (!m)
		return;
	struct tls_material old = c->material;
	c->material = r->fresh;
	r->fresh = old;
	use_member(c, m);
}

bool kafka_consumer_reopen(struct kafka_consumer *c, bool *changed, struct error *err)
{
	struct renewal r = { .consumer = c, .err = err };
	if (kafka_client_load(c->options.config, &r.fresh, err))
		loop_call(c->options.loop, renew, &r);
	tls_release(&r.fresh);
	*changed = r.changed && r.ok;
	return r.ok;
}

static void stop(void *argument)
{
	struct kafka_consumer *c = argument;
	c->stopped = true;
	if (c->timer)
		loop_timer_unref(&c->timer);
}

void kafka_consumer_unref(struct kafka_consumer **slot)
{
	struct kafka_consumer *c = *slot;
	*slot = NULL;
	if (!c)
		return;
	loop_call(c->options.loop, stop, c);
	if (c->member)
		member_close(c->member);
	for (struct member *m = c->leaving, *next; m; m = next) {
		next = m->next;
		member_close(m);
	}
	pthread_mutex_lock(&c->lock);
	while (c->ending)
		pthread_cond_wait(&c->ended, &c->lock);
	pthread_mutex_unlock(&c->lock);
	tls_release(&c->material);
	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->ended);
	memory_free(c);
}
