/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_DELIVERY_OTLP_SENDER_H
#define PIPELINE_DELIVERY_OTLP_SENDER_H

#include "pipeline/delivery/grpc_sender.h"

/* What the exporters that send OTLP by gRPC have in common. */
#define OTLP_SENDER_METHOD \
	"/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"

/* exporter_ops.send: the packet of the part, in this form. */
void otlp_sender_send(struct grpc_sender *sender, const struct part *part, struct packet_form form,
		      uint64_t timeout_ns, struct sending *sending);

#endif
