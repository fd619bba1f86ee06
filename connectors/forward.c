/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/component.h"

/* Passes everything on to every pipeline behind it, as the Collector's: for joining pipelines, and
 * for a policy that several pipelines share. */
struct forward_config {
	char unused;
};

static const struct config_row forward_rows[] = { { 0 } };

static const struct config_table forward_table = { sizeof(struct forward_config), forward_rows };

struct forward {
	char unused;
};

static bool forward_create(void *instance, const void *config, const struct host *host,
			   struct error *err)
{
	(void)instance, (void)config, (void)host, (void)err;
	return true;
}

static const struct strings *forward_route(const void *config, uint32_t number)
{
	static const struct strings all = { 0 };
	(void)config;
	return number ? NULL : &all;
}

static const struct connector_ops forward_ops = { .route = forward_route };

const struct component_factory forward_connector = {
	.type = "forward",
	.help = "Passes everything on to every pipeline that has it among its receivers. It has no "
		"keys.",
	.kind = COMPONENT_CONNECTOR,
	.connector = &forward_ops,
	.size = sizeof(struct forward),
	.config = &forward_table,
	.create = forward_create,
};
