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

static void check_durable(const struct inventory *inventory, const struct declared *receiver,
			  const struct strings *exporters, struct problems *problems);

/* The pipelines behind a connector. There are no cycles. */
static void check_behind(const struct inventory *inventory, const struct declared *receiver,
			 const struct declared *connector, struct problems *problems)
{
	const struct config_items *pipelines = &inventory->service.pipelines;
	const struct pipeline_config *p = pipelines->at;
	for (size_t i = 0; i < pipelines->count; i++)
		if (inventory_leads_to(inventory, connector, i))
			check_durable(inventory, receiver, &p[i].exporters, problems);
}

static void check_exporter(const struct declared *receiver, const struct declared *exporter,
			   struct problems *problems)
{
	const struct delivery_config *config = inventory_delivery(exporter);
	const struct faults faults = declared_faults(exporter, problems);
	const struct node *own = node_get(receiver->node, "ack");
	struct error why;
	if (!config->required || delivery_config_is_durable(config) ||
	    !faults_know(&faults, "sending_queue::storage") || problems_has(problems, own))
		return;
	node_error(own ? own : receiver->node, receiver->path, &why,
		   "ack: `durable` needs a queue on disk at each required exporter; %s has none "
		   "(sending_queue::storage)",
		   exporter->path);
	problems_add_at(problems, own, &why);
}

static void check_durable(const struct inventory *inventory, const struct declared *receiver,
			  const struct strings *exporters, struct problems *problems)
{
	for (size_t i = 0; i < exporters->count; i++) {
		const char *id = exporters->at[i];
		const struct declared *e = inventory_find(inventory, COMPONENT_EXPORTER, id);
		const struct declared *c = inventory_find(inventory, COMPONENT_CONNECTOR, id);
		if (c)
			check_behind(inventory, receiver, c, problems);
		else if (e)
			check_exporter(receiver, e, problems);
	}
}

void inventory_check_acks(const struct inventory *inventory, struct problems *problems)
{
	const struct config_items *pipelines = &inventory->service.pipelines;
	const struct pipeline_config *p = pipelines->at;
	for (size_t i = 0; i < pipelines->count; i++)
		for (size_t k = 0; k < p[i].receivers.count; k++) {
			const struct declared *d =
				inventory_find(inventory, COMPONENT_RECEIVER, p[i].receivers.at[k]);
			if (d && inventory_ack(inventory, d) == ACK_DURABLE)
				check_durable(inventory, d, &p[i].exporters, problems);
		}
}
