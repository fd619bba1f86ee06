/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/intake/http_intake.h"

#include "base/clock.h"
#include "base/memory.h"
#include "pipeline/intake/handoff.h"

#include <assert.h>
#include <strings.h>

#define STOP_GRACE_NS (10 * UINT64_C(1000000000))

/* A route as it is registered with the server. */
struct bound {
	struct http_intake *intake;
	const struct http_intake_route *route;
	struct inbound_ops ops;
};

struct http_intake {
	struct http_intake_options options;
	struct http_server *server;
	struct authenticator *authenticator; /* NULL: none */
	struct size_limit body_limit;
	struct bound bound[];
};

static struct gate *gate_of(const struct http_intake_request *r)
{
	return r->in.gate;
}

static void request_free(struct http_intake_request *r)
{
	if (r->route->fini)
		r->route->fini(r);
	gate_leave(gate_of(r));
	memory_free(r);
}

static void forget(struct http_intake_request *r, enum refusal reason)
{
	gate_forget(gate_of(r), &r->in, reason);
}

static void refuse(struct http_intake_request *r, const struct error *err, enum refusal reason)
{
	forget(r, reason);
	r->route->reply(r->exchange, &(struct outcome){ .error = err });
	request_free(r);
}

static bool media_type_is_accepted(const char *const *types, const char *type)
{
	size_t len = type ? strcspn(type, "; \t") : 0;
	bool any = !types || len == 0;
	for (; !any && *types; types++)
		any = strlen(*types) == len && !strncasecmp(type, *types, len);
	return any;
}

/* Checks the headers before the gate is asked. */
static bool examine(struct http_intake_request *r, struct error *err)
{
	const struct http_intake_route *route = r->route;
	const struct size_limit *limit = &r->intake->body_limit;
	int64_t length = http_exchange_content_length(r->exchange);
	if (!media_type_is_accepted(route->media_types,
				    http_exchange_header(r->exchange, "content-type")))
		return error_set(err, ERROR_UNSUPPORTED, "unsupported media type, supported: [%s]",
				 route->media_types_hint);
	if (!http_exchange_coding(r->exchange, &r->coding, err))
		return false;
	if (length > (int64_t)limit->max)
		return size_limit_exceeded(limit, "the body", (uint64_t)length, err);
	return !route->examine || route->examine(r, err);
}

static struct http_intake_request *request_new(struct bound *b, struct http_exchange *x)
{
	const struct http_intake_options *o = &b->intake->options;
	struct http_intake_request *r = memory_new(b->route->request_size);
	bool metadata = o->config->include_metadata;
	r->intake = b->intake;
	r->route = b->route;
	r->exchange = x;
	r->in.ops = &b->ops;
	r->in.gate = entrance_take(o->host->entrance);
	r->in.receiver = o->receiver;
	r->in.request = (struct request){
		.receiver = o->host->id,
		.transport = TRANSPORT_HTTP,
		.peer = http_exchange_peer(x),
		.auth = http_exchange_auth(x),
		.metadata = metadata ? http_exchange_headers(x) : NULL,
		.arrival = clock_now(),
		.ack = &r->in.ack,
	};
	r->in.headers = gate_wants_headers(gate_of(r)) ? http_exchange_headers(x) : NULL;
	return r;
}

static void headers(void *context, struct http_exchange *x)
{
	struct http_intake_request *r = request_new(context, x);
	struct error err = { 0 };
	int64_t length = http_exchange_content_length(x);
	bool ok = examine(r, &err);
	r->in.overhead += http_exchange_cost(x); /* which reading the query has raised */
	if (!ok) {
		refuse(r, &err, refusal_of(&err));
	} else if (!gate_admit(gate_of(r), &r->in, length < 0 ? 0 : (size_t)length, &err)) {
		refuse(r, &err, REFUSAL_NONE);
	} else {
		http_exchange_set_user(x, r);
		http_exchange_accept(x, r->intake->body_limit.max);
	}
}

static enum http_grow grow(void *context, struct http_exchange *x, struct http_growth *growth)
{
	struct http_intake_request *r = http_exchange_user(x);
	struct error err = { 0 };
	(void)context;
	if (growth->need > growth->limit) {
		size_limit_exceeded(&r->intake->body_limit, "the body", 0, &err);
		refuse(r, &err, REFUSAL_TOO_LARGE);
		return HTTP_GROW_REFUSED;
	}
	if (gate_grow(gate_of(r), &r->in, growth->need, growth->limit, &growth->room, &err))
		return HTTP_GROW_YES;
	if (err.kind == ERROR_BUSY && !growth->last)
		return HTTP_GROW_LATER;
	refuse(r, &err, REFUSAL_NONE);
	return HTTP_GROW_REFUSED;
}

static void body(void *context, struct http_exchange *x, struct view view)
{
	struct http_intake_request *r = http_exchange_user(x);
	(void)context;
	r->sent = view;
	handoff_request(gate_of(r), &r->in, http_exchange_thread(x), &r->route->documents,
			r->coding, view);
}

static void lost(void *context, struct http_exchange *x, bool too_large)
{
	struct http_intake_request *r = http_exchange_user(x);
	(void)context;
	forget(r, too_large ? REFUSAL_TOO_LARGE : REFUSAL_CANCELLED);
	request_free(r);
}

static bool load(struct inbound *in, struct body *buffers, struct error *err)
{
	struct http_intake_request *r = (struct http_intake_request *)in;
	return gate_charge(in->gate, in, r->sent.len, err) &&
	       documents_load(&r->documents, &r->route->documents, in, buffers, r->coding, r->sent,
			      &r->intake->body_limit, HANDOFF_INLINE_BYTES, err);
}

static enum inbound_next next(struct inbound *in, struct body *buffers, struct view *document,
			      struct error *err)
{
	struct http_intake_request *r = (struct http_intake_request *)in;
	return documents_next(&r->documents, &r->route->documents, in, buffers, document, err);
}

static bool translate(struct inbound *in, struct body *buffers, struct view *document,
		      struct error *err)
{
	struct http_intake_request *r = (struct http_intake_request *)in;
	return documents_translate(&r->documents, &r->route->documents, in, buffers, document, err);
}

static void reply(struct inbound *in, const struct outcome *outcome)
{
	struct http_intake_request *r = (struct http_intake_request *)in;
	r->route->reply(r->exchange, outcome);
	request_free(r);
}

static void bind_route(struct http_intake *intake, size_t i)
{
	const struct http_intake_route *route = &intake->options.routes[i];
	assert(route->request_size >= sizeof(struct http_intake_request));
	intake->bound[i] = (struct bound){
		.intake = intake,
		.route = route,
		.ops = { .load = load,
			 .next = next,
			 .decode = route->documents.decode,
			 .translate = translate,
			 .reply = reply,
			 .tables_factor = route->documents.tables_factor },
	};
}

struct http_intake *http_intake_new(const struct http_intake_options *options)
{
	size_t bound = options->route_count * sizeof(struct bound);
	struct http_intake *intake = memory_new(sizeof *intake + bound);
	intake->options = *options;
	intake->body_limit = http_server_body_limit(options->config);
	intake->authenticator = host_authenticator(options->host, &options->config->auth.present,
						   options->config->auth.authenticator);
	for (size_t i = 0; i < options->route_count; i++)
		bind_route(intake, i);
	return intake;
}

bool http_intake_start(struct http_intake *intake, struct error *err)
{
	const struct http_intake_options *o = &intake->options;
	struct http_route *routes = memory_array(o->route_count, sizeof *routes);
	for (size_t i = 0; i < o->route_count; i++)
		routes[i] =
			(struct http_route){ o->routes[i].path, "POST", headers, grow, body, lost,
					     &intake->bound[i] };
	intake->server = http_server_start(
		&(struct http_server_options){
			.config = o->config,
			.routes = routes,
			.route_count = o->route_count,
			.log = &o->host->log,
			.metrics = o->host->metrics,
			.budget = entrance_net_budget(o->host->entrance),
			.sockets = o->host->sockets,
			.authenticator = intake->authenticator,
			.io = o->host->io,
		},
		err);
	memory_free(routes);
	return intake->server != NULL;
}

void http_intake_stop(struct http_intake *intake)
{
	http_server_stop(&intake->server, STOP_GRACE_NS);
}

void http_intake_retire(struct http_intake *intake)
{
	http_server_retire(&intake->server, STOP_GRACE_NS);
}

bool http_intake_reopen(struct http_intake *intake, struct error *err)
{
	return !intake->server || http_server_reopen(intake->server, err);
}

void http_intake_unref(struct http_intake **slot)
{
	if (*slot)
		authenticator_unref(&(*slot)->authenticator);
	memory_free(*slot);
	*slot = NULL;
}
