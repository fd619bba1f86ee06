/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdio.h>
#include <strings.h>

#include "base/clock.h"
#include "base/memory.h"
#include "net/http/http_internal.h"

static const struct fields_limits query_limits = {
	.count = 1000, .name = HTTP_TARGET_MAX, .value = HTTP_TARGET_MAX, .total = HTTP_TARGET_MAX
};

/* http://host/path is the form for a proxy; only the path counts. */
static const char *path_of(const char *target)
{
	size_t scheme = !strncasecmp(target, "http://", 7)    ? 7
			: !strncasecmp(target, "https://", 8) ? 8
							      : 0;
	if (!scheme)
		return target;
	const char *path = strchr(target + scheme, '/');
	return path ? path : "/";
}

struct http_exchange *http_exchange_new(struct http_server *server,
					struct http_connection *connection, const char *target)
{
	struct http_exchange *x = memory_new(sizeof *x);
	atomic_fetch_add(&server->holds, 1);
	x->server = server;
	x->connection = connection;
	x->target_too_long = strlen(target) > HTTP_TARGET_MAX;
	if (!x->target_too_long) {
		x->target = memory_text(path_of(target));
		x->query_text = strchr(x->target, '?');
	}
	if (x->query_text)
		*x->query_text++ = '\0';
	fields_init(&x->headers, &server->header_limits);
	fields_init(&x->query, &query_limits);
	fields_init(&x->auth, &tls_owner_limits);
	return x;
}

void http_exchange_forget_headers(struct http_exchange *x)
{
	fields_fini(&x->headers);
	fields_fini(&x->query);
	fields_fini(&x->auth);
}

void http_exchange_free(struct http_exchange *x)
{
	struct http_server *server = x->server;
	memory_free(x->target);
	memory_free(x->method);
	memory_free(x->peer);
	http_exchange_forget_headers(x);
	bytes_fini(&x->body);
	memory_free(x->answer.content_type);
	memory_free(x->answer.allow);
	memory_free(x->answer.body);
	memory_free(x);
	http_state_unref(server);
}

/* Replies before a route has been asked, or on behalf of the server; nobody else can reply. */
static void answer_text(struct http_exchange *x, int status, const char *text)
{
	assert(!x->answer.status);
	x->answer.status = status;
	x->answer.content_type = memory_text("text/plain; charset=utf-8");
	x->answer.body = (uint8_t *)memory_format("%s\n", text);
	x->answer.body_len = strlen(text) + 1;
}

static void answer_method(struct http_exchange *x, const char *methods)
{
	struct bytes list;
	bytes_init(&list, 1000);
	for (; *methods; methods++) {
		bytes_add_byte(&list, (uint8_t)*methods);
		if (*methods == ',')
			bytes_add_byte(&list, ' ');
	}
	char *allow = memory_text_of(list.at, list.len);
	char *text = memory_format("405 method not allowed, supported: [%s]", allow);
	answer_text(x, 405, text);
	x->answer.allow = allow;
	memory_free(text);
	bytes_fini(&list);
}

static const struct http_route *find_route(const struct http_server *server, const char *path)
{
	for (size_t i = 0; i < server->route_count; i++)
		if (!server->routes[i].path || !strcmp(server->routes[i].path, path))
			return &server->routes[i];
	return NULL;
}

static bool listed(const char *methods, const char *method)
{
	size_t len = strlen(method);
	for (const char *at = methods; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (!strncmp(at, method, len) && (!at[len] || at[len] == ','))
			return true;
	}
	return false;
}

static void ask_route(struct http_exchange *x)
{
	const struct http_route *route = x->route;
	route->headers(route->context, x);
	assert((x->stage == HTTP_STAGE_BODY) != (x->answer.status != 0));
	if (x->stage == HTTP_STAGE_BODY && x->content_length > (int64_t)x->body_limit) {
		x->stage = HTTP_STAGE_HEADERS;
		answer_text(x, 413, "the body exceeds the size limit");
		route->lost(route->context, x, true);
	}
}

bool http_exchange_open(struct http_exchange *x, bool *sound)
{
	const struct http_fault *fault = http_judge(x);
	*sound = !fault;
	if (fault) {
		metric_add(x->server->misdirected[fault->status == 400 ? HTTP_MALFORMED
								       : HTTP_HEADER_SIZE],
			   1);
		answer_text(x, fault->status, fault->text);
	} else if (!(x->route = find_route(x->server, x->target))) {
		metric_add(x->server->misdirected[HTTP_NO_PATH], 1);
		answer_text(x, 404, "404 page not found");
	} else if (!listed(x->route->methods, x->method)) {
		metric_add(x->server->misdirected[HTTP_NO_METHOD], 1);
		answer_method(x, x->route->methods);
	} else if (atomic_load(&x->server->stopping)) {
		answer_text(x, 503, "the server is shutting down");
		x->answer.retry_after_s = 1;
	} else {
		ask_route(x);
	}
	return !x->answer.status;
}

void http_exchange_accept(struct http_exchange *x, size_t limit)
{
	assert(x->stage == HTTP_STAGE_HEADERS && !x->answer.status);
	x->stage = HTTP_STAGE_BODY;
	x->body_limit = limit;
	bytes_init(&x->body, 0);
}

/* The room of a route without `grow`. */
static enum http_grow grow_always(struct http_growth *growth)
{
	size_t twice = 2 * growth->room > growth->need ? 2 * growth->room : growth->need;
	growth->room = twice < growth->limit ? twice : growth->limit;
	return HTTP_GROW_YES;
}

/* The body's buffer never exceeds what the route has granted. */
static enum http_grow make_room(struct http_exchange *x, size_t need)
{
	const struct http_route *route = x->route;
	struct http_growth growth = {
		.need = need,
		.limit = x->content_length >= 0 ? (size_t)x->content_length : x->body_limit,
		.room = x->body_room,
		.last = x->waiting_since && clock_now() - x->waiting_since >= x->patience_ns,
	};
	if (need <= x->body_room)
		return HTTP_GROW_YES;
	enum http_grow answer =
		route->grow ? route->grow(route->context, x, &growth) : grow_always(&growth);
	if (answer == HTTP_GROW_YES) {
		assert(growth.room >= need);
		x->body_room = x->body.max = growth.room;
	}
	return answer;
}

enum http_feed http_exchange_feed(struct http_exchange *x, const void *data, size_t len)
{
	if (len > x->body_limit - x->body.len) {
		x->stage = HTTP_STAGE_REPLYING;
		answer_text(x, 413, "the body exceeds the size limit");
		x->route->lost(x->route->context, x, true);
		return HTTP_FEED_OVER;
	}
	switch (make_room(x, x->body.len + len)) {
	case HTTP_GROW_YES:
		bytes_add(&x->body, data, len);
		return HTTP_FEED_TAKEN;
	case HTTP_GROW_LATER:
		return HTTP_FEED_LATER;
	default:
		assert(x->answer.status);
		x->stage = HTTP_STAGE_REPLYING;
		return HTTP_FEED_OVER;
	}
}

void http_exchange_print(const struct http_exchange *x, struct bytes *out)
{
	const struct http_answer *a = &x->answer;
	const struct pairs *more = &x->server->config->response_headers;
	bytes_format(out, "HTTP/1.1 %d \r\nConnection: close\r\nContent-Length: %zu\r\n", a->status,
		     a->body_len);
	if (a->content_type)
		bytes_format(out, "Content-Type: %s\r\n", a->content_type);
	if (a->retry_after_s)
		bytes_format(out, "Retry-After: %u\r\n", a->retry_after_s);
	for (size_t i = 0; i < more->count; i++)
		bytes_format(out, "%s: %s\r\n", more->at[i].name,
			     more->at[i].value.text ? more->at[i].value.text : "");
	bytes_add_text(out, "\r\n");
	bytes_add(out, a->body, a->body_len);
}

void http_exchange_suspend(struct http_exchange *x)
{
	struct http_server *server = x->server;
	x->suspended = true;
	x->previous = NULL;
	x->next = server->suspended;
	if (x->next)
		x->next->previous = x;
	server->suspended = x;
	x->connection->suspend(x->connection);
}

void http_exchange_resume(struct http_exchange *x)
{
	x->suspended = false;
	*(x->previous ? &x->previous->next : &x->server->suspended) = x->next;
	if (x->next)
		x->next->previous = x->previous;
	x->connection->resume(x->connection);
}

static void fill(struct http_answer *a, const struct http_reply *reply)
{
	assert(!a->status && reply->status >= 200);
	a->status = reply->status;
	a->content_type = memory_text(reply->content_type);
	a->retry_after_s = reply->retry_after_s;
	a->body_len = reply->body.len;
	a->body = (uint8_t *)memory_text_of(reply->body.at, reply->body.len);
}

/* The stage is decided under the mutex: after the unlock, the exchange belongs to the server's
 * thread. */
void http_exchange_reply(struct http_exchange *x, const struct http_reply *reply)
{
	struct http_server *server = x->server;
	pthread_mutex_lock(&server->mutex);
	fill(&x->answer, reply);
	bool last = x->stage == HTTP_STAGE_LOST && !x->connection;
	if (x->suspended)
		http_exchange_resume(x);
	pthread_mutex_unlock(&server->mutex);
	if (last)
		http_exchange_free(x);
}

void http_exchange_refuse(struct http_exchange *x, const struct error *err)
{
	char *text = memory_format("%s\n", err->text);
	uint32_t wait = err->retry_after_ms ? (err->retry_after_ms + 999) / 1000 : 1;
	http_exchange_reply(x, &(struct http_reply){
				       .status = http_status_of(err->kind),
				       .content_type = "text/plain; charset=utf-8",
				       .body = view_of(text),
				       .retry_after_s = err->kind == ERROR_BUSY ? wait : 0,
			       });
	memory_free(text);
}

int http_status_of(enum error_kind kind)
{
	static const int statuses[] = {
		[ERROR_NONE] = 200,      [ERROR_CONFIG] = 500,      [ERROR_INVALID] = 400,
		[ERROR_TOO_LARGE] = 413, [ERROR_UNSUPPORTED] = 415, [ERROR_UNAUTHENTICATED] = 401,
		[ERROR_BUSY] = 503,      [ERROR_INTERNAL] = 500,
	};
	return statuses[kind];
}

void http_exchange_set_user(struct http_exchange *x, void *user)
{
	x->user = user;
}

void *http_exchange_user(struct http_exchange *x)
{
	return x->user;
}

const char *http_exchange_method(struct http_exchange *x)
{
	return x->method;
}

static size_t cost_of(const struct fields *f)
{
	return f->text.room + (f->count + 1) * sizeof *f->at;
}

size_t http_exchange_cost(const struct http_exchange *x)
{
	return sizeof *x + (x->target ? strlen(x->target) : 0) + cost_of(&x->headers) +
	       cost_of(&x->query) + cost_of(&x->auth);
}

const char *http_exchange_peer(struct http_exchange *x)
{
	return x->peer;
}

const struct metadatum *http_exchange_auth(struct http_exchange *x)
{
	if (!x->auth.count)
		return NULL;
	return x->auth.at ? x->auth.at : fields_list(&x->auth);
}

const char *http_exchange_header(struct http_exchange *x, const char *name)
{
	for (const struct metadatum *h = http_exchange_headers(x); h->name; h++)
		if (!strcasecmp(h->name, name))
			return h->value;
	return NULL;
}

int64_t http_exchange_content_length(struct http_exchange *x)
{
	return x->content_length;
}

const struct metadatum *http_exchange_headers(struct http_exchange *x)
{
	return x->headers.at ? x->headers.at : fields_list(&x->headers);
}

bool http_exchange_query(struct http_exchange *x, const struct metadatum **query, struct error *err)
{
	if (!x->query.at && x->query_text && !fields_add_query(&x->query, x->query_text, err))
		return false;
	*query = x->query.at ? x->query.at : fields_list(&x->query);
	return true;
}

static bool unsupported(const struct strings *known, struct error *err)
{
	error_set(err, ERROR_UNSUPPORTED, "unsupported Content-Encoding, supported: [");
	for (size_t i = 0, len; i < known->count; i++) {
		len = strlen(err->text);
		snprintf(err->text + len, sizeof err->text - len, "%s%s", i ? ", " : "",
			 *known->at[i] ? known->at[i] : "identity");
	}
	size_t len = strlen(err->text);
	snprintf(err->text + len, sizeof err->text - len, "]");
	return false;
}

bool http_exchange_coding(struct http_exchange *x, enum coding *coding, struct error *err)
{
	const struct strings *known = &x->server->config->compression_algorithms;
	const char *name = NULL;
	for (const struct metadatum *h = http_exchange_headers(x); h->name; h++) {
		if (strcmp(h->name, "content-encoding") != 0)
			continue;
		if (name)
			return unsupported(known, err);
		name = h->value;
	}
	if (!name || !strcasecmp(name, "identity"))
		name = "";
	for (size_t i = 0; i < known->count; i++) {
		if (!strcasecmp(name, known->at[i])) {
			*coding = compress_named(name);
			return true;
		}
	}
	return unsupported(known, err);
}
