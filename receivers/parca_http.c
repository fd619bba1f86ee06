/* SPDX-License-Identifier: Apache-2.0 */
#include "base/quote.h"
#include "net/h2/rpc_status.h"
#include "profile/json_wire.h"
#include "receivers/parca_private.h"

/*
 * What gRPC-gateway serves below /api for Parca: the request is ProtoJSON, whatever its
 * Content-Type is; an error is google.rpc.Status in JSON.
 */

/* clang-format off */
JSON_WIRE_TABLE(label,
	JSON_WIRE_FIELD(1, "name", STRING),
	JSON_WIRE_FIELD(2, "value", STRING)
);
JSON_WIRE_TABLE(label_set,
	JSON_WIRE_MANY(1, "labels", label)
);
JSON_WIRE_TABLE(load_segment,
	JSON_WIRE_FIELD(1, "offset", UINT64),
	JSON_WIRE_FIELD(2, "vaddr", UINT64)
);
JSON_WIRE_TABLE(executable_info,
	JSON_WIRE_FIELD(1, "elfType", UINT32),
	JSON_WIRE_ONE(2, "loadSegment", load_segment)
);
JSON_WIRE_TABLE(raw_sample,
	JSON_WIRE_FIELD(1, "rawProfile", BASE64),
	JSON_WIRE_MANY(2, "executableInfo", executable_info)
);
JSON_WIRE_TABLE(raw_series,
	JSON_WIRE_ONE(1, "labels", label_set),
	JSON_WIRE_MANY(2, "samples", raw_sample)
);
JSON_WIRE_TABLE(write_raw_request,
	JSON_WIRE_MANY(2, "series", raw_series),
	JSON_WIRE_FIELD(3, "normalized", BOOL)
);
/* clang-format on */

static bool parca_http_translate(struct inbound *in, struct view *body, struct bytes *out,
				 struct error *err)
{
	(void)in;
	if (!json_wire_translate(&write_raw_request, *body, out, NULL, err))
		return false;
	*body = bytes_view(out);
	return true;
}

static bool parca_http_examine(struct http_intake_request *http, struct error *err)
{
	(void)err;
	http->in.overhead += sizeof(struct parca_request) - sizeof *http;
	return true;
}

static void reply_error(struct http_exchange *x, int status, const struct error *err)
{
	uint32_t wait = err->retry_after_ms ? (err->retry_after_ms + 999) / 1000 : 1;
	struct bytes body;
	bytes_init(&body, 128 + 6 * sizeof err->text); /* an escape has six characters */
	bytes_format(&body, "{\"code\":%d,\"message\":", rpc_status(err));
	quote_json(&body, err->text, strlen(err->text));
	bytes_add_text(&body, ",\"details\":[]}");
	http_exchange_reply(x, &(struct http_reply){
				       .status = status,
				       .content_type = "application/json",
				       .body = bytes_view(&body),
				       .retry_after_s = err->kind == ERROR_BUSY ? wait : 0,
			       });
	bytes_fini(&body);
}

static void parca_http_reply(struct http_exchange *x, const struct outcome *outcome)
{
	struct error partial;
	if (outcome->error)
		reply_error(x, http_status_of(outcome->error), outcome->error);
	else if (inbound_in_part(outcome, &partial))
		reply_error(x, http_status_of(&partial), &partial);
	else
		http_exchange_reply(x, &(struct http_reply){ .status = 200,
							     .content_type = "application/json",
							     .body = view_of("{}") });
}

/* ---- Arrow */

static bool parca_arrow_examine(struct http_intake_request *http, struct error *err)
{
	(void)http;
	return error_set(err, ERROR_UNSUPPORTED, PARCA_NO_ARROW);
}

static void parca_arrow_reply(struct http_exchange *x, const struct outcome *outcome)
{
	reply_error(x, 501, outcome->error);
}

#define ARROW_ROUTE(path_) \
	{ \
		.path = path_, .request_size = sizeof(struct http_intake_request), \
		.examine = parca_arrow_examine, .reply = parca_arrow_reply, \
		.documents = { .decode = parca_documents_decode, .tables_factor = 1 }, \
	}

const struct http_intake_route parca_http_routes[PARCA_ROUTES] = {
	{
		.path = "/api/profiles/writeraw",
		.request_size = sizeof(struct parca_request),
		.examine = parca_http_examine,
		.documents = { .translate = parca_http_translate, PARCA_DOCUMENTS },
		.reply = parca_http_reply,
	},
	ARROW_ROUTE("/api/profiles/write"),
	ARROW_ROUTE("/api/profiles/writearrow"),
};
