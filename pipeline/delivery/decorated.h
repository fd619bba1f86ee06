/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_DELIVERY_DECORATED_H
#define PIPELINE_DELIVERY_DECORATED_H

#include "pipeline/component.h"

/*
 * The headers of one outgoing request, for both senders. With an authenticator, they are the
 * configured ones, then those of the request, as the authenticator has changed them. Without one,
 * they are those of the request; the client itself sends the configured ones.
 */
struct decorated {
	const struct metadatum *headers; /* ends with name == NULL; may be NULL */
	struct fields in, out;
};

/* False: the request cannot be sent now, and `failure` is its result. decorated_fini follows in any
 * case. */
bool decorated_init(struct decorated *d, struct authenticator *authenticator,
		    const struct pairs *configured, const struct metadatum *headers,
		    const struct packet *packet, struct send_result *failure);
void decorated_fini(struct decorated *d);

#endif
