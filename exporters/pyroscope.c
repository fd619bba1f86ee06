/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <pthread.h>
#include <strings.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/version.h"
#include "exporters/pyroscope_answer.h"
#include "exporters/pyroscope_manual.h"
#include "net/compress.h"
#include "net/http/http_client.h"
#include "pipeline/delivery/delivery.h"
#include "pipeline/delivery/not_kept.h"
#include "profile/collect/split.h"
#include "profile/stores/encode_push.h"
#include "profile/stores/pieces.h"

/*
 * push.v1.PusherService/Push of Pyroscope, over Connect (protobuf by HTTP). A request has one
 * pprof: with several, the store may take some and refuse the others, which no retry can mend. So
 * plan makes a resource of each pprof (profile/stores/regroup.h), and cuts those that are over a
 * limit; send makes no decision of its own.
 */
#define PATH "/push.v1.PusherService/Push"

enum preset { PRESET_V1, PRESET_V2 };
enum label_names { NAMES_PRESET, NAMES_LEGACY, NAMES_UTF8 };
enum delta { DELTA_VALUES, DELTA_CUMULATIVE };

#define SAMPLES_MAX 16000
#define WINDOW_BEFORE (UINT64_C(3600) * 1000000000)
#define WINDOW_AHEAD (UINT64_C(600) * 1000000000)

struct label_config {
	int64_t max_names, max_name_length, max_value_length;
};

struct basic_config {
	char *username;
	struct secret password;
};

struct pyroscope_config {
	char *endpoint, *tenant, *compression;
	struct secret proxy_url; /* it may have a password */
	struct choice preset, labels, delta;
	struct label_config label_limits;
	bool numeric_sample_labels;
	int64_t max_stack_depth;
	struct basic_config basic_auth;
	struct secret bearer_token;
	struct pairs headers;
	struct tls_client_config tls;
	struct delivery_config delivery;
};

struct pyroscope {
	const struct pyroscope_config *config;
	const struct host *host;
	char *url, *address, *port;
	struct series_rules rules;
	struct slots *slots;
	bool gzip;
	struct metric_series *lost[SERIES_LOSSES], *merged, *moved, *cut;
	struct not_kept not_kept;
	struct loop_timer *reload_timer; /* NULL: certificates are read again on SIGHUP only */
	/* guards client: a send that was begun late finds it gone after stop */
	pthread_rwlock_t lock;
	struct http_client *client;
};

/* ---- plan ---- */

static bool encode(const void *context, const struct packet *packet, struct bytes *out,
		   struct error *err)
{
	(void)context;
	return encode_push(packet, out, err);
}

/* The body of the part's request. */
static const struct bytes *request_of(struct packet *packet, struct error *err)
{
	return packet_form(packet, FORM_REQUEST, encode, NULL, err);
}

/* What cannot be encoded is over the limit, whatever that is. */
static bool measure(void *context, struct packet *candidate, struct split_size *size,
		    struct error *err)
{
	const struct limits *limits = context;
	const struct bytes *request = request_of(candidate, err);
	if (!request && err->kind == ERROR_TOO_LARGE) {
		uint64_t most = encode_push_most(candidate);
		size->bytes = 2 * (most > limits->bytes ? most : limits->bytes);
		return true;
	}
	if (!request)
		return false;
	size->bytes = request->len;
	size->samples = encode_push_samples(bytes_view(request));
	return true;
}

static void pyroscope_preset(void *instance, struct limits *limits)
{
	uint64_t now = clock_wall();
	(void)instance;
	*limits = (struct limits){ .bytes = PYROSCOPE_BURST,
				   .samples = SAMPLES_MAX,
				   .oldest = now - WINDOW_BEFORE,
				   .newest = now + WINDOW_AHEAD };
}

static void count(struct pyroscope *self, const struct regroup *r)
{
	for (unsigned i = 0; i < SERIES_LOSSES; i++)
		if (r->series->lost[i])
			metric_add(self->lost[i], (int64_t)r->series->lost[i]);
	metric_add(self->merged, (int64_t)r->merged);
	metric_add(self->moved, (int64_t)r->moved);
	metric_add(self->cut, (int64_t)r->stacks_cut);
}

/* pieces_move has sealed some of them anew. */
static bool encode_parts(const struct parts *parts, uint32_t first, struct error *err)
{
	for (uint32_t i = first; i < parts->count; i++)
		if (!request_of(parts->at[i].packet, err))
			return false;
	return true;
}

static bool plan_fresh(const struct pyroscope *self, struct regroup *r, struct packet *packet,
		       const struct limits *limits, struct parts *parts, struct error *err)
{
	const struct split_measure by = { measure, (void *)limits };
	struct profiles p = { 0 };
	struct not_kept_counts not_kept;
	bool ok = split_open(packet, &p, err);
	if (ok) {
		not_kept_look(&p, &not_kept);
		ok = regroup_by_series(r, &p, err) &&
		     split_profiles(&p, packet, limits, &by, parts, err);
	}
	if (ok)
		not_kept_count(&self->not_kept, &not_kept);
	profiles_fini(&p);
	return ok;
}

static bool pyroscope_plan(void *instance, const struct part *whole, const struct limits *wanted,
			   struct parts *parts, struct error *err)
{
	struct pyroscope *self = instance;
	struct limits limits = *wanted;
	struct series_labels series;
	struct regroup r = { .series = &series,
			     .slots = self->slots,
			     .now = clock_wall(),
			     .cumulative = self->config->delta.index == DELTA_CUMULATIVE,
			     .stack_max = (uint32_t)self->config->max_stack_depth,
			     .samples_max =
				     limits.samples < UINT32_MAX ? (uint32_t)limits.samples : 0 };
	uint32_t first = parts->count;
	limits.resources = 1;
	series_init(&series, &self->rules);
	const struct split_measure by = { measure, &limits };
	/* A refused part keeps its labels. */
	bool ok = (whole->planned ? split_packet(whole->packet, &limits, &by, parts, err)
				  : plan_fresh(self, &r, whole->packet, &limits, parts, err)) &&
		  pieces_move(&r, parts, first, err) && encode_parts(parts, first, err);
	count(self, &r);
	series_fini(&series);
	return ok;
}

/* ---- send ---- */

/* One attempt: its body lives until the answer. */
struct flight {
	struct pyroscope *self;
	struct sending *sending;
	struct packet *packet;
	uint64_t bytes; /* not compressed */
};

/* The context is the uncompressed request. */
static bool zip(const void *context, const struct packet *packet, struct bytes *out,
		struct error *err)
{
	const struct bytes *request = context;
	(void)packet;
	out->max = PROFILES_INPUT_MAX;
	return compress_deflate(CODING_GZIP, 0, bytes_view(request), out, err);
}

/* What goes out: a retry finds it made. */
static const struct bytes *body_of(const struct pyroscope *self, struct packet *packet,
				   const struct bytes *request)
{
	if (!request || !self->gzip)
		return request;
	int64_t needed = packet_has(packet, FORM_REQUEST_GZIP) ? 0 : (int64_t)request->len;
	packet_claim(packet, needed);
	const struct bytes *zipped = packet_form(packet, FORM_REQUEST_GZIP, zip, request, NULL);
	packet_claim(packet, -needed);
	return zipped;
}

static void flight_free(struct flight *flight)
{
	packet_unref(&flight->packet);
	memory_free(flight);
}

static void on_answer(void *argument, const struct http_result *result)
{
	struct flight *flight = argument;
	struct send_result verdict = pyroscope_judge(result, flight->bytes);
	struct sending *sending = flight->sending;
	flight_free(flight);
	sending_done(sending, &verdict);
}

static bool begin_call(struct pyroscope *self, const struct http_post *post, struct flight *flight)
{
	pthread_rwlock_rdlock(&self->lock);
	bool running = self->client != NULL;
	if (running)
		http_client_post(self->client, post, on_answer, flight);
	pthread_rwlock_unlock(&self->lock);
	return running;
}

static bool begin_flight(struct flight *flight, uint64_t timeout_ns, struct send_result *failure)
{
	struct pyroscope *self = flight->self;
	const struct bytes *request = request_of(flight->packet, NULL);
	const struct bytes *body = body_of(self, flight->packet, request);
	const struct metadatum headers[] = {
		{ self->config->tenant ? "X-Scope-OrgID" : NULL, self->config->tenant }, { 0 }
	};
	struct http_post post = { .headers = headers,
				  .timeout_ns = timeout_ns,
				  .content_encoding = self->gzip ? "gzip" : NULL };
	if (!body)
		return false;
	flight->bytes = request->len;
	post.body = bytes_view(body);
	failure->outcome = SEND_RETRY;
	failure->reason = "stopped";
	return begin_call(self, &post, flight);
}

static void pyroscope_send(void *instance, const struct part *part, uint64_t timeout_ns,
			   struct sending *sending)
{
	struct flight *flight = memory_new(sizeof *flight);
	struct send_result failure = { .outcome = SEND_PERMANENT,
				       .retry_after_ms = -1,
				       .reason = "encoding" };
	*flight = (struct flight){ .self = instance,
				   .sending = sending,
				   .packet = packet_ref(part->packet) };
	if (begin_flight(flight, timeout_ns, &failure))
		return;
	flight_free(flight);
	sending_done(sending, &failure);
}

/* ---- life ---- */

static const struct metric labels_dropped = {
	"otelcol_exporter_pyroscope_labels_dropped", METRIC_COUNTER, "{labels}",
	"Labels of series and samples that the store could not have kept, by reason."
};
static const struct metric profiles_merged = {
	"otelcol_exporter_pyroscope_profiles_merged", METRIC_COUNTER, "{profiles}",
	"Profiles that went into another one of their series and millisecond."
};
static const struct metric profiles_moved = {
	"otelcol_exporter_pyroscope_profiles_moved", METRIC_COUNTER, "{profiles}",
	"Profiles, and parts of profiles, that were given the next free millisecond of their "
	"series."
};
static const struct metric stacks_cut = { "otelcol_exporter_pyroscope_stacks_cut", METRIC_COUNTER,
					  "{stacks}", "Stacks that lost their root side." };
static const struct metric *const metrics[] = { &labels_dropped, &profiles_merged, &profiles_moved,
						&stacks_cut, NULL };

#define NOT_KEPT \
	(NOT_KEPT_BY_PPROF | 1u << NOT_KEPT_NEGATIVE | 1u << NOT_KEPT_ZERO | \
	 1u << NOT_KEPT_ADDRESS | 1u << NOT_KEPT_COLUMN | 1u << NOT_KEPT_DOC_URL)

static void make_series(struct pyroscope *self)
{
	struct metrics *m = self->host->metrics;
	for (unsigned i = 0; i < SERIES_LOSSES; i++)
		self->lost[i] = metrics_series(m, &labels_dropped,
					       (const struct metric_label[]){
						       { "exporter", self->host->id },
						       { "reason", series_losses[i] },
						       { 0 } });
	const struct metric_label labels[] = { { "exporter", self->host->id }, { 0 } };
	self->merged = metrics_series(m, &profiles_merged, labels);
	self->moved = metrics_series(m, &profiles_moved, labels);
	self->cut = metrics_series(m, &stacks_cut, labels);
	not_kept_init(&self->not_kept, NOT_KEPT, m, self->host->id);
}

static bool pyroscope_create(void *instance, const void *settings, const struct host *host,
			     struct error *err)
{
	struct pyroscope *self = instance;
	const struct pyroscope_config *c = self->config = settings;
	size_t len = strlen(c->endpoint);
	(void)err;
	self->host = host;
	while (len && c->endpoint[len - 1] == '/')
		len--;
	self->url = memory_format("%.*s" PATH, (int)len, c->endpoint);
	http_client_place(self->url, &self->address, &self->port);
	self->gzip = !c->compression || !*c->compression || !strcmp(c->compression, "gzip");
	self->rules = (struct series_rules){
		.utf8 = c->labels.index == NAMES_UTF8 ||
			(c->labels.index == NAMES_PRESET && c->preset.index == PRESET_V2),
		.numbers = c->numeric_sample_labels,
		.names_max = (uint32_t)c->label_limits.max_names,
		.name_max = (uint32_t)c->label_limits.max_name_length,
		.value_max = (uint32_t)c->label_limits.max_value_length,
	};
	self->slots = slots_new();
	pthread_rwlock_init(&self->lock, NULL);
	make_series(self);
	return true;
}

static bool pyroscope_reopen(void *instance, struct error *err)
{
	struct pyroscope *self = instance;
	bool ok = true, changed = false;
	pthread_rwlock_rdlock(&self->lock);
	if (self->client)
		ok = http_client_reload(self->client, &changed, err);
	pthread_rwlock_unlock(&self->lock);
	if (changed)
		log_info(&self->host->log, "Certificates reloaded");
	return ok;
}

static void reload_is_due(void *instance)
{
	struct pyroscope *self = instance;
	struct error err = { 0 };
	if (!pyroscope_reopen(self, &err))
		log_error(&self->host->log, "Certificates are broken; keeping the old ones",
			  log_text("error", err.text));
	loop_timer_start(self->reload_timer, (uint64_t)self->config->tls.reload_interval.ns);
}

static const char *given(const char *text)
{
	return text && *text ? text : NULL;
}

static bool pyroscope_start(void *instance, struct error *err)
{
	struct pyroscope *self = instance;
	const struct pyroscope_config *c = self->config;
	self->client = http_client_new(
		&(struct http_client_options){
			.loop = self->host->loop,
			.url = self->url,
			.tls = &c->tls,
			.headers = &c->headers,
			.content_type = "application/proto",
			.user_agent = "Portcullis/" PORTCULLIS_VERSION,
			.username = given(c->basic_auth.username),
			.password = c->basic_auth.password.text,
			.bearer = given(c->bearer_token.text),
			.proxy = given(c->proxy_url.text),
		},
		err);
	if (self->client && c->tls.reload_interval.ns > 0) {
		self->reload_timer = loop_timer_new(self->host->loop, reload_is_due, self);
		loop_timer_start(self->reload_timer, (uint64_t)c->tls.reload_interval.ns);
	}
	return self->client != NULL;
}

static void pyroscope_stop(void *instance)
{
	struct pyroscope *self = instance;
	pthread_rwlock_wrlock(&self->lock);
	struct http_client *client = self->client;
	self->client = NULL;
	pthread_rwlock_unlock(&self->lock);
	http_client_unref(&client);
}

static void pyroscope_destroy(void *instance)
{
	struct pyroscope *self = instance;
	loop_timer_unref(&self->reload_timer);
	slots_unref(&self->slots);
	memory_free(self->url);
	memory_free(self->address);
	memory_free(self->port);
	pthread_rwlock_destroy(&self->lock);
}

static void pyroscope_destination(void *instance, const char **address, const char **port)
{
	const struct pyroscope *self = instance;
	*address = self->address;
	*port = self->port;
}

/* ---- configuration ---- */

/* The characters that the store takes in a tenant's name; some answer others with 500. */
static bool check_tenant(const char *tenant, struct error *err)
{
	static const char others[] = "!-_.*'()";
	size_t len = strlen(tenant);
	bool good = len <= 150 && strcmp(tenant, ".") && strcmp(tenant, "..");
	for (size_t i = 0; i < len && good; i++)
		good = isalnum((unsigned char)tenant[i]) || strchr(others, tenant[i]);
	return good || error_set(err, ERROR_CONFIG,
				 "tenant: at most 150 letters, digits and %s, "
				 "and neither \".\" nor \"..\"",
				 others);
}

static bool check_headers(const struct pyroscope_config *c, struct error *err)
{
	bool authorised = given(c->basic_auth.username) || given(c->bearer_token.text);
	for (size_t i = 0; i < c->headers.count; i++) {
		const char *name = c->headers.at[i].name, *value = c->headers.at[i].value.text;
		if (authorised && !strcasecmp(name, "authorization"))
			return error_set(err, ERROR_CONFIG,
					 "headers: Authorization comes from "
					 "basic_auth or bearer_token");
		if (strcasecmp(name, "x-scope-orgid"))
			continue;
		if (given(c->tenant))
			return error_set(err, ERROR_CONFIG,
					 "headers: X-Scope-OrgID comes from tenant");
		if (!check_tenant(value ? value : "", err))
			return error_prefix(err, "headers: X-Scope-OrgID");
	}
	return true;
}

static bool pyroscope_check(const void *config, struct error *err)
{
	const struct pyroscope_config *c = config;
	bool gzip = !given(c->compression) || !strcmp(c->compression, "gzip") ||
		    !strcmp(c->compression, "none");
	if (!given(c->endpoint))
		return error_set(err, ERROR_CONFIG, "endpoint must be specified");
	if (!http_client_check(c->endpoint, &c->headers, err) ||
	    !http_client_check_proxy(c->proxy_url.text, err))
		return false;
	if (!gzip)
		return error_set(err, ERROR_CONFIG,
				 "compression: unsupported type: the store takes gzip or none");
	if (given(c->basic_auth.username) && given(c->bearer_token.text))
		return error_set(err, ERROR_CONFIG,
				 "provide either basic_auth or bearer_token, but not both");
	return check_tenant(c->tenant ? c->tenant : "", err) && check_headers(c, err);
}

static const char *const presets[] = { "v1", "v2", NULL };
static const char *const names[] = { "preset", "legacy", "utf8", NULL };
static const char *const deltas[] = { "delta", "cumulative", NULL };

#define LABEL_ROW(member, name, value, least, most, text) \
	CONFIG_ROW(struct label_config, member, .key = name, .def = value, .limited = true, \
		   .min = least, .max = most, .help = text)

static const struct config_row label_rows[] = {
	LABEL_ROW(max_names, "max_names", "30", 3, 100,
		  "Labels of a series, with those of its samples; of more, those of lowest "
		  "precedence go."),
	LABEL_ROW(max_name_length, "max_name_length", "1024", 16, 65536,
		  "Bytes; a label with a longer name goes."),
	LABEL_ROW(max_value_length, "max_value_length", "2048", 16, 65536,
		  "Bytes; a longer value is cut."),
	{ 0 }
};
static const struct config_table label_table = { sizeof(struct label_config), label_rows };

static const struct config_row basic_rows[] = {
	CONFIG_ROW(struct basic_config, username, .key = "username",
		   .help = "With Grafana Cloud: the number of the user."),
	CONFIG_ROW(struct basic_config, password, .key = "password", .help = "Or a token."),
	{ 0 }
};
static const struct config_table basic_table = { sizeof(struct basic_config), basic_rows };

#define ROW(member, ...) CONFIG_ROW(struct pyroscope_config, member, .key = #member, __VA_ARGS__)

static const struct config_row rows[] = {
	ROW(endpoint, .help = "Where Pyroscope listens: `http://host:4040`. The path of the API "
			      "is added."),
	ROW(preset, .def = "v1", .choices = presets,
	    .help = "`v1`: what Pyroscope 1.x takes, which the newest takes too. `v2`: what only "
		    "the newest takes. Both keep a request below 1920 KiB, for a default burst "
		    "of 2 MiB holds for either; a store with a larger one takes up to 4 MiB: "
		    "`limits: {max_bytes: 4000000}`."),
	ROW(labels, .def = "preset", .choices = names,
	    .help = "Names of labels: `legacy`, letters, digits and `_` (of `v1`), or `utf8`, as "
		    "they are (of `v2`)."),
	CONFIG_SECTION(struct pyroscope_config, label_limits, label_table, .key = "label_limits",
		       .help = "What the store takes of labels; they are the store's defaults."),
	ROW(numeric_sample_labels, .def = "false",
	    .help = "Numbers on samples become texts; else they are dropped, as the store would."),
	ROW(delta, .def = "delta", .choices = deltas,
	    .help = "`delta`: values are of their profile's duration. `cumulative`: they are "
		    "since the start of the process, and the store is to subtract (memory "
		    "`alloc_*` only, and only with its first storage: the newer one would add "
		    "them up)."),
	ROW(max_stack_depth, .def = "1000", .limited = true, .min = 0, .max = 1000000,
	    .help = "Deeper stacks lose their root side; 0: none do. The store would cut the "
		    "leaf."),
	ROW(tenant, .help = "Sent as `X-Scope-OrgID`."),
	CONFIG_SECTION(struct pyroscope_config, basic_auth, basic_table, .key = "basic_auth",
		       .help = "Basic authentication."),
	ROW(bearer_token, .help = "Sent as `Authorization: Bearer`."),
	ROW(headers, .help = "Sent with each request."),
	CONFIG_SECTION(struct pyroscope_config, tls, tls_client_table, .key = "tls",
		       .help = "For `https://` endpoints."),
	ROW(compression, .def = "gzip", .help = "Of requests: `gzip` (level 1) or `none`."),
	ROW(proxy_url, .help = "Default: what `http_proxy`, `https_proxy` and `no_proxy` of the "
			       "environment say."),
	DELIVERY_ROWS(struct pyroscope_config, delivery, "30s"),
	{ 0 }
};
static const struct config_table table = { sizeof(struct pyroscope_config), rows, pyroscope_check };

static const struct exporter_ops pyroscope_ops = {
	.start = pyroscope_start,
	.stop = pyroscope_stop,
	.delivery_offset = offsetof(struct pyroscope_config, delivery),
	.preset = pyroscope_preset,
	.plan = pyroscope_plan,
	.destination = pyroscope_destination,
	.send = pyroscope_send,
};

const struct component_factory pyroscope_exporter = {
	.type = "pyroscope",
	.help = "Sends profiles to Grafana Pyroscope, as its own SDKs do.",
	.manual = PYROSCOPE_MANUAL,
	.kind = COMPONENT_EXPORTER,
	.exporter = &pyroscope_ops,
	.size = sizeof(struct pyroscope),
	.config = &table,
	.metrics = metrics,
	.create = pyroscope_create,
	.destroy = pyroscope_destroy,
	.reopen = pyroscope_reopen,
};
