/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_DELIVERY_BODY_H
#define PIPELINE_DELIVERY_BODY_H

#include "profile/packet.h"

/*
 * The bodies that exporters send of a packet as it is: OTLP in protobuf or JSON, of any release
 * that enum packet_encoding names, in any coding of net/compress. The packet keeps each one for all
 * destinations that ask for the same form, except uncompressed JSON, which goes with its last
 * reader (struct packet_holder). What is only needed to be compressed is not kept.
 *
 * The encoding of `form` must not be PACKET_REQUEST: only its exporter can make that one.
 */
/* May take long. NULL: err says why. [pool thread] */
const struct bytes *body_of(struct packet *packet, struct packet_form form, struct error *err);

/* Makes it if that takes so little for a small packet that a way to another thread costs more.
 * [worker or I/O thread] */
void body_prepare(struct packet *packet, struct packet_form form);

#endif
