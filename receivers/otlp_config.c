/* SPDX-License-Identifier: Apache-2.0 */
#include "receivers/otlp_config.h"

#include "pipeline/component.h"
#include "pipeline/intake/otlp_documents.h"

#include <string.h>

static const struct config_row grpc_rows[] = { RPC_SERVER_ROWS("localhost:4317"), { 0 } };

static const struct config_table grpc_table = { sizeof(struct rpc_server_config), grpc_rows,
						rpc_server_check, .optional = true };

/* Is it one of the paths before it? */
static bool is_repeated(const struct strings *paths, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (!strcmp(paths->at[i], paths->at[k]))
			return true;
	return false;
}

static void check_path(const struct otlp_http_config *c, size_t i, struct faults *faults)
{
	const char *const others[] = { c->traces_url_path, c->metrics_url_path, c->logs_url_path };
	const char *path = c->profiles_url_paths.at[i];
	if (*path != '/')
		faults_add(faults, "profiles_url_paths[%zu]: must begin with /", i);
	if (is_repeated(&c->profiles_url_paths, i))
		faults_add(faults, "profiles_url_paths[%zu]: is listed twice", i);
	for (size_t k = 0; k < sizeof others / sizeof *others; k++)
		if (others[k] && !strcmp(path, others[k]))
			faults_add(faults, "profiles_url_paths[%zu]: is the path of another signal",
				   i);
}

static void check_paths(const struct otlp_http_config *c, struct faults *faults)
{
	const struct strings *paths = &c->profiles_url_paths;
	if (paths->count < 1 || paths->count > OTLP_HTTP_PATHS_MAX)
		faults_add(faults, "profiles_url_paths: must have 1 to %d paths",
			   OTLP_HTTP_PATHS_MAX);
	for (size_t i = 0; i < paths->count; i++)
		check_path(c, i, faults);
}

static void check_http(const void *config, struct faults *faults)
{
	const struct otlp_http_config *c = config;
	if (!c->server.endpoint || !*c->server.endpoint)
		faults_add(faults, "endpoint: must not be empty");
	check_paths(c, faults);
	http_server_check(&c->server, faults);
}

#define SIGNAL_ROW(member) \
	CONFIG_ROW(struct otlp_http_config, member##_url_path, .key = #member "_url_path", \
		   .def = "/v1/" #member, .inert = true, \
		   .help = "This gateway has no pipelines of " #member ", so requests to this " \
			   "path fail with 404.")

static const struct config_row http_rows[] = {
	HTTP_SERVER_ROWS(struct otlp_http_config, server, "localhost:4318", "4096", "1024"),
	CONFIG_ROW(struct otlp_http_config, profiles_url_paths, .key = "profiles_url_paths",
		   .def = "[/v1development/profiles]",
		   .help = "Paths that accept profiles. Add `/v1experimental/profiles` for "
			   "agents with OTLP of 2024, and `/v1/profiles`, which the "
			   "specification announces. Not a key of the Collector."),
	SIGNAL_ROW(traces),
	SIGNAL_ROW(metrics),
	SIGNAL_ROW(logs),
	{ 0 }
};

static const struct config_table http_table = { sizeof(struct otlp_http_config), http_rows,
						check_http, .optional = true };

static void check_otlp(const void *config, struct faults *faults)
{
	const struct otlp_config *c = config;
	if (!c->protocols.grpc.present.enabled && !c->protocols.http.server.present.enabled)
		faults_relate(faults, "protocols",
			      "must specify at least one protocol when using the OTLP receiver");
}

static const struct config_row protocol_rows[] = {
	CONFIG_SECTION(struct otlp_config, protocols.grpc, grpc_table, .key = "grpc",
		       .presence = PRESENCE_DEFAULT, .help = "OTLP over gRPC."),
	CONFIG_SECTION(struct otlp_config, protocols.http, http_table, .key = "http",
		       .presence = PRESENCE_DEFAULT, .help = "OTLP over HTTP."),
	{ 0 }
};

/* Its offsets are of the whole: protocols is the first member. */
static const struct config_table protocols_table = { sizeof(struct otlp_config), protocol_rows };

static const struct config_row otlp_rows[] = {
	CONFIG_SECTION(struct otlp_config, protocols, protocols_table, .key = "protocols",
		       .help = "The protocols to serve; at least one."),
	CONFIG_ROW(struct otlp_config, schema, .key = "schema", .def = "auto",
		   .choices = otlp_schemas,
		   .help = "The generation of OTLP to assume for requests whose content does not "
			   "show it; `auto`: the one that the sender has shown earlier. Other "
			   "requests are not affected."),
	ACK_ROW(struct otlp_config, ack),
	DEDUPLICATE_ROW(struct otlp_config, deduplicate),
	{ 0 }
};

const struct config_table otlp_config_table = { sizeof(struct otlp_config), otlp_rows, check_otlp };
