/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/delivery/grpc_sender.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/version.h"
#include "net/decorated.h"
#include "net/grpc/grpc_coding.h"
#include "pipeline/delivery/status_message.h"

#if defined(__x86_64__)
#define MACHINE "amd64"
#elif defined(__aarch64__)
#define MACHINE "arm64"
#else
#define MACHINE "unknown"
#endif
#define REPLY_TOO_LARGE "reply_too_large" /* the reason */
#define USER_AGENT "Portcullis/" PORTCULLIS_VERSION " (linux/" MACHINE ")"

/* One call. */
struct flight {
	struct grpc_sender *sender;
	struct sending *sending;
	uint64_t profiles, began; /* clock_now */
};

/* By the number of the status. */
static const enum send_outcome outcomes[] = {
	SEND_OK,        /* OK */
	SEND_RETRY,     /* CANCELLED */
	SEND_PERMANENT, /* UNKNOWN */
	SEND_PERMANENT, /* INVALID_ARGUMENT */
	SEND_RETRY,     /* DEADLINE_EXCEEDED */
	SEND_PERMANENT, /* NOT_FOUND */
	SEND_PERMANENT, /* ALREADY_EXISTS */
	SEND_PERMANENT, /* PERMISSION_DENIED */
	SEND_PERMANENT, /* RESOURCE_EXHAUSTED; with RetryInfo: judge */
	SEND_PERMANENT, /* FAILED_PRECONDITION */
	SEND_RETRY,     /* ABORTED */
	SEND_RETRY,     /* OUT_OF_RANGE */
	SEND_PERMANENT, /* UNIMPLEMENTED */
	SEND_PERMANENT, /* INTERNAL */
	SEND_RETRY,     /* UNAVAILABLE */
	SEND_RETRY,     /* DATA_LOSS */
	SEND_PERMANENT, /* UNAUTHENTICATED */
};
enum {
	UNKNOWN = 2,
	RESOURCE_EXHAUSTED = 8,
	OUT_OF_RANGE = 11,
	UNIMPLEMENTED = 12,
	UNAVAILABLE = 14,
	STATUS_COUNT = sizeof outcomes / sizeof *outcomes
};

/* Why no connection took it. The socket mutator is ours: it refuses connections for a while after
 * replies that were too large (net/grpc/grpc_allowance.h). */
static const char *unsent_reason(const struct grpc_result *result)
{
	const char *stage = cause_stage(result->cause.kind);
	if (strstr(result->message, "grpc_socket_mutator failed"))
		return REPLY_TOO_LARGE;
	if (result->cause.kind == CAUSE_UNRESOLVED)
		return "unresolved";
	if (result->cause.kind == CAUSE_PROXY)
		return "proxy";
	return stage && !strncmp(stage, "tls", 3) ? "tls" : "unavailable";
}

/* Every library says "compress" when it does not know that of a request: the C core, grpc-go,
 * grpc-java, tonic, .NET. */
static bool names_compression(const char *message)
{
	return strcasestr(message, "compress") != NULL;
}

static struct send_result judge(const struct grpc_result *result)
{
	int status =
		result->status >= 0 && result->status < STATUS_COUNT ? result->status : UNKNOWN;
	struct send_result verdict = { .outcome = outcomes[status],
				       .reason = status_message_word(status),
				       .retry_after_ms = result->retry_delay_ms,
				       .cause = result->cause,
				       .http_status = result->http_status,
				       .grpc_status = result->status };
	if (result->reply_too_large) {
		verdict.outcome = SEND_RETRY;
		verdict.reason = REPLY_TOO_LARGE;
		return verdict;
	}
	if (status == UNIMPLEMENTED && names_compression(result->message))
		verdict.reason = "unknown_compression";
	if (status == UNAVAILABLE && result->unsent)
		verdict.reason = unsent_reason(result);
	if (status != RESOURCE_EXHAUSTED && status != OUT_OF_RANGE)
		return verdict;
	if (result->retry_delay_ms >= 0)
		verdict.outcome = SEND_RETRY;
	else
		status_message_too_large(result->message, &verdict);
	return verdict;
}

/* On the client's queue thread. */
static void on_answer(void *argument, const struct grpc_result *result)
{
	struct flight *flight = argument;
	const struct grpc_sender *sender = flight->sender;
	struct send_result verdict = judge(result);
	if (result->reply_too_large)
		metric_add(sender->replies_too_large, 1);
	if (sender->method->answered)
		sender->method->answered(sender->exporter, result,
					 &(struct grpc_asked){ flight->profiles,
							       clock_now() - flight->began },
					 &verdict);
	sending_done(flight->sending, &verdict);
	memory_free(flight);
}

static bool begin_call(struct grpc_sender *sender, const struct grpc_message *message,
		       uint64_t timeout_ns, struct flight *flight)
{
	pthread_rwlock_rdlock(&sender->lock);
	bool running = sender->client != NULL;
	if (running)
		grpc_client_call(sender->client, message, timeout_ns, on_answer, flight);
	pthread_rwlock_unlock(&sender->lock);
	return running;
}

/* Begins the call with this metadata, or says why not. */
static bool try_call(struct grpc_sender *sender, const struct grpc_message *message,
		     uint64_t timeout_ns, struct flight *flight, struct send_result *failure)
{
	*failure = (struct send_result){ .outcome = SEND_PERMANENT,
					 .retry_after_ms = -1,
					 .reason = "headers" };
	if (!grpc_client_check_metadata(message->metadata, NULL))
		return false;
	failure->outcome = SEND_RETRY;
	failure->reason = "stopped";
	return begin_call(sender, message, timeout_ns, flight);
}

void grpc_sender_send(struct grpc_sender *sender, const struct grpc_message *message,
		      struct packet *packet, uint64_t timeout_ns, struct sending *sending)
{
	const struct origin *origin = packet->origin;
	struct send_result failure = { SEND_RETRY, .retry_after_ms = -1, .reason = "auth" };
	struct decorated decorated;
	struct grpc_message call = *message;
	struct idempotency keyed;
	struct flight *flight = memory_new(sizeof *flight);
	*flight = (struct flight){ sender, sending, packet->profiles, clock_now() };
	if (sender->sends_key)
		call.metadata = idempotency_add(&keyed, packet, message->metadata);
	bool ready = decorated_init(&decorated, sender->authenticator, &sender->config->headers,
				    call.metadata, origin ? origin->metadata : NULL);
	call.metadata = decorated.headers;
	bool begun = ready && try_call(sender, &call, timeout_ns, flight, &failure);
	decorated_fini(&decorated);
	if (begun)
		return;
	message->release(message->owner);
	memory_free(flight);
	sending_done(sending, &failure);
}

/* ---- life ---- */

static bool read_certificates(void *context, bool *changed, struct error *err)
{
	struct grpc_sender *sender = context;
	pthread_rwlock_rdlock(&sender->lock);
	bool ok = !sender->client || grpc_client_reopen(sender->client, changed, err);
	pthread_rwlock_unlock(&sender->lock);
	return ok;
}

bool grpc_sender_reopen(struct grpc_sender *sender, struct error *err)
{
	return reopen_now(&sender->reopen, err);
}

static const char *or_default(const char *text, const char *otherwise)
{
	return text && *text ? text : otherwise;
}

const struct metric grpc_sender_replies_too_large = {
	"otelcol_exporter_oversized_responses", METRIC_COUNTER, "{requests}",
	"Requests whose response was larger than the gRPC client accepts, or was lost when a "
	"connection that delivered too much data was closed."
};

bool grpc_sender_init(struct grpc_sender *sender, const struct grpc_sender_config *config,
		      const struct grpc_method *method, void *exporter, const struct host *host,
		      struct error *err)
{
	*sender = (struct grpc_sender){
		.config = config,
		.method = method,
		.exporter = exporter,
		.host = host,
		.reopen = { .host = host,
			    .read = read_certificates,
			    .sender = sender,
			    .interval_ns = config->tls.reload_interval.ns },
		.sends_key = idempotency_is_on(config->idempotency_key, &config->headers),
	};
	pthread_rwlock_init(&sender->lock, NULL);
	sender->authenticator =
		host_authenticator(host, &config->auth.present, config->auth.authenticator);
	const struct metric_label labels[] = { { "exporter", host->id }, { 0 } };
	sender->replies_too_large =
		metrics_series(host->metrics, &grpc_sender_replies_too_large, labels);
	return grpc_endpoint_parse(config->endpoint, &sender->endpoint, err);
}

bool grpc_sender_start(struct grpc_sender *sender, const struct pairs *headers, struct error *err)
{
	const struct grpc_sender_config *c = sender->config;
	if (!authenticator_check_client(sender->authenticator, c->auth.authenticator, err))
		return false;
	sender->client = grpc_client_new(
		&(struct grpc_client_options){
			.endpoint = c->endpoint,
			.method = sender->method->path,
			.tls = &c->tls,
			.headers = sender->authenticator ? NULL
				   : headers             ? headers
							 : &c->headers,
			.user_agent = or_default(c->user_agent, USER_AGENT),
			.authority = or_default(c->authority, NULL),
			.balancer = c->balancer_name,
			.wait_for_ready = c->wait_for_ready,
			.keepalive = c->keepalive.present.enabled,
			.keepalive_time = c->keepalive.time,
			.keepalive_timeout = c->keepalive.timeout,
			.permit_without_stream = c->keepalive.permit_without_stream,
			.max_age = c->max_connection_age,
		},
		err);
	if (sender->client)
		reopen_start(&sender->reopen);
	return sender->client != NULL;
}

void grpc_sender_stop(struct grpc_sender *sender)
{
	pthread_rwlock_wrlock(&sender->lock);
	struct grpc_client *client = sender->client;
	sender->client = NULL;
	pthread_rwlock_unlock(&sender->lock);
	grpc_client_unref(&client);
}

void grpc_sender_fini(struct grpc_sender *sender)
{
	reopen_fini(&sender->reopen);
	authenticator_unref(&sender->authenticator);
	grpc_endpoint_fini(&sender->endpoint);
	pthread_rwlock_destroy(&sender->lock);
}

/* ---- configuration ---- */

/* As the Collector's; `snappy` in frames, as grpc-go sends it. */
static const struct compression {
	const char *name;
	enum coding coding;
	int level;
} compressions[] = {
	{ "gzip", CODING_GZIP, 1 },
	{ "zstd", CODING_ZSTD, 1 },
	{ "snappy", CODING_SNAPPY_FRAMED, 0 },
	{ "none", CODING_IDENTITY, 0 },
	{ "", CODING_IDENTITY, 0 },
};

static const struct compression *compression_of(const struct grpc_sender_config *config)
{
	const char *name = or_default(config->compression, "");
	for (size_t i = 0; i < sizeof compressions / sizeof *compressions; i++)
		if (!strcmp(name, compressions[i].name))
			return &compressions[i];
	return NULL;
}

struct packet_form grpc_sender_form(const struct grpc_sender_config *config,
				    enum packet_encoding encoding)
{
	const struct compression *c = compression_of(config);
	return (struct packet_form){ encoding, c->coding, c->level };
}

static void check_compression(const struct grpc_sender_config *config, struct faults *faults)
{
	const struct compression *c = compression_of(config);
	struct error why;
	if (!c)
		faults_add(faults, "compression: unsupported type; use gzip, zstd, snappy or none");
	else if (!grpc_coding_check(c->coding, &why))
		faults_take(faults, &why);
}

static void check_headers(const struct pairs *headers, struct faults *faults)
{
	struct error why;
	for (size_t i = 0; i < headers->count; i++)
		if (!grpc_client_check_header(headers, i, &why))
			faults_take(faults, &why);
}

static bool is_balancer(const char *name)
{
	return !strcmp(name, "round_robin") || !strcmp(name, "pick_first");
}

void grpc_sender_check_but_endpoint(const struct grpc_sender_config *c, struct faults *faults)
{
	struct error why;
	if (!tls_client_check_any_version(&c->tls, &why)) {
		error_prefix(&why, "tls");
		faults_take(faults, &why);
	}
	check_compression(c, faults);
	if (!is_balancer(c->balancer_name))
		faults_add(faults, "balancer_name: invalid balancer_name: neither round_robin nor "
				   "pick_first");
	check_headers(&c->headers, faults);
	if (c->middlewares && c->middlewares->count)
		faults_add(faults, "middlewares: this build has no middleware extension");
}

void grpc_sender_check(const struct grpc_sender_config *c, struct faults *faults)
{
	struct grpc_endpoint endpoint;
	struct error why;
	if (!grpc_endpoint_parse(c->endpoint, &endpoint, &why))
		faults_take(faults, &why);
	grpc_endpoint_fini(&endpoint);
	grpc_sender_check_but_endpoint(c, faults);
}

static const struct config_row keepalive_rows[] = {
	CONFIG_ROW(struct keepalive_config, time, .key = "time", .def = "10s",
		   .help = "The connection is pinged after this time without traffic."),
	CONFIG_ROW(struct keepalive_config, timeout, .key = "timeout", .def = "10s",
		   .help = "The connection is closed after this time without a response to a "
			   "ping, or without progress in sending."),
	CONFIG_ROW(struct keepalive_config, permit_without_stream, .key = "permit_without_stream",
		   .def = "false", .help = "Sends pings also while no request is in flight."),
	{ 0 }
};
const struct config_table grpc_keepalive_table = { .size = sizeof(struct keepalive_config),
						   .rows = keepalive_rows,
						   .optional = true };
