/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "net/http/http_internal.h"

static struct http_request *request_of(struct http_exchange *x)
{
	return (struct http_request *)x;
}

/* The stage is decided under the mutex: after the unlock, the request belongs to the server's
 * thread. */
static void reply_later(struct http_exchange *x, const struct http_reply *reply)
{
	struct http_server *server = x->server;
	struct http_request *r = request_of(x);
	pthread_mutex_lock(&server->mutex);
	http_exchange_fill(x, reply);
	bool last = x->stage == HTTP_STAGE_LOST && !r->connection;
	if (r->suspended)
		http_request_resume(r);
	pthread_mutex_unlock(&server->mutex);
	if (last)
		http_request_free(r);
}

static const struct http_carrier carrier = { sizeof(struct http_request), reply_later };

struct http_request *http_request_new(struct http_server *server,
				      struct http_connection *connection, const char *target)
{
	struct http_request *r = memory_new(sizeof *r);
	r->connection = connection;
	http_exchange_init(&r->x, server, &carrier, target);
	r->x.thread = connection->loop->thread;
	return r;
}

void http_request_free(struct http_request *r)
{
	http_exchange_fini(&r->x);
	memory_free(r);
}

void http_request_suspend(struct http_request *r)
{
	struct http_server *server = r->x.server;
	r->suspended = true;
	r->previous = NULL;
	r->next = server->suspended;
	if (r->next)
		r->next->previous = r;
	server->suspended = r;
	r->connection->suspend(r->connection);
}

void http_request_resume(struct http_request *r)
{
	r->suspended = false;
	*(r->previous ? &r->previous->next : &r->x.server->suspended) = r->next;
	if (r->next)
		r->next->previous = r->previous;
	r->connection->resume(r->connection);
}

static void print_header(void *out, const char *name, const char *value)
{
	bytes_format(out, "%s: %s\r\n", name, value);
}

void http_request_print(struct http_request *r, struct bytes *out)
{
	const struct http_answer *a = &r->x.answer;
	bytes_format(out, "HTTP/1.1 %d \r\nConnection: close\r\nContent-Length: %zu\r\n", a->status,
		     a->body_len);
	http_exchange_each_header(&r->x, print_header, out);
	bytes_add_text(out, "\r\n");
	bytes_add(out, a->body, a->body_len);
}
