/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_BENCH_PEERS_HTTP1_H
#define TESTS_BENCH_PEERS_HTTP1_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* HTTP/1.1 of the load generator: one request at a time on a connection that stays open. */
enum { HTTP1_REPLY_MAX = 4096, HTTP1_HEAD_MAX = 512 };

struct http1_reply {
	char text[HTTP1_REPLY_MAX];
	size_t len;
};

/* Returns the length of the head of a request. */
static inline size_t http1_head(char *out, const char *path, const char *media, bool zipped,
				size_t body_len)
{
	return (size_t)snprintf(out, HTTP1_HEAD_MAX,
				"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: %s\r\n%s"
				"Content-Length: %zu\r\n\r\n",
				path, media, zipped ? "Content-Encoding: gzip\r\n" : "", body_len);
}

static inline size_t http1_body_len(const char *head, const char *end)
{
	static const char name[] = "content-length:";
	for (const char *at = head; at && at < end; at = strchr(at, '\n'), at += at != NULL)
		if (!strncasecmp(at, name, sizeof name - 1))
			return strtoul(at + sizeof name - 1, NULL, 10);
	return 0;
}

/* Adds bytes of a reply. Returns its status when it is complete, 0 before, -1 if it is none. */
static inline int http1_take(struct http1_reply *r, const uint8_t *data, size_t len)
{
	if (len > sizeof r->text - 1 - r->len)
		return -1;
	memcpy(r->text + r->len, data, len);
	r->len += len;
	r->text[r->len] = '\0';
	const char *end = strstr(r->text, "\r\n\r\n");
	if (!end || r->len < (size_t)(end + 4 - r->text) + http1_body_len(r->text, end))
		return 0;
	r->len = 0;
	return strncmp(r->text, "HTTP/1.1 ", 9) ? -1 : (int)strtol(r->text + 9, NULL, 10);
}

#endif
