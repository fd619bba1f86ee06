/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "pipeline/delivery/body.h"
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
	struct packet_form form;
};

static void courier_send(void *instance, const struct part *part, uint64_t timeout_ns,
			 struct sending *sending)
{
	struct courier *self = instance;
	char samples[24];
	const struct metadatum headers[] = { { "X-Samples", samples }, { 0 } };
	const struct bytes *body = body_of(part->packet, self->form, NULL);
	snprintf(samples, sizeof samples, "%llu", (unsigned long long)part->packet->samples);
	http_sender_send(&self->sender,
			 &(struct http_sending){ .packet = part->packet,
						 .body = bytes_view(body),
						 .headers = headers },
			 timeout_ns, sending);
}

static bool courier_create(void *instance, const void *settings, const struct host *host,
			   struct error *err)
{
	static const struct http_service service = { "application/x-protobuf", NULL };
	const struct courier_config *c = settings;
	struct courier *self = instance;
	(void)err;
	self->form = http_sender_form(&c->client, PACKET_OTLP);
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

static void courier_check(const void *config, struct faults *faults)
{
	const struct courier_config *c = config;
	if (!c->endpoint || !*c->endpoint)
		faults_add(faults, "endpoint must be specified");
	http_sender_check(&c->client, "endpoint", c->endpoint, HTTP_COMPRESSION_ALL, faults);
}

static const struct config_row rows[] = {
	CONFIG_ROW(struct courier_config, endpoint, .key = "endpoint", .help = "Base URL."),
	HTTP_SENDER_ROWS(struct courier_config, client, "as the Collector's"),
	DELIVERY_ROWS(struct courier_config, delivery, "30s"),
	{ 0 }
};
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
