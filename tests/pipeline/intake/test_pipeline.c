/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/memory.h"
#include "pipeline/intake/pipeline.h"

/* Routes and destinations with given results. This file replaces batcher.c and delivery.c. */
struct batcher {
	enum batcher_result result;
	enum error_kind why;
	uint32_t asked;
	struct route *route;
};

static struct ledger *the_ledger;

struct delivery {
	struct book *books;
	bool room, blocks; /* it has room; it must not drop */
	bool tight;        /* it has room, but not for the packet */
	int64_t load;
	bool awaited;
	uint32_t taken, missed; /* packets */
	enum queue_entry entry; /* of the last one */
	uint64_t dropped;       /* samples */
	enum ledger_column reason;
};

enum batcher_result batcher_add(struct batcher *b, const struct profiles *p,
				struct collect_added *added, struct error *err)
{
	b->asked++;
	(void)p;
	*added = (struct collect_added){ .samples_in = 10, .samples_merged = 3 };
	if (b->result == BATCHER_FAILED)
		error_set(err, b->why ? b->why : ERROR_TOO_LARGE, "scripted");
	else
		pipeline_collected(b->route, added);
	return b->result;
}

struct book *delivery_book(struct delivery *d, const char *pipeline, const char *tenant)
{
	(void)tenant;
	return book_of(&d->books, the_ledger, "fake", pipeline, NULL);
}

bool delivery_enqueue(struct delivery *d, struct packet *packet, struct book *book,
		      enum queue_entry entry)
{
	(void)packet;
	(void)book;
	bool fits = d->room && (!d->tight || entry == ENTRY_PROMISED);
	bool taken = entry == ENTRY_ALWAYS || (entry != ENTRY_REFUSED && fits);
	d->entry = entry;
	d->taken += taken;
	d->missed += !taken;
	return taken;
}

void delivery_drop(struct delivery *d, uint64_t samples, struct book *book,
		   enum ledger_column reason)
{
	book_settle(book, reason, samples);
	d->dropped += samples;
	d->reason = reason;
}

enum delivery_room delivery_room(struct delivery *d, struct packet *packet)
{
	bool room = d->room && !(packet && d->tight);
	return room ? ROOM_SOME : d->blocks ? ROOM_SOON : ROOM_NONE;
}

int64_t delivery_load(const struct delivery *d)
{
	return d->load;
}

bool delivery_waits(const struct delivery *d)
{
	return d->blocks;
}

void delivery_expect_senders(struct delivery *d)
{
	d->awaited = true;
}

struct fixture {
	struct metrics *metrics;
	struct budget budget;
	struct pipeline path;
	struct route routes[2];
	struct batcher batchers[2];
	struct delivery destinations[3];
	struct delivery *first[2], *second[1];
};

/* The first route has two destinations and no batches, the second one has one and batches. */
static int setup(void **state)
{
	struct fixture *f = memory_new(sizeof *f);
	f->metrics = metrics_new();
	budget_init(&f->budget, INT64_C(1) << 40, 0);
	f->path.ledger = the_ledger = ledger_new(f->metrics);
	f->path.id = "profiles";
	f->path.row = ledger_pipeline(f->path.ledger, f->path.id);
	f->path.budget = &f->budget;
	f->path.routes = f->routes;
	f->path.route_count = 2;
	f->first[0] = &f->destinations[0];
	f->first[1] = &f->destinations[1];
	f->second[0] = &f->destinations[2];
	f->routes[0] = (struct route){ .path = &f->path,
				       .deliveries = f->first,
				       .delivery_count = 2,
				       .required_count = 2,
				       .batcher = &f->batchers[0] };
	f->routes[1] = (struct route){ .path = &f->path,
				       .deliveries = f->second,
				       .delivery_count = 1,
				       .required_count = 1,
				       .batcher = &f->batchers[1],
				       .settings.on = true };
	f->routes[0].leads = true;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	for (int i = 0; i < 3; i++)
		books_free(&f->destinations[i].books);
	ledger_unref(&f->path.ledger);
	metrics_unref(&f->metrics);
	memory_free(f);
	return 0;
}

static bool run(struct fixture *f, enum batcher_result first, enum batcher_result second,
		struct error *err)
{
	struct profiles p = { 0 };
	f->batchers[0] = (struct batcher){ .result = first, .route = &f->routes[0] };
	f->batchers[1] = (struct batcher){ .result = second, .route = &f->routes[1] };
	return pipeline_run(&f->path, &p, 0, NULL, err);
}

static void a_request_goes_into_the_batches_of_every_route(void **state)
{
	struct fixture *f = *state;
	struct error err;
	assert_true(run(f, BATCHER_TAKEN, BATCHER_TAKEN, &err));
	assert_int_equal(f->batchers[0].asked + f->batchers[1].asked, 2);
	assert_int_equal(ledger_get(f->path.row, LEDGER_MERGED), 3);
}

static void it_is_taken_when_any_route_took_it(void **state)
{
	struct fixture *f = *state;
	struct error err;
	assert_true(run(f, BATCHER_LOST, BATCHER_TAKEN, &err));
	assert_true(run(f, BATCHER_TAKEN, BATCHER_LOST, &err));
	assert_false(run(f, BATCHER_LOST, BATCHER_LOST, &err));
	assert_int_equal(err.kind, ERROR_BUSY);
}

static void what_the_first_route_cannot_hold_is_refused(void **state)
{
	struct fixture *f = *state;
	struct error err;
	assert_false(run(f, BATCHER_FAILED, BATCHER_TAKEN, &err));
	assert_int_equal(err.kind, ERROR_TOO_LARGE);
	assert_int_equal(f->batchers[1].asked, 0);
}

/* The size that a dictionary adds to a request depends on the contents of the open batch: a sender
 * can cause this. */
static void what_another_route_cannot_hold_is_dropped_there(void **state)
{
	struct fixture *f = *state;
	struct error err;
	assert_true(run(f, BATCHER_TAKEN, BATCHER_FAILED, &err));
	assert_int_equal(f->destinations[2].dropped, 7);
	assert_int_equal(f->destinations[0].dropped + f->destinations[1].dropped, 0);
}

static int answered;

static void answer(struct ack *ack, enum ack_outcome outcome)
{
	(void)ack;
	answered = (int)outcome;
}

static void who_waits_for_that_route_is_told(void **state)
{
	struct fixture *f = *state;
	struct ack ack;
	struct request request = { .ack = &ack };
	struct profiles p = { .request = &request };
	struct error err;
	for (int i = 0; i < 4; i++) {
		bool waits = i % 2, passes = i / 2;
		f->routes[1].waits = waits;
		f->batchers[1].why = passes ? ERROR_BUSY : ERROR_TOO_LARGE;
		f->batchers[0].route = &f->routes[0];
		f->batchers[0].result = BATCHER_TAKEN;
		f->batchers[1].result = BATCHER_FAILED;
		ack_init(&ack, ACK_ENQUEUE, answer);
		assert_true(pipeline_run(&f->path, &p, 0, NULL, &err));
		ack_release(&ack, ACK_TAKEN);
		assert_int_equal(answered, !waits ? ACK_TAKEN : passes ? ACK_FAILED : ACK_REFUSED);
		assert_int_equal(f->destinations[2].reason,
				 passes ? LEDGER_QUEUE_FULL : LEDGER_TOO_LARGE);
	}
}

static bool emit(struct fixture *f, int route)
{
	for (int i = 0; i < 3; i++)
		f->destinations[i].taken = f->destinations[i].missed = 0;
	return pipeline_emit(&f->routes[route], packet_new(1, 0), NULL);
}

static void what_was_not_answered_for_is_taken_where_it_fits(void **state)
{
	struct fixture *f = *state;
	f->destinations[0].room = f->destinations[1].room = f->destinations[1].tight = true;
	assert_true(emit(f, 0));
	assert_int_equal(f->destinations[0].taken, 1);
	assert_int_equal(f->destinations[1].missed, 1);
	f->destinations[0].room = false;
	assert_false(emit(f, 0));
}

/* The first destination has room now and then, as slow ones do. If the request were accepted, the
 * second one would lose it. */
static void what_was_not_answered_for_is_refused_where_one_lacks_room_that_may_not_drop(
	void **state)
{
	struct fixture *f = *state;
	f->destinations[0].room = f->destinations[1].blocks = true;
	assert_false(emit(f, 0));
	assert_int_equal(f->destinations[0].taken + f->destinations[1].taken, 0);
	assert_int_equal(f->destinations[0].missed + f->destinations[1].missed, 2);
	f->destinations[1].room = true;
	assert_true(emit(f, 0));
	assert_int_equal(f->destinations[0].taken + f->destinations[1].taken, 2);
}

/* If another path accepts the document, its sender does not repeat it: then it is not refused, but
 * lost (and may become a dead letter), or enters after all. */
static void what_has_no_room_is_concluded_when_all_paths_were_asked(void **state)
{
	struct fixture *f = *state;
	struct delivery *d = f->destinations;
	for (int accepted = 0; accepted < 2; accepted++) {
		struct refused *list = NULL;
		struct request request = { .refused = &list };
		d[0].taken = d[0].missed = d[1].taken = d[1].missed = 0;
		d[0].room = d[1].room = false;
		for (int i = 0; i < 2; i++)
			assert_false(pipeline_emit(f->routes, packet_new(1, 1), &request));
		assert_int_equal(d[0].missed + d[1].missed, 0);
		d[1].room = true;
		pipeline_conclude(&list, accepted);
		assert_null(list);
		assert_int_equal(d[0].entry, accepted ? ENTRY_IF_FITS : ENTRY_REFUSED);
		assert_int_equal(d[0].missed, 2);
		assert_int_equal(d[1].taken, accepted ? 2 : 0);
	}
}

/* They get their answer from the destination. */
static void senders_that_wait_are_refused_at_once(void **state)
{
	struct fixture *f = *state;
	struct refused *list = NULL;
	struct request request = { .refused = &list };
	struct packet *packet = packet_new(1, 1);
	struct ack ack;
	ack_init(&ack, ACK_ENQUEUE, answer);
	packet->contributions[0].ack = &ack;
	f->destinations[0].entry = ENTRY_ALWAYS;
	assert_false(pipeline_emit(&f->routes[0], packet, &request));
	assert_null(list);
	assert_int_equal(f->destinations[0].entry, ENTRY_REFUSED);
}

static void when_all_are_full_the_least_full_takes_what_was_answered_for(void **state)
{
	struct fixture *f = *state;
	f->routes[0].settings.on = true;
	f->destinations[0].load = 5000; /* failing */
	f->destinations[1].load = 1300;
	assert_true(emit(f, 0));
	assert_int_equal(f->destinations[0].taken, 0);
	assert_int_equal(f->destinations[1].taken, 1);
	f->destinations[0].load = 1200;
	assert_true(emit(f, 0));
	assert_int_equal(f->destinations[0].taken, 1);
	assert_int_equal(f->destinations[1].taken, 0);
	f->destinations[1].blocks = true;
	assert_true(emit(f, 0));
	assert_int_equal(f->destinations[0].taken, 0);
	assert_int_equal(f->destinations[1].taken, 1);
}

static void what_was_answered_for_is_taken_by_a_queue_that_is_not_full(void **state)
{
	struct fixture *f = *state;
	f->destinations[2].room = f->destinations[2].tight = true;
	assert_true(emit(f, 1));
	f->destinations[2].room = false;
	f->destinations[0].room = true;
	assert_false(emit(f, 1)); /* full, but others have room */
	f->destinations[2].blocks = true;
	assert_true(emit(f, 1));
}

static void what_was_answered_for_is_taken_also_when_all_are_full(void **state)
{
	struct fixture *f = *state;
	assert_true(emit(f, 1));
	assert_int_equal(f->destinations[2].taken, 1);
	assert_false(emit(f, 0)); /* its sender gets an error */
	f->routes[1].waits = true;
	assert_false(emit(f, 1)); /* the sender of this one too */
}

/* One sender waits for every destination: none gets what the sender has to repeat. */
static void who_waits_for_all_is_refused_where_one_required_destination_lacks_room(void **state)
{
	struct fixture *f = *state;
	for (int batched = 0; batched < 2; batched++) {
		struct ack ack;
		f->routes[0].settings.on = batched;
		f->destinations[0].room = true;
		for (int room = 0; room < 2; room++) {
			struct packet *packet = packet_new(1, 1);
			packet->contributions[0] =
				(struct contribution){ .ack = &ack, .mode = ACK_DELIVERED };
			ack_init(&ack, ACK_DELIVERED, answer);
			f->destinations[1].room = room;
			f->destinations[0].taken = f->destinations[1].taken = 0;
			assert_int_equal(pipeline_emit(&f->routes[0], packet, NULL), room);
			assert_int_equal(f->destinations[0].taken, room);
			assert_int_equal(f->destinations[1].taken, room);
		}
	}
}

/* Of a batch, one sender has been answered: the packet goes where there is room. */
static void a_batch_with_an_answered_sender_is_not_refused_because_another_one_waits(void **state)
{
	struct fixture *f = *state;
	struct packet *packet = packet_new(1, 2);
	struct ack ack;
	packet->contributions[0] = (struct contribution){ .ack = &ack, .mode = ACK_DELIVERED };
	ack_init(&ack, ACK_DELIVERED, answer);
	f->routes[0].settings.on = true;
	f->destinations[0].room = true;
	assert_true(pipeline_emit(&f->routes[0], packet, NULL));
	assert_int_equal(f->destinations[0].taken, 1);
	assert_int_equal(f->destinations[1].missed, 1);
}

static void a_best_effort_destination_neither_refuses_nor_accepts_for_the_sender(void **state)
{
	struct fixture *f = *state;
	struct error err;
	f->routes[0].required_count = 1;
	f->routes[1].required_count = 0;
	f->destinations[0].room = true;
	assert_true(emit(f, 0)); /* the second one is full */
	assert_int_equal(f->destinations[0].taken, 1);
	assert_int_equal(f->destinations[1].missed, 1);
	assert_true(pipeline_has_room(&f->path));

	f->destinations[0].room = false;
	f->destinations[1].room = f->destinations[2].room = true;
	assert_false(emit(f, 0));
	assert_int_equal(f->destinations[1].taken, 0); /* the sender repeats it */
	assert_false(pipeline_has_room(&f->path));
	assert_false(run(f, BATCHER_LOST, BATCHER_TAKEN, &err));

	f->destinations[2].room = false;
	assert_true(emit(f, 1)); /* its batch was answered for by the other route */
	assert_int_equal(f->destinations[2].missed, 1);
}

static void where_all_destinations_are_best_effort_nothing_is_refused(void **state)
{
	struct fixture *f = *state;
	struct error err;
	f->routes[0].required_count = f->routes[1].required_count = 0;
	assert_false(pipeline_is_required(&f->path));
	assert_true(pipeline_has_room(&f->path));
	assert_false(pipeline_blocks(&f->path, ACK_DELIVERED));
	assert_true(emit(f, 0));
	assert_int_equal(f->destinations[0].missed + f->destinations[1].missed, 2);
	assert_true(run(f, BATCHER_TAKEN, BATCHER_LOST, &err));
}

static void only_required_destinations_expect_senders_that_wait_for_delivery(void **state)
{
	struct fixture *f = *state;
	f->routes[0].required_count = 1;
	f->routes[1].required_count = 0;
	pipeline_expect_senders(&f->path, ACK_ENQUEUE);
	assert_false(f->routes[0].awaited || f->destinations[0].awaited);
	pipeline_expect_senders(&f->path, ACK_DURABLE); /* for a write, not for a peer */
	assert_true(f->routes[0].awaited && !f->destinations[0].awaited);
	pipeline_expect_senders(&f->path, ACK_DELIVERED);
	assert_true(f->destinations[0].awaited);
	assert_false(f->routes[1].awaited || f->destinations[1].awaited ||
		     f->destinations[2].awaited);
}

/* A queue that is full refuses senders that wait for it before they send their bodies. */
static void a_full_queue_blocks_senders_that_wait_for_all(void **state)
{
	struct fixture *f = *state;
	f->destinations[0].room = f->destinations[2].room = true;
	assert_false(pipeline_blocks(&f->path, ACK_ENQUEUE));
	assert_true(pipeline_blocks(&f->path, ACK_DELIVERED));
	assert_true(pipeline_blocks(&f->path, ACK_DURABLE));
	f->destinations[1].room = true;
	assert_false(pipeline_blocks(&f->path, ACK_DELIVERED));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_request_goes_into_the_batches_of_every_route),
		TEST(it_is_taken_when_any_route_took_it),
		TEST(what_the_first_route_cannot_hold_is_refused),
		TEST(what_another_route_cannot_hold_is_dropped_there),
		TEST(who_waits_for_that_route_is_told),
		TEST(what_was_not_answered_for_is_taken_where_it_fits),
		TEST(what_was_not_answered_for_is_refused_where_one_lacks_room_that_may_not_drop),
		TEST(what_has_no_room_is_concluded_when_all_paths_were_asked),
		TEST(senders_that_wait_are_refused_at_once),
		TEST(when_all_are_full_the_least_full_takes_what_was_answered_for),
		TEST(what_was_answered_for_is_taken_by_a_queue_that_is_not_full),
		TEST(what_was_answered_for_is_taken_also_when_all_are_full),
		TEST(who_waits_for_all_is_refused_where_one_required_destination_lacks_room),
		TEST(a_batch_with_an_answered_sender_is_not_refused_because_another_one_waits),
		TEST(a_best_effort_destination_neither_refuses_nor_accepts_for_the_sender),
		TEST(where_all_destinations_are_best_effort_nothing_is_refused),
		TEST(only_required_destinations_expect_senders_that_wait_for_delivery),
		TEST(a_full_queue_blocks_senders_that_wait_for_all),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
