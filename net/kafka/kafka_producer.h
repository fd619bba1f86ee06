/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_KAFKA_KAFKA_PRODUCER_H
#define NET_KAFKA_KAFKA_PRODUCER_H

#include "base/log.h"
#include "net/fields.h"
#include "net/kafka/kafka_client.h"
#include "net/loop.h"

/*
 * Sends messages to Kafka through librdkafka, and reports the fate of each one on the loop.
 *
 * librdkafka keeps no copy of a message and no backlog: its queue holds what the caller has in
 * flight, at most `in_flight` messages, and of an idempotent producer only what it can send
 * (kafka_window.h); the others wait here. Each message ends within the timeout after librdkafka got
 * it, and within twice the timeout in all. Delivery reports wake the loop through an event
 * descriptor, and no thread of the project waits for librdkafka except in kafka_producer_unref.
 *
 * The producer is idempotent if `acks` is -1: retries inside librdkafka neither duplicate nor
 * reorder messages. When the cluster has forgotten or fenced it, or when the certificates have
 * changed, a new client takes its place, and the old one ends with its last message. What that has
 * not delivered after `replaced_ns` is cancelled (reason `cancelled`), whatever the timeout is.
 */
struct kafka_producer_options {
	struct loop *loop;
	const struct log *log;
	const struct kafka_client_config *config;
	int64_t acks; /* -1: all in-sync replicas; 1; 0 */
	const char *compression, *partitioner;
	int64_t compression_level; /* -1: the codec's default */
	int64_t max_message_bytes, batch_messages, in_flight;
	int64_t linger_ns, timeout_ns; /* timeout_ns: 0: none */
	int64_t replaced_ns; /* how long a client may still deliver after it was replaced */
	bool create_topics;
};

/* All borrowed: the topic, the key and the headers during the call, the value until `done`. */
struct kafka_message {
	const char *topic;
	struct view key; /* without an address: none */
	struct view value;
	const struct metadatum *headers; /* ends with name == NULL; may be NULL */
};

struct kafka_producer;

/* Options are borrowed for the producer's life, except the struct itself. Does not wait for a
 * connection. [loop thread] */
struct kafka_producer *kafka_producer_new(const struct kafka_producer_options *options,
					  struct error *err);
/* Calls done exactly once, at once or later, on the loop thread, on a thread that sends, or on that
 * of kafka_producer_unref. [any thread, not after kafka_producer_unref] */
void kafka_producer_send(struct kafka_producer *producer, const struct kafka_message *message,
			 void (*done)(void *argument, struct kafka_result result), void *argument);
/* Reads the certificates again. False: they are broken, and the old ones stay in use. [any thread]
 */
bool kafka_producer_reopen(struct kafka_producer *producer, bool *changed, struct error *err);
/* Cancels what is in flight (reason `cancelled`). Waits for librdkafka's threads and for the loop.
 * Clears the pointer; accepts NULL. [pool thread] */
void kafka_producer_unref(struct kafka_producer **producer);

#endif
