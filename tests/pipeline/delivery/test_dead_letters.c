/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <fcntl.h>
#include <semaphore.h>
#include <sys/stat.h>

#include "tests/pipeline/delivery/delivery_fixture.h"

/* What a delivery does with what it loses, when there is a directory for it. Every kind of loss is
 * in tests/e2e/test_dead_letters.py. */
#define DEAD "otelcol_ledger_dead_letter_samples{exporter=\"fake\",pipeline=\"profiles\"} "
#define BUSY "otelcol_exporter_dead_letters_failed{exporter=\"fake\",reason=\"busy\"} "

enum { POOL = 4, BYTES = 1000 };

static char directory[] = "/tmp/portcullis-dead-XXXXXX";

static int count_letters(bool remove)
{
	int count = 0;
	char path[512];
	DIR *dir = opendir(directory);
	for (struct dirent *file; dir && (file = readdir(dir));) {
		if (*file->d_name == '.')
			continue;
		snprintf(path, sizeof path, "%s/%s", directory, file->d_name);
		if (remove)
			unlink(path);
		count += strstr(file->d_name, ".json") != NULL;
	}
	if (dir)
		closedir(dir);
	return count;
}

static bool is_prompt(void *self, const struct packet *packet)
{
	(void)self;
	(void)packet;
	return true;
}

static int setup_letters(void **state)
{
	snprintf(directory, sizeof directory, "/tmp/portcullis-dead-XXXXXX");
	assert_non_null(mkdtemp(directory));
	setup(state);
	struct fixture *f = *state;
	f->config.dead_letter = (struct dead_letter_config){
		.present = { true }, .directory = directory, .max_size_mib = 1, .max_letters = 100
	};
	f->ops.prompt = is_prompt;
	return 0;
}

static int teardown_letters(void **state)
{
	count_letters(true);
	assert_int_equal(rmdir(directory), 0);
	return teardown(state);
}

static void script_rejections(struct fixture *f)
{
	for (int i = 0; i < 16; i++)
		f->script[i] = (struct send_result){ .outcome = SEND_PERMANENT,
						     .retry_after_ms = -1,
						     .reason = "invalid" };
	begin(f);
}

static void reject_all(struct fixture *f)
{
	struct error err;
	script_rejections(f);
	assert_true(delivery_start(f->delivery, &err));
}

static bool enqueue_bytes(struct fixture *f, enum queue_entry entry)
{
	struct packet *packet = packet_new(BYTES, 0);
	packet->otlp.len = BYTES;
	packet->samples = 1;
	bool taken = hand_over(f->ledger, f->delivery, packet, entry);
	packet_unref(&packet);
	return taken;
}

static void what_is_rejected_is_kept_before_the_end(void **state)
{
	struct fixture *f = *state;
	reject_all(f);
	assert_true(enqueue(f, 4));
	assert_true(enqueue(f, 5));
	run_until_sends(f, 2);
	assert_int_equal(read_metric(f, DEAD), 9);
	assert_int_equal(read_metric(f, DROPPED("permanent")), 0);
	assert_int_equal(read_metric(f, QUEUED), 0);
	assert_int_equal(count_letters(false), 2);
}

static void parts_are_kept_one_by_one(void **state)
{
	struct fixture *f = *state;
	f->ops.plan = plan_three;
	f->ops.prompt = NULL;
	reject_all(f);
	f->script[1] = (struct send_result){ .outcome = SEND_OK };
	assert_true(enqueue(f, 9));
	run_until_sends(f, 3);
	assert_int_equal(read_metric(f, DEAD), 6);
	assert_int_equal(read_metric(f, OUT), 3);
	assert_int_equal(count_letters(false), 2);
}

static sem_t gate;
static _Atomic int hanging;

static void hang(void *argument)
{
	(void)argument;
	hanging++;
	sem_wait(&gate);
	hanging--;
}

static void make_old_file(const char *name)
{
	char path[512];
	snprintf(path, sizeof path, "%s/%s", directory, name);
	int fd = open(path, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	assert_int_equal(futimens(fd, (const struct timespec[]){ { 1, 0 }, { 1, 0 } }), 0);
	close(fd);
}

/* A look takes as long as the disk needs, and removes what is left over. */
static void the_loop_thread_does_not_look(void **state)
{
	struct fixture *f = *state;
	make_old_file("20260102T150405.123456789-000001.json");
	sem_init(&gate, 0, 0);
	script_rejections(f);
	for (int i = 0; i < POOL; i++)
		loop_work(f->loop, hang, NULL, NULL);
	struct error err;
	assert_true(delivery_start(f->delivery, &err));
	assert_int_equal(count_letters(false), 1);
	for (int i = 0; i < POOL; i++)
		sem_post(&gate);
	run_until_sends(f, 0);
	assert_int_equal(count_letters(false), 0);
	sem_destroy(&gate);
}

/* Letters need time, so they are begun before the deadline. A send that hangs goes on. */
static void what_waits_in_a_shutdown_is_kept_before_the_deadline(void **state)
{
	struct fixture *f = *state;
	struct error err;
	f->hold = true;
	f->config.sending_queue.num_consumers = 1;
	begin(f);
	assert_true(delivery_start(f->delivery, &err));
	for (int i = 0; i < 3; i++)
		assert_true(enqueue(f, 4));
	delivery_keep_waiting(f->delivery); /* it does not end */
	assert_int_equal(read_metric(f, QUEUED), 12);
	assert_int_equal(f->sends, 1);
	drain(f);
	delivery_keep_waiting(f->delivery);
	sending_done(f->held, &(struct send_result){ .outcome = SEND_OK });
	loop_run(f->loop);
	assert_int_equal(f->sends, 1);
	assert_int_equal(read_metric(f, OUT), 4);
	assert_int_equal(read_metric(f, DEAD), 8);
	assert_int_equal(count_letters(false), 2);
}

/* Its sender gets an error, and repeats it. */
static void what_was_refused_is_not_kept(void **state)
{
	struct fixture *f = *state;
	reject_all(f);
	assert_false(enqueue_bytes(f, ENTRY_REFUSED));
	run_until_sends(f, 0);
	assert_int_equal(read_metric(f, DROPPED("queue_full")), 1);
	assert_int_equal(count_letters(false), 0);
}

struct hanging {
	struct fixture *f;
	struct loop_timer *timer;
	int sends;
};

/* All packets were attempted although the disk hangs, and as much waits as may. Nothing is enqueued
 * before the pool hangs, because the first look would write it. */
static void look_while_hanging(void *argument)
{
	struct hanging *h = argument;
	struct fixture *f = h->f;
	if (hanging == POOL && h->sends < 15 && (!f->sends || f->sends == h->sends + 1)) {
		h->sends = f->sends;
		enqueue_bytes(f, ENTRY_IF_FITS);
	}
	if (f->sends < 15 || !read_metric(f, BUSY)) {
		loop_timer_start(h->timer, 100000);
		return;
	}
	assert_true(read_metric(f, QUEUED) > 0);
	assert_int_equal(read_metric(f, DEAD), 0);
	for (int i = 0; i < POOL; i++)
		sem_post(&gate);
	drain(f);
}

static void a_disk_that_hangs_delays_no_send(void **state)
{
	struct fixture *f = *state;
	struct hanging h = { f, NULL, 0 };
	f->max_bytes = 40 * BYTES;
	f->config.sending_queue.queue_size = 100;
	sem_init(&gate, 0, 0);
	reject_all(f);
	for (int i = 0; i < POOL; i++)
		loop_work(f->loop, hang, NULL, NULL);
	h.timer = loop_timer_new(f->loop, look_while_hanging, &h);
	loop_timer_start(h.timer, 100000);
	loop_run(f->loop);
	loop_timer_unref(&h.timer);
	int64_t busy = read_metric(f, BUSY), dead = read_metric(f, DEAD);
	assert_true(busy > 0 && dead > 0);
	assert_int_equal(dead + busy, f->sends);
	assert_int_equal(read_metric(f, DROPPED("permanent")), busy);
	assert_int_equal(count_letters(false), dead);
	sem_destroy(&gate);
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_letters, teardown_letters)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_rejected_is_kept_before_the_end),
		TEST(parts_are_kept_one_by_one),
		TEST(what_was_refused_is_not_kept),
		TEST(what_waits_in_a_shutdown_is_kept_before_the_deadline),
		TEST(the_loop_thread_does_not_look),
		TEST(a_disk_that_hangs_delays_no_send),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
