/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write_raw_tool [-u] [-N] [-n name] [-t arrival] [-l key]... < OTLP: converts a request as the
 * parca exporter does, through open tables, collect and a sealed packet. Writes the request to
 * stdout and the losses to stderr ("reason count" lines). -u: label names are not changed; -N:
 * addresses are normalized. Exit 1: refused, with the reason on stderr.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "profile/collect/collect.h"
#include "profile/otlp/decode_otlp.h"
#include "profile/stores/write_raw.h"

enum { MOST = 256 << 20, LIFTS_MAX = 16 };

struct run {
	struct write_raw_rules rules;
	const char *lift[LIFTS_MAX + 1];
	int lifts;
	bool normalized;
};

static bool read_options(struct run *r, int argc, char **argv)
{
	r->rules.lift = r->lift;
	for (int option; (option = getopt(argc, argv, "uNn:t:l:")) != -1;) {
		if (option == 'u')
			r->rules.series.utf8 = true;
		else if (option == 'N')
			r->normalized = true;
		else if (option == 'n')
			r->rules.name = optarg;
		else if (option == 't')
			r->rules.arrival = strtoull(optarg, NULL, 10);
		else if (option == 'l' && r->lifts < LIFTS_MAX)
			r->lift[r->lifts++] = optarg;
		else
			return false;
	}
	return true;
}

static bool read_all(struct bytes *in)
{
	size_t got = 1;
	while (got && bytes_reserve(in, 65536)) {
		got = fread(in->at + in->len, 1, 65536, stdin);
		in->len += got;
	}
	return !got;
}

static void print_lost(const uint64_t lost[WRITE_RAW_LOSSES])
{
	for (int i = 0; i < WRITE_RAW_LOSSES; i++)
		if (lost[i])
			fprintf(stderr,
				"%s "
				"%llu\n",
				write_raw_loss(i), (unsigned long long)lost[i]);
}

static bool run(struct run *r, const struct bytes *in, struct bytes *out, struct error *err)
{
	static const struct collect_limits limits = { .max_bytes = MOST, .hard_bytes = MOST };
	struct collect *collect = collect_new(&limits);
	struct collect_added added;
	struct profiles p = { 0 };
	struct packet *packet = NULL;
	uint64_t lost[WRITE_RAW_LOSSES] = { 0 };
	bool ok = profiles_reset(&p, NULL, bytes_view(in), MOST) && decode_otlp(&p, err) &&
		  write_raw_prepare(&p, &r->rules, lost, err);
	if (ok && collect_add(collect, &p, false, &added, err) == COLLECT_ADDED) {
		packet = collect_seal(collect);
		ok = write_raw_encode(packet, r->normalized, out, err);
	}
	print_lost(lost);
	packet_unref(&packet);
	profiles_fini(&p);
	collect_unref(&collect);
	return ok;
}

int main(int argc, char **argv)
{
	struct run r = { .normalized = false };
	struct bytes in, out;
	struct error err = { 0 };
	bytes_init(&in, MOST);
	bytes_init(&out, MOST);
	bool ok = read_options(&r, argc, argv) && read_all(&in) && run(&r, &in, &out, &err) &&
		  (!out.len || fwrite(out.at, 1, out.len, stdout) == out.len);
	if (!ok)
		fprintf(stderr, "%s\n", err.text);
	bytes_fini(&in);
	bytes_fini(&out);
	return !ok;
}
