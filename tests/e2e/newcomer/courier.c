/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "net/compress.h"
#include "pipeline/delivery/delivery.h"
#include "pipeline/delivery/http_sender.h"

/* Posts OTLP requests to an HTTP server, with the number of their samples in a header. */
struct courier_config {
	char *endpoint;
	struct http_sender_config client;
	struct delivery_config delivery;
};

struct courier {
	struct http_sender sender;
	bool gzip;
};

static bool encode(const void *context, const struct packet *packet, struct bytes *out,
		   struct error *err)
{
	(void)context;
	return compress_deflate(CODING_GZIP, 0, bytes_view(&packet->otlp), out, err);
}

static void courier_send(void *instance, const struct part *part, uint64_t timeout_ns,
			 struct sending *sending)
{
	struct courier *self = instance;
	char samples[24];
	const struct metadatum headers[] = { { "X-Samples", samples }, { 0 } };
	enum packet_form form = self->gzip ? FORM_OTLP_GZIP : FORM_OTLP;
	const struct bytes *body = packet_form(part->packet, form, encode, NULL, NULL);
	snprintf(samples, sizeof samples, "%llu", (unsigned long long)part->packet->samples);
	http_sender_send(&self->sender,
			 &(struct http_sending){ .packet = part->packet,
						 .body = bytes_view(body),
						 .gzip = self->gzip,
						 .headers = headers },
			 timeout_ns, sending);
}

static void courier_answered(void *instance, struct packet *packet,
			     const struct http_result *result, struct send_result *verdict)
{
	(void)instance;
	(void)packet;
	if (result->status == 413)
		verdict->outcome = SEND_TOO_LARGE;
}

static bool courier_create(void *instance, const void *settings, const struct host *host,
			   struct error *err)
{
	static const struct http_service service = { "application/x-protobuf", courier_answered };
	const struct courier_config *c = settings;
	struct courier *self = instance;
	(void)err;
	self->gzip = http_sender_gzips(&c->client);
	http_sender_init(&self->sender, &c->client, c->endpoint, "/v1development/profiles",
			 &service, self, host);
	return true;
}

static bool courier_start(void *instance, struct error *err)
{
	return http_sender_start(&((struct courier *)instance)->sender, err);
}

static void courier_stop(void *instance)
{
	http_sender_stop(&((struct courier *)instance)->sender);
}

static void courier_destroy(void *instance)
{
	http_sender_fini(&((struct courier *)instance)->sender);
}

static bool courier_check(const void *config, struct error *err)
{
	const struct courier_config *c = config;
	return http_sender_check(&c->client, c->endpoint, err);
}

static const struct config_row rows[] = { CONFIG_ROW(struct courier_config, endpoint,
						     .key = "endpoint", .help = "Base URL."),
					  HTTP_SENDER_ROWS(struct courier_config, client),
					  DELIVERY_ROWS(struct courier_config, delivery, "30s"),
					  { 0 } };
static const struct config_table table = { sizeof(struct courier_config), rows, courier_check };

static const struct exporter_ops courier_ops = {
	.start = courier_start,
	.stop = courier_stop,
	.delivery_offset = offsetof(struct courier_config, delivery),
	.send = courier_send,
};

const struct component_factory courier_exporter = {
	.type = "courier",
	.help = "Posts OTLP requests to an HTTP server.",
	.kind = COMPONENT_EXPORTER,
	.exporter = &courier_ops,
	.size = sizeof(struct courier),
	.config = &table,
	.create = courier_create,
	.destroy = courier_destroy,
};
