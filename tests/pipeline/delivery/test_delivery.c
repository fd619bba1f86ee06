/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "net/loop.h"
#include "pipeline/delivery/delivery.h"

/*
 * A delivery with an exporter that answers from a script, one answer for each send. The loop runs
 * until the delivery has drained; every sample must then stand in the ledger.
 */
struct fixture {
	struct loop *loop;
	struct metrics *metrics;
	struct log log;
	struct ledger pipeline;
	struct delivery_config config;
	uint64_t max_bytes;
	struct exporter_ops ops;
	struct delivery *delivery;
	struct send_result script[16];
	_Atomic int sends;
	struct sending *_Atomic held; /* the send that the exporter does not answer */
	bool hold;
};

static void send_by_script(void *self, const struct part *part, uint64_t timeout_ns,
			   struct sending *sending)
{
	struct fixture *f = *(struct fixture **)self;
	(void)part;
	(void)timeout_ns;
	int n = f->sends++;
	if (f->hold)
		f->held = sending;
	else
		sending_done(sending, &f->script[n < 15 ? n : 15]);
}

static bool plan_three(void *self, const struct part *whole, const struct limits *limits,
		       struct parts *parts, struct error *err)
{
	(void)self;
	(void)limits;
	(void)err;
	for (uint32_t i = 0; i < 3; i++)
		parts_add(parts, packet_ref(whole->packet), whole->samples / 3, 0);
	return true;
}

/* A plan that has no place for some of the samples, or for any. */
static bool plan_a_part(void *self, const struct part *whole, const struct limits *limits,
			struct parts *parts, struct error *err)
{
	(void)self;
	(void)limits;
	(void)err;
	if (whole->samples > 100)
		parts_add(parts, packet_ref(whole->packet), whole->samples / 3, 0);
	return true;
}

static int setup(void **state)
{
	struct fixture *f = memory_new(sizeof *f);
	f->loop = loop_new(NULL);
	f->metrics = metrics_new();
	ledger_init(&f->pipeline, f->metrics, "profiles");
	f->config = (struct delivery_config){
		.sending_queue = { .present = { true }, .num_consumers = 2, .queue_size = 3 },
		.retry_on_failure = { .present = { true },
				      .initial_interval = { 1000000 },
				      .max_interval = { 2000000 },
				      .multiplier = 1.5 },
		.timeout = { 1000000000 },
	};
	f->ops = (struct exporter_ops){ .send = send_by_script };
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	loop_unref(&f->loop);
	metrics_unref(&f->metrics);
	memory_free(f);
	return 0;
}

static void begin(struct fixture *f)
{
	static struct fixture *self;
	self = f;
	f->delivery = delivery_new(&(struct delivery_options){
		.ops = &f->ops,
		.exporter = &self,
		.config = &f->config,
		.id = "fake",
		.log = &f->log,
		.metrics = f->metrics,
		.loop = f->loop,
		.max_bytes = f->max_bytes,
	});
}

static bool enqueue(struct fixture *f, uint64_t samples)
{
	struct packet *packet = packet_new(10, 0);
	packet->samples = samples;
	bool taken = delivery_enqueue(f->delivery, packet, &f->pipeline, ENTRY_IF_FITS);
	packet_unref(&packet);
	return taken;
}

static void drained(void *argument)
{
	struct fixture *f = argument;
	delivery_unref(&f->delivery);
	loop_stop(f->loop);
}

static void drain(void *argument)
{
	struct fixture *f = argument;
	delivery_drain(f->delivery, drained, f);
}

/* Drains once `sends` attempts were made and the metric, if there is one, is no longer zero. */
struct wait {
	struct fixture *f;
	int sends;
	const char *metric;
	struct loop_timer *timer;
};

static int64_t read_metric(struct fixture *f, const char *line);

static void look(void *argument)
{
	struct wait *wait = argument;
	if (wait->f->sends >= wait->sends && (!wait->metric || read_metric(wait->f, wait->metric)))
		drain(wait->f);
	else
		loop_timer_start(wait->timer, 100000);
}

static void run_until(struct fixture *f, int sends, const char *metric)
{
	struct wait wait = { f, sends, metric, NULL };
	wait.timer = loop_timer_new(f->loop, look, &wait);
	loop_timer_start(wait.timer, 100000);
	loop_run(f->loop);
	loop_timer_unref(&wait.timer);
}

static void run_until_sends(struct fixture *f, int sends)
{
	run_until(f, sends, NULL);
}

static int64_t read_metric(struct fixture *f, const char *line)
{
	struct bytes text;
	int64_t value = 0;
	bytes_init(&text, 1 << 20);
	metrics_write(f->metrics, &text);
	bytes_add_byte(&text, 0);
	const char *at = strstr((char *)text.at, line);
	if (at)
		value = strtoll(at + strlen(line), NULL, 10);
	bytes_fini(&text);
	return value;
}

#define OUT "otelcol_ledger_out_samples{exporter=\"fake\",pipeline=\"profiles\"} "
#define QUEUED "otelcol_ledger_queued_samples{exporter=\"fake\",pipeline=\"profiles\"} "
#define DROPPED(reason) \
	"otelcol_ledger_dropped_samples{exporter=\"fake\",pipeline=\"profiles\",reason=\"" reason \
	"\"} "

/* How often the text stands in what was logged since log_to_file. */
static char log_path[] = "/tmp/portcullis-log-XXXXXX";

static void log_to_file(void)
{
	static const char *const paths[] = { log_path, NULL };
	snprintf(log_path, sizeof log_path, "/tmp/portcullis-log-XXXXXX");
	close(mkstemp(log_path));
	assert_true(log_configure(&(struct log_config){ .level = LOG_INFO, .output_paths = paths },
				  NULL));
}

static int logged(const char *text)
{
	char line[1024];
	int count = 0;
	log_close();
	FILE *file = fopen(log_path, "re");
	while (fgets(line, sizeof line, file))
		count += strstr(line, text) != NULL;
	fclose(file);
	unlink(log_path);
	return count;
}

static void what_the_destination_takes_is_out(void **state)
{
	struct fixture *f = *state;
	begin(f);
	assert_true(enqueue(f, 5));
	assert_true(enqueue(f, 7));
	run_until_sends(f, 2);
	assert_int_equal(read_metric(f, OUT), 12);
	assert_int_equal(read_metric(f, QUEUED), 0);
}

static void a_full_queue_drops_for_this_destination_and_counts(void **state)
{
	struct fixture *f = *state;
	begin(f);
	for (int i = 0; i < 3; i++)
		assert_true(enqueue(f, 1));
	assert_int_equal(delivery_room(f->delivery, NULL), ROOM_NONE);
	assert_false(enqueue(f, 10));
	run_until_sends(f, 3);
	assert_int_equal(read_metric(f, DROPPED("queue_full")), 10);
	assert_int_equal(read_metric(f, OUT), 3);
}

static void a_full_queue_is_one_line_and_its_end_another(void **state)
{
	struct fixture *f = *state;
	log_to_file();
	begin(f);
	for (int i = 0; i < 3; i++)
		assert_true(enqueue(f, 1));
	for (int i = 0; i < 50; i++)
		assert_false(enqueue(f, 1));
	run_until_sends(f, 3);
	assert_int_equal(logged("Sending queue"), 2);
}

static void an_empty_queue_takes_what_is_larger_than_queue_size(void **state)
{
	struct fixture *f = *state;
	f->config.sending_queue.sizer.index = SIZER_ITEMS;
	begin(f);
	assert_true(enqueue(f, 5));
	run_until_sends(f, 1);
	assert_int_equal(read_metric(f, OUT), 5);
}

static void without_a_queue_its_sizer_does_not_count(void **state)
{
	struct fixture *f = *state;
	f->config.sending_queue.present.enabled = false;
	f->config.sending_queue.sizer.index = SIZER_BYTES;
	begin(f);
	for (int i = 0; i < 64; i++)
		assert_true(enqueue(f, 1));
	assert_int_equal(delivery_room(f->delivery, NULL), ROOM_SOON);
	run_until_sends(f, 64);
	assert_int_equal(read_metric(f, OUT), 64);
}

static void a_retry_is_made_until_it_is_taken(void **state)
{
	struct fixture *f = *state;
	begin(f);
	for (int i = 0; i < 4; i++)
		f->script[i] = (struct send_result){ .outcome = SEND_RETRY,
						     .retry_after_ms = -1,
						     .reason = "unavailable" };
	assert_true(enqueue(f, 9));
	run_until_sends(f, 5);
	assert_int_equal(f->sends, 5);
	assert_int_equal(read_metric(f, OUT), 9);
}

static void what_is_refused_for_good_is_dropped_and_counted(void **state)
{
	struct fixture *f = *state;
	begin(f);
	f->script[0] = (struct send_result){ .outcome = SEND_PERMANENT,
					     .retry_after_ms = -1,
					     .reason = "invalid" };
	f->script[1] = (struct send_result){ .outcome = SEND_TOO_LARGE,
					     .retry_after_ms = -1,
					     .reason = "too "
						       "large" };
	assert_true(enqueue(f, 4));
	run_until_sends(f, 1);
	assert_int_equal(read_metric(f, DROPPED("permanent")), 4);
	assert_int_equal(read_metric(f, OUT), 0);
}

static void retries_end_after_max_elapsed_time(void **state)
{
	struct fixture *f = *state;
	f->config.retry_on_failure.max_elapsed_time.ns = 3000000;
	begin(f);
	for (int i = 0; i < 16; i++)
		f->script[i] = (struct send_result){ .outcome = SEND_RETRY,
						     .retry_after_ms = -1,
						     .reason = "unavailable" };
	assert_true(enqueue(f, 6));
	run_until(f, 1, DROPPED("retries_exhausted"));
	assert_int_equal(read_metric(f, DROPPED("retries_exhausted")), 6);
}

static void draining_gives_what_waits_one_more_attempt_and_no_retry(void **state)
{
	struct fixture *f = *state;
	f->config.retry_on_failure.initial_interval.ns = INT64_C(3600000000000);
	f->config.retry_on_failure.max_interval.ns = INT64_C(3600000000000);
	begin(f);
	for (int i = 0; i < 16; i++)
		f->script[i] = (struct send_result){ .outcome = SEND_RETRY,
						     .retry_after_ms = -1,
						     .reason = "unavailable" };
	assert_true(enqueue(f, 2));
	run_until_sends(f, 1);
	assert_int_equal(f->sends, 2);
	assert_int_equal(read_metric(f, DROPPED("shutdown")), 2);
}

static void parts_are_sent_in_order_and_a_lost_one_costs_only_itself(void **state)
{
	struct fixture *f = *state;
	f->ops.plan = plan_three;
	begin(f);
	f->script[1] = (struct send_result){ .outcome = SEND_PERMANENT,
					     .retry_after_ms = -1,
					     .reason = "invalid" };
	assert_true(enqueue(f, 30));
	run_until_sends(f, 3);
	assert_int_equal(f->sends, 3);
	assert_int_equal(read_metric(f, OUT), 20);
	assert_int_equal(read_metric(f, DROPPED("permanent")), 10);
}

static void what_a_plan_leaves_out_is_dropped_and_counted(void **state)
{
	struct fixture *f = *state;
	f->ops.plan = plan_a_part;
	begin(f);
	assert_true(enqueue(f, 300));
	assert_true(enqueue(f, 50));
	run_until_sends(f, 1);
	assert_int_equal(read_metric(f, OUT), 100);
	assert_int_equal(read_metric(f, DROPPED("plan")), 250);
	assert_int_equal(read_metric(f, QUEUED), 0);
}

static void a_retry_interval_of_zero_does_not_spin(void **state)
{
	struct fixture *f = *state;
	f->config.retry_on_failure.initial_interval.ns = 0;
	f->config.retry_on_failure.max_interval.ns = 0;
	f->config.retry_on_failure.max_elapsed_time.ns = 30000000;
	begin(f);
	for (int i = 0; i < 16; i++)
		f->script[i] = (struct send_result){ .outcome = SEND_RETRY,
						     .retry_after_ms = -1,
						     .reason = "unavailable" };
	assert_true(enqueue(f, 6));
	run_until(f, 1, DROPPED("retries_exhausted"));
	assert_in_range(f->sends, 1, 4);
}

static void a_destination_that_asks_for_ever_is_not_waited_for_at_the_end(void **state)
{
	struct fixture *f = *state;
	begin(f);
	f->script[0] = (struct send_result){ .outcome = SEND_RETRY,
					     .retry_after_ms = INT64_MAX,
					     .reason = "unavailable" };
	assert_true(enqueue(f, 6));
	run_until_sends(f, 1);
	assert_int_equal(f->sends, 2);
	assert_int_equal(read_metric(f, OUT), 6);
}

static void a_destination_that_fails_is_one_line_and_its_recovery_another(void **state)
{
	struct fixture *f = *state;
	log_to_file();
	f->config.sending_queue.num_consumers = 1;
	f->ops.plan = plan_three;
	begin(f);
	for (int i = 0; i < 5; i++)
		f->script[i] = (struct send_result){ .outcome = SEND_PERMANENT,
						     .retry_after_ms = -1,
						     .reason = "invalid" };
	assert_true(enqueue(f, 9));
	assert_true(enqueue(f, 9));
	run_until_sends(f, 6);
	assert_int_equal(logged("Exporting"), 2);
}

static void release_held(void *argument)
{
	struct fixture *f = argument;
	sending_done(f->held, &(struct send_result){ .outcome = SEND_RETRY,
						     .retry_after_ms = -1,
						     .reason = "cancelled" });
}

static void abandon(void *argument)
{
	struct fixture *f = argument;
	delivery_drain(f->delivery, drained, f);
	delivery_abandon(f->delivery);
	loop_post(f->loop, release_held, f);
}

static void wait_for_held(void *argument)
{
	struct wait *wait = argument;
	if (wait->f->held)
		abandon(wait->f);
	else
		loop_timer_start(wait->timer, 100000);
}

static void the_deadline_drops_what_waits_and_what_hangs(void **state)
{
	struct fixture *f = *state;
	f->hold = true;
	f->config.sending_queue.num_consumers = 1;
	begin(f);
	assert_true(enqueue(f, 3));
	assert_true(enqueue(f, 4));
	struct wait wait = { f, 1, NULL, NULL };
	wait.timer = loop_timer_new(f->loop, wait_for_held, &wait);
	loop_timer_start(wait.timer, 100000);
	loop_run(f->loop);
	loop_timer_unref(&wait.timer);
	assert_int_equal(read_metric(f, DROPPED("shutdown")), 7);
	assert_int_equal(read_metric(f, QUEUED), 0);
}

#define FLIGHTS "otelcol_exporter_in_flight_requests{data_type=\"profiles\",exporter=\"fake\"} "

/* What plans make counts, so that fewer are at work where the share is small; nothing is lost by
 * it. */
static void where_the_share_is_small_fewer_are_planned_at_once(void **state)
{
	struct fixture *f = *state;
	f->ops.plan = plan_three;
	f->config.sending_queue.num_consumers = 3;
	f->max_bytes = 20000;
	begin(f);
	for (int i = 0; i < 3; i++) {
		struct packet *packet = packet_new(1000, 0);
		packet->otlp.len = 1000;
		packet->samples = 9;
		assert_true(delivery_enqueue(f->delivery, packet, &f->pipeline, ENTRY_IF_FITS));
		packet_unref(&packet);
		assert_int_equal(read_metric(f, FLIGHTS), i < 2 ? i + 1 : 2);
	}
	run_until_sends(f, 9);
	assert_int_equal(read_metric(f, OUT), 27);
}

static int acks_done;
static enum ack_outcome acked;

static void note_ack(struct ack *ack, enum ack_outcome outcome)
{
	(void)ack;
	acks_done++;
	acked = outcome;
}

static void check_ack(struct fixture *f, enum send_outcome outcome, uint32_t senders,
		      enum ack_outcome expected)
{
	struct ack ack;
	acks_done = 0;
	f->config.sending_queue.wait_for_result = true;
	f->config.retry_on_failure.present.enabled = false;
	begin(f);
	f->script[0] = (struct send_result){ .outcome = outcome,
					     .retry_after_ms = -1,
					     .reason = "invalid" };
	ack_init(&ack, note_ack);
	struct packet *packet = packet_new(10, senders);
	packet->samples = 1;
	packet->contributions[0].ack = &ack;
	assert_true(delivery_enqueue(f->delivery, packet, &f->pipeline, ENTRY_IF_FITS));
	packet_release_acks(packet, ACK_TAKEN); /* the fan-out is done */
	packet_unref(&packet);
	assert_int_equal(acks_done, 0);
	run_until_sends(f, f->ops.plan ? 3 : 1);
	assert_int_equal(acks_done, 1);
	assert_int_equal(acked, expected);
}

static void the_sender_hears_of_a_refusal_for_good(void **state)
{
	check_ack(*state, SEND_PERMANENT, 1, ACK_REFUSED);
}

static void the_sender_hears_of_a_failure_that_may_pass(void **state)
{
	check_ack(*state, SEND_RETRY, 1, ACK_FAILED);
}

static void one_senders_refusal_is_not_anothers(void **state)
{
	check_ack(*state, SEND_PERMANENT, 2, ACK_FAILED);
}

/* The others were taken; who sent the one that was not must not believe that all is well. */
static void a_part_that_was_refused_is_never_told_as_taken(void **state)
{
	struct fixture *f = *state;
	f->ops.plan = plan_three;
	check_ack(f, SEND_PERMANENT, 1, ACK_REFUSED);
}

static void nor_to_several_senders(void **state)
{
	struct fixture *f = *state;
	f->ops.plan = plan_three;
	check_ack(f, SEND_PERMANENT, 2, ACK_FAILED);
}

static bool always_prompt(void *self, const struct packet *packet)
{
	(void)self;
	(void)packet;
	return true;
}

static bool one_byte(const void *context, const struct packet *packet, struct bytes *out,
		     struct error *err)
{
	(void)context;
	(void)packet;
	(void)err;
	return bytes_add_byte(out, 'z');
}

static bool prompt_if_encoded(void *self, const struct packet *packet)
{
	(void)self;
	return packet_has(packet, FORM_OTLP_GZIP);
}

static void encode(void *self, struct packet *packet)
{
	(void)self;
	packet_form(packet, FORM_OTLP_GZIP, one_byte, NULL, NULL);
}

/* The loop runs only at the end. */
static void a_small_packet_is_encoded_by_whoever_brings_it(void **state)
{
	struct fixture *f = *state;
	f->ops.prompt = prompt_if_encoded;
	f->ops.encode = encode;
	begin(f);
	struct packet *large = packet_new(1 << 20, 0);
	large->otlp.len = 1 << 20;
	large->samples = 5;
	assert_true(delivery_enqueue(f->delivery, large, &f->pipeline, ENTRY_IF_FITS));
	packet_unref(&large);
	assert_int_equal(f->sends, 0);
	assert_true(enqueue(f, 3));
	assert_int_equal(f->sends, 1);
	run_until_sends(f, 2);
}

/* The loop runs only at the end. */
static void a_prompt_exporter_sends_on_the_thread_at_hand(void **state)
{
	struct fixture *f = *state;
	const struct send_result ok = { .outcome = SEND_OK };
	f->hold = true;
	f->ops.prompt = always_prompt;
	f->config.sending_queue.num_consumers = 1;
	begin(f);
	assert_true(enqueue(f, 3));
	assert_true(enqueue(f, 4));
	assert_int_equal(f->sends, 1);
	sending_done(f->held, &ok);
	assert_int_equal(read_metric(f, OUT), 3);
	assert_int_equal(f->sends, 2);
	sending_done(f->held, &ok);
	assert_int_equal(read_metric(f, OUT), 7);
	assert_int_equal(read_metric(f, QUEUED), 0);
	run_until_sends(f, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_the_destination_takes_is_out),
		TEST(a_full_queue_drops_for_this_destination_and_counts),
		TEST(a_full_queue_is_one_line_and_its_end_another),
		TEST(an_empty_queue_takes_what_is_larger_than_queue_size),
		TEST(without_a_queue_its_sizer_does_not_count),
		TEST(a_retry_is_made_until_it_is_taken),
		TEST(what_is_refused_for_good_is_dropped_and_counted),
		TEST(retries_end_after_max_elapsed_time),
		TEST(draining_gives_what_waits_one_more_attempt_and_no_retry),
		TEST(parts_are_sent_in_order_and_a_lost_one_costs_only_itself),
		TEST(what_a_plan_leaves_out_is_dropped_and_counted),
		TEST(a_retry_interval_of_zero_does_not_spin),
		TEST(a_destination_that_asks_for_ever_is_not_waited_for_at_the_end),
		TEST(a_destination_that_fails_is_one_line_and_its_recovery_another),
		TEST(the_deadline_drops_what_waits_and_what_hangs),
		TEST(where_the_share_is_small_fewer_are_planned_at_once),
		TEST(a_prompt_exporter_sends_on_the_thread_at_hand),
		TEST(a_small_packet_is_encoded_by_whoever_brings_it),
		TEST(the_sender_hears_of_a_refusal_for_good),
		TEST(the_sender_hears_of_a_failure_that_may_pass),
		TEST(one_senders_refusal_is_not_anothers),
		TEST(a_part_that_was_refused_is_never_told_as_taken),
		TEST(nor_to_several_senders),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
