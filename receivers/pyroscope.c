/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/intake/label_limits.h"
#include "receivers/pyroscope_manual.h"
#include "receivers/pyroscope_private.h"

/* Pyroscope's ingestion API, for its SDKs and for Alloy. Reading is not part of it. */

static const struct metric dropped_labels = {
	"otelcol_receiver_pyroscope_dropped_labels", METRIC_COUNTER, "{labels}",
	"Labels of series that did not become resource attributes, by reason: reserved (the name "
	"begins with __), duplicate (service.name beside service_name)."
};
static const struct metric *const metrics[] = { &dropped_labels, NULL };

static const char *const losses[PYROSCOPE_LOSSES] = {
	[PYROSCOPE_RESERVED] = "reserved",
	[PYROSCOPE_DUPLICATE] = "duplicate",
};

static void make_metrics(struct pyroscope_receiver *r, const struct host *host)
{
	for (unsigned i = 0; i < PYROSCOPE_LOSSES; i++)
		r->lost[i] = metrics_series(host->metrics, &dropped_labels,
					    (const struct metric_label[]){ { "reason", losses[i] },
									   { "receiver", host->id },
									   { 0 } });
}

static bool pyroscope_create(void *self, const void *config, const struct host *host,
			     struct error *err)
{
	struct pyroscope_receiver *r = self;
	const struct pyroscope_receiver_config *c = config;
	const struct http_intake_route routes[] = {
		pyroscope_ingest_routes[0],
		pyroscope_ingest_routes[1],
		pyroscope_push_route,
	};
	(void)err;
	memcpy(r->routes, routes, sizeof routes);
	r->limits = &c->limits;
	make_metrics(r, host);
	r->intake = http_intake_new(&(struct http_intake_options){
		.host = host,
		.config = &c->server,
		.routes = r->routes,
		.route_count = PYROSCOPE_ROUTES,
		.receiver = r,
	});
	return true;
}

static bool pyroscope_start(void *self, struct error *err)
{
	return http_intake_start(((struct pyroscope_receiver *)self)->intake, err);
}

static void pyroscope_stop(void *self)
{
	http_intake_stop(((struct pyroscope_receiver *)self)->intake);
}

static void pyroscope_retire(void *self)
{
	http_intake_retire(((struct pyroscope_receiver *)self)->intake);
}

static void pyroscope_destroy(void *self)
{
	http_intake_unref(&((struct pyroscope_receiver *)self)->intake);
}

static bool pyroscope_reopen(void *self, struct error *err)
{
	return http_intake_reopen(((struct pyroscope_receiver *)self)->intake, err);
}

static void pyroscope_check(const void *config, struct faults *faults)
{
	const struct pyroscope_receiver_config *c = config;
	if (!c->server.endpoint || !*c->server.endpoint)
		faults_add(faults, "endpoint must be specified");
	http_server_check(&c->server, faults);
}

static const struct config_row rows[] = {
	HTTP_SERVER_ROWS(struct pyroscope_receiver_config, server, "localhost:4040", "4096",
			 "1024"),
	CONFIG_SECTION(struct pyroscope_receiver_config, limits, label_limits_table,
		       .key = "series_limits",
		       .help = "Limits for series. Each message of a rejection names the limit."),
	ACK_ROW(struct pyroscope_receiver_config, ack),
	DEDUPLICATE_ROW(struct pyroscope_receiver_config, deduplicate),
	{ 0 }
};

static const struct config_table table = { sizeof(struct pyroscope_receiver_config), rows,
					   pyroscope_check };

static const struct receiver_path paths[] = { { "/ingest", "/ingest" },
					      { "/pyroscope/ingest", "/pyroscope/ingest" },
					      { "/push.v1.PusherService/Push",
						"/push.v1.PusherService/Push" },
					      { 0 } };

static const struct receiver_ops pyroscope_ops = {
	.paths = paths,
	.ack_offset = offsetof(struct pyroscope_receiver_config, ack),
	.deduplicate_offset = offsetof(struct pyroscope_receiver_config, deduplicate),
	.start = pyroscope_start,
	.stop = pyroscope_stop,
	.retire = pyroscope_retire,
};

const struct component_factory pyroscope_receiver = {
	.type = "pyroscope",
	.help = "Receives profiles from Pyroscope's SDKs and from Grafana Alloy.",
	.manual = PYROSCOPE_RECEIVER_MANUAL,
	.kind = COMPONENT_RECEIVER,
	.receiver = &pyroscope_ops,
	.metrics = metrics,
	.size = sizeof(struct pyroscope_receiver),
	.config = &table,
	.create = pyroscope_create,
	.destroy = pyroscope_destroy,
	.reopen = pyroscope_reopen,
};
