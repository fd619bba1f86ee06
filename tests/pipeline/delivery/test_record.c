/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/hash.h"
#include "pipeline/delivery/record.h"

#define HOUR_NS UINT64_C(3600000000000)

static struct packet *make_packet(void)
{
	static const struct metadatum metadata[] = { { "x-scope", "a" }, { "x-empty", "" }, { 0 } };
	struct packet *p = packet_new(1000, 3);
	memset(p->otlp.at, 7, 1000);
	p->otlp.len = 1000;
	p->origin = origin_new("4:acme,1:a,", "acme", metadata);
	p->oldest_arrival = clock_now();
	p->samples = 42;
	p->resources = 2;
	p->profiles = 3;
	p->oldest = 1000;
	p->newest = 2000;
	for (unsigned t = 0; t < PACKET_TABLES; t++)
		p->tables[t] = 100 * (t + 1);
	static const char *const receivers[] = { "otlp", "pprof", "otlp" };
	for (uint32_t i = 0; i < 3; i++)
		p->contributions[i] = (struct contribution){ .receiver = receivers[i],
							     .profiles = 1,
							     .samples_in = 20,
							     .samples_merged = 6 };
	return p;
}

static void encode(struct packet *p, struct bytes *out)
{
	bytes_init(out, 1 << 20);
	assert_true(record_encode(p, p->origin, "profiles/x", RECORD_ACCOUNT_SHARED, out));
	assert_true(bytes_add(out, p->otlp.at, p->otlp.len));
}

static void a_packet_comes_back_as_it_was(void **state)
{
	(void)state;
	struct packet *p = make_packet();
	struct bytes data;
	struct record r;
	encode(p, &data);
	assert_int_equal(record_check(bytes_view(&data), &r), RECORD_SOUND);
	assert_true(view_is(r.pipeline, "profiles/x"));
	assert_int_equal(r.account, RECORD_ACCOUNT_SHARED);
	assert_int_equal(r.samples, 42);
	struct packet *q = record_packet(&r);
	assert_int_equal(q->otlp.len, 1000);
	assert_memory_equal(q->otlp.at, p->otlp.at, 1000);
	assert_memory_equal(q->tables, p->tables, sizeof p->tables);
	assert_string_equal(q->origin->tenant, "acme");
	assert_string_equal(q->origin->key, p->origin->key);
	assert_string_equal(q->origin->metadata[0].name, "x-scope");
	assert_string_equal(q->origin->metadata[0].value, "a");
	assert_string_equal(q->origin->metadata[1].value, "");
	assert_null(q->origin->metadata[2].name);
	assert_int_equal(q->samples, 42);
	assert_int_equal(q->resources, 2);
	assert_int_equal(q->profiles, 3);
	assert_int_equal(q->oldest, 1000);
	assert_int_equal(q->newest, 2000);
	packet_unref(&p);
	packet_unref(&q);
	bytes_fini(&data);
}

/* Requests of one receiver are one contribution; together they are what they were. */
static void contributions_are_summed_by_receiver(void **state)
{
	(void)state;
	struct packet *p = make_packet();
	struct bytes data;
	struct record r;
	encode(p, &data);
	assert_int_equal(record_check(bytes_view(&data), &r), RECORD_SOUND);
	struct packet *q = record_packet(&r);
	assert_int_equal(q->contribution_count, 2);
	assert_string_equal(q->contributions[0].receiver, "otlp");
	assert_int_equal(q->contributions[0].profiles, 2);
	assert_int_equal(q->contributions[0].samples_in, 40);
	assert_int_equal(q->contributions[0].samples_merged, 12);
	assert_string_equal(q->contributions[1].receiver, "pprof");
	assert_null(q->contributions[0].ack);
	packet_unref(&p);
	packet_unref(&q);
	bytes_fini(&data);
}

static void the_arrival_is_kept_in_wall_clock_time(void **state)
{
	(void)state;
	struct packet *p = make_packet();
	struct bytes data;
	struct record r;
	uint64_t hours = clock_now() > 2 * HOUR_NS ? HOUR_NS : 1000000;
	p->oldest_arrival = clock_now() - hours;
	encode(p, &data);
	assert_int_equal(record_check(bytes_view(&data), &r), RECORD_SOUND);
	struct packet *q = record_packet(&r);
	uint64_t age = clock_now() - q->oldest_arrival;
	assert_true(age >= hours && age < hours + 600 * UINT64_C(1000000000));
	packet_unref(&p);
	packet_unref(&q);
	bytes_fini(&data);
}

static void the_id_is_kept(void **state)
{
	(void)state;
	struct packet *p = make_packet();
	struct bytes one, two;
	struct record a, b;
	struct hash128 id = packet_id(p);
	encode(p, &one);
	p->oldest_arrival -= 1000;
	encode(p, &two);
	assert_int_equal(record_check(bytes_view(&one), &a), RECORD_SOUND);
	assert_int_equal(record_check(bytes_view(&two), &b), RECORD_SOUND);
	assert_memory_equal(&a.id, &id, sizeof id);
	assert_memory_equal(&b.id, &id, sizeof id);
	struct packet *q = record_packet(&a);
	struct hash128 again = packet_id(q);
	assert_memory_equal(&again, &id, sizeof id);
	packet_unref(&p);
	packet_unref(&q);
	bytes_fini(&one);
	bytes_fini(&two);
}

static void set_number(uint8_t *at, uint64_t number)
{
	for (unsigned i = 0; i < 8; i++)
		at[i] = (uint8_t)(number >> 8 * i);
}

/* The record as the first format had it: without the 16 bytes of the ID at 152. */
static void encode_old(struct packet *p, struct bytes *out)
{
	enum { AT_LENGTH = 8, AT_CHECKSUM = 48, AT_ID = 152, ID = 16 };
	uint8_t sums[16];
	bytes_init(out, 1 << 20);
	assert_true(record_encode(p, p->origin, "profiles/x", RECORD_ACCOUNT_SHARED, out));
	size_t head = out->len - ID;
	memmove(out->at + AT_ID, out->at + AT_ID + ID, head - AT_ID);
	out->len = head;
	out->at[4] = 1;
	assert_true(head < 65536);
	out->at[AT_LENGTH] = (uint8_t)head;
	out->at[AT_LENGTH + 1] = (uint8_t)(head >> 8);
	set_number(sums, hash_content(out->at, AT_CHECKSUM));
	set_number(sums + 8, hash_content(out->at + AT_CHECKSUM + 8, head - AT_CHECKSUM - 8));
	set_number(out->at + AT_CHECKSUM, hash_content(sums, sizeof sums));
	assert_true(bytes_add(out, p->otlp.at, p->otlp.len));
}

static void a_record_of_the_first_format_is_read_and_has_an_id_of_its_own(void **state)
{
	(void)state;
	struct packet *p = make_packet();
	struct bytes one, two;
	struct record a, again, b;
	encode_old(p, &one);
	p->oldest_arrival -= 1000;
	encode_old(p, &two);
	assert_int_equal(record_check(bytes_view(&one), &a), RECORD_SOUND);
	assert_int_equal(record_check(bytes_view(&one), &again), RECORD_SOUND);
	assert_int_equal(record_check(bytes_view(&two), &b), RECORD_SOUND);
	assert_memory_equal(&a.id, &again.id, sizeof a.id);
	assert_memory_not_equal(&a.id, &b.id, sizeof a.id);
	struct packet *q = record_packet(&a);
	assert_int_equal(q->otlp.len, 1000);
	assert_string_equal(q->origin->metadata[0].value, "a");
	assert_int_equal(q->contribution_count, 2);
	packet_unref(&p);
	packet_unref(&q);
	bytes_fini(&one);
	bytes_fini(&two);
}

static void every_flipped_bit_is_noticed(void **state)
{
	(void)state;
	struct packet *p = make_packet();
	struct bytes data;
	struct record r;
	encode(p, &data);
	for (size_t bit = 0; bit < data.len * 8; bit++) {
		data.at[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_not_equal(record_check(bytes_view(&data), &r), RECORD_SOUND);
		data.at[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	assert_int_equal(record_check(bytes_view(&data), &r), RECORD_SOUND);
	packet_unref(&p);
	bytes_fini(&data);
}

static void every_other_length_is_torn(void **state)
{
	(void)state;
	struct packet *p = make_packet();
	struct bytes data;
	struct record r;
	encode(p, &data);
	for (size_t len = 0; len < data.len; len++)
		assert_int_equal(record_check((struct view){ data.at, len }, &r), RECORD_TORN);
	bytes_add_byte(&data, 0);
	assert_int_equal(record_check(bytes_view(&data), &r), RECORD_TORN);
	packet_unref(&p);
	bytes_fini(&data);
}

static void another_format_is_foreign(void **state)
{
	(void)state;
	struct packet *p = make_packet();
	struct bytes data;
	struct record r;
	encode(p, &data);
	data.at[4] = 3;
	assert_int_equal(record_check(bytes_view(&data), &r), RECORD_FOREIGN);
	data.at[0] = 'X';
	assert_int_equal(record_check(bytes_view(&data), &r), RECORD_FOREIGN);
	packet_unref(&p);
	bytes_fini(&data);
}

/* The ledger needs to know what was lost. */
static void a_damaged_body_leaves_the_head_readable(void **state)
{
	(void)state;
	struct packet *p = make_packet();
	struct bytes data;
	struct record r;
	encode(p, &data);
	data.at[data.len - 1] ^= 1;
	assert_int_equal(record_check(bytes_view(&data), &r), RECORD_CORRUPT);
	assert_int_equal(r.samples, 42);
	assert_true(view_is(r.pipeline, "profiles/x"));
	packet_unref(&p);
	bytes_fini(&data);
}

static void a_packet_without_origin_has_none_afterwards(void **state)
{
	(void)state;
	struct packet *p = packet_new(0, 0);
	struct bytes data;
	struct record r;
	encode(p, &data);
	assert_int_equal(record_check(bytes_view(&data), &r), RECORD_SOUND);
	struct packet *q = record_packet(&r);
	assert_null(q->origin);
	assert_int_equal(q->contribution_count, 0);
	assert_int_equal(q->otlp.len, 0);
	packet_unref(&p);
	packet_unref(&q);
	bytes_fini(&data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_packet_comes_back_as_it_was),
		cmocka_unit_test(contributions_are_summed_by_receiver),
		cmocka_unit_test(the_arrival_is_kept_in_wall_clock_time),
		cmocka_unit_test(the_id_is_kept),
		cmocka_unit_test(a_record_of_the_first_format_is_read_and_has_an_id_of_its_own),
		cmocka_unit_test(every_flipped_bit_is_noticed),
		cmocka_unit_test(every_other_length_is_torn),
		cmocka_unit_test(another_format_is_foreign),
		cmocka_unit_test(a_damaged_body_leaves_the_head_readable),
		cmocka_unit_test(a_packet_without_origin_has_none_afterwards),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
