/* SPDX-License-Identifier: Apache-2.0 */
#include "net/fields.h"
#include "net/http/multipart.h"
#include "pipeline/intake/http_intake.h"
#include "profile/pprof/decode_pprof.h"

/*
 * pprof over HTTP: POST /v1/pprof. Resource attributes come from the query and a header; the
 * document is the body, or one part of a form, and may be compressed by itself.
 */
#define RESOURCE_HEADER "x-portcullis-resource"

static const struct fields_limits attribute_limits = {
	.count = 64, .name = 256, .value = 4096, .total = 16384
};

struct pprof_config {
	struct http_server_config server;
	const struct node *remote, *file, *self;
};

struct pprof_receiver {
	struct http_intake *intake;
};

struct pprof_request {
	struct http_intake_request http;
	struct fields attributes;
};

static const char *const media_types[] = {
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
	NULL,
};

static bool read_attributes(struct http_exchange *x, struct fields *f, struct error *err)
{
	const struct metadatum *query;
	if (!http_exchange_query(x, &query, err))
		return false;
	for (const struct metadatum *q = query; q->name; q++)
		if (!fields_add(f, view_of(q->name), view_of(q->value), err))
			return error_prefix(err, "query parameter");
	for (const struct metadatum *h = http_exchange_headers(x); h->name; h++)
		if (!strcmp(h->name, RESOURCE_HEADER) && !fields_add_pairs(f, h->value, err))
			return error_prefix(err, "X-Portcullis-Resource");
	return fields_unique(f, err) || error_prefix(err, "resource attribute");
}

static bool pprof_examine(struct http_intake_request *http, struct error *err)
{
	struct pprof_request *r = (struct pprof_request *)http;
	fields_init(&r->attributes, &attribute_limits);
	bool ok = read_attributes(http->exchange, &r->attributes, err);
	http->in.overhead += r->attributes.text.room;
	/* Too many or too long ones are no reason for 413: the body is not too large. */
	if (!ok)
		err->kind = ERROR_INVALID;
	return ok;
}

static void pprof_fini(struct http_intake_request *http)
{
	fields_fini(&((struct pprof_request *)http)->attributes);
}

/* The part `profile` of a form; others, which some clients send beside it, are ignored. */
static bool find_part(const char *content_type, struct view form, struct view *out,
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

static enum inbound_next pprof_next(struct inbound *in, uint32_t index, struct view body,
				    struct view *document, struct error *err)
{
	struct http_intake_request *http = (struct http_intake_request *)in;
	const char *type = http_exchange_header(http->exchange, "content-type");
	if (index)
		return INBOUND_END;
	*document = body;
	if (multipart_is(type) && !find_part(type, body, document, err))
		return INBOUND_REJECTED;
	return INBOUND_DOCUMENT;
}

static bool pprof_decode(struct inbound *in, struct profiles *profiles, struct error *err)
{
	struct pprof_request *r = (struct pprof_request *)in;
	if (!profiles->input.len)
		return error_set(err, ERROR_INVALID, "the profile is empty");
	return decode_pprof(profiles, profiles->input, fields_list(&r->attributes), err);
}

static void pprof_reply(struct http_exchange *x, const struct outcome *outcome)
{
	if (outcome->error)
		http_exchange_refuse(x, outcome->error);
	else
		http_exchange_reply(x, &(struct http_reply){ .status = 204 });
}

static const struct http_intake_route routes[] = { {
	.path = "/v1/pprof",
	.request_size = sizeof(struct pprof_request),
	.media_types = media_types,
	.media_types_hint = "application/octet-stream, application/x-protobuf, multipart/form-data",
	.examine = pprof_examine,
	.documents = {
		.next = pprof_next,
		.decode = pprof_decode,
		.packed = true,
		/* A zero among many values is a byte, and becomes a sample. */
		.tables_factor = sizeof(struct sample) + 4,
	},
	.reply = pprof_reply,
	.fini = pprof_fini,
} };

static bool pprof_create(void *self, const void *config, const struct host *host, struct error *err)
{
	struct pprof_receiver *r = self;
	(void)err;
	r->intake = http_intake_new(&(struct http_intake_options){
		.host = host,
		.config = &((const struct pprof_config *)config)->server,
		.routes = routes,
		.route_count = sizeof routes / sizeof *routes,
	});
	return true;
}

static bool pprof_start(void *self, struct error *err)
{
	struct pprof_receiver *r = self;
	return http_intake_start(r->intake, err);
}

static void pprof_stop(void *self)
{
	struct pprof_receiver *r = self;
	http_intake_stop(r->intake);
}

static void pprof_retire(void *self)
{
	struct pprof_receiver *r = self;
	http_intake_retire(r->intake);
}

static void pprof_destroy(void *self)
{
	struct pprof_receiver *r = self;
	http_intake_unref(&r->intake);
}

static bool pprof_reopen(void *self, struct error *err)
{
	struct pprof_receiver *r = self;
	return http_intake_reopen(r->intake, err);
}

static bool given(const struct node *section)
{
	return section && section->kind != NODE_NULL;
}

static bool pprof_check(const void *config, struct error *err)
{
	const struct pprof_config *c = config;
	const char *absent = given(c->remote) ? "remote"
			     : given(c->file) ? "file"
			     : given(c->self) ? "self"
					      : NULL;
	if (absent)
		return error_set(err, ERROR_CONFIG, "%s: not supported by this build; use server",
				 absent);
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
		   .help = "Not supported; setting it is an error.")

static const struct config_row rows[] = {
	CONFIG_SECTION(struct pprof_config, server, http_server_table, .key = "server",
		       .presence = PRESENCE_NONE,
		       .help = "Accepts profiles that are sent to `POST /v1/pprof`."),
	ABSENT_ROW(remote, "remote"),
	ABSENT_ROW(file, "file"),
	ABSENT_ROW(self, "self"),
	{ 0 }
};

static const struct config_table table = { sizeof(struct pprof_config), rows, pprof_check, false };

static const struct receiver_ops pprof_ops = {
	.start = pprof_start,
	.stop = pprof_stop,
	.retire = pprof_retire,
};

const struct component_factory pprof_receiver = {
	.type = "pprof",
	.help = "Receives pprof profiles over HTTP.",
	.manual = "`POST /v1/pprof` accepts one profile. It may be uncompressed or compressed "
		  "with gzip or zstd, which is recognised by its first bytes. The body is the "
		  "profile itself, with or without a `Content-Encoding`, or a "
		  "`multipart/form-data` form whose part `profile` is the profile (other parts "
		  "are ignored). `max_request_body_size` limits the body both as sent and "
		  "decompressed.\n\n"
		  "Resource attributes can be given as query parameters, `POST "
		  "/v1/pprof?service.name=checkout&region=eu`, and in the header "
		  "`X-Portcullis-Resource: service.name=checkout,region=eu` (percent-encoded, as "
		  "`OTEL_RESOURCE_ATTRIBUTES`; it may be repeated). At most 64 attributes are "
		  "accepted, with names of at most 256 bytes, values of at most 4096 bytes, and "
		  "16 KiB in total. A repeated name is an error. The values are strings, and the "
		  "policy applies to them as to all other attributes.\n\n"
		  "| Status | When |\n|---|---|\n"
		  "| 204 | accepted |\n"
		  "| 400 | malformed profile, form, query or attributes; the response names the "
		  "fault |\n"
		  "| 404, 405 | another path or method |\n"
		  "| 413 | larger than `max_request_body_size`, as sent or decompressed |\n"
		  "| 415 | another media type or Content-Encoding |\n"
		  "| 431 | the headers exceed `max_header_bytes` or `max_header_count` |\n"
		  "| 503 | memory or all queues are full, the sender has used up its share of "
		  "the memory, or the gateway is shutting down; `Retry-After` says when to "
		  "retry |\n\n"
		  "Memory is charged as a body arrives. If none is free for the next part, the "
		  "receiver stops reading for one to three seconds before it refuses the "
		  "request.\n\n"
		  "During a shutdown, accepted requests have 10 s to finish, within "
		  "`--shutdown-timeout`. New requests are refused.\n",
	.kind = COMPONENT_RECEIVER,
	.receiver = &pprof_ops,
	.size = sizeof(struct pprof_receiver),
	.config = &table,
	.create = pprof_create,
	.destroy = pprof_destroy,
	.reopen = pprof_reopen,
};
