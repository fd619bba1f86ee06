/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/intake/grpc_intake.h"

#include "base/clock.h"
#include "base/memory.h"
#include "net/h2/rpc.h"
#include "pipeline/intake/inflate.h"

#include <assert.h>

#define STOP_GRACE_NS (10 * UINT64_C(1000000000))

enum {
	/* The limits of what an I/O thread runs itself. A message of INLINE_BYTES, decompressed,
	 * takes less than a millisecond with every processor (docs/GRPC.md). After
	 * INLINE_TURN_BYTES from one connection in one turn, the rest goes to workers. */
	INLINE_BYTES = 65536,
	INLINE_TURN_BYTES = 524288,
	/* the least that a compressed message counts in a turn, whatever size it states */
	COMPRESSED_MIN = 16384,
	/* the size of a call's structures, in addition to GATE_REQUEST_BYTES and its headers */
	CALL_BYTES = 2048
};

/* A method as it is registered with the server. */
struct bound {
	struct grpc_intake *intake;
	const struct grpc_intake_method *method;
	struct inbound_ops ops;
	bool may_run_here;
};

struct grpc_intake {
	struct grpc_intake_options options;
	struct rpc_server *server;
	size_t message_max; /* compressed, and decompressed */
	struct bound bound[];
};

const struct metric grpc_intake_unknown_metric = {
	"otelcol_grpc_server_refused_requests", METRIC_COUNTER, "{requests}",
	"Calls of unknown methods (UNIMPLEMENTED), such as those of another version of OTLP."
};

static struct gate *gate_of(const struct grpc_intake_request *r)
{
	return r->intake->options.host->gate;
}

static void request_free(struct grpc_intake_request *r)
{
	if (r->method->fini)
		r->method->fini(r);
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
	r->in.overhead = CALL_BYTES + rpc_call_header_bytes(call);
	r->in.request = (struct request){
		.receiver = o->host->id,
		.transport = TRANSPORT_GRPC,
		.peer = rpc_call_peer(call),
		.auth = rpc_call_auth(call),
		.metadata = o->config->include_metadata ? rpc_call_metadata(call) : NULL,
		.arrival = clock_now(),
		.ack = &r->in.ack,
	};
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
				 "grpc-encoding: must be identity, deflate, gzip or zstd");
	if (*out == CODING_IDENTITY)
		*out = (enum coding)said;
	return true;
}

/* Decides by the size that the message states; load finds out whether that is true. */
static bool is_small(struct rpc_call *call)
{
	struct view body = bytes_view(rpc_call_body(call));
	enum coding coding;
	if (body.len > INLINE_BYTES || !find_coding(body, rpc_call_coding(call), &coding, NULL))
		return false;
	size_t size = compress_stated_size(coding, body);
	if (size > INLINE_BYTES)
		return false;
	if (coding != CODING_IDENTITY)
		rpc_call_count_turn(call, size > COMPRESSED_MIN ? size : COMPRESSED_MIN);
	return rpc_call_turn_bytes(call) <= INLINE_TURN_BYTES;
}

static void message(void *context, struct rpc_call *call)
{
	struct bound *b = context;
	struct grpc_intake_request *r = rpc_call_user(call);
	if (b->may_run_here && is_small(call))
		gate_run_here(gate_of(r), &r->in, rpc_call_thread(call));
	else
		gate_submit(gate_of(r), &r->in);
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

static bool inflate(struct grpc_intake_request *r, enum coding coding, struct body *buffers,
		    struct error *err)
{
	struct inbound *in = &r->in;
	struct documents *d = &r->documents;
	size_t sent = d->held, max = d->max;
	if (in->here && INLINE_BYTES < max)
		max = INLINE_BYTES;
	if (inbound_inflate(in, coding, d->body, max, &d->held, &buffers->raw, err)) {
		d->body = bytes_view(&buffers->raw);
		return true;
	}
	in->moves =
		in->here && err->kind == ERROR_TOO_LARGE && gate_charge(in->gate, in, sent, err);
	return false;
}

static bool load(struct inbound *in, struct body *buffers, struct error *err)
{
	struct grpc_intake_request *r = (struct grpc_intake_request *)in;
	struct view body = bytes_view(rpc_call_body(r->call));
	enum coding coding;
	r->documents =
		(struct documents){ .body = body, .held = body.len, .max = r->intake->message_max };
	return find_coding(body, rpc_call_coding(r->call), &coding, err) &&
	       (coding == CODING_IDENTITY || inflate(r, coding, buffers, err));
}

static enum inbound_next next(struct inbound *in, struct body *buffers, struct view *document,
			      struct error *err)
{
	struct grpc_intake_request *r = (struct grpc_intake_request *)in;
	return documents_next(&r->documents, &r->method->documents, in, buffers, document, err);
}

static void reply(struct inbound *in, const struct outcome *outcome)
{
	struct grpc_intake_request *r = (struct grpc_intake_request *)in;
	uint8_t message[GRPC_INTAKE_RESPONSE_MAX];
	struct view response = { message, 0 };
	if (!outcome->error && r->method->respond)
		response.len = r->method->respond(outcome, message);
	assert(response.len <= sizeof message);
	rpc_call_reply(r->call, outcome->error, response);
	request_free(r);
}

static void bind_method(struct grpc_intake *intake, size_t i)
{
	const struct grpc_intake_method *method = &intake->options.methods[i];
	const struct document_format *format = &method->documents;
	assert(method->request_size >= sizeof(struct grpc_intake_request));
	intake->bound[i] = (struct bound){
		.intake = intake,
		.method = method,
		.ops = { load, next, format->decode, reply, format->tables_factor },
		.may_run_here = !format->next && !format->packed,
	};
}

struct grpc_intake *grpc_intake_new(const struct grpc_intake_options *options)
{
	size_t bound = options->method_count * sizeof(struct bound);
	struct grpc_intake *intake = memory_new(sizeof *intake + bound);
	intake->options = *options;
	intake->message_max = rpc_server_message_max(options->config);
	for (size_t i = 0; i < options->method_count; i++)
		bind_method(intake, i);
	return intake;
}

static struct metric_series *unknown_series(const struct host *host)
{
	const struct metric_label labels[] = { { "receiver", host->log.component_id }, { 0 } };
	return metrics_series(host->metrics, &grpc_intake_unknown_metric, labels);
}

static struct rpc_server_options server_options(const struct grpc_intake *intake)
{
	const struct host *host = intake->options.host;
	struct rpc_server_options options = { .unknown = unknown_series(host),
					      .method_count = intake->options.method_count };
	rpc_server_configure(&options, intake->options.config);
	options.h2.budget = gate_net_budget(host->gate);
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
		methods[i] = (struct rpc_method){ o->methods[i].path, headers, grow, message, lost,
						  &intake->bound[i] };
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
	memory_free(*slot);
	*slot = NULL;
}
