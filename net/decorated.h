/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_DECORATED_H
#define NET_DECORATED_H

#include "net/authenticator.h"

/*
 * The headers of one outgoing request of a client. With an authenticator, they are the configured
 * ones, then those of the request, as the authenticator has changed them. Without one, they are
 * those of the request; the client itself sends the configured ones.
 */
struct decorated {
	const struct metadatum *headers; /* ends with name == NULL; may be NULL */
	struct fields in, out;
};

/* `context` as for authenticator_ops.decorate. False: the request cannot be sent now.
 * decorated_fini follows in any case. */
bool decorated_init(struct decorated *d, struct authenticator *authenticator,
		    const struct pairs *configured, const struct metadatum *headers,
		    const struct metadatum *context);
void decorated_fini(struct decorated *d);

#endif
