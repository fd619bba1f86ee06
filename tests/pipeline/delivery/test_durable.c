/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/pipeline/delivery/durable_fixture.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

static void what_is_delivered_leaves_the_disk(void **state)
{
	struct fixture *f = *state;
	start(f);
	for (int i = 0; i < 10; i++)
		assert_true(enqueue(f, 3));
	run_until_sends(f, 10);
	assert_int_equal(read_metric(f, OUT), 30);
	assert_int_equal(read_metric(f, QUEUED), 0);
	assert_int_equal(read_metric(f, USED), 0);
	restart(f);
	assert_int_equal(read_metric(f, RESTORED), 0);
	drain(f);
	loop_run(f->loop);
}

static void what_waits_is_kept_and_delivered_after_a_restart(void **state)
{
	struct fixture *f = *state;
	fail_all(f);
	start(f);
	for (int i = 0; i < 10; i++)
		assert_true(enqueue(f, 3));
	run_until_sends(f, 2);
	assert_int_equal(read_metric(f, DROPPED("shutdown")), 0);
	assert_int_equal(read_metric(f, QUEUED), 30);
	succeed(f);
	restart(f);
	assert_int_equal(read_metric(f, RESTORED), 30);
	run_until_sends(f, 10);
	assert_int_equal(read_metric(f, OUT), 30);
	assert_int_equal(read_metric(f, QUEUED), 0);
}

/* With a share of 30 KB, most of a hundred packets of 1 KB are on disk only. */
static void what_does_not_fit_into_memory_is_spilled_and_loaded(void **state)
{
	struct fixture *f = *state;
	f->max_bytes = 30000;
	f->config.sending_queue.num_consumers = 1;
	start(f);
	for (int i = 0; i < 100; i++) {
		struct packet *packet = packet_new(1000, 0);
		packet->otlp.len = 1000;
		packet->samples = 2;
		for (int k = 0; k < 5000 && delivery_room(f->delivery, packet) != ROOM_SOME; k++)
			usleep(1000);
		assert_true(hand_over(f->ledger, f->delivery, packet, ENTRY_IF_FITS));
		packet_unref(&packet);
	}
	assert_int_equal(read_metric(f, QUEUED), 200);
	assert_int_equal(read_metric(f, "otelcol_exporter_queue_size{data_type=\"profiles\","
					"exporter=\"fake\"} "),
			 100);
	run_until_sends(f, 100);
	assert_int_equal(read_metric(f, OUT), 200);
	assert_int_equal(read_metric(f, QUEUED), 0);
	assert_int_equal(read_metric(f, USED), 0);
}

static void a_full_storage_refuses_senders(void **state)
{
	struct fixture *f = *state;
	close_storage();
	open_storage(f, STORAGE_REFUSE, 20000);
	fail_all(f);
	start(f);
	for (int i = 0; i < 1000 && delivery_room(f->delivery, NULL) == ROOM_SOME; i++)
		enqueue(f, 1);
	assert_int_equal(delivery_room(f->delivery, NULL), ROOM_SOON);
	assert_false(enqueue(f, 1));
	run_until_sends(f, 2);
	/* All that was accepted was stored, and is kept. */
	assert_int_equal(read_metric(f, DROPPED("shutdown")), 0);
}

static void a_full_storage_continues_in_memory_if_configured(void **state)
{
	struct fixture *f = *state;
	close_storage();
	open_storage(f, STORAGE_MEMORY, 20000);
	f->config.sending_queue.num_consumers = 1;
	start(f);
	for (int i = 0; i < 200; i++)
		assert_true(enqueue(f, 1));
	run_until_sends(f, 200);
	assert_int_equal(read_metric(f, OUT), 200);
	assert_int_equal(read_metric(f, QUEUED), 0);
}

/* ---- senders with ack: durable */

struct sender {
	struct ack ack;
	_Atomic int answers;
	enum ack_outcome outcome;
};

static void answered(struct ack *ack, enum ack_outcome outcome)
{
	struct sender *s = (struct sender *)ack;
	s->outcome = outcome;
	s->answers++;
}

static bool enqueue_for(struct fixture *f, struct sender *s, enum ack_mode mode, size_t bytes)
{
	struct packet *packet = packet_new(bytes, 1);
	packet->otlp.len = bytes;
	*s = (struct sender){ .answers = 0 };
	ack_init(&s->ack, mode, answered);
	packet->samples = 1;
	packet->contributions[0] =
		(struct contribution){ .receiver = "otlp", .ack = &s->ack, .mode = mode };
	bool taken = hand_over(f->ledger, f->delivery, packet, ENTRY_IF_FITS);
	packet_release_acks(packet, ACK_MODE_ANY, ACK_TAKEN);
	packet_unref(&packet);
	return taken;
}

static void a_sender_is_answered_when_its_packet_is_stored(void **state)
{
	struct fixture *f = *state;
	struct sender s;
	start(f);
	assert_true(enqueue_for(f, &s, ACK_DURABLE, 10));
	for (int i = 0; i < 5000 && !s.answers; i++)
		usleep(1000);
	assert_int_equal(s.answers, 1);
	assert_int_equal(s.outcome, ACK_TAKEN);
	assert_true(read_metric(f, USED) > 0);
	run_until_sends(f, 1);
}

static void a_sender_learns_that_its_packet_cannot_be_stored(void **state)
{
	struct fixture *f = *state;
	struct sender s;
	close_storage();
	open_storage(f, STORAGE_MEMORY, 100);
	start(f);
	assert_true(enqueue_for(f, &s, ACK_DURABLE, 10));
	assert_int_equal(s.answers, 1);
	assert_int_equal(s.outcome, ACK_FAILED);
	run_until_sends(f, 1);
}

/* Of a queue of its own: while `done` of its entry runs, the writer writes nothing else. */
static _Atomic bool busy_writer, held_writer;

static void hold_writer(struct storage_entry *entry, bool ok)
{
	(void)entry;
	assert_true(ok);
	held_writer = true;
	while (busy_writer)
		usleep(100);
}

static void ignore_attached(void *context, struct storage_queue *queue, uint64_t records)
{
	(void)context;
	(void)queue;
	(void)records;
}

static void ignore(void *context)
{
	(void)context;
}

static void ignore_release(struct storage_entry *entry)
{
	(void)entry;
}

static void begin_to_hold(struct storage_queue **queue, struct storage_entry *entry)
{
	const struct storage_owner owner = { NULL, ignore_attached, ignore };
	struct error err;
	error_clear(&err);
	*queue = storage_queue_open(storage, "other", &owner, &err);
	assert_non_null(*queue);
	*entry = (struct storage_entry){ .account = storage_queue_account(*queue, "profiles"),
					 .head = view_of("head"),
					 .body = view_of("body"),
					 .done = hold_writer,
					 .release = ignore_release };
	held_writer = false;
	busy_writer = true;
	assert_true(storage_append(*queue, entry));
	while (!held_writer)
		usleep(100);
}

/* Writes end so far into a file: a letter fits, a change of the database does not. */
enum { FILE_LIMIT = 12288 };

static void limit_files(rlim_t size, struct rlimit *before)
{
	struct rlimit limit;
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &limit);
	if (before)
		*before = limit;
	limit.rlim_cur = size;
	setrlimit(RLIMIT_FSIZE, &limit);
}

/* One packet of three samples, whose record cannot be written. The writer learns that when the
 * delivery is ending and `ready` says so. */
struct failing {
	struct fixture *f;
	struct loop_timer *timer;
	bool (*ready)(struct fixture *f);
	bool replaced, ending;
};

static void end_and_fail(void *argument)
{
	struct failing *h = argument;
	struct fixture *f = h->f;
	if (!h->ending && f->sends >= 2) {
		h->ending = true;
		if (h->replaced)
			delivery_wait_empty(f->delivery, drained, f);
		else
			drain(f);
	} else if (h->ending && busy_writer && h->ready(f)) {
		busy_writer = false;
	} else if (h->replaced && read_metric(f, UNSTORED)) {
		f->sends = 0;
		succeed(f);
		return;
	}
	loop_timer_start(h->timer, 100000);
}

static void fail_to_write(struct fixture *f, bool (*ready)(struct fixture *f), bool replaced)
{
	struct storage_queue *other;
	struct storage_entry entry;
	struct rlimit before;
	struct failing h = { f, loop_timer_new(f->loop, end_and_fail, &h), ready, replaced, false };
	alarm(120);
	start(f);
	begin_to_hold(&other, &entry);
	limit_files(FILE_LIMIT, &before);
	assert_true(enqueue(f, 3));
	loop_timer_start(h.timer, 100000);
	loop_run(f->loop);
	setrlimit(RLIMIT_FSIZE, &before);
	loop_timer_unref(&h.timer);
	while (!storage_queue_settled(other))
		usleep(100);
	storage_queue_close(&other);
	assert_int_equal(read_metric(f, UNSTORED), 1);
	assert_int_equal(read_metric(f, QUEUED), 0);
	alarm(0);
}

/* If the program ended at once, only what is committed would stay. */
static void a_shutdown_that_is_stuck_keeps_what_is_committed(void **state)
{
	struct fixture *f = *state;
	struct storage_queue *other;
	struct storage_entry entry;
	int64_t lost;
	fail_all(f);
	start(f);
	begin_to_hold(&other, &entry);
	assert_true(enqueue(f, 3));
	assert_int_equal(delivery_log_stuck(f->delivery, &lost), 0);
	assert_int_equal(lost, 3);
	busy_writer = false;
	while (!storage_queue_settled(other) || !storage_queue_settled(f->delivery->durable.queue))
		usleep(100);
	assert_int_equal(delivery_log_stuck(f->delivery, &lost), 3);
	assert_int_equal(lost, 0);
	storage_queue_close(&other);
	run_until_sends(f, 1);
	assert_int_equal(storages_left(all), 3);
	succeed(f);
	start(f);
	assert_int_equal(storages_left(all), 0);
	assert_int_equal(delivery_log_stuck(f->delivery, &lost), 3);
	run_until_sends(f, 1);
	assert_int_equal(read_metric(f, OUT), 3);
	assert_int_equal(storages_left(all), 0);
}

static bool no_consumer_has_it(struct fixture *f)
{
	pthread_mutex_lock(&f->delivery->lock);
	bool idle = !f->delivery->busy;
	pthread_mutex_unlock(&f->delivery->lock);
	return idle;
}

static bool it_is_retried(struct fixture *f)
{
	return f->sends >= 4;
}

/* What was sent of it counts as sent, and the rest as dropped. */
static void a_packet_that_was_sent_in_part_is_not_kept(void **state)
{
	struct fixture *f = *state;
	fail_all(f);
	f->script[0] = (struct send_result){ .outcome = SEND_OK };
	f->ops.plan = plan_three;
	fail_to_write(f, it_is_retried, false);
	assert_int_equal(read_metric(f, OUT), 1);
	assert_int_equal(read_metric(f, DROPPED("shutdown")), 2);
}

static void what_cannot_be_written_is_retried_after_a_replacement(void **state)
{
	struct fixture *f = *state;
	fail_all(f);
	fail_to_write(f, no_consumer_has_it, true);
	assert_int_equal(read_metric(f, OUT), 3);
	assert_int_equal(read_metric(f, DROPPED("shutdown")), 0);
}

static void what_cannot_be_written_at_the_end_is_dropped(void **state)
{
	struct fixture *f = *state;
	fail_all(f);
	fail_to_write(f, no_consumer_has_it, false);
	assert_int_equal(read_metric(f, DROPPED("shutdown")), 3);
}

static int sends_before;

static bool the_deadline_passes(struct fixture *f)
{
	if (!no_consumer_has_it(f))
		return false;
	delivery_abandon(f->delivery);
	sends_before = f->sends;
	return true;
}

/* The exporter has been stopped. */
static void what_cannot_be_written_after_the_deadline_is_not_sent(void **state)
{
	struct fixture *f = *state;
	fail_all(f);
	fail_to_write(f, the_deadline_passes, false);
	assert_int_equal(f->sends, sends_before);
	assert_int_equal(read_metric(f, DROPPED("shutdown")), 3);
}

static void what_cannot_be_written_at_the_end_becomes_a_letter(void **state)
{
	struct fixture *f = *state;
	char letters[100];
	snprintf(letters, sizeof letters, "%s/letters", directory);
	f->config.dead_letter = (struct dead_letter_config){
		.present = { true }, .directory = letters, .max_size_mib = 10, .max_letters = 100
	};
	fail_all(f);
	fail_to_write(f, no_consumer_has_it, false);
	assert_int_equal(read_metric(f, DROPPED("shutdown")), 0);
	assert_int_equal(read_metric(f, DEAD_LETTERS), 3);
}

/* ---- an exporter that was replaced */

static _Atomic bool up;
static _Atomic int attempts;

static void send_if_up(void *self, const struct part *part, uint64_t timeout_ns,
		       struct sending *sending)
{
	const struct send_result result = { .outcome = up ? SEND_OK : SEND_RETRY,
					    .retry_after_ms = -1,
					    .reason = "unavailable" };
	(void)self;
	(void)part;
	(void)timeout_ns;
	attempts++;
	sending_done(sending, &result);
}

/* On the loop thread: each step begins when the one before has done its part. */
struct replacing {
	struct fixture *f;
	struct loop_timer *timer;
	struct delivery *old;
	int attempts; /* when the destination works again; 0: not known yet */
	bool left;
};

static void has_left(void *argument)
{
	struct replacing *r = argument;
	delivery_unref(&r->old);
	r->left = true;
}

static void replace(void *argument)
{
	struct replacing *r = argument;
	struct fixture *f = r->f;
	bool opened = f->delivery && f->delivery->durable.queue;
	if (!r->old && !r->left && attempts >= 2) {
		r->old = f->delivery;
		delivery_wait_empty(r->old, has_left, r);
		f->delivery = NULL;
		start(f);
	} else if (opened && !r->attempts && r->old) {
		r->attempts = attempts + 10; /* the old one still retries, or the new one does */
	} else if (r->attempts && attempts >= r->attempts) {
		up = true;
	}
	if (r->left && read_metric(f, QUEUED) == 0)
		drain(f);
	else
		loop_timer_start(r->timer, 100000);
}

/* What has a record is sent by the new one, while the old one retries what it has in memory. */
static void what_has_no_record_is_retried_after_a_replacement(void **state)
{
	struct fixture *f = *state;
	struct replacing r = { f, loop_timer_new(f->loop, replace, &r), NULL, 0, false };
	alarm(120);
	close_storage();
	open_storage(f, STORAGE_MEMORY, 20000);
	up = false;
	attempts = 0;
	f->ops.send = send_if_up;
	start(f);
	for (int i = 0; i < 200; i++)
		assert_true(enqueue(f, 1));
	assert_in_range(read_metric(f, UNSTORED), 1, 199);
	loop_timer_start(r.timer, 100000);
	loop_run(f->loop);
	loop_timer_unref(&r.timer);
	assert_int_equal(read_metric(f, DROPPED("shutdown")), 0);
	assert_int_equal(read_metric(f, OUT), 200);
	assert_int_equal(read_metric(f, RESTORED), 0);
	alarm(0);
}

enum { SENDERS = 10000, PACKET = 1000, MEMORY = 30000 };

static _Atomic bool enough;

/* As a pool thread that encodes packets of the queue, and lets the encodings go. */
static void *take_and_free_memory(void *argument)
{
	struct backlog *b = &((struct fixture *)argument)->delivery->backlog;
	while (!enough) {
		b->bytes += MEMORY;
		b->bytes -= MEMORY;
	}
	return NULL;
}

/* A packet enters, with its record and its sender's answer, or it does not. */
static void memory_that_changes_does_not_split_the_decision(void **state)
{
	struct fixture *f = *state;
	struct sender *senders = memory_array(SENDERS, sizeof *senders);
	bool *taken = memory_array(SENDERS, sizeof *taken);
	pthread_t other;
	int count = 0;
	alarm(120);
	f->max_bytes = MEMORY;
	f->config.sending_queue.queue_size = SENDERS;
	f->config.sending_queue.num_consumers = 1;
	start(f);
	f->delivery->outage.failing = true; /* what does not fit is not taken after all */
	enough = false;
	assert_int_equal(pthread_create(&other, NULL, take_and_free_memory, f), 0);
	for (int i = 0; i < SENDERS; i++)
		count += taken[i] = enqueue_for(f, &senders[i], ACK_DURABLE, PACKET);
	enough = true;
	pthread_join(other, NULL);
	assert_in_range(count, 1, SENDERS - 1);
	run_until_sends(f, count);
	assert_int_equal(read_metric(f, OUT), count);
	assert_int_equal(read_metric(f, QUEUED), 0);
	for (int i = 0; i < SENDERS; i++) {
		assert_int_equal(senders[i].answers, 1);
		assert_int_equal(senders[i].outcome, taken[i] ? ACK_TAKEN : ACK_FAILED);
	}
	alarm(0);
	memory_free(senders);
	memory_free(taken);
}

enum { STREAM = 60000, AT_ONCE = 64 };

/* Sends that wait for their result: a thread reports the results of all of them in turn. */
static struct reporter {
	pthread_t thread;
	pthread_mutex_t lock;
	struct sending *waiting[AT_ONCE];
	int count;
	bool ended;
} reporter = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void send_later(void *self, const struct part *part, uint64_t timeout_ns,
		       struct sending *sending)
{
	struct fixture *f = *(struct fixture **)self;
	(void)part;
	(void)timeout_ns;
	pthread_mutex_lock(&reporter.lock);
	reporter.waiting[reporter.count++] = sending;
	pthread_mutex_unlock(&reporter.lock);
	f->sends++;
}

static void *report(void *argument)
{
	const struct send_result taken = { .outcome = SEND_OK };
	bool ended = false;
	(void)argument;
	for (int n = 0; !ended; n++) {
		pthread_mutex_lock(&reporter.lock);
		struct sending *sending =
			reporter.count ? reporter.waiting[--reporter.count] : NULL;
		ended = reporter.ended && !sending;
		pthread_mutex_unlock(&reporter.lock);
		if (sending)
			sending_done(sending, &taken);
		else
			usleep((useconds_t)(n % 64) * 4);
	}
	return NULL;
}

static void *enqueue_stream(void *argument)
{
	for (int i = 0; i < STREAM; i++)
		while (!enqueue(argument, 1))
			usleep(100);
	return NULL;
}

/* What is delivered soon is removed before, while and just after the writer commits it. */
static void a_stream_is_removed_while_it_is_written(void **state)
{
	struct fixture *f = *state;
	pthread_t sender;
	f->ops.send = send_later;
	f->config.sending_queue.num_consumers = AT_ONCE;
	start(f);
	assert_int_equal(pthread_create(&reporter.thread, NULL, report, NULL), 0);
	assert_int_equal(pthread_create(&sender, NULL, enqueue_stream, f), 0);
	run_until(f, STREAM, NULL);
	pthread_join(sender, NULL);
	pthread_mutex_lock(&reporter.lock);
	reporter.ended = true;
	pthread_mutex_unlock(&reporter.lock);
	pthread_join(reporter.thread, NULL);
	assert_int_equal(read_metric(f, OUT), STREAM);
	assert_int_equal(read_metric(f, QUEUED), 0);
	restart(f);
	assert_int_equal(read_metric(f, RESTORED), 0);
	drain(f);
	loop_run(f->loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DURABLE(what_is_delivered_leaves_the_disk),
		DURABLE(what_waits_is_kept_and_delivered_after_a_restart),
		DURABLE(what_does_not_fit_into_memory_is_spilled_and_loaded),
		DURABLE(a_full_storage_refuses_senders),
		DURABLE(a_full_storage_continues_in_memory_if_configured),
		DURABLE(a_sender_is_answered_when_its_packet_is_stored),
		DURABLE(a_sender_learns_that_its_packet_cannot_be_stored),
		DURABLE(a_packet_that_was_sent_in_part_is_not_kept),
		DURABLE(a_shutdown_that_is_stuck_keeps_what_is_committed),
		DURABLE(what_cannot_be_written_is_retried_after_a_replacement),
		DURABLE(what_cannot_be_written_at_the_end_is_dropped),
		DURABLE(what_cannot_be_written_at_the_end_becomes_a_letter),
		DURABLE(what_cannot_be_written_after_the_deadline_is_not_sent),
		DURABLE(what_has_no_record_is_retried_after_a_replacement),
		DURABLE(memory_that_changes_does_not_split_the_decision),
		DURABLE(a_stream_is_removed_while_it_is_written),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
