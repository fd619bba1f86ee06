/* SPDX-License-Identifier: Apache-2.0 */
#include "receivers/otlp_http.h"

#include "base/memory.h"
#include "base/quote.h"
#include "net/h2/rpc_status.h"
#include "profile/otlp/otlp_json.h"
#include "receivers/otlp_response.h"

#include <strings.h>

struct otlp_http {
	struct http_intake *intake;
	struct http_intake_route routes[];
};

enum encoding { ENCODING_NONE, ENCODING_PROTOBUF, ENCODING_JSON };

static const char *const media_types[] = {
	[ENCODING_PROTOBUF] = "application/x-protobuf",
	[ENCODING_JSON] = "application/json",
};

enum { REPLY_MAX = 2048 };

static enum encoding encoding_of(struct http_exchange *x)
{
	const char *type = http_exchange_header(x, "content-type");
	size_t len = type ? strcspn(type, "; \t") : 0;
	for (int i = ENCODING_PROTOBUF; i <= ENCODING_JSON; i++)
		if (strlen(media_types[i]) == len && !strncasecmp(type, media_types[i], len))
			return (enum encoding)i;
	return ENCODING_NONE;
}

static bool otlp_http_examine(struct http_intake_request *r, struct error *err)
{
	return encoding_of(r->exchange) != ENCODING_NONE ||
	       error_set(err, ERROR_UNSUPPORTED, "unsupported media type, supported: [%s, %s]",
			 media_types[ENCODING_JSON], media_types[ENCODING_PROTOBUF]);
}

/* JSON becomes protobuf in the current layout. */
static bool otlp_http_translate(struct inbound *in, struct view *body, struct bytes *out,
				struct error *err)
{
	struct http_intake_request *r = (struct http_intake_request *)in;
	enum otlp_generation generation;
	if (encoding_of(r->exchange) != ENCODING_JSON)
		return otlp_documents_translate(in, body, out, err);
	if (!otlp_json_translate(*body, out, &generation, err))
		return false;
	otlp_documents_settle(in, generation);
	*body = bytes_view(out);
	return true;
}

static void send(struct http_exchange *x, enum encoding encoding, struct http_reply reply)
{
	reply.content_type = media_types[encoding];
	http_exchange_reply(x, &reply);
}

static void reply_accepted(struct http_exchange *x, const struct outcome *outcome)
{
	enum encoding encoding = encoding_of(x);
	uint8_t message[OTLP_RESPONSE_MAX] = "\x0a";
	struct bytes body;
	bytes_init(&body, REPLY_MAX);
	if (encoding == ENCODING_JSON) {
		otlp_response_json(outcome, &body);
	} else {
		size_t len = otlp_response_pack(outcome, message);
		bytes_add(&body, message, len ? len : 2);
	}
	send(x, encoding, (struct http_reply){ .status = 200, .body = bytes_view(&body) });
	bytes_fini(&body);
}

static void status_json(int code, const char *message, uint32_t retry_s, struct bytes *out)
{
	bytes_format(out, "{\"code\":%d,\"message\":", code);
	quote_json(out, message, strlen(message));
	if (retry_s)
		bytes_format(out,
			     ",\"details\":[{\"@type\":\"type.googleapis.com/"
			     "google.rpc.RetryInfo\",\"retryDelay\":\"%us\"}]",
			     retry_s);
	bytes_add_text(out, "}");
}

static void reply_status(struct http_exchange *x, enum encoding encoding, const struct error *err)
{
	struct error shown = *err;
	uint32_t retry_s = http_retry_after_s(err);
	uint8_t message[sizeof err->text + RPC_STATUS_BYTES];
	struct bytes body;
	bytes_init(&body, REPLY_MAX);
	/* of a known type, it is the Content-Encoding that is unsupported: 400 in the Collector */
	if (err->kind == ERROR_UNSUPPORTED)
		shown.kind = ERROR_INVALID;
	if (encoding == ENCODING_PROTOBUF)
		bytes_add(&body, message,
			  rpc_status_pack(rpc_status(&shown), err->text,
					  retry_s ? (int64_t)retry_s * 1000 : -1, message,
					  sizeof message));
	else
		status_json(rpc_status(&shown), err->text, retry_s, &body);
	send(x, encoding,
	     (struct http_reply){ .status = http_status_of(&shown),
				  .body = bytes_view(&body),
				  .retry_after_s = retry_s });
	bytes_fini(&body);
}

static void reply_media_type(struct http_exchange *x, const struct error *err)
{
	char *text = memory_format("415 %s", err->text);
	http_exchange_reply(x, &(struct http_reply){ .status = 415,
						     .content_type = "text/plain; charset=utf-8",
						     .body = view_of(text) });
	memory_free(text);
}

static void otlp_http_reply(struct http_exchange *x, const struct outcome *outcome)
{
	enum encoding encoding = encoding_of(x);
	if (!outcome->error)
		reply_accepted(x, outcome);
	else if (encoding == ENCODING_NONE && outcome->error->kind == ERROR_UNSUPPORTED)
		reply_media_type(x, outcome->error);
	else
		reply_status(x, encoding ? encoding : ENCODING_JSON, outcome->error);
}

struct otlp_http *otlp_http_new(const struct host *host, struct otlp_documents *documents,
				const struct otlp_http_config *config)
{
	const struct strings *paths = &config->profiles_url_paths;
	struct otlp_http *http =
		memory_new(sizeof *http + paths->count * sizeof(struct http_intake_route));
	for (size_t i = 0; i < paths->count; i++) {
		struct http_intake_route *route = &http->routes[i];
		*route = (struct http_intake_route){
			.path = paths->at[i],
			.request_size = sizeof(struct http_intake_request),
			.examine = otlp_http_examine,
			.documents = OTLP_DOCUMENTS,
			.reply = otlp_http_reply,
		};
		route->documents.translate = otlp_http_translate;
	}
	http->intake = http_intake_new(&(struct http_intake_options){
		.host = host,
		.receiver = documents,
		.config = &config->server,
		.routes = http->routes,
		.route_count = paths->count,
	});
	return http;
}

struct http_intake *otlp_http_intake(struct otlp_http *http)
{
	return http->intake;
}

void otlp_http_free(struct otlp_http *http)
{
	if (!http)
		return;
	http_intake_unref(&http->intake);
	memory_free(http);
}
