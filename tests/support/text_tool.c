/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text_tool FORMAT APPLICATION RATE FROM UNTIL [KEY VALUE]... < document: a format of profile/text
 * -> the OTLP of a sealed packet on stdout; empty for a document without samples. The metric is the
 * attribute __name__. Exit 1: rejected, the reason on stderr.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/collect/collect.h"
#include "profile/request.h"
#include "profile/text/text.h"

enum { MOST = 256 << 20, ATTRIBUTES = 16 };

static const struct format {
	const char *name;
	bool (*decode)(struct profiles *p, struct view document, const struct text_source *source,
		       struct error *err);
} formats[] = {
	{ "folded", decode_folded }, { "lines", decode_lines },           { "trie", decode_trie },
	{ "tree", decode_tree },     { "speedscope", decode_speedscope },
};

static const struct format *find_format(const char *name)
{
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
		if (!strcmp(name, formats[i].name))
			return &formats[i];
	abort();
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

static bool put_sealed(const struct profiles *p, struct error *err)
{
	static const struct collect_limits limits = { .max_bytes = MOST, .hard_bytes = MOST };
	struct collect *collect = collect_new(&limits);
	struct collect_added added;
	bool ok = collect_add(collect, p, false, &added, err) == COLLECT_ADDED;
	struct packet *packet = ok ? collect_seal(collect) : NULL;
	if (packet)
		ok = fwrite(packet->otlp.at, 1, packet->otlp.len, stdout) == packet->otlp.len;
	packet_unref(&packet);
	collect_unref(&collect);
	return ok;
}

static bool run(const char *format, const struct text_source *source, struct profiles *p,
		struct bytes *in, struct error *err)
{
	size_t cap = TEXT_TABLES_FACTOR * in->len + 65536;
	return profiles_reset(p, NULL, bytes_view(in), cap) &&
	       find_format(format)->decode(p, p->input, source, err) &&
	       (!p->samples.count || put_sealed(p, err));
}

int main(int argc, char **argv)
{
	struct profiles p = { 0 };
	struct error err = { 0 };
	struct metadatum attributes[ATTRIBUTES] = { 0 };
	struct bytes in;
	if (argc < 6 || argc > 6 + 2 * (ATTRIBUTES - 1))
		abort();
	for (int i = 0; 6 + 2 * i + 1 < argc; i++)
		attributes[i] = (struct metadatum){ argv[6 + 2 * i], argv[7 + 2 * i] };
	const struct text_source source = {
		.kind = text_kind_of(view_of(argv[2]), NULL),
		.sample_rate = (uint32_t)strtoul(argv[3], NULL, 10),
		.from = strtoull(argv[4], NULL, 10),
		.until = strtoull(argv[5], NULL, 10),
		.attributes = attributes,
		.metric_key = "__name__",
	};
	bytes_init(&in, MOST);
	bool ok = read_all(&in) && source.kind && run(argv[1], &source, &p, &in, &err);
	if (!ok)
		fprintf(stderr, "%s\n", err.text);
	profiles_fini(&p);
	bytes_fini(&in);
	return !ok;
}
