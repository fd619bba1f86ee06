/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/memory.h"
#include "net/compress.h"
#include "net/h2/rpc.h"
#include "otlp_service.pb-c.h"
#include "pipeline/component.h"
#include "pipeline/intake/inflate.h"
#include "profile/otlp/decode_otlp.h"
#include "receivers/otlp_config.h"

#include <assert.h>

/*
 * OTLP over gRPC: ProfilesService/Export. The gate sees a call's headers, then each step by which
 * its message grows. A small message is run to completion on its I/O thread, a large one by a
 * worker. OTLP over HTTP is not supported yet.
 */
#define EXPORT "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
#define STOP_GRACE_NS (10 * UINT64_C(1000000000))

enum {
	DEFAULT_MESSAGE_MIB = 4, /* grpc-go's */
	/* What an I/O thread runs itself. A message of this size, inflated, takes less than a
	 * millisecond with every processor (docs/GRPC.md); after this much of one connection in a
	 * turn the rest goes to workers. */
	INLINE_BYTES = 65536,
	INLINE_TURN_BYTES = 524288,
	/* what a compressed message counts at least in a turn, whatever it says that it inflates to
	 */
	COMPRESSED_MIN = 16384,
	/* of a call's structures, beside GATE_REQUEST_BYTES; its headers come on top */
	CALL_BYTES = 2048
};

struct otlp_receiver {
	const struct host *host;
	const struct grpc_protocol *config;
	struct rpc_server *server;
	size_t message_max; /* on the wire, and inflated */
};

/* One call. Freed by the reply, or when the call is refused or lost. */
struct otlp_call {
	struct inbound in;
	struct otlp_receiver *receiver;
	struct rpc_call *call;
};

static const struct inbound_ops ops;

static const struct metric unknown_metric = {
	"otelcol_grpc_server_refused_requests", METRIC_COUNTER, "{requests}",
	"Calls of unknown methods (UNIMPLEMENTED), such as those of another version of OTLP."
};
static const struct metric *const metrics[] = { &unknown_metric, H2_METRICS, NULL };

static struct otlp_call *call_of(struct inbound *in)
{
	return (struct otlp_call *)((char *)in - offsetof(struct otlp_call, in));
}

static void refuse(struct otlp_call *c, const struct error *err)
{
	rpc_call_reply(c->call, err, (struct view){ 0 });
	memory_free(c);
}

static void headers(void *context, struct rpc_call *call)
{
	struct otlp_receiver *r = context;
	struct otlp_call *c = memory_new(sizeof *c);
	struct error err = { 0 };
	c->receiver = r;
	c->call = call;
	c->in.ops = &ops;
	c->in.overhead = CALL_BYTES + rpc_call_header_bytes(call);
	c->in.request = (struct request){
		.receiver = r->host->id,
		.transport = "grpc",
		.peer = rpc_call_peer(call),
		.auth = rpc_call_auth(call),
		.metadata = r->config->include_metadata ? rpc_call_metadata(call) : NULL,
		.arrival = clock_now(),
		.ack = &c->in.ack,
	};
	if (!gate_admit(r->host->gate, &c->in, 0, &err)) {
		refuse(c, &err);
		return;
	}
	rpc_call_set_user(call, c);
	rpc_call_accept(call);
}

static bool grow(void *context, struct rpc_call *call, size_t bytes, struct error *err)
{
	struct otlp_receiver *r = context;
	struct otlp_call *c = rpc_call_user(call);
	return gate_charge(r->host->gate, &c->in, bytes, err);
}

/* The first bytes are believed rather than the header: senders name the wrong one. */
static bool find_coding(struct view body, int said, enum coding *out, struct error *err)
{
	*out = compress_sniff(body);
	if (*out == CODING_IDENTITY && said == CODING_UNKNOWN)
		return error_set(err, ERROR_UNSUPPORTED,
				 "grpc-encoding: not one of identity, deflate, gzip, zstd");
	if (*out == CODING_IDENTITY)
		*out = (enum coding)said;
	return true;
}

/* By what it says of itself; load finds out what is true. */
static bool is_small(struct otlp_call *c)
{
	struct view body = bytes_view(rpc_call_body(c->call));
	enum coding coding;
	if (body.len > INLINE_BYTES || !find_coding(body, rpc_call_coding(c->call), &coding, NULL))
		return false;
	size_t size = compress_stated_size(coding, body);
	if (size > INLINE_BYTES)
		return false;
	if (coding != CODING_IDENTITY)
		rpc_call_count_turn(c->call, size > COMPRESSED_MIN ? size : COMPRESSED_MIN);
	return rpc_call_turn_bytes(c->call) <= INLINE_TURN_BYTES;
}

static void message(void *context, struct rpc_call *call)
{
	struct otlp_receiver *r = context;
	struct otlp_call *c = rpc_call_user(call);
	if (is_small(c))
		gate_run_here(r->host->gate, &c->in, rpc_call_thread(call));
	else
		gate_submit(r->host->gate, &c->in);
}

static void lost(void *context, struct rpc_call *call, enum rpc_loss why)
{
	static const char *const reasons[] = {
		[RPC_TOO_LARGE] = "too_large", [RPC_CANCELLED] = "cancelled",
		[RPC_LATE] = "cancelled",      [RPC_INVALID] = "invalid",
		[RPC_REFUSED] = NULL, /* by gate_charge */
	};
	struct otlp_receiver *r = context;
	struct otlp_call *c = rpc_call_user(call);
	gate_forget(r->host->gate, &c->in, "grpc", reasons[why]);
	memory_free(c);
}

static bool load(struct inbound *in, struct body *body, struct view *out, struct error *err)
{
	struct otlp_call *c = call_of(in);
	enum coding coding;
	*out = bytes_view(rpc_call_body(c->call));
	size_t held = out->len;
	if (!find_coding(*out, rpc_call_coding(c->call), &coding, err))
		return false;
	if (coding == CODING_IDENTITY)
		return true;
	size_t max = c->receiver->message_max;
	if (!inbound_inflate(in, coding, *out, in->here && INLINE_BYTES < max ? INLINE_BYTES : max,
			     &held, &body->inflated, err)) {
		in->moves = in->here && err->kind == ERROR_TOO_LARGE &&
			    gate_charge(in->gate, in, out->len, err);
		return false;
	}
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
	return true;
}

static struct metric_series *unknown_series(const struct otlp_receiver *r)
{
	const struct metric_label labels[] = { { "receiver", r->host->log.component_id }, { 0 } };
	return metrics_series(r->host->metrics, &unknown_metric, labels);
}

static bool start(void *self, struct error *err)
{
	struct otlp_receiver *r = self;
	const struct grpc_protocol *config = r->config;
	const struct rpc_method export = { EXPORT, headers, grow, message, lost, r };
	const struct keepalive_server *server = &config->keepalive.server;
	const struct keepalive_enforcement *pings = &config->keepalive.enforcement;
	struct rpc_server_options options = {
		.h2 = {
			.endpoint = config->endpoint,
			.transport = otlp_transports[config->transport.index],
			.tls = config->tls.present.enabled ? &config->tls : NULL,
			.limits = config->limits,
			.max_concurrent_streams = config->max_concurrent_streams,
			.read_buffer_bytes = (size_t)config->read_buffer_size,
			.write_buffer_bytes = (size_t)config->write_buffer_size,
			.max_connection_idle = server->max_connection_idle,
			.max_connection_age = server->max_connection_age,
			.max_connection_age_grace = server->max_connection_age_grace,
			.keepalive_time = server->time,
			.keepalive_timeout = server->timeout,
			.min_ping_interval = pings->min_time,
			.pings_without_streams = pings->permit_without_stream,
			.budget = gate_net_budget(r->host->gate),
			.io = r->host->io,
			.loop = r->host->loop,
			.log = &r->host->log,
			.metrics = r->host->metrics,
			.name = r->host->log.component_id,
		},
		.max_message_bytes = (int64_t)r->message_max,
		.methods = &export,
		.method_count = 1,
		.unknown = unknown_series(r),
	};
	r->server = rpc_server_start(&options, err);
	if (r->server)
		log_info(&r->host->log, "Starting GRPC server",
			 log_text("endpoint", config->endpoint),
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

static const struct receiver_ops otlp_ops = {
	.start = start,
	.stop = stop,
};

const struct component_factory otlp_receiver = {
	.type = "otlp",
	.metrics = metrics,
	.help = "Takes profiles by OTLP over gRPC.",
	.manual = "Messages may be plain, gzip, deflate or zstd. gzip and zstd are recognised by "
		  "their first bytes, whatever `grpc-encoding` says; deflate by `grpc-encoding`. "
		  "`max_recv_msg_size_mib` holds for the message as sent and for what it inflates "
		  "to. A message must arrive within 60 s of its headers.\n\n"
		  "Requests are refused before the body where possible: UNAVAILABLE with "
		  "RetryInfo when memory is short or all queues are full. When memory becomes "
		  "short while a message arrives, the client is held back for up to two seconds "
		  "first. INVALID_ARGUMENT names the field that cannot be decoded; when only some "
		  "profiles of a request cannot, the reply is OK with `partial_success`.\n\n"
		  "With `tls`, clients must offer `h2` by ALPN.\n\n"
		  "The same port answers `grpc.health.v1.Health/Check` and `Watch`.\n\n"
		  "A stop gives accepted calls 10 s, within `--shutdown-timeout`; new ones are "
		  "refused meanwhile.\n",
	.kind = COMPONENT_RECEIVER,
	.receiver = &otlp_ops,
	.size = sizeof(struct otlp_receiver),
	.config = &otlp_config_table,
	.create = create,
	.destroy = stop,
	.reopen = reload,
};
