/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTERS_LOAD_BALANCING_KEY_H
#define EXPORTERS_LOAD_BALANCING_KEY_H

#include "config/table.h"
#include "profile/packet.h"
#include "profile/profiles.h"

/*
 * The keys by which resources are distributed: hashes of values. A missing attribute is another
 * value than an empty one.
 */

/* Of the values of these attributes, in this order, in the spelling of profile/value_text.h. */
uint64_t load_balancing_key_of_resource(const struct profiles *p, const struct resource *resource,
					const struct strings *attributes);
/* Of the tenant of all requests that the packet was made of. */
uint64_t load_balancing_key_of_tenant(const struct packet *packet);

#endif
