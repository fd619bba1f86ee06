/* SPDX-License-Identifier: Apache-2.0 */
#include "net/compress.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* The first byte selects the coding; the rest is the body. The output never exceeds the limit. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const enum coding codings[] = { CODING_GZIP,   CODING_ZLIB,          CODING_ZSTD,
					       CODING_SNAPPY, CODING_SNAPPY_FRAMED, CODING_LZ4 };
	struct bytes out;
	struct error err;
	if (!len)
		return 0;
	bytes_init(&out, 100000);
	compress_inflate(codings[data[0] % (sizeof codings / sizeof *codings)],
			 (struct view){ data + 1, len - 1 }, &out, &err);
	if (out.len > out.max || out.room > out.max)
		abort();
	bytes_fini(&out);
	return 0;
}
