/* SPDX-License-Identifier: Apache-2.0 */
#include "net/h2/private.h"

#include "base/memory.h"
#include "net/places.h"

#include <string.h>

/*
 * A client that speaks HTTP/1 to a server of HTTP/2 gets an answer that it can read, with the port
 * that it probably means. The status is 400: senders do not repeat the request then, as some would
 * after 505. An HTTP port takes both versions, and hands over only what has agreed on HTTP/2: there
 * the port is right.
 */
enum { FIRST_MAX = 512, TARGET_MAX = 256, TEXT_MAX = 1024 };

/* The target of a request line (RFC 9112, section 3), without its query. False: it is not one. */
static bool find_path(struct view line, char path[TARGET_MAX])
{
	const uint8_t *end = line.at + line.len;
	const uint8_t *target = memchr(line.at, ' ', line.len);
	const uint8_t *version =
		target ? memchr(target + 1, ' ', (size_t)(end - target - 1)) : NULL;
	if (!version || end - version < 8 || memcmp(version + 1, "HTTP/1.", 7) != 0)
		return false;
	size_t len = (size_t)(version - target - 1);
	const uint8_t *query = memchr(target + 1, '?', len);
	len = query ? (size_t)(query - target - 1) : len;
	*path = 0;
	if (len < TARGET_MAX) {
		memcpy(path, target + 1, len);
		path[len] = 0;
	}
	return true;
}

static void answer(struct h2_connection *c, const char *path)
{
	struct bytes text, all;
	bytes_init(&text, TEXT_MAX);
	bytes_init(&all, 2 * TEXT_MAX);
	if (c->shard->server->options.endpoint) {
		bytes_add_text(&text, "this port takes gRPC, which is HTTP/2, and the request is "
				      "HTTP/1");
		places_hint(path, &text);
	} else {
		bytes_add_text(&text, "this connection is HTTP/2, as its TLS handshake agreed "
				      "(ALPN h2), and the request is HTTP/1");
	}
	bytes_add_byte(&text, '\n');
	bytes_format(&all,
		     "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n"
		     "Content-Length: %zu\r\nConnection: close\r\n\r\n",
		     text.len);
	bytes_add(&all, text.at, text.len);
	h2_connection_put(c, bytes_view(&all));
	bytes_fini(&text);
	bytes_fini(&all);
}

/* What a server says to what is no HTTP (RFC 9113, section 3.4): SETTINGS without any, and GOAWAY
 * with PROTOCOL_ERROR. A client that began with TLS sees in it that there is none here. */
static bool refuse(struct h2_connection *c)
{
	static const char frames[] = "\0\0\0\4\0\0\0\0\0"
				     "\0\0\10\7\0\0\0\0\0\0\0\0\0\0\0\0\1";
	h2_connection_put(c, (struct view){ (const uint8_t *)frames, sizeof frames - 1 });
	c->fault = H2_PROTOCOL_ERROR;
	return false;
}

/* Methods are upper-case letters (RFC 9110, section 9.1). */
static bool may_be_http1(struct view begin)
{
	return begin.len && begin.at[0] >= 'A' && begin.at[0] <= 'Z';
}

bool h2_http1_receive(struct h2_connection *c, struct view data)
{
	char path[TARGET_MAX];
	struct bytes *line = &c->history;
	c->foreign = true;
	line->max = FIRST_MAX;
	size_t room = FIRST_MAX - line->len;
	bytes_add(line, data.at, data.len < room ? data.len : room);
	const uint8_t *newline = line->len ? memchr(line->at, '\n', line->len) : NULL;
	if (!may_be_http1(bytes_view(line)))
		return refuse(c);
	if (!newline && line->len < FIRST_MAX)
		return true;
	size_t len = newline ? (size_t)(newline - line->at) : line->len;
	if (!find_path((struct view){ line->at, len }, path))
		return refuse(c);
	answer(c, path);
	c->fault = H2_HTTP1;
	return false;
}
