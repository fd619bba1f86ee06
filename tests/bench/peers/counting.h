/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_BENCH_PEERS_COUNTING_H
#define TESTS_BENCH_PEERS_COUNTING_H

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "net/compress.h"
#include "profile/wire.h"
#include "tests/bench/peers/clock.h"

/*
 * What the sinks have in common: they accept everything and count it. For each line of its input, a
 * sink prints a line of JSON: requests, their bytes as received (compressed or not), CPU seconds of
 * this process, the mean arrival time (CLOCK_MONOTONIC), and their contents: samples, timestamps,
 * the sum of all values (mod 2^64). The line "take" also resets the counts. It ends at the end of
 * its input. One thread counts.
 */
enum { BODY_MAX = 256 << 20 };

struct counts {
	uint64_t requests, bytes, samples, timestamps, values;
	double came; /* the sum of the arrival times */
};

static struct counting {
	struct bytes inflated;
	pthread_mutex_t lock; /* guards counts */
	struct counts counts;
	bool times_only; /* contents are not counted */
} counting = { .lock = PTHREAD_MUTEX_INITIALIZER };

__attribute__((noreturn)) static void die(const char *why)
{
	fprintf(stderr, "sink: %s\n", why);
	exit(1);
}

/* A single value may be unpacked; several are packed. */
static void count_values(struct wire_field f, struct counts *counts)
{
	struct wire packed = wire_of(f.view);
	if (f.type == WIRE_VARINT)
		counts->values += f.value;
	else
		while (wire_more(&packed))
			counts->values += wire_varint(&packed);
}

static void count_sample(struct view sample, struct counts *counts)
{
	struct wire w = wire_of(sample);
	struct wire_field f;
	counts->samples++;
	while (wire_next(&w, &f)) {
		if (f.number == 4)
			count_values(f, counts);
		else if (f.number == 5)
			counts->timestamps += f.type == WIRE_LEN ? f.view.len / 8 : 1;
	}
}

/* Descends by field number: request, ResourceProfiles, ScopeProfiles, Profile, Sample. */
static void count_in(struct view message, int depth, struct counts *counts)
{
	static const uint32_t down[] = { WIRE_TAG(1, WIRE_LEN), WIRE_TAG(2, WIRE_LEN),
					 WIRE_TAG(2, WIRE_LEN), WIRE_TAG(2, WIRE_LEN) };
	if (depth == sizeof down / sizeof *down) {
		count_sample(message, counts);
		return;
	}
	struct wire w = wire_of(message);
	while (wire_more(&w)) {
		uint32_t tag = wire_tag(&w);
		if (tag == down[depth])
			count_in(wire_len(&w), depth + 1, counts);
		else
			wire_skip(&w, tag);
	}
	if (!wire_done(&w))
		die("a request is malformed");
}

static struct view inflate(struct view body)
{
	struct error err;
	enum coding coding = compress_sniff(body);
	if (coding == CODING_IDENTITY)
		return body;
	counting.inflated.len = 0;
	if (!compress_inflate(coding, body, &counting.inflated, &err))
		die(err.text);
	return bytes_view(&counting.inflated);
}

/* A request has arrived. */
static void count_request(struct view body)
{
	struct counts counts = { .requests = 1, .bytes = body.len, .came = now() };
	if (!counting.times_only)
		count_in(inflate(body), 0, &counts);
	pthread_mutex_lock(&counting.lock);
	counting.counts.requests += counts.requests;
	counting.counts.bytes += counts.bytes;
	counting.counts.samples += counts.samples;
	counting.counts.timestamps += counts.timestamps;
	counting.counts.values += counts.values;
	counting.counts.came += counts.came;
	pthread_mutex_unlock(&counting.lock);
}

static void *talk(void *unused)
{
	(void)unused;
	char line[64];
	while (fgets(line, sizeof line, stdin)) {
		pthread_mutex_lock(&counting.lock);
		const struct counts *c = &counting.counts;
		printf("{\"requests\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"samples\": %" PRIu64
		       ", \"timestamps\": %" PRIu64 ", \"values\": %" PRIu64
		       ", \"came\": %.6f, \"cpu\": %.6f}\n",
		       c->requests, c->bytes, c->samples, c->timestamps, c->values,
		       c->requests ? c->came / (double)c->requests : 0, cpu_used());
		if (!strcmp(line, "take\n"))
			counting.counts = (struct counts){ 0 };
		pthread_mutex_unlock(&counting.lock);
		fflush(stdout);
	}
	_exit(0);
}

/* Prints the port, and answers the lines of the input from now on. */
static void counting_start(int port)
{
	pthread_t talker;
	bytes_init(&counting.inflated, BODY_MAX);
	printf("port %d\n", port);
	fflush(stdout);
	if (pthread_create(&talker, NULL, talk, NULL))
		die("no thread");
}

#endif
