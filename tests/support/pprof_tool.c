/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof_tool open|sealed [FIRST] < body: pprof -> OTLP -> pprof, through open tables only, or
 * through collect and a sealed packet as in the program. FIRST is a file with a plain pprof that is
 * decoded into the same tables before the body. Writes blocks, each preceded by its length (4
 * bytes, big-endian): the decompressed body, the packet (empty if open), and each resulting pprof.
 * Exit 1: refused, with the reason on stderr.
 */
#include <stdio.h>
#include <string.h>

#include "net/compress.h"
#include "profile/collect/collect.h"
#include "profile/otlp/decode_otlp.h"
#include "profile/pprof/decode_pprof.h"
#include "profile/pprof/encode_pprof.h"

enum { MOST = 256 << 20 };

static bool put(struct view v)
{
	uint8_t head[4] = { (uint8_t)(v.len >> 24), (uint8_t)(v.len >> 16), (uint8_t)(v.len >> 8),
			    (uint8_t)v.len };
	return fwrite(head, 1, 4, stdout) == 4 &&
	       (!v.len || fwrite(v.at, 1, v.len, stdout) == v.len);
}

static bool put_pprof(const struct pprof_out *out, void *context)
{
	(void)context;
	return put(out->bytes);
}

static bool read_all(FILE *file, struct bytes *in)
{
	size_t got = 1;
	while (got && bytes_reserve(in, 65536)) {
		got = fread(in->at + in->len, 1, 65536, file);
		in->len += got;
	}
	return !got;
}

/* Appends the first document, if there is one, after the body. */
static bool read_first(const char *path, struct bytes *body)
{
	FILE *file = path ? fopen(path, "rb") : NULL;
	bool ok = !path || (file && read_all(file, body));
	if (file)
		fclose(file);
	return ok;
}

static bool decode(struct profiles *p, struct view body, size_t len, struct error *err)
{
	struct view first = { body.at + len, body.len - len };
	return profiles_reset(p, NULL, body, MOST) &&
	       (!first.len || decode_pprof(p, first, NULL, err)) &&
	       decode_pprof(p, (struct view){ body.at, len }, NULL, err);
}

static bool encode_sealed(const struct profiles *p, struct error *err)
{
	static const struct collect_limits limits = { .max_bytes = MOST, .hard_bytes = MOST };
	struct collect *collect = collect_new(&limits);
	struct collect_added added;
	struct profiles again = { 0 };
	struct packet *packet = NULL;
	bool ok = collect_add(collect, p, false, &added, err) == COLLECT_ADDED;
	if (ok) {
		packet = collect_seal(collect);
		ok = put(bytes_view(&packet->otlp)) &&
		     profiles_reset(&again, NULL, bytes_view(&packet->otlp), MOST) &&
		     decode_otlp(&again, err) && encode_pprof(&again, false, put_pprof, NULL, err);
	}
	profiles_fini(&again);
	packet_unref(&packet);
	collect_unref(&collect);
	return ok;
}

static bool run(bool sealed, const char *first, struct bytes *in, struct bytes *body,
		struct profiles *p, struct error *err)
{
	if (!read_all(stdin, in) || !bytes_reserve(body, 1) ||
	    !compress_inflate(compress_sniff(bytes_view(in)), bytes_view(in), body, err) ||
	    !put(bytes_view(body)))
		return false;
	size_t len = body->len;
	if (!read_first(first, body) || !bytes_reserve(body, 1) ||
	    !decode(p, bytes_view(body), len, err))
		return false;
	return sealed ? encode_sealed(p, err)
		      : put((struct view){ NULL, 0 }) &&
				encode_pprof(p, false, put_pprof, NULL, err);
}

int main(int argc, char **argv)
{
	struct bytes in, body;
	struct profiles p = { 0 };
	struct error err = { 0 };
	bool sealed = argc > 1 && strcmp(argv[1], "sealed") == 0;
	bytes_init(&in, MOST);
	bytes_init(&body, MOST);
	bool ok = run(sealed, argc > 2 ? argv[2] : NULL, &in, &body, &p, &err);
	if (!ok)
		fprintf(stderr, "%s\n", err.text);
	profiles_fini(&p);
	bytes_fini(&in);
	bytes_fini(&body);
	return !ok;
}
