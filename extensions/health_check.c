/* SPDX-License-Identifier: Apache-2.0 */
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "config/scalar.h"
#include "net/http/http_index.h"
#include "net/http/http_server.h"
#include "pipeline/component.h"

/* Reports over HTTP whether the gateway is ready, in the Collector's format. */
#define STOP_GRACE_NS UINT64_C(1000000000)
#define SECOND_NS UINT64_C(1000000000)
/* of the details: some hundred bytes for each exporter and storage of the configuration */
#define DETAILS_MAX ((size_t)1 << 24)
#define STATE_MAX 400

struct response_body {
	char *healthy, *unhealthy;
};

struct health_config {
	struct http_server_config http;
	char *path;
	struct response_body response_body;
	const struct node *check_collector_pipeline;
};

struct health_check {
	const struct host *host;
	const struct health_config *config;
	struct http_server *server;
	struct authenticator *authenticator; /* NULL: none */
};

/* RFC 3339 with as many digits of the second as are needed, as Go prints it. */
static void add_time(struct bytes *out, uint64_t ns)
{
	time_t seconds = (time_t)(ns / SECOND_NS);
	struct tm tm;
	char text[32];
	strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", gmtime_r(&seconds, &tm));
	bytes_add_text(out, text);
	if (ns % SECOND_NS) {
		bytes_format(out, ".%09u", (unsigned)(ns % SECOND_NS));
		while (out->at[out->len - 1] == '0')
			out->len--;
	}
	bytes_add_byte(out, 'Z');
}

static void add_state(struct bytes *out, bool ready, uint64_t up_since)
{
	if (!ready) {
		bytes_add_text(out,
			       "{\"status\":\"Server not "
			       "available\",\"upSince\":\"0001-01-01T00:00:00Z\",\"uptime\":\"\"");
		return;
	}
	uint64_t now = clock_wall();
	bytes_add_text(out, "{\"status\":\"Server available\",\"upSince\":\"");
	add_time(out, up_since);
	bytes_add_text(out, "\",\"uptime\":\"");
	scalar_add_duration(out, now > up_since ? (int64_t)(now - up_since) : 0);
	bytes_add_byte(out, '"');
}

/* Without anything to report, the body is the Collector's. */
static void add_status(struct bytes *out, bool ready, const struct service_view *service)
{
	struct bytes details;
	bytes_init(&details, DETAILS_MAX);
	service->details(service->context, false, &details);
	add_state(out, ready, service->up_since(service->context));
	if (details.len > strlen("[]")) {
		bytes_add_text(out, ",\"details\":");
		bytes_add(out, details.at, details.len);
	}
	bytes_add_byte(out, '}');
	bytes_fini(&details);
}

static void serve(void *context, struct http_exchange *exchange)
{
	struct health_check *h = context;
	const struct service_view *service = h->host->service;
	const struct response_body *own = &h->config->response_body;
	bool ready = service->ready(service->context);
	const char *text = ready ? own->healthy : own->unhealthy;
	bool worded = own->healthy || own->unhealthy;
	struct bytes status;
	bytes_init(&status, DETAILS_MAX + STATE_MAX);
	if (!worded)
		add_status(&status, ready, service);
	http_exchange_reply(exchange, &(struct http_reply){
					      .status = ready ? 200 : 503,
					      .content_type = worded ? "text/plain; charset=utf-8"
								     : "application/json",
					      .body = worded ? view_of(text ? text : "")
							     : bytes_view(&status),
				      });
	bytes_fini(&status);
}

/* With the same status: a probe that asks here must not get a better one. */
static void serve_index(void *context, struct http_exchange *exchange)
{
	const struct health_check *h = context;
	const struct service_view *service = h->host->service;
	const struct http_index_link links[] = { { h->config->path, "is the gateway ready?" },
						 { 0 } };
	http_index_reply(exchange, service->ready(service->context) ? 200 : 503, links);
}

static bool health_check_create(void *self, const void *config, const struct host *host,
				struct error *err)
{
	struct health_check *h = self;
	(void)err;
	h->host = host;
	h->config = config;
	h->authenticator = host_authenticator(host, &h->config->http.auth.present,
					      h->config->http.auth.authenticator);
	return true;
}

static void health_check_destroy(void *self)
{
	authenticator_unref(&((struct health_check *)self)->authenticator);
}

static bool health_check_start(void *self, struct error *err)
{
	struct health_check *h = self;
	const struct http_route routes[] = {
		{ .path = h->config->path, .methods = "GET,HEAD", .headers = serve, .context = h },
		{ .path = "/", .methods = "GET,HEAD", .headers = serve_index, .context = h },
	};
	h->server = http_server_start(
		&(struct http_server_options){
			.config = &h->config->http,
			.routes = routes,
			.route_count = strcmp(h->config->path, "/") ? 2 : 1,
			.log = &h->host->log,
			.metrics = h->host->metrics,
			.sockets = h->host->sockets,
			.authenticator = h->authenticator,
		},
		err);
	return h->server != NULL;
}

static void health_check_stop(void *self)
{
	struct health_check *h = self;
	http_server_stop(&h->server, STOP_GRACE_NS);
}

static bool health_check_reopen(void *self, struct error *err)
{
	struct health_check *h = self;
	return !h->server || http_server_reopen(h->server, err);
}

static void health_check_check(const void *config, struct faults *faults)
{
	const struct health_config *c = config;
	if (!c->path || *c->path != '/')
		faults_add(faults, "path must start with /");
	http_server_check(&c->http, faults);
}

static const struct config_row response_rows[] = {
	CONFIG_ROW(struct response_body, healthy, .key = "healthy",
		   .help = "Body of the response when ready."),
	CONFIG_ROW(struct response_body, unhealthy, .key = "unhealthy",
		   .help = "Body of the response when not ready."),
	{ 0 }
};
static const struct config_table response_table = { sizeof(struct response_body), response_rows,
						    NULL, false };

static const struct config_row rows[] = {
	HTTP_SERVER_ROWS(struct health_config, http, "localhost:13133", "128", "64"),
	CONFIG_ROW(struct health_config, path, .key = "path", .def = "/",
		   .help = "Path of the endpoint."),
	CONFIG_SECTION(struct health_config, response_body, response_table, .key = "response_body",
		       .help = "Bodies that replace the JSON status."),
	CONFIG_ROW(struct health_config, check_collector_pipeline,
		   .key = "check_collector_pipeline", .inert = true,
		   .help = "It has no effect in the Collector either."),
	{ 0 }
};

static const struct config_table table = { sizeof(struct health_config), rows, health_check_check,
					   false };

static const struct extension_ops health_check_ops = {
	.start = health_check_start,
	.stop = health_check_stop,
};

const struct component_factory health_check_extension = {
	.type = "health_check",
	.help = "Reports over HTTP whether the gateway is ready.",
	.manual = "The status is 200 with `{\"status\":\"Server "
		  "available\",\"upSince\":…,\"uptime\":…}` when all receivers are listening. "
		  "It is 503 with `{\"status\":\"Server not available\",…}` before that and "
		  "during shutdown. If there is something to report that does not affect the "
		  "status, the body has `details`: a list of objects with `component`, `state` and "
		  "`detail`. See [Health](operating.md#health).\n",
	.kind = COMPONENT_EXTENSION,
	.extension = &health_check_ops,
	.size = sizeof(struct health_check),
	.config = &table,
	.create = health_check_create,
	.destroy = health_check_destroy,
	.reopen = health_check_reopen,
};
