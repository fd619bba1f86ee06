/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdio.h>
#include <strings.h>

#include "base/clock.h"
#include "base/memory.h"
#include "net/http/http_internal.h"
#include "net/places.h"

#define PATHS_MAX 65536 /* of the text of a 404 */

static const struct fields_limits query_limits = {
	.count = 1000, .name = HTTP_TARGET_MAX, .value = HTTP_TARGET_MAX, .total = HTTP_TARGET_MAX
};

/* http://host/path is the form for a proxy; only the path is used. */
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

void http_exchange_init(struct http_exchange *x, struct http_server *server,
			const struct http_carrier *carrier, const char *target)
{
	atomic_fetch_add(&server->holds, 1);
	x->server = server;
	x->carrier = carrier;
	x->target_too_long = strlen(target) > HTTP_TARGET_MAX;
	if (!x->target_too_long) {
		x->target = memory_text(path_of(target));
		x->query_text = strchr(x->target, '?');
	}
	if (x->query_text)
		*x->query_text++ = '\0';
	fields_init(&x->headers, &server->header_limits);
	fields_init(&x->query, &query_limits);
	fields_init(&x->auth, &authenticator_identity_limits);
}

void http_exchange_forget_headers(struct http_exchange *x)
{
	fields_fini(&x->headers);
	fields_fini(&x->query);
	fields_fini(&x->auth);
}

void http_exchange_fini(struct http_exchange *x)
{
	memory_free(x->target);
	memory_free(x->method);
	memory_free(x->peer);
	http_exchange_forget_headers(x);
	bytes_fini(&x->body);
	memory_free(x->answer.content_type);
	memory_free(x->answer.allow);
	memory_free(x->answer.body);
	http_cors_forget(x);
	http_state_unref(x->server);
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

void http_exchange_answer_stalled(struct http_exchange *x)
{
	x->stage = HTTP_STAGE_REPLYING;
	metric_add(x->server->misdirected[HTTP_MALFORMED], 1);
	answer_text(x, 400, "the line of a chunk's size and extensions is too long");
	x->route->lost(x->route->context, x, false);
}

void http_exchange_answer_late(struct http_exchange *x, uint64_t ns, const char *setting,
			       const char *value)
{
	char *text = memory_format("%zu bytes of the body have arrived in %.1f s; %s is %s",
				   x->body.len, (double)ns / 1e9, setting, value);
	metric_add(x->server->misdirected[HTTP_LATE_BODY], 1);
	answer_text(x, 408, text);
	memory_free(text);
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

static void answer_path(struct http_exchange *x)
{
	struct bytes text;
	bytes_init(&text, PATHS_MAX);
	bytes_add_text(&text, "404 page not found, supported: [");
	for (size_t i = 0; i < x->server->route_count; i++) {
		bytes_add_text(&text, i ? ", " : "");
		bytes_add_text(&text, x->server->routes[i].path);
	}
	bytes_add_byte(&text, ']');
	places_hint(x->target, &text);
	bytes_add_byte(&text, 0);
	answer_text(x, 404, (char *)text.at);
	bytes_fini(&text);
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

static void answer_too_large(struct http_exchange *x)
{
	const struct size_limit limit = { x->body_limit, "max_request_body_size",
					  (int64_t)x->body_limit };
	struct error err;
	size_limit_exceeded(&limit, "the body",
			    x->content_length > 0 ? (uint64_t)x->content_length : 0, &err);
	answer_text(x, 413, err.text);
}

static void answer_headers(struct http_exchange *x)
{
	const struct fields_limits *limits = &x->server->header_limits;
	bool many = x->header_count > limits->count;
	char *text = many ? memory_format("the request has %zu headers; max_header_count is %zu",
					  x->header_count, limits->count)
			  : memory_format("the headers have %zu bytes; max_header_bytes is %zu",
					  x->header_bytes, limits->total);
	answer_text(x, 431, text);
	memory_free(text);
}

static void ask_route(struct http_exchange *x)
{
	const struct http_route *route = x->route;
	route->headers(route->context, x);
	assert((x->stage == HTTP_STAGE_BODY) != (x->answer.status != 0));
	if (x->stage == HTTP_STAGE_BODY && x->content_length > (int64_t)x->body_limit) {
		x->stage = HTTP_STAGE_HEADERS;
		answer_too_large(x);
		route->lost(route->context, x, true);
	}
}

static void answer_unauthenticated(struct http_exchange *x, const struct error *err)
{
	struct authenticator *a = x->server->authenticator;
	bool busy = err->kind == ERROR_BUSY;
	metric_add(x->server->misdirected[HTTP_NO_CREDENTIALS], 1);
	answer_text(x, http_status_of(err), err->text);
	x->answer.retry_after_s = busy ? 1 : 0;
	x->answer.challenge = busy || !a->ops->challenge ? NULL : a->ops->challenge(a);
}

bool http_exchange_open(struct http_exchange *x, bool *sound)
{
	const struct http_fault *fault = http_judge(x);
	struct error err;
	*sound = !fault;
	if (fault) {
		metric_add(x->server->misdirected[fault->status == 400 ? HTTP_MALFORMED
								       : HTTP_HEADER_SIZE],
			   1);
		if (fault->status == 431)
			answer_headers(x);
		else
			answer_text(x, fault->status, fault->text);
	} else if (http_cors_judge(x)) {
		x->answer.status = 204;
	} else if (!http_auth_accepts(x, &err)) {
		answer_unauthenticated(x, &err);
	} else if (!(x->route = find_route(x->server, x->target))) {
		metric_add(x->server->misdirected[HTTP_NO_PATH], 1);
		answer_path(x);
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
	size_t max = x->version == HTTP_2 ? INT32_MAX : SIZE_MAX; /* RFC 9113 §6.9.1 */
	assert(x->stage == HTTP_STAGE_HEADERS && !x->answer.status);
	x->stage = HTTP_STAGE_BODY;
	x->body_limit = limit < max ? limit : max;
	bytes_init(&x->body, 0);
}

/* For a route without `grow`: always grants the memory. */
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
	if (len > x->body_limit - x->body.len && !x->route->grow) {
		x->stage = HTTP_STAGE_REPLYING;
		answer_too_large(x);
		x->route->lost(x->route->context, x, true);
		return HTTP_FEED_OVER;
	}
	enum http_feed fed = http_exchange_grow(x, x->body.len + len);
	if (fed == HTTP_FEED_TAKEN)
		bytes_add(&x->body, data, len);
	return fed;
}

enum http_feed http_exchange_grow(struct http_exchange *x, size_t need)
{
	switch (make_room(x, need)) {
	case HTTP_GROW_YES:
		return HTTP_FEED_TAKEN;
	case HTTP_GROW_LATER:
		return HTTP_FEED_LATER;
	default:
		assert(x->answer.status);
		x->stage = HTTP_STAGE_REPLYING;
		return HTTP_FEED_OVER;
	}
}

void http_exchange_each_header(struct http_exchange *x, http_add_header *add, void *context)
{
	struct http_answer *a = &x->answer;
	const struct pairs *more = &x->server->config->response_headers;
	if (a->content_type)
		add(context, "Content-Type", a->content_type);
	if (a->allow)
		add(context, "Allow", a->allow);
	if (a->retry_after_s) {
		snprintf(a->retry_after, sizeof a->retry_after, "%u", a->retry_after_s);
		add(context, "Retry-After", a->retry_after);
	}
	if (a->challenge)
		add(context, "WWW-Authenticate", a->challenge);
	for (size_t i = 0; i < more->count; i++)
		add(context, more->at[i].name,
		    more->at[i].value.text ? more->at[i].value.text : "");
	http_cors_each_header(x, add, context);
}

void http_exchange_fill(struct http_exchange *x, const struct http_reply *reply)
{
	struct http_answer *a = &x->answer;
	assert(!a->status && reply->status >= 200);
	a->status = reply->status;
	a->content_type = memory_text(reply->content_type);
	a->retry_after_s = reply->retry_after_s;
	a->body_len = reply->body.len;
	a->body = (uint8_t *)memory_text_of(reply->body.at, reply->body.len);
}

void http_exchange_reply(struct http_exchange *x, const struct http_reply *reply)
{
	x->carrier->reply(x, reply);
}

void http_exchange_add_owner(struct http_exchange *x, const struct fields *owner)
{
	for (const struct metadatum *m = owner->at; m && m->name; m++)
		fields_add(&x->auth, view_of(m->name), view_of(m->value), NULL);
}

struct io_thread *http_exchange_thread(const struct http_exchange *x)
{
	return x->thread;
}

void http_exchange_refuse(struct http_exchange *x, const struct error *err)
{
	char *text = memory_format("%s\n", err->text);
	http_exchange_reply(x, &(struct http_reply){
				       .status = http_status_of(err),
				       .content_type = "text/plain; charset=utf-8",
				       .body = view_of(text),
				       .retry_after_s = http_retry_after_s(err),
			       });
	memory_free(text);
}

int http_status_of(const struct error *err)
{
	static const int statuses[] = {
		[ERROR_NONE] = 200,      [ERROR_CONFIG] = 500,      [ERROR_INVALID] = 400,
		[ERROR_TOO_LARGE] = 413, [ERROR_UNSUPPORTED] = 415, [ERROR_UNAUTHENTICATED] = 401,
		[ERROR_FORBIDDEN] = 403, [ERROR_BUSY] = 503,        [ERROR_INTERNAL] = 500,
	};
	return err->over_quota ? 429 : statuses[err->kind];
}

uint32_t http_retry_after_s(const struct error *err)
{
	if (err->kind != ERROR_BUSY)
		return 0;
	return err->retry_after_ms ? (err->retry_after_ms + 999) / 1000 : 1;
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
	return x->carrier->size + (x->target ? strlen(x->target) : 0) + cost_of(&x->headers) +
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
