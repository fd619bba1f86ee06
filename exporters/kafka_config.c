/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/kafka_config.h"

#include <string.h>

#include "pipeline/delivery/idempotency.h"

/* In flight without a queue: as many as there are senders. */
#define UNQUEUED_MAX 10000
/* How long a replaced client may still deliver. */
#define REPLACED_NS INT64_C(60000000000)
/* librdkafka counts milliseconds in 32 bits. */
#define TIMEOUT_MAX_NS INT64_C(86400000000000)

static const char *const encodings[] = { "otlp_proto", "otlp_json", "pprof", NULL };
static const char *const compressions[] = { "none", "gzip", "snappy", "lz4", "zstd", NULL };
static const char *const hashers[] = { "sarama_compat", "murmur2", NULL };
/* by hasher; messages without a key go to a partition drawn at random for a while */
static const char *const partitioners[] = { "fnv1a_random", "murmur2_random" };
static const int64_t level_max[] = { 0, 9, 0, 12, 12 };

/* ---- checks ---- */

static bool is_set(const struct node *node)
{
	return node && node->kind != NODE_NULL;
}

/* -2: it is none of them. */
static int64_t acks_of(const struct config_any *acks)
{
	if (acks->kind == ANY_STRING && !strcmp(acks->text, "all"))
		return -1;
	if (acks->kind == ANY_INT && acks->integer >= -1 && acks->integer <= 1)
		return acks->integer;
	return -2;
}

static void check_producer(const void *config, struct faults *faults)
{
	const struct kafka_producer_config *c = config;
	if (acks_of(&c->required_acks) == -2)
		faults_add(faults, "required_acks: must be all, -1, 0 or 1");
	if (c->linger.ns < 0 || c->linger.ns > INT64_C(900000000000))
		faults_add(faults, "linger: must be from 0s to 15m");
	if (c->compression_params.level > level_max[c->compression.index])
		faults_relate(faults, "compression",
			      "compression_params::level: the compression has levels up to %lld",
			      (long long)level_max[c->compression.index]);
}

static void check_partitioner(const void *config, struct faults *faults)
{
	const struct kafka_partitioner_config *c = config;
	static const char text[] =
		"only sticky_key is supported: librdkafka has no other partitioner of these";
	if (is_set(c->round_robin))
		faults_add(faults, "round_robin: %s", text);
	if (is_set(c->least_backup))
		faults_add(faults, "least_backup: %s", text);
	if (is_set(c->extension))
		faults_add(faults, "extension: this build has no partitioner extension");
}

static void check_profiles(const void *config, struct faults *faults)
{
	const struct kafka_profiles_config *c = config;
	if (!kafka_topic_ok(view_of(c->topic ? c->topic : "")))
		faults_add(faults, "topic: must be 1 to 249 letters, digits, '.', '_' and '-'");
}

/* May the configuration name the header? */
static void check_signal(const struct kafka_config *c, struct faults *faults)
{
	bool named = false;
	for (size_t i = 0; i < c->record_headers.count; i++)
		named |= !strcmp(c->record_headers.at[i].name, KAFKA_SIGNAL_HEADER);
	for (size_t i = 0; i < c->include_metadata_keys.count; i++)
		named |= !strcmp(c->include_metadata_keys.at[i], KAFKA_SIGNAL_HEADER);
	if (named && c->signal_header)
		faults_add(faults, "signal_header: the header " KAFKA_SIGNAL_HEADER
				   " must not be in record_headers or include_metadata_keys");
}

static void check(const void *config, struct faults *faults)
{
	const struct kafka_config *c = config;
	check_signal(c, faults);
	if (c->delivery.timeout.ns < 0 ||
	    (c->delivery.timeout.ns && c->delivery.timeout.ns <= c->producer.linger.ns))
		faults_relate(faults, "producer::linger",
			      "timeout: must be 0s or longer than producer::linger");
	if (c->delivery.timeout.ns > TIMEOUT_MAX_NS)
		faults_add(faults, "timeout: must be at most 24h");
	kafka_client_check(&c->client, faults);
}

/* ---- keys ---- */

#define ROW(type, member, ...) CONFIG_ROW(struct type, member, .key = #member, __VA_ARGS__)
#define OTHER_SIGNAL .inert = true, .help = "Only profiles are sent."

static const struct config_row profiles_rows[] = {
	ROW(kafka_profiles_config, topic, .def = "otlp_profiles", .help = "The topic."),
	ROW(kafka_profiles_config, encoding, .def = "otlp_proto", .choices = encodings,
	    .help = "`otlp_proto`: protobuf; `otlp_json`: OTLP/JSON, which is several times "
		    "larger. In both, the keys of resource and scope attributes are references "
		    "into the string table, as the Collector's receiver requires. `pprof`: each "
		    "message is one pprof, compressed with gzip; not an encoding of the "
		    "Collector."),
	ROW(kafka_profiles_config, topic_from_metadata_key,
	    .help = "The topic is the value of this metadata, if there is one. Batches are split "
		    "by it, as by `metadata_keys`."),
	ROW(kafka_profiles_config, message_key_from_metadata_key,
	    .help = "The same for the key of the message. Messages with equal keys get the same "
		    "partition."),
	ROW(kafka_profiles_config, topic_from_tenant, .def = "false",
	    .help = "The topic is the tenant, if there is one. Not a key of the Collector."),
	ROW(kafka_profiles_config, message_key_from_tenant, .def = "false",
	    .help = "The key is the tenant, if there is one. Not a key of the Collector."),
	ROW(kafka_profiles_config, message_key_from_attribute,
	    .help = "The key is the value of this resource attribute, if it is a string. Each "
		    "resource gets messages of its own. Not a key of the Collector."),
	ROW(kafka_profiles_config, max_topics, .def = "1000", .limited = true, .min = 1,
	    .max = 100000,
	    .help = "Maximum number of topics that metadata, attributes and tenants may name. "
		    "Data for others is dropped. Not a key of the Collector."),
	{ 0 }
};
static const struct config_table profiles_table = { sizeof(struct kafka_profiles_config),
						    profiles_rows, check_profiles };

static const struct config_row level_rows[] = {
	ROW(kafka_level_config, level, .def = "-1", .limited = true, .min = -1, .max = 12,
	    .help = "gzip: up to 9; lz4 and zstd: up to 12. -1: the default level."),
	{ 0 }
};
static const struct config_table level_table = { sizeof(struct kafka_level_config), level_rows };

static const struct config_row producer_rows[] = {
	ROW(kafka_producer_config, max_message_bytes, .def = "1000000", .limited = true,
	    .min = 16384, .max = 1000000000,
	    .help = "Maximum size of a message before compression, in bytes. Larger requests are "
		    "split. It must not exceed `message.max.bytes` of the brokers."),
	ROW(kafka_producer_config, required_acks, .def = "all",
	    .help = "`all` or -1: all in-sync replicas have the message; 1: the leader has it; "
		    "0: it was sent. With `all` the producer is idempotent. The Collector's "
		    "default is 1, which loses acknowledged data when a leader fails."),
	ROW(kafka_producer_config, compression, .def = "none", .choices = compressions,
	    .help = "Compression of the messages."),
	CONFIG_SECTION(struct kafka_producer_config, compression_params, level_table,
		       .key = "compression_params", .help = "Options of the compression."),
	ROW(kafka_producer_config, flush_max_messages, .def = "10000", .limited = true, .min = 1,
	    .max = 1000000, .help = "Maximum number of messages that are sent together."),
	ROW(kafka_producer_config, linger, .def = "10ms",
	    .help = "How long a message waits for others."),
	ROW(kafka_producer_config, allow_auto_topic_creation, .def = "true",
	    .help = "Asks the brokers to create missing topics. They must permit it."),
	ROW(kafka_producer_config, max_broker_write_bytes, .def = "104857600", .inert = true,
	    .help = "A request has at most `max_message_bytes`, or one message."),
	{ 0 }
};
static const struct config_table producer_table = { sizeof(struct kafka_producer_config),
						    producer_rows, check_producer };

static const struct config_row sticky_rows[] = {
	ROW(kafka_sticky_config, hasher, .def = "sarama_compat", .choices = hashers,
	    .help = "`sarama_compat`: FNV-1a; `murmur2`: as Kafka's client for Java."),
	{ 0 }
};
static const struct config_table sticky_table = { sizeof(struct kafka_sticky_config), sticky_rows,
						  .optional = true };

static const struct config_row partitioner_rows[] = {
	CONFIG_SECTION(struct kafka_partitioner_config, sticky_key, sticky_table,
		       .key = "sticky_key", .presence = PRESENCE_DEFAULT,
		       .help = "The hash of the key selects the partition. Messages without a key "
			       "go to a random partition, which changes after each batch."),
	ROW(kafka_partitioner_config, round_robin, .help = "Not supported: an error."),
	ROW(kafka_partitioner_config, least_backup, .help = "Not supported: an error."),
	ROW(kafka_partitioner_config, extension, .help = "Not supported: an error."),
	{ 0 }
};
static const struct config_table partitioner_table = { sizeof(struct kafka_partitioner_config),
						       partitioner_rows, check_partitioner };

static const struct config_row rows[] = {
	KAFKA_CLIENT_ROWS(struct kafka_config, client),
	CONFIG_SECTION(struct kafka_config, profiles, profiles_table, .key = "profiles",
		       .help = "What a message is and where it is sent."),
	ROW(kafka_config, topic_from_attribute,
	    .help = "The topic is the value of this resource attribute, if it is a string. Each "
		    "resource gets messages of its own. `topic_from_metadata_key` takes "
		    "precedence."),
	ROW(kafka_config, include_metadata_keys,
	    .help = "Metadata that becomes headers of the message. Batches are split by it, as "
		    "by `metadata_keys`."),
	ROW(kafka_config, record_headers, .help = "Headers of each message."),
	ROW(kafka_config, signal_header, .def = "false",
	    .help = "Adds the header `" KAFKA_SIGNAL_HEADER "` with the value `profiles` to each "
		    "message."),
	CONFIG_SECTION(struct kafka_config, record_partitioner, partitioner_table,
		       .key = "record_partitioner", .help = "Which partition a message gets."),
	CONFIG_SECTION(struct kafka_config, producer, producer_table, .key = "producer",
		       .help = "How messages are sent."),
	IDEMPOTENCY_ROW(struct kafka_config, idempotency_key),
	DELIVERY_ROWS(struct kafka_config, delivery, "5s"),
	ROW(kafka_config, rack_id, .inert = true, .help = "Only readers have a use for it."),
	ROW(kafka_config, logs, OTHER_SIGNAL),
	ROW(kafka_config, metrics, OTHER_SIGNAL),
	ROW(kafka_config, traces, OTHER_SIGNAL),
	ROW(kafka_config, partition_traces_by_id, .def = "false", OTHER_SIGNAL),
	ROW(kafka_config, partition_metrics_by_resource_attributes, .def = "false", OTHER_SIGNAL),
	ROW(kafka_config, partition_logs_by_resource_attributes, .def = "false", OTHER_SIGNAL),
	ROW(kafka_config, partition_logs_by_trace_id, .def = "false", OTHER_SIGNAL),
	{ 0 }
};
const struct config_table kafka_exporter_table = { sizeof(struct kafka_config), rows, check };

struct kafka_producer_options kafka_config_producer(const struct kafka_config *c, struct loop *loop,
						    const struct log *log)
{
	const struct queue_config *queue = &c->delivery.sending_queue;
	return (struct kafka_producer_options){
		.loop = loop,
		.log = log,
		.config = &c->client,
		.acks = acks_of(&c->producer.required_acks),
		.compression = compressions[c->producer.compression.index],
		.compression_level = c->producer.compression_params.level,
		.partitioner = partitioners[c->record_partitioner.sticky_key.hasher.index],
		.max_message_bytes = c->producer.max_message_bytes,
		.batch_messages = c->producer.flush_max_messages,
		.in_flight = queue->present.enabled ? queue->num_consumers : UNQUEUED_MAX,
		.linger_ns = c->producer.linger.ns,
		.timeout_ns = c->delivery.timeout.ns,
		.replaced_ns = REPLACED_NS,
		.create_topics = c->producer.allow_auto_topic_creation,
	};
}
