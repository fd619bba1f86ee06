/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <string.h>

#include "base/memory.h"
#include "base/version.h"
#include "net/compress.h"
#include "net/grpc_client.h"
#include "otlp_service.pb-c.h"
#include "pipeline/delivery.h"

#define METHOD "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"

#if defined(__x86_64__)
#define MACHINE "amd64"
#elif defined(__aarch64__)
#define MACHINE "arm64"
#else
#define MACHINE "unknown"
#endif
#define USER_AGENT "Portcullis/" PORTCULLIS_VERSION " (linux/" MACHINE ")"

struct keepalive_config {
	struct optional present;
	struct duration time, timeout;
	bool permit_without_stream;
};

struct otlp_grpc_config {
	char *endpoint, *compression, *user_agent, *balancer_name, *authority;
	struct tls_client_config tls;
	struct keepalive_config keepalive;
	struct pairs headers;
	bool wait_for_ready;
	int64_t read_buffer_size, write_buffer_size;
	const struct node *auth, *middlewares;
	struct delivery_config delivery;
};

struct otlp_grpc {
	const struct otlp_grpc_config *config;
	const struct host *host;
	struct grpc_endpoint endpoint;
	enum packet_form form;
	struct loop_timer *reload_timer; /* NULL: certificates are read again on SIGHUP only */
	pthread_rwlock_t lock;           /* guards client: a send that was begun late finds it gone after stop */
	struct grpc_client *client;
};

/* One call. The packet has a reference of its own until core lets go of its bytes. */
struct flight {
	struct otlp_grpc *self;
	struct sending *sending;
	uint64_t profiles;
};

static const struct answer {
	const char *reason;
	enum send_outcome outcome;
} answers[] = {
	{ "ok", SEND_OK },
	{ "cancelled", SEND_RETRY },
	{ "unknown", SEND_PERMANENT },
	{ "invalid_argument", SEND_PERMANENT },
	{ "deadline_exceeded", SEND_RETRY },
	{ "not_found", SEND_PERMANENT },
	{ "already_exists", SEND_PERMANENT },
	{ "permission_denied", SEND_PERMANENT },
	{ "resource_exhausted", SEND_PERMANENT }, /* with RetryInfo: judge_exhausted */
	{ "failed_precondition", SEND_PERMANENT },
	{ "aborted", SEND_RETRY },
	{ "out_of_range", SEND_RETRY },
	{ "unimplemented", SEND_PERMANENT },
	{ "internal", SEND_PERMANENT },
	{ "unavailable", SEND_RETRY },
	{ "data_loss", SEND_RETRY },
	{ "unauthenticated", SEND_PERMANENT },
};
enum { UNKNOWN = 2, RESOURCE_EXHAUSTED = 8, STATUS_COUNT = sizeof answers / sizeof *answers };

/* What gRPC libraries say of a message over their limit; a status of its own for that does not exist. */
static bool says_too_large(const char *message)
{
	static const char *const words[] = { "larger than max", "exceeds maximum", "exceeds the maximum", "too large" };
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strcasestr(message, words[i]))
			return true;
	return false;
}

static struct send_result judge(const struct grpc_result *result)
{
	int status = result->status >= 0 && result->status < STATUS_COUNT ? result->status : UNKNOWN;
	struct send_result verdict = { .outcome = answers[status].outcome, .reason = answers[status].reason,
				       .retry_after_ms = result->retry_delay_ms };
	if (status != RESOURCE_EXHAUSTED)
		return verdict;
	if (result->retry_delay_ms >= 0) {
		verdict.outcome = SEND_RETRY;
	} else if (says_too_large(result->message)) {
		verdict.outcome = SEND_TOO_LARGE;
		verdict.reason = "too_large";
	}
	return verdict;
}

/* How many profiles the destination did not take. An answer that cannot be read says nothing: it was OK. */
static uint64_t read_rejected(const struct flight *flight, struct view response)
{
	typedef Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesServiceResponse answer_type;
	answer_type *answer =
		opentelemetry__proto__collector__profiles__v1development__export_profiles_service_response__unpack(
			NULL, response.len, response.at);
	if (!answer || !answer->partial_success) {
		if (answer)
			protobuf_c_message_free_unpacked(&answer->base, NULL);
		return 0;
	}
	int64_t said = answer->partial_success->rejected_profiles;
	uint64_t rejected = said < 0 ? 0 : (uint64_t)said;
	if (rejected > flight->profiles)
		rejected = flight->profiles;
	if (rejected || *answer->partial_success->error_message)
		log_warn(&flight->self->host->log, "Partial success response",
			 log_number("dropped_profiles", rejected));
	protobuf_c_message_free_unpacked(&answer->base, NULL);
	return rejected;
}

/* On the client's queue thread. */
static void on_answer(void *argument, const struct grpc_result *result)
{
	struct flight *flight = argument;
	struct send_result verdict = judge(result);
	if (verdict.outcome == SEND_OK)
		verdict.rejected_profiles = read_rejected(flight, result->response);
	sending_done(flight->sending, &verdict);
	memory_free(flight);
}

static void release_packet(void *owner)
{
	struct packet *packet = owner;
	packet_unref(&packet);
}

static bool encode_gzip(const struct packet *packet, struct bytes *out, struct error *err)
{
	return compress_deflate(CODING_GZIP, 0, bytes_view(&packet->otlp), out, err);
}

static bool begin_call(struct otlp_grpc *self, const struct grpc_message *message, uint64_t timeout_ns,
		       struct flight *flight)
{
	pthread_rwlock_rdlock(&self->lock);
	bool running = self->client != NULL;
	if (running)
		grpc_client_call(self->client, message, timeout_ns, on_answer, flight);
	pthread_rwlock_unlock(&self->lock);
	return running;
}

static void send_part(void *instance, const struct part *part, uint64_t timeout_ns, struct sending *sending)
{
	struct otlp_grpc *self = instance;
	struct send_result failure = { .outcome = SEND_PERMANENT, .retry_after_ms = -1, .reason = "compression" };
	const struct bytes *body = packet_form(part->packet, self->form, encode_gzip, NULL);
	if (!body) {
		sending_done(sending, &failure);
		return;
	}
	struct flight *flight = memory_new(sizeof *flight);
	*flight = (struct flight){ self, sending, part->profiles };
	struct grpc_message message = { .bytes = bytes_view(body), .gzip = self->form == FORM_OTLP_GZIP,
					.release = release_packet, .owner = packet_ref(part->packet) };
	if (begin_call(self, &message, timeout_ns, flight))
		return;
	release_packet(message.owner);
	memory_free(flight);
	failure.outcome = SEND_RETRY;
	failure.reason = "stopped";
	sending_done(sending, &failure);
}

static bool is_prompt(void *instance)
{
	return ((struct otlp_grpc *)instance)->form == FORM_OTLP;
}

static bool reload(void *instance, struct error *err)
{
	struct otlp_grpc *self = instance;
	bool ok = true, changed = false;
	pthread_rwlock_rdlock(&self->lock);
	if (self->client)
		ok = grpc_client_reload(self->client, &changed, err);
	pthread_rwlock_unlock(&self->lock);
	if (changed)
		log_info(&self->host->log, "Certificates reloaded");
	return ok;
}

static void reload_is_due(void *instance)
{
	struct otlp_grpc *self = instance;
	struct error err = { 0 };
	if (!reload(self, &err))
		log_error(&self->host->log, "Certificates are broken; keeping the old ones", log_text("error", err.text));
	loop_timer_start(self->reload_timer, (uint64_t)self->config->tls.reload_interval.ns);
}

static const char *or_default(const char *text, const char *otherwise)
{
	return text && *text ? text : otherwise;
}

static bool create(void *instance, const void *settings, const struct host *host, struct error *err)
{
	struct otlp_grpc *self = instance;
	self->config = settings;
	self->host = host;
	self->form = strcmp(or_default(self->config->compression, "none"), "gzip") ? FORM_OTLP : FORM_OTLP_GZIP;
	pthread_rwlock_init(&self->lock, NULL);
	return grpc_endpoint_parse(self->config->endpoint, &self->endpoint, err);
}

static bool start(void *instance, struct error *err)
{
	struct otlp_grpc *self = instance;
	const struct otlp_grpc_config *c = self->config;
	self->client = grpc_client_new(&(struct grpc_client_options){
		.endpoint = c->endpoint,
		.method = METHOD,
		.tls = &c->tls,
		.headers = &c->headers,
		.user_agent = or_default(c->user_agent, USER_AGENT),
		.authority = or_default(c->authority, NULL),
		.balancer = c->balancer_name,
		.wait_for_ready = c->wait_for_ready,
		.keepalive = c->keepalive.present.enabled,
		.keepalive_time = c->keepalive.time,
		.keepalive_timeout = c->keepalive.timeout,
		.permit_without_stream = c->keepalive.permit_without_stream,
	}, err);
	if (self->client && c->tls.reload_interval.ns > 0) {
		self->reload_timer = loop_timer_new(self->host->loop, reload_is_due, self);
		loop_timer_start(self->reload_timer, (uint64_t)c->tls.reload_interval.ns);
	}
	return self->client != NULL;
}

static void stop(void *instance)
{
	struct otlp_grpc *self = instance;
	pthread_rwlock_wrlock(&self->lock);
	struct grpc_client *client = self->client;
	self->client = NULL;
	pthread_rwlock_unlock(&self->lock);
	grpc_client_unref(&client);
}

static void destroy(void *instance)
{
	struct otlp_grpc *self = instance;
	loop_timer_unref(&self->reload_timer);
	grpc_endpoint_fini(&self->endpoint);
	pthread_rwlock_destroy(&self->lock);
}

static void destination(void *instance, const char **address, const char **port)
{
	const struct otlp_grpc *self = instance;
	*address = self->endpoint.host;
	*port = self->endpoint.port;
}

/* ---- configuration ---- */

static bool check_compression(const char *name, struct error *err)
{
	static const char *const impossible[] = { "snappy", "zstd", NULL };
	if (!name || !*name || !strcmp(name, "gzip") || !strcmp(name, "none"))
		return true;
	for (const char *const *i = impossible; *i; i++)
		if (!strcmp(name, *i))
			return error_set(err, ERROR_CONFIG, "compression: the gRPC library here cannot send %s; use gzip "
					 "or none", name);
	return error_set(err, ERROR_CONFIG, "unsupported compression type \"%s\"", name);
}

static bool check_balancer(const char *name, struct error *err)
{
	if (!strcmp(name, "round_robin") || !strcmp(name, "pick_first"))
		return true;
	return error_set(err, ERROR_CONFIG, "invalid balancer_name: %s", name);
}

static bool check_extensions(const struct otlp_grpc_config *c, struct error *err)
{
	const struct node *name = c->auth ? node_get(c->auth, "authenticator") : NULL;
	if (name && name->kind == NODE_SCALAR)
		return error_set(err, ERROR_CONFIG, "auth: failed to resolve authenticator \"%s\": authenticator not found",
				 name->text);
	if (c->middlewares && c->middlewares->count)
		return error_set(err, ERROR_CONFIG, "middlewares: this build has no middleware extension");
	return true;
}

static bool check(const void *config, struct error *err)
{
	const struct otlp_grpc_config *c = config;
	struct grpc_endpoint endpoint;
	bool ok = grpc_endpoint_parse(c->endpoint, &endpoint, err);
	grpc_endpoint_fini(&endpoint);
	return ok && check_compression(c->compression, err) && check_balancer(c->balancer_name, err) &&
	       grpc_client_check_headers(&c->headers, err) && check_extensions(c, err);
}

static const struct config_row keepalive_rows[] = {
	CONFIG_ROW(struct keepalive_config, time, .key = "time", .def = "10s",
		   .help = "Without traffic for so long, the connection is pinged."),
	CONFIG_ROW(struct keepalive_config, timeout, .key = "timeout", .def = "10s",
		   .help = "Without an answer, or without progress in sending, for so long, it is given up."),
	CONFIG_ROW(struct keepalive_config, permit_without_stream, .key = "permit_without_stream", .def = "false",
		   .help = "Pings also while no request is under way."),
	{ 0 }
};
static const struct config_table keepalive_table = {
	.size = sizeof(struct keepalive_config), .rows = keepalive_rows, .optional = true
};

static const struct config_row rows[] = {
	CONFIG_ROW(struct otlp_grpc_config, endpoint, .key = "endpoint",
		   .help = "`host:port` of the OTLP/gRPC server. `https://` forces TLS, `http://` is ignored; also "
			   "`dns:///host:port`, `unix:///path`, `ipv4:address:port,address:port`."),
	CONFIG_SECTION(struct otlp_grpc_config, tls, tls_client_table, .key = "tls",
		       .help = "TLS is on unless `insecure: true`."),
	CONFIG_ROW(struct otlp_grpc_config, compression, .key = "compression", .def = "gzip",
		   .help = "`gzip` (level 1) or `none`; `snappy` and `zstd` are errors: the gRPC library cannot send them."),
	CONFIG_ROW(struct otlp_grpc_config, headers, .key = "headers",
		   .help = "Sent with each request; names in lower case. Those that gRPC itself writes are errors."),
	CONFIG_ROW(struct otlp_grpc_config, user_agent, .key = "user_agent",
		   .help = "Default: `Portcullis/<version> (linux/<arch>)`; the library appends its own name."),
	CONFIG_ROW(struct otlp_grpc_config, wait_for_ready, .key = "wait_for_ready", .def = "false",
		   .help = "While there is no connection, requests wait until their timeout instead of failing at once."),
	CONFIG_ROW(struct otlp_grpc_config, balancer_name, .key = "balancer_name", .def = "round_robin",
		   .help = "`round_robin` over all addresses of the endpoint, or `pick_first`."),
	CONFIG_ROW(struct otlp_grpc_config, authority, .key = "authority",
		   .help = "The `:authority` to send; under TLS it must be a name of the server's certificate."),
	CONFIG_SECTION(struct otlp_grpc_config, keepalive, keepalive_table, .key = "keepalive",
		       .presence = PRESENCE_NONE, .help = "HTTP/2 pings."),
	CONFIG_ROW(struct otlp_grpc_config, auth, .key = "auth",
		   .help = "Naming an `authenticator` is an error: this build has none."),
	CONFIG_ROW(struct otlp_grpc_config, middlewares, .key = "middlewares",
		   .help = "Naming one is an error: this build has none."),
	CONFIG_ROW(struct otlp_grpc_config, read_buffer_size, .key = "read_buffer_size", .def = "0", .inert = true,
		   .help = "The gRPC library chooses its buffers."),
	CONFIG_ROW(struct otlp_grpc_config, write_buffer_size, .key = "write_buffer_size", .def = "524288",
		   .inert = true, .help = "The gRPC library chooses its buffers."),
	DELIVERY_ROWS(struct otlp_grpc_config, delivery, "5s"),
	{ 0 }
};
static const struct config_table table = { sizeof(struct otlp_grpc_config), rows, check };

static const char manual[] =
	"Answers are classified as OTLP says: CANCELLED, DEADLINE_EXCEEDED, ABORTED, OUT_OF_RANGE, UNAVAILABLE and "
	"DATA_LOSS are tried again, RESOURCE_EXHAUSTED only with RetryInfo, whose delay is kept; everything else drops "
	"the data. A partial success is logged and counted in "
	"`otelcol_exporter_partial_rejected_profiles`; the server's text appears nowhere.\n\n"
	"Several exporters with `compression: gzip` share one compressed copy of a request. A server that stops reading in the "
	"middle of a request is given up after 10 s (with `keepalive`: after its `timeout`); a stop of the gateway waits "
	"for that.\n\n"
	"The proxy variables of the environment (`grpc_proxy`, `https_proxy`, `http_proxy`, `no_grpc_proxy`, `no_proxy`) are "
	"honoured.";

const struct component_factory otlp_grpc_exporter = {
	.type = "otlp_grpc",
	.alias = "otlp",
	.help = "Sends profiles to an OTLP/gRPC server.",
	.manual = manual,
	.kind = COMPONENT_EXPORTER,
	.size = sizeof(struct otlp_grpc),
	.config = &table,
	.create = create,
	.start = start,
	.stop = stop,
	.destroy = destroy,
	.reload = reload,
	.delivery_offset = offsetof(struct otlp_grpc_config, delivery),
	.destination = destination,
	.prompt = is_prompt,
	.send = send_part,
};
