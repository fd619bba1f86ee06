/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deflate_codes_tool: prints the table of net/deflate_codes.c. It is computed from the real
 * profiles beside the checkout (or in PORTCULLIS_CORPUS). Each profile is converted to the form in
 * which it is delivered, and ISA-L counts its deflate symbols. OTLP messages and pprofs have equal
 * weight, and so has each file of a kind, regardless of its size.
 */
#include <isa-l/igzip_lib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "net/compress.h"
#include "net/deflate_codes.h"
#include "profile/collect/collect.h"
#include "profile/otlp/decode_otlp.h"
#include "profile/pprof/decode_pprof.h"
#include "tests/support/corpus.h"

enum { MOST = 64 << 20, LITERALS = ISAL_DEF_LIT_LEN_SYMBOLS, DISTANCES = ISAL_DEF_DIST_SYMBOLS };

/* A symbol that is in no file is assumed to be this frequent in one file, because other fleets may
 * have it. */
#define UNSEEN 1e-4

struct shares {
	double literals[LITERALS], distances[DISTANCES];
};

static struct shares total[DEFLATE_CODES], kind[DEFLATE_CODES];
static unsigned files;

static void add_shares(double *to, const double *from, unsigned count, double weight)
{
	double sum = 0;
	for (unsigned i = 0; i < count; i++)
		sum += from[i];
	for (unsigned i = 0; i < count; i++)
		to[i] += weight * (UNSEEN + (sum > 0 ? from[i] / sum : 0));
}

static void count_symbols(const struct packet *packet, enum deflate_code code, struct shares *of)
{
	size_t text = packet->tables[PACKET_STRINGS], behind = packet->tables[PACKET_STRINGS + 1];
	struct isal_huff_histogram histogram = { 0 };
	uint8_t *at = packet->otlp.at;
	if (code == DEFLATE_WHOLE)
		isal_update_histogram(at, (int)packet->otlp.len, &histogram);
	if (code == DEFLATE_TEXT)
		isal_update_histogram(at + text, (int)(behind - text), &histogram);
	if (code == DEFLATE_RECORDS) {
		isal_update_histogram(at, (int)text, &histogram);
		isal_update_histogram(at + behind, (int)(packet->otlp.len - behind), &histogram);
	}
	for (unsigned i = 0; i < LITERALS; i++)
		of->literals[i] = (double)histogram.lit_len_histogram[i];
	for (unsigned i = 0; i < DISTANCES; i++)
		of->distances[i] = (double)histogram.dist_histogram[i];
}

static void count_packet(const struct packet *packet)
{
	for (unsigned c = 0; c < DEFLATE_CODES; c++) {
		struct shares of;
		count_symbols(packet, c, &of);
		add_shares(kind[c].literals, of.literals, LITERALS, 1);
		add_shares(kind[c].distances, of.distances, DISTANCES, 1);
	}
	files++;
}

/* Files that cannot be decoded (other layouts, JSON) are ignored. */
static void count_profiles(struct profiles *p, bool decoded)
{
	static const struct collect_limits limits = { .max_bytes = MOST, .hard_bytes = MOST };
	struct collect *collect = collect_new(&limits);
	struct collect_added added;
	struct error err;
	if (decoded && collect_add(collect, p, false, &added, &err) == COLLECT_ADDED) {
		struct packet *packet = collect_seal(collect);
		count_packet(packet);
		packet_unref(&packet);
	}
	collect_unref(&collect);
}

static void visit(struct view file, bool pprof)
{
	struct profiles p = { 0 };
	struct bytes body;
	struct error err;
	bytes_init(&body, MOST);
	bool ok = compress_inflate(compress_sniff(file), file, &body, &err) &&
		  profiles_reset(&p, NULL, bytes_view(&body), MOST);
	count_profiles(&p, ok && (pprof ? decode_pprof(&p, p.input, NULL, &err)
					: decode_otlp(&p, &err)));
	profiles_fini(&p);
	bytes_fini(&body);
}

static void visit_otlp(const char *name, struct view file)
{
	(void)name;
	visit(file, false);
}

static void visit_pprof(const char *name, struct view file)
{
	(void)name;
	visit(file, true);
}

static void count_folder(const char *folder, void (*visit_file)(const char *name, struct view file))
{
	files = 0;
	memset(kind, 0, sizeof kind);
	if (!corpus_each(folder, MOST, visit_file) || !files)
		exit(1);
	for (unsigned c = 0; c < DEFLATE_CODES; c++) {
		add_shares(total[c].literals, kind[c].literals, LITERALS, 1);
		add_shares(total[c].distances, kind[c].distances, DISTANCES, 1);
	}
	fprintf(stderr, "%s: %u files\n", folder, files);
}

static void print_weights(const double *shares, unsigned count, const char *end)
{
	double sum = 0;
	for (unsigned i = 0; i < count; i++)
		sum += shares[i];
	for (unsigned i = 0; i < count; i++) {
		double bits = -log2(shares[i] / sum);
		printf("%s%x%s", i % 64 ? "" : "\t\t\"",
		       bits < 0.5  ? 0
		       : bits > 14 ? 14
				   : (unsigned)lround(bits),
		       i == count - 1 ? end
		       : i % 64 == 63 ? "\"\n"
				      : "");
	}
}

int main(void)
{
	count_folder("otlp", visit_otlp);
	count_folder("pprof", visit_pprof);
	for (unsigned c = 0; c < DEFLATE_CODES; c++) {
		print_weights(total[c].literals, LITERALS, "\"\n");
		print_weights(total[c].distances, DISTANCES, "\",\n");
	}
	return 0;
}
