/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/connect.h"
#include "profile/json_wire.h"
#include "profile/pprof/decode_pprof.h"
#include "profile/stores/raw_request.h"
#include "receivers/pyroscope_private.h"

#include <strings.h>

/*
 * push.v1.PusherService/Push over Connect (connectrpc.com, unary requests): a PushRequest as
 * protobuf or JSON. Each RawSample is a document. If only some documents are rejected, the response
 * is an error nevertheless, because an empty PushResponse cannot report it; what is valid stays
 * accepted. The newest Pyroscope does the same.
 */
struct push {
	struct http_intake_request http;
	struct raw_request request;
};

static const char *const media_types[] = { "application/proto", "application/json", NULL };

/* Annotations are not read. */
JSON_WIRE_TABLE(label_pair, JSON_WIRE_FIELD(1, "name", STRING),
		JSON_WIRE_FIELD(2, "value", STRING));
JSON_WIRE_TABLE(raw_sample, JSON_WIRE_FIELD(1, "rawProfile", BASE64));
JSON_WIRE_TABLE(raw_series, JSON_WIRE_MANY(1, "labels", label_pair),
		JSON_WIRE_MANY(2, "samples", raw_sample));
JSON_WIRE_TABLE(push_request, JSON_WIRE_MANY(1, "series", raw_series));

static bool is_json(struct http_exchange *x)
{
	static const char json[] = "application/json";
	const char *type = http_exchange_header(x, "content-type");
	return type && !strncasecmp(type, json, sizeof json - 1);
}

static bool push_translate(struct inbound *in, struct view *body, struct bytes *out,
			   struct error *err)
{
	struct push *r = (struct push *)in;
	if (!is_json(r->http.exchange))
		return true;
	if (!json_wire_translate(&push_request, *body, out, NULL, err))
		return false;
	*body = bytes_view(out);
	return true;
}

static bool push_examine(struct http_intake_request *http, struct error *err)
{
	(void)err;
	http->in.overhead += sizeof(struct push);
	return true;
}

/* Without __delta__, the store computes the difference between the profiles of a series. */
static void settle_labels(struct push *r)
{
	struct label_set *set = &r->request.labels;
	if (!label_set_find(set, view_of("__delta__")))
		label_set_put(set, (struct label_text){ view_of("__delta__"), view_of("true") });
	pyroscope_lose(&r->http, PYROSCOPE_DUPLICATE, label_set_name_service(set));
}

static bool open_request(struct push *r, struct view body, struct error *err)
{
	r->request.form = RAW_REQUEST_PUSH;
	r->request.limits = pyroscope_of(&r->http)->limits;
	return raw_request_open(&r->request, body, err) &&
	       (r->request.profiles ||
		error_set(err, ERROR_INVALID, "the request has no profiles"));
}

static enum inbound_next push_next(struct inbound *in, uint32_t index, struct view body,
				   struct view *document, struct error *err)
{
	struct push *r = (struct push *)in;
	if (!index && !open_request(r, body, err))
		return INBOUND_REJECTED;
	switch (raw_request_next(&r->request, document, err)) {
	case RAW_REQUEST_PROFILE:
		settle_labels(r);
		return INBOUND_DOCUMENT;
	case RAW_REQUEST_REJECTED:
		return INBOUND_REJECTED;
	default:
		return INBOUND_END;
	}
}

static bool push_decode(struct inbound *in, struct profiles *p, struct error *err)
{
	struct push *r = (struct push *)in;
	if (!p->input.len)
		return error_set(err, ERROR_INVALID, "the profile is empty");
	return decode_pprof(p, p->input, NULL, err) &&
	       label_set_attach(&r->request.labels, p, &p->resources.at[0], err);
}

static void push_reply(struct http_exchange *x, const struct outcome *outcome)
{
	bool json = is_json(x);
	struct error partial;
	if (outcome->error)
		connect_refuse(x, 0, outcome->error);
	else if (inbound_in_part(outcome, &partial))
		connect_refuse(x, 0, &partial);
	else
		http_exchange_reply(x, &(struct http_reply){
					       .status = 200,
					       .content_type = json ? "application/json"
								    : "application/proto",
					       .body = view_of(json ? "{}" : ""),
				       });
}

const struct http_intake_route pyroscope_push_route = {
	.path = "/push.v1.PusherService/Push",
	.request_size = sizeof(struct push),
	.media_types = media_types,
	.media_types_hint = "application/proto, application/json",
	.examine = push_examine,
	.documents = {
		.translate = push_translate,
		.next = push_next,
		.decode = push_decode,
		.packed = true,
		.tables_factor = sizeof(struct sample) + 4,
	},
	.reply = push_reply,
};
