/* SPDX-License-Identifier: Apache-2.0 */
#include "net/compress.h"
#include "otlp_service.pb-c.h"
#include "pipeline/delivery/delivery.h"
#include "pipeline/delivery/grpc_sender.h"

struct otlp_grpc_config {
	struct grpc_sender_config client;
	struct delivery_config delivery;
};

struct otlp_grpc {
	struct grpc_sender sender;
	enum packet_form form;
};

/* How many profiles the destination did not take. An answer that cannot be read says nothing: it
 * was OK. */
static uint64_t read_rejected(const struct host *host, struct view response, uint64_t profiles)
{
	typedef Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesServiceResponse
		answer_type;
	answer_type *answer =
		opentelemetry__proto__collector__profiles__v1development__export_profiles_service_response__unpack(
			NULL, response.len, response.at);
	if (!answer || !answer->partial_success) {
		if (answer)
			protobuf_c_message_free_unpacked(&answer->base, NULL);
		return 0;
	}
	int64_t said = answer->partial_success->rejected_profiles;
	uint64_t rejected = said < 0 ? 0 : (uint64_t)said;
	if (rejected > profiles)
		rejected = profiles;
	if (rejected || *answer->partial_success->error_message)
		log_warn(&host->log, "Partial success response",
			 log_number("dropped_profiles", rejected));
	protobuf_c_message_free_unpacked(&answer->base, NULL);
	return rejected;
}

static void otlp_grpc_answered(void *instance, const struct grpc_result *result, uint64_t profiles,
			       struct send_result *verdict)
{
	const struct otlp_grpc *self = instance;
	if (verdict->outcome == SEND_OK)
		verdict->rejected_profiles =
			read_rejected(self->sender.host, result->response, profiles);
}

static const struct grpc_method method = {
	"/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
	otlp_grpc_answered
};

static void release_packet(void *owner)
{
	struct packet *packet = owner;
	packet_unref(&packet);
}

static bool deflate(const void *context, const struct packet *packet, struct bytes *out,
		    struct error *err)
{
	(void)context;
	const struct cuts cuts = { packet->tables, PACKET_TABLES, PACKET_STRINGS };
	return compress_gzip(bytes_view(&packet->otlp), &cuts, out, err);
}

static void otlp_grpc_send(void *instance, const struct part *part, uint64_t timeout_ns,
			   struct sending *sending)
{
	struct otlp_grpc *self = instance;
	const struct bytes *body = packet_form(part->packet, self->form, deflate, NULL, NULL);
	if (!body) {
		sending_done(sending, &(struct send_result){ .outcome = SEND_PERMANENT,
							     .retry_after_ms = -1,
							     .reason = "compression" });
		return;
	}
	/* A reference of its own, until core lets go of the bytes. */
	const struct grpc_message message = { .bytes = bytes_view(body),
					      .gzip = self->form == FORM_OTLP_GZIP,
					      .release = release_packet,
					      .owner = packet_ref(part->packet) };
	grpc_sender_send(&self->sender, &message, part->packet->profiles, timeout_ns, sending);
}

static bool otlp_grpc_prompt(void *instance, const struct packet *packet)
{
	return packet_has(packet, ((struct otlp_grpc *)instance)->form);
}

static void otlp_grpc_encode(void *instance, struct packet *packet)
{
	packet_form(packet, ((struct otlp_grpc *)instance)->form, deflate, NULL, NULL);
}

static bool otlp_grpc_reopen(void *instance, struct error *err)
{
	return grpc_sender_reopen(&((struct otlp_grpc *)instance)->sender, err);
}

static bool otlp_grpc_create(void *instance, const void *settings, const struct host *host,
			     struct error *err)
{
	struct otlp_grpc *self = instance;
	const struct otlp_grpc_config *config = settings;
	self->form = grpc_sender_gzips(&config->client) ? FORM_OTLP_GZIP : FORM_OTLP;
	return grpc_sender_init(&self->sender, &config->client, &method, self, host, err);
}

static bool otlp_grpc_start(void *instance, struct error *err)
{
	return grpc_sender_start(&((struct otlp_grpc *)instance)->sender, NULL, err);
}

static void otlp_grpc_stop(void *instance)
{
	grpc_sender_stop(&((struct otlp_grpc *)instance)->sender);
}

static void otlp_grpc_destroy(void *instance)
{
	grpc_sender_fini(&((struct otlp_grpc *)instance)->sender);
}

static void otlp_grpc_destination(void *instance, const char **address, const char **port)
{
	const struct otlp_grpc *self = instance;
	*address = self->sender.endpoint.host;
	*port = self->sender.endpoint.port;
}

static bool otlp_grpc_check(const void *config, struct error *err)
{
	return grpc_sender_check(&((const struct otlp_grpc_config *)config)->client, err);
}

static const struct config_row rows[] = { GRPC_SENDER_ROWS(struct otlp_grpc_config, client),
					  DELIVERY_ROWS(struct otlp_grpc_config, delivery, "5s"),
					  { 0 } };
static const struct config_table table = { sizeof(struct otlp_grpc_config), rows, otlp_grpc_check };

static const char manual[] = GRPC_SENDER_MANUAL
	"A partial success is logged and counted in `otelcol_exporter_rejected_profiles`; the "
	"server's message is never logged.\n\n"
	"Use the exporter `parca` for Parca, not this one: Parca stores wrong function names from "
	"OTLP.\n\n"
	"Several exporters with `compression: gzip` share one compressed "
	"copy of a request. " GRPC_SENDER_MANUAL_END;

static const struct metric *const metrics[] = { &grpc_sender_replies_too_large, NULL };

static const struct exporter_ops otlp_grpc_ops = {
	.start = otlp_grpc_start,
	.stop = otlp_grpc_stop,
	.delivery_offset = offsetof(struct otlp_grpc_config, delivery),
	.destination = otlp_grpc_destination,
	.prompt = otlp_grpc_prompt,
	.encode = otlp_grpc_encode,
	.send = otlp_grpc_send,
};

const struct component_factory otlp_grpc_exporter = {
	.type = "otlp_grpc",
	.alias = "otlp",
	.help = "Sends profiles to an OTLP/gRPC server.",
	.manual = manual,
	.kind = COMPONENT_EXPORTER,
	.exporter = &otlp_grpc_ops,
	.size = sizeof(struct otlp_grpc),
	.config = &table,
	.metrics = metrics,
	.create = otlp_grpc_create,
	.destroy = otlp_grpc_destroy,
	.reopen = otlp_grpc_reopen,
};
