/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "profile/decode_otlp.h"
#include "profile/decode_pprof.h"
#include "profile/split.h"
#include "base/array.h"
#include "base/hash.h"
#include "tests/support/collecting.h"
#include "tests/support/corpus.h"

/*
 * What the splitter promises, for any packet and any limits: the parts, one behind the other, have the samples of the packet
 * in their order, each with all that it refers to and belongs to; each part is a sound message that keeps all limits; what
 * is in no part was counted. The judge is protobuf-c (tests/support/oracle.h).
 */
struct sequence { /* a digest for each sample with its Profile, scope and resource, and for each Profile without any */
	uint64_t *at;
	uint32_t count, room;
};

struct reader {
	struct sequence *out;
	uint64_t heads[3]; /* resource, scope, profile */
	bool bare;         /* the profile has no sample yet */
};

static void put(struct reader *r, uint64_t sample)
{
	uint64_t all[] = { r->heads[0], r->heads[1], r->heads[2], sample };
	array_push(r->out) = hash_bytes(all, sizeof all);
}

static void read_line(struct reader *r, const char *line, size_t len)
{
	size_t level = strspn(line, " ");
	uint64_t digest = hash_bytes(line, len);
	if (level == 3) {
		r->bare = false;
		put(r, digest);
		return;
	}
	if (r->bare)
		put(r, 0);
	r->bare = level == 2;
	r->heads[level] = digest;
}

static void read_sequence(struct view otlp, struct sequence *out)
{
	struct reader r = { .out = out };
	char *text = oracle_text(otlp), *line = text;
	for (char *end; (end = strchr(line, '\n')); line = end + 1)
		read_line(&r, line, (size_t)(end - line));
	if (r.bare)
		put(&r, 0);
	memory_free(text);
}

/* Every one of `some` stands in `all`, in that order; returns how many do not stand in `some`. */
static uint32_t missing(const struct sequence *all, const struct sequence *some)
{
	uint32_t found = 0;
	for (uint32_t i = 0; i < all->count && found < some->count; i++)
		found += all->at[i] == some->at[found];
	assert_int_equal(found, some->count);
	return all->count - some->count;
}

static void assert_within(const struct part *part, const struct limits *limits)
{
	const struct packet *p = part->packet;
	const char *breach = oracle_breach(bytes_view(&p->otlp));
	assert_null(breach);
	assert_int_equal(part->bytes, p->otlp.len);
	assert_int_equal(part->samples, p->samples);
	if (limits->bytes && !(limits->guessed && p->samples <= 1))
		assert_in_range(p->otlp.len, 1, limits->bytes);
	if (limits->samples)
		assert_in_range(p->samples, 0, limits->samples);
	if (limits->profiles)
		assert_in_range(p->profiles, 1, limits->profiles);
	if (limits->resources)
		assert_in_range(p->resources, 1, limits->resources);
}

/* Splits and checks everything; returns the number of parts. */
static uint32_t check(struct packet *packet, const struct limits *limits, struct parts *parts)
{
	struct error err = { 0 };
	struct sequence whole = { 0 }, found = { 0 };
	uint64_t samples = 0;
	if (!split_packet(packet, limits, NULL, parts, &err))
		fail_msg("%s", err.text);
	read_sequence(bytes_view(&packet->otlp), &whole);
	for (uint32_t i = 0; i < parts->count; i++) {
		assert_within(&parts->at[i], limits);
		read_sequence(bytes_view(&parts->at[i].packet->otlp), &found);
		samples += parts->at[i].samples;
	}
	uint32_t lost = missing(&whole, &found);
	uint64_t dropped = 0;
	for (unsigned r = 0; r < PART_DROPPED; r++)
		dropped += parts->dropped[r];
	assert_int_equal(samples + dropped, packet->samples);
	if (!dropped && !limits->bytes)
		assert_int_equal(lost, 0);
	memory_free(whole.at);
	memory_free(found.at);
	return parts->count;
}

static struct packet *seal(const struct profiles *p)
{
	struct collect_added added;
	struct error err = { 0 };
	struct collect *c = collect_new(&collecting_wide);
	struct packet *packet = collect_add(c, p, false, &added, &err) == COLLECT_ADDED ? collect_seal(c) : NULL;
	collect_unref(&c);
	return packet;
}

static uint32_t splits_into(struct packet *packet, const struct limits *limits)
{
	struct parts parts = { 0 };
	uint32_t count = check(packet, limits, &parts);
	parts_fini(&parts);
	return count;
}

static void random_limits(const char *name, struct packet *packet)
{
	(void)name;
	srandom((unsigned)packet->otlp.len);
	for (int i = 0; i < 12; i++) {
		uint64_t divisor = 1 + (uint64_t)random() % 20;
		struct limits limits = { .guessed = random() % 4 == 0 };
		if (random() % 2)
			limits.bytes = packet->otlp.len / divisor + (uint64_t)random() % 300 + 1;
		if (random() % 3 == 0)
			limits.samples = packet->samples / divisor + 1;
		if (random() % 4 == 0)
			limits.profiles = 1 + (uint64_t)random() % 5;
		if (random() % 4 == 0)
			limits.resources = 1 + (uint64_t)random() % 3;
		splits_into(packet, &limits);
	}
}

static int files;

static void split_otlp(const char *name, struct view file)
{
	struct profiles p = { 0 };
	struct error err = { 0 };
	if (profiles_reset(&p, NULL, file, SIZE_MAX / 2) && decode_otlp(&p, &err)) {
		struct packet *packet = seal(&p);
		random_limits(name, packet);
		packet_unref(&packet);
		files++;
	}
	profiles_fini(&p);
}

static void the_corpus_survives_random_limits(void **state)
{
	(void)state;
	if (!corpus_each("otlp", 1 << 20, split_otlp))
		skip();
	assert_in_range(files, 5, 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_corpus_survives_random_limits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
