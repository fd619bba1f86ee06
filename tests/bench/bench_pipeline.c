/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "net/compress.h"
#include "profile/collect/collect.h"
#include "profile/otlp/decode_otlp.h"
#include "tests/bench/policy.h"

/*
 * Measures the cost of a whole pipeline without transport, for callgrind: gzip in, decode,
 * allow-list, PII, collect, a batch of ten, zstd level 1 out.
 *
 *	bench_pipeline [-n passes] [-b batch] FILE...
 *
 * Prints the bytes in (decompressed) and out of a pass. Only bench_pass must be counted
 * (--toggle-collect=bench_pass).
 */
#define BYTES_MAX ((size_t)1 << 30)

struct bench {
	struct policy policy;
	struct bytes *files; /* gzip */
	int file_count, batch, collected;
	struct profiles p;
	struct collect *c;
	struct bytes inflated, compressed;
	size_t in, out;
};

__attribute__((noreturn)) static void die(const char *what, const char *why)
{
	fprintf(stderr, "bench_pipeline: %s: %s\n", what, why);
	exit(1);
}

static void read_zipped(const char *path, struct bytes *out)
{
	struct bytes raw;
	struct error err;
	FILE *file = fopen(path, "rb");
	if (!file)
		die(path, "cannot be opened");
	bytes_init(&raw, BYTES_MAX);
	for (size_t n = 1; n; raw.len += n) {
		if (!bytes_reserve(&raw, 65536))
			die(path, "too large");
		n = fread(raw.at + raw.len, 1, 65536, file);
	}
	fclose(file);
	bytes_init(out, BYTES_MAX);
	if (!compress_deflate(CODING_GZIP, 6, bytes_view(&raw), out, &err))
		die(path, err.text);
	bytes_fini(&raw);
}

static void seal(struct bench *b)
{
	struct error err;
	struct packet *packet = collect_seal(b->c);
	b->compressed.len = 0;
	if (!compress_deflate(CODING_ZSTD, 1, bytes_view(&packet->otlp), &b->compressed, &err))
		die("zstd", err.text);
	b->out += b->compressed.len;
	packet_unref(&packet);
	b->collected = 0;
}

static void run_file(struct bench *b, const struct bytes *file)
{
	struct error err = { 0 };
	struct collect_added added;
	b->inflated.len = 0;
	if (!compress_inflate(CODING_GZIP, bytes_view(file), &b->inflated, &err))
		die("gzip", err.text);
	b->in += b->inflated.len;
	if (!profiles_reset(&b->p, NULL, bytes_view(&b->inflated), BYTES_MAX) ||
	    !decode_otlp(&b->p, &err))
		die("decode", err.text);
	if (!policy_apply(&b->policy, &b->p, &err))
		die("policy", err.text);
	if (collect_add(b->c, &b->p, false, &added, &err) != COLLECT_ADDED)
		die("collect", err.text);
	if (++b->collected >= b->batch)
		seal(b);
}

static void pass(struct bench *b)
{
	b->in = b->out = 0;
	for (int i = 0; i < b->file_count; i++)
		run_file(b, &b->files[i]);
	if (!collect_empty(b->c))
		seal(b);
}

void bench_pass(struct bench *b);

__attribute__((noinline)) void bench_pass(struct bench *b)
{
	pass(b);
}

int main(int argc, char **argv)
{
	struct bench b = { .batch = 10 };
	struct error err;
	int passes = 1;
	for (int option; (option = getopt(argc, argv, "n:b:")) != -1;) {
		if (option == 'n')
			passes = (int)strtol(optarg, NULL, 10);
		else if (option == 'b')
			b.batch = (int)strtol(optarg, NULL, 10);
		else
			return 2;
	}
	if (!policy_open(&b.policy, &err))
		die("policy", err.text);
	b.file_count = argc - optind;
	b.files = memory_array((size_t)b.file_count, sizeof *b.files);
	for (int i = 0; i < b.file_count; i++)
		read_zipped(argv[optind + i], &b.files[i]);
	bytes_init(&b.inflated, BYTES_MAX);
	bytes_init(&b.compressed, BYTES_MAX);
	b.c = collect_new(
		&(struct collect_limits){ .max_bytes = BYTES_MAX, .hard_bytes = BYTES_MAX });
	pass(&b); /* warms caches up */
	pass(&b);
	for (int i = 0; i < passes; i++)
		bench_pass(&b);
	printf("files %d in %zu out %zu\n", b.file_count, b.in, b.out);
	return 0;
}
