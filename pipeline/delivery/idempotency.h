/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_DELIVERY_IDEMPOTENCY_H
#define PIPELINE_DELIVERY_IDEMPOTENCY_H

#include "config/table.h"
#include "net/idempotency_key.h"
#include "profile/packet.h"

/*
 * The header Idempotency-Key of the requests that exporters send: packet_id of what the request
 * holds. All attempts of a request therefore have the same key, also those after a restart from a
 * queue on disk, and two requests never have the same one. Used by grpc_sender and http_sender.
 */
#define IDEMPOTENCY_ROW(type, member) \
	CONFIG_ROW(type, member, .key = "idempotency_key", .def = "true", \
		   .help = "Sends the header `Idempotency-Key`, which is the same for every " \
			   "attempt to send the same data, unless `headers` contains it. " \
			   "Receivers with `deduplicate` recognise repeated requests by it. Not " \
			   "a key of the Collector.")

/* Is the key sent? `headers`: the configured ones, which take precedence. */
bool idempotency_is_on(bool configured, const struct pairs *headers);

/* The headers of one request. */
enum { IDEMPOTENCY_HEADERS_MAX = 7 }; /* before the key is added */
struct idempotency {
	struct metadatum list[IDEMPOTENCY_HEADERS_MAX + 2];
	char key[IDEMPOTENCY_KEY_SIZE];
};

/* `headers` (ends with name == NULL; may be NULL) and the key of the packet: a list in `out`, which
 * borrows `headers`. [any thread] */
const struct metadatum *idempotency_add(struct idempotency *out, struct packet *packet,
					const struct metadatum *headers);

#endif
