/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "pipeline/delivery/backlog.h"

#define FORM_GZIP ((struct packet_form){ PACKET_OTLP, CODING_GZIP, 1 })

/* A backlog of any number of requests, with a share of memory, and packets of slightly more than
 * 10,000 bytes. */
enum { BYTES = 10000, SHARE = 200000 };

static const struct queue_config config = { .present = { true }, .queue_size = 1000000 };

static struct item *item_of(size_t bytes)
{
	struct item *item = memory_new(sizeof *item);
	item->packet = packet_new(bytes, 0);
	item->packet->otlp.len = bytes;
	item->units = 1;
	return item;
}

static bool works; /* the destination is healthy */

static bool add_item(struct backlog *b, struct item *item, enum queue_entry entry)
{
	bool admitted = backlog_admits(b, item, entry, works);
	if (admitted)
		backlog_add(b, item);
	return admitted;
}

static bool add(struct backlog *b, enum queue_entry entry)
{
	struct item *item = item_of(BYTES);
	if (add_item(b, item, entry))
		return true;
	packet_unref(&item->packet);
	memory_free(item);
	return false;
}

static bool finish(struct backlog *b)
{
	struct item *item = backlog_take(b);
	bool recovered = backlog_remove(b, item);
	packet_unref(&item->packet);
	memory_free(item);
	return recovered;
}

static int fill(struct backlog *b, enum queue_entry entry)
{
	int count = 0;
	while (add(b, entry))
		count++;
	return count;
}

static void empty(struct backlog *b)
{
	while (b->units)
		finish(b);
	assert_int_equal(backlog_bytes(b), 0);
}

static bool zeros(const void *context, const struct packet *packet, struct bytes *out,
		  struct error *err)
{
	(void)context;
	(void)packet;
	(void)err;
	uint8_t some[BYTES] = { 0 };
	return bytes_add(out, some, sizeof some);
}

static void what_it_holds_and_what_plans_make_stay_within_the_share(void **state)
{
	(void)state;
	for (int plans = 0; plans < 2; plans++) {
		struct backlog b;
		backlog_init(&b, &config, plans);
		backlog_set_share(&b, SHARE);
		fill(&b, ENTRY_PROMISED);
		assert_true(backlog_may_make(&b, SHARE)); /* one plan is always allowed */
		int64_t made = 1000;
		backlog_made(&b, made);
		for (; backlog_may_make(&b, 1000); made += 1000)
			backlog_made(&b, 1000);
		assert_in_range(backlog_bytes(&b), SHARE - 2 * BYTES, SHARE);
		assert_in_range(made, plans ? SHARE / 4 : SHARE / 10,
				plans ? SHARE / 2 : SHARE / 6);
		backlog_made(&b, -made);
		empty(&b);
	}
}

static void encodings_that_others_make_count(void **state)
{
	(void)state;
	struct backlog b;
	backlog_init(&b, &config, false);
	backlog_set_share(&b, SHARE);
	struct item *item = item_of(BYTES);
	assert_true(add_item(&b, item, ENTRY_IF_FITS));
	int64_t before = b.bytes, load = backlog_load(&b);
	assert_non_null(packet_form(item->packet, FORM_GZIP, zeros, NULL, NULL));
	assert_true(b.bytes >= before + BYTES);
	assert_in_range(backlog_load(&b), 2 * load - 10, 2 * load + 10);
	empty(&b);
}

static void it_is_full_until_it_is_half_empty(void **state)
{
	(void)state;
	struct backlog b;
	backlog_init(&b, &config, false);
	backlog_set_share(&b, SHARE);
	int count = fill(&b, ENTRY_IF_FITS), left = count;
	struct item *probe = item_of(BYTES);
	while (backlog_room(&b, NULL, works) == ROOM_NONE) {
		bool recovered = finish(&b);
		left--;
		assert_int_equal(recovered, backlog_room(&b, probe->packet, works) == ROOM_SOME);
	}
	assert_in_range(left, count / 3, count / 2);
	empty(&b);
	packet_unref(&probe->packet);
	memory_free(probe);
}

static void units_are_counted_as_configured(void **state)
{
	(void)state;
	const struct queue_config three = { .present = { true }, .queue_size = 3 };
	const struct queue_config bytes = { .present = { true },
					    .queue_size = BYTES * 2,
					    .sizer.index = SIZER_BYTES };
	struct backlog b;
	backlog_init(&b, &three, false);
	assert_int_equal(fill(&b, ENTRY_IF_FITS), 3);
	assert_true(add(&b, ENTRY_ALWAYS));
	assert_false(add(&b, ENTRY_REFUSED));
	empty(&b);

	struct packet *packet = packet_new(BYTES, 0);
	packet->otlp.len = BYTES;
	backlog_init(&b, &bytes, false);
	assert_int_equal(backlog_units_of(&b, packet), BYTES);
	packet_unref(&packet);
	/* An item that was already acknowledged is added regardless of its size, if any item would
	 * be. */
	struct item *items[3];
	for (int i = 0; i < 3; i++) {
		items[i] = item_of(BYTES);
		items[i]->units = BYTES * 2 - 1;
	}
	assert_true(add_item(&b, items[0], ENTRY_IF_FITS));
	assert_true(add_item(&b, items[1], ENTRY_PROMISED));
	assert_false(add_item(&b, items[2], ENTRY_PROMISED));
	empty(&b);
	packet_unref(&items[2]->packet);
	memory_free(items[2]);
}

/* Senders are delayed, and packets in flight are added: only for a short time, and not again before
 * the backlog was empty. */
static void one_that_works_may_be_crowded_for_a_moment(void **state)
{
	(void)state;
	struct backlog b;
	backlog_init(&b, &config, false);
	backlog_set_share(&b, SHARE);
	works = true;
	for (int i = 0; i < 2; i++) {
		while (backlog_load(&b) < BACKLOG_FULL)
			assert_true(add(&b, ENTRY_IF_FITS));
		assert_int_equal(backlog_room(&b, NULL, false), ROOM_NONE);
		assert_int_equal(backlog_room(&b, NULL, true), ROOM_SOON);
		for (int k = 0; k < 100; k++)
			assert_true(add(&b, k % 2 ? ENTRY_IF_FITS : ENTRY_PROMISED));
		b.crowded -= UINT64_C(10000000000); /* ten seconds ago */
		assert_int_equal(backlog_room(&b, NULL, true), ROOM_NONE);
		assert_false(add(&b, ENTRY_PROMISED));
		while (b.units > 2)
			finish(&b);
		assert_int_equal(backlog_room(&b, NULL, true), ROOM_SOME);
		fill(&b, ENTRY_IF_FITS);
		assert_int_equal(backlog_room(&b, NULL, true), ROOM_NONE);
		empty(&b);
	}
	works = false;
}

static void an_empty_one_takes_a_packet_of_any_size(void **state)
{
	(void)state;
	struct backlog b;
	backlog_init(&b, &config, true);
	backlog_set_share(&b, 1);
	assert_true(add(&b, ENTRY_IF_FITS));
	assert_false(add(&b, ENTRY_PROMISED));
	empty(&b);
}

static void the_order_decides_which_waiting_packet_is_taken(void **state)
{
	static const size_t oldest[] = { 1, 2, 3, 4 }, newest[] = { 2, 4, 3, 1 };
	(void)state;
	for (int order = ORDER_OLDEST; order <= ORDER_NEWEST; order++) {
		const size_t *expected = order == ORDER_OLDEST ? oldest : newest;
		struct queue_config q = config;
		struct backlog b;
		q.order.index = order;
		backlog_init(&b, &q, false);
		for (size_t bytes = 1; bytes <= 4; bytes++) {
			assert_true(add_item(&b, item_of(bytes), ENTRY_ALWAYS));
			if (bytes == 2 || bytes == 4) {
				struct item *item = backlog_take(&b);
				assert_int_equal(item->packet->otlp.len, *expected++);
				backlog_remove(&b, item);
				packet_unref(&item->packet);
				memory_free(item);
			}
		}
		for (int i = 0; i < 2; i++) {
			struct item *item = backlog_take(&b);
			assert_int_equal(item->packet->otlp.len, *expected++);
			backlog_remove(&b, item);
			packet_unref(&item->packet);
			memory_free(item);
		}
		assert_null(backlog_take(&b));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_order_decides_which_waiting_packet_is_taken),
		cmocka_unit_test(what_it_holds_and_what_plans_make_stay_within_the_share),
		cmocka_unit_test(encodings_that_others_make_count),
		cmocka_unit_test(it_is_full_until_it_is_half_empty),
		cmocka_unit_test(units_are_counted_as_configured),
		cmocka_unit_test(one_that_works_may_be_crowded_for_a_moment),
		cmocka_unit_test(an_empty_one_takes_a_packet_of_any_size),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
