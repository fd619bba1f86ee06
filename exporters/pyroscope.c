/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <strings.h>

#include "base/clock.h"
#include "base/memory.h"
#include "exporters/pyroscope_answer.h"
#include "exporters/pyroscope_manual.h"
#include "net/compress.h"
#include "pipeline/delivery/delivery.h"
#include "pipeline/delivery/http_sender.h"
#include "pipeline/delivery/store_limits.h"
#include "pipeline/delivery/unsupported.h"
#include "profile/collect/split.h"
#include "profile/stores/encode_push.h"
#include "profile/stores/pieces.h"

/*
 * push.v1.PusherService/Push of Pyroscope, over Connect (protobuf by HTTP). A request has one
 * pprof: with several, the store may accept some and reject the others, which no retry can fix. So
 * plan turns each pprof into a resource (profile/stores/regroup.h) and splits those that exceed a
 * limit; send decides nothing.
 */
#define PATH "/push.v1.PusherService/Push"

enum preset { PRESET_V1, PRESET_V2 };
enum label_names { NAMES_PRESET, NAMES_LEGACY, NAMES_UTF8 };
enum delta { DELTA_VALUES, DELTA_CUMULATIVE };

struct label_config {
	int64_t max_names, max_name_length, max_value_length;
};

struct pyroscope_config {
	char *endpoint, *tenant;
	struct choice preset, labels, delta;
	struct label_config label_limits;
	bool numeric_sample_labels;
	int64_t max_stack_depth;
	struct http_sender_config client;
	struct delivery_config delivery;
};

struct pyroscope {
	struct http_sender sender;
	const struct pyroscope_config *config;
	struct series_rules rules;
	struct slots *slots;
	struct packet_form form; /* of what is sent */
	bool tenant_is_fixed;    /* by `tenant` or a header */
	struct metric_series *lost[SERIES_LOSSES], *merged, *moved, *cut;
	struct unsupported unsupported;
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

/* What cannot be encoded exceeds the limit, whatever that is. */
static bool measure(void *context, struct packet *candidate, struct split_size *size,
		    struct error *err)
{
	const struct limits *limits = context;
	const struct bytes *request = request_of(candidate, err);
	if (!request && err->kind == ERROR_TOO_LARGE) {
		uint64_t max = encode_push_max(candidate);
		size->bytes = 2 * (max > limits->bytes ? max : limits->bytes);
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
	(void)instance;
	store_limits(STORE_PYROSCOPE, limits);
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
	struct unsupported_counts unsupported;
	bool ok = split_open(packet, &p, err);
	if (ok) {
		unsupported_look(&p, &unsupported);
		ok = regroup_by_series(r, &p, err) &&
		     split_profiles(&p, packet, limits, &by, parts, err);
	}
	if (ok)
		unsupported_count(&self->unsupported, &unsupported);
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

struct zipping {
	const struct bytes *request;
	struct packet_form form;
};

static bool zip(const void *context, const struct packet *packet, struct bytes *out,
		struct error *err)
{
	const struct zipping *z = context;
	(void)packet;
	out->max = PROFILES_INPUT_MAX;
	return compress_deflate(z->form.coding, z->form.level, bytes_view(z->request), out, err);
}

/* What is sent; kept for retries. */
static const struct bytes *body_of(const struct pyroscope *self, struct packet *packet)
{
	const struct bytes *request = request_of(packet, NULL);
	if (!request || self->form.coding == CODING_IDENTITY)
		return request;
	const struct zipping zipping = { request, self->form };
	int64_t needed = packet_has(packet, self->form) ? 0 : (int64_t)request->len;
	packet_claim(packet, needed);
	const struct bytes *zipped = packet_form(packet, self->form, zip, &zipping, NULL);
	packet_claim(packet, -needed);
	return zipped;
}

static void pyroscope_answered(void *instance, struct packet *packet,
			       const struct http_result *result, struct send_result *verdict)
{
	(void)instance;
	pyroscope_judge(result, request_of(packet, NULL)->len, verdict);
	if (!packet->samples && pyroscope_found_nothing(result))
		verdict->outcome = SEND_OK;
}

static const struct http_service service = { "application/proto", pyroscope_answered };

/* NULL: none, or a header says it. */
static const char *tenant_of(const struct pyroscope *self, const struct packet *packet)
{
	if (self->tenant_is_fixed)
		return self->config->tenant;
	return packet->origin ? packet->origin->tenant : NULL;
}

static void pyroscope_send(void *instance, const struct part *part, uint64_t timeout_ns,
			   struct sending *sending)
{
	struct pyroscope *self = instance;
	const char *tenant = tenant_of(self, part->packet);
	const struct metadatum headers[] = { { tenant ? "X-Scope-OrgID" : NULL, tenant }, { 0 } };
	const struct bytes *body = body_of(self, part->packet);
	if (!body) {
		sending_done(sending, &(struct send_result){ .outcome = SEND_PERMANENT,
							     .retry_after_ms = -1,
							     .reason = "encoding" });
		return;
	}
	http_sender_send(&self->sender,
			 &(struct http_sending){ .packet = part->packet,
						 .body = bytes_view(body),
						 .headers = headers },
			 timeout_ns, sending);
}

/* ---- life ---- */

static const struct metric labels_dropped = {
	"otelcol_exporter_pyroscope_dropped_labels", METRIC_COUNTER, "{labels}",
	"Labels of series and samples that were dropped because the store does not support them, "
	"by reason."
};
static const struct metric profiles_merged = {
	"otelcol_exporter_pyroscope_merged_profiles", METRIC_COUNTER, "{profiles}",
	"Profiles that were merged into another profile of the same series and millisecond."
};
static const struct metric profiles_moved = {
	"otelcol_exporter_pyroscope_shifted_profiles", METRIC_COUNTER, "{profiles}",
	"Profiles, and parts of profiles, whose time was shifted to the next free millisecond of "
	"their series."
};
static const struct metric stacks_cut = { "otelcol_exporter_pyroscope_truncated_stacks",
					  METRIC_COUNTER, "{stacks}",
					  "Stacks that were truncated at the root." };
static const struct metric *const metrics[] = { &labels_dropped, &profiles_merged, &profiles_moved,
						&stacks_cut, NULL };

#define UNSUPPORTED \
	(UNSUPPORTED_BY_PPROF | 1u << UNSUPPORTED_NEGATIVE | 1u << UNSUPPORTED_ZERO | \
	 1u << UNSUPPORTED_EMPTY_STACK | 1u << UNSUPPORTED_ADDRESS | 1u << UNSUPPORTED_COLUMN | \
	 1u << UNSUPPORTED_DOC_URL)

static void make_series(struct pyroscope *self, const struct host *host)
{
	struct metrics *m = host->metrics;
	for (unsigned i = 0; i < SERIES_LOSSES; i++)
		self->lost[i] = metrics_series(m, &labels_dropped,
					       (const struct metric_label[]){
						       { "exporter", host->id },
						       { "reason", series_losses[i] },
						       { 0 } });
	const struct metric_label labels[] = { { "exporter", host->id }, { 0 } };
	self->merged = metrics_series(m, &profiles_merged, labels);
	self->moved = metrics_series(m, &profiles_moved, labels);
	self->cut = metrics_series(m, &stacks_cut, labels);
	unsupported_init(&self->unsupported, UNSUPPORTED, m, host->id);
}

static bool fixes_tenant(const struct pyroscope_config *c)
{
	bool fixed = c->tenant != NULL;
	for (size_t i = 0; i < c->client.http.headers.count; i++)
		fixed |= !strcasecmp(c->client.http.headers.at[i].name, "x-scope-orgid");
	return fixed;
}

static bool pyroscope_create(void *instance, const void *settings, const struct host *host,
			     struct error *err)
{
	struct pyroscope *self = instance;
	const struct pyroscope_config *c = self->config = settings;
	(void)err;
	self->form = http_sender_form(&c->client, PACKET_REQUEST);
	self->tenant_is_fixed = fixes_tenant(c);
	self->rules = (struct series_rules){
		.utf8 = c->labels.index == NAMES_UTF8 ||
			(c->labels.index == NAMES_PRESET && c->preset.index == PRESET_V2),
		.numbers = c->numeric_sample_labels,
		.service_name = true,
		.names_max = (uint32_t)c->label_limits.max_names,
		.name_max = (uint32_t)c->label_limits.max_name_length,
		.value_max = (uint32_t)c->label_limits.max_value_length,
	};
	self->slots = slots_new();
	make_series(self, host);
	http_sender_init(&self->sender, &c->client, c->endpoint, PATH, &service, self, host);
	return true;
}

static bool pyroscope_start(void *instance, struct error *err)
{
	return http_sender_start(&((struct pyroscope *)instance)->sender, err);
}

static void pyroscope_stop(void *instance)
{
	http_sender_stop(&((struct pyroscope *)instance)->sender);
}

static void pyroscope_destroy(void *instance)
{
	struct pyroscope *self = instance;
	http_sender_fini(&self->sender);
	slots_unref(&self->slots);
}

static bool pyroscope_reopen(void *instance, struct error *err)
{
	return http_sender_reopen(&((struct pyroscope *)instance)->sender, err);
}

static void pyroscope_destination(void *instance, const char **address, const char **port)
{
	const struct pyroscope *self = instance;
	*address = self->sender.address;
	*port = self->sender.port;
}

static const char *pyroscope_endpoint(void *instance)
{
	const struct pyroscope *self = instance;
	return self->sender.endpoint;
}

/* ---- configuration ---- */

/* The characters that the store accepts in a tenant's name; some versions answer others with
 * 500. */
static bool check_tenant(const char *tenant, struct error *err)
{
	static const char others[] = "!-_.*'()";
	size_t len = strlen(tenant);
	bool good = len <= 150 && strcmp(tenant, ".") && strcmp(tenant, "..");
	for (size_t i = 0; i < len && good; i++)
		good = isalnum((unsigned char)tenant[i]) || strchr(others, tenant[i]);
	return good || error_set(err, ERROR_CONFIG,
				 "tenant: must be at most 150 letters, digits and %s, and not "
				 "\".\" or \"..\"",
				 others);
}

/* The tenant, from whichever key names it. */
static void check_tenants(const struct pyroscope_config *c, struct faults *faults)
{
	const struct pairs *headers = &c->client.http.headers;
	struct error why;
	for (size_t i = 0; i < headers->count; i++) {
		const char *value = headers->at[i].value.text;
		if (strcasecmp(headers->at[i].name, "x-scope-orgid"))
			continue;
		if (c->tenant && *c->tenant)
			faults_relate(faults, "tenant",
				      "headers[%zu]: X-Scope-OrgID must not be set together with "
				      "tenant",
				      i);
		if (!check_tenant(value ? value : "", &why))
			faults_add(faults, "headers[%zu]: %s", i, why.text);
	}
	if (!check_tenant(c->tenant ? c->tenant : "", &why))
		faults_take(faults, &why);
}

static void pyroscope_check(const void *config, struct faults *faults)
{
	const struct pyroscope_config *c = config;
	if (!c->endpoint || !*c->endpoint)
		faults_add(faults, "endpoint must be specified");
	http_sender_check(&c->client, "endpoint", c->endpoint, HTTP_COMPRESSION_GZIP, faults);
	check_tenants(c, faults);
}

static const char *const presets[] = { "v1", "v2", NULL };
static const char *const names[] = { "preset", "legacy", "utf8", NULL };
static const char *const deltas[] = { "delta", "cumulative", NULL };

#define LABEL_ROW(member, name, value, minimum, maximum, text) \
	CONFIG_ROW(struct label_config, member, .key = name, .def = value, .limited = true, \
		   .min = minimum, .max = maximum, .help = text)

static const struct config_row label_rows[] = {
	LABEL_ROW(max_names, "max_names", "30", 3, 100,
		  "Maximum number of labels of a series, including those of its samples. "
		  "Beyond it, the labels of lowest precedence are dropped."),
	LABEL_ROW(max_name_length, "max_name_length", "1024", 16, 65536,
		  "Maximum length of a name in bytes. A label with a longer name is dropped."),
	LABEL_ROW(max_value_length, "max_value_length", "2048", 16, 65536,
		  "Maximum length of a value in bytes. A longer value is truncated."),
	{ 0 }
};
static const struct config_table label_table = { sizeof(struct label_config), label_rows };

#define ROW(member, ...) CONFIG_ROW(struct pyroscope_config, member, .key = #member, __VA_ARGS__)

static const struct config_row rows[] = {
	ROW(endpoint, .role = ROLE_CONNECTS,
	    .help = "Base URL of Pyroscope, such as `http://host:4040`. The path of the API is "
		    "appended."),
	ROW(preset, .def = "v1", .choices = presets,
	    .help = "`v1`: sends only what both Pyroscope 1.x and the newest version accept. "
		    "`v2`: sends what only the newest version accepts. Both keep a request "
		    "below 1920 KiB, because the default rate limit of all versions permits "
		    "bursts of 2 MiB. A store with a larger burst accepts up to 4 MiB: "
		    "`limits: {max_bytes: 4000000}`."),
	ROW(labels, .def = "preset", .choices = names,
	    .help = "Names of labels: `legacy` reduces them to letters, digits and `_` (the "
		    "default of `v1`); `utf8` keeps them unchanged (the default of `v2`)."),
	CONFIG_SECTION(struct pyroscope_config, label_limits, label_table, .key = "label_limits",
		       .help = "The store's limits for labels; the defaults are the store's."),
	ROW(numeric_sample_labels, .def = "false",
	    .help = "Converts numeric labels of samples to strings. Otherwise they are dropped, "
		    "as the store would do."),
	ROW(delta, .def = "delta", .choices = deltas,
	    .help = "`delta`: values cover the duration of their profile. `cumulative`: values "
		    "count from the start of the process, and the store computes the difference "
		    "(memory `alloc_*` only, and only with its older storage; the newer one would "
		    "add the values up)."),
	ROW(max_stack_depth, .def = "1000", .limited = true, .min = 0, .max = 1000000,
	    .help = "Deeper stacks are truncated at the root; 0: never. The store would truncate "
		    "them at the leaf."),
	ROW(tenant, .help = "Sent as `X-Scope-OrgID`. Default: the tenant of the data "
			    "(`service::tenant`), if it has one."),
	HTTP_SENDER_ROWS(struct pyroscope_config, client, "`gzip` or `none`"),
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
	.endpoint = pyroscope_endpoint,
	.send = pyroscope_send,
	.probe = pyroscope_send,
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
