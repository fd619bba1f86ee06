/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/memory.h"
#include "pipeline/budget.h"
#include "pipeline/delivery/delivery_private.h"

#include <assert.h>

/* A kill that ends wakes what waits; this is only the interval of looking. */
#define HOLD_NS UINT64_C(1000000000)

/* Senders retry only what a retry may fix. */
bool sending_may_be_repeated(enum ledger_column reason)
{
	return reason == LEDGER_QUEUE_FULL || reason == LEDGER_NO_RETRY ||
	       reason == LEDGER_RETRIES_EXHAUSTED || reason == LEDGER_EXPIRED ||
	       reason == LEDGER_SHUTDOWN || reason == LEDGER_KILLED;
}

/* Which of several senders a refused part came from is not known: none of them must believe that a
 * retry is useless. */
static enum ack_outcome outcome_for_senders(const struct sending *s)
{
	return s->outcome == ACK_REFUSED && s->item->several ? ACK_FAILED : s->outcome;
}

static struct circuit *circuit_of(const struct sending *s)
{
	return s->lane ? &s->lane->circuit : &s->delivery->circuit;
}

/* [loop thread] */
static void fails(struct sending *s)
{
	const struct delivery_options *o = &s->delivery->options;
	if (s->lane && !lanes_is_stray(s))
		s->lane->failing = s->item->member;
	char *member = s->lane ? o->ops->members->endpoint(o->exporter, s->item->member) : NULL;
	outage_failed(&s->delivery->outage, &s->result, member);
}

/* A destination that consists of members works if none of them fails. */
static void succeeds(struct sending *s)
{
	uint32_t member = s->item->member;
	if (s->lane)
		atomic_compare_exchange_strong(&s->lane->failing, &member, 0);
	outage_succeeded(&s->delivery->outage, !lanes_fail(s->delivery));
}

/* packet: what holds these samples and nothing else; NULL: there is none. */
static void give_up(struct sending *s, struct packet *packet, uint64_t samples,
		    enum ledger_column reason)
{
	bool planned = plan_is_own(&s->delivery->plan) && packet != s->item->packet;
	enum ack_outcome outcome = sending_may_be_repeated(reason) ? ACK_FAILED : ACK_REFUSED;
	s->outcome = outcome > s->outcome ? outcome : s->outcome;
	delivery_lose(s->delivery, s->item,
		      &(struct loss){ .packet = packet,
				      .samples = samples,
				      .reason = reason,
				      .error = s->attempts ? s->result.reason : NULL,
				      .attempts = s->attempts,
				      .planned = planned });
}

/* rest: samples of the item that are in no part. */
static void end_item(struct sending *s, uint64_t rest)
{
	if (rest)
		give_up(s, NULL, rest, LEDGER_PLAN);
	parts_clear(&s->parts);
	backlog_made(&s->delivery->backlog, -s->expected); /* it was never planned */
	s->expected = 0;
	delivery_finish(s, outcome_for_senders(s));
}

static void finish(struct sending *s)
{
	end_item(s, s->item->left);
}

void sending_log_dropped(struct delivery *d, enum part_dropped kind, enum ledger_column reason,
			 uint64_t samples)
{
	if (!atomic_exchange(&d->logged[kind], true))
		log_warn(d->options.log,
			 "Dropping data outside the destination's limits. Logged once, always "
			 "counted.",
			 log_text("reason", ledger_reason(reason)),
			 log_number("dropped_items", (int64_t)samples),
			 log_bool("dead_letters", d->letters.on));
}

/* Samples that the plan left out. */
static void count_dropped(struct sending *s)
{
	static const enum ledger_column reasons[PART_DROPPED] = {
		[PART_TOO_LARGE] = LEDGER_TOO_LARGE,
		[PART_TOO_OLD] = LEDGER_TOO_OLD,
		[PART_TOO_NEW] = LEDGER_TOO_NEW,
	};
	struct delivery *d = s->delivery;
	for (unsigned r = 0; r < PART_DROPPED; r++) {
		uint64_t samples = s->parts.dropped[r], unkept = samples;
		if (!samples)
			continue;
		s->parts.dropped[r] = 0;
		for (uint32_t i = 0; i < s->parts.left.count; i++) {
			struct part_left *left = &s->parts.left.at[i];
			if (left->why == r) {
				give_up(s, left->packet, left->samples, reasons[r]);
				unkept -= left->samples < unkept ? left->samples : unkept;
			}
		}
		give_up(s, NULL, unkept, reasons[r]);
		sending_log_dropped(d, r, reasons[r], samples);
	}
	parts_forget_left(&s->parts, 0);
}

/* Of packets that a plan makes: of the program's budget, and of this destination's share. */
static void charge_part(void *context, int64_t bytes, bool claim)
{
	struct delivery *d = context;
	if (!claim)
		backlog_made(&d->backlog, bytes);
	budget_charge(d->options.budget, bytes, claim);
}

/* The same of those that become items, which the backlog counts. */
static void charge_child(void *context, int64_t bytes, bool claim)
{
	struct delivery *d = context;
	budget_charge(d->options.budget, bytes, claim);
}

/* Appends what the item becomes. */
static bool make_parts(struct sending *s)
{
	struct delivery *d = s->delivery;
	struct error err;
	error_clear(&err);
	if (d->options.budget)
		s->parts.charge = s->divides ? charge_child : charge_part;
	if (!s->divides)
		return plan_packet(&d->plan, s->item->packet, s->item->member, NULL, &s->parts,
				   &err);
	uint32_t *avoided = lanes_avoided(d);
	bool ok = s->planned ? plan_rest(&d->plan, avoided, &s->parts, s->part, &err)
			     : plan_packet(&d->plan, s->item->packet, 0, avoided, &s->parts, &err);
	memory_free(avoided);
	s->part = ok ? 0 : s->part;
	return ok;
}

static void split_again(struct sending *s)
{
	plan_again(&s->delivery->plan, &s->parts, s->part);
	s->again = false;
	count_dropped(s);
}

/* A part that is to be split may also be one that is to be divided: its member has left. */
static bool prepare(struct sending *s)
{
	struct delivery *d = s->delivery;
	if (s->again)
		split_again(s);
	if (s->planned && !s->divides)
		return true;
	bool ok = make_parts(s);
	s->planned = true;
	backlog_made(&d->backlog, -s->expected);
	s->expected = 0;
	count_dropped(s);
	return ok;
}

/* What is in lanes now is no longer the consumer's. rest: samples of its item that are in none. */
static void end_division(struct sending *s, uint64_t rest)
{
	struct delivery *d = s->delivery;
	s->flying = false;
	metric_add(d->count.flights, -1);
	circuit_leave(circuit_of(s), &s->place, !s->lane);
	delivery_wake(d);
	if (s->item) {
		end_item(s, rest);
		return;
	}
	parts_clear(&s->parts);
	delivery_finish(s, ACK_TAKEN);
}

static void send_part(void *argument)
{
	struct sending *s = argument;
	struct delivery *d = s->delivery;
	uint64_t rest;
	s->asked = false;
	s->change = d->changes;
	if (!prepare(s)) {
		sending_done(s, &(struct send_result){ .outcome = SEND_PERMANENT,
						       .retry_after_ms = -1,
						       .reason = "plan" });
	} else if (s->divides && lanes_divide(s, &rest)) {
		end_division(s, rest);
	} else if (s->part < s->parts.count) {
		s->asked = true;
		s->attempts++;
		d->options.ops->send(d->options.exporter, &s->parts.at[s->part],
				     (uint64_t)d->options.config->timeout.ns, s);
	} else {
		s->flying = false;
		metric_add(d->count.flights, -1);
		circuit_leave(circuit_of(s), &s->place, false);
		finish(s);
	}
}

/* On the loop thread. All of the item that was not sent yet. */
static void expire(void *argument)
{
	struct sending *s = argument;
	struct delivery *d = s->delivery;
	circuit_leave(circuit_of(s), &s->place, false);
	if (!d->logged_expired)
		log_warn(d->options.log,
			 "Dropping data that has waited longer than max_age. Logged once, always "
			 "counted.",
			 log_number("dropped_items", s->item->left),
			 log_bool("dead_letters", d->letters.on));
	d->logged_expired = true;
	for (uint32_t i = s->part; i < s->parts.count; i++)
		give_up(s, s->parts.at[i].packet, s->parts.at[i].samples, LEDGER_EXPIRED);
	if (s->item->left)
		give_up(s, s->planned ? NULL : s->item->packet, s->item->left, LEDGER_EXPIRED);
	finish(s);
}

static bool is_expired(const struct sending *s)
{
	return s->expires != UINT64_MAX && clock_now() >= s->expires;
}

/* Where the exporter only hands the packet on and nothing is to be split, on this thread. */
static void attempt(struct sending *s)
{
	struct delivery *d = s->delivery;
	if (is_expired(s)) { /* posted: the next item may be expired too */
		loop_post(d->options.loop, expire, s);
		return;
	}
	s->flying = true;
	metric_add(d->count.flights, 1);
	const struct packet *packet = s->planned ? s->parts.at[s->part].packet : s->item->packet;
	if (!s->again && !s->divides && (s->planned || plan_is_plain(&d->plan, packet)) &&
	    plan_is_prompt(&d->plan, packet))
		send_part(s);
	else
		loop_work(d->options.loop, send_part, NULL, s);
}

static void hold(void *argument);

/* Its member has left, or there was none. */
static void divide(struct sending *s)
{
	circuit_leave(circuit_of(s), &s->place, false);
	s->divides = true;
	attempt(s);
}

/* Have the members changed since the attempt was made, so that another one gets it now? */
static bool is_outdated(const struct sending *s)
{
	return s->divides ? s->change != s->delivery->changes : lanes_is_stray(s);
}

/* Now, or when the circuit and the kill switch permit it. */
static void try_part(struct sending *s)
{
	s->place.counted = false;
	if (delivery_is_killed(s->delivery))
		loop_post(s->delivery->options.loop, hold, s);
	else if (lanes_is_stray(s))
		divide(s);
	else if (circuit_enter(circuit_of(s), &s->place))
		attempt(s);
}

static struct sending *sending_of(struct circuit_place *place)
{
	return (struct sending *)((char *)place - offsetof(struct sending, place));
}

/* On any thread. The kill may have come while it waited in line. */
void sending_start(struct circuit_place *place)
{
	struct sending *s = sending_of(place);
	if (!delivery_is_killed(s->delivery)) {
		if (lanes_is_stray(s))
			divide(s);
		else
			attempt(s);
		return;
	}
	circuit_leave(circuit_of(s), place, false);
	loop_post(s->delivery->options.loop, hold, s);
}

static void start_clock(struct sending *s)
{
	const struct retry_config *r = &s->delivery->options.config->retry_on_failure;
	uint64_t patience = (uint64_t)r->max_elapsed_time.ns;
	s->retried_until = patience ? clock_now() + patience : UINT64_MAX;
	s->place.deadline = s->expires < s->retried_until ? s->expires : s->retried_until;
	s->interval_ns = r->initial_interval.ns;
}

static void begin_part(struct sending *s, uint32_t part)
{
	s->part = part;
	s->attempts = s->again ? s->attempts : 0;
	start_clock(s);
	s->result = (struct send_result){ .reason = "unavailable" };
	try_part(s);
}

static uint64_t expiry_of(const struct sending *s)
{
	const struct queue_config *q = &s->delivery->options.config->sending_queue;
	uint64_t arrival = s->item->packet->oldest_arrival;
	return q->present.enabled && q->max_age.ns && arrival ? arrival + (uint64_t)q->max_age.ns
							      : UINT64_MAX;
}

void sending_begin(struct sending *s)
{
	s->planned = s->again = false;
	s->divides = s->delivery->lanes && !s->lane;
	s->outcome = ACK_TAKEN;
	s->expires = expiry_of(s);
	begin_part(s, 0);
}

static void next_part(struct sending *s)
{
	if (s->parts.count)
		packet_unref(&s->parts.at[s->part].packet);
	if (s->part + 1 < s->parts.count)
		begin_part(s, s->part + 1);
	else
		finish(s);
}

/* Without a plan the item goes as a whole. */
static void drop_part(struct sending *s, enum ledger_column reason)
{
	struct delivery *d = s->delivery;
	const struct part whole = { .packet = s->item->packet, .samples = s->item->left };
	const struct part *part = s->parts.count ? &s->parts.at[s->part] : &whole;
	const struct outage_loss loss = { .reason = ledger_reason(reason),
					  .samples = part->samples,
					  .attempts = s->attempts,
					  .saved = d->letters.on };
	give_up(s, part->packet, part->samples, reason);
	if (reason != LEDGER_KILLED)
		outage_drops(&d->outage, &loss);
	next_part(s);
}

static void count_sent(struct sending *s)
{
	struct delivery *d = s->delivery;
	uint64_t samples = s->parts.at[s->part].samples;
	s->item->left -= samples;
	metric_add(d->count.sent, (int64_t)samples);
	delivery_settle(s->item, LEDGER_OUT, samples);
	metric_add(d->count.rejected, (int64_t)s->result.rejected_profiles);
	if (s->result.rejected_profiles)
		dead_letters_take_partial(d, s->item,
					  &(struct loss){ .packet = s->parts.at[s->part].packet,
							  .samples = samples,
							  .attempts = s->attempts,
							  .planned = s->parts.at[s->part].planned },
					  s->result.rejected_profiles);
	plan_taken(&d->plan);
	succeeds(s);
}

/* The next attempt would be after its deadline. */
static void drop_late(struct sending *s)
{
	if (s->expires <= s->retried_until)
		expire(s);
	else
		drop_part(s, LEDGER_RETRIES_EXHAUSTED);
}

/* On the loop thread. The kill may have come while it waited in line. */
void sending_expired(struct circuit_place *place)
{
	struct sending *s = sending_of(place);
	if (delivery_is_killed(s->delivery))
		hold(s);
	else
		drop_late(s);
}

/* Alone: other packets are being delivered. */
static void retry_alone(struct sending *s, uint64_t delay)
{
	const struct retry_config *r = &s->delivery->options.config->retry_on_failure;
	if (clock_now() + delay > s->place.deadline) {
		drop_late(s);
		return;
	}
	metric_add(s->delivery->count.retried, 1);
	s->interval_ns = retry_next_interval(r, s->interval_ns);
	s->waiting = true;
	loop_timer_start(s->timer, delay);
}

static enum durable_keeping ask_to_keep(struct sending *s)
{
	struct delivery *d = s->delivery;
	pthread_mutex_lock(&d->lock);
	enum durable_keeping keeping = durable_keep(d, s->item);
	pthread_mutex_unlock(&d->lock);
	return keeping;
}

/* It is sent again after the next start, or when its record could not be written. */
static void keep_item(struct sending *s)
{
	circuit_leave(circuit_of(s), &s->place, false);
	parts_clear(&s->parts);
	delivery_finish(s, ACK_FAILED);
}

static void retry_part(struct sending *s)
{
	struct delivery *d = s->delivery;
	const struct retry_config *r = &d->options.config->retry_on_failure;
	bool moves = is_outdated(s);
	uint64_t delay = moves ? 0 : retry_delay(r, s->interval_ns, s->result.retry_after_ms);
	enum durable_keeping keeping = ask_to_keep(s);
	if (keeping == DURABLE_KEEPS) {
		keep_item(s);
		return;
	}
	if (delivery_sheds(d)) {
		circuit_leave(circuit_of(s), &s->place, false);
		drop_part(s, LEDGER_SHED);
		return;
	}
	if (!(r->present.enabled || s->result.unsent) || d->draining) {
		circuit_leave(circuit_of(s), &s->place, false);
		if (keeping == DURABLE_IS_WRITING)
			retry_alone(s, delay);
		else
			drop_part(s, d->draining ? LEDGER_SHUTDOWN : LEDGER_NO_RETRY);
		return;
	}
	outage_retries(&d->outage, s->attempts, delay);
	if (moves) {
		metric_add(d->count.retried, 1);
		divide(s);
		return;
	}
	enum circuit_outcome outcome =
		circuit_fail(circuit_of(s), &s->place, s->result.retry_after_ms);
	if (outcome == CIRCUIT_ALONE)
		retry_alone(s, delay);
	else
		metric_add(d->count.retried, outcome == CIRCUIT_WAITS);
}

static void retry_due(void *argument)
{
	struct sending *s = argument;
	s->waiting = false;
	try_part(s);
}

/* On the loop thread. The destination is killed: waits until it no longer is, then begins the time
 * of the part again. */
static void hold(void *argument)
{
	struct sending *s = argument;
	struct delivery *d = s->delivery;
	s->result = (struct send_result){ .reason = "killed" };
	bool discards = delivery_discards(d);
	enum durable_keeping keeping = discards ? DURABLE_DROPS : ask_to_keep(s);
	if (keeping == DURABLE_KEEPS) {
		keep_item(s);
		return;
	}
	if (discards || (d->draining && keeping == DURABLE_DROPS)) {
		drop_part(s, LEDGER_KILLED);
		return;
	}
	start_clock(s);
	s->waiting = true;
	loop_timer_start(s->timer, HOLD_NS);
}

static void split_part(struct sending *s)
{
	s->again = plan_learn(&s->delivery->plan, &s->parts.at[s->part], &s->result);
	if (s->again) {
		begin_part(s, s->part);
		return;
	}
	fails(s);
	drop_part(s, LEDGER_TOO_LARGE);
}

/* On the loop thread, which owns the timers. */
static void conclude_failure(void *argument)
{
	struct sending *s = argument;
	if (s->result.outcome != SEND_TOO_LARGE)
		fails(s);
	if (s->result.outcome == SEND_RETRY) {
		retry_part(s);
		return;
	}
	circuit_leave(circuit_of(s), &s->place, s->asked);
	switch (s->result.outcome) {
	case SEND_TOO_LARGE:
		split_part(s);
		return;
	default:
		drop_part(s, LEDGER_PERMANENT);
		return;
	}
}

/* Success is handled by the thread that learns of it; failure by the loop thread. */
static void conclude(struct sending *s, const struct send_result *result)
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
	circuit_leave(circuit_of(s), &s->place, true);
	next_part(s);
}

void sending_done(struct sending *s, const struct send_result *result)
{
	s->done(s, result);
}

void sending_hasten(struct sending *s)
{
	if (!s->waiting)
		return;
	loop_timer_cancel(s->timer);
	s->waiting = false;
	try_part(s);
}

void sending_init(struct sending *s, struct delivery *d, struct lane *lane)
{
	s->done = conclude;
	s->delivery = d;
	s->lane = lane;
	s->timer = loop_timer_new(d->options.loop, retry_due, s);
	s->parts.charge_context = d;
	s->parts.keeps = d->options.config->dead_letter.present.enabled || d->options.lost;
}

void sending_fini(struct sending *s)
{
	loop_timer_unref(&s->timer);
	parts_fini(&s->parts);
}
