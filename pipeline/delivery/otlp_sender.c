/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/delivery/otlp_sender.h"

#include "pipeline/delivery/body.h"

static void release_packet(void *owner)
{
	struct packet *packet = owner;
	packet_unref(&packet);
}

void otlp_sender_send(struct grpc_sender *sender, const struct part *part, struct packet_form form,
		      uint64_t timeout_ns, struct sending *sending)
{
	const struct bytes *body = body_of(part->packet, form, NULL);
	if (!body) {
		sending_done(sending, &(struct send_result){ .outcome = SEND_PERMANENT,
							     .retry_after_ms = -1,
							     .reason = "compression" });
		return;
	}
	/* A reference of its own, until core lets go of the bytes. */
	const struct grpc_message message = { .bytes = bytes_view(body),
					      .coding = form.coding,
					      .release = release_packet,
					      .owner = packet_ref(part->packet) };
	grpc_sender_send(sender, &message, part->packet, timeout_ns, sending);
}
