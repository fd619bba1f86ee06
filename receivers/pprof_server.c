/* SPDX-License-Identifier: Apache-2.0 */
#include "net/fields.h"
#include "net/http/multipart.h"
#include "pipeline/intake/http_intake.h"
#include "profile/pprof/decode_pprof.h"
#include "receivers/pprof_private.h"

/*
 * `server`: pprof over HTTP, POST /v1/pprof. Resource attributes come from the query and a header;
 * the document is the body, or one part of a form, and may be compressed by itself.
 */
#define RESOURCE_HEADER "x-portcullis-resource"

static const struct fields_limits attribute_limits = {
	.count = 64, .name = 256, .value = 4096, .total = 16384
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

struct http_intake *pprof_server_new(const struct http_server_config *config,
				     const struct host *host)
{
	return http_intake_new(&(struct http_intake_options){
		.host = host,
		.config = config,
		.routes = routes,
		.route_count = sizeof routes / sizeof *routes,
	});
}
