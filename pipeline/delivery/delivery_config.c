/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/batcher.h"
#include "pipeline/delivery/delivery.h"

#include <inttypes.h>

#include "base/hash.h"

/* The rules and their words are the Collector's (config/configretry, exporterhelper), where it has
 * them. */
enum {
	CONSUMERS_MAX = 10000,
	PARTITIONS_MAX = 10000,
	BATCH_BYTES = 3 << 20 /* as the processor batch has it: below the 4 MiB of a receiver */
};

static const char *const orders[] = { "oldest", "newest", NULL };
static const char *const sizers[] = { "requests", "items", "bytes", NULL };
static const char *const batch_sizers[] = { "queue", "items", "bytes", NULL };

static bool batches_bytes(const struct queue_config *q)
{
	return q->batch.sizer.index == BATCH_SIZER_BYTES ||
	       (q->batch.sizer.index == BATCH_SIZER_OF_QUEUE && q->sizer.index == SIZER_BYTES);
}

static void check_batch(const void *config, struct faults *faults)
{
	const struct queue_batch_config *b = config;
	if (b->flush_timeout.ns <= 0)
		faults_add(faults, "`flush_timeout` must be positive");
	if (b->min_size < 0)
		faults_add(faults, "`min_size` must be non-negative");
	if (b->max_size < 0)
		faults_add(faults, "`max_size` must be non-negative");
	if (b->max_size && b->max_size < b->min_size)
		faults_relate(faults, "min_size",
			      "`max_size` must be greater or equal to `min_size`");
	batcher_check_keys(&b->partition.metadata_keys, "partition::metadata_keys", faults);
}

/* A queue that counts something else holds batches of any size. */
static bool holds_a_batch(const struct queue_config *q)
{
	bool same_sizer = q->sizer.index == (batches_bytes(q) ? SIZER_BYTES : SIZER_ITEMS);
	return !q->batch.present.enabled || !same_sizer || q->batch.min_size <= q->queue_size;
}

struct batch_settings queue_batching(const struct queue_config *q)
{
	const struct queue_batch_config *b = &q->batch;
	bool by_bytes = batches_bytes(q);
	uint64_t min = (uint64_t)b->min_size, max = (uint64_t)b->max_size;
	return (struct batch_settings){
		.on = q->present.enabled && b->present.enabled,
		.timeout = b->flush_timeout,
		.size = min,
		.max_size = by_bytes ? 0 : max,
		.bytes = by_bytes ? min : 0,
		.max_bytes = by_bytes ? max : BATCH_BYTES,
		.metadata_keys = b->partition.metadata_keys,
		.metadata_limit = PARTITIONS_MAX,
	};
}

static void check_queue(const void *config, struct faults *faults)
{
	const struct queue_config *q = config;
	if (q->num_consumers <= 0)
		faults_add(faults, "`num_consumers` must be positive");
	if (q->num_consumers > CONSUMERS_MAX)
		faults_add(faults, "`num_consumers` must be at most %d", CONSUMERS_MAX);
	if (q->max_age.ns < 0)
		faults_add(faults, "`max_age` must be non-negative");
	if (q->queue_size <= 0)
		faults_add(faults, "`queue_size` must be positive");
	if (q->storage && q->wait_for_result)
		faults_relate(faults, "storage",
			      "`wait_for_result` is not supported with a persistent queue "
			      "configured with `storage`");
	if (!holds_a_batch(q))
		faults_relate(faults, "queue_size sizer batch::sizer",
			      "batch: `min_size` must be less than or equal to "
			      "`queue_size`");
}

static const struct config_row partition_rows[] = {
	CONFIG_ROW(struct queue_partition_config, metadata_keys, .key = "metadata_keys",
		   .help = "Requests are joined only if these metadata values are equal. The "
			   "receiver must have `include_metadata`. At most 10000 combinations have "
			   "open batches at a time; beyond that, the oldest batch is flushed."),
	{ 0 }
};
static const struct config_table partition_table = { sizeof(struct queue_partition_config),
						     partition_rows };

static const struct config_row batch_rows[] = {
	CONFIG_ROW(struct queue_batch_config, flush_timeout, .key = "flush_timeout", .def = "200ms",
		   .limited = true, .min = INT64_MIN, .max = INT64_MAX,
		   .help = "A batch is flushed this long after its first request."),
	CONFIG_ROW(struct queue_batch_config, min_size, .key = "min_size", .def = "8192",
		   .help = "A batch is flushed when it reaches this size; 0: immediately."),
	CONFIG_ROW(struct queue_batch_config, max_size, .key = "max_size", .def = "0",
		   .help = "A batch is flushed before it exceeds this size. A larger request "
			   "is split; a single larger sample is dropped. 0: no limit except a "
			   "share of the memory limit."),
	CONFIG_ROW(struct queue_batch_config, sizer, .key = "sizer", .def = "queue",
		   .choices = batch_sizers,
		   .help = "The unit of these sizes: `items` (samples) or `bytes`. `queue`: the "
			   "queue's `sizer`, or `items` if that is `requests`."),
	CONFIG_SECTION(struct queue_batch_config, partition, partition_table, .key = "partition",
		       .help = "Which requests are batched separately."),
	{ 0 }
};
static const struct config_table batch_table = { .size = sizeof(struct queue_batch_config),
						 .rows = batch_rows,
						 .check = check_batch,
						 .optional = true };

static const struct config_row queue_rows[] = {
	CONFIG_ROW(
		struct queue_config, num_consumers, .key = "num_consumers", .def = "10",
		.help = "The number of packets delivered concurrently, including those that wait "
			"for a retry; 1 to 10000."),
	CONFIG_ROW(struct queue_config, queue_size, .key = "queue_size", .def = "1000",
		   .help = "Capacity in units of `sizer`; at least 1. With `batch`, only closed "
			   "batches count. The queue's share of memory limits it too. An empty "
			   "queue accepts one packet of any size. A batch whose senders have "
			   "already received their responses enters every queue that is not full, "
			   "regardless of its size. If all queues are full, it enters the least "
			   "full one and those with `block_on_overflow`, beyond their capacity."),
	CONFIG_ROW(struct queue_config, sizer, .key = "sizer", .def = "requests", .choices = sizers,
		   .help = "The unit of `queue_size`: `requests`, `items` (samples) or `bytes`."),
	CONFIG_ROW(
		struct queue_config, order, .key = "order", .def = "oldest", .choices = orders,
		.help = "Which of the waiting packets is sent first: `oldest` or `newest`, also of "
			"those on disk (`storage`). Not a key of the Collector."),
	CONFIG_ROW(struct queue_config, max_age, .key = "max_age", .def = "0s", .limited = true,
		   .min = INT64_MIN, .max = INT64_MAX,
		   .help = "Data that arrived longer ago is dropped instead of sent, with the "
			   "reason `expired`. A batch is as old as its first request. 0: no limit. "
			   "For the times inside the data, see `limits.max_age`. Not a key of the "
			   "Collector."),
	CONFIG_ROW(struct queue_config, wait_for_result, .key = "wait_for_result", .def = "false",
		   .help = "The sender gets its response only after this destination has "
			   "accepted or rejected the data."),
	CONFIG_ROW(struct queue_config, block_on_overflow, .key = "block_on_overflow",
		   .def = "false",
		   .help = "While the queue is full, receivers refuse requests with a retry "
			   "hint; the data is not dropped."),
	CONFIG_ROW(struct queue_config, storage, .key = "storage",
		   .help = "ID of a `file_storage` extension: the queue is also kept on disk, and "
			   "survives a restart."),
	CONFIG_SECTION(
		struct queue_config, batch, batch_table, .key = "batch",
		.presence = PRESENCE_DEFAULT,
		.help = "Batches requests for this exporter only, before they are queued; the "
			"pipeline's `batch` does not apply. Requests of different pipelines are "
			"never joined. A batch counted in samples is also flushed before it "
			"exceeds 3 MiB, because many receivers reject requests over 4 MiB."),
	{ 0 }
};
const struct config_table queue_table = { .size = sizeof(struct queue_config),
					  .rows = queue_rows,
					  .check = check_queue,
					  .optional = true };

static void check_dead_letter(const void *config, struct faults *faults)
{
	const struct dead_letter_config *c = config;
	if (!c->directory || !*c->directory)
		faults_add(faults, "`directory` must be non-empty");
}

static const struct config_row dead_letter_rows[] = {
	CONFIG_ROW(struct dead_letter_config, directory, .key = "directory",
		   .role = ROLE_WRITES_DIRECTORY,
		   .help = "The directory, of this exporter alone. It is created if it does not "
			   "exist (0700). `portcullis replay` sends again what is in it."),
	CONFIG_ROW(struct dead_letter_config, max_size_mib, .key = "max_size_mib", .def = "1024",
		   .unit = "MiB", .limited = true, .min = 1, .max = 1 << 30,
		   .help = "Maximum size of all files in it. A full directory keeps what it has; "
			   "further data is dropped."),
	CONFIG_ROW(struct dead_letter_config, max_letters, .key = "max_letters", .def = "10000",
		   .limited = true, .min = 1, .max = 10000000,
		   .help = "Maximum number of dead letters in it; each is two files."),
	{ 0 }
};
const struct config_table dead_letter_table = { .size = sizeof(struct dead_letter_config),
						.rows = dead_letter_rows,
						.check = check_dead_letter,
						.optional = true };

void delivery_config_check(const struct delivery_config *c, struct faults *faults)
{
	const struct queue_config *q = &c->sending_queue;
	if (!c->required && q->present.enabled && (q->wait_for_result || q->block_on_overflow))
		faults_relate(faults, "required",
			      "sending_queue: `%s` contradicts `required: false`: senders never "
			      "wait for a best-effort destination",
			      q->wait_for_result ? "wait_for_result" : "block_on_overflow");
}

bool delivery_config_is_durable(const struct delivery_config *c)
{
	return c->sending_queue.present.enabled && c->sending_queue.storage;
}
