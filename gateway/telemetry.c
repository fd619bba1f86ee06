/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/telemetry.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/system.h"
#include "base/version.h"
#include "config/print.h"
#include "net/compress.h"
#include "net/http/http_index.h"
#include "net/http/http_server.h"
#include "pipeline/graph/inventory.h"
#include "profile/packet.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>

#define METRICS_MAX ((size_t)16 << 20)
#define CONNECTIONS_MAX 64 /* they are not charged to the memory budget */

struct sampling_config {
	struct optional present;
	struct duration tick;
	int64_t initial, thereafter;
};

struct logs_config {
	char *level;
	struct choice encoding;
	struct sampling_config sampling;
	struct strings output_paths, error_output_paths;
	bool development, disable_caller, disable_stacktrace, disable_zap_resource;
	const struct node *initial_fields, *processors;
};

struct prometheus_config {
	char *host;
	int64_t port;
	bool without_scope_info, without_units, without_type_suffix;
	const struct node *with_resource_constant_labels;
};

struct pull_exporter_config {
	struct prometheus_config prometheus;
};

struct pull_config {
	struct pull_exporter_config exporter;
};

struct reader_config {
	struct pull_config pull;
	const struct node *periodic;
};

struct metrics_config {
	char *level;
	struct config_items readers; /* of struct reader_config */
	const struct node *views;
};

struct telemetry_config {
	struct logs_config logs;
	struct metrics_config metrics;
	const struct node *traces, *resource;
};

/* The levels above error have no lines here; they disable the log. */
static const char *const log_levels[] = { "debug",  "info",  "warn",  "error",
					  "dpanic", "panic", "fatal", NULL };
static const char *const metrics_levels[] = { "none", "basic", "normal", "detailed", NULL };
static const char *const encodings[] = { "console", "json", NULL };

/* Level names are case-insensitive, as in the Collector. -1: unknown level. */
static int find_level(const char *const *levels, const char *text)
{
	for (int i = 0; levels[i]; i++)
		if (!strcasecmp(levels[i], text))
			return i;
	return -1;
}

static const struct config_row sampling_rows[] = {
	CONFIG_ROW(struct sampling_config, tick, .key = "tick", .def = "10s",
		   .help = "Length of a sampling period."),
	CONFIG_ROW(struct sampling_config, initial, .key = "initial", .def = "10", .limited = true,
		   .min = 0, .max = 1000000,
		   .help = "Number of lines with the same component and message that are "
			   "written in each period before sampling begins."),
	CONFIG_ROW(struct sampling_config, thereafter, .key = "thereafter", .def = "100",
		   .limited = true, .min = 0, .max = 1000000,
		   .help = "After that, every Nth line is written; 0: none."),
	{ 0 }
};
static const struct config_table sampling_table = { .size = sizeof(struct sampling_config),
						    .rows = sampling_rows,
						    .optional = true };

static void check_logs(const void *config, struct faults *faults)
{
	const struct logs_config *logs = config;
	if (find_level(log_levels, logs->level) < 0)
		faults_add(faults, "`level`: unrecognized (valid levels: debug, info, warn, "
				   "error, dpanic, panic, fatal)");
	if (logs->processors && logs->processors->kind != NODE_NULL)
		faults_add(faults, "`processors`: this build does not support log export");
}

static const struct config_row logs_rows[] = {
	CONFIG_ROW(struct logs_config, level, .key = "level", .def = "info",
		   .help = "Lowest level that is written: `debug`, `info`, `warn` or `error`. "
			   "At the levels `dpanic`, `panic` and `fatal` nothing is written."),
	CONFIG_ROW(struct logs_config, encoding, .key = "encoding", .def = "console",
		   .choices = encodings, .help = "Format of a line."),
	CONFIG_SECTION(struct logs_config, sampling, sampling_table, .key = "sampling",
		       .presence = PRESENCE_SOME,
		       .help = "Limits the number of lines with the same message, regardless of "
			       "their fields."),
	CONFIG_ROW(struct logs_config, output_paths, .key = "output_paths", .def = "[stderr]",
		   .role = ROLE_WRITES_LOG,
		   .help = "`stderr`, `stdout` or files (reopened on SIGHUP)."),
	CONFIG_ROW(struct logs_config, error_output_paths, .key = "error_output_paths",
		   .def = "[stderr]", .inert = true,
		   .help = "The logger reports no errors of its own."),
	CONFIG_ROW(struct logs_config, development, .key = "development", .def = "false",
		   .inert = true, .help = "There is no development mode."),
	CONFIG_ROW(struct logs_config, disable_caller, .key = "disable_caller", .def = "false",
		   .inert = true, .help = "Lines always include their source location."),
	CONFIG_ROW(struct logs_config, disable_stacktrace, .key = "disable_stacktrace",
		   .def = "false", .inert = true, .help = "Lines never carry stack traces."),
	CONFIG_ROW(struct logs_config, disable_zap_resource, .key = "disable_zap_resource",
		   .def = "false", .inert = true, .help = "Lines never repeat the resource."),
	CONFIG_ROW(struct logs_config, initial_fields, .key = "initial_fields",
		   .help = "Map of strings added to every line."),
	CONFIG_ROW(struct logs_config, processors, .key = "processors",
		   .help = "Log export. Not supported; setting it is an error."),
	{ 0 }
};
static const struct config_table logs_table = { .size = sizeof(struct logs_config),
						.rows = logs_rows,
						.check = check_logs };

static const struct config_row prometheus_rows[] = {
	CONFIG_ROW(struct prometheus_config, host, .key = "host", .def = "localhost",
		   .help = "Address to listen on."),
	CONFIG_ROW(struct prometheus_config, port, .key = "port", .def = "8888", .limited = true,
		   .min = 0, .max = 65535,
		   .help = "Port to listen on; 0: the system chooses "
			   "one."),
	CONFIG_ROW(struct prometheus_config, without_scope_info, .key = "without_scope_info",
		   .def = "true",
		   .help = "`false`: series have the labels `otel_scope_name` and "
			   "`otel_scope_version`."),
	CONFIG_ROW(struct prometheus_config, without_units, .key = "without_units", .def = "true",
		   .help = "`false`: names end in their unit (`_seconds`, `_bytes`, `_ratio`)."),
	CONFIG_ROW(struct prometheus_config, without_type_suffix, .key = "without_type_suffix",
		   .def = "true", .help = "`false`: names of counters end in `_total`."),
	CONFIG_ROW(struct prometheus_config, with_resource_constant_labels,
		   .key = "with_resource_constant_labels", .inert = true,
		   .help = "Series carry no resource labels; see target_info."),
	{ 0 }
};
static const struct config_hint prometheus_hints[] = {
	{ "address", .text = "write `host` and `port`" },
	{ "endpoint", .text = "write `host` and `port`" },
	{ 0 }
};
static const struct config_table prometheus_table = { .size = sizeof(struct prometheus_config),
						      .rows = prometheus_rows,
						      .hints = prometheus_hints };
static const struct config_row pull_exporter_rows[] = {
	CONFIG_SECTION(struct pull_exporter_config, prometheus, prometheus_table,
		       .key = "prometheus", .help = "Prometheus text format at `/metrics`."),
	{ 0 }
};
static const struct config_table pull_exporter_table = {
	.size = sizeof(struct pull_exporter_config), .rows = pull_exporter_rows
};
static const struct config_row pull_rows[] = {
	CONFIG_SECTION(struct pull_config, exporter, pull_exporter_table, .key = "exporter",
		       .help = "How metrics are exposed."),
	{ 0 }
};
static const struct config_table pull_table = { .size = sizeof(struct pull_config),
						.rows = pull_rows };

static void check_reader(const void *config, struct faults *faults)
{
	const struct reader_config *reader = config;
	if (reader->periodic && reader->periodic->kind != NODE_NULL)
		faults_add(faults, "`periodic`: this build does not support pushing metrics");
}

static const struct config_row reader_rows[] = {
	CONFIG_SECTION(struct reader_config, pull, pull_table, .key = "pull",
		       .help = "An endpoint for scraping."),
	CONFIG_ROW(struct reader_config, periodic, .key = "periodic",
		   .help = "Metric export. Not supported; setting it is an error."),
	{ 0 }
};
static const struct config_table reader_table = { .size = sizeof(struct reader_config),
						  .rows = reader_rows,
						  .check = check_reader };

static void check_metrics(const void *config, struct faults *faults)
{
	const struct metrics_config *m = config;
	if (find_level(metrics_levels, m->level) < 0)
		faults_add(faults, "`level`: unknown (valid levels: none, basic, normal, "
				   "detailed)");
	if (!m->readers.count && strcasecmp(m->level, "none") != 0)
		faults_relate(faults, "readers level",
			      "collector telemetry metrics reader should exist when metric "
			      "level is not none");
	if (m->readers.count > 1)
		faults_add(faults, "`readers`: exactly one reader is supported");
	if (m->views && m->views->count && strcasecmp(m->level, "detailed") != 0)
		faults_relate(faults, "level",
			      "`views`: service::telemetry::metrics::views can only be set when "
			      "service::telemetry::metrics::level is detailed");
}

static const struct config_row metrics_rows[] = {
	CONFIG_ROW(struct metrics_config, level, .key = "level", .def = "normal",
		   .help = "`none` disables the endpoint. `basic`, `normal` and `detailed` all "
			   "expose every metric."),
	CONFIG_ITEMS(struct metrics_config, readers, CONFIG_LIST, reader_table, .key = "readers",
		     .def = "[{pull: {exporter: {prometheus: {}}}}]",
		     .help = "The readers. "
			     "Exactly one pull "
			     "reader is "
			     "supported."),
	CONFIG_ROW(struct metrics_config, views, .key = "views", .inert = true,
		   .help = "The gateway has no histograms to reshape."),
	{ 0 }
};
static const struct config_hint metrics_hints[] = {
	{ "address",
	  .text = "write readers: [{pull: {exporter: {prometheus: {host: HOST, port: PORT}}}}]" },
	{ 0 }
};
static const struct config_table metrics_table = { .size = sizeof(struct metrics_config),
						   .rows = metrics_rows,
						   .hints = metrics_hints,
						   .check = check_metrics };

static const struct config_row telemetry_rows[] = {
	CONFIG_SECTION(struct telemetry_config, logs, logs_table, .key = "logs",
		       .help = "Logs of the gateway."),
	CONFIG_SECTION(struct telemetry_config, metrics, metrics_table, .key = "metrics",
		       .help = "Metrics of the gateway."),
	CONFIG_ROW(struct telemetry_config, traces, .key = "traces", .inert = true,
		   .help = "The gateway emits no traces."),
	CONFIG_ROW(struct telemetry_config, resource, .key = "resource", .inert = true,
		   .help = "target_info has the name, version and instance only."),
	{ 0 }
};
const struct config_table telemetry_table = { .size = sizeof(struct telemetry_config),
					      .rows = telemetry_rows };

static const struct metric uptime = { "otelcol_process_uptime", METRIC_COUNTER, "s",
				      "Seconds since the process started.", .decimals = 3 };
static const struct metric cpu_seconds = { "otelcol_process_cpu_seconds", METRIC_COUNTER, "s",
					   "CPU time used, user and system.", .decimals = 6 };
static const struct metric memory_rss = { "otelcol_process_memory_rss", METRIC_GAUGE, "By",
					  "Resident memory." };
static const struct metric heap_alloc = { "otelcol_process_runtime_heap_alloc_bytes", METRIC_GAUGE,
					  "By", "Bytes of heap memory in use." };
static const struct metric heap_system = {
	"otelcol_process_runtime_total_sys_memory_bytes", METRIC_GAUGE, "By",
	"Bytes of heap memory obtained from the system, including free bytes."
};
static const struct metric target_info = { "target_info", METRIC_GAUGE, "1",
					   "Name, version and instance of this process." };
static const struct metric packets_encoded = {
	"otelcol_packet_encodings", METRIC_COUNTER, "{packets}",
	"Packets and parts of packets that were encoded or compressed, by form. A form counts "
	"once for all destinations that share it."
};
const struct metric *const telemetry_metrics[] = { &uptime,      &cpu_seconds, &memory_rss,
						   &heap_alloc,  &heap_system, &packets_encoded,
						   &target_info, NULL };

struct telemetry {
	struct telemetry_config config;
	const struct node *node; /* borrowed */
	struct metrics *metrics;
	struct log log;
	struct http_server_config http; /* borrowed by the server */
	struct http_server *server;
	uint64_t started;
	struct metric_series *uptime, *cpu, *rss, *heap, *heap_system,
		*encodings[PACKET_ENCODINGS][CODING_COUNT];
};

static int64_t microseconds(struct timeval time)
{
	return time.tv_sec * INT64_C(1000000) + time.tv_usec;
}

static struct metric_series *encodings_of(struct telemetry *t, enum packet_encoding encoding,
					  enum coding coding)
{
	char name[32];
	snprintf(name, sizeof name, "%s%s%s", packet_encoding_names[encoding],
		 coding == CODING_IDENTITY ? "" : "_",
		 coding == CODING_IDENTITY ? "" : compress_name(coding));
	const struct metric_label formed[] = { { "form", name }, { 0 } };
	return metrics_series(t->metrics, &packets_encoded, formed);
}

/* A form has a series once a packet was encoded in it: no program uses more than a few. */
static void count_encodings(struct telemetry *t)
{
	for (enum packet_encoding e = 0; e < PACKET_ENCODINGS; e++)
		for (enum coding c = 0; c < CODING_COUNT; c++) {
			uint64_t count = packet_encodings(e, c);
			if (count && !t->encodings[e][c])
				t->encodings[e][c] = encodings_of(t, e, c);
			if (count)
				metric_set(t->encodings[e][c], (int64_t)count);
		}
}

static void refresh(void *context)
{
	struct telemetry *t = context;
	struct rusage usage;
	int64_t from_system;
	getrusage(RUSAGE_SELF, &usage);
	metric_set(t->uptime, (int64_t)((clock_now() - t->started) / 1000000));
	metric_set(t->cpu, microseconds(usage.ru_utime) + microseconds(usage.ru_stime));
	metric_set(t->rss, system_resident());
	metric_set(t->heap, system_heap(&from_system));
	metric_set(t->heap_system, from_system);
	count_encodings(t);
}

static void make_series(struct telemetry *t)
{
	const struct metric_label none[] = { { 0 } };
	char instance[33];
	uint64_t random[2];
	hash_random(random, sizeof random);
	snprintf(instance, sizeof instance, "%016lx%016lx", random[0], random[1]);
	const struct metric_label target[] = { { "service_instance_id", instance },
					       { "service_name", "portcullis" },
					       { "service_version", PORTCULLIS_VERSION },
					       { 0 } };
	t->uptime = metrics_series(t->metrics, &uptime, none);
	t->cpu = metrics_series(t->metrics, &cpu_seconds, none);
	t->rss = metrics_series(t->metrics, &memory_rss, none);
	t->heap = metrics_series(t->metrics, &heap_alloc, none);
	t->heap_system = metrics_series(t->metrics, &heap_system, none);
	metric_set(metrics_series(t->metrics, &target_info, target), 1);
	metrics_on_scrape(t->metrics, refresh, t);
}

static bool configure_log(const struct logs_config *logs, struct error *err)
{
	const struct node *fields = logs->initial_fields;
	size_t count = fields && fields->kind == NODE_MAP ? fields->count : 0;
	struct log_field *initial = memory_array(count + 1, sizeof *initial);
	const char **paths = memory_array(logs->output_paths.count + 1, sizeof *paths);
	for (size_t i = 0; i < count; i++)
		initial[i] = (struct log_field)log_text(fields->children[i]->key,
							fields->children[i]->text);
	for (size_t i = 0; i < logs->output_paths.count; i++)
		paths[i] = logs->output_paths.at[i];
	bool ok = log_configure(
		&(struct log_config){
			.level = (enum log_level)find_level(log_levels, logs->level),
			.json = logs->encoding.index == 1,
			.sampling = logs->sampling.present.enabled,
			.sampling_initial = (int)logs->sampling.initial,
			.sampling_thereafter = (int)logs->sampling.thereafter,
			.sampling_tick_ns = (uint64_t)logs->sampling.tick.ns,
			.output_paths = paths,
			.initial_fields = initial,
		},
		err);
	memory_free(initial);
	memory_free(paths);
	return ok;
}

static void set_style(struct telemetry *t)
{
	static const char scope[] = "otel_scope_name=\"portcullis\",otel_scope_version="
				    "\"" PORTCULLIS_VERSION "\"";
	const struct reader_config *reader = t->config.metrics.readers.at;
	if (!t->config.metrics.readers.count)
		return;
	const struct prometheus_config *p = &reader->pull.exporter.prometheus;
	metrics_set_style(t->metrics,
			  &(struct metrics_style){ .units = !p->without_units,
						   .type_suffix = !p->without_type_suffix,
						   .scope = p->without_scope_info ? NULL : scope });
}

struct telemetry *telemetry_new(const struct node *node, struct metrics *metrics, struct error *err)
{
	struct telemetry *t = memory_new(sizeof *t);
	t->node = node;
	t->metrics = metrics;
	t->started = clock_now();
	if (!config_bind(&telemetry_table, node, "service::telemetry", &t->config, err)) {
		telemetry_unref(&t);
		return NULL;
	}
	set_style(t);
	make_series(t);
	return t;
}

bool telemetry_check(const struct node *node, struct problems *problems)
{
	struct telemetry_config config = { 0 };
	bool ok = config_bind_all(&telemetry_table, node, "service::telemetry", &config, problems);
	config_release(&telemetry_table, &config);
	return ok;
}

static void serve(void *context, struct http_exchange *exchange)
{
	struct telemetry *t = context;
	struct bytes text;
	bytes_init(&text, METRICS_MAX);
	metrics_write(t->metrics, &text);
	http_exchange_reply(exchange,
			    &(struct http_reply){
				    .status = 200,
				    .content_type = "text/plain; version=0.0.4; charset=utf-8",
				    .body = bytes_view(&text),
			    });
	bytes_fini(&text);
}

static void serve_index(void *context, struct http_exchange *exchange)
{
	static const struct http_index_link links[] = {
		{ "/metrics", "metrics in the text format of Prometheus" }, { 0 }
	};
	(void)context;
	http_index_reply(exchange, 200, links);
}

bool telemetry_open_log(struct telemetry *t, struct error *err)
{
	struct error why;
	if (!configure_log(&t->config.logs, &why))
		return node_error(node_get(node_get(t->node, "logs"), "output_paths"),
				  "service::telemetry::logs::output_paths", err, "%s", why.text);
	inventory_log_inert(&telemetry_table, t->node, "service::telemetry", &t->log);
	return true;
}

/* IPv6 addresses go in brackets. */
static char *listen_endpoint(const struct prometheus_config *p)
{
	bool bare = strchr(p->host, ':') && *p->host != '[';
	return memory_format("%s%s%s:%ld", bare ? "[" : "", p->host, bare ? "]" : "", p->port);
}

char *telemetry_endpoint(const struct telemetry *t)
{
	const struct reader_config *reader = t->config.metrics.readers.at;
	if (!strcasecmp(t->config.metrics.level, "none"))
		return NULL;
	/* there is one: check_metrics */
	return listen_endpoint(&reader->pull.exporter.prometheus);
}

bool telemetry_start(struct telemetry *t, struct error *err)
{
	const struct http_route routes[] = {
		{ .path = "/metrics", .methods = "GET,HEAD", .headers = serve, .context = t },
		{ .path = "/", .methods = "GET,HEAD", .headers = serve_index },
	};
	struct http_server_config *http = &t->http;
	char *endpoint = telemetry_endpoint(t);
	if (!endpoint)
		return true;
	if (!config_bind(&http_server_table, NULL, "service::telemetry::metrics", http, err)) {
		memory_free(endpoint);
		return false;
	}
	memory_free(http->endpoint);
	http->endpoint = endpoint;
	http->max_connections = CONNECTIONS_MAX;
	http->max_connections_per_peer = CONNECTIONS_MAX / 2;
	t->server = http_server_start(
		&(struct http_server_options){
			.config = http,
			.routes = routes,
			.route_count = sizeof routes / sizeof *routes,
			.log = &t->log,
			.metrics = t->metrics,
		},
		err);
	return t->server || error_prefix(err, "service::telemetry::metrics");
}

void telemetry_unref(struct telemetry **telemetry)
{
	struct telemetry *t = *telemetry;
	if (!t)
		return;
	if (t->server)
		http_server_stop(&t->server, 1000000000);
	config_release(&http_server_table, &t->http);
	metrics_off_scrape(t->metrics, t);
	config_release(&telemetry_table, &t->config);
	memory_free(t);
	*telemetry = NULL;
}

void telemetry_walk(const struct telemetry *t,
		    void (*visit)(void *context, const struct config_spot *spot), void *context)
{
	config_walk(&telemetry_table, &t->config, t->node, "service::telemetry", visit, context);
}

void telemetry_print(const struct telemetry *t, bool redact, bool json, struct bytes *out)
{
	if (json)
		config_print_json(&telemetry_table, &t->config, t->node, redact, out);
	else
		config_print(&telemetry_table, &t->config, t->node, 4, redact, out);
}
