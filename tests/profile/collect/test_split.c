/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "net/compress.h"
#include "profile/collect/split.h"
#include "profile/otlp/decode_otlp.h"
#include "profile/pprof/decode_pprof.h"
#include "tests/support/collecting.h"
#include "tests/support/corpus.h"
#include "tests/support/sequence.h"

/*
 * What the splitter promises, for any packet and any limits. The parts together have the samples of
 * the packet in order, each with everything that it refers to and belongs to. Each part is a valid
 * message within all limits. Samples that are in no part were counted. The judge is protobuf-c
 * (tests/support/oracle.h).
 */
static struct packet *seal(const struct profiles *p)
{
	struct collect_added added;
	struct error err = { 0 };
	struct collect *c = collect_new(
		&(struct collect_limits){ .max_bytes = 1 << 30, .hard_bytes = 1 << 30 });
	struct packet *packet =
		collect_add(c, p, false, &added, &err) == COLLECT_ADDED ? collect_seal(c) : NULL;
	collect_unref(&c);
	return packet;
}

static struct packet *seal_open(struct fixture *f)
{
	struct packet *packet = seal(&f->p);
	assert_non_null(packet);
	return packet;
}

static void split(struct packet *packet, const struct limits *limits, struct parts *parts)
{
	struct error err = { 0 };
	if (!split_packet(packet, limits, NULL, parts, &err))
		fail_msg("%s", err.text);
}

/* Could any part of it be split into parts within the limit? */
static bool has_smaller(struct packet *packet, uint64_t bytes)
{
	struct parts parts = { 0 };
	split(packet, &(struct limits){ .bytes = bytes }, &parts);
	bool any = parts.count > 0;
	parts_fini(&parts);
	return any;
}

static void assert_within(const struct part *part, const struct limits *limits)
{
	struct packet *p = part->packet;
	const char *breach = oracle_breach(bytes_view(&p->otlp));
	if (breach)
		fail_msg("%s", breach);
	assert_int_equal(part->bytes, p->otlp.len);
	assert_int_equal(part->samples, p->samples);
	assert_int_equal(p->contribution_count, 0);
	assert_true(!limits->bytes || p->otlp.len <= limits->bytes ||
		    (limits->guessed && !has_smaller(p, limits->bytes)));
	assert_true(!limits->samples || p->samples <= limits->samples);
	assert_true(!limits->profiles || p->profiles <= limits->profiles);
	assert_true(!limits->resources || p->resources <= limits->resources);
}

static uint64_t dropped(const struct parts *parts)
{
	return parts->dropped[PART_TOO_LARGE] + parts->dropped[PART_TOO_OLD] +
	       parts->dropped[PART_TOO_NEW];
}

/* What is in no part is sealed too, if that is wanted; the parts are the same. */
static void check_left(struct packet *packet, const struct limits *limits, const struct parts *same)
{
	struct parts parts = { .keeps = true };
	uint64_t left[PART_DROPPED] = { 0 };
	split(packet, limits, &parts);
	assert_int_equal(parts.count, same->count);
	for (uint32_t i = 0; i < parts.count; i++)
		assert_true(view_equal(bytes_view(&parts.at[i].packet->otlp),
				       bytes_view(&same->at[i].packet->otlp)));
	for (uint32_t i = 0; i < parts.left.count; i++) {
		const struct part_left *l = &parts.left.at[i];
		const char *breach = oracle_breach(bytes_view(&l->packet->otlp));
		if (breach)
			fail_msg("%s", breach);
		assert_int_equal(l->samples, l->packet->samples);
		left[l->why] += l->samples;
	}
	assert_memory_equal(left, same->dropped, sizeof left);
	parts_fini(&parts);
}

/* Splits, and checks all promises. */
static void check_against(const struct sequence *whole, struct packet *packet,
			  const struct limits *limits, struct parts *parts)
{
	struct sequence found = { 0 };
	uint64_t samples = 0;
	split(packet, limits, parts);
	for (uint32_t i = 0; i < parts->count; i++) {
		if (parts->at[i].packet != packet)
			assert_within(&parts->at[i], limits);
		sequence_read(bytes_view(&parts->at[i].packet->otlp), &found);
		samples += parts->at[i].samples;
	}
	int64_t missing = sequence_missing(whole, &found);
	assert_true(missing >= (int64_t)dropped(parts));
	assert_int_equal(samples + dropped(parts), packet->samples);
	if (!limits->bytes && !limits->oldest)
		assert_int_equal(missing, 0);
	check_left(packet, limits, parts);
	memory_free(found.at);
}

static void check(struct packet *packet, const struct limits *limits, struct parts *parts)
{
	struct sequence whole = { 0 };
	sequence_read(bytes_view(&packet->otlp), &whole);
	check_against(&whole, packet, limits, parts);
	memory_free(whole.at);
}

/* ---- any packet, any limits ---- */

static uint64_t one_in(int chance, uint64_t value)
{
	return random() % chance ? 0 : value;
}

static struct limits random_limits(const struct packet *packet)
{
	uint64_t divisor = 1 + (uint64_t)random() % 20;
	return (struct limits){
		.bytes = one_in(2, packet->otlp.len / divisor + (uint64_t)random() % 300 + 1),
		.samples = one_in(3, packet->samples / divisor + 1),
		.profiles = one_in(4, 1 + (uint64_t)random() % 5),
		.resources = one_in(4, 1 + (uint64_t)random() % 3),
		.series = one_in(4, 1 + (uint64_t)random() % 3),
		.oldest = one_in(6, packet->oldest + (packet->newest - packet->oldest) / divisor),
		.guessed = random() % 4 == 0,
	};
}

static void check_random_limits(struct packet *packet)
{
	struct sequence whole = { 0 };
	size_t rounds = 400000 / packet->otlp.len + 1; /* the oracle is slow */
	srandom((unsigned)packet->otlp.len);
	sequence_read(bytes_view(&packet->otlp), &whole);
	for (size_t i = 0; i < (rounds < 8 ? rounds : 8); i++) {
		struct parts parts = { 0 };
		const struct limits limits = random_limits(packet);
		check_against(&whole, packet, &limits, &parts);
		parts_fini(&parts);
	}
	memory_free(whole.at);
}

static int files;

static void check_tables(struct profiles *p, bool decoded)
{
	if (decoded) {
		struct packet *packet = seal(p);
		check_random_limits(packet);
		packet_unref(&packet);
		files++;
	}
	profiles_fini(p);
}

static void check_otlp(const char *name, struct view file)
{
	struct profiles p = { 0 };
	struct error err = { 0 };
	(void)name;
	check_tables(&p, profiles_reset(&p, NULL, file, SIZE_MAX / 2) && decode_otlp(&p, &err));
}

static void check_pprof(const char *name, struct view file)
{
	struct profiles p = { 0 };
	struct error err = { 0 };
	struct bytes out;
	(void)name;
	bytes_init(&out, 16 << 20);
	assert_true(bytes_reserve(&out, 1));
	check_tables(&p, compress_inflate(compress_sniff(file), file, &out, &err) &&
				 profiles_reset(&p, NULL, bytes_view(&out), SIZE_MAX / 2) &&
				 decode_pprof(&p, p.input, NULL, &err));
	bytes_fini(&out);
}

static void the_corpus_survives_random_limits(void **state)
{
	(void)state;
	if (!corpus_each("otlp", 1 << 20, check_otlp) ||
	    !corpus_each("pprof", 1 << 20, check_pprof))
		skip();
	assert_true(files > 5);
}

/* Many resources, scopes and Profiles, some of them empty, with shared and own entries. */
static void open_varied(struct fixture *f, uint32_t profiles, uint32_t most)
{
	char text[40];
	for (uint32_t i = 0; i < profiles; i++) {
		if (i % 7 == 0)
			open_resource(&f->p, LIST(open_integer(&f->p, "pid", i, "")));
		if (i % 7 == 0 || i % 3 == 0)
			open_scope(&f->p, i % 2 ? "agent" : "other");
		struct profile *profile = open_profile(&f->p, i % 4 ? "cpu" : "wall", "ns");
		profile->time = 1000 + i;
		for (uint32_t j = 0; j < (i * 5) % (most + 1); j++) {
			snprintf(text, sizeof text, "function %u", (i * 31 + j * 7) % 97);
			uint32_t stack = open_frame(&f->p, text);
			snprintf(text, sizeof text, "thread %u", j % 11);
			open_value(&f->p, stack, LIST(open_attribute(&f->p, "thread", text)), j);
		}
	}
}

static void made_packets_survive_random_limits(void **state)
{
	struct fixture *f = *state;
	for (uint32_t i = 1; i < 40; i += 6) {
		open_begin(&f->p, NULL);
		open_varied(f, i, 5 * i);
		struct packet *packet = seal_open(f);
		check_random_limits(packet);
		packet_unref(&packet);
	}
}

/* ---- where packets are split ---- */

/* "3+2 0|5": the samples of the Profiles of each part. */
static char *shape_of(const struct parts *parts)
{
	struct bytes out;
	bytes_init(&out, 1 << 20);
	for (uint32_t i = 0; i < parts->count; i++) {
		struct profiles p = { 0 };
		struct error err = { 0 };
		assert_true(split_open(parts->at[i].packet, &p, &err));
		for (uint32_t j = 0; j < p.profiles.count; j++)
			bytes_format(&out, "%s%u",
				     j   ? "+"
				     : i ? " "
					 : "",
				     p.profiles.at[j].samples.count);
		profiles_fini(&p);
	}
	bytes_add_byte(&out, 0);
	return (char *)out.at;
}

/* Profiles of one scope with these numbers of samples; ends with -1. */
static struct packet *packet_of(struct fixture *f, const int *samples)
{
	open_resource(&f->p, NONE);
	open_scope(&f->p, "scope");
	for (; *samples >= 0; samples++) {
		open_profile(&f->p, "cpu", "ns")->time = 5;
		for (int i = 0; i < *samples; i++)
			open_value(&f->p, open_frame(&f->p, "main"), NONE, i);
	}
	return seal_open(f);
}
#define SAMPLES(...) ((const int[]){ __VA_ARGS__, -1 })

static void assert_shape(struct packet *packet, struct limits limits, const char *expected)
{
	struct parts parts = { 0 };
	check(packet, &limits, &parts);
	char *shape = shape_of(&parts);
	assert_string_equal(shape, expected);
	memory_free(shape);
	parts_fini(&parts);
}

static void profiles_are_cut_only_when_one_alone_is_over(void **state)
{
	struct packet *packet = packet_of(*state, SAMPLES(3, 3, 3, 10, 1, 0, 2));
	assert_shape(packet, (struct limits){ .samples = 100 }, "3+3+3+10+1+0+2");
	assert_shape(packet, (struct limits){ .samples = 7 }, "3+3 3 7 3+1+0+2");
	assert_shape(packet, (struct limits){ .samples = 10 }, "3+3+3 10 1+0+2");
	assert_shape(packet, (struct limits){ .samples = 4, .profiles = 2 }, "3 3 3 4 4 2+1 0+2");
	assert_shape(packet, (struct limits){ .profiles = 3 }, "3+3+3 10+1+0 2");
	packet_unref(&packet);
}

static void resources_and_series_are_counted(void **state)
{
	struct fixture *f = *state;
	static const char *const types[] = { "cpu", "wall", "cpu", "wall", "alloc", "cpu" };
	for (int r = 0; r < 2; r++) {
		open_resource(&f->p, LIST(open_integer(&f->p, "pid", r, "")));
		open_scope(&f->p, "");
		for (int i = 0; i < 6; i++) {
			open_profile(&f->p, types[i], "ns");
			open_value(&f->p, open_frame(&f->p, "main"), NONE, i);
		}
	}
	struct packet *packet = seal_open(f);
	assert_shape(packet, (struct limits){ .resources = 1 }, "1+1+1+1+1+1 1+1+1+1+1+1");
	assert_shape(packet, (struct limits){ .series = 2 }, "1+1+1+1 1+1 1+1+1+1 1+1");
	assert_shape(packet, (struct limits){ .series = 5 }, "1+1+1+1+1+1+1+1+1+1 1+1");
	packet_unref(&packet);
}

static void profiles_out_of_time_are_dropped_by_reason(void **state)
{
	struct fixture *f = *state;
	struct parts parts = { 0 };
	open_varied(f, 20, 9); /* times 1000 to 1019 */
	struct packet *packet = seal_open(f);
	assert_int_equal(packet->oldest, 1000);
	assert_int_equal(packet->newest, 1019);
	split(packet, &(struct limits){ .oldest = 1002, .newest = 1017 }, &parts);
	assert_int_equal(parts.count, 1);
	assert_int_equal(parts.at[0].packet->oldest, 1002);
	assert_int_equal(parts.at[0].packet->newest, 1017);
	assert_int_equal(parts.dropped[PART_TOO_OLD], 0 + 5);
	assert_int_equal(parts.dropped[PART_TOO_NEW], (18 * 5) % 10 + (19 * 5) % 10);
	assert_int_equal(parts.at[0].samples + dropped(&parts), packet->samples);
	parts_fini(&parts);
	packet_unref(&packet);
}

static void what_keeps_the_limits_is_not_decoded(void **state)
{
	(void)state;
	struct packet *packet = packet_new(100, 0);
	struct parts parts = { 0 };
	packet->otlp.len = 100; /* zeros: not a message */
	packet->samples = 7;
	packet->profiles = packet->resources = 1;
	split(packet,
	      &(struct limits){
		      .bytes = 100, .samples = 7, .profiles = 1, .resources = 1, .series = 1 },
	      &parts);
	assert_int_equal(parts.count, 1);
	assert_ptr_equal(parts.at[0].packet, packet);
	assert_false(split_packet(packet, &(struct limits){ .bytes = 99 }, NULL, &parts,
				  &(struct error){ 0 }));
	assert_int_equal(parts.count, 1);
	parts_fini(&parts);
	packet_unref(&packet);
}

/* ---- data that is too large in any part ---- */

static void open_giant(struct fixture *f, uint32_t samples, uint32_t giant)
{
	char large[3000];
	memset(large, 'x', sizeof large - 1);
	large[sizeof large - 1] = 0;
	open_resource(&f->p, NONE);
	open_scope(&f->p, "");
	open_profile(&f->p, "cpu", "ns");
	for (uint32_t i = 0; i < samples; i++)
		open_value(&f->p, open_frame(&f->p, "main"),
			   i == giant ? LIST(open_attribute(&f->p, "key", large)) : NONE, i);
}

static void one_sample_over_the_limit_is_dropped_and_its_neighbours_stay(void **state)
{
	struct fixture *f = *state;
	struct parts parts = { 0 };
	open_giant(f, 100, 40);
	struct packet *packet = seal_open(f);
	check(packet, &(struct limits){ .bytes = 500 }, &parts);
	assert_int_equal(parts.dropped[PART_TOO_LARGE], 1);
	parts_fini(&parts);
	check(packet, &(struct limits){ .bytes = 500, .guessed = true }, &parts);
	assert_int_equal(dropped(&parts), 0);
	parts_fini(&parts);
	packet_unref(&packet);
}

/* A resource that fills a part by itself is dropped with little work. The resources after it are
 * not. */
static void what_would_only_be_repeated_is_not_tried(void **state)
{
	struct fixture *f = *state;
	struct parts parts = { 0 };
	char large[3000];
	memset(large, 'x', sizeof large - 1);
	large[sizeof large - 1] = 0;
	for (int r = 0; r < 2; r++) {
		open_resource(&f->p, r ? NONE : LIST(open_attribute(&f->p, "large", large)));
		open_scope(&f->p, "");
		for (int i = 0; i < 300; i++) {
			open_profile(&f->p, "cpu", "ns")->time = 1;
			open_value(&f->p, open_frame(&f->p, "main"), NONE, i);
			open_value(&f->p, open_frame(&f->p, "main"), NONE, i);
		}
	}
	struct packet *packet = seal_open(f);
	check(packet, &(struct limits){ .bytes = 2500 }, &parts);
	assert_int_equal(parts.dropped[PART_TOO_LARGE], 600);
	parts_fini(&parts);
	check(packet, &(struct limits){ .bytes = 2500, .guessed = true }, &parts);
	assert_int_equal(dropped(&parts), 0);
	assert_in_range(parts.count, 2, 40);
	parts_fini(&parts);
	packet_unref(&packet);
}

/* Every sample fits alone, with a stack that all samples need: the parts would have thousands of
 * times the size of the packet. */
static void parts_are_never_many_times_the_packet(void **state)
{
	struct fixture *f = *state;
	struct parts parts = { 0 };
	struct list frames = { f->p.indices.count, 0 };
	uint32_t locations[1000];
	uint64_t made = 0;
	for (uint32_t i = 0; i < 1000; i++)
		locations[i] =
			open_location(&f->p, 0, 0x10000 + i, open_function(&f->p, "f"), NONE);
	for (uint32_t i = 0; i < 1000; i++)
		frames = open_list(&f->p, locations[i], OPEN_END);
	frames = (struct list){ frames.first + 1 - 1000, 1000 };
	uint32_t stack = open_stack(&f->p, frames);
	collecting_profile(f);
	for (uint32_t i = 0; i < 20000; i++)
		open_value(&f->p, stack, NONE, i);
	struct packet *packet = seal_open(f);
	split(packet, &(struct limits){ .samples = 1 }, &parts);
	for (uint32_t i = 0; i < parts.count; i++)
		made += parts.at[i].packet->otlp.len;
	assert_true(made < 50000000);
	assert_true(parts.dropped[PART_TOO_LARGE] > 0);
	parts_fini(&parts);
	packet_unref(&packet);
}

/* ---- inherited data, and other arithmetic ---- */

static int64_t charged;

static void charge(void *context, int64_t bytes, bool claim)
{
	(void)context;
	(void)claim;
	charged += bytes;
}

static void parts_inherit_and_are_charged(void **state)
{
	struct fixture *f = *state;
	struct parts parts = { 0 };
	struct packet *packet = packet_of(f, SAMPLES(10, 10));
	packet->origin = origin_new("key", NULL, NULL);
	packet->oldest_arrival = 42;
	packet_charge_to(packet, charge, NULL);
	int64_t before = charged;
	check(packet, &(struct limits){ .samples = 5 }, &parts);
	assert_int_equal(parts.count, 4);
	assert_true(charged > before);
	for (uint32_t i = 0; i < parts.count; i++) {
		assert_ptr_equal(parts.at[i].packet->origin, packet->origin);
		assert_int_equal(parts.at[i].packet->oldest_arrival, 42);
	}
	parts_fini(&parts);
	assert_int_equal(charged, before);
	packet_unref(&packet);
	assert_int_equal(charged, 0);
}

/* A destination that counts a thousand bytes per sample, and counts two samples as one. */
static bool measure(void *context, struct packet *candidate, struct split_size *size,
		    struct error *err)
{
	(void)err;
	*size = (struct split_size){ 1000 * candidate->samples, (candidate->samples + 1) / 2 };
	return !context || candidate->samples > 3;
}

static void a_destination_may_count_otherwise(void **state)
{
	struct packet *packet = packet_of(*state, SAMPLES(7, 30));
	const struct split_measure own = { measure, NULL };
	struct parts parts = { 0 };
	struct error err = { 0 };
	assert_true(split_packet(packet, &(struct limits){ .bytes = 8000 }, &own, &parts, &err));
	for (uint32_t i = 0; i < parts.count; i++) {
		assert_int_equal(parts.at[i].bytes, 1000 * parts.at[i].samples);
		assert_in_range(parts.at[i].samples, 1, 8);
	}
	assert_in_range(parts.count, 5, 7);
	parts_fini(&parts);
	packet_unref(&packet);
}

/* The size is unknown before it is measured, so the whole is measured before the first small
 * part. */
static void large_packets_of_such_a_destination_lose_nothing(void **state)
{
	struct fixture *f = *state;
	const struct split_measure own = { measure, NULL };
	struct parts parts = { 0 };
	struct error err = { 0 };
	char name[300];
	collecting_profile(f);
	for (int i = 0; i < 10000; i++) {
		snprintf(name, sizeof name, "%0299d", i);
		open_value(&f->p, open_frame(&f->p, name), NONE, i);
	}
	struct packet *packet = seal_open(f);
	assert_true(split_packet(packet, &(struct limits){ .samples = 20 }, &own, &parts, &err));
	assert_int_equal(parts.dropped[PART_TOO_LARGE], 0);
	assert_in_range(parts.count, 250, 300);
	for (uint32_t i = 0; i < parts.count; i++)
		assert_in_range(parts.at[i].samples, 1, 40);
	parts_fini(&parts);
	packet_unref(&packet);
}

static void a_failed_measure_leaves_the_parts_as_they_were(void **state)
{
	struct packet *packet = packet_of(*state, SAMPLES(7, 30));
	const struct split_measure failing = { measure, packet };
	struct parts parts = { .dropped = { 1, 2, 3 } };
	struct error err = { 0 };
	parts_add(&parts, packet_ref(packet), 37, 0);
	assert_false(
		split_packet(packet, &(struct limits){ .bytes = 6000 }, &failing, &parts, &err));
	assert_int_equal(parts.count, 1);
	assert_int_equal(parts.dropped[PART_TOO_OLD], 2);
	parts_fini(&parts);
	packet_unref(&packet);
}

static void the_same_input_makes_the_same_parts(void **state)
{
	struct fixture *f = *state;
	struct parts a = { 0 }, b = { 0 };
	open_varied(f, 30, 40);
	struct packet *packet = seal_open(f);
	const struct limits limits = { .bytes = packet->otlp.len / 7, .samples = 50 };
	split(packet, &limits, &a);
	split(packet, &limits, &b);
	assert_int_equal(a.count, b.count);
	for (uint32_t i = 0; i < a.count; i++)
		assert_true(view_equal(bytes_view(&a.at[i].packet->otlp),
				       bytes_view(&b.at[i].packet->otlp)));
	parts_fini(&a);
	parts_fini(&b);
	packet_unref(&packet);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(profiles_are_cut_only_when_one_alone_is_over),
		TEST(resources_and_series_are_counted),
		TEST(profiles_out_of_time_are_dropped_by_reason),
		TEST(what_keeps_the_limits_is_not_decoded),
		TEST(one_sample_over_the_limit_is_dropped_and_its_neighbours_stay),
		TEST(what_would_only_be_repeated_is_not_tried),
		TEST(parts_are_never_many_times_the_packet),
		TEST(parts_inherit_and_are_charged),
		TEST(a_destination_may_count_otherwise),
		TEST(large_packets_of_such_a_destination_lose_nothing),
		TEST(a_failed_measure_leaves_the_parts_as_they_were),
		TEST(the_same_input_makes_the_same_parts),
		TEST(made_packets_survive_random_limits),
		cmocka_unit_test(the_corpus_survives_random_limits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
