/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_OTLP_ENCODE_JSON_H
#define PROFILE_OTLP_ENCODE_JSON_H

#include "profile/packet.h"

/* OTLP/JSON of the packet on one line, without a newline: lowerCamelCase names, 64-bit integers as
 * decimal strings, enums as numbers, IDs of traces, spans and profiles in hex, bytes values in
 * base64 (OTLP specification, "JSON Protobuf Encoding"). Reads the sealed bytes. */
bool encode_json(const struct packet *packet, struct bytes *out, struct error *err);
/* The same with the names of opentelemetry-proto 1.8. Those of 1.9 are today's. */
bool encode_json_1_8(const struct packet *packet, struct bytes *out, struct error *err);

#endif
