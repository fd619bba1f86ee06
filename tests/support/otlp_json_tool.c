/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otlp_json_tool [own] < JSON: translates a request as the otlp receiver does, and writes the
 * protobuf, and the generation to stderr. own: in the numbers of that generation. Exit 1: refused,
 * with the reason on stderr.
 */
#include <stdio.h>
#include <string.h>

#include "profile/otlp/otlp_json.h"
#include "profile/otlp/otlp_json_tables.h"

enum { MOST = 256 << 20 };

static bool read_all(struct bytes *in)
{
	size_t got = 1;
	while (got && bytes_reserve(in, 65536)) {
		got = fread(in->at + in->len, 1, 65536, stdin);
		in->len += got;
	}
	return !got;
}

int main(int argc, char **argv)
{
	bool own = argc == 2 && strcmp(argv[1], "own") == 0;
	struct bytes in, out;
	struct error err = { 0 };
	bytes_init(&in, MOST);
	bytes_init(&out, MOST);
	enum otlp_generation generation = OTLP_UNKNOWN;
	bool ok =
		read_all(&in) && (own ? otlp_json_own : otlp_json_translate)(bytes_view(&in), &out,
									     &generation, &err);
	fprintf(stderr, "%s\n", ok ? otlp_generation_names[generation] : err.text);
	if (ok && out.len)
		ok = fwrite(out.at, 1, out.len, stdout) == out.len;
	bytes_fini(&in);
	bytes_fini(&out);
	return !ok;
}
