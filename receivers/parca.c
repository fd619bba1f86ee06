/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/intake/label_limits.h"
#include "receivers/parca_private.h"

/* Parca's ProfileStoreService, for clients that write. Reading is not part of it. */
#define SERVICE "/parca.profilestore.v1alpha1.ProfileStoreService/"

static const struct metric unsupported = {
	"otelcol_receiver_parca_unsupported_items", METRIC_COUNTER, "{items}",
	"Items of WriteRaw requests that are not forwarded, by kind: normalized (requests that say "
	"that addresses are relative to the executable), executable_info."
};
static const struct metric *const metrics[] = { GRPC_INTAKE_METRICS, &unsupported, NULL };

static const struct grpc_intake_method methods[] = {
	{
		.path = SERVICE "WriteRaw",
		.request_size = sizeof(struct parca_request),
		.documents = { PARCA_DOCUMENTS },
		.whole = true,
	},
	{ .path = SERVICE "Write", .unsupported = PARCA_NO_ARROW },
	{ .path = SERVICE "WriteArrow", .unsupported = PARCA_NO_ARROW },
};

static void make_metrics(struct parca_receiver *r, const struct host *host)
{
	static const char *const kinds[PARCA_UNSUPPORTED] = {
		[PARCA_NORMALIZED] = "normalized",
		[PARCA_EXECUTABLE_INFO] = "executable_info",
	};
	for (int i = 0; i < PARCA_UNSUPPORTED; i++)
		r->unsupported[i] =
			metrics_series(host->metrics, &unsupported,
				       (const struct metric_label[]){ { "kind", kinds[i] },
								      { "receiver", host->id },
								      { 0 } });
}

static bool parca_create(void *self, const void *config, const struct host *host, struct error *err)
{
	struct parca_receiver *r = self;
	const struct parca_receiver_config *c = r->config = config;
	(void)err;
	make_metrics(r, host);
	if (c->protocols.grpc.present.enabled)
		r->grpc = grpc_intake_new(&(struct grpc_intake_options){
			.host = host,
			.config = &c->protocols.grpc,
			.methods = methods,
			.method_count = sizeof methods / sizeof *methods,
			.receiver = r,
		});
	if (c->protocols.http.present.enabled)
		r->http = http_intake_new(&(struct http_intake_options){
			.host = host,
			.config = &c->protocols.http,
			.routes = parca_http_routes,
			.route_count = PARCA_ROUTES,
			.receiver = r,
		});
	return true;
}

static bool parca_start(void *self, struct error *err)
{
	struct parca_receiver *r = self;
	if (r->grpc && !grpc_intake_start(r->grpc, err))
		return error_prefix(err, "protocols::grpc");
	return !r->http || http_intake_start(r->http, err) || error_prefix(err, "protocols::http");
}

static void parca_stop(void *self)
{
	struct parca_receiver *r = self;
	if (r->grpc)
		grpc_intake_stop(r->grpc);
	if (r->http)
		http_intake_stop(r->http);
}

static void parca_retire(void *self)
{
	struct parca_receiver *r = self;
	if (r->grpc)
		grpc_intake_retire(r->grpc);
	if (r->http)
		http_intake_retire(r->http);
}

static void parca_destroy(void *self)
{
	struct parca_receiver *r = self;
	if (r->grpc)
		grpc_intake_unref(&r->grpc);
	if (r->http)
		http_intake_unref(&r->http);
}

static bool parca_reopen(void *self, struct error *err)
{
	struct parca_receiver *r = self;
	return (!r->grpc || grpc_intake_reopen(r->grpc, err)) &&
	       (!r->http || http_intake_reopen(r->http, err));
}

/* ---- configuration */

static const char *const label_names[] = { "legacy", "utf8", NULL };

static const struct config_row grpc_rows[] = { RPC_SERVER_ROWS("localhost:7070"), { 0 } };
static const struct config_table grpc_table = { sizeof(struct rpc_server_config), grpc_rows,
						rpc_server_check, .optional = true };

static void parca_check(const void *config, struct faults *faults)
{
	const struct parca_receiver_config *c = config;
	const struct http_server_config *http = &c->protocols.http;
	if (!c->protocols.grpc.present.enabled && !http->present.enabled)
		faults_add(faults, "protocols: grpc, http or both must be specified");
	if (http->present.enabled && (!http->endpoint || !*http->endpoint))
		faults_add(faults, "protocols::http::endpoint: must be specified");
}

static const struct config_row protocol_rows[] = {
	CONFIG_SECTION(struct parca_receiver_config, protocols.grpc, grpc_table, .key = "grpc",
		       .presence = PRESENCE_DEFAULT, .help = "WriteRaw over gRPC."),
	CONFIG_SECTION(struct parca_receiver_config, protocols.http, http_server_table,
		       .key = "http", .presence = PRESENCE_NONE,
		       .help = "WriteRaw as JSON: `POST /api/profiles/writeraw`."),
	{ 0 }
};
/* Its offsets are of the whole: protocols is the first member. */
static const struct config_table protocols_table = { sizeof(struct parca_receiver_config),
						     protocol_rows };

static const struct config_row rows[] = {
	CONFIG_SECTION(struct parca_receiver_config, protocols, protocols_table, .key = "protocols",
		       .help = "The protocols that it serves, at least one."),
	CONFIG_ROW(struct parca_receiver_config, labels, .key = "labels", .def = "legacy",
		   .choices = label_names,
		   .help = "Names of labels: `legacy` accepts `[A-Za-z_][A-Za-z0-9_]*`, as Parca "
			   "up to 0.21 does; `utf8` accepts all names, as the newest Parca does."),
	CONFIG_SECTION(struct parca_receiver_config, limits, label_limits_table,
		       .key = "series_limits",
		       .help = "Limits for series. Each message of a rejection names the limit."),
	ACK_ROW(struct parca_receiver_config, ack),
	DEDUPLICATE_ROW(struct parca_receiver_config, deduplicate),
	{ 0 }
};
static const struct config_table table = { sizeof(struct parca_receiver_config), rows,
					   parca_check };

static const char manual[] =
	"Clients of Parca send to this receiver as to Parca itself, without the paths for "
	"reading.\n\n"
	"| Request | Body |\n"
	"|---|---|\n"
	"| gRPC `parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw` | `WriteRawRequest` |\n"
	"| `POST /api/profiles/writeraw` (`protocols.http`) | the same as JSON; the profiles are "
	"base64 |\n"
	"| `Write`, `WriteArrow`, `POST /api/profiles/write`, `POST /api/profiles/writearrow` | "
	"not supported: UNIMPLEMENTED or 501, with the reason. parca-agent sends Apache Arrow "
	"by these methods |\n\n"
	"gRPC and HTTP listen at different addresses.\n\n"
	"The profiles are pprof, plain or compressed with gzip or zstd. **Labels of a series "
	"become resource attributes** with the same key and value, so the policy applies to "
	"them:\n\n"
	"| Label | Attribute |\n"
	"|---|---|\n"
	"| `service_name` | `service.name`; a label `service.name` beside it is dropped |\n"
	"| `__name__` | `__name__` |\n"
	"| all others, such as `job` and `instance` | the same key |\n\n"
	"Labels inside a pprof become attributes of its samples. To get the same series as from a "
	"direct write, send to the exporter `parca`, and permit `service.name`, `__name__` and "
	"the labels that you want in `allowlist`. Without `__name__`, the exporter derives the "
	"name from the types.\n\n"
	"`tenant` is ignored. `normalized` and `executable_info` are not forwarded, and are "
	"counted in `otelcol_receiver_parca_unsupported_items`. If clients set `normalized`, set "
	"`normalized_addresses: true` on the exporter.\n\n"
	"A series is rejected if it has no label `__name__`, a name that is not of the form that "
	"`labels` requires, a name twice, or more or longer labels than `series_limits` permits. A "
	"profile is rejected if it cannot be decoded, or if the number of its `executable_info` "
	"differs from that of its mappings. Each profile is accepted or rejected by itself. If "
	"some are rejected, the request fails with INVALID_ARGUMENT, because a `WriteRawResponse` "
	"cannot report it; the others stay accepted. Do not repeat such a request. "
	"`otelcol_receiver_refused_profiles` counts the rejected ones.\n\n"
	"| Code | Status | When |\n"
	"|---|---|---|\n"
	"| OK | 200, `{}` | every profile was accepted, or there was none |\n"
	"| INVALID_ARGUMENT | 400 | malformed request, series or profiles were rejected |\n"
	"| RESOURCE_EXHAUSTED | 413 | larger than `max_recv_msg_size_mib` or "
	"`max_request_body_size`, as sent or decompressed, or more profiles than "
	"`series_limits.max_profiles` |\n"
	"| UNIMPLEMENTED | 415, 501 | another Content-Encoding; a method of Arrow |\n"
	"| UNAVAILABLE | 503 | memory or all queues are full, the sender has used up its share of "
	"the memory, or the gateway is shutting down; RetryInfo and `Retry-After` say when to "
	"retry |\n\n"
	"An error over HTTP is JSON: `{\"code\": 3, \"message\": \"...\", \"details\": []}`.\n\n"
	"During a shutdown, accepted requests have 10 s to finish, within `--shutdown-timeout`. "
	"New requests are refused.\n";

static const struct receiver_path paths[] = {
	{ "/api/profiles/writeraw", "/api/profiles/writeraw" }, { 0 }
};

static const struct receiver_ops parca_ops = {
	.paths = paths,
	.ack_offset = offsetof(struct parca_receiver_config, ack),
	.deduplicate_offset = offsetof(struct parca_receiver_config, deduplicate),
	.start = parca_start,
	.stop = parca_stop,
	.retire = parca_retire,
};

const struct component_factory parca_receiver = {
	.type = "parca",
	.help = "Receives profiles from clients of Parca (WriteRaw over gRPC and HTTP).",
	.manual = manual,
	.kind = COMPONENT_RECEIVER,
	.receiver = &parca_ops,
	.metrics = metrics,
	.size = sizeof(struct parca_receiver),
	.config = &table,
	.create = parca_create,
	.destroy = parca_destroy,
	.reopen = parca_reopen,
};
