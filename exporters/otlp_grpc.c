/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/delivery/body.h"
#include "pipeline/delivery/delivery.h"
#include "pipeline/delivery/grpc_sender.h"
#include "pipeline/delivery/otlp_answer.h"
#include "pipeline/delivery/otlp_layout.h"
#include "pipeline/delivery/otlp_sender.h"
#include "pipeline/delivery/store_limits.h"

struct otlp_grpc_config {
	struct grpc_sender_config client;
	struct choice preset; /* enum store */
	struct otlp_layout_config layout;
	struct delivery_config delivery;
};

struct otlp_grpc {
	struct grpc_sender sender;
	struct packet_form form;
	enum store store;
};

static void otlp_grpc_answered(void *instance, const struct grpc_result *result,
			       const struct grpc_asked *asked, struct send_result *verdict)
{
	const struct otlp_grpc *self = instance;
	if (verdict->outcome == SEND_OK)
		verdict->rejected_profiles =
			otlp_answer_rejected(&self->sender.host->log, result->response,
					     asked->profiles);
}

static const struct grpc_method method = { OTLP_SENDER_METHOD, otlp_grpc_answered };

static void otlp_grpc_send(void *instance, const struct part *part, uint64_t timeout_ns,
			   struct sending *sending)
{
	struct otlp_grpc *self = instance;
	otlp_sender_send(&self->sender, part, self->form, timeout_ns, sending);
}

static void otlp_grpc_preset(void *instance, struct limits *limits)
{
	store_limits(((struct otlp_grpc *)instance)->store, limits);
}

static bool otlp_grpc_prompt(void *instance, const struct packet *packet)
{
	return packet_has(packet, ((struct otlp_grpc *)instance)->form);
}

static void otlp_grpc_encode(void *instance, struct packet *packet)
{
	body_prepare(packet, ((struct otlp_grpc *)instance)->form);
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
	self->store = (enum store)config->preset.index;
	self->form =
		grpc_sender_form(&config->client, otlp_layout_encoding(&config->layout, false));
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

static const char *otlp_grpc_endpoint(void *instance)
{
	const struct otlp_grpc *self = instance;
	return self->sender.endpoint.shown;
}

static void otlp_grpc_check(const void *config, struct faults *faults)
{
	const struct otlp_grpc_config *c = config;
	otlp_layout_check(&c->layout, faults);
	grpc_sender_check(&c->client, faults);
}

static const struct config_row rows[] = { GRPC_SENDER_ROWS(struct otlp_grpc_config, client),
					  STORE_PRESET_ROW(struct otlp_grpc_config, preset),
					  OTLP_LAYOUT_ROWS(struct otlp_grpc_config, layout),
					  DELIVERY_ROWS(struct otlp_grpc_config, delivery, "5s"),
					  { 0 } };
static const struct config_table table = { sizeof(struct otlp_grpc_config), rows, otlp_grpc_check };

static const char manual[] = GRPC_SENDER_MANUAL
	"A partial success is logged and counted in `otelcol_exporter_rejected_profiles`; the "
	"server's message is never logged.\n\n" OTLP_LAYOUT_MANUAL
	"Use the exporter `parca` for Parca, not this one: Parca stores wrong function names from "
	"OTLP.\n\n"
	"**Compression.** The Collector and Portcullis know `gzip`, `zstd` and `snappy`, "
	"Pyroscope 1.21 knows `gzip` and `snappy`, and Parca 0.28 knows `gzip`. A server that does "
	"not know the compression answers UNIMPLEMENTED. The data is then dropped, with the error "
	"`unknown_compression`. Exporters with the same compression share one compressed copy of a "
	"request, also with `otlp_http` at its default level (`snappy` is its "
	"`x-snappy-framed`).\n\n" GRPC_SENDER_MANUAL_END;

static const struct metric *const metrics[] = { &grpc_sender_replies_too_large, NULL };

static const struct exporter_ops otlp_grpc_ops = {
	.start = otlp_grpc_start,
	.stop = otlp_grpc_stop,
	.delivery_offset = offsetof(struct otlp_grpc_config, delivery),
	.destination = otlp_grpc_destination,
	.endpoint = otlp_grpc_endpoint,
	.preset = otlp_grpc_preset,
	.prompt = otlp_grpc_prompt,
	.encode = otlp_grpc_encode,
	.send = otlp_grpc_send,
	.probe = otlp_grpc_send,
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
