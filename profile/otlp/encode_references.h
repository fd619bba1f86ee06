/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_OTLP_ENCODE_REFERENCES_H
#define PROFILE_OTLP_ENCODE_REFERENCES_H

#include "profile/packet.h"

/*
 * The packet's OTLP with the keys of resource and scope attributes, at every depth, as references
 * into the string table (KeyValue.key_strindex of opentelemetry-proto) instead of text. String
 * values stay text.
 *
 * Data at rest needs this form. The Collector's Kafka and file receivers resolve references, and
 * they take an unset key_strindex for index 0. A key that is text becomes "" there.
 *
 * Reads the sealed bytes. The repeated fields stay in order, and a string is not in the table
 * twice. Linear in the size of the packet. False, with ERROR_TOO_LARGE, if `out` is full.
 */
bool encode_references(const struct packet *packet, struct bytes *out, struct error *err);

#endif
