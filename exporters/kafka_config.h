/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTERS_KAFKA_CONFIG_H
#define EXPORTERS_KAFKA_CONFIG_H

#include "exporters/kafka_route.h"
#include "net/kafka/kafka_producer.h"
#include "pipeline/delivery/delivery.h"

/* The exporter's keys: the Collector's, and those that the manual calls not the Collector's. */
struct kafka_level_config {
	int64_t level;
};

struct kafka_producer_config {
	int64_t max_message_bytes, flush_max_messages, max_broker_write_bytes;
	struct config_any required_acks;
	struct choice compression;
	struct kafka_level_config compression_params;
	struct duration linger;
	bool allow_auto_topic_creation;
};

struct kafka_sticky_config {
	struct optional present;
	struct choice hasher;
};

struct kafka_partitioner_config {
	struct kafka_sticky_config sticky_key;
	const struct node *round_robin, *least_backup, *extension;
};

struct kafka_config {
	struct kafka_client_config client;
	struct kafka_profiles_config profiles;
	char *topic_from_attribute;
	struct strings include_metadata_keys;
	struct pairs record_headers;
	bool signal_header;
	struct kafka_partitioner_config record_partitioner;
	struct kafka_producer_config producer;
	bool idempotency_key;
	struct delivery_config delivery;
	/* without effect */
	char *rack_id;
	const struct node *logs, *metrics, *traces;
	bool partition_traces_by_id, partition_metrics_by_resource_attributes,
		partition_logs_by_resource_attributes, partition_logs_by_trace_id;
};

/* The header that names the signal (collector-contrib, internal/kafka/signal.go). */
#define KAFKA_SIGNAL_HEADER "otelcol.signal"

enum { KAFKA_PROTO, KAFKA_JSON, KAFKA_PPROF };

extern const struct config_table kafka_exporter_table;

/* Of a checked configuration. */
struct kafka_producer_options kafka_config_producer(const struct kafka_config *config,
						    struct loop *loop, const struct log *log);

#endif
