/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes the header block on stdin, as the first of its connection. Prints a line "name=value" for
 * each field. */
#include <nghttp2/nghttp2.h>
#include <stdio.h>

int main(void)
{
	static uint8_t block[65536];
	nghttp2_hd_inflater *inflater;
	size_t len = fread(block, 1, sizeof block, stdin);
	const uint8_t *at = block, *end = block + len;
	if (nghttp2_hd_inflate_new(&inflater) != 0)
		return 1;
	while (at < end) {
		nghttp2_nv field;
		int flags = 0;
		ssize_t used =
			nghttp2_hd_inflate_hd2(inflater, &field, &flags, at, (size_t)(end - at), 1);
		if (used < 0)
			return 1;
		at += used;
		if (flags & NGHTTP2_HD_INFLATE_EMIT)
			printf("%.*s=%.*s\n", (int)field.namelen, field.name, (int)field.valuelen,
			       field.value);
		if (flags & NGHTTP2_HD_INFLATE_FINAL)
			break;
	}
	nghttp2_hd_inflate_del(inflater);
	return 0;
}
