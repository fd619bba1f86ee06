/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/admin.h"

#include "base/log.h"
#include "base/memory.h"
#include "base/quote.h"
#include "net/http/http_server.h"
#include "net/loop.h"
#include "pipeline/graph/service_config.h"

#include <string.h>

#define BODY_MAX ((size_t)64 << 10)
#define REPLY_MAX ((size_t)1 << 20)
#define STOP_GRACE_NS UINT64_C(1000000000)
enum { CONNECTIONS_MAX = 16 };

struct admin_link { /* the context of an HTTP route */
	struct admin *admin;
	const struct admin_route *route;
};

struct admin {
	struct loop *loop;
	struct log log;
	struct http_server_config http; /* borrowed by the server */
	struct http_server *server;
	struct admin_link links[ADMIN_ROUTES_MAX];
};

struct admin_call {
	const struct admin_link *link;
	struct http_exchange *exchange;
	const struct metadatum *query;
	struct view body;
};

const char *admin_method(const struct admin_call *call)
{
	return http_exchange_method(call->exchange);
}

const char *admin_parameter(const struct admin_call *call, const char *name)
{
	for (const struct metadatum *m = call->query; m && m->name; m++)
		if (!strcmp(m->name, name))
			return m->value;
	return NULL;
}

struct view admin_body(const struct admin_call *call)
{
	return call->body;
}

/* The reply is JSON with a newline at the end. */
static void reply(struct http_exchange *x, int status, const struct bytes *text)
{
	http_exchange_reply(x, &(struct http_reply){ .status = status,
						     .content_type = "application/json",
						     .body = bytes_view(text) });
}

static void refuse(struct http_exchange *x, int status, const char *message)
{
	struct bytes text;
	bytes_init(&text, REPLY_MAX);
	bytes_add_text(&text, "{\"error\":");
	quote_json(&text, message, strlen(message));
	bytes_add_text(&text, "}\n");
	reply(x, status, &text);
	bytes_fini(&text);
}

void admin_reply(struct admin_call *call, int status, struct view json)
{
	struct bytes text;
	bytes_init(&text, json.len + 1);
	bytes_add(&text, json.at, json.len);
	bytes_add_byte(&text, '\n');
	reply(call->exchange, status, &text);
	bytes_fini(&text);
	memory_free(call);
}

void admin_refuse(struct admin_call *call, int status, const char *text)
{
	refuse(call->exchange, status, text);
	memory_free(call);
}

/* libmicrohttpd's thread. */
static void headers(void *context, struct http_exchange *x)
{
	struct error err;
	const struct metadatum *query;
	const char *host = http_exchange_header(x, "host");
	(void)context;
	if (http_exchange_header(x, "origin") || !host || !admin_is_local(host))
		refuse(x, 403, "requests of web pages are not allowed");
	else if (!http_exchange_query(x, &query, &err))
		refuse(x, http_status_of(&err), err.text);
	else
		http_exchange_accept(x, BODY_MAX);
}

/* Loop thread. */
static void run(void *argument)
{
	struct admin_call *call = argument;
	const struct admin_route *route = call->link->route;
	route->run(route->context, call);
}

static void body(void *context, struct http_exchange *x, struct view content)
{
	const struct admin_link *link = context;
	struct error err;
	struct admin_call *call = memory_new(sizeof *call);
	*call = (struct admin_call){ .link = link, .exchange = x, .body = content };
	http_exchange_query(x, &call->query, &err);
	loop_post(link->admin->loop, run, call);
}

/* Nothing was created before the body. */
static void lost(void *context, struct http_exchange *x, bool too_large)
{
	(void)context, (void)x, (void)too_large;
}

static bool configure(struct admin *a, const char *endpoint, struct error *err)
{
	if (!config_bind(&http_server_table, NULL, "service::admin", &a->http, err))
		return false;
	memory_free(a->http.endpoint);
	a->http.endpoint = memory_text(endpoint);
	a->http.max_connections = a->http.max_connections_per_peer = CONNECTIONS_MAX;
	return true;
}

struct admin *admin_start(const struct admin_options *o, struct error *err)
{
	struct admin *a = memory_new(sizeof *a);
	struct http_route routes[ADMIN_ROUTES_MAX];
	size_t count = 0;
	a->loop = o->loop;
	for (; o->routes[count].path && count < ADMIN_ROUTES_MAX; count++) {
		const struct admin_route *route = &o->routes[count];
		a->links[count] = (struct admin_link){ a, route };
		routes[count] = (struct http_route){ .path = route->path,
						     .methods = route->methods,
						     .headers = headers,
						     .body = body,
						     .lost = lost,
						     .context = &a->links[count] };
	}
	if (configure(a, o->endpoint, err))
		a->server = http_server_start(
			&(struct http_server_options){
				.config = &a->http,
				.routes = routes,
				.route_count = count,
				.log = &a->log,
				.metrics = o->metrics,
			},
			err);
	if (!a->server) {
		error_prefix(err, "service::admin");
		admin_unref(&a);
		return NULL;
	}
	return a;
}

void admin_stop(struct admin *a)
{
	if (a && a->server)
		http_server_stop(&a->server, STOP_GRACE_NS);
}

void admin_unref(struct admin **admin)
{
	struct admin *a = *admin;
	*admin = NULL;
	if (!a)
		return;
	admin_stop(a);
	config_release(&http_server_table, &a->http);
	memory_free(a);
}
