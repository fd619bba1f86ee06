/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof_pipe < body: inflates it, takes it through decode_pprof and encode_pprof, and writes length-prefixed
 * (4 bytes, big-endian) blocks: the inflated body, then each pprof that came out. Exit 1: refused, with
 * the reason on stderr. For tests/profile/test_pprof_roundtrip.py.
 */
#include <stdio.h>

#include "net/compress.h"
#include "profile/decode_pprof.h"
#include "profile/encode_pprof.h"

enum { MOST = 256 << 20 };

static bool put(struct view v)
{
	uint8_t head[4] = { (uint8_t)(v.len >> 24), (uint8_t)(v.len >> 16), (uint8_t)(v.len >> 8),
			    (uint8_t)v.len };
	return fwrite(head, 1, 4, stdout) == 4 && fwrite(v.at, 1, v.len, stdout) == v.len;
}

static bool put_pprof(const struct pprof_out *out, void *context)
{
	(void)context;
	return put(out->bytes);
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

static bool run(struct bytes *in, struct bytes *body, struct profiles *p, struct error *err)
{
	if (!read_all(in) || !bytes_reserve(body, 1) ||
	    !compress_inflate(compress_sniff(bytes_view(in)), bytes_view(in), body, err))
		return false;
	return put(bytes_view(body)) && profiles_reset(p, NULL, bytes_view(body), MOST) &&
	       decode_pprof(p, NULL, err) && encode_pprof(p, put_pprof, NULL, err);
}

int main(void)
{
	struct bytes in, body;
	struct profiles p = { 0 };
	struct error err = { 0 };
	bytes_init(&in, MOST);
	bytes_init(&body, MOST);
	bool ok = run(&in, &body, &p, &err);
	if (!ok)
		fprintf(stderr, "%s\n", err.text);
	profiles_fini(&p);
	bytes_fini(&in);
	bytes_fini(&body);
	return !ok;
}
