/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/delivery/delivery.h"

#include "base/clock.h"
#include "base/memory.h"
#include "pipeline/budget.h"
#include "pipeline/delivery/backlog.h"
#include "pipeline/delivery/delivery_metrics.h"

#include <assert.h>
#include <pthread.h>

struct book { /* the ledger of one pipeline at this destination */
	struct book *next;
	struct ledger_destination ledger;
};

/* one consumer; belongs to whoever took it from the idle ones, or was told the result */
struct sending {
	struct delivery *delivery;
	struct sending *next; /* idle */
	struct item *item;    /* NULL: idle */
	int64_t expected;     /* bytes of the parts that are not made yet */
	struct parts parts;
	uint32_t part;
	struct loop_timer *timer;
	struct send_result result;
	uint64_t begun; /* of the part's first attempt, clock_now */
	int64_t interval_ns;
	bool flying;
	bool planned;             /* the item */
	bool again;               /* the part is to be split, by what its refusal taught */
	bool waiting;             /* for its retry; loop thread */
	enum ack_outcome outcome; /* of the item: the worst of its parts */
};

struct delivery {
	struct delivery_options options;
	struct sending *consumers;
	uint32_t consumer_count;
	bool waits;
	struct plan plan;

	/* Guards all of this. Something waits only while no consumer is idle, or memory is short
	 * and one is busy. */
	pthread_mutex_t lock;
	struct backlog backlog;
	struct sending *idle;
	uint32_t busy; /* consumers */
	struct book *books;
	void (*drained)(void *argument);
	void *argument;

	_Atomic bool draining;
	_Atomic bool told[PART_DROPPED]; /* that plan drops for this reason, the log knows */
	_Atomic uint64_t lost;           /* samples given up since then */
	_Atomic enum { WORKING, RETRYING, DROPPING } state; /* as the log knows it */
	struct delivery_counters count;
};

static void retry_due(void *argument);

/* Of packets that a plan makes: of the program's budget, and of this destination's share. */
static void charge_part(void *context, int64_t bytes, bool claim)
{
	struct delivery *d = context;
	if (!claim)
		backlog_made(&d->backlog, bytes);
	budget_charge(d->options.budget, bytes, claim);
}

static void refresh(void *context)
{
	struct delivery *d = context;
	metric_set(d->count.held, backlog_bytes(&d->backlog));
}

static void init_plan(struct delivery *d)
{
	const struct delivery_options *o = &d->options;
	const struct batch_settings batch = queue_batching(&o->config->sending_queue);
	/* A batch counted in samples has a maximum of bytes only to suit receivers; it does not
	 * bound requests. */
	bool bounded = batch.on && o->config->sending_queue.batch.max_size;
	plan_init(&d->plan, &(struct plan_options){
				    .ops = o->ops,
				    .exporter = o->exporter,
				    .limits = &o->config->limits,
				    .batch_samples = bounded ? batch.max_size : 0,
				    .batch_bytes = bounded && !batch.max_size ? batch.max_bytes : 0,
				    .id = o->id,
				    .log = o->log,
				    .metrics = o->metrics,
			    });
}

struct delivery *delivery_new(const struct delivery_options *options)
{
	const struct queue_config *q = &options->config->sending_queue;
	struct delivery *d = memory_new(sizeof *d);
	d->options = *options;
	/* Without a queue the sender waits for the result, as in the Collector, and little may
	 * wait. */
	d->waits = !q->present.enabled || q->wait_for_result;
	backlog_init(&d->backlog, q, options->ops->plan != NULL);
	d->consumer_count = (uint32_t)(q->present.enabled ? q->num_consumers : 10);
	if (options->ops->max_in_flight && d->consumer_count > options->ops->max_in_flight)
		d->consumer_count = options->ops->max_in_flight;
	d->consumers = memory_array(d->consumer_count, sizeof *d->consumers);
	for (uint32_t i = 0; i < d->consumer_count; i++) {
		d->consumers[i].delivery = d;
		d->consumers[i].timer = loop_timer_new(options->loop, retry_due, &d->consumers[i]);
		d->consumers[i].parts.charge = options->budget ? charge_part : NULL;
		d->consumers[i].parts.charge_context = d;
		d->consumers[i].next = d->idle;
		d->idle = &d->consumers[i];
	}
	pthread_mutex_init(&d->lock, NULL);
	init_plan(d);
	delivery_counters_init(&d->count, options, d->backlog.capacity);
	delivery_set_share(d, options->max_bytes);
	metrics_on_scrape(options->metrics, refresh, d);
	return d;
}

void delivery_set_share(struct delivery *d, int64_t bytes)
{
	backlog_set_share(&d->backlog, bytes);
	metric_set(d->count.share, bytes);
}

/* Under the lock. */
static struct ledger_destination *book_of(struct delivery *d, const struct ledger *pipeline)
{
	for (struct book *book = d->books; book; book = book->next)
		if (book->ledger.pipeline == pipeline->pipeline)
			return &book->ledger;
	struct book *book = memory_new(sizeof *book);
	ledger_destination_init(&book->ledger, pipeline, d->options.id);
	book->next = d->books;
	d->books = book;
	return &book->ledger;
}

/* Under the lock. An idle consumer with the next item, if there are both, and room for what will be
 * made of it. */
static struct sending *take_consumer(struct delivery *d)
{
	struct sending *s = d->idle;
	struct item *item = d->backlog.head;
	int64_t expected = s && item ? plan_expected(&d->plan, item->packet) : 0;
	if (!s || !item || (d->busy && !backlog_may_make(&d->backlog, expected)))
		return NULL;
	d->idle = s->next;
	d->busy++;
	s->item = backlog_take(&d->backlog);
	s->expected = expected;
	backlog_made(&d->backlog, expected);
	return s;
}

static void begin_item(struct sending *s);

static void overflow(struct delivery *d, struct item *item, bool reported)
{
	metric_add(d->count.enqueue_failed, (int64_t)item->left);
	metric_add(item->ledger->dropped[LEDGER_QUEUE_FULL], (int64_t)item->left);
	if (!reported)
		log_warn(d->options.log, "Sending queue is full. Dropping data.",
			 log_number("queue_size", d->backlog.units),
			 log_number("queue_bytes", backlog_bytes(&d->backlog)));
	if (d->waits)
		packet_release_acks(item->packet, ACK_FAILED);
	packet_unref(&item->packet);
	memory_free(item);
}

/* Under the lock. */
static bool enter(struct delivery *d, struct item *item, enum queue_entry entry)
{
	if (!backlog_add(&d->backlog, item, entry, d->state == WORKING))
		return false;
	metric_add(item->ledger->queued, (int64_t)item->left);
	metric_set(d->count.size, d->backlog.units);
	return true;
}

static struct item *new_item(struct delivery *d, struct packet *packet)
{
	const struct exporter_ops *ops = d->options.ops;
	struct item *item = memory_new(sizeof *item);
	item->packet = packet_ref(packet);
	item->holder.reads = ops->reads ? 1u << ops->reads(d->options.exporter) : 0;
	item->units = backlog_units_of(&d->backlog, packet);
	item->left = packet->samples;
	return item;
}

bool delivery_enqueue(struct delivery *d, struct packet *packet, const struct ledger *pipeline,
		      enum queue_entry entry)
{
	if (!loop_here(d->options.loop) && entry != ENTRY_REFUSED)
		plan_encode_small(&d->plan, packet);
	struct item *item = new_item(d, packet);
	if (d->waits)
		packet_hold_acks(packet);

	pthread_mutex_lock(&d->lock);
	item->ledger = book_of(d, pipeline);
	bool reported = d->backlog.full;
	bool taken = enter(d, item, entry);
	struct sending *s = take_consumer(d);
	pthread_mutex_unlock(&d->lock);

	if (s)
		begin_item(s);
	if (!taken)
		overflow(d, item, reported);
	return taken;
}

static void tell_dropped(struct delivery *d, enum part_dropped r, enum ledger_reason reason,
			 uint64_t samples)
{
	if (!atomic_exchange(&d->told[r], true))
		log_warn(d->options.log,
			 "Dropping what the destination will not take. Said once, counted always.",
			 log_text("reason", ledger_reasons[reason]),
			 log_number("dropped_items", (int64_t)samples));
}

void delivery_drop(struct delivery *d, uint64_t samples, const struct ledger *pipeline,
		   enum ledger_reason reason)
{
	pthread_mutex_lock(&d->lock);
	struct ledger_destination *ledger = book_of(d, pipeline);
	pthread_mutex_unlock(&d->lock);
	metric_add(d->count.enqueue_failed, (int64_t)samples);
	metric_add(ledger->dropped[reason], (int64_t)samples);
	if (reason == LEDGER_TOO_LARGE)
		tell_dropped(d, PART_TOO_LARGE, reason, samples);
	else
		log_warn(d->options.log, "No memory for a batch. Dropping data.",
			 log_number("dropped_items", samples));
}

int64_t delivery_load(const struct delivery *d)
{
	return backlog_load(&d->backlog);
}

enum delivery_room delivery_room(struct delivery *d, struct packet *packet)
{
	bool blocks = d->options.config->sending_queue.block_on_overflow || d->waits;
	enum delivery_room room = backlog_room(&d->backlog, packet, d->state == WORKING);
	return blocks && room == ROOM_NONE ? ROOM_SOON : room;
}

bool delivery_waits(const struct delivery *d)
{
	return d->waits;
}

static void free_item(struct delivery *d, struct item *item, enum ack_outcome outcome)
{
	pthread_mutex_lock(&d->lock);
	bool recovered = backlog_remove(&d->backlog, item);
	metric_set(d->count.size, d->backlog.units);
	pthread_mutex_unlock(&d->lock);
	if (recovered)
		log_info(d->options.log, "Sending queue has room again.");
	if (d->waits)
		packet_release_acks(item->packet, outcome);
	packet_unref(&item->packet);
	memory_free(item);
}

static void give_up(struct sending *s, uint64_t samples, enum ledger_reason reason);
static void finish_item(struct sending *s);

/* What plan has no part for. */
static void count_dropped(struct sending *s)
{
	static const enum ledger_reason reasons[PART_DROPPED] = {
		[PART_TOO_LARGE] = LEDGER_TOO_LARGE,
		[PART_TOO_OLD] = LEDGER_TOO_OLD,
		[PART_TOO_NEW] = LEDGER_TOO_NEW,
	};
	struct delivery *d = s->delivery;
	for (unsigned r = 0; r < PART_DROPPED; r++) {
		uint64_t samples = s->parts.dropped[r];
		if (!samples)
			continue;
		s->parts.dropped[r] = 0;
		give_up(s, samples, reasons[r]);
		tell_dropped(d, r, reasons[r], samples);
	}
}

static bool prepare(struct sending *s)
{
	struct delivery *d = s->delivery;
	struct error err;
	error_clear(&err);
	if (s->planned && !s->again)
		return true;
	bool ok = true;
	if (s->again)
		plan_again(&d->plan, &s->parts, s->part);
	else
		ok = plan_packet(&d->plan, s->item->packet, &s->parts, &err);
	s->again = false;
	s->planned = true;
	backlog_made(&d->backlog, -s->expected);
	s->expected = 0;
	count_dropped(s);
	return ok;
}

static void send_part(void *argument)
{
	struct sending *s = argument;
	struct delivery *d = s->delivery;
	if (!prepare(s)) {
		sending_done(s, &(struct send_result){ .outcome = SEND_PERMANENT,
						       .retry_after_ms = -1,
						       .reason = "plan" });
	} else if (s->part < s->parts.count) {
		d->options.ops->send(d->options.exporter, &s->parts.at[s->part],
				     (uint64_t)d->options.config->timeout.ns, s);
	} else {
		s->flying = false;
		metric_add(d->count.flights, -1);
		finish_item(s);
	}
}

/* Where the exporter only hands on and nothing is to be split, the thread at hand does it. */
static void attempt(struct sending *s)
{
	struct delivery *d = s->delivery;
	s->flying = true;
	metric_add(d->count.flights, 1);
	const struct packet *packet = s->planned ? s->parts.at[s->part].packet : s->item->packet;
	if (!s->again && (s->planned || plan_is_plain(&d->plan, packet)) &&
	    plan_is_prompt(&d->plan, packet))
		send_part(s);
	else
		loop_work(d->options.loop, send_part, NULL, s);
}

static void begin_part(struct sending *s, uint32_t part)
{
	s->part = part;
	s->begun = clock_now();
	s->interval_ns = s->delivery->options.config->retry_on_failure.initial_interval.ns;
	attempt(s);
}

static void begin_item(struct sending *s)
{
	s->planned = s->again = false;
	s->outcome = ACK_TAKEN;
	begin_part(s, 0);
}

/* On the loop thread. Posted once, by whoever saw that nothing is left; nobody else has a hand on
 * the delivery then. */
static void settle(void *argument)
{
	struct delivery *d = argument;
	if (d->lost)
		log_error(d->options.log, "Shutdown dropped data.",
			  log_number("dropped_items", d->lost));
	d->drained(d->argument);
}

static void drop_samples(struct delivery *d, struct item *item, uint64_t samples,
			 enum ledger_reason reason)
{
	item->left -= samples;
	d->lost += d->draining ? samples : 0;
	metric_add(d->count.failed, (int64_t)samples);
	metric_add(item->ledger->queued, -(int64_t)samples);
	metric_add(item->ledger->dropped[reason], (int64_t)samples);
}

/* The sender may try again what time may mend, and nothing else. */
static enum ack_outcome outcome_of(enum ledger_reason reason)
{
	bool passes = reason == LEDGER_NO_RETRY || reason == LEDGER_RETRIES_EXHAUSTED ||
		      reason == LEDGER_SHUTDOWN;
	return passes ? ACK_FAILED : ACK_REFUSED;
}

/* Whose part of the packet was refused is not known: of several senders none is told that to come
 * back is in vain. */
static enum ack_outcome told(const struct sending *s)
{
	bool several = s->item->packet->contribution_count > 1;
	return s->outcome == ACK_REFUSED && several ? ACK_FAILED : s->outcome;
}

static void give_up(struct sending *s, uint64_t samples, enum ledger_reason reason)
{
	if (outcome_of(reason) > s->outcome)
		s->outcome = outcome_of(reason);
	drop_samples(s->delivery, s->item, samples, reason);
}

static void finish_item(struct sending *s)
{
	struct delivery *d = s->delivery;
	struct loop *loop = d->options.loop;
	if (s->item->left)
		give_up(s, s->item->left, LEDGER_PLAN);
	parts_clear(&s->parts);
	free_item(d, s->item, told(s));

	pthread_mutex_lock(&d->lock);
	s->item = NULL;
	s->next = d->idle;
	d->idle = s;
	d->busy--;
	/* Two: when memory was short, there may be room for more of them again. */
	struct sending *next = take_consumer(d), *another = take_consumer(d);
	bool settled = !d->busy && d->drained;
	pthread_mutex_unlock(&d->lock);

	if (next)
		begin_item(next);
	if (another)
		begin_item(another);
	if (settled)
		loop_post(loop, settle, d);
}

static void next_part(struct sending *s)
{
	if (s->parts.count)
		packet_unref(&s->parts.at[s->part].packet);
	if (s->part + 1 < s->parts.count)
		begin_part(s, s->part + 1);
	else
		finish_item(s);
}

/* Without a plan the item goes as a whole. */
static void drop_part(struct sending *s, enum ledger_reason reason)
{
	struct delivery *d = s->delivery;
	uint64_t samples = s->parts.count ? s->parts.at[s->part].samples : s->item->left;
	give_up(s, samples, reason);
	if (d->state != DROPPING)
		log_error(d->options.log, "Exporting failed. Dropping data.",
			  log_text("reason", ledger_reasons[reason]),
			  log_text("error", s->result.reason),
			  log_number("dropped_items", samples));
	d->state = DROPPING;
	next_part(s);
}

static void count_sent(struct sending *s)
{
	struct delivery *d = s->delivery;
	uint64_t samples = s->parts.at[s->part].samples;
	s->item->left -= samples;
	metric_add(d->count.sent, (int64_t)samples);
	metric_add(s->item->ledger->queued, -(int64_t)samples);
	metric_add(s->item->ledger->out, (int64_t)samples);
	metric_add(d->count.rejected, (int64_t)s->result.rejected_profiles);
	plan_taken(&d->plan);
	if (d->state != WORKING && atomic_exchange(&d->state, WORKING) != WORKING)
		log_info(d->options.log, "Exporting works again.");
}

static void retry_part(struct sending *s)
{
	struct delivery *d = s->delivery;
	const struct retry_config *r = &d->options.config->retry_on_failure;
	uint64_t delay = retry_delay(r, s->interval_ns, s->result.retry_after_ms);
	uint64_t elapsed = clock_now() - s->begun;
	if (!r->present.enabled || d->draining) {
		drop_part(s, d->draining ? LEDGER_SHUTDOWN : LEDGER_NO_RETRY);
		return;
	}
	if (r->max_elapsed_time.ns > 0 && elapsed + delay > (uint64_t)r->max_elapsed_time.ns) {
		drop_part(s, LEDGER_RETRIES_EXHAUSTED);
		return;
	}
	if (d->state == WORKING) {
		log_warn(d->options.log, "Exporting failed. Will retry the request after interval.",
			 log_text("error", s->result.reason),
			 log_number("interval_ms", delay / 1000000));
		d->state = RETRYING;
	}
	metric_add(d->count.retried, 1);
	s->interval_ns = retry_next_interval(r, s->interval_ns);
	s->waiting = true;
	loop_timer_start(s->timer, delay);
}

static void retry_due(void *argument)
{
	struct sending *s = argument;
	s->waiting = false;
	attempt(s);
}

static void split_part(struct sending *s)
{
	s->again = plan_learn(&s->delivery->plan, &s->parts.at[s->part], &s->result);
	if (s->again)
		begin_part(s, s->part);
	else
		drop_part(s, LEDGER_TOO_LARGE);
}

/* On the loop thread, which has the timers. */
static void conclude_failure(void *argument)
{
	struct sending *s = argument;
	switch (s->result.outcome) {
	case SEND_RETRY:
		retry_part(s);
		return;
	case SEND_TOO_LARGE:
		split_part(s);
		return;
	default:
		drop_part(s, LEDGER_PERMANENT);
		return;
	}
}

/* Success needs no other thread than the one that learned of it. */
void sending_done(struct sending *s, const struct send_result *result)
{
	assert(s->flying);
	s->flying = false;
	s->result = *result;
	metric_add(s->delivery->count.flights, -1);
	if (result->outcome != SEND_OK) {
		loop_post(s->delivery->options.loop, conclude_failure, s);
		return;
	}
	count_sent(s);
	next_part(s);
}

void delivery_hasten(struct delivery *d)
{
	d->draining = true;
	for (uint32_t i = 0; i < d->consumer_count; i++) {
		struct sending *s = &d->consumers[i];
		if (s->waiting) {
			loop_timer_cancel(s->timer);
			s->waiting = false;
			attempt(s);
		}
	}
}

void delivery_drain(struct delivery *d, void (*drained)(void *argument), void *argument)
{
	delivery_hasten(d);
	pthread_mutex_lock(&d->lock);
	d->drained = drained;
	d->argument = argument;
	bool settled = !d->busy;
	pthread_mutex_unlock(&d->lock);
	if (settled)
		loop_post(d->options.loop, settle, d);
}

void delivery_abandon(struct delivery *d)
{
	delivery_hasten(d);
	for (;;) {
		pthread_mutex_lock(&d->lock);
		struct item *item = backlog_take(&d->backlog);
		pthread_mutex_unlock(&d->lock);
		if (!item)
			return;
		drop_samples(d, item, item->left, LEDGER_SHUTDOWN);
		free_item(d, item, ACK_FAILED);
	}
}

void delivery_log_stuck(struct delivery *d)
{
	uint64_t lost = d->lost;
	pthread_mutex_lock(&d->lock);
	bool stuck = d->busy;
	for (const struct book *book = d->books; book; book = book->next)
		lost += (uint64_t)metric_get(book->ledger.queued);
	pthread_mutex_unlock(&d->lock);
	if (stuck)
		log_error(d->options.log, "Shutdown dropped data: a send does not end.",
			  log_number("dropped_items", lost));
}

void delivery_unref(struct delivery **delivery)
{
	struct delivery *d = *delivery;
	if (!d)
		return;
	assert(!d->backlog.head);
	metrics_off_scrape(d->options.metrics, d);
	for (uint32_t i = 0; i < d->consumer_count; i++) {
		loop_timer_unref(&d->consumers[i].timer);
		parts_fini(&d->consumers[i].parts);
	}
	while (d->books) {
		struct book *next = d->books->next;
		memory_free(d->books);
		d->books = next;
	}
	pthread_mutex_destroy(&d->lock);
	plan_fini(&d->plan);
	memory_free(d->consumers);
	memory_free(d);
	*delivery = NULL;
}
