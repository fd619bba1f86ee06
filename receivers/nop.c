/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/component.h"

/* Never receives anything, as the Collector's: a pipeline must have a receiver. */
struct nop_config {
	char unused;
};

static const struct config_row nop_rows[] = { { 0 } };

static const struct config_table nop_table = { sizeof(struct nop_config), nop_rows };

struct nop {
	char unused;
};

static bool nop_create(void *instance, const void *config, const struct host *host,
		       struct error *err)
{
	(void)instance, (void)config, (void)host, (void)err;
	return true;
}

static bool nop_start(void *instance, struct error *err)
{
	(void)instance, (void)err;
	return true;
}

static void nop_stop(void *instance)
{
	(void)instance;
}

static const struct receiver_ops nop_ops = { .start = nop_start, .stop = nop_stop };

const struct component_factory nop_receiver = {
	.type = "nop",
	.help = "Never receives anything. It has no keys.",
	.kind = COMPONENT_RECEIVER,
	.receiver = &nop_ops,
	.size = sizeof(struct nop),
	.config = &nop_table,
	.create = nop_create,
};
