/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "profile/collect/collect.h"
#include "profile/collect/split.h"
#include "tests/support/open.h"

/*
 * Measures the cost of splitting a packet, for callgrind:
 *
 *	bench_split [-n passes] [-b bytes] [-s samples] [-p profiles] SCALE
 *
 * The packet has SCALE times five Profiles of 200 samples. They have functions, stacks and
 * attributes of their own, and share some. With the scale, the tables and the number of parts grow,
 * but not the size of the parts. Only bench_pass must be counted (--toggle-collect=bench_pass).
 * Prints the bytes in and out of a pass, and the number of parts.
 */
struct bench {
	struct packet *packet;
	struct limits limits;
	size_t out;
	uint32_t parts;
};

static uint32_t stack_of(struct profiles *p, uint32_t own, uint32_t i)
{
	uint32_t first = p->indices.count;
	uint32_t frames[] = { own + i % 100, own + i * 7 % 150, 1 + i % 90, 1 + i * 3 % 100, 1 };
	for (size_t j = 0; j < sizeof frames / sizeof *frames; j++)
		open_list(p, frames[j], OPEN_END);
	return open_stack(p, (struct list){ first, sizeof frames / sizeof *frames });
}

static void add_locations(struct profiles *p, uint32_t scale, uint32_t count)
{
	char name[64];
	for (uint32_t i = 0; i < count; i++) {
		snprintf(name, sizeof name, "package%u.function%u", scale, i);
		open_location(p, 0, 0x400000 + p->locations.count, open_function(p, name),
			      (struct list){ 0 });
	}
}

static void add_profiles(struct profiles *p, uint32_t scale)
{
	char text[32];
	uint32_t own = p->locations.count;
	add_locations(p, scale, 150);
	for (uint32_t i = 0; i < 1000; i++) {
		if (i % 200 == 0)
			open_profile(p, "cpu", "ns")->time = 1000 * scale + i;
		snprintf(text, sizeof text, "thread %u of %u", i % 8, scale);
		uint32_t attribute = open_attribute(p, "thread.name", text);
		open_value(p, stack_of(p, own, i), open_list(p, attribute, OPEN_END), i * 1000);
	}
}

static struct packet *make(uint32_t scale)
{
	struct profiles p = { 0 };
	struct error err;
	struct collect_added added;
	struct collect *c = collect_new(
		&(struct collect_limits){ .max_bytes = 256 << 20, .hard_bytes = 256 << 20 });
	open_begin(&p, NULL);
	p.table_bytes_max = (size_t)1 << 31;
	p.added.max = (size_t)1 << 30;
	add_locations(&p, 0, 100);
	open_resource(&p, (struct list){ 0 });
	open_scope(&p, "bench");
	for (uint32_t i = 1; i <= scale; i++)
		add_profiles(&p, i);
	if (collect_add(c, &p, false, &added, &err) != COLLECT_ADDED)
		exit(1);
	struct packet *packet = collect_seal(c);
	collect_unref(&c);
	profiles_fini(&p);
	return packet;
}

void bench_pass(struct bench *b);

__attribute__((noinline)) void bench_pass(struct bench *b)
{
	struct parts parts = { 0 };
	struct error err;
	if (!split_packet(b->packet, &b->limits, NULL, &parts, &err))
		exit(1);
	b->parts = parts.count;
	b->out = 0;
	for (uint32_t i = 0; i < parts.count; i++)
		b->out += parts.at[i].packet->otlp.len;
	parts_fini(&parts);
}

int main(int argc, char **argv)
{
	struct bench b = { 0 };
	int passes = 1;
	for (int option; (option = getopt(argc, argv, "n:b:s:p:")) != -1;) {
		uint64_t value = strtoull(optarg, NULL, 10);
		if (option == 'n')
			passes = (int)value;
		else if (option == 'b')
			b.limits.bytes = value;
		else if (option == 's')
			b.limits.samples = value;
		else if (option == 'p')
			b.limits.profiles = value;
		else
			return 2;
	}
	if (optind + 1 != argc)
		return 2;
	b.packet = make((uint32_t)strtoul(argv[optind], NULL, 10));
	for (int i = 0; i < passes; i++)
		bench_pass(&b);
	printf("in %zu out %zu parts %u\n", b.packet->otlp.len, b.out, b.parts);
	packet_unref(&b.packet);
	return 0;
}
