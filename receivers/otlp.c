/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/memory.h"
#include "net/rpc_server.h"
#include "otlp_service.pb-c.h"
#include "pipeline/component.h"
#include "pipeline/inflate.h"
#include "profile/decode_otlp.h"
#include "receivers/otlp_config.h"

#include <assert.h>

/*
 * OTLP over gRPC: ProfilesService/Export. The gate sees a call's headers, then its size; a worker inflates and
 * decodes. HTTP is not there yet.
 */
#define EXPORT "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
#define STOP_GRACE_NS (10 * UINT64_C(1000000000))

enum {
	DEFAULT_MESSAGE_MIB = 4, /* grpc-go's */
	ESTIMATE_LEAST = 65536,
	ESTIMATE_FIRST = 262144
};

struct otlp_receiver {
	const struct host *host;
	const struct grpc_protocol *config;
	struct rpc_server *server;
	size_t message_max; /* on the wire, and inflated */
	size_t expected;    /* of the next message [completion-queue thread] */
};

/* One call. Freed by the reply, or when the call is refused or lost. */
struct otlp_call {
	struct inbound in;
	struct otlp_receiver *receiver;
	struct rpc_call *call;
	size_t len; /* of the message, as sent */
};

static const struct inbound_ops ops;

static const struct metric unknown_metric = {
	"otelcol_grpc_requests_refused", METRIC_COUNTER, "{requests}",
	"Calls of methods that there are not (UNIMPLEMENTED), like those of another version of OTLP."
};
static const struct metric *const metrics[] = { &unknown_metric, NULL };

static struct otlp_call *call_of(struct inbound *in)
{
	return (struct otlp_call *)((char *)in - offsetof(struct otlp_call, in));
}

static void refuse(struct otlp_call *c, const struct error *err)
{
	rpc_call_reply(c->call, err, (struct view){ 0 });
	memory_free(c);
}

/* gRPC has no content-length: what this receiver's messages have been like must do until the message is there. */
static size_t estimate(const struct otlp_receiver *r)
{
	return r->expected > ESTIMATE_LEAST ? r->expected : ESTIMATE_LEAST;
}

/* Large ones come in company: up at once, down slowly. */
static void learn_size(struct otlp_receiver *r, size_t len)
{
	size_t lower = r->expected - r->expected / 8;
	r->expected = len > lower ? len : lower;
}

static void headers(void *context, struct rpc_call *call)
{
	struct otlp_receiver *r = context;
	struct otlp_call *c = memory_new(sizeof *c);
	struct error err = { 0 };
	c->receiver = r;
	c->call = call;
	c->in.ops = &ops;
	c->in.request = (struct request){
		.receiver = r->host->id,
		.transport = "grpc",
		.peer = rpc_call_peer(call),
		.auth = rpc_call_auth(call),
		.metadata = r->config->include_metadata ? rpc_call_metadata(call) : NULL,
		.arrival = clock_now(),
		.ack = &c->in.ack,
	};
	if (!gate_admit(r->host->gate, &c->in, estimate(r), &err)) {
		learn_size(r, 0); /* if the estimate was the reason, it must not stay one */
		refuse(c, &err);
		return;
	}
	rpc_call_set_user(call, c);
	rpc_call_accept(call);
}

static void message(void *context, struct rpc_call *call, size_t len)
{
	struct otlp_receiver *r = context;
	struct otlp_call *c = rpc_call_user(call);
	struct error err = { 0 };
	learn_size(r, len);
	c->len = len;
	if (gate_charge(r->host->gate, &c->in, len, &err)) {
		gate_submit(r->host->gate, &c->in);
		return;
	}
	gate_forget(r->host->gate, &c->in, "grpc", NULL);
	refuse(c, &err);
}

static void lost(void *context, struct rpc_call *call, bool too_large)
{
	struct otlp_receiver *r = context;
	struct otlp_call *c = rpc_call_user(call);
	gate_forget(r->host->gate, &c->in, "grpc", too_large ? "too_large" : "cancelled");
	memory_free(c);
}

static enum coding coding_of(struct view body, int told)
{
	enum coding sniffed = compress_sniff(body);
	if (sniffed != CODING_IDENTITY || told == CODING_UNKNOWN)
		return sniffed;
	return (enum coding)told;
}

/* Until it has been read the message is there twice. */
static bool linearise(struct otlp_call *c, struct bytes *raw, struct error *err)
{
	struct inbound *in = &c->in;
	raw->len = 0;
	raw->max = c->receiver->message_max;
	if (!gate_charge(in->gate, in, 2 * c->len, err))
		return false;
	if (!bytes_reserve(raw, c->len ? c->len : 1) || !rpc_call_read(c->call, raw))
		return error_set(err, ERROR_TOO_LARGE, "the message has more than %zu bytes", raw->max);
	return gate_charge(in->gate, in, c->len, err);
}

static bool load(struct inbound *in, struct body *body, struct view *out, struct error *err)
{
	struct otlp_call *c = call_of(in);
	int told = rpc_call_coding(c->call);
	size_t cap = c->receiver->message_max;
	if (!linearise(c, &body->raw, err))
		return false;
	*out = bytes_view(&body->raw);
	enum coding coding = coding_of(*out, told);
	size_t held = out->len;
	if (coding == CODING_IDENTITY)
		return true;
	if (!inbound_inflate(in, coding, *out, cap, &held, &body->inflated, err))
		return false;
	*out = bytes_view(&body->inflated);
	return true;
}

static bool decode(struct inbound *in, struct profiles *profiles, struct error *err)
{
	(void)in;
	return decode_otlp(profiles, err);
}

/* The reply's bytes; none is the reply that says nothing. */
static size_t pack_response(const struct outcome *outcome, uint8_t *out, size_t room)
{
	Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesServiceResponse response =
		OPENTELEMETRY__PROTO__COLLECTOR__PROFILES__V1DEVELOPMENT__EXPORT_PROFILES_SERVICE_RESPONSE__INIT;
	Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesPartialSuccess partial =
		OPENTELEMETRY__PROTO__COLLECTOR__PROFILES__V1DEVELOPMENT__EXPORT_PROFILES_PARTIAL_SUCCESS__INIT;
	if (!outcome->rejected_profiles)
		return 0;
	partial.rejected_profiles = outcome->rejected_profiles;
	if (outcome->rejection)
		partial.error_message = (char *)outcome->rejection;
	response.partial_success = &partial;
	size_t len = protobuf_c_message_get_packed_size(&response.base);
	assert(len <= room);
	(void)room;
	return protobuf_c_message_pack(&response.base, out) == len ? len : 0;
}

static void reply(struct inbound *in, const struct outcome *outcome)
{
	struct otlp_call *c = call_of(in);
	uint8_t packed[sizeof in->rejection + 32];
	if (outcome->error) {
		refuse(c, outcome->error);
		return;
	}
	struct view response = { packed, pack_response(outcome, packed, sizeof packed) };
	rpc_call_reply(c->call, NULL, response);
	memory_free(c);
}

/* A string of some letters or a sample of few numbers is densest. */
static const struct inbound_ops ops = { load, decode, reply, .tables_factor = 16 };

static bool create(void *self, const void *config, const struct host *host, struct error *err)
{
	struct otlp_receiver *r = self;
	(void)err;
	r->host = host;
	r->config = &((const struct otlp_config *)config)->protocols.grpc;
	int64_t mib = r->config->max_recv_msg_size_mib;
	r->message_max = (size_t)(mib ? mib : DEFAULT_MESSAGE_MIB) << 20;
	r->expected = ESTIMATE_FIRST;
	return true;
}

static bool start(void *self, struct error *err)
{
	struct otlp_receiver *r = self;
	const struct grpc_protocol *config = r->config;
	const struct rpc_method export = { EXPORT, headers, message, lost, r };
	struct rpc_server_options options = {
		.endpoint = config->endpoint,
		.transport = otlp_transports[config->transport.index],
		.tls = config->tls.present.enabled ? &config->tls : NULL,
		.max_message_bytes = (int64_t)r->message_max,
		.max_core_bytes = (int64_t)gate_memory_limit(r->host->gate),
		.max_concurrent_streams = config->max_concurrent_streams,
		.max_connection_idle = config->keepalive.server.max_connection_idle,
		.max_connection_age = config->keepalive.server.max_connection_age,
		.max_connection_age_grace = config->keepalive.server.max_connection_age_grace,
		.keepalive_time = config->keepalive.server.time,
		.keepalive_timeout = config->keepalive.server.timeout,
		.min_ping_interval = config->keepalive.enforcement.min_time,
		.methods = &export,
		.method_count = 1,
		.log = &r->host->log,
		.loop = r->host->loop,
		.unknown = metrics_series(r->host->metrics, &unknown_metric, (struct metric_label[]){
			{ "receiver", r->host->log.component_id }, { NULL, NULL } }),
	};
	r->server = rpc_server_start(&options, err);
	if (r->server)
		log_info(&r->host->log, "Starting GRPC server", log_text("endpoint", config->endpoint),
			 log_number("port", rpc_server_port(r->server)));
	return r->server != NULL;
}

static void stop(void *self)
{
	struct otlp_receiver *r = self;
	rpc_server_stop(&r->server, STOP_GRACE_NS);
}

static bool reload(void *self, struct error *err)
{
	struct otlp_receiver *r = self;
	return !r->server || rpc_server_reload(r->server, err);
}

const struct component_factory otlp_receiver = {
	.type = "otlp",
	.metrics = metrics,
	.help = "Takes profiles by OTLP over gRPC.",
	.manual = "Messages may be plain, gzip, deflate or zstd, whatever `grpc-encoding` says: what they are is "
		  "seen from their first bytes. `max_recv_msg_size_mib` holds for the message as sent and for "
		  "what it inflates to. A message must arrive within 60 s of its headers.\n\n"
		  "A refusal comes before the body where it can: UNAVAILABLE with RetryInfo when memory or all "
		  "queues are full. INVALID_ARGUMENT names the field that cannot be decoded; when only some "
		  "profiles of a request cannot, the reply is OK with `partial_success`.\n\n"
		  "The same port answers `grpc.health.v1.Health/Check` and `Watch`.\n\n"
		  "A stop gives accepted calls 10 s, within `--shutdown-timeout`; new ones are refused meanwhile.\n",
	.kind = COMPONENT_RECEIVER,
	.size = sizeof(struct otlp_receiver),
	.config = &otlp_config_table,
	.create = create,
	.start = start,
	.stop = stop,
	.destroy = stop,
	.reload = reload,
};
