/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/delivery/body.h"
#include "pipeline/delivery/delivery.h"
#include "pipeline/delivery/http_sender.h"
#include "pipeline/delivery/otlp_answer.h"
#include "pipeline/delivery/otlp_layout.h"
#include "pipeline/delivery/store_limits.h"

/* OTLP specification, "OTLP/HTTP Request": profiles have no stable path yet. */
#define PATH "/v1development/profiles"

struct otlp_http_config {
	char *endpoint, *profiles_endpoint, *traces_endpoint, *metrics_endpoint, *logs_endpoint;
	struct choice encoding, preset; /* preset: enum store */
	struct http_sender_config client;
	struct otlp_layout_config layout;
	struct delivery_config delivery;
	/* without effect */
	int64_t read_buffer_size, write_buffer_size;
	struct duration http2_read_idle_timeout, http2_ping_timeout;
	bool force_attempt_http2;
	const struct node *middlewares;
};

struct otlp_http {
	struct http_sender sender;
	struct packet_form form;
	enum store store;
	bool whole; /* profiles_endpoint is the URL */
};

enum { PROTO, JSON };
static const char *const encodings[] = { "proto", "json", NULL };

static bool given(const char *text)
{
	return text && *text;
}

/* ---- send ---- */

static void otlp_http_answered(void *instance, struct packet *packet,
			       const struct http_result *result, struct send_result *verdict)
{
	const struct otlp_http *self = instance;
	otlp_answer_judge(&self->sender.host->log, result, packet->profiles, verdict);
}

static const struct http_service services[] = {
	[PROTO] = { "application/x-protobuf", otlp_http_answered },
	[JSON] = { "application/json", otlp_http_answered },
};

static void otlp_http_send(void *instance, const struct part *part, uint64_t timeout_ns,
			   struct sending *sending)
{
	struct otlp_http *self = instance;
	const struct bytes *body = body_of(part->packet, self->form, NULL);
	if (!body) {
		sending_done(sending, &(struct send_result){ .outcome = SEND_PERMANENT,
							     .retry_after_ms = -1,
							     .reason = "encoding" });
		return;
	}
	http_sender_send(&self->sender,
			 &(struct http_sending){ .packet = part->packet, .body = bytes_view(body) },
			 timeout_ns, sending);
}

static void otlp_http_preset(void *instance, struct limits *limits)
{
	store_limits(((struct otlp_http *)instance)->store, limits);
}

static bool otlp_http_prompt(void *instance, const struct packet *packet)
{
	return packet_has(packet, ((struct otlp_http *)instance)->form);
}

static void otlp_http_encode(void *instance, struct packet *packet)
{
	body_prepare(packet, ((struct otlp_http *)instance)->form);
}

static struct packet_form otlp_http_reads(void *instance)
{
	return ((struct otlp_http *)instance)->form;
}

/* ---- life ---- */

static bool otlp_http_create(void *instance, const void *settings, const struct host *host,
			     struct error *err)
{
	struct otlp_http *self = instance;
	const struct otlp_http_config *c = settings;
	bool whole = self->whole = given(c->profiles_endpoint);
	(void)err;
	self->store = (enum store)c->preset.index;
	self->form = http_sender_form(&c->client,
				      otlp_layout_encoding(&c->layout, c->encoding.index == JSON));
	http_sender_init(&self->sender, &c->client, whole ? c->profiles_endpoint : c->endpoint,
			 whole ? "" : PATH, &services[c->encoding.index], self, host);
	return true;
}

static bool otlp_http_start(void *instance, struct error *err)
{
	return http_sender_start(&((struct otlp_http *)instance)->sender, err);
}

static void otlp_http_stop(void *instance)
{
	http_sender_stop(&((struct otlp_http *)instance)->sender);
}

static void otlp_http_destroy(void *instance)
{
	http_sender_fini(&((struct otlp_http *)instance)->sender);
}

static bool otlp_http_reopen(void *instance, struct error *err)
{
	return http_sender_reopen(&((struct otlp_http *)instance)->sender, err);
}

static void otlp_http_destination(void *instance, const char **address, const char **port)
{
	const struct otlp_http *self = instance;
	*address = self->sender.address;
	*port = self->sender.port;
}

static const char *otlp_http_endpoint(void *instance)
{
	const struct otlp_http *self = instance;
	return self->sender.endpoint;
}

static void otlp_http_blame(void *instance, uint32_t member, struct error *err)
{
	const struct otlp_http *self = instance;
	(void)member;
	error_prefix(err, self->whole ? "profiles_endpoint" : "endpoint");
}

/* ---- configuration ---- */

static void check_endpoints(const struct otlp_http_config *c, struct faults *faults)
{
	bool others =
		given(c->traces_endpoint) || given(c->metrics_endpoint) || given(c->logs_endpoint);
	if (!given(c->endpoint) && !given(c->profiles_endpoint))
		faults_relate(faults, "endpoint profiles_endpoint", "%s%s",
			      c->endpoint ? "endpoint: " : "",
			      others ? "either endpoint or profiles_endpoint must be specified"
				     : "at least one endpoint must be specified");
	const char *key = given(c->profiles_endpoint) ? "profiles_endpoint" : "endpoint";
	const char *url = given(c->profiles_endpoint) ? c->profiles_endpoint : c->endpoint;
	http_sender_check(&c->client, key, url, HTTP_COMPRESSION_ALL, faults);
}

static void otlp_http_check(const void *config, struct faults *faults)
{
	const struct otlp_http_config *c = config;
	if (c->middlewares && c->middlewares->count)
		faults_add(faults, "middlewares: this build has no middleware extension");
	otlp_layout_check(&c->layout, faults);
	check_endpoints(c, faults);
}

#define ROW(member, ...) CONFIG_ROW(struct otlp_http_config, member, .key = #member, __VA_ARGS__)
#define OTHER_SIGNAL .inert = true, .help = "Only profiles are sent."

static const struct config_row rows[] = {
	ROW(endpoint, .role = ROLE_CONNECTS,
	    .help = "Base URL of the server, such as `http://host:4318`. `" PATH
		    "` is appended. The scheme decides about TLS."),
	ROW(profiles_endpoint, .role = ROLE_CONNECTS,
	    .help = "The complete URL for profiles, instead of `endpoint`."),
	ROW(encoding, .def = "proto", .choices = encodings,
	    .help = "`proto`: protobuf; `json`: OTLP/JSON, which is several times larger."),
	HTTP_SENDER_ROWS(struct otlp_http_config, client,
			 "`gzip`, `zstd`, `zlib` or `deflate` (the same format), `lz4`, `snappy`, "
			 "`x-snappy-framed` or `none`"),
	STORE_PRESET_ROW(struct otlp_http_config, preset),
	OTLP_LAYOUT_ROWS(struct otlp_http_config, layout),
	DELIVERY_ROWS(struct otlp_http_config, delivery, "30s"),
	ROW(traces_endpoint, OTHER_SIGNAL),
	ROW(metrics_endpoint, OTHER_SIGNAL),
	ROW(logs_endpoint, OTHER_SIGNAL),
	ROW(read_buffer_size, .def = "0", .inert = true, .help = "libcurl chooses its buffers."),
	ROW(write_buffer_size, .def = "524288", .inert = true,
	    .help = "libcurl chooses its buffers."),
	ROW(force_attempt_http2, .def = "true", .inert = true,
	    .help = "Requests are sent over HTTP/1.1, which every OTLP/HTTP server accepts."),
	ROW(http2_read_idle_timeout, .def = "0s", .inert = true,
	    .help = "Requests are sent over HTTP/1.1."),
	ROW(http2_ping_timeout, .def = "0s", .inert = true,
	    .help = "Requests are sent over HTTP/1.1."),
	ROW(middlewares,
	    .help = "Middleware extensions. This build has none, so any entry is an error."),
	{ 0 }
};
static const struct config_table table = { sizeof(struct otlp_http_config), rows, otlp_http_check };

static const char manual[] =
	"Each request is one `POST`. Redirects are not followed: a response with a status of 300 "
	"or more is an error.\n\n"
	"Responses are classified as the OTLP specification requires. 429, 502, 503 and 504 are "
	"retried, and so is a request without a complete response. `Retry-After` of a 429 or 503 "
	"is honoured, as seconds or as a date. 409 is retried, too, unless `idempotency_key` is "
	"off: the server is processing an earlier attempt. A request that the server rejects as "
	"too large (413, or a message about the size with 400 or 429) is split and sent in parts, "
	"and so are later requests (`limits`). Any other error drops the data. The `error` in the "
	"log is the code of the `google.rpc.Status` in the response, or else a word for the HTTP "
	"status; the server's message is never logged.\n\n"
	"A partial success is logged and counted in `otelcol_exporter_rejected_profiles`. At most "
	"64 KiB of a response are read.\n\n"
	"Destinations with the same `encoding`, `compression` and level share one copy of a "
	"compressed request, also with the exporter `otlp_grpc`. `deflate` is the zlib format, as "
	"in the Collector.\n\n" OTLP_LAYOUT_MANUAL
	"`limits::max_bytes` counts protobuf, also with `encoding: json`, which has three to five "
	"times as many bytes.\n\n"
	"Certificates and keys are read again on SIGHUP and at `tls::reload_interval`.";

static const struct exporter_ops otlp_http_ops = {
	.start = otlp_http_start,
	.stop = otlp_http_stop,
	.delivery_offset = offsetof(struct otlp_http_config, delivery),
	.destination = otlp_http_destination,
	.endpoint = otlp_http_endpoint,
	.preset = otlp_http_preset,
	.prompt = otlp_http_prompt,
	.encode = otlp_http_encode,
	.reads = otlp_http_reads,
	.send = otlp_http_send,
	.probe = otlp_http_send,
	.blame = otlp_http_blame,
};

const struct component_factory otlp_http_exporter = {
	.type = "otlp_http",
	.alias = "otlphttp",
	.help = "Sends profiles to an OTLP/HTTP server.",
	.manual = manual,
	.kind = COMPONENT_EXPORTER,
	.exporter = &otlp_http_ops,
	.size = sizeof(struct otlp_http),
	.config = &table,
	.create = otlp_http_create,
	.destroy = otlp_http_destroy,
	.reopen = otlp_http_reopen,
};
