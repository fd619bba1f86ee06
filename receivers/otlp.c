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
	.help = "Receives OTLP profiles over gRPC.",
	.manual = "Messages may be uncompressed, or compressed with gzip, deflate or zstd. "
		  "gzip and zstd are recognised by their first bytes, regardless of "
		  "`grpc-encoding`; deflate is recognised by `grpc-encoding`. "
		  "`max_recv_msg_size_mib` limits a message both as sent and decompressed. A "
		  "message must arrive within 60 s of its headers.\n\nWhere possible, requests "
		  "are refused before their body is read: with UNAVAILABLE and RetryInfo when "
		  "memory is short or all queues are full. If memory becomes short while a "
		  "message arrives, the request is first paused for up to two seconds. "
		  "INVALID_ARGUMENT names the field that cannot be decoded. If only some "
		  "Profiles of a request cannot be decoded, the response is OK with "
		  "`partial_success`.\n\n"
		  "With `tls`, clients must offer `h2` in ALPN.\n\n"
		  "The same port answers `grpc.health.v1.Health/Check` and `Watch`.\n\n"
		  "During a shutdown, accepted calls have 10 s to finish, within "
		  "`--shutdown-timeout`. New calls are refused.\n",
	.kind = COMPONENT_RECEIVER,
	.receiver = &otlp_ops,
	.size = sizeof(struct otlp_receiver),
	.config = &otlp_config_table,
	.create = otlp_create,
	.destroy = otlp_destroy,
	.reopen = otlp_reopen,
};
