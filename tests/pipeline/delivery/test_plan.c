/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "net/loop.h"
#include "tests/support/collecting.h"
#include "tests/support/hand_over.h"
#include "tests/support/sequence.h"

/* A delivery to a destination that rejects requests above a limit of bytes. Accepted requests are
 * kept, and must equal what was sent. Rejected ones are split or counted. */
struct destination {
	struct loop *loop;
	struct metrics *metrics;
	struct log log;
	struct ledger *ledger;
	struct delivery_config config;
	struct exporter_ops ops;
	struct delivery *delivery;

	size_t limit; /* larger requests are rejected */
	struct send_result refusal;
	bool halves; /* it counts half of the bytes, as if they were compressed */
	_Atomic int sends, refusals;
	pthread_mutex_t lock; /* guards taken */
	struct sequence taken, sent;
	size_t largest;         /* the largest request that it accepted */
	_Atomic int64_t claims; /* of all packets: bytes claimed */
};

static void charge(void *context, int64_t bytes, bool claim)
{
	struct destination *d = context;
	d->claims += claim && bytes > 0 ? bytes : 0;
}

static void take(struct destination *d, const struct part *part)
{
	pthread_mutex_lock(&d->lock);
	sequence_read(bytes_view(&part->packet->otlp), &d->taken);
	d->largest = part->packet->otlp.len > d->largest ? part->packet->otlp.len : d->largest;
	pthread_mutex_unlock(&d->lock);
}

static void send_part(void *self, const struct part *part, uint64_t timeout_ns,
		      struct sending *sending)
{
	struct destination *d = *(struct destination **)self;
	struct send_result refusal = d->refusal;
	(void)timeout_ns;
	d->sends++;
	if (part->packet->otlp.len > d->limit) {
		d->refusals++;
		refusal.seen_bytes = d->halves ? part->packet->otlp.len / 2 : 0;
		sending_done(sending, &refusal);
		return;
	}
	take(d, part);
	sending_done(sending, &(struct send_result){ .outcome = SEND_OK, .retry_after_ms = -1 });
}

static int setup(void **state)
{
	struct destination *d = memory_new(sizeof *d);
	d->loop = loop_new(NULL);
	d->metrics = metrics_new();
	d->ledger = ledger_new(d->metrics);
	d->config = (struct delivery_config){
		.required = true,
		.sending_queue = { .present = { true }, .num_consumers = 1, .queue_size = 100 },
		.timeout = { 1000000000 },
	};
	d->ops = (struct exporter_ops){ .send = send_part };
	d->refusal = (struct send_result){ .outcome = SEND_TOO_LARGE,
					   .retry_after_ms = -1,
					   .reason = "too_large" };
	d->limit = SIZE_MAX;
	pthread_mutex_init(&d->lock, NULL);
	*state = d;
	return 0;
}

static int teardown(void **state)
{
	struct destination *d = *state;
	loop_unref(&d->loop);
	ledger_unref(&d->ledger);
	metrics_unref(&d->metrics);
	pthread_mutex_destroy(&d->lock);
	memory_free(d->taken.at);
	memory_free(d->sent.at);
	memory_free(d);
	return 0;
}

static void begin(struct destination *d)
{
	static struct destination *self;
	self = d;
	d->delivery = delivery_new(&(struct delivery_options){
		.ops = &d->ops,
		.exporter = &self,
		.config = &d->config,
		.id = "fake",
		.log = &d->log,
		.metrics = d->metrics,
		.ledger = d->ledger,
		.loop = d->loop,
	});
}

static void drained(void *argument)
{
	struct destination *d = argument;
	delivery_unref(&d->delivery);
	loop_stop(d->loop);
}

static void drain(void *argument)
{
	struct destination *d = argument;
	delivery_drain(d->delivery, drained, d);
}

static void run(struct destination *d)
{
	loop_post(d->loop, drain, d);
	loop_run(d->loop);
}

/* A Profile with this number of samples, each with its own string. One of them, if its index is in
 * range, has a very long string. */
static struct packet *make(uint32_t samples, uint32_t giant)
{
	static char large[60000];
	struct profiles p = { 0 };
	struct error err;
	struct collect_added added;
	struct collect *c = collect_new(&collecting_wide);
	memset(large, 'x', sizeof large - 1);
	open_begin(&p, NULL);
	open_resource(&p, NONE);
	open_scope(&p, "");
	open_profile(&p, "cpu", "ns")->time = 7;
	for (uint32_t i = 0; i < samples; i++) {
		char text[60];
		snprintf(text, sizeof text, "some text that makes the sample longer %u", i);
		uint32_t attribute = open_attribute(&p, "key", i == giant ? large : text);
		open_value(&p, open_frame(&p, "main"), open_list(&p, attribute, OPEN_END), i);
	}
	assert_int_equal(collect_add(c, &p, false, &added, &err), COLLECT_ADDED);
	struct packet *packet = collect_seal(c);
	collect_unref(&c);
	profiles_fini(&p);
	return packet;
}

static void enqueue(struct destination *d, uint32_t samples, uint32_t giant)
{
	struct packet *packet = make(samples, giant);
	sequence_read(bytes_view(&packet->otlp), &d->sent);
	packet_charge_to(packet, charge, d);
	assert_true(hand_over(d->ledger, d->delivery, packet, ENTRY_IF_FITS));
	packet_unref(&packet);
}
#define NO_GIANT UINT32_MAX

static int64_t metric(struct destination *d, const char *line)
{
	struct bytes text;
	bytes_init(&text, 1 << 20);
	metrics_write(d->metrics, &text);
	bytes_add_byte(&text, 0);
	const char *at = strstr((char *)text.at, line);
	int64_t value = at ? strtoll(at + strlen(line), NULL, 10) : -1;
	bytes_fini(&text);
	return value;
}

#define LEARNED "otelcol_exporter_learned_max_bytes{exporter=\"fake\"} "
#define OUT "otelcol_ledger_out_samples{exporter=\"fake\",pipeline=\"profiles\"} "
#define QUEUED "otelcol_ledger_queued_samples{exporter=\"fake\",pipeline=\"profiles\"} "
#define DROPPED(reason) \
	"otelcol_ledger_dropped_samples{exporter=\"fake\",pipeline=\"profiles\",reason=\"" reason \
	"\"} "

static void assert_arrived(struct destination *d, int64_t but)
{
	assert_int_equal(sequence_missing(&d->sent, &d->taken), but);
	assert_int_equal(metric(d, QUEUED), 0);
}

static void half_of_what_was_refused_is_tried_until_it_is_taken(void **state)
{
	struct destination *d = *state;
	d->limit = 90000;
	begin(d);
	enqueue(d, 5000, NO_GIANT); /* about 300 KB */
	run(d);
	assert_arrived(d, 0);
	/* the whole and a half; accepted parts are not sent again */
	assert_int_equal(d->refusals, 2);
	assert_in_range(metric(d, LEARNED), 45000, 90000);
}

static void a_limit_that_is_named_is_taken_at_its_word(void **state)
{
	struct destination *d = *state;
	d->limit = d->refusal.stated_bytes = 70000;
	begin(d);
	enqueue(d, 5000, NO_GIANT);
	enqueue(d, 4000, NO_GIANT);
	run(d);
	assert_arrived(d, 0);
	assert_int_equal(d->refusals, 1);
	assert_int_equal(metric(d, LEARNED), 70000);
	assert_in_range(d->largest, 35000, 70000);
}

static void a_limit_on_what_was_compressed_becomes_one_of_ours(void **state)
{
	struct destination *d = *state;
	d->limit = 70000;
	d->refusal.stated_bytes = 35000;
	d->halves = true;
	begin(d);
	enqueue(d, 5000, NO_GIANT);
	run(d);
	assert_arrived(d, 0);
	assert_int_equal(d->refusals, 1);
	assert_in_range(metric(d, LEARNED), 69990, 70010);
}

static void a_limit_that_explains_nothing_is_not_believed(void **state)
{
	struct destination *d = *state;
	d->limit = 90000;
	d->refusal.stated_bytes = 10000000;
	begin(d);
	enqueue(d, 5000, NO_GIANT);
	run(d);
	assert_arrived(d, 0);
	assert_int_equal(d->refusals, 2);
}

/* ---- several consumers, whose requests are refused at the same time */

static struct parts whole(uint32_t samples)
{
	struct parts parts = { 0 };
	parts_add(&parts, make(samples, NO_GIANT), samples, 0);
	return parts;
}

static void refuse(struct plan *plan, const struct parts *parts, uint64_t stated, uint64_t seen)
{
	assert_true(plan_learn(plan, &parts->at[0],
			       &(struct send_result){ .outcome = SEND_TOO_LARGE,
						      .stated_bytes = stated,
						      .seen_bytes = seen }));
}

/* One learns something after the other, and then the other splits its request. */
static void refuse_two(struct destination *d, uint64_t one_stated, uint64_t other_stated)
{
	struct plan plan = { 0 };
	struct parts one = whole(1000), other = whole(5000);
	plan_init(&plan, &(struct plan_options){ .ops = &d->ops,
						 .limits = &d->config.limits,
						 .id = "fake",
						 .log = &d->log,
						 .metrics = d->metrics });
	refuse(&plan, &one, one_stated, 0);
	refuse(&plan, &other, other_stated, other.at[0].packet->otlp.len / 4);
	plan_again(&plan, &one, 0);
	assert_true(one.count > 1);
	assert_int_equal(one.dropped[PART_TOO_LARGE], 0);
	parts_fini(&one);
	parts_fini(&other);
	plan_fini(&plan);
}

/* The other one counts compressed bytes: 20,000 of them are 80,000 of ours. */
static void a_limit_that_was_named_is_not_raised_by_a_later_refusal(void **state)
{
	struct destination *d = *state;
	refuse_two(d, 40000, 20000);
	assert_int_equal(metric(d, LEARNED), 40000);
}

static void what_was_refused_is_split_whatever_others_have_learned(void **state)
{
	struct destination *d = *state;
	refuse_two(d, 0, 20000);
	assert_in_range(metric(d, LEARNED), 79000, 81000);
}

static void samples_can_be_limited_by_a_refusal_too(void **state)
{
	struct destination *d = *state;
	d->limit = 40000;
	d->refusal.stated_samples = 500;
	begin(d);
	enqueue(d, 5000, NO_GIANT);
	run(d);
	assert_arrived(d, 0);
	assert_int_equal(d->sends, 11);
}

static void what_is_configured_is_kept_from_the_first_request_on(void **state)
{
	struct destination *d = *state;
	d->limit = 50000;
	d->config.limits.max_bytes = 50000;
	begin(d);
	enqueue(d, 5000, NO_GIANT);
	run(d);
	assert_arrived(d, 0);
	assert_int_equal(d->refusals, 0);
	assert_int_equal(metric(d, LEARNED), 0);
}

static void one_sample_that_is_never_taken_costs_itself(void **state)
{
	struct destination *d = *state;
	d->limit = 40000;
	begin(d);
	enqueue(d, 2000, 700);
	run(d);
	assert_arrived(d, 1);
	assert_int_equal(metric(d, DROPPED("too_large")), 1);
	assert_int_equal(metric(d, OUT), 1999);
}

/* An estimated limit must not reject a sample that the destination would have accepted. */
static void one_sample_over_a_guessed_limit_is_sent_all_the_same(void **state)
{
	struct destination *d = *state;
	d->limit = 70000;
	begin(d);
	enqueue(d, 900, 100); /* half of it is less than the sample */
	run(d);
	assert_arrived(d, 0);
	assert_in_range(metric(d, LEARNED), 1, 60000);
	assert_in_range(d->largest, 60000, 70000);
}

static void one_that_refuses_whatever_the_size_is_not_sent_crumbs(void **state)
{
	struct destination *d = *state;
	d->limit = 0;
	begin(d);
	for (int i = 0; i < 20; i++)
		enqueue(d, 5000, NO_GIANT);
	run(d);
	assert_int_equal(metric(d, DROPPED("too_large")), 20 * 5000);
	assert_int_equal(metric(d, QUEUED), 0);
	assert_int_equal(metric(d, LEARNED), 0);
	assert_in_range(d->sends, 20, 80);
}

static bool plan_merged(void *self, const struct part *whole, const struct limits *limits,
			struct parts *parts, struct error *err)
{
	(void)self;
	(void)err;
	/* As if identical samples had been merged: the part has fewer samples than it accounts
	 * for. */
	bool again = limits->bytes != 0;
	assert_int_equal(whole->planned, again);
	for (uint64_t i = 0; i < (again ? 2u : 1u); i++) {
		struct packet *part = packet_new(again ? 30000 : 60000, 0);
		part->otlp.len = part->otlp.room;
		part->samples = again ? 40 : 80;
		parts_add(parts, part, again ? 40 : whole->samples, 0);
	}
	return true;
}

static void send_crumbs(void *self, const struct part *part, uint64_t timeout_ns,
			struct sending *sending)
{
	struct destination *d = *(struct destination **)self;
	(void)timeout_ns;
	sending_done(sending, part->packet->otlp.len > 30000
				      ? &d->refusal
				      : &(struct send_result){ .outcome = SEND_OK });
}

static void what_a_part_accounts_for_is_kept_when_it_is_split(void **state)
{
	struct destination *d = *state;
	d->ops.plan = plan_merged;
	d->ops.send = send_crumbs;
	begin(d);
	enqueue(d, 100, NO_GIANT);
	run(d);
	assert_int_equal(metric(d, OUT), 100);
	assert_int_equal(metric(d, QUEUED), 0);
}

/* Rejects each part once with a retry, and records it. */
static void send_hesitantly(void *self, const struct part *part, uint64_t timeout_ns,
			    struct sending *sending)
{
	static const struct packet *last;
	struct destination *d = *(struct destination **)self;
	(void)timeout_ns;
	bool again = d->sends++ % 2;
	assert_true(!again || part->packet == last);
	last = part->packet;
	if (again)
		take(d, part);
	sending_done(sending, &(struct send_result){ .outcome = again ? SEND_OK : SEND_RETRY,
						     .retry_after_ms = -1,
						     .reason = "unavailable" });
}

static void drain_when_taken(void *argument)
{
	struct destination *d = argument;
	if (metric(d, QUEUED))
		loop_post(d->loop, drain_when_taken, d);
	else
		drain(d);
}

static void a_part_is_the_same_packet_over_retries(void **state)
{
	struct destination *d = *state;
	d->ops.send = send_hesitantly;
	d->config.limits.max_bytes = 100000;
	d->config.retry_on_failure.present.enabled = true;
	begin(d);
	enqueue(d, 5000, NO_GIANT);
	loop_post(d->loop, drain_when_taken, d);
	loop_run(d->loop);
	assert_arrived(d, 0);
	assert_in_range(d->sends, 8, 20);
}

static void preset(void *self, struct limits *limits)
{
	(void)self;
	*limits = (struct limits){ .bytes = 50000, .samples = 100 };
}

static void an_exporters_preset_holds_where_nothing_is_configured(void **state)
{
	struct destination *d = *state;
	d->ops.preset = preset;
	d->config.limits.max_samples = 1000;
	begin(d);
	enqueue(d, 5000, NO_GIANT);
	run(d);
	assert_arrived(d, 0);
	assert_in_range(d->largest, 20000, 50000);
	assert_in_range(d->sends, 6, 20);
}

/* A claim may wait. Packets that need no plan are sent by any thread. */
static void only_what_must_be_split_claims_memory(void **state)
{
	struct destination *d = *state;
	begin(d);
	enqueue(d, 5000, NO_GIANT);
	run(d);
	assert_int_equal(d->claims, 0);
	d->config.limits.max_samples = 1000;
	begin(d);
	enqueue(d, 5000, NO_GIANT);
	run(d);
	assert_arrived(d, 0);
	assert_true(d->claims > 1000000);
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(half_of_what_was_refused_is_tried_until_it_is_taken),
		TEST(a_limit_that_is_named_is_taken_at_its_word),
		TEST(a_limit_on_what_was_compressed_becomes_one_of_ours),
		TEST(a_limit_that_explains_nothing_is_not_believed),
		TEST(a_limit_that_was_named_is_not_raised_by_a_later_refusal),
		TEST(what_was_refused_is_split_whatever_others_have_learned),
		TEST(samples_can_be_limited_by_a_refusal_too),
		TEST(what_is_configured_is_kept_from_the_first_request_on),
		TEST(one_sample_that_is_never_taken_costs_itself),
		TEST(one_sample_over_a_guessed_limit_is_sent_all_the_same),
		TEST(one_that_refuses_whatever_the_size_is_not_sent_crumbs),
		TEST(what_a_part_accounts_for_is_kept_when_it_is_split),
		TEST(a_part_is_the_same_packet_over_retries),
		TEST(an_exporters_preset_holds_where_nothing_is_configured),
		TEST(only_what_must_be_split_claims_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
