/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/delivery/idempotency.h"

#include <assert.h>
#include <strings.h>

bool idempotency_is_on(bool configured, const struct pairs *headers)
{
	for (size_t i = 0; i < headers->count; i++)
		if (!strcasecmp(headers->at[i].name, IDEMPOTENCY_KEY_HEADER))
			return false;
	return configured;
}

const struct metadatum *idempotency_add(struct idempotency *out, struct packet *packet,
					const struct metadatum *headers)
{
	size_t count = 0;
	for (; headers && headers->name; headers++) {
		assert(count < IDEMPOTENCY_HEADERS_MAX);
		out->list[count++] = *headers;
	}
	idempotency_key_write(packet_id(packet), out->key);
	out->list[count++] = (struct metadatum){ IDEMPOTENCY_KEY_HEADER, out->key };
	out->list[count] = (struct metadatum){ 0 };
	return out->list;
}
