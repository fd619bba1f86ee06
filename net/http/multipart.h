/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_HTTP_MULTIPART_H
#define NET_HTTP_MULTIPART_H

#include "base/bytes.h"
#include "base/error.h"

/*
 * multipart/form-data (RFC 7578, RFC 2046 §5.1) over a whole body in memory, strict: CRLF line
 * ends, a closing delimiter, at most 32 parts with 4 KiB of headers each. Nothing is copied: the
 * views point into the body and the content type.
 *
 *	struct multipart m;
 *	struct multipart_part part;
 *	if (!multipart_begin(&m, content_type, body, err)) ...
 *	while ((more = multipart_next(&m, &part, err)) == MULTIPART_PART) ...
 */
struct multipart {
	struct view body;
	char delimiter[4 + 70 + 1]; /* CRLF "--" boundary */
	size_t delimiter_len;
	size_t at; /* after the last delimiter */
	unsigned parts;
};

struct multipart_part {
	struct view name, content;
	bool is_file; /* has a file name */
};

enum multipart_more { MULTIPART_END, MULTIPART_PART, MULTIPART_ERROR };

/* Is this media type multipart/form-data, regardless of its parameters? */
bool multipart_is(const char *content_type);
bool multipart_begin(struct multipart *m, const char *content_type, struct view body,
		     struct error *err);
enum multipart_more multipart_next(struct multipart *m, struct multipart_part *part,
				   struct error *err);

#endif
