/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/component.h"
#include "pipeline/delivery/delivery.h"

/* Accepts everything and keeps nothing, as the Collector's: for measuring what a pipeline costs,
 * and for data that nobody wants. Policy, batches and the ledger are those of any exporter. */
struct nop_config {
	struct delivery_config delivery;
};

static const struct config_row nop_rows[] = { DELIVERY_ROWS_UNTIMED(struct nop_config, delivery),
					      { 0 } };

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

static void nop_send(void *instance, const struct part *part, uint64_t timeout_ns,
		     struct sending *sending)
{
	static const struct send_result ok = { .outcome = SEND_OK, .retry_after_ms = -1 };
	(void)instance, (void)part, (void)timeout_ns;
	sending_done(sending, &ok);
}

static const struct exporter_ops nop_ops = {
	.delivery_offset = offsetof(struct nop_config, delivery),
	.send = nop_send,
};

const struct component_factory nop_exporter = {
	.type = "nop",
	.help = "Discards everything. The ledger counts it as delivered.",
	.kind = COMPONENT_EXPORTER,
	.exporter = &nop_ops,
	.size = sizeof(struct nop),
	.config = &nop_table,
	.create = nop_create,
};
