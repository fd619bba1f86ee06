/* SPDX-License-Identifier: Apache-2.0 */
#include <strings.h>

#include "base/clock.h"
#include "base/memory.h"
#include "net/fields.h"
#include "net/http/http_server.h"
#include "net/http/multipart.h"
#include "pipeline/component.h"
#include "pipeline/intake/inflate.h"
#include "profile/pprof/decode_pprof.h"

/*
 * pprof over HTTP: POST /v1/pprof. The server's thread looks at headers and query and asks the
 * gate; a worker undoes at most one Content-Encoding, takes the part out of a form, undoes at most
 * one pprof compression, decodes.
 */
#define RESOURCE_HEADER "x-portcullis-resource"
#define STOP_GRACE_NS (10 * UINT64_C(1000000000))

static const struct fields_limits attribute_limits = {
	.count = 64, .name = 256, .value = 4096, .total = 16384
};

struct pprof_config {
	struct http_server_config server;
	const struct node *remote, *file, *self;
};

struct pprof_receiver {
	const struct host *host;
	const struct pprof_config *config;
	struct http_server *server;
	size_t body_max; /* as sent, and again inflated */
};

/* One request. Freed by the reply, or when it is refused or lost. */
struct pprof_request {
	struct inbound in;
	struct pprof_receiver *receiver;
	struct http_exchange *exchange;
	struct fields attributes;
	enum coding coding; /* Content-Encoding */
	struct view body;   /* of the exchange */
};

static struct pprof_request *request_of(struct inbound *in)
{
	return (struct pprof_request *)((char *)in - offsetof(struct pprof_request, in));
}

static void request_free(struct pprof_request *r)
{
	fields_fini(&r->attributes);
	memory_free(r);
}

/* The gate's own refusals are counted by it: no reason. The gate gets the charge back in either
 * case. */
static void refuse(struct pprof_request *r, const struct error *err, const char *reason)
{
	gate_forget(r->receiver->host->gate, &r->in, "http", reason);
	http_exchange_refuse(r->exchange, err);
	request_free(r);
}

static bool media_is_taken(const char *type)
{
	static const char *const taken[] = {
		"application/octet-stream",
		"binary/octet-stream",
		"application/x-protobuf",
		"application/protobuf",
		"application/vnd.google.protobuf",
		"application/x-pprof",
		"application/gzip",
		"application/x-gzip",
		"application/zstd",
		"application/x-www-form-urlencoded",
		"multipart/form-data",
	};
	size_t len = strcspn(type, "; \t");
	for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
		if (strlen(taken[i]) == len && !strncasecmp(type, taken[i], len))
			return true;
	return len == 0;
}

static bool take_attributes(struct pprof_request *r, struct error *err)
{
	const struct metadatum *query;
	struct fields *f = &r->attributes;
	if (!http_exchange_query(r->exchange, &query, err))
		return false;
	for (const struct metadatum *q = query; q->name; q++)
		if (!fields_add(f, view_of(q->name), view_of(q->value), err))
			return error_prefix(err, "query parameter");
	for (const struct metadatum *h = http_exchange_headers(r->exchange); h->name; h++)
		if (!strcmp(h->name, RESOURCE_HEADER) && !fields_add_pairs(f, h->value, err))
			return error_prefix(err, "X-Portcullis-Resource");
	return fields_unique(f, err) || error_prefix(err, "resource attribute");
}

/* What can be said before the body; *reason is the metric's word for a refusal. */
static bool examine(struct pprof_request *r, const char **reason, struct error *err)
{
	const char *type = http_exchange_header(r->exchange, "content-type");
	size_t max = r->receiver->body_max;
	*reason = "unsupported";
	if (type && !media_is_taken(type))
		return error_set(err, ERROR_UNSUPPORTED,
				 "unsupported media type, supported: [application/octet-stream, "
				 "application/x-protobuf, multipart/form-data]");
	if (!http_exchange_coding(r->exchange, &r->coding, err))
		return false;
	*reason = "too_large";
	if (http_exchange_content_length(r->exchange) > (int64_t)max)
		return error_set(err, ERROR_TOO_LARGE,
				 "the body has more than max_request_body_size, %zu bytes", max);
	*reason = "invalid";
	if (take_attributes(r, err))
		return true;
	err->kind = ERROR_INVALID; /* too many or too long attributes are no large body */
	return false;
}

static const struct inbound_ops ops;

static struct pprof_request *request_new(struct pprof_receiver *receiver, struct http_exchange *x)
{
	struct pprof_request *r = memory_new(sizeof *r);
	r->receiver = receiver;
	r->exchange = x;
	fields_init(&r->attributes, &attribute_limits);
	r->in.ops = &ops;
	r->in.request = (struct request){
		.receiver = receiver->host->id,
		.transport = "http",
		.peer = http_exchange_peer(x),
		.auth = http_exchange_auth(x),
		.metadata =
			receiver->config->server.include_metadata ? http_exchange_headers(x) : NULL,
		.arrival = clock_now(),
		.ack = &r->in.ack,
	};
	return r;
}

static void headers(void *context, struct http_exchange *x)
{
	struct pprof_receiver *receiver = context;
	struct pprof_request *r = request_new(receiver, x);
	struct error err = { 0 };
	const char *reason;
	int64_t length = http_exchange_content_length(x);
	bool sound = examine(r, &reason, &err);
	r->in.overhead = http_exchange_cost(x) + r->attributes.text.room;
	if (!sound) {
		refuse(r, &err, reason);
	} else if (!gate_admit(receiver->host->gate, &r->in, length < 0 ? 0 : (size_t)length,
			       &err)) {
		refuse(r, &err, NULL);
	} else {
		http_exchange_set_user(x, r);
		http_exchange_accept(x, receiver->body_max);
	}
}

static enum http_grow grow(void *context, struct http_exchange *x, struct http_growth *growth)
{
	struct pprof_receiver *receiver = context;
	struct pprof_request *r = http_exchange_user(x);
	struct error err = { 0 };
	if (gate_grow(receiver->host->gate, &r->in, growth->need, growth->limit, &growth->room,
		      &err))
		return HTTP_GROW_YES;
	if (err.kind == ERROR_BUSY && !growth->last)
		return HTTP_GROW_LATER;
	refuse(r, &err, NULL);
	return HTTP_GROW_REFUSED;
}

static void body(void *context, struct http_exchange *x, struct view view)
{
	struct pprof_receiver *receiver = context;
	struct pprof_request *r = http_exchange_user(x);
	r->body = view;
	gate_submit(receiver->host->gate, &r->in);
}

static void lost(void *context, struct http_exchange *x, bool too_large)
{
	struct pprof_receiver *receiver = context;
	struct pprof_request *r = http_exchange_user(x);
	gate_forget(receiver->host->gate, &r->in, "http", too_large ? "too_large" : "cancelled");
	request_free(r);
}

/* The part `profile` of a form; the others, which some clients send beside it, say nothing that is
 * needed here. */
static bool take_part(const char *content_type, struct view form, struct view *out,
		      struct error *err)
{
	struct multipart m;
	struct multipart_part part;
	enum multipart_more more;
	bool found = false;
	if (!multipart_begin(&m, content_type, form, err))
		return false;
	while ((more = multipart_next(&m, &part, err)) == MULTIPART_PART) {
		if (!view_is(part.name, "profile"))
			continue;
		if (found)
			return error_set(err, ERROR_INVALID,
					 "the form has more than one part named profile");
		found = true;
		*out = part.content;
	}
	if (more == MULTIPART_ERROR)
		return false;
	return found || error_set(err, ERROR_INVALID, "the form has no part named profile");
}

static bool load(struct inbound *in, struct body *buffers, struct view *out, struct error *err)
{
	struct pprof_request *r = request_of(in);
	const char *type = http_exchange_header(r->exchange, "content-type");
	size_t cap = r->receiver->body_max, held = r->body.len;
	struct view v = r->body;
	if (!gate_charge(in->gate, in, held, err))
		return false;
	if (r->coding != CODING_IDENTITY) {
		if (!inbound_inflate(in, r->coding, v, cap, &held, &buffers->raw, err))
			return false;
		v = bytes_view(&buffers->raw);
	}
	if (multipart_is(type) && !take_part(type, v, &v, err))
		return false;
	enum coding own = compress_sniff(v);
	if (own == CODING_GZIP || own == CODING_ZSTD) {
		if (!inbound_inflate(in, own, v, cap, &held, &buffers->inflated, err))
			return false;
		v = bytes_view(&buffers->inflated);
	}
	*out = v;
	return v.len || error_set(err, ERROR_INVALID, "the profile is empty");
}

static bool decode(struct inbound *in, struct profiles *profiles, struct error *err)
{
	return decode_pprof(profiles, fields_list(&request_of(in)->attributes), err);
}

static void reply(struct inbound *in, const struct outcome *outcome)
{
	struct pprof_request *r = request_of(in);
	if (outcome->error)
		http_exchange_refuse(r->exchange, outcome->error);
	else
		http_exchange_reply(r->exchange, &(struct http_reply){ .status = 204 });
	request_free(r);
}

/* A zero among many values is a byte, and becomes a sample. */
static const struct inbound_ops ops = { load, decode, reply,
					.tables_factor = sizeof(struct sample) + 4 };

static bool create(void *self, const void *config, const struct host *host, struct error *err)
{
	struct pprof_receiver *r = self;
	(void)err;
	r->host = host;
	r->config = config;
	r->body_max = http_server_body_max(&r->config->server);
	return true;
}

static bool start(void *self, struct error *err)
{
	struct pprof_receiver *r = self;
	const struct http_route route = {
		.path = "/v1/pprof",
		.methods = "POST",
		.headers = headers,
		.grow = grow,
		.body = body,
		.lost = lost,
		.context = r,
	};
	r->server = http_server_start(
		&(struct http_server_options){
			.config = &r->config->server,
			.routes = &route,
			.route_count = 1,
			.log = &r->host->log,
			.metrics = r->host->metrics,
			.budget = gate_net_budget(r->host->gate),
		},
		err);
	return r->server != NULL;
}

static void stop(void *self)
{
	struct pprof_receiver *r = self;
	http_server_stop(&r->server, STOP_GRACE_NS);
}

static bool reload(void *self, struct error *err)
{
	struct pprof_receiver *r = self;
	return !r->server || http_server_reload(r->server, err);
}

static bool given(const struct node *section)
{
	return section && section->kind != NODE_NULL;
}

static bool check(const void *config, struct error *err)
{
	const struct pprof_config *c = config;
	const char *absent = given(c->remote) ? "remote"
			     : given(c->file) ? "file"
			     : given(c->self) ? "self"
					      : NULL;
	if (absent)
		return error_set(err, ERROR_CONFIG,
				 "%s: not supported by this build; only server is", absent);
	if (!c->server.present.enabled)
		return error_set(err, ERROR_CONFIG,
				 "at least one of remote, file, self, or "
				 "server must be configured");
	if (!c->server.endpoint || !*c->server.endpoint)
		return error_set(err, ERROR_CONFIG, "server.endpoint must be specified");
	return true;
}

#define ABSENT_ROW(member, name) \
	CONFIG_ROW(struct pprof_config, member, .key = name, \
		   .help = "Not supported by this build: an error.")

static const struct config_row rows[] = {
	CONFIG_SECTION(struct pprof_config, server, http_server_table, .key = "server",
		       .presence = PRESENCE_NONE,
		       .help = "Takes profiles that are sent to POST /v1/pprof."),
	ABSENT_ROW(remote, "remote"),
	ABSENT_ROW(file, "file"),
	ABSENT_ROW(self, "self"),
	{ 0 }
};

static const struct config_table table = { sizeof(struct pprof_config), rows, check, false };

static const struct receiver_ops pprof_ops = {
	.start = start,
	.stop = stop,
};

const struct component_factory pprof_receiver = {
	.type = "pprof",
	.help = "Takes pprof profiles by HTTP.",
	.manual =
		"`POST /v1/pprof` takes one profile: plain, gzip or zstd, which is seen from its "
		"first bytes, itself sent with or without a `Content-Encoding`, or as the part "
		"`profile` of a `multipart/form-data` form (other parts are ignored). "
		"`max_request_body_size` holds for the body as sent and for what it inflates "
		"to.\n\n"
		"Resource attributes can be given as query parameters, `POST "
		"/v1/pprof?service.name=checkout&region=eu`, and in the header "
		"`X-Portcullis-Resource: service.name=checkout,region=eu` (percent-encoded, as "
		"`OTEL_RESOURCE_ATTRIBUTES`; it may be repeated): at most 64, names of at most "
		"256 bytes, values of at most 4096, 16 KiB together, no name twice. They are "
		"strings, and the policy applies to them like to everything else.\n\n"
		"| Status | When |\n|---|---|\n"
		"| 204 | taken |\n"
		"| 400 | malformed profile, form, query or attributes; the text names the fault "
		"|\n"
		"| 404, 405 | another path or method |\n"
		"| 413 | larger than `max_request_body_size`, as sent or inflated |\n"
		"| 415 | another media type or Content-Encoding |\n"
		"| 431 | the headers are larger or more than `max_header_bytes` and "
		"`max_header_count` |\n"
		"| 503 | memory or all queues are full, the sender holds its share of the memory, "
		"or stopping; `Retry-After` says when to come back |\n\n"
		"Memory is charged as a body arrives. When there is none for the next part, the "
		"receiver stops reading for one to three seconds before it refuses.\n\n"
		"A stop gives accepted requests 10 s, within `--shutdown-timeout`; new ones are "
		"refused meanwhile.\n",
	.kind = COMPONENT_RECEIVER,
	.receiver = &pprof_ops,
	.size = sizeof(struct pprof_receiver),
	.config = &table,
	.create = create,
	.reopen = reload,
};
