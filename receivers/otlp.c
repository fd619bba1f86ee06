/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/intake/grpc_intake.h"
#include "pipeline/intake/otlp_documents.h"
#include "receivers/otlp_config.h"
#include "receivers/otlp_http.h"
#include "receivers/otlp_manual.h"
#include "receivers/otlp_response.h"

#include <assert.h>

/* OTLP (opentelemetry-proto 1.11, collector/profiles/v1development) over gRPC, which is
 * ProfilesService/Export, and over HTTP (receivers/otlp_http.h). */
struct otlp_receiver {
	struct otlp_documents documents;
	/* NULL: not configured */
	struct grpc_intake *grpc;
	struct otlp_http *http;
};

static const struct metric *const metrics[] = { &otlp_documents_metric, GRPC_INTAKE_METRICS, NULL };

/* Fluent Bit sends the current layout to the path of 1.3, so the path does not decide about the
 * generation. The messages of the response are the same. */
#define OTLP_METHOD(version) \
	{ \
		.path = "/opentelemetry.proto.collector.profiles." version \
			".ProfilesService/Export", \
		.request_size = sizeof(struct grpc_intake_request), .documents = OTLP_DOCUMENTS, \
		.respond = otlp_response_pack, \
	}

static const struct grpc_intake_method methods[] = {
	OTLP_METHOD("v1development"),
	OTLP_METHOD("v1experimental"),
};

static_assert((int)OTLP_RESPONSE_MAX <= (int)GRPC_INTAKE_RESPONSE_MAX, "fits into a gRPC response");

static bool otlp_create(void *self, const void *config, const struct host *host, struct error *err)
{
	struct otlp_receiver *r = self;
	const struct otlp_config *c = config;
	(void)err;
	otlp_documents_init(&r->documents, host, (enum otlp_generation)c->schema.index);
	if (c->protocols.grpc.present.enabled)
		r->grpc = grpc_intake_new(&(struct grpc_intake_options){
			.host = host,
			.receiver = &r->documents,
			.config = &c->protocols.grpc,
			.methods = methods,
			.method_count = sizeof methods / sizeof *methods,
		});
	if (c->protocols.http.server.present.enabled)
		r->http = otlp_http_new(host, &r->documents, &c->protocols.http);
	return true;
}

static bool otlp_start(void *self, struct error *err)
{
	struct otlp_receiver *r = self;
	if (r->grpc && !grpc_intake_start(r->grpc, err))
		return error_prefix(err, "protocols::grpc");
	if (!r->http || http_intake_start(otlp_http_intake(r->http), err))
		return true;
	if (r->grpc)
		grpc_intake_stop(r->grpc);
	return error_prefix(err, "protocols::http");
}

static void otlp_stop(void *self)
{
	struct otlp_receiver *r = self;
	if (r->http)
		http_intake_stop(otlp_http_intake(r->http));
	if (r->grpc)
		grpc_intake_stop(r->grpc);
}

static void otlp_retire(void *self)
{
	struct otlp_receiver *r = self;
	if (r->http)
		http_intake_retire(otlp_http_intake(r->http));
	if (r->grpc)
		grpc_intake_retire(r->grpc);
}

static void otlp_destroy(void *self)
{
	struct otlp_receiver *r = self;
	otlp_http_free(r->http);
	grpc_intake_unref(&r->grpc);
}

static bool otlp_reopen(void *self, struct error *err)
{
	struct otlp_receiver *r = self;
	return (!r->grpc || grpc_intake_reopen(r->grpc, err)) &&
	       (!r->http || http_intake_reopen(otlp_http_intake(r->http), err));
}

static const struct receiver_path paths[] = { { "/v1development/profiles",
						"/v1development/profiles" },
					      { "/v1/profiles", "/v1development/profiles" },
					      { 0 } };

static const struct receiver_ops otlp_ops = {
	.paths = paths,
	.http = "protocols::http (usually at port 4318)",
	.ack_offset = offsetof(struct otlp_config, ack),
	.deduplicate_offset = offsetof(struct otlp_config, deduplicate),
	.start = otlp_start,
	.stop = otlp_stop,
	.retire = otlp_retire,
};

const struct component_factory otlp_receiver = {
	.type = "otlp",
	.metrics = metrics,
	.help = "Receives OTLP profiles over gRPC and HTTP.",
	.manual = OTLP_MANUAL,
	.kind = COMPONENT_RECEIVER,
	.receiver = &otlp_ops,
	.size = sizeof(struct otlp_receiver),
	.config = &otlp_config_table,
	.create = otlp_create,
	.destroy = otlp_destroy,
	.reopen = otlp_reopen,
};
