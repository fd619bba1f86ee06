/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/intake/grpc_intake.h"
#include "profile/pprof/decode_pprof.h"
#include "profile/wire.h"

/*
 * A receiver for tests: test.Push/Push takes `message { repeated bytes pprof = 1; }` and answers
 * `message { uint32 rejected = 1; }`.
 */
struct push_receiver {
	struct grpc_intake *intake;
};

/* Counts fields from the start, so that it needs no place in a request of its own. */
static enum inbound_next push_next(struct inbound *in, uint32_t index, struct view body,
				   struct view *document, struct error *err)
{
	struct wire w = wire_of(body);
	uint32_t found = 0;
	(void)in;
	while (wire_more(&w)) {
		uint32_t tag = wire_tag(&w);
		if (tag != WIRE_TAG(1, WIRE_LEN)) {
			wire_skip(&w, tag);
			continue;
		}
		*document = wire_len(&w);
		if (!w.fault && found++ == index)
			return INBOUND_DOCUMENT;
	}
	if (wire_done(&w) || index > found)
		return INBOUND_END;
	error_set(err, ERROR_INVALID, "the message is cut short");
	return INBOUND_REJECTED;
}

static bool push_decode(struct inbound *in, struct profiles *profiles, struct error *err)
{
	(void)in;
	return decode_pprof(profiles, profiles->input, NULL, err);
}

static size_t push_respond(const struct outcome *outcome, uint8_t *out)
{
	out[0] = WIRE_TAG(1, WIRE_VARINT);
	out[1] = (uint8_t)outcome->rejected_profiles;
	return 2;
}

static const struct grpc_intake_method methods[] = { {
	.path = "/test.Push/Push",
	.request_size = sizeof(struct grpc_intake_request),
	.documents = { .next = push_next,
		       .decode = push_decode,
		       .packed = true,
		       .tables_factor = 40 },
	.respond = push_respond,
} };

static bool push_create(void *self, const void *config, const struct host *host, struct error *err)
{
	struct push_receiver *r = self;
	(void)err;
	r->intake = grpc_intake_new(&(struct grpc_intake_options){
		.host = host, .config = config, .methods = methods, .method_count = 1 });
	return true;
}

static bool push_start(void *self, struct error *err)
{
	return grpc_intake_start(((struct push_receiver *)self)->intake, err);
}

static void push_stop(void *self)
{
	grpc_intake_stop(((struct push_receiver *)self)->intake);
}

static void push_destroy(void *self)
{
	grpc_intake_unref(&((struct push_receiver *)self)->intake);
}

static const struct receiver_ops push_ops = { .start = push_start, .stop = push_stop };

static const struct config_row rows[] = { RPC_SERVER_ROWS("localhost:0"), { 0 } };
static const struct config_table table = { sizeof(struct rpc_server_config), rows,
					   rpc_server_check };

const struct component_factory push_receiver = {
	.type = "push",
	.help = "Takes pprofs by gRPC.",
	.kind = COMPONENT_RECEIVER,
	.receiver = &push_ops,
	.size = sizeof(struct push_receiver),
	.config = &table,
	.create = push_create,
	.destroy = push_destroy,
};
