/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "profile/collect/collect.h"
#include "profile/otlp/decode_otlp.h"
#include "profile/otlp/encode_json.h"

/*
 *	collect_tool [-j] [-d key] [-b batch] OUT FILE...
 *
 * Takes OTLP messages through decode and collect, for the oracle of test_collect_oracle.py: writes
 * files OUT.0, OUT.1 and so on, each a packet of so many requests, and prints what became of each
 * FILE. -d removes the attributes of that key from samples, locations and resources, as a policy
 * does. -j writes each packet as OTLP/JSON instead, for test_encode_json.py.
 */
#define TABLES_MAX ((size_t)1 << 30)

struct run {
	const char *out, *denied;
	int batch, packets, collected;
	bool json;
	struct profiles p;
	struct collect *c;
};

static void deny(struct profiles *p, const char *key, struct list *list, uint8_t *changed)
{
	uint32_t *indices = p->indices.at + list->first, kept = 0;
	for (uint32_t i = 0; i < list->count; i++)
		if (!string_is(p, p->attributes.at[indices[i]].key, key))
			indices[kept++] = indices[i];
	*changed |= kept < list->count;
	list->count = kept;
}

static void deny_everywhere(struct profiles *p, const char *key)
{
	for (uint32_t i = 0; i < p->resources.count; i++)
		deny(p, key, &p->resources.at[i].attributes, &p->resources.at[i].changed);
	for (uint32_t i = 0; i < p->locations.count; i++)
		deny(p, key, &p->locations.at[i].attributes, &p->locations.at[i].changed);
	for (uint32_t i = 0; i < p->samples.count; i++)
		deny(p, key, &p->samples.at[i].attributes, &p->samples.at[i].changed);
}

static bool read_file(const char *path, struct bytes *out)
{
	FILE *file = fopen(path, "rb");
	if (!file)
		return false;
	bytes_init(out, PROFILES_INPUT_MAX);
	for (size_t n = 1; n; out->len += n) {
		if (!bytes_reserve(out, 65536))
			break;
		n = fread(out->at + out->len, 1, 65536, file);
	}
	fclose(file);
	return true;
}

static void seal(struct run *r)
{
	if (collect_empty(r->c))
		return;
	char path[4096];
	size_t bytes = collect_bytes(r->c);
	struct packet *packet = collect_seal(r->c);
	snprintf(path, sizeof path, "%s.%d", r->out, r->packets++);
	FILE *file = fopen(path, "wb");
	struct bytes json;
	struct error err;
	bytes_init(&json, TABLES_MAX);
	if (!file || packet->otlp.len != bytes || (r->json && !encode_json(packet, &json, &err)))
		exit(1);
	const struct bytes *out = r->json ? &json : &packet->otlp;
	if (fwrite(out->at, 1, out->len, file) != out->len)
		exit(1);
	fclose(file);
	bytes_fini(&json);
	packet_unref(&packet);
	r->collected = 0;
}

static const char *take(struct run *r, const struct bytes *file, struct error *err)
{
	struct collect_added added;
	if (!profiles_reset(&r->p, NULL, bytes_view(file), TABLES_MAX) || !decode_otlp(&r->p, err))
		return "refused";
	if (r->denied)
		deny_everywhere(&r->p, r->denied);
	switch (collect_add(r->c, &r->p, false, &added, err)) {
	case COLLECT_ADDED:
		if (++r->collected >= r->batch)
			seal(r);
		return "added";
	case COLLECT_NOTHING:
		return "nothing";
	default:
		return "failed";
	}
}

int main(int argc, char **argv)
{
	struct run r = { .batch = 1 };
	for (int option; (option = getopt(argc, argv, "jd:b:")) != -1;) {
		if (option == 'j')
			r.json = true;
		else if (option == 'd')
			r.denied = optarg;
		else if (option == 'b')
			r.batch = (int)strtol(optarg, NULL, 10);
		else
			return 2;
	}
	if (optind >= argc)
		return 2;
	r.out = argv[optind];
	r.c = collect_new(
		&(struct collect_limits){ .max_bytes = 256 << 20, .hard_bytes = 256 << 20 });
	for (int i = optind + 1; i < argc; i++) {
		struct bytes file = { 0 };
		struct error err = { 0 };
		if (!read_file(argv[i], &file))
			return 1;
		const char *what = take(&r, &file, &err);
		printf("%s: %s %s\n", argv[i], what, err.text);
		bytes_fini(&file);
	}
	seal(&r);
	collect_unref(&r.c);
	profiles_fini(&r.p);
	return 0;
}
