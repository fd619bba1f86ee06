/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/memory.h"
#include "profile/packet.h"

#include <sched.h>

#define FORM_GZIP ((struct packet_form){ PACKET_OTLP, CODING_GZIP, 1 })
#define FORM_ZSTD ((struct packet_form){ PACKET_OTLP, CODING_ZSTD, 1 })

static struct packet *packet_of(const char *text)
{
	struct packet *packet = packet_new(strlen(text), 1);
	assert_true(bytes_add_text(&packet->otlp, text));
	return packet;
}

static _Atomic int encoded;
static _Atomic bool broken, gate;

static bool reverse(const void *context, const struct packet *packet, struct bytes *out,
		    struct error *err)
{
	(void)context;
	atomic_fetch_add(&encoded, 1);
	if (broken)
		return error_set(err, ERROR_INTERNAL, "the encoder is broken");
	for (size_t i = packet->otlp.len; i-- > 0;)
		if (!bytes_add_byte(out, packet->otlp.at[i]))
			return false;
	return true;
}

static void otlp_is_the_packet_itself(void **state)
{
	(void)state;
	struct packet *packet = packet_of("abc");
	assert_ptr_equal(packet_form(packet, FORM_OTLP, NULL, NULL, NULL), &packet->otlp);
	packet_unref(&packet);
	assert_null(packet);
	packet_unref(&packet);
}

static void a_form_is_made_once(void **state)
{
	(void)state;
	struct packet *packet = packet_of("abc");
	size_t before = packet_footprint(packet);
	encoded = 0;
	const struct bytes *form = packet_form(packet, FORM_JSON, reverse, NULL, NULL);
	assert_memory_equal(form->at, "cba", 3);
	assert_ptr_equal(packet_form(packet, FORM_JSON, reverse, NULL, NULL), form);
	assert_int_equal(encoded, 1);
	assert_ptr_not_equal(packet_form(packet, FORM_ZSTD, reverse, NULL, NULL), form);
	assert_int_equal(encoded, 2);
	assert_true(packet_footprint(packet) >= before + 6);
	packet_unref(&packet);
}

static bool copy_context(const void *context, const struct packet *packet, struct bytes *out,
			 struct error *err)
{
	(void)packet;
	(void)err;
	return bytes_add_text(out, context);
}

static void the_encoder_gets_the_callers_context(void **state)
{
	(void)state;
	struct packet *packet = packet_of("abc");
	const struct bytes *form = packet_form(packet, FORM_REQUEST, copy_context, "xyz", NULL);
	assert_int_equal(form->len, 3);
	assert_memory_equal(form->at, "xyz", 3);
	packet_unref(&packet);
}

static void a_failed_encoding_is_tried_again(void **state)
{
	(void)state;
	struct packet *packet = packet_of("abc");
	struct error err;
	encoded = 0;
	broken = true;
	assert_null(packet_form(packet, FORM_JSON, reverse, NULL, &err));
	assert_string_equal(err.text, "the encoder is broken");
	broken = false;
	assert_non_null(packet_form(packet, FORM_JSON, reverse, NULL, &err));
	assert_int_equal(encoded, 2);
	packet_unref(&packet);
}

static void forms_differ_in_encoding_coding_and_level(void **state)
{
	(void)state;
	static const struct packet_form forms[] = { { PACKET_JSON, CODING_IDENTITY, 0 },
						    { PACKET_JSON, CODING_GZIP, 1 },
						    { PACKET_OTLP, CODING_GZIP, 1 },
						    { PACKET_OTLP, CODING_GZIP, 9 } };
	struct packet *packet = packet_of("abc");
	encoded = 0;
	for (int i = 0; i < 4; i++) {
		assert_false(packet_has(packet, forms[i]));
		assert_non_null(packet_form(packet, forms[i], reverse, NULL, NULL));
		assert_int_equal(encoded, i + 1);
	}
	for (int i = 0; i < 4; i++)
		assert_true(packet_has(packet, forms[i]));
	packet_unref(&packet);
}

static void *ask_for_json(void *packet)
{
	return (void *)packet_form(packet, FORM_JSON, reverse, NULL, NULL);
}

static void threads_share_one_encoding(void **state)
{
	(void)state;
	struct packet *packet = packet_of("abc");
	pthread_t threads[8];
	void *forms[8];
	encoded = 0;
	for (int i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask_for_json, packet), 0);
	for (int i = 0; i < 8; i++) {
		pthread_join(threads[i], &forms[i]);
		assert_ptr_equal(forms[i], forms[0]);
	}
	assert_int_equal(encoded, 1);
	packet_unref(&packet);
}

/* Returns only after another form was created. */
static bool wait_for_other(const void *context, const struct packet *packet, struct bytes *out,
			   struct error *err)
{
	while (!gate)
		sched_yield();
	return reverse(context, packet, out, err);
}

static void *ask_slowly(void *packet)
{
	return (void *)packet_form(packet, FORM_GZIP, wait_for_other, NULL, NULL);
}

static void different_forms_do_not_wait_for_each_other(void **state)
{
	(void)state;
	struct packet *packet = packet_of("abc");
	pthread_t thread;
	gate = false;
	assert_int_equal(pthread_create(&thread, NULL, ask_slowly, packet), 0);
	assert_non_null(packet_form(packet, FORM_JSON, reverse, NULL, NULL));
	packet_footprint(packet);
	gate = true;
	pthread_join(thread, NULL);
	packet_unref(&packet);
}

static _Atomic int64_t charged;

static void charge(void *context, int64_t bytes, bool claim)
{
	(void)context;
	charged += claim ? 0 : bytes;
}

static void who_holds_it_counts_every_encoding(void **state)
{
	(void)state;
	_Atomic int64_t first = 0, second = 0;
	struct packet_holder a = { .bytes = &first }, b = { .bytes = &second };
	struct packet *packet = packet_of("abc");
	packet_charge_to(packet, charge, NULL);
	packet_attach(packet, &a);
	assert_int_equal(first, packet_footprint(packet));
	packet_form(packet, FORM_GZIP, reverse, NULL, NULL);
	packet_attach(packet, &b);
	assert_int_equal(first, packet_footprint(packet));
	assert_int_equal(first, second);
	assert_int_equal(first, charged);
	packet_detach(packet, &a);
	assert_int_equal(first, 0);
	packet_form(packet, FORM_REQUEST, reverse, NULL, NULL);
	assert_int_equal(second, packet_footprint(packet));
	assert_int_equal(second, charged);
	packet_detach(packet, &b);
	assert_int_equal(second, 0);
	packet_unref(&packet);
	assert_int_equal(charged, 0);
}

static void json_goes_with_the_last_who_reads_it(void **state)
{
	(void)state;
	_Atomic int64_t waiting = 0, none = 0;
	struct packet_holder waits = { .bytes = &waiting },
			     reader = { .bytes = &none, .reads = FORM_JSON },
			     other = { .bytes = &none, .reads = FORM_JSON };
	struct packet *packet = packet_of("abc");
	packet_charge_to(packet, charge, NULL);
	packet_attach(packet, &waits);
	packet_attach(packet, &reader);
	packet_attach(packet, &other);
	int64_t before = waiting;
	packet_form(packet, FORM_JSON, reverse, NULL, NULL);
	packet_detach(packet, &reader);
	assert_true(packet_has(packet, FORM_JSON));
	assert_true(waiting > before);
	packet_detach(packet, &other);
	assert_false(packet_has(packet, FORM_JSON));
	assert_int_equal(waiting, before);
	assert_int_equal(charged, before);
	packet_form(packet, FORM_GZIP, reverse, NULL, NULL);
	packet_detach(packet, &waits);
	assert_true(packet_has(packet, FORM_GZIP));
	packet_unref(&packet);
	assert_int_equal(charged, 0);
}

static bool same(struct hash128 a, struct hash128 b)
{
	return a.low == b.low && a.high == b.high;
}

/* Both may have been acknowledged. */
static void packets_with_the_same_bytes_have_different_ids(void **state)
{
	(void)state;
	struct packet *a = packet_of("x"), *b = packet_of("x");
	assert_true(same(packet_id(a), packet_id(a)));
	assert_false(same(packet_id(a), packet_id(b)));
	packet_unref(&a);
	packet_unref(&b);
}

/* The ID of a part of `whole` with these bytes and this number. */
static struct hash128 derived(struct packet *whole, const char *bytes, uint32_t number)
{
	struct packet *part = packet_of(bytes);
	packet_derive_id(part, whole, number);
	struct hash128 id = packet_id(part);
	packet_unref(&part);
	return id;
}

static void a_part_has_the_id_of_its_bytes_and_number_in_the_whole(void **state)
{
	(void)state;
	struct packet *a = packet_of("x"), *b = packet_of("x");
	struct hash128 id = derived(a, "y", 1);
	assert_true(same(id, derived(a, "y", 1)));
	assert_false(same(id, derived(a, "z", 1)));
	assert_false(same(id, derived(a, "y", 2)));
	assert_false(same(id, derived(b, "y", 1)));
	assert_false(same(id, packet_id(a)));
	packet_set_id(b, packet_id(a));
	assert_true(same(id, derived(b, "y", 1)));
	packet_unref(&a);
	packet_unref(&b);
}

static void *ask(void *argument)
{
	struct hash128 *id = memory_new(sizeof *id);
	*id = packet_id(argument);
	return id;
}

static void threads_get_the_same_id(void **state)
{
	(void)state;
	struct packet *packet = packet_of("x");
	pthread_t threads[8];
	for (int i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, ask, packet);
	for (int i = 0; i < 8; i++) {
		void *id;
		pthread_join(threads[i], &id);
		assert_true(same(*(struct hash128 *)id, packet_id(packet)));
		memory_free(id);
	}
	packet_unref(&packet);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_with_the_same_bytes_have_different_ids),
		cmocka_unit_test(a_part_has_the_id_of_its_bytes_and_number_in_the_whole),
		cmocka_unit_test(threads_get_the_same_id),
		cmocka_unit_test(otlp_is_the_packet_itself),
		cmocka_unit_test(a_form_is_made_once),
		cmocka_unit_test(the_encoder_gets_the_callers_context),
		cmocka_unit_test(a_failed_encoding_is_tried_again),
		cmocka_unit_test(forms_differ_in_encoding_coding_and_level),
		cmocka_unit_test(threads_share_one_encoding),
		cmocka_unit_test(different_forms_do_not_wait_for_each_other),
		cmocka_unit_test(who_holds_it_counts_every_encoding),
		cmocka_unit_test(json_goes_with_the_last_who_reads_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
