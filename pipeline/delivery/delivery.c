/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/delivery/delivery.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/memory.h"
#include "pipeline/delivery/delivery_private.h"

#include <string.h>

/* Samples that wait or are in flight, also on disk, and what became of others. */
static void look(void *context, struct outage_view *view)
{
	struct delivery *d = context;
	pthread_mutex_lock(&d->lock);
	for (const struct book *book = d->books; book; book = book->next)
		view->waiting += book->queued;
	pthread_mutex_unlock(&d->lock);
	view->queue_percent = backlog_load(&d->backlog) * 100 / BACKLOG_FULL;
	view->dropped = d->dropped;
	view->saved = d->saved;
}

static void init_outage(struct delivery *d)
{
	const struct delivery_options *o = &d->options;
	outage_init(&d->outage,
		    &(struct outage_options){
			    .loop = o->loop,
			    .log = o->log,
			    .metrics = o->metrics,
			    .id = o->id,
			    .endpoint = o->ops->endpoint ? o->ops->endpoint(o->exporter) : NULL,
			    .look = look,
			    .context = d,
		    });
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
	d->waits = options->config->required && (!q->present.enabled || q->wait_for_result);
	if (options->config->required)
		d->acks = d->waits ? ACK_MODE_ANY : ACK_MODE(ACK_DELIVERED);
	init_plan(d);
	backlog_init(&d->backlog, q, plan_is_own(&d->plan));
	d->consumer_count = (uint32_t)(q->present.enabled ? q->num_consumers : 10);
	if (options->ops->max_in_flight && d->consumer_count > options->ops->max_in_flight)
		d->consumer_count = options->ops->max_in_flight;
	d->consumers = memory_array(d->consumer_count, sizeof *d->consumers);
	for (uint32_t i = 0; i < d->consumer_count; i++) {
		sending_init(&d->consumers[i], d, NULL);
		d->consumers[i].next = d->idle;
		d->idle = &d->consumers[i];
	}
	pthread_mutex_init(&d->lock, NULL);
	delivery_counters_init(&d->count, options, d->backlog.capacity);
	circuit_init(&d->circuit, &(struct circuit_options){
					  .retry = &options->config->retry_on_failure,
					  .consumers = d->consumer_count,
					  .loop = options->loop,
					  .gauge = d->count.circuit,
					  .start = sending_start,
					  .expired = sending_expired,
				  });
	init_outage(d);
	lanes_init(d);
	durable_init(&d->durable, d, options->storage);
	dead_letters_init(d);
	delivery_set_share(d, options->max_bytes);
	metrics_on_scrape(options->metrics, delivery_metrics_refresh, d);
	return d;
}

void delivery_set_share(struct delivery *d, int64_t bytes)
{
	backlog_set_share(&d->backlog, bytes);
	metric_set(d->count.share, bytes);
}

enum circuit_state delivery_circuit(const struct delivery *d)
{
	return lanes_circuit(d);
}

bool delivery_is_failing(struct delivery *d, struct send_result *why)
{
	return outage_is_failing(&d->outage, why);
}

/* The budget has its limits now. */
bool delivery_start(struct delivery *d, struct error *err)
{
	if (!d->options.config->required && d->options.budget) {
		d->relief = (struct budget_relief){ .shed = delivery_shed_waiting, .context = d };
		budget_on_short(d->options.budget, &d->relief);
	}
	if (!dead_letters_start(d, err) || !durable_start(d, err))
		return false;
	dead_letters_look(d);
	return true;
}

struct book *delivery_book(struct delivery *d, const char *pipeline, const char *tenant)
{
	pthread_mutex_lock(&d->lock);
	struct book *book = book_of(&d->books, d->options.ledger, d->options.id, pipeline, tenant);
	pthread_mutex_unlock(&d->lock);
	return book;
}

/* Under the lock. An idle consumer with the next item, if there are both, and room for what will be
 * made of it. */
static struct sending *take_consumer(struct delivery *d)
{
	struct sending *s = d->idle;
	bool loads = durable_loads_next(d);
	struct item *item = loads ? NULL : d->backlog.head;
	int64_t expected = s && item ? plan_expected(&d->plan, item->packet) : 0;
	if (!s || (!item && !loads) || delivery_is_killed(d) || d->durable.abandoned ||
	    (d->busy && !backlog_may_make(&d->backlog, expected)))
		return NULL;
	d->idle = s->next;
	d->busy++;
	s->item = loads ? NULL : backlog_take(&d->backlog);
	s->expected = expected;
	backlog_made(&d->backlog, expected);
	d->durable.loading += loads;
	return s;
}

bool delivery_is_killed(const struct delivery *d)
{
	return d->kill != DELIVERY_ALIVE;
}

bool delivery_discards(const struct delivery *d)
{
	return d->kill == DELIVERY_DISCARDS ||
	       (d->kill == DELIVERY_HOLDS && delivery_is_awaited(d));
}

/* Of a consumer that was just taken; it may be NULL. */
static void begin_consumer(struct sending *s)
{
	if (s && s->item)
		sending_begin(s);
	else if (s)
		durable_load(s);
}

/* Under the lock. The same for the lanes, where there are some. */
static struct sending *take_any_consumer(struct delivery *d)
{
	struct sending *s = take_consumer(d);
	return s ? s : lanes_take_any(d);
}

void delivery_wake(struct delivery *d)
{
	struct sending *s;
	bool ended;
	do {
		pthread_mutex_lock(&d->lock);
		s = take_any_consumer(d);
		ended = !s && delivery_has_ended(d);
		pthread_mutex_unlock(&d->lock);
		begin_consumer(s);
	} while (s);
	if (ended)
		loop_post(d->options.loop, delivery_end, d);
}

/* ---- the end of an item */

/* Under the lock. The last hold has ended. True: the queue has room again. */
static bool leave(struct delivery *d, struct item *item)
{
	if (item->member)
		lanes_leave(d, item);
	if (item->stored)
		durable_remove(item);
	if (item->parent)
		backlog_detach(&d->backlog, item);
	bool recovered = item->placed && backlog_remove(&d->backlog, item);
	metric_set(d->count.size, d->backlog.units);
	return recovered;
}

/* Under the lock. Its packet, if it has been divided and no sender waits for it. */
static struct packet *take_packet(struct delivery *d, struct item *item)
{
	struct packet *packet = item->packet;
	if (!item->divided || !item->answered || !packet)
		return NULL;
	backlog_detach(&d->backlog, item);
	item->packet = NULL;
	return packet;
}

/* Under the lock. What the child still has stays on disk with its parent. */
static struct item *leave_parent(struct item *child, bool last)
{
	if (!last || !child->parent)
		return NULL;
	child->parent->left += child->left;
	return child->parent;
}

/* The end of a hold. `s`: the consumer that has it, or NULL. answers: its senders get their answer,
 * unless they have it; those of a divided item, when its last child has ended. Returns the parent,
 * whose hold ends too. */
static struct item *end_one_hold(struct delivery *d, struct item *item, struct sending *s,
				 bool answers, enum ack_outcome *outcome)
{
	pthread_mutex_lock(&d->lock);
	if (s)
		s->item = NULL;
	bool last = !--item->holds;
	item->worst = answers && *outcome > item->worst ? *outcome : item->worst;
	*outcome = item->worst;
	answers = item->divided ? last : answers;
	bool waiting = answers && !item->answered;
	item->answered = item->answered || answers;
	struct packet *packet = item->packet ? packet_ref(item->packet) : NULL;
	struct packet *unused = last ? NULL : take_packet(d, item);
	bool recovered = last && leave(d, item);
	struct item *parent = leave_parent(item, last);
	pthread_mutex_unlock(&d->lock);
	if (recovered && atomic_exchange(&d->logged_full, false))
		log_info(d->options.log, "Sending queue has room again.");
	if (waiting)
		packet_release_acks(packet, d->acks, *outcome);
	packet_unref(&packet);
	packet_unref(&unused);
	if (last) {
		packet_unref(&item->packet);
		memory_free(item);
	}
	return parent;
}

static void end_hold(struct delivery *d, struct item *item, struct sending *s, bool answers,
		     enum ack_outcome outcome)
{
	struct item *parent = end_one_hold(d, item, s, answers, &outcome);
	if (parent)
		end_one_hold(d, parent, NULL, true, &outcome);
}

void delivery_end_item(struct delivery *d, struct item *item, struct sending *s,
		       enum ack_outcome outcome)
{
	end_hold(d, item, s, true, outcome);
}

void delivery_release_item(struct delivery *d, struct item *item)
{
	end_hold(d, item, NULL, false, ACK_TAKEN);
}

void delivery_settle(struct item *item, enum ledger_column end, uint64_t samples)
{
	struct item *root = item->parent ? item->parent : item;
	root->queued -= samples;
	book_settle(item->book, end, samples);
}

/* Was it the destination that did not take it, or not in time? */
static bool is_untaken(enum ledger_column reason)
{
	return sending_may_be_repeated(reason)
		       ? reason != LEDGER_KILLED
		       : reason == LEDGER_PERMANENT || reason == LEDGER_SHED;
}

void delivery_settle_loss(struct delivery *d, struct item *item, const struct loss *loss, bool kept)
{
	d->lost += d->draining && !kept ? loss->samples : 0;
	if (kept)
		d->saved += loss->samples;
	else if (is_untaken(loss->reason))
		d->dropped += loss->samples;
	delivery_settle(item, kept ? LEDGER_DEAD_LETTER : loss->reason, loss->samples);
}

static void lose(struct delivery *d, struct item *item, const struct loss *loss)
{
	item->left -= loss->samples;
	if (!dead_letters_take(d, item, loss))
		delivery_settle_loss(d, item, loss, false);
}

void delivery_lose(struct delivery *d, struct item *item, const struct loss *loss)
{
	metric_add(d->count.failed, (int64_t)loss->samples);
	lose(d, item, loss);
}

/* Not each time if the queue is full again and again. */
static void log_full(struct delivery *d, bool refused)
{
	uint64_t now = clock_now(), until = d->quiet_until;
	if (now < until ||
	    !atomic_compare_exchange_strong(&d->quiet_until, &until, now + OUTAGE_LINE_NS))
		return;
	d->logged_full = true;
	log_warn(d->options.log, "Sending queue is full. Dropping data.",
		 log_number("queue_size", d->backlog.units),
		 log_number("queue_bytes", backlog_bytes(&d->backlog)),
		 log_bool("dead_letters", d->letters.on && !refused));
}

/* The sender of what was refused will repeat it. */
static void overflow(struct delivery *d, struct item *item, enum ledger_column reason,
		     bool reported, bool refused)
{
	metric_add(d->count.enqueue_failed, (int64_t)item->left);
	if (reason == LEDGER_QUEUE_FULL && !(reported && d->logged_full))
		log_full(d, refused);
	lose(d, item,
	     &(struct loss){ .packet = refused ? NULL : item->packet,
			     .samples = item->left,
			     .reason = reason });
	delivery_end_item(d, item, NULL, ACK_FAILED);
}

/* Senders wait for a moment while its share of memory is used up. */
static bool may_delay(const struct delivery *d)
{
	return d->options.config->required && !d->outage.failing;
}

/* Under the lock. Clears the record if it is the item's now. */
static bool enter(struct delivery *d, struct item *item, enum queue_entry entry,
		  struct stored **stored)
{
	if (!backlog_admits(&d->backlog, item, entry, may_delay(d)))
		return false;
	if (*stored && durable_append(d, item, *stored))
		*stored = NULL;
	if (!item->stored && entry == ENTRY_IF_FITS && durable_needs_record(d))
		return false;
	backlog_add(&d->backlog, item);
	item->placed = true;
	durable_count(d, item);
	metric_set(d->count.size, d->backlog.units);
	return true;
}

struct item *delivery_item(struct delivery *d, struct packet *packet, struct book *book)
{
	const struct exporter_ops *ops = d->options.ops;
	struct item *item = memory_new(sizeof *item);
	item->packet = packet_ref(packet);
	item->book = book;
	item->holder.reads = ops->reads ? ops->reads(d->options.exporter) : FORM_OTLP;
	item->units = backlog_units_of(&d->backlog, packet);
	item->queued = packet->samples;
	item->left = packet->samples;
	item->holds = 1;
	item->several = packet->contribution_count > 1;
	return item;
}

bool delivery_sheds(const struct delivery *d)
{
	struct budget *budget = d->options.budget;
	if (d->options.config->required || !budget || !budget_sheds(budget))
		return false;
	budget_note_shed(budget);
	return true;
}

/* Why nothing may enter, or (queue_full) why it may not if it does not fit. */
static enum ledger_column why_not(const struct delivery *d)
{
	return delivery_discards(d) ? LEDGER_KILLED
	       : delivery_sheds(d)  ? LEDGER_SHED
				    : LEDGER_QUEUE_FULL;
}

/* Does it discard what comes, and call it accepted? */
static bool swallows(const struct delivery *d)
{
	return delivery_discards(d) && !delivery_is_awaited(d);
}

bool delivery_enqueue(struct delivery *d, struct packet *packet, struct book *book,
		      enum queue_entry entry)
{
	if (!loop_here(d->options.loop) && entry != ENTRY_REFUSED)
		plan_encode_small(&d->plan, packet);
	struct item *item = delivery_item(d, packet, book);
	packet_hold_acks(packet, d->acks);
	struct stored *stored = entry == ENTRY_REFUSED ? NULL : durable_record(d, packet, book);

	pthread_mutex_lock(&d->lock);
	bool reported = d->backlog.full;
	enum ledger_column reason = why_not(d);
	bool taken = reason == LEDGER_QUEUE_FULL && enter(d, item, entry, &stored);
	/* Its senders have to repeat it, because it will not be in memory. */
	bool unanswered = taken && item->spilled && packet_has_acks(packet, d->acks);
	item->answered = unanswered;
	struct sending *s = take_consumer(d);
	pthread_mutex_unlock(&d->lock);

	begin_consumer(s);
	if (unanswered)
		packet_release_acks(packet, d->acks, ACK_FAILED);
	durable_discard(&stored, ACK_FAILED);
	if (!taken)
		overflow(d, item, reason, reported, entry == ENTRY_REFUSED);
	return taken || swallows(d);
}

void delivery_drop(struct delivery *d, uint64_t samples, struct book *book,
		   enum ledger_column reason)
{
	metric_add(d->count.enqueue_failed, (int64_t)samples);
	book_settle(book, reason, samples);
	if (reason == LEDGER_TOO_LARGE)
		sending_log_dropped(d, PART_TOO_LARGE, reason, samples);
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
	if (swallows(d))
		return ROOM_SOME;
	const struct delivery_config *config = d->options.config;
	bool blocks = (config->required && config->sending_queue.block_on_overflow) || d->waits;
	if (durable_refuses(d) || (packet && durable_spills(d) && packet_has_acks(packet, d->acks)))
		return config->required ? ROOM_SOON : ROOM_NONE;
	enum delivery_room room = backlog_room(&d->backlog, packet, may_delay(d));
	return blocks && room == ROOM_NONE ? ROOM_SOON : room;
}

bool delivery_waits(const struct delivery *d)
{
	return d->waits;
}

void delivery_expect_senders(struct delivery *d)
{
	d->awaited = true;
}

bool delivery_is_awaited(const struct delivery *d)
{
	return d->waits || d->awaited;
}

struct packets {
	struct packet **at;
	uint32_t count, room;
};

/* Under the lock. Takes over the acks that the item holds; appends a reference to the packet. */
static void take_acks(void *context, struct item *item)
{
	struct packets *packets = context;
	struct item *root = item->parent ? item->parent : item;
	if (root->answered)
		return;
	root->answered = true;
	array_push(packets) = packet_ref(root->packet);
}

void delivery_release_senders(struct delivery *d)
{
	struct packets packets = { 0 };
	pthread_mutex_lock(&d->lock);
	for (struct item *item = d->backlog.head; item; item = item->next)
		take_acks(&packets, item);
	for (uint32_t i = 0; i < d->consumer_count; i++)
		if (d->consumers[i].item)
			take_acks(&packets, d->consumers[i].item);
	lanes_each(d, take_acks, &packets);
	pthread_mutex_unlock(&d->lock);
	for (uint32_t i = 0; i < packets.count; i++) {
		packet_release_acks(packets.at[i], d->acks, ACK_FAILED);
		packet_unref(&packets.at[i]);
	}
	memory_free(packets.at);
}

void delivery_finish(struct sending *s, enum ack_outcome outcome)
{
	struct delivery *d = s->delivery;
	struct loop *loop = d->options.loop;
	if (s->item)
		delivery_end_item(d, s->item, s, outcome);

	pthread_mutex_lock(&d->lock);
	struct sending **idle = s->lane ? &s->lane->idle : &d->idle;
	s->next = *idle;
	*idle = s;
	d->busy--;
	/* Two: where memory was short, there may be room for more of them again. */
	struct sending *next = take_consumer(d), *another = take_consumer(d);
	struct sending *own = s->lane ? lanes_take_consumer(d, s->lane) : NULL;
	bool ended = delivery_has_ended(d);
	pthread_mutex_unlock(&d->lock);

	begin_consumer(next);
	begin_consumer(another);
	begin_consumer(own);
	if (ended)
		loop_post(loop, delivery_end, d);
}

void delivery_unref(struct delivery **delivery)
{
	struct delivery *d = *delivery;
	if (!d)
		return;
	if (d->relief.shed)
		budget_off_short(d->options.budget, &d->relief);
	durable_fini(&d->durable);
	dead_letters_fini(d);
	metrics_off_scrape(d->options.metrics, d);
	metric_set(d->count.age, 0);
	metric_set(d->count.held, 0);
	metric_set(d->count.usage, 0);
	for (uint32_t i = 0; i < d->consumer_count; i++)
		sending_fini(&d->consumers[i]);
	books_free(&d->books);
	backlog_fini(&d->backlog);
	pthread_mutex_destroy(&d->lock);
	lanes_fini(d);
	circuit_fini(&d->circuit);
	outage_fini(&d->outage);
	plan_fini(&d->plan);
	memory_free(d->consumers);
	memory_free(d);
	*delivery = NULL;
}
