/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTERS_LOAD_BALANCING_CHOICE_H
#define EXPORTERS_LOAD_BALANCING_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Rendezvous hashing: a key belongs to the member with the highest score, which is a hash of the
 * key and of the member's endpoint. A member that leaves gives up only its own keys, and they go to
 * all others alike; one that joins takes an equal share from each. The result depends on nothing
 * else, so all gateways with the same members choose alike.
 *
 * A ring would need a hundred points for each member to distribute this evenly, and a table of them
 * that is built anew at each change. Here a choice costs one hash for each member, of which there
 * are at most 64, and is made once for each resource of a packet.
 */
struct load_balancing_candidate {
	uint64_t hash; /* of the endpoint: load_balancing_hash */
	uint32_t number;
	/* Others get its keys, if there are any: each key goes to the next of its scores. */
	bool avoided;
};

/* The same in every process. */
uint64_t load_balancing_hash(const void *data, size_t len);
/* The number of the candidate; 0: there is none. */
uint32_t load_balancing_choose(const struct load_balancing_candidate *candidates, size_t count,
			       uint64_t key);

#endif
