/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/batcher.h"

/* Only settings: the path's batches are kept by the pipeline. */
struct batch_config {
	struct duration timeout;
	int64_t send_batch_size, send_batch_max_size, send_batch_max_bytes;
	struct strings metadata_keys;
	int64_t metadata_cardinality_limit;
};

struct batch {
	const struct batch_config *config;
};

static bool batch_create(void *instance, const void *settings, const struct host *host,
			 struct error *err)
{
	(void)host;
	(void)err;
	((struct batch *)instance)->config = settings;
	return true;
}

static void batch_settle(void *instance, struct path_settings *settings)
{
	const struct batch_config *c = ((const struct batch *)instance)->config;
	settings->batch = (struct batch_settings){
		.on = true,
		.timeout = c->timeout,
		.size = (uint64_t)c->send_batch_size,
		.max_size = (uint64_t)c->send_batch_max_size,
		.max_bytes = (uint64_t)c->send_batch_max_bytes,
		.metadata_keys = c->metadata_keys,
		.metadata_limit = c->metadata_cardinality_limit,
	};
}

/* The order and the words are the Collector's. */
static void batch_check(const void *settings, struct faults *faults)
{
	const struct batch_config *c = settings;
	if (c->send_batch_max_size && c->send_batch_max_size < c->send_batch_size)
		faults_relate(faults, "send_batch_size",
			      "send_batch_max_size must be greater or equal to send_batch_size");
	batcher_check_keys(&c->metadata_keys, "metadata_keys", faults);
	if (c->timeout.ns < 0)
		faults_add(faults, "timeout must be greater or equal to 0");
}

static const struct config_row rows[] = {
	CONFIG_ROW(struct batch_config, timeout, .key = "timeout", .def = "200ms", .limited = true,
		   .min = INT64_MIN, .max = INT64_MAX,
		   .help = "A batch is flushed this long after its first request. 0: "
			   "immediately, regardless of `send_batch_size`."),
	CONFIG_ROW(struct batch_config, send_batch_size, .key = "send_batch_size", .def = "8192",
		   .unit = "samples", .limited = true, .max = UINT32_MAX,
		   .help = "A batch is flushed when it has at least this number of samples. 0: "
			   "immediately, as in the Collector."),
	CONFIG_ROW(struct batch_config, send_batch_max_size, .key = "send_batch_max_size",
		   .def = "0", .unit = "samples", .limited = true, .max = UINT32_MAX,
		   .help = "A batch is flushed before it would exceed this number of samples. "
			   "0: no limit. A single larger request is sent alone; an exporter's "
			   "`limits` split it."),
	CONFIG_ROW(struct batch_config, send_batch_max_bytes, .key = "send_batch_max_bytes",
		   .def = "3145728", .unit = "bytes", .limited = true, .max = UINT32_MAX,
		   .help = "A batch is flushed before its encoded size would exceed this. The "
			   "default keeps batches acceptable to receivers with a 4 MiB limit. "
			   "0: no limit. A single larger request is sent alone; an exporter "
			   "splits it if its destination accepts less."),
	CONFIG_ROW(struct batch_config, metadata_keys, .key = "metadata_keys",
		   .help = "Requests are batched together only if they have equal values for "
			   "these metadata keys. The receiver must set `include_metadata`. Keys "
			   "are case-insensitive."),
	CONFIG_ROW(struct batch_config, metadata_cardinality_limit,
		   .key = "metadata_cardinality_limit", .def = "1000", .limited = true,
		   .max = UINT32_MAX,
		   .help = "Maximum number of distinct metadata combinations that are batched "
			   "at the same time. Beyond it, the oldest batch is flushed. 0 means "
			   "1000, because senders choose the values."),
	{ 0 }
};

static const struct config_table table = { sizeof(struct batch_config), rows, batch_check, false };

static const struct processor_ops batch_ops = {
	.settle = batch_settle,
	.once = true,
};

const struct component_factory batch_processor = {
	.type = "batch",
	.help = "Combines requests into larger ones with one shared dictionary.",
	.manual = "Its position in the list does not change the output: requests are always "
		  "batched after the last processor. Sizes are counted in samples. A pipeline "
		  "may have at most one batch processor.",
	.kind = COMPONENT_PROCESSOR,
	.processor = &batch_ops,
	.size = sizeof(struct batch),
	.config = &table,
	.create = batch_create,
};
