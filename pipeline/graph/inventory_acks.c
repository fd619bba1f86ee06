/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/delivery/delivery.h"
#include "pipeline/graph/inventory.h"

const struct duplicates_config *inventory_duplicates(const struct declared *receiver)
{
	size_t offset = receiver->factory->receiver->deduplicate_offset;
	return offset ? (const void *)((const char *)receiver->config + offset) : NULL;
}

enum ack_mode inventory_ack(const struct inventory *inventory, const struct declared *receiver)
{
	size_t offset = receiver->factory->receiver->ack_offset;
	const struct choice *own = (const struct choice *)((char *)receiver->config + offset);
	return (enum ack_mode)(offset && own->index < ACK_MODES ? own->index
								: inventory->service.ack.index);
}

static bool check_durable(const struct inventory *inventory, const struct declared *receiver,
			  const struct strings *exporters, struct error *err);

/* The pipelines behind a connector. There are no cycles. */
static bool check_behind(const struct inventory *inventory, const struct declared *receiver,
			 const struct declared *connector, struct error *err)
{
	const struct config_items *pipelines = &inventory->service.pipelines;
	const struct pipeline_config *p = pipelines->at;
	for (size_t i = 0; i < pipelines->count; i++)
		if (inventory_leads_to(inventory, connector, i) &&
		    !check_durable(inventory, receiver, &p[i].exporters, err))
			return false;
	return true;
}

static bool check_durable(const struct inventory *inventory, const struct declared *receiver,
			  const struct strings *exporters, struct error *err)
{
	const struct node *own = node_get(receiver->node, "ack");
	for (size_t i = 0; i < exporters->count; i++) {
		const struct declared *e =
			inventory_find(inventory, COMPONENT_EXPORTER, exporters->at[i]);
		const struct declared *c =
			inventory_find(inventory, COMPONENT_CONNECTOR, exporters->at[i]);
		if (c && !check_behind(inventory, receiver, c, err))
			return false;
		if (c)
			continue;
		const struct delivery_config *config = inventory_delivery(e);
		if (config->required && !delivery_config_is_durable(config))
			return node_error(own ? own : receiver->node, receiver->path, err,
					  "ack: `durable` needs a queue on disk at each required "
					  "exporter; %s has none (sending_queue::storage)",
					  e->path);
	}
	return true;
}

bool inventory_check_acks(const struct inventory *inventory, struct error *err)
{
	const struct config_items *pipelines = &inventory->service.pipelines;
	const struct pipeline_config *p = pipelines->at;
	for (size_t i = 0; i < pipelines->count; i++)
		for (size_t k = 0; k < p[i].receivers.count; k++) {
			const struct declared *d =
				inventory_find(inventory, COMPONENT_RECEIVER, p[i].receivers.at[k]);
			if (d && inventory_ack(inventory, d) == ACK_DURABLE &&
			    !check_durable(inventory, d, &p[i].exporters, err))
				return false;
		}
	return true;
}
