/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "net/compress.h"
#include "pipeline/delivery/delivery.h"
#include "pipeline/delivery/grpc_sender.h"
#include "pipeline/delivery/store_limits.h"
#include "pipeline/delivery/unsupported.h"
#include "profile/collect/split.h"
#include "profile/stores/write_raw.h"

/*
 * Parca's WriteRaw over gRPC. A packet is rewritten so that each of its resources is one series
 * (profile/stores/write_raw.h), split by Parca's limits, and each part is encoded once, when it is
 * measured.
 */
#define METHOD_PATH "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw"
/* Of a request that is being encoded; a larger one is measured as too large, and split. */
#define ENCODED_MAX ((size_t)64 << 20)
#define ENCODED_MIN ((size_t)8 << 20)
#define STATUS_UNKNOWN 2 /* of gRPC */

enum names { NAMES_LEGACY, NAMES_UTF8 };
static const char *const label_names[] = { "legacy", "utf8", NULL };

struct parca_config {
	struct grpc_sender_config client;
	struct secret bearer_token;
	struct choice labels; /* enum names */
	char *name;
	struct strings lift_labels;
	bool normalized_addresses, retry_unknown;
	struct delivery_config delivery;
};

struct parca {
	struct grpc_sender sender;
	const struct parca_config *config;
	struct write_raw_rules rules;
	const char **lift; /* of the rules */
	bool gzip;
	struct metric_series *lost[WRITE_RAW_LOSSES];
	struct unsupported unsupported;
};

static const struct metric lost_labels = {
	"otelcol_exporter_parca_dropped_labels", METRIC_COUNTER, "{labels}",
	"Attributes that were not sent as labels of a series, or only in changed form, by reason."
};

#define UNSUPPORTED \
	(UNSUPPORTED_BY_PPROF | 1u << UNSUPPORTED_ZERO | 1u << UNSUPPORTED_COLUMN | \
	 1u << UNSUPPORTED_DOC_URL | 1u << UNSUPPORTED_PERIOD)

/* ---- requests: FORM_REQUEST of the packets that plan makes */

/* Series repeat what a packet contains once, so a request can be many times as long. */
static size_t max_bytes(const struct packet *packet)
{
	size_t max = ENCODED_MIN + packet->otlp.len * 32;
	return max < ENCODED_MAX ? max : ENCODED_MAX;
}

static bool encode_plain(const struct parca *self, const struct packet *packet, struct bytes *out,
			 struct error *err)
{
	out->max = max_bytes(packet);
	return write_raw_encode(packet, self->config->normalized_addresses, out, err);
}

static bool encode_gzip(const struct parca *self, const struct packet *packet, struct bytes *out,
			struct error *err)
{
	struct bytes plain = { 0 };
	out->max = ENCODED_MAX + ENCODED_MIN; /* more than any of them compresses to */
	bool ok = encode_plain(self, packet, &plain, err) &&
		  compress_deflate(CODING_GZIP, 0, bytes_view(&plain), out, err);
	bytes_fini(&plain);
	return ok;
}

static bool encode(const void *context, const struct packet *packet, struct bytes *out,
		   struct error *err)
{
	const struct parca *self = context;
	return self->gzip ? encode_gzip(self, packet, out, err)
			  : encode_plain(self, packet, out, err);
}

/* Parca counts what it inflates; a gzip member ends with that (RFC 1952, ISIZE). */
static uint64_t plain_bytes(const struct parca *self, struct view body)
{
	if (!self->gzip)
		return body.len;
	const uint8_t *end = body.at + body.len;
	return end[-4] | end[-3] << 8 | end[-2] << 16 | (uint32_t)end[-1] << 24;
}

static const struct bytes *request_of(const struct parca *self, struct packet *packet,
				      struct error *err)
{
	return packet_form(packet, FORM_REQUEST, encode, self, err);
}

/* What cannot be encoded is too large: its halves are tried. */
static bool measure(void *context, struct packet *candidate, struct split_size *size,
		    struct error *err)
{
	struct parca *self = context;
	const struct bytes *body = request_of(self, candidate, err);
	if (!body && err->kind != ERROR_TOO_LARGE)
		return false;
	size->bytes = body ? plain_bytes(self, bytes_view(body)) : 2 * ENCODED_MAX;
	size->samples = candidate->samples;
	return true;
}

static void count_lost(struct parca *self, const uint64_t lost[WRITE_RAW_LOSSES])
{
	for (int i = 0; i < WRITE_RAW_LOSSES; i++)
		if (lost[i])
			metric_add(self->lost[i], (int64_t)lost[i]);
}

static bool rewrite_and_split(struct parca *self, struct packet *packet, struct profiles *p,
			      const struct limits *limits, struct parts *parts, struct error *err)
{
	const struct split_measure by = { measure, self };
	struct write_raw_rules rules = self->rules;
	uint64_t lost[WRITE_RAW_LOSSES] = { 0 };
	struct unsupported_counts unsupported;
	unsupported_look(p, &unsupported);
	rules.arrival = clock_wall() - (clock_now() - packet->oldest_arrival);
	if (!write_raw_prepare(p, &rules, lost, err) ||
	    !split_profiles(p, packet, limits, &by, parts, err))
		return false;
	count_lost(self, lost);
	unsupported_count(&self->unsupported, &unsupported);
	return true;
}

static bool parca_plan(void *instance, const struct part *whole, const struct limits *wanted,
		       struct parts *parts, struct error *err)
{
	struct parca *self = instance;
	struct profiles p = { 0 };
	struct limits limits = *wanted;
	/* which it could not measure */
	limits.bytes = limits.bytes < ENCODED_MAX ? limits.bytes : ENCODED_MAX;
	/* A refused part is already rewritten; only its size is wrong. */
	if (whole->planned)
		return split_packet(whole->packet, &limits,
				    &(struct split_measure){ measure, self }, parts, err);
	bool ok = split_open(whole->packet, &p, err) &&
		  rewrite_and_split(self, whole->packet, &p, &limits, parts, err);
	profiles_fini(&p);
	return ok;
}

static void parca_preset(void *instance, struct limits *limits)
{
	(void)instance;
	store_limits(STORE_PARCA, limits);
}

/* ---- sending */

/* If two concurrent requests bring the same new functions, Parca 0.21 rejects one as UNKNOWN,
 * for the client to retry. */
static bool says_conflict(const struct grpc_result *result)
{
	return result->status == STATUS_UNKNOWN && strcasestr(result->message, "transaction "
									       "conflict");
}

/* Parca adds up duplicates. Without retry_unknown nothing is sent again that may have been
 * accepted. */
static void parca_answered(void *instance, const struct grpc_result *result,
			   const struct grpc_asked *asked, struct send_result *verdict)
{
	const struct parca *self = instance;
	(void)asked;
	if (says_conflict(result)) {
		verdict->outcome = SEND_RETRY;
		verdict->reason = "conflict";
	}
	if (self->config->retry_unknown || verdict->outcome != SEND_RETRY || result->unsent ||
	    result->retry_delay_ms >= 0)
		return;
	verdict->outcome = SEND_PERMANENT;
	verdict->reason = "unanswered";
}

static const struct grpc_method method = { METHOD_PATH, parca_answered };

static void release_packet(void *owner)
{
	struct packet *packet = owner;
	packet_unref(&packet);
}

static void parca_send(void *instance, const struct part *part, uint64_t timeout_ns,
		       struct sending *sending)
{
	struct parca *self = instance;
	const struct bytes *body = request_of(self, part->packet, NULL);
	if (!body) {
		sending_done(sending, &(struct send_result){ .outcome = SEND_PERMANENT,
							     .retry_after_ms = -1,
							     .reason = "encoding" });
		return;
	}
	const struct grpc_message message = { .bytes = bytes_view(body),
					      .coding = self->gzip ? CODING_GZIP : CODING_IDENTITY,
					      .release = release_packet,
					      .owner = packet_ref(part->packet) };
	grpc_sender_send(&self->sender, &message, part->packet, timeout_ns, sending);
}

/* ---- life */

static void make_rules(struct parca *self)
{
	const struct parca_config *c = self->config;
	self->lift = memory_array(c->lift_labels.count + 1, sizeof *self->lift);
	for (size_t i = 0; i < c->lift_labels.count; i++)
		self->lift[i] = c->lift_labels.at[i];
	self->rules = (struct write_raw_rules){
		.series = { .utf8 = c->labels.index == NAMES_UTF8, .numbers = true },
		.name = c->name && *c->name ? c->name : NULL,
		.lift = self->lift,
	};
}

static bool parca_create(void *instance, const void *settings, const struct host *host,
			 struct error *err)
{
	struct parca *self = instance;
	const struct parca_config *config = self->config = settings;
	self->gzip = grpc_sender_form(&config->client, PACKET_REQUEST).coding == CODING_GZIP;
	make_rules(self);
	for (int i = 0; i < WRITE_RAW_LOSSES; i++) {
		const struct metric_label labels[] = { { "exporter", host->id },
						       { "reason", write_raw_loss(i) },
						       { 0 } };
		self->lost[i] = metrics_series(host->metrics, &lost_labels, labels);
	}
	unsupported_init(&self->unsupported, UNSUPPORTED, host->metrics, host->id);
	return grpc_sender_init(&self->sender, &config->client, &method, self, host, err);
}

/* The configured headers, and one for the token after them. The caller frees the result. */
static char *add_token(const struct parca_config *config, struct pairs *headers)
{
	char *value = memory_format("Bearer %s", config->bearer_token.text);
	headers->at = memory_array(config->client.headers.count + 1, sizeof *headers->at);
	for (; headers->count < config->client.headers.count; headers->count++)
		headers->at[headers->count] = config->client.headers.at[headers->count];
	headers->at[headers->count++] = (struct pair){ (char *)"authorization", { value } };
	return value;
}

static bool has_token(const struct parca_config *config)
{
	return config->bearer_token.text && *config->bearer_token.text;
}

static bool parca_start(void *instance, struct error *err)
{
	struct parca *self = instance;
	struct pairs headers = { 0 };
	if (!has_token(self->config))
		return grpc_sender_start(&self->sender, NULL, err);
	char *value = add_token(self->config, &headers);
	bool ok = grpc_sender_start(&self->sender, &headers, err);
	memory_free(value);
	memory_free(headers.at);
	return ok;
}

static void parca_stop(void *instance)
{
	grpc_sender_stop(&((struct parca *)instance)->sender);
}

static void parca_destroy(void *instance)
{
	struct parca *self = instance;
	grpc_sender_fini(&self->sender);
	memory_free(self->lift);
}

static bool parca_reopen(void *instance, struct error *err)
{
	return grpc_sender_reopen(&((struct parca *)instance)->sender, err);
}

static void parca_destination(void *instance, const char **address, const char **port)
{
	const struct parca *self = instance;
	*address = self->sender.endpoint.host;
	*port = self->sender.endpoint.port;
}

static const char *parca_endpoint(void *instance)
{
	const struct parca *self = instance;
	return self->sender.endpoint.shown;
}

/* ---- configuration */

static bool is_name(const char *name)
{
	bool ok = !isdigit((unsigned char)*name);
	for (const char *c = name; *c && ok; c++)
		ok = isalnum((unsigned char)*c) || *c == '_';
	return ok;
}

static void check_token(const struct parca_config *config, struct faults *faults)
{
	struct grpc_endpoint endpoint;
	struct pairs headers = { 0 };
	struct error why;
	if (!has_token(config))
		return;
	bool plain = grpc_endpoint_parse(config->client.endpoint, &endpoint, &why) &&
		     grpc_endpoint_is_plaintext(&endpoint, &config->client.tls);
	grpc_endpoint_fini(&endpoint);
	if (plain)
		faults_relate(faults, "endpoint tls",
			      "bearer_token: would be sent in clear text; use TLS");
	char *value = add_token(config, &headers);
	if (!grpc_client_check_header(&headers, headers.count - 1, &why))
		faults_add(faults, "bearer_token: contains bytes that HTTP/2 forbids");
	memory_free(value);
	memory_free(headers.at);
}

/* The others are not known to Parca, which answers UNIMPLEMENTED. */
static void check_compression(const struct parca_config *c, struct faults *faults)
{
	const char *name = c->client.compression ? c->client.compression : "";
	if (*name && strcmp(name, "gzip") != 0 && strcmp(name, "none") != 0)
		faults_add(faults, "compression: Parca decompresses only gzip; use gzip or none");
}

static void parca_check(const void *settings, struct faults *faults)
{
	const struct parca_config *c = settings;
	grpc_sender_check(&c->client, faults);
	check_compression(c, faults);
	if (!is_name(c->name ? c->name : ""))
		faults_add(faults, "name: must have the form [A-Za-z_][A-Za-z0-9_]*");
	check_token(c, faults);
}

static const struct config_row rows[] = {
	GRPC_SENDER_ROWS(struct parca_config, client),
	CONFIG_ROW(
		struct parca_config, bearer_token, .key = "bearer_token",
		.help = "Sent as `authorization: Bearer ...`, as Polar Signals Cloud requires. An "
			"error without TLS."),
	CONFIG_ROW(
		struct parca_config, labels, .key = "labels", .def = "legacy",
		.choices = label_names,
		.help = "Names of labels: `legacy` converts them to `[A-Za-z_][A-Za-z0-9_]*`, "
			"which every Parca accepts; `utf8` keeps the keys, which the newest Parca "
			"accepts and Parca up to 0.21 rejects."),
	CONFIG_ROW(
		struct parca_config, name, .key = "name",
		.help = "The `__name__` of all series. Default: the resource attribute `__name__` "
			"if it is an identifier, else derived from the period type, as in "
			"Parca's scraper (`process_cpu`, `memory`, `mutex`, `goroutine`)."),
	CONFIG_ROW(struct parca_config, lift_labels, .key = "lift_labels",
		   .help = "Keys of sample attributes that become labels of series. Each "
			   "combination of their values is a separate series. Parca drops all "
			   "other sample attributes."),
	CONFIG_ROW(struct parca_config, normalized_addresses, .key = "normalized_addresses",
		   .def = "false",
		   .help = "`true`: addresses are already relative to the executable, as the "
			   "OpenTelemetry eBPF profiler sends them. `false`: Parca subtracts "
			   "the start of the mapping."),
	CONFIG_ROW(struct parca_config, retry_unknown, .key = "retry_unknown", .def = "true",
		   .help = "Retries requests that were sent but not answered. `true`: "
			   "at-least-once delivery; data that Parca had already stored is counted "
			   "twice. `false`: at-most-once delivery; data that Parca had not stored "
			   "is lost."),
	DELIVERY_ROWS(struct parca_config, delivery, "5s"),
	{ 0 }
};
static const struct config_table table = { sizeof(struct parca_config), rows, parca_check };

static const char manual[] =
	"Each Profile becomes a sample of a series. The labels of a series are `__name__`, then "
	"the attributes of resource, scope and Profile. If several names are equal, the first "
	"label is kept. An empty value, or a key that begins with `__` or `pprof.`, does not "
	"become a label. Attributes that did not become labels unchanged are counted in "
	"`otelcol_exporter_parca_dropped_labels`. Parca names a type "
	"`NAME:TYPE:UNIT:PERIOD_TYPE:PERIOD_UNIT`, with `:delta` if the Profile has a "
	"duration.\n\n"
	"Input that Parca cannot handle, or that makes its list of types fail for every user, is "
	"corrected before it is sent: a series always has labels, a missing period type becomes "
	"the sample type, an empty type or unit becomes `unknown`, each character of a type or "
	"unit that no query can contain (`-`, `.` and similar) becomes `_`, and a missing time "
	"becomes the time of arrival.\n\n"
	"The following is unsupported by Parca. Unless another counter is named, it is counted in "
	"`otelcol_exporter_unsupported_items`:\n\n"
	"- attributes of samples, which are the labels of pprof, and links to traces (counted as "
	"`sample_label`). List the attributes that matter in `lift_labels`, and their values "
	"become labels of series (links cannot be lifted). Each combination of values is a "
	"separate series with its own profiles, so do not lift attributes with many values;\n"
	"- timestamps of samples: all samples are counted at the time of their Profile;\n"
	"- negative values, which would read back as huge numbers: such samples are dropped "
	"(reason `plan`);\n- values of zero;\n"
	"- columns of lines, `doc_url`, attributes of mappings and locations that have no pprof "
	"field;\n"
	"- profile IDs, names of scopes, and the period, which Parca returns as 0: "
	"`samples`/`count` with the period type `cpu`/`nanoseconds` reads back as nanoseconds, "
	"the value times the period.\n\n"
	"Parca adds up everything that it receives, including duplicates. By default a request "
	"without a response is sent again: nothing is lost, but data that Parca had already "
	"stored is counted twice. With `retry_unknown: false` a request is sent again only if "
	"it certainly was not stored: no connection could be made, or Parca asked for a retry "
	"with RetryInfo. Other failed requests are dropped (reason `permanent`, error "
	"`unanswered`). If two concurrent requests contain the same new functions, Parca 0.21 "
	"rejects one of them (`Transaction Conflict`); by default it is sent again. After such "
	"conflicts Parca has been observed to answer some queries with `Key not found`, "
	"although it had accepted all data. Set `sending_queue: {num_consumers: 1}`: one "
	"gateway then sends no concurrent requests, and is no slower. With `retry_unknown: "
	"false` a conflict would drop data.\n\n"
	"Parca accepts requests of up to 64 MiB, if they arrive completely within 5 s. Requests "
	"are therefore kept below 16 MiB; "
	"`limits: {max_bytes: ...}` changes that.\n\n" GRPC_SENDER_MANUAL
	"\n\n" GRPC_SENDER_MANUAL_END "\n\n"
	"Do not send OTLP (`otlp_grpc`) to Parca: up to 0.21 it has no OTLP service, and the "
	"newest version stores each frame under the name of the preceding function in the "
	"dictionary.\n\n"
	"For Polar Signals Cloud: `{endpoint: 'grpc.polarsignals.com:443', bearer_token: ...}`.";

static const struct metric *const metrics[] = { &lost_labels, &grpc_sender_replies_too_large,
						NULL };

static const struct exporter_ops parca_ops = {
	.start = parca_start,
	.stop = parca_stop,
	.delivery_offset = offsetof(struct parca_config, delivery),
	.preset = parca_preset,
	.plan = parca_plan,
	.destination = parca_destination,
	.endpoint = parca_endpoint,
	.send = parca_send,
	.probe = parca_send,
};

const struct component_factory parca_exporter = {
	.type = "parca",
	.help = "Sends profiles to Parca or Polar Signals Cloud (WriteRaw over gRPC).",
	.manual = manual,
	.kind = COMPONENT_EXPORTER,
	.exporter = &parca_ops,
	.size = sizeof(struct parca),
	.config = &table,
	.metrics = metrics,
	.create = parca_create,
	.destroy = parca_destroy,
	.reopen = parca_reopen,
};
