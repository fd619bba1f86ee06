/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_OTLP_ENCODE_OLDER_H
#define PROFILE_OTLP_ENCODE_OLDER_H

#include "profile/packet.h"

/*
 * The packet's OTLP in the layouts of opentelemetry-proto 1.8 and 1.9, for servers that cannot read
 * the current one. Both have other field numbers in Sample, and 1.8 has others in Profile. The
 * dictionary is the same. Each message keeps its length, so packet->tables applies.
 *
 * Comments and the temporality, which 1.8 has fields for, stay attributes.
 *
 * Reads the sealed bytes. False, with ERROR_TOO_LARGE, if `out` is full.
 */
bool encode_1_8(const struct packet *packet, struct bytes *out, struct error *err);
bool encode_1_9(const struct packet *packet, struct bytes *out, struct error *err);

#endif
