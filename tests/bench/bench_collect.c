/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "otlp_profiles.pb-c.h"
#include "profile/collect/collect.h"
#include "profile/otlp/decode_otlp.h"
#include "profile/otlp/otlp_json.h"
#include "tests/bench/policy.h"

/*
 * Measures the cost of decoding, collecting and sealing OTLP messages, for callgrind:
 *
 *	bench_collect [-p | -a] [-n passes] [-b batch] FILE...
 *
 * A pass reads each file once. Requests may be of any generation, and JSON, which begins with a
 * brace. -b seals after N requests. -a applies the policy in between. -p unpacks and packs with
 * protobuf-c instead. Everything is warmed up before. Only bench_pass must
 * be counted (--toggle-collect=bench_pass). Prints the bytes in and out of a pass, and its heap
 * allocations.
 */
#define TABLES_MAX ((size_t)1 << 30)

static uint64_t allocations;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/* Counts the calls of the C library's allocator, by our code and by protobuf-c. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

void *malloc(size_t size)
{
	allocations++;
	return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	allocations++;
	return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
	allocations++;
	return __libc_realloc(old, size);
}
#endif

struct bench {
	struct bytes *files;
	int file_count, batch;
	bool protobuf, applies;
	struct policy policy;
	struct profiles p;
	struct collect *c;
	struct bytes translated;
	size_t in, out;
	int collected; /* since the last seal */
};

__attribute__((noreturn)) static void die(const char *what, const char *why)
{
	fprintf(stderr, "bench_collect: %s: %s\n", what, why);
	exit(1);
}

static void read_file(const char *path, struct bytes *out)
{
	FILE *file = fopen(path, "rb");
	if (!file)
		die(path, "cannot be opened");
	bytes_init(out, PROFILES_INPUT_MAX);
	for (size_t n = 1; n; out->len += n) {
		if (!bytes_reserve(out, 65536))
			die(path, "too large");
		n = fread(out->at + out->len, 1, 65536, file);
	}
	fclose(file);
}

static void seal(struct bench *b)
{
	if (collect_empty(b->c))
		return;
	struct packet *packet = collect_seal(b->c);
	b->out += packet->otlp.len;
	packet_unref(&packet);
	b->collected = 0;
}

static bool decode_json(struct bench *b, struct view file, struct error *err)
{
	struct otlp_layout layout = { .known = OTLP_CURRENT };
	enum otlp_generation generation;
	b->translated.len = 0;
	return otlp_json_translate(file, &b->translated, &generation, err) &&
	       profiles_reset(&b->p, NULL, bytes_view(&b->translated), TABLES_MAX) &&
	       decode_otlp_any(&b->p, &layout, err);
}

/* As the otlp receiver does it. */
static bool decode(struct bench *b, struct view file, struct error *err)
{
	struct otlp_layout layout = { 0 };
	if (file.len && file.at[0] == '{')
		return decode_json(b, file, err);
	if (!profiles_reset(&b->p, NULL, file, TABLES_MAX))
		return false;
	if (decode_otlp_any(&b->p, &layout, err) || err->kind)
		return !err->kind;
	enum otlp_generation generation = (enum otlp_generation)__builtin_ctz(layout.candidates);
	b->translated.len = 0;
	layout.known = OTLP_CURRENT;
	return bridge_otlp(generation, file, &b->translated, err) &&
	       profiles_reset(&b->p, NULL, bytes_view(&b->translated), TABLES_MAX) &&
	       decode_otlp_any(&b->p, &layout, err);
}

static void collect_file(struct bench *b, const struct bytes *file)
{
	struct error err = { 0 };
	struct collect_added added;
	if (!decode(b, bytes_view(file), &err) ||
	    (b->applies && !policy_apply(&b->policy, &b->p, &err)) ||
	    collect_add(b->c, &b->p, false, &added, &err) != COLLECT_ADDED)
		die("a file", err.text);
	if (++b->collected >= b->batch)
		seal(b);
}

static void convert_file(struct bench *b, const struct bytes *file)
{
	Opentelemetry__Proto__Profiles__V1development__ProfilesData *data =
		opentelemetry__proto__profiles__v1development__profiles_data__unpack(NULL,
										     file->len,
										     file->at);
	if (!data)
		die("a file", "protobuf-c cannot decode it");
	size_t len =
		opentelemetry__proto__profiles__v1development__profiles_data__get_packed_size(data);
	uint8_t *out = memory_resize(NULL, len);
	b->out += opentelemetry__proto__profiles__v1development__profiles_data__pack(data, out);
	memory_free(out);
	opentelemetry__proto__profiles__v1development__profiles_data__free_unpacked(data, NULL);
}

static void pass(struct bench *b)
{
	b->in = b->out = 0;
	for (int i = 0; i < b->file_count; i++) {
		b->in += b->files[i].len;
		if (b->protobuf)
			convert_file(b, &b->files[i]);
		else
			collect_file(b, &b->files[i]);
	}
	if (!b->protobuf)
		seal(b);
}

void bench_pass(struct bench *b);

__attribute__((noinline)) void bench_pass(struct bench *b)
{
	pass(b);
}

int main(int argc, char **argv)
{
	struct bench b = { .batch = 1 };
	struct error err;
	int passes = 1;
	for (int option; (option = getopt(argc, argv, "pan:b:")) != -1;) {
		if (option == 'p')
			b.protobuf = true;
		else if (option == 'a')
			b.applies = true;
		else if (option == 'n')
			passes = (int)strtol(optarg, NULL, 10);
		else if (option == 'b')
			b.batch = (int)strtol(optarg, NULL, 10);
		else
			return 2;
	}
	if (b.applies && !policy_open(&b.policy, &err))
		die("policy", err.text);
	b.file_count = argc - optind;
	b.files = memory_array((size_t)b.file_count, sizeof *b.files);
	for (int i = 0; i < b.file_count; i++)
		read_file(argv[optind + i], &b.files[i]);
	bytes_init(&b.translated, TABLES_MAX);
	b.c = collect_new(
		&(struct collect_limits){ .max_bytes = 256 << 20, .hard_bytes = 256 << 20 });
	pass(&b);
	pass(&b);
	uint64_t before = allocations;
	for (int i = 0; i < passes; i++)
		bench_pass(&b);
	printf("files %d in %zu out %zu allocations %g\n", b.file_count, b.in, b.out,
	       (double)(allocations - before) / passes);
	collect_unref(&b.c);
	profiles_fini(&b.p);
	bytes_fini(&b.translated);
	for (int i = 0; i < b.file_count; i++)
		bytes_fini(&b.files[i]);
	memory_free(b.files);
	return 0;
}
