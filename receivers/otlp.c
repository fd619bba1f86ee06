/* SPDX-License-Identifier: Apache-2.0 */
#include "otlp_service.pb-c.h"
#include "pipeline/intake/grpc_intake.h"
#include "profile/otlp/decode_otlp.h"
#include "receivers/otlp_config.h"

#include <assert.h>

/*
 * OTLP over gRPC: ProfilesService/Export (opentelemetry-proto 1.11,
 * collector/profiles/v1development). A request is one document. OTLP over HTTP is not supported
 * yet.
 */
struct otlp_receiver {
	struct grpc_intake *intake;
};

static const struct metric *const metrics[] = { GRPC_INTAKE_METRICS, NULL };

static bool otlp_decode(struct inbound *in, struct profiles *profiles, struct error *err)
{
	(void)in;
	return decode_otlp(profiles, err);
}

/* ExportProfilesServiceResponse; without partial_success it is empty. */
static size_t otlp_respond(const struct outcome *outcome, uint8_t *out)
{
	Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesServiceResponse response =
		OPENTELEMETRY__PROTO__COLLECTOR__PROFILES__V1DEVELOPMENT__EXPORT_PROFILES_SERVICE_RESPONSE__INIT;
	Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesPartialSuccess partial =
		OPENTELEMETRY__PROTO__COLLECTOR__PROFILES__V1DEVELOPMENT__EXPORT_PROFILES_PARTIAL_SUCCESS__INIT;
	if (!outcome->rejected_profiles)
		return 0;
	partial.rejected_profiles = outcome->rejected_profiles;
	if (outcome->rejection)
		partial.error_message = (char *)outcome->rejection;
	response.partial_success = &partial;
	size_t len = protobuf_c_message_get_packed_size(&response.base);
	assert(len <= GRPC_INTAKE_RESPONSE_MAX);
	return protobuf_c_message_pack(&response.base, out) == len ? len : 0;
}

static const struct grpc_intake_method methods[] = { {
	.path = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
	.request_size = sizeof(struct grpc_intake_request),
	/* A string of some letters or a sample of few numbers is densest. */
	.documents = { .decode = otlp_decode, .tables_factor = 16 },
	.respond = otlp_respond,
} };

static bool otlp_create(void *self, const void *config, const struct host *host, struct error *err)
{
	struct otlp_receiver *r = self;
	const struct otlp_config *c = config;
	(void)err;
	r->intake = grpc_intake_new(&(struct grpc_intake_options){
		.host = host,
		.config = &c->protocols.grpc,
		.methods = methods,
		.method_count = sizeof methods / sizeof *methods,
	});
	return true;
}

static bool otlp_start(void *self, struct error *err)
{
	struct otlp_receiver *r = self;
	return grpc_intake_start(r->intake, err);
}

static void otlp_stop(void *self)
{
	struct otlp_receiver *r = self;
	grpc_intake_stop(r->intake);
}

static void otlp_retire(void *self)
{
	struct otlp_receiver *r = self;
	grpc_intake_retire(r->intake);
}

static void otlp_destroy(void *self)
{
	struct otlp_receiver *r = self;
	grpc_intake_unref(&r->intake);
}

static bool otlp_reopen(void *self, struct error *err)
{
	struct otlp_receiver *r = self;
	return grpc_intake_reopen(r->intake, err);
}

static const struct receiver_ops otlp_ops = {
	.start = otlp_start,
	.stop = otlp_stop,
	.retire = otlp_retire,
};

const struct component_factory otlp_receiver = {
	.type = "otlp",
	.metrics = metrics,
	.help = "Takes profiles by OTLP over gRPC.",
	.manual = "Messages may be plain, gzip, deflate or zstd. gzip and zstd are recognised by "
		  "their first bytes, whatever `grpc-encoding` says; deflate by `grpc-encoding`. "
		  "`max_recv_msg_size_mib` holds for the message as sent and for what it inflates "
		  "to. A message must arrive within 60 s of its headers.\n\n"
		  "Requests are refused before the body where possible: UNAVAILABLE with "
		  "RetryInfo when memory is short or all queues are full. When memory becomes "
		  "short while a message arrives, the client is held back for up to two seconds "
		  "first. INVALID_ARGUMENT names the field that cannot be decoded; when only some "
		  "profiles of a request cannot, the reply is OK with `partial_success`.\n\n"
		  "With `tls`, clients must offer `h2` by ALPN.\n\n"
		  "The same port answers `grpc.health.v1.Health/Check` and `Watch`.\n\n"
		  "A stop gives accepted calls 10 s, within `--shutdown-timeout`; new ones are "
		  "refused meanwhile.\n",
	.kind = COMPONENT_RECEIVER,
	.receiver = &otlp_ops,
	.size = sizeof(struct otlp_receiver),
	.config = &otlp_config_table,
	.create = otlp_create,
	.destroy = otlp_destroy,
	.reopen = otlp_reopen,
};
