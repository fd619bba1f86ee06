/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "pipeline/intake/http_intake.h"
#include "profile/pprof/decode_pprof.h"

/*
 * A receiver for tests: POST /frames takes pprofs, each after its length (4 bytes, big-endian), and
 * answers in JSON, errors too.
 */
struct frames_receiver {
	struct http_intake *intake;
};

struct frames_request {
	struct http_intake_request http;
	size_t at; /* the next frame */
};

static enum inbound_next frames_next(struct inbound *in, uint32_t index, struct view body,
				     struct view *document, struct error *err)
{
	struct frames_request *r = (struct frames_request *)in;
	size_t left = body.len - (r->at = index ? r->at : 0);
	const uint8_t *head = body.at + r->at;
	if (!left)
		return INBOUND_END;
	size_t len = left < 4 ? SIZE_MAX
			      : (size_t)head[0] << 24 | head[1] << 16 | head[2] << 8 | head[3];
	if (left < 4 || len > left - 4) {
		r->at = body.len;
		error_set(err, ERROR_INVALID, "the frame is cut short");
		return INBOUND_REJECTED;
	}
	r->at += 4 + len;
	*document = (struct view){ head + 4, len };
	return INBOUND_DOCUMENT;
}

static bool frames_decode(struct inbound *in, struct profiles *profiles, struct error *err)
{
	(void)in;
	return decode_pprof(profiles, profiles->input, NULL, err);
}

static void frames_reply(struct http_exchange *x, const struct outcome *outcome)
{
	char text[512];
	const struct error *err = outcome->error;
	snprintf(text, sizeof text, "{\"rejected\": %u, \"message\": \"%s\"}",
		 outcome->rejected_profiles,
		 err                  ? err->text
		 : outcome->rejection ? outcome->rejection
				      : "");
	http_exchange_reply(x, &(struct http_reply){
				       .status = err ? http_status_of(err) : 200,
				       .content_type = "application/json",
				       .body = view_of(text),
			       });
}

static const struct http_intake_route routes[] = { {
	.path = "/frames",
	.request_size = sizeof(struct frames_request),
	.documents = { .next = frames_next,
		       .decode = frames_decode,
		       .packed = true,
		       .tables_factor = 40 },
	.reply = frames_reply,
} };

static bool frames_create(void *self, const void *config, const struct host *host,
			  struct error *err)
{
	struct frames_receiver *r = self;
	(void)err;
	r->intake = http_intake_new(&(struct http_intake_options){
		.host = host, .config = config, .routes = routes, .route_count = 1 });
	return true;
}

static bool frames_start(void *self, struct error *err)
{
	return http_intake_start(((struct frames_receiver *)self)->intake, err);
}

static void frames_stop(void *self)
{
	http_intake_stop(((struct frames_receiver *)self)->intake);
}

static void frames_destroy(void *self)
{
	http_intake_unref(&((struct frames_receiver *)self)->intake);
}

static const struct receiver_ops frames_ops = { .start = frames_start, .stop = frames_stop };

const struct component_factory frames_receiver = {
	.type = "frames",
	.help = "Takes framed pprofs by HTTP.",
	.kind = COMPONENT_RECEIVER,
	.receiver = &frames_ops,
	.size = sizeof(struct frames_receiver),
	.config = &http_server_table,
	.create = frames_create,
	.destroy = frames_destroy,
};
