/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system.h"
#include "pipeline/component.h"

/*
 * Only settings: the gate charges real bytes before a request is decompressed and decoded, wherever
 * in the list this processor stands, and refuses with a retry hint what does not fit.
 */
struct limiter_config {
	struct duration check_interval;
	int64_t limit_mib, limit_percentage;
	int64_t spike_limit_mib, spike_limit_percentage;
	struct duration min_gc_soft, min_gc_hard, max_gc_soft, max_gc_hard;
};

struct limiter {
	uint64_t limit, spike; /* bytes */
	struct duration check_interval;
};

#define MIB (1024 * 1024)

static uint64_t share(uint64_t bytes, int64_t percentage)
{
	return bytes / 100 * (uint64_t)percentage;
}

static bool memory_limiter_create(void *instance, const void *settings, const struct host *host,
				  struct error *err)
{
	(void)host;
	(void)err;
	struct limiter *self = instance;
	const struct limiter_config *config = settings;
	self->check_interval = config->check_interval;
	if (config->limit_mib) {
		self->limit = (uint64_t)config->limit_mib * MIB;
		self->spike = (uint64_t)config->spike_limit_mib * MIB;
	} else {
		uint64_t total = system_memory();
		self->limit = share(total, config->limit_percentage);
		self->spike = share(total, config->spike_limit_percentage);
	}
	if (!self->spike)
		self->spike = share(self->limit, 20);
	return true;
}

static void memory_limiter_destroy(void *instance)
{
	(void)instance;
}

static void memory_limiter_settle(void *instance, struct path_settings *settings)
{
	const struct limiter *self = instance;
	if (settings->memory_limit && settings->memory_limit <= self->limit)
		return; /* of two, the lower one holds */
	settings->memory_limit = self->limit;
	settings->memory_spike = self->spike;
	settings->memory_check_interval = self->check_interval;
}

/* The order and the words are the Collector's. */
static void memory_limiter_check(const void *settings, struct faults *faults)
{
	const struct limiter_config *c = settings;
	if (c->check_interval.ns <= 0)
		faults_add(faults, "'check_interval' must be greater than zero");
	if (c->min_gc_soft.ns < c->min_gc_hard.ns)
		faults_relate(faults, "min_gc_interval_when_hard_limited",
			      "'min_gc_interval_when_soft_limited' should be larger than "
			      "'min_gc_interval_when_hard_limited'");
	if (!c->limit_mib && !c->limit_percentage)
		faults_relate(faults, "limit_percentage",
			      "'limit_mib' or 'limit_percentage' must be greater than zero");
	if (c->limit_percentage > 100 || c->spike_limit_percentage > 100)
		faults_add(faults,
			   "'limit_percentage' and 'spike_limit_percentage' must be greater "
			   "than zero and less than or equal to hundred");
	if (c->limit_mib && c->limit_mib <= c->spike_limit_mib)
		faults_relate(faults, "limit_mib",
			      "'spike_limit_mib' must be smaller than 'limit_mib'");
	if (c->limit_percentage && c->limit_percentage <= c->spike_limit_percentage)
		faults_relate(faults, "limit_percentage",
			      "'spike_limit_percentage' must be smaller than "
			      "'limit_percentage'");
}

#define GC_ROW(member, name, value) \
	CONFIG_ROW(struct limiter_config, member, .key = name, .def = value, .inert = true, \
		   .help = "The gateway has no garbage collector.")

static const struct config_row rows[] = {
	CONFIG_ROW(struct limiter_config, check_interval, .key = "check_interval", .def = "0s",
		   .help = "How often memory use is measured; required. Charged memory is "
			   "checked at each request."),
	CONFIG_ROW(struct limiter_config, limit_mib, .key = "limit_mib", .unit = "MiB",
		   .limited = true, .max = UINT32_MAX,
		   .help = "Hard limit on the memory of the process: its memory when ready plus "
			   "all bytes charged for requests, batches and queues."),
	CONFIG_ROW(struct limiter_config, spike_limit_mib, .key = "spike_limit_mib", .unit = "MiB",
		   .limited = true, .max = UINT32_MAX,
		   .help = "Difference between the hard limit and the soft limit, above which "
			   "requests are refused. 0: 20 % of the hard limit."),
	CONFIG_ROW(struct limiter_config, limit_percentage, .key = "limit_percentage", .unit = "%",
		   .limited = true, .max = UINT32_MAX,
		   .help = "Hard limit as a percentage of the memory of the cgroup or the "
			   "machine. `limit_mib` takes precedence."),
	CONFIG_ROW(struct limiter_config, spike_limit_percentage, .key = "spike_limit_percentage",
		   .unit = "%", .limited = true, .max = UINT32_MAX,
		   .help = "Like `spike_limit_mib`, for `limit_percentage`."),
	GC_ROW(min_gc_soft, "min_gc_interval_when_soft_limited", "10s"),
	GC_ROW(min_gc_hard, "min_gc_interval_when_hard_limited", "0s"),
	GC_ROW(max_gc_soft, "max_gc_interval_when_soft_limited", "30s"),
	GC_ROW(max_gc_hard, "max_gc_interval_when_hard_limited", "30s"),
	{ 0 }
};

static const struct config_table table = { sizeof(struct limiter_config), rows,
					   memory_limiter_check, false };

static const struct processor_ops memory_limiter_ops = {
	.settle = memory_limiter_settle,
};

const struct component_factory memory_limiter_processor = {
	.type = "memory_limiter",
	.help = "Limits memory: above the limit, requests are refused with a retry hint.",
	.manual = "Memory is charged before a request is decompressed and decoded, so the "
		  "position of this processor in the list does not matter. Without it, the hard "
		  "limit is 80 % of the cgroup's memory.\n\n"
		  "Bodies are charged as they arrive, never from the length that a header "
		  "announces. A peer is the subject of a client certificate or, without one, an "
		  "IPv4 address or IPv6 /64 network. A peer may hold at most as much memory as "
		  "is left for all peers: half of the budget when it is alone, and 1/(N+1) of "
		  "it when N peers want all of it. The peer that holds the most is therefore "
		  "refused first, with the reason `peer_memory`. Connections are charged too. "
		  "When memory is short, idle connections are closed, oldest first.\n\n"
		  "The encodings of a packet that exporters produce (JSON, pprof, compressed "
		  "bodies) are charged too. They wait at most one second for free memory. Batches "
		  "are flushed earlier when memory is short. Set the limit to at least twenty "
		  "times the size of the largest message; below that, large requests wait for "
		  "each other.\n\n"
		  "The memory between the baseline of the process and the soft limit is divided. "
		  "A quarter of it is reserved for requests, or 4 MiB per worker if that is "
		  "more, but at most half. The rest is divided equally among the destinations, "
		  "for the packets that wait for them "
		  "(`otelcol_exporter_queue_memory_limit_bytes`). A packet that does not fit "
		  "into a destination's share is dropped for that destination, as when its "
		  "`queue_size` is reached. The program does not start if the soft limit is "
		  "less than 4 MiB above the baseline.\n",
	.kind = COMPONENT_PROCESSOR,
	.processor = &memory_limiter_ops,
	.size = sizeof(struct limiter),
	.config = &table,
	.create = memory_limiter_create,
	.destroy = memory_limiter_destroy,
};
