/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/delivery/http_sender.h"

#include <string.h>

#include "base/memory.h"
#include "base/quote.h"
#include "net/decorated.h"

/* One request in flight. The packet holds its body until the answer. */
struct flight {
	struct http_sender *sender;
	struct sending *sending;
	struct packet *packet;
};

/* ---- answers ---- */

static const struct answer {
	int status;
	enum send_outcome outcome;
	const char *reason;
} answers[] = {
	{ 400, SEND_PERMANENT, "invalid" },           { 401, SEND_PERMANENT, "unauthenticated" },
	{ 403, SEND_PERMANENT, "permission_denied" }, { 404, SEND_PERMANENT, "not_found" },
	{ 413, SEND_TOO_LARGE, "too_large" },         { 422, SEND_PERMANENT, "invalid" },
	{ 429, SEND_RETRY, "resource_exhausted" },    { 500, SEND_PERMANENT, "internal" },
	{ 502, SEND_RETRY, "bad_gateway" },           { 503, SEND_RETRY, "unavailable" },
	{ 504, SEND_RETRY, "gateway_timeout" },
};

static struct send_result judge_failure(const struct http_result *result)
{
	struct send_result verdict = { .outcome = SEND_PERMANENT,
				       .retry_after_ms = -1,
				       .reason = "refused",
				       .http_status = result->status };
	for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
		if (answers[i].status == result->status) {
			verdict.outcome = answers[i].outcome;
			verdict.reason = answers[i].reason;
		}
	if (result->status == 429 || result->status == 503)
		verdict.retry_after_ms = result->retry_after_ms;
	return verdict;
}

struct send_result http_sender_judge(const struct http_result *result)
{
	bool good = result->status >= 200 && result->status < 300;
	if (!result->status || (good && result->failure))
		return (struct send_result){ .outcome = SEND_RETRY,
					     .retry_after_ms = -1,
					     .reason = result->failure,
					     .cause = result->cause,
					     .http_status = result->status };
	if (good)
		return (struct send_result){ .outcome = SEND_OK,
					     .retry_after_ms = -1,
					     .reason = "ok" };
	return judge_failure(result);
}

/* ---- requests ---- */

/* Frees the flight. */
static void finish(struct flight *flight, const struct send_result *verdict)
{
	struct sending *sending = flight->sending;
	packet_unref(&flight->packet);
	memory_free(flight);
	sending_done(sending, verdict);
}

/* By the draft of the header Idempotency-Key, a server answers 409 while it processes an earlier
 * attempt of the same request. Whether it will accept that one is not known. */
static struct send_result judge(const struct http_sender *sender, const struct http_result *result)
{
	if (result->status == 409 && sender->sends_key)
		return (struct send_result){ .outcome = SEND_RETRY,
					     .retry_after_ms = -1,
					     .reason = "in_progress",
					     .http_status = result->status };
	return http_sender_judge(result);
}

static void on_answer(void *argument, const struct http_result *result)
{
	struct flight *flight = argument;
	const struct http_sender *sender = flight->sender;
	struct send_result verdict = judge(sender, result);
	if (sender->service->answered)
		sender->service->answered(sender->exporter, flight->packet, result, &verdict);
	finish(flight, &verdict);
}

static bool post(struct http_sender *sender, const struct http_post *request, struct flight *flight)
{
	pthread_rwlock_rdlock(&sender->lock);
	bool running = sender->client != NULL;
	if (running)
		http_client_post(sender->client, request, on_answer, flight);
	pthread_rwlock_unlock(&sender->lock);
	return running;
}

/* Posts the request with these headers, or says why not. */
static bool try_post(const struct http_sending *request, const struct metadatum *headers,
		     uint64_t timeout_ns, struct flight *flight, struct send_result *failure)
{
	const struct http_sender_config *c = flight->sender->config;
	const struct http_post p = { .body = request->body,
				     .content_encoding = http_compression_header(&c->compression),
				     .headers = headers,
				     .timeout_ns = timeout_ns };
	*failure = (struct send_result){ .outcome = SEND_PERMANENT,
					 .retry_after_ms = -1,
					 .reason = "headers" };
	if (!http_client_check_headers(headers, NULL))
		return false;
	failure->outcome = SEND_RETRY;
	failure->reason = "stopped";
	return post(flight->sender, &p, flight);
}

void http_sender_send(struct http_sender *sender, const struct http_sending *request,
		      uint64_t timeout_ns, struct sending *sending)
{
	const struct origin *origin = request->packet->origin;
	struct send_result failure = { SEND_RETRY, .retry_after_ms = -1, .reason = "auth" };
	struct decorated decorated;
	struct idempotency keyed;
	const struct metadatum *headers = request->headers;
	struct flight *flight = memory_new(sizeof *flight);
	*flight = (struct flight){ sender, sending, packet_ref(request->packet) };
	if (sender->sends_key)
		headers = idempotency_add(&keyed, request->packet, headers);
	bool ready =
		decorated_init(&decorated, sender->authenticator, &sender->config->http.headers,
			       headers, origin ? origin->metadata : NULL);
	bool posted = ready && try_post(request, decorated.headers, timeout_ns, flight, &failure);
	decorated_fini(&decorated);
	if (!posted)
		finish(flight, &failure);
}

/* ---- life ---- */

static bool read_certificates(void *context, bool *changed, struct error *err)
{
	struct http_sender *sender = context;
	pthread_rwlock_rdlock(&sender->lock);
	bool ok = !sender->client || http_client_reopen(sender->client, changed, err);
	pthread_rwlock_unlock(&sender->lock);
	return ok;
}

void http_sender_init(struct http_sender *sender, const struct http_sender_config *config,
		      const char *endpoint, const char *path, const struct http_service *service,
		      void *exporter, const struct host *host)
{
	size_t len = strlen(endpoint);
	while (*path && len && endpoint[len - 1] == '/')
		len--;
	*sender = (struct http_sender){
		.config = config,
		.service = service,
		.exporter = exporter,
		.host = host,
		.url = memory_format("%.*s%s", (int)len, endpoint, path),
		.endpoint = quote_place(endpoint),
		.reopen = { .host = host,
			    .read = read_certificates,
			    .sender = sender,
			    .interval_ns = config->http.tls.reload_interval.ns },
		.sends_key = idempotency_is_on(config->idempotency_key, &config->http.headers),
	};
	sender->authenticator = host_authenticator(host, &config->http.auth.present,
						   config->http.auth.authenticator);
	http_client_place(sender->url, &sender->address, &sender->port);
	pthread_rwlock_init(&sender->lock, NULL);
}

/* An exporter has one host. */
static uint32_t idle_max(const struct http_sender_config *c)
{
	int64_t max = c->http.max_idle, of_host = c->max_idle_per_host;
	return (uint32_t)(of_host && (!max || of_host < max) ? of_host : max);
}

bool http_sender_start(struct http_sender *sender, struct error *err)
{
	const struct http_sender_config *c = sender->config;
	struct http_client_options options = { .loop = sender->host->loop,
					       .url = sender->url,
					       .content_type = sender->service->content_type };
	if (!http_client_configure(&options, &c->http, sender->authenticator, err))
		return false;
	options.idle_max = idle_max(c);
	sender->client = http_client_new(&options, err);
	if (sender->client)
		reopen_start(&sender->reopen);
	return sender->client != NULL;
}

bool http_sender_reopen(struct http_sender *sender, struct error *err)
{
	return reopen_now(&sender->reopen, err);
}

void http_sender_stop(struct http_sender *sender)
{
	pthread_rwlock_wrlock(&sender->lock);
	struct http_client *client = sender->client;
	sender->client = NULL;
	pthread_rwlock_unlock(&sender->lock);
	http_client_unref(&client);
}

void http_sender_fini(struct http_sender *sender)
{
	reopen_fini(&sender->reopen);
	authenticator_unref(&sender->authenticator);
	memory_free(sender->url);
	memory_free(sender->endpoint);
	memory_free(sender->address);
	memory_free(sender->port);
	pthread_rwlock_destroy(&sender->lock);
}

/* ---- configuration ---- */

struct packet_form http_sender_form(const struct http_sender_config *config,
				    enum packet_encoding encoding)
{
	return http_compression_form(&config->compression, encoding);
}

void http_sender_check(const struct http_sender_config *c, const char *key, const char *endpoint,
		       unsigned codings, struct faults *faults)
{
	http_client_config_check(&c->http, key, endpoint && *endpoint ? endpoint : NULL, faults);
	http_compression_check(&c->compression, codings, faults);
}
