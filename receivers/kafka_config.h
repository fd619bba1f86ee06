/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RECEIVERS_KAFKA_CONFIG_H
#define RECEIVERS_KAFKA_CONFIG_H

#include "net/kafka/kafka_client.h"
#include "net/kafka/kafka_consumer.h"
#include "pipeline/component.h"
#include "pipeline/intake/duplicates.h"
#include "pipeline/retry.h"

/* The receiver's keys: the Collector's, and those that the manual calls not the Collector's. */
struct kafka_topics_config {
	struct strings topics, exclude_topics;
	struct choice encoding, schema;
};

struct kafka_autocommit_config {
	bool enable;
	struct duration interval;
};

struct kafka_marking_config {
	bool after, on_error, on_permanent_error;
};

struct kafka_partitions_config {
	bool independent;
	int64_t max_buffered_batches; /* without effect */
};

struct kafka_extraction_config {
	bool extract_headers;
	struct strings headers;
};

struct kafka_receiver_config {
	struct kafka_client_config client;
	struct kafka_topics_config profiles;
	char *group_id, *group_instance_id, *initial_offset, *rack_id;
	struct strings group_rebalance_strategies;
	struct duration session_timeout, heartbeat_interval, max_fetch_wait;
	int64_t min_fetch_size, max_fetch_size, max_partition_fetch_size;
	struct kafka_autocommit_config autocommit;
	struct kafka_marking_config message_marking;
	struct kafka_extraction_config header_extraction;
	struct retry_config error_backoff;
	struct kafka_partitions_config partition_processing;
	const struct node *logs, *metrics, *traces, *telemetry; /* without effect */
	int64_t max_in_flight, max_message_bytes;
	struct choice ack;
	struct duplicates_config deduplicate;
};

enum kafka_receiver_encoding {
	KAFKA_RECEIVER_PROTO,
	KAFKA_RECEIVER_JSON,
	KAFKA_RECEIVER_PPROF,
	KAFKA_RECEIVER_ENCODINGS
};

extern const struct config_table kafka_receiver_table;

/* The delays that are in force. */
const struct retry_config *kafka_receiver_backoff(const struct kafka_receiver_config *config);

/* Of a checked configuration; the callbacks are the caller's. `strategies`: room for their names.
 */
enum { KAFKA_STRATEGIES_ROOM = 64 };
struct kafka_consumer_options kafka_receiver_options(const struct kafka_receiver_config *config,
						     char strategies[KAFKA_STRATEGIES_ROOM]);

#endif
