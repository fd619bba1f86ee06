/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/intake/gate_refusal.h"

#include "base/hash.h"

#include <stdio.h>

uint32_t gate_refusal_retry_ms(void)
{
	uint32_t random;
	hash_random(&random, sizeof random);
	return 1000 + random % 1000;
}

bool gate_refusal_busy(struct inbound *in, struct error *err, enum refusal reason, const char *text)
{
	in->refusal = reason;
	error_set(err, ERROR_BUSY, "%s", text);
	err->retry_after_ms = gate_refusal_retry_ms();
	return false;
}

bool gate_refusal_waiting(struct workers *workers, struct inbound *in, struct error *err)
{
	struct workers_load load = workers_load(workers, in->peer);
	char text[160];
	if (load.waiting >= load.max) {
		snprintf(text, sizeof text, "too many requests are waiting: %u; the maximum is %u",
			 load.waiting, load.max);
		return gate_refusal_busy(in, err, REFUSAL_WORKERS_BUSY, text);
	}
	snprintf(text, sizeof text,
		 "too many requests from this sender are waiting: %u; %u more of any sender may "
		 "wait",
		 load.of_peer, load.max - load.waiting);
	return gate_refusal_busy(in, err, REFUSAL_PEER_QUEUE, text);
}

bool gate_refusal_memory(struct budget *budget, struct inbound *in, int64_t needed, int64_t more,
			 struct error *err)
{
	int64_t room = budget_room(budget);
	char text[200];
	if (!in->favoured && budget_could_take(budget, needed) && room >= more) {
		snprintf(text, sizeof text,
			 "data refused: the sender has used up its share of the memory: it holds "
			 "%ld bytes; memory_limiter leaves %ld for all",
			 (long)in->peer->bytes, (long)room);
		return gate_refusal_busy(in, err, REFUSAL_PEER_MEMORY, text);
	}
	budget_refuse(budget, needed, err);
	in->refusal = refusal_of(err);
	err->retry_after_ms = gate_refusal_retry_ms();
	return false;
}
