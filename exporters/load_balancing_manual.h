/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTERS_LOAD_BALANCING_MANUAL_H
#define EXPORTERS_LOAD_BALANCING_MANUAL_H

#include "pipeline/delivery/grpc_sender.h"
#include "pipeline/delivery/otlp_layout.h"

/* clang-format off */
static const char load_balancing_manual[] =
	"For a second tier of gateways: all profiles of one service reach the same gateway, whose batches then merge equal stacks. " \
	"[A fleet of gateways](fleet.md) has an example. The Collector's exporter of this name does not support profiles.\n\n"
	"**Which member gets what.** Each resource is hashed by `routing_key`, and each member by its endpoint (rendezvous hashing). All " \
	"gateways of the first tier with the same list of members choose alike. When a member leaves, its resources are distributed " \
	"over all others, and nothing else moves. When one joins, it takes an equal share from each. A resource without the attribute is " \
	"one value of its own. Only what policy permits counts: `routing_key: service` requires that `service.name` may pass.\n\n"
	"**Members.** With `dns`, every address of the name is a member, as for a headless service of Kubernetes. If the name cannot be " \
	"resolved, the last members stay; this is logged, and counted in `otelcol_loadbalancer_num_resolutions`. Until it is resolved for " \
	"the first time, data waits in the queue, as long as `max_elapsed_time` says and even if `retry_on_failure` is disabled. A reload with another `static` list makes another exporter: what waits in memory for " \
	"a member that has been removed stays with the old one, as long as `max_elapsed_time` says, and a queue on disk goes to the " \
	"new one. With TLS, certificates are checked against the address, unless `tls.server_name_override` says otherwise.\n\n"
	"**Queue and retries.** The exporter has one `sending_queue`, also on disk, and one `retry_on_failure`, unlike the Collector's, " \
	"where each member may have its own. Each member is asked and retried by itself, with at most `num_consumers` requests at the same " \
	"time (at most 64), so a member that does not answer delays only what is for it. What waits for a member that has left goes to " \
	"the others at once; a request in flight to it may still be accepted, and goes to them if it fails, unless `retry_on_failure` is " \
	"disabled. When more waits for a " \
	"failing member than a third of what is left of the queue for all, other members get its new data until half of that has gone " \
	"(`otelcol_loadbalancer_backend_diverted`); nothing is lost, but its services have two members meanwhile. The same applies to a member that has more than twice its share of the whole queue.\n\n"
	"A request for several members keeps its place in the queue, and on disk, until all have their parts. After a restart it is sent " \
	"again to all of them. They recognise parts that they already have, if they have `deduplicate` and if the members are the same.\n\n"
	"`timeout` limits an attempt, like `protocol.otlp.timeout`; the shorter one counts.\n\n"
	GRPC_SENDER_MANUAL "\n\n" OTLP_LAYOUT_MANUAL GRPC_SENDER_MANUAL_END;
/* clang-format on */

#endif
