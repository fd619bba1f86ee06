/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/intake/grpc_intake.h"

#include "base/clock.h"
#include "base/memory.h"
#include "net/h2/rpc.h"
#include "pipeline/intake/handoff.h"

#include <assert.h>

#define STOP_GRACE_NS (10 * UINT64_C(1000000000))

/* the size of a call's structures, in addition to GATE_REQUEST_BYTES and its headers */
enum { CALL_BYTES = 2048 };

/* A method as it is registered with the server. */
struct bound {
	struct grpc_intake *intake;
	const struct grpc_intake_method *method;
	struct inbound_ops ops;
};

struct grpc_intake {
	struct grpc_intake_options options;
	struct rpc_server *server;
	struct authenticator *authenticator; /* NULL: none */
	struct size_limit message_limit;     /* compressed, and decompressed */
	struct bound bound[];
};

const struct metric grpc_intake_refused_metric = {
	"otelcol_grpc_server_refused_requests", METRIC_COUNTER, "{requests}",
	"Calls that the server refused before they reached the receiver, by reason: "
	"unknown_method (UNIMPLEMENTED, also of methods that are not supported, and of another "
	"version of OTLP), unauthenticated, header (limits.max_headers or limits.max_header_bytes)."
};

static struct gate *gate_of(const struct grpc_intake_request *r)
{
	return r->in.gate;
}

static void request_free(struct grpc_intake_request *r)
{
	if (r->method->fini)
		r->method->fini(r);
	gate_leave(gate_of(r));
	memory_free(r);
}

static struct grpc_intake_request *request_new(struct bound *b, struct rpc_call *call)
{
	const struct grpc_intake_options *o = &b->intake->options;
	struct grpc_intake_request *r = memory_new(b->method->request_size);
	r->intake = b->intake;
	r->method = b->method;
	r->call = call;
	r->in.ops = &b->ops;
	r->in.gate = entrance_take(o->host->entrance);
	r->in.receiver = o->receiver;
	r->in.overhead =
		CALL_BYTES + rpc_call_header_bytes(call) + b->method->request_size - sizeof *r;
	r->in.request = (struct request){
		.receiver = o->host->id,
		.transport = TRANSPORT_GRPC,
		.peer = rpc_call_peer(call),
		.auth = rpc_call_auth(call),
		.metadata = o->config->include_metadata ? rpc_call_metadata(call) : NULL,
		.arrival = clock_now(),
		.ack = &r->in.ack,
	};
	r->in.headers = gate_wants_headers(gate_of(r)) ? rpc_call_metadata(call) : NULL;
	return r;
}

static void headers(void *context, struct rpc_call *call)
{
	struct grpc_intake_request *r = request_new(context, call);
	struct error err = { 0 };
	if (!gate_admit(gate_of(r), &r->in, 0, &err)) {
		rpc_call_reply(call, &err, (struct view){ 0 });
		request_free(r);
		return;
	}
	rpc_call_set_user(call, r);
	rpc_call_accept(call);
}

static bool grow(void *context, struct rpc_call *call, size_t bytes, struct error *err)
{
	struct grpc_intake_request *r = rpc_call_user(call);
	(void)context;
	return gate_charge(gate_of(r), &r->in, bytes, err);
}

/* The first bytes take precedence over the header, because senders name the wrong coding. */
static bool find_coding(struct view body, int said, enum coding *out, struct error *err)
{
	*out = compress_sniff(body);
	if (*out == CODING_IDENTITY && said == CODING_UNKNOWN)
		return error_set(err, ERROR_UNSUPPORTED,
				 "grpc-encoding: must be identity, deflate, gzip, "
				 "snappy or zstd");
	if (*out == CODING_IDENTITY)
		*out = (enum coding)said;
	return true;
}

static void message(void *context, struct rpc_call *call)
{
	struct grpc_intake_request *r = rpc_call_user(call);
	struct view body = bytes_view(rpc_call_body(call));
	enum coding coding = CODING_UNKNOWN;
	(void)context;
	find_coding(body, rpc_call_coding(call), &coding, NULL);
	handoff_request(gate_of(r), &r->in, rpc_call_thread(call), &r->method->documents, coding,
			body);
}

static void lost(void *context, struct rpc_call *call, enum rpc_loss why)
{
	static const enum refusal reasons[] = {
		[RPC_TOO_LARGE] = REFUSAL_TOO_LARGE, [RPC_CANCELLED] = REFUSAL_CANCELLED,
		[RPC_LATE] = REFUSAL_CANCELLED,      [RPC_INVALID] = REFUSAL_INVALID,
		[RPC_REFUSED] = REFUSAL_NONE, /* by gate_charge */
	};
	struct grpc_intake_request *r = rpc_call_user(call);
	(void)context;
	gate_forget(gate_of(r), &r->in, reasons[why]);
	request_free(r);
}

static bool load(struct inbound *in, struct body *buffers, struct error *err)
{
	struct grpc_intake_request *r = (struct grpc_intake_request *)in;
	struct view body = bytes_view(rpc_call_body(r->call));
	enum coding coding;
	return find_coding(body, rpc_call_coding(r->call), &coding, err) &&
	       documents_load(&r->documents, &r->method->documents, in, buffers, coding, body,
			      &r->intake->message_limit, HANDOFF_INLINE_BYTES, err);
}

static enum inbound_next next(struct inbound *in, struct body *buffers, struct view *document,
			      struct error *err)
{
	struct grpc_intake_request *r = (struct grpc_intake_request *)in;
	return documents_next(&r->documents, &r->method->documents, in, buffers, document, err);
}

static bool translate(struct inbound *in, struct body *buffers, struct view *document,
		      struct error *err)
{
	struct grpc_intake_request *r = (struct grpc_intake_request *)in;
	return documents_translate(&r->documents, &r->method->documents, in, buffers, document,
				   err);
}

static void reply(struct inbound *in, const struct outcome *outcome)
{
	struct grpc_intake_request *r = (struct grpc_intake_request *)in;
	uint8_t message[GRPC_INTAKE_RESPONSE_MAX];
	struct view response = { message, 0 };
	struct error partial;
	const struct error *err = outcome->error;
	if (r->method->whole && inbound_in_part(outcome, &partial))
		err = &partial;
	if (!err && r->method->respond)
		response.len = r->method->respond(outcome, message);
	assert(response.len <= sizeof message);
	rpc_call_reply(r->call, err, response);
	request_free(r);
}

static void bind_method(struct grpc_intake *intake, size_t i)
{
	const struct grpc_intake_method *method = &intake->options.methods[i];
	const struct document_format *format = &method->documents;
	assert(method->unsupported || method->request_size >= sizeof(struct grpc_intake_request));
	intake->bound[i] = (struct bound){
		.intake = intake,
		.method = method,
		.ops = { .load = load,
			 .next = next,
			 .decode = format->decode,
			 .translate = translate,
			 .reply = reply,
			 .tables_factor = format->tables_factor },
	};
}

struct grpc_intake *grpc_intake_new(const struct grpc_intake_options *options)
{
	size_t bound = options->method_count * sizeof(struct bound);
	struct grpc_intake *intake = memory_new(sizeof *intake + bound);
	intake->options = *options;
	intake->message_limit = rpc_server_message_limit(options->config);
	intake->authenticator = host_authenticator(options->host, &options->config->auth.present,
						   options->config->auth.authenticator);
	for (size_t i = 0; i < options->method_count; i++)
		bind_method(intake, i);
	return intake;
}

static struct metric_series *refused(const struct host *host, const char *reason)
{
	const struct metric_label labels[] = { { "receiver", host->log.component_id },
					       { "reason", reason },
					       { 0 } };
	return metrics_series(host->metrics, &grpc_intake_refused_metric, labels);
}

static struct rpc_server_options server_options(const struct grpc_intake *intake)
{
	const struct host *host = intake->options.host;
	struct rpc_server_options options = {
		.unknown = refused(host, "unknown_method"),
		.unauthenticated = refused(host, "unauthenticated"),
		.headers = refused(host, "header"),
		.authenticator = intake->authenticator,
		.method_count = intake->options.method_count,
	};
	rpc_server_configure(&options, intake->options.config);
	options.h2.budget = entrance_net_budget(host->entrance);
	options.h2.io = host->io;
	options.h2.sockets = host->sockets;
	options.h2.loop = host->loop;
	options.h2.log = &host->log;
	options.h2.metrics = host->metrics;
	options.h2.name = host->log.component_id;
	return options;
}

bool grpc_intake_start(struct grpc_intake *intake, struct error *err)
{
	const struct grpc_intake_options *o = &intake->options;
	struct rpc_server_options options = server_options(intake);
	struct rpc_method *methods = memory_array(o->method_count, sizeof *methods);
	for (size_t i = 0; i < o->method_count; i++)
		methods[i] = (struct rpc_method){ .path = o->methods[i].path,
						  .unsupported = o->methods[i].unsupported,
						  .headers = headers,
						  .grow = grow,
						  .message = message,
						  .lost = lost,
						  .context = &intake->bound[i] };
	options.methods = methods;
	intake->server = rpc_server_start(&options, err);
	memory_free(methods);
	if (intake->server)
		log_info(&o->host->log, "Starting GRPC server",
			 log_text("endpoint", o->config->endpoint),
			 log_number("port", rpc_server_port(intake->server)));
	return intake->server != NULL;
}

void grpc_intake_stop(struct grpc_intake *intake)
{
	rpc_server_stop(&intake->server, STOP_GRACE_NS);
}

void grpc_intake_retire(struct grpc_intake *intake)
{
	rpc_server_retire(&intake->server, STOP_GRACE_NS);
}

bool grpc_intake_reopen(struct grpc_intake *intake, struct error *err)
{
	return !intake->server || rpc_server_reopen(intake->server, err);
}

void grpc_intake_unref(struct grpc_intake **slot)
{
	if (*slot)
		authenticator_unref(&(*slot)->authenticator);
	memory_free(*slot);
	*slot = NULL;
}
