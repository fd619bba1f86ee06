/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "pipeline/budget.h"
#include "pipeline/intake/duplicates.h"

struct fixture {
	struct duplicates_config config;
	struct budget budget;
	struct metrics *metrics;
	struct duplicates *duplicates;
};

static int setup(void **state)
{
	struct fixture *f = memory_new(sizeof *f);
	f->config = (struct duplicates_config){ { true }, { INT64_C(3600000000000) }, 100 };
	budget_init(&f->budget, 64 << 20, 0);
	f->metrics = metrics_new();
	*state = f;
	return 0;
}

static void begin(struct fixture *f)
{
	f->duplicates = duplicates_new(&f->config, &f->budget, f->metrics, "otlp");
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	duplicates_unref(&f->duplicates);
	assert_int_equal(f->budget.charged, 0);
	metrics_unref(&f->metrics);
	memory_free(f);
	return 0;
}

static int64_t metric(struct fixture *f, const char *line)
{
	struct bytes text;
	bytes_init(&text, 1 << 20);
	metrics_write(f->metrics, &text);
	bytes_add_byte(&text, 0);
	const char *at = strstr((char *)text.at, line);
	int64_t value = at ? strtoll(at + strlen(line), NULL, 10) : -1;
	bytes_fini(&text);
	return value;
}

#define ENTRIES "otelcol_receiver_idempotency_keys{receiver=\"otlp\"} "
#define UNUSED(reason) \
	"otelcol_receiver_unused_idempotency_keys{reason=\"" reason "\",receiver=\"otlp\"} "

struct sender {
	const char *tenant, *subject, *peer;
};
static const struct sender nobody = { 0 };

static enum duplicates_answer enter(struct fixture *f, const struct sender *sender, uint32_t key,
				    uint32_t *place, struct duplicates_reply *reply)
{
	char text[40];
	const struct metadatum headers[] = { { "idempotency-key", text }, { 0 } },
			       auth[] = { { "subject", sender->subject }, { 0 } };
	const struct request request = { .tenant = sender->tenant,
					 .peer = sender->peer,
					 .auth = sender->subject ? auth : NULL };
	snprintf(text, sizeof text, "%032x", key);
	return duplicates_enter(f->duplicates, &request, headers, place, reply);
}

/* The request arrives, and is accepted if it is new. */
static enum duplicates_answer send(struct fixture *f, const struct sender *sender, uint32_t key)
{
	uint32_t place;
	struct duplicates_reply reply;
	enum duplicates_answer answer = enter(f, sender, key, &place, &reply);
	assert_true(answer == DUPLICATES_NEW || !place);
	duplicates_keep(f->duplicates, place, &(struct duplicates_reply){ key, 0, "" });
	return answer;
}

static void a_repetition_gets_the_reply_of_the_first(void **state)
{
	struct fixture *f = *state;
	uint32_t first, second;
	struct duplicates_reply reply = { 42, 3, "document 1: no" }, found = { 0 };
	begin(f);
	assert_int_equal(enter(f, &nobody, 1, &first, &found), DUPLICATES_NEW);
	assert_int_not_equal(first, 0);
	assert_int_equal(enter(f, &nobody, 1, &second, &found), DUPLICATES_BUSY);
	assert_int_equal(second, 0);
	duplicates_keep(f->duplicates, first, &reply);
	for (int i = 0; i < 2; i++) {
		memset(&found, 1, sizeof found);
		assert_int_equal(enter(f, &nobody, 1, &second, &found), DUPLICATES_REPEATS);
		assert_int_equal(second, 0);
		assert_int_equal(found.samples, 42);
		assert_int_equal(found.rejected_profiles, 3);
		assert_string_equal(found.rejection, reply.rejection);
	}
	assert_int_equal(send(f, &nobody, 2), DUPLICATES_NEW);
	assert_int_equal(metric(f, ENTRIES), 2);
}

static void a_request_that_was_not_accepted_leaves_no_trace(void **state)
{
	struct fixture *f = *state;
	uint32_t place;
	struct duplicates_reply reply;
	begin(f);
	for (int i = 0; i < 300; i++) {
		assert_int_equal(enter(f, &nobody, 1, &place, &reply), DUPLICATES_NEW);
		assert_int_not_equal(place, 0);
		duplicates_forget(f->duplicates, place);
	}
	assert_int_equal(metric(f, ENTRIES), 0);
	assert_int_equal(metric(f, UNUSED("full")), 0);
}

static void senders_do_not_share_keys(void **state)
{
	struct fixture *f = *state;
	static const struct sender senders[] = { { 0 },
						 { .tenant = "a" },
						 { .tenant = "b" },
						 { .subject = "a" },
						 { .tenant = "a", .subject = "b" } };
	begin(f);
	for (int turn = 0; turn < 2; turn++)
		for (size_t i = 0; i < sizeof senders / sizeof *senders; i++)
			assert_int_equal(send(f, &senders[i], 1),
					 turn ? DUPLICATES_REPEATS : DUPLICATES_NEW);
}

static void an_address_is_not_a_sender(void **state)
{
	struct fixture *f = *state;
	begin(f);
	assert_int_equal(send(f, &(struct sender){ .peer = "10.0.0.1" }, 1), DUPLICATES_NEW);
	assert_int_equal(send(f, &(struct sender){ .peer = "10.0.0.2" }, 1), DUPLICATES_REPEATS);
}

static void requests_without_a_valid_key_are_new(void **state)
{
	struct fixture *f = *state;
	const struct metadatum bad[] = { { "idempotency-key", "short" }, { 0 } };
	const struct request request = { 0 };
	struct duplicates_reply reply;
	uint32_t place;
	begin(f);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(duplicates_enter(f->duplicates, &request, bad, &place, &reply),
				 DUPLICATES_NEW);
		assert_int_equal(place, 0);
		assert_int_equal(duplicates_enter(f->duplicates, &request, NULL, &place, &reply),
				 DUPLICATES_NEW);
		assert_int_equal(place, 0);
	}
	assert_int_equal(metric(f, UNUSED("invalid")), 2);
	assert_int_equal(metric(f, ENTRIES), 0);
}

static void an_accepted_request_is_forgotten_after_the_window(void **state)
{
	struct fixture *f = *state;
	f->config.window.ns = 1;
	begin(f);
	for (uint32_t i = 0; i < 1000; i++) {
		assert_int_equal(send(f, &nobody, 1), DUPLICATES_NEW);
		usleep(1);
	}
	assert_int_equal(metric(f, ENTRIES), 1);
	assert_int_equal(metric(f, UNUSED("full")), 0);
}

static void the_oldest_give_way_when_the_table_is_full(void **state)
{
	struct fixture *f = *state;
	begin(f);
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(send(f, &nobody, i), DUPLICATES_NEW);
	assert_int_equal(metric(f, ENTRIES), 100);
	assert_int_equal(metric(f, UNUSED("full")), 900);
	for (uint32_t i = 900; i < 1000; i++)
		assert_int_equal(send(f, &nobody, i), DUPLICATES_REPEATS);
	assert_int_equal(send(f, &nobody, 899), DUPLICATES_NEW);
}

/* One of the others may be in the group of the flood by chance, but hardly five of eight. */
static void a_flood_does_not_push_out_the_requests_of_others(void **state)
{
	struct fixture *f = *state;
	static const struct sender others[] = { { .tenant = "a" }, { .tenant = "b" },
						{ .tenant = "c" }, { .tenant = "d" },
						{ .tenant = "e" }, { .tenant = "f" },
						{ .tenant = "g" }, { .tenant = "h" } };
	enum { OTHERS = sizeof others / sizeof *others };
	begin(f);
	for (uint32_t i = 0; i < OTHERS; i++)
		assert_int_equal(send(f, &others[i], 1), DUPLICATES_NEW);
	for (uint32_t i = 0; i < 5000; i++)
		send(f, &nobody, i);
	int left = 0;
	for (uint32_t i = 0; i < OTHERS; i++)
		left += send(f, &others[i], 1) == DUPLICATES_REPEATS;
	assert_in_range(left, OTHERS / 2, OTHERS);
}

static void requests_that_are_being_processed_are_not_pushed_out(void **state)
{
	struct fixture *f = *state;
	uint32_t places[100], more;
	struct duplicates_reply reply;
	begin(f);
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(enter(f, &nobody, i, &places[i], &reply), DUPLICATES_NEW);
	assert_int_equal(enter(f, &nobody, 100, &more, &reply), DUPLICATES_NEW);
	assert_int_equal(more, 0);
	assert_int_equal(metric(f, UNUSED("full")), 1);
	for (uint32_t i = 0; i < 100; i++) {
		assert_int_equal(enter(f, &nobody, i, &more, &reply), DUPLICATES_BUSY);
		duplicates_forget(f->duplicates, places[i]);
	}
	assert_int_equal(send(f, &nobody, 100), DUPLICATES_NEW);
}

static void it_does_not_grow_beyond_the_budget(void **state)
{
	struct fixture *f = *state;
	f->config.max_entries = 1 << 20;
	begin(f);
	int64_t soft = f->budget.soft;
	send(f, &nobody, 0); /* the index, and the first 1024 entries */
	f->budget.soft = f->budget.charged;
	for (uint32_t i = 1; i < 3000; i++)
		assert_int_equal(send(f, &nobody, i), DUPLICATES_NEW);
	assert_int_equal(metric(f, ENTRIES), 1024);
	assert_int_equal(send(f, &nobody, 2999), DUPLICATES_REPEATS);
	f->budget.soft = soft;
	for (uint32_t i = 3000; i < 6000; i++)
		assert_int_equal(send(f, &nobody, i), DUPLICATES_NEW);
	assert_in_range(metric(f, ENTRIES), 3000, 6000);
}

static void without_memory_nothing_is_remembered(void **state)
{
	struct fixture *f = *state;
	begin(f);
	f->budget.soft = 0;
	assert_int_equal(send(f, &nobody, 1), DUPLICATES_NEW);
	assert_int_equal(send(f, &nobody, 1), DUPLICATES_NEW);
	assert_int_equal(metric(f, UNUSED("full")), 2);
}

static void without_the_section_there_is_no_table(void **state)
{
	struct fixture *f = *state;
	f->config.present.enabled = false;
	begin(f);
	assert_null(f->duplicates);
	assert_int_equal(send(f, &nobody, 1), DUPLICATES_NEW);
	assert_int_equal(send(f, &nobody, 1), DUPLICATES_NEW);
}

enum { THREADS = 4, KEYS = 2000 };

struct contest {
	struct fixture *f;
	_Atomic uint32_t taken[KEYS];
};

static void *contend(void *argument)
{
	struct contest *c = argument;
	for (uint32_t key = 0; key < KEYS; key++)
		if (send(c->f, &nobody, key) == DUPLICATES_NEW)
			c->taken[key]++;
	return NULL;
}

static void of_requests_at_the_same_time_one_is_processed(void **state)
{
	struct contest c = { .f = *state };
	pthread_t threads[THREADS];
	c.f->config.max_entries = KEYS;
	begin(c.f);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, contend, &c);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (uint32_t key = 0; key < KEYS; key++)
		assert_int_equal(c.taken[key], 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_repetition_gets_the_reply_of_the_first),
		TEST(a_request_that_was_not_accepted_leaves_no_trace),
		TEST(senders_do_not_share_keys),
		TEST(an_address_is_not_a_sender),
		TEST(requests_without_a_valid_key_are_new),
		TEST(an_accepted_request_is_forgotten_after_the_window),
		TEST(the_oldest_give_way_when_the_table_is_full),
		TEST(a_flood_does_not_push_out_the_requests_of_others),
		TEST(requests_that_are_being_processed_are_not_pushed_out),
		TEST(it_does_not_grow_beyond_the_budget),
		TEST(without_memory_nothing_is_remembered),
		TEST(without_the_section_there_is_no_table),
		TEST(of_requests_at_the_same_time_one_is_processed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
