/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RECEIVERS_OTLP_RESPONSE_H
#define RECEIVERS_OTLP_RESPONSE_H

#include "pipeline/inbound.h"

/* What the otlp receiver replies to a request that was accepted, at least in part: an
 * ExportProfilesServiceResponse (opentelemetry-proto, collector/profiles/v1development). */

enum { OTLP_RESPONSE_MAX = 256 };

/* As protobuf, in at most OTLP_RESPONSE_MAX bytes; returns the length. Without rejected Profiles,
 * the message is empty, as the protocol requires. [any thread] */
size_t otlp_response_pack(const struct outcome *outcome, uint8_t *out);
/* Appends it as JSON. [any thread] */
void otlp_response_json(const struct outcome *outcome, struct bytes *out);

#endif
