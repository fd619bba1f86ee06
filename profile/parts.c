/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/parts.h"
#include "base/array.h"
#include "base/memory.h"

void parts_add(struct parts *parts, struct packet *packet, uint64_t samples, uint64_t bytes)
{
	array_push(parts) = (struct part){ .packet = packet, .samples = samples, .bytes = bytes };
}

void parts_leave(struct parts *parts, struct packet *packet, uint64_t samples,
		 enum part_dropped why)
{
	array_push(&parts->left) =
		(struct part_left){ .packet = packet, .samples = samples, .why = why };
}

void parts_forget_left(struct parts *parts, uint32_t first)
{
	while (parts->left.count > first)
		packet_unref(&parts->left.at[--parts->left.count].packet);
}

void parts_clear(struct parts *parts)
{
	parts_forget_left(parts, 0);
	for (uint32_t i = 0; i < parts->count; i++)
		packet_unref(&parts->at[i].packet);
	*parts = (struct parts){ .at = parts->at,
				 .room = parts->room,
				 .keeps = parts->keeps,
				 .left = parts->left,
				 .charge = parts->charge,
				 .charge_context = parts->charge_context };
}

void parts_fini(struct parts *parts)
{
	parts_clear(parts);
	memory_free(parts->at);
	memory_free(parts->left.at);
	*parts = (struct parts){ 0 };
}
