/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/intake/duplicates.h"
#include "pipeline/intake/http_intake.h"
#include "receivers/pprof_manual.h"
#include "receivers/pprof_private.h"
#include "receivers/pprof_report.h"

/* The receiver `pprof`: its parts, which are sections of its configuration, run side by side. */
struct pprof_config {
	struct http_server_config server;
	struct pprof_remote_config remote;
	struct pprof_file_config file;
	const struct node *self;
	struct choice ack;
	struct duplicates_config deduplicate;
};

/* A part that is not configured is NULL. */
struct pprof_receiver {
	struct http_intake *server;
	struct pprof_remote *remote;
	struct pprof_file *file;
};

static bool pprof_create(void *self, const void *config, const struct host *host, struct error *err)
{
	struct pprof_receiver *r = self;
	const struct pprof_config *c = config;
	if (c->server.present.enabled)
		r->server = pprof_server_new(&c->server, host);
	if (c->file.present.enabled)
		r->file = pprof_file_new(&c->file, host);
	if (c->remote.present.enabled)
		r->remote = pprof_remote_new(&c->remote, host, err);
	return r->remote || !c->remote.present.enabled;
}

static void pprof_stop(void *self)
{
	struct pprof_receiver *r = self;
	if (r->remote)
		pprof_remote_stop(r->remote);
	if (r->file)
		pprof_file_stop(r->file);
	if (r->server)
		http_intake_stop(r->server);
}

static bool pprof_start(void *self, struct error *err)
{
	struct pprof_receiver *r = self;
	if (r->server && !http_intake_start(r->server, err))
		return error_prefix(err, "server");
	if (r->file && !pprof_file_start(r->file, err))
		return error_prefix(err, "file");
	return !r->remote || pprof_remote_start(r->remote, err) || error_prefix(err, "remote");
}

static void pprof_retire(void *self)
{
	struct pprof_receiver *r = self;
	if (r->server)
		http_intake_retire(r->server);
	if (r->remote)
		pprof_remote_stop(r->remote);
	if (r->file)
		pprof_file_stop(r->file);
}

static void pprof_destroy(void *self)
{
	struct pprof_receiver *r = self;
	http_intake_unref(&r->server);
	pprof_remote_unref(&r->remote);
	pprof_file_unref(&r->file);
}

static bool pprof_reopen(void *self, struct error *err)
{
	struct pprof_receiver *r = self;
	return (!r->server || http_intake_reopen(r->server, err)) &&
	       (!r->remote || pprof_remote_reopen(r->remote, err));
}

static void pprof_check(const void *config, struct faults *faults)
{
	const struct pprof_config *c = config;
	if (c->self && c->self->kind != NODE_NULL)
		faults_add(faults, "self: not supported; let remote scrape the endpoint of the "
				   "extension pprof");
	if (!c->server.present.enabled && !c->remote.present.enabled && !c->file.present.enabled)
		faults_relate(faults, "remote file self server",
			      "at least one of remote, file, self, or "
			      "server must be configured");
	if (c->server.present.enabled && (!c->server.endpoint || !*c->server.endpoint))
		faults_add(faults, "server::endpoint: must be specified");
}

static const struct config_row rows[] = {
	CONFIG_SECTION(struct pprof_config, server, http_server_table, .key = "server",
		       .presence = PRESENCE_NONE,
		       .help = "Accepts profiles that are sent to `POST /v1/pprof`."),
	CONFIG_SECTION(struct pprof_config, remote, pprof_remote_table, .key = "remote",
		       .presence = PRESENCE_NONE, .help = "Scrapes profiles from other programs."),
	CONFIG_SECTION(struct pprof_config, file, pprof_file_table, .key = "file",
		       .presence = PRESENCE_NONE, .help = "Reads profiles from files."),
	CONFIG_ROW(struct pprof_config, self, .key = "self",
		   .help = "Not supported; setting it is an error. Let `remote` scrape the "
			   "endpoint of the extension `pprof`."),
	ACK_ROW(struct pprof_config, ack),
	DEDUPLICATE_ROW(struct pprof_config, deduplicate),
	{ 0 }
};

static const struct config_table table = { sizeof(struct pprof_config), rows, pprof_check, false };

static const struct receiver_path paths[] = { { "/v1/pprof", "/v1/pprof" }, { 0 } };

static const struct receiver_ops pprof_ops = {
	.paths = paths,
	.ack_offset = offsetof(struct pprof_config, ack),
	.deduplicate_offset = offsetof(struct pprof_config, deduplicate),
	.start = pprof_start,
	.stop = pprof_stop,
	.retire = pprof_retire,
};

const struct component_factory pprof_receiver = {
	.type = "pprof",
	.help = "Receives pprof profiles over HTTP, scrapes them, or reads them from files.",
	.manual = PPROF_SERVER_MANUAL PPROF_REMOTE_MANUAL PPROF_FILE_MANUAL,
	.kind = COMPONENT_RECEIVER,
	.receiver = &pprof_ops,
	.size = sizeof(struct pprof_receiver),
	.config = &table,
	.metrics = pprof_report_metrics,
	.create = pprof_create,
	.destroy = pprof_destroy,
	.reopen = pprof_reopen,
};
