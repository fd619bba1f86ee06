/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/intake/handoff.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "pipeline/intake/gate.h"

enum {
	SMALL = 9000,
	TURN_BYTES = 512 << 10,
	REQUEST_MIN = 4 << 10,
	COMPRESSED_MIN = 16 << 10,
	GZIP_MIN = 18
};

/* The requests of one turn. */
struct scene {
	struct io_thread *thread;
	uint8_t body[HANDOFF_INLINE_BYTES + 1];
	int here, submitted;
};

static struct scene scene;

/* In place of the gate. */

void gate_run_here(struct gate *gate, struct inbound *in, uint32_t io_thread)
{
	(void)gate, (void)in;
	assert_int_equal(io_thread, 0);
	scene.here++;
}

void gate_submit(struct gate *gate, struct inbound *in)
{
	(void)gate, (void)in;
	scene.submitted++;
}

static void hand(struct io_thread *thread, struct document_format format, enum coding coding,
		 size_t len)
{
	handoff_request(NULL, NULL, thread, &format, coding, (struct view){ scene.body, len });
}

static const struct document_format plain;

static void in_one_turn(void (*run)(void *argument))
{
	struct error err;
	struct io *io = io_start(1, &err);
	assert_non_null(io);
	scene = (struct scene){ .thread = io_thread_at(io, IO_HTTP_2, 0) };
	io_call(scene.thread, run, NULL);
	io_stop(&io);
}

static void sizes(void *argument)
{
	(void)argument;
	hand(scene.thread, plain, CODING_IDENTITY, SMALL);
	hand(scene.thread, plain, CODING_IDENTITY, HANDOFF_INLINE_BYTES);
	assert_int_equal(scene.here, 2);
	hand(scene.thread, plain, CODING_IDENTITY, HANDOFF_INLINE_BYTES + 1);
	hand(NULL, plain, CODING_IDENTITY, SMALL);
	hand(scene.thread, plain, CODING_UNKNOWN, SMALL);
	hand(scene.thread, (struct document_format){ .packed = true }, CODING_IDENTITY, SMALL);
	assert_int_equal(scene.here, 2);
	assert_int_equal(scene.submitted, 4);
}

static void small_plain_requests_stay_on_their_thread(void **state)
{
	(void)state;
	in_one_turn(sizes);
}

static void a_full_turn(void *argument)
{
	(void)argument;
	for (int i = 0; i < TURN_BYTES / HANDOFF_INLINE_BYTES + 5; i++)
		hand(scene.thread, plain, CODING_IDENTITY, HANDOFF_INLINE_BYTES);
	assert_int_equal(scene.here, TURN_BYTES / HANDOFF_INLINE_BYTES);
	assert_int_equal(scene.submitted, 5);
}

static void many_tiny(void *argument)
{
	(void)argument;
	for (int i = 0; i < TURN_BYTES / REQUEST_MIN + 5; i++)
		hand(scene.thread, plain, CODING_IDENTITY, 1);
	assert_int_equal(scene.here, TURN_BYTES / REQUEST_MIN);
	assert_int_equal(scene.submitted, 5);
}

static void what_a_worker_runs(void *argument)
{
	(void)argument;
	for (int i = 0; i < TURN_BYTES / HANDOFF_INLINE_BYTES + 5; i++)
		hand(scene.thread, plain, CODING_IDENTITY, HANDOFF_INLINE_BYTES + 1);
	hand(scene.thread, plain, CODING_IDENTITY, SMALL);
	assert_int_equal(scene.here, 1);
}

static void what_exceeds_a_turn_goes_to_workers(void **state)
{
	(void)state;
	in_one_turn(a_full_turn);
	in_one_turn(many_tiny);
}

static void what_a_worker_runs_does_not_fill_a_turn(void **state)
{
	(void)state;
	in_one_turn(what_a_worker_runs);
}

/* They state a size of 1. */
static void many_compressed(void *argument)
{
	(void)argument;
	scene.body[GZIP_MIN - 4] = 1;
	for (int i = 0; i < TURN_BYTES / COMPRESSED_MIN + 5; i++)
		hand(scene.thread, plain, CODING_GZIP, GZIP_MIN);
	assert_int_equal(scene.here, TURN_BYTES / COMPRESSED_MIN);
	assert_int_equal(scene.submitted, 5);
}

static void a_compressed_body_counts_more_than_it_states(void **state)
{
	(void)state;
	in_one_turn(many_compressed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_plain_requests_stay_on_their_thread),
		cmocka_unit_test(what_exceeds_a_turn_goes_to_workers),
		cmocka_unit_test(what_a_worker_runs_does_not_fill_a_turn),
		cmocka_unit_test(a_compressed_body_counts_more_than_it_states),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
