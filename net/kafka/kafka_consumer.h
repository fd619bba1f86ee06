/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_KAFKA_KAFKA_CONSUMER_H
#define NET_KAFKA_KAFKA_CONSUMER_H

#include "base/log.h"
#include "net/fields.h"
#include "net/kafka/kafka_client.h"
#include "net/loop.h"

/*
 * A member of a consumer group: reads the partitions that the group assigns to it, through
 * librdkafka, and commits what the caller has finished.
 *
 * Each message is handed to `arrived` and stays with the caller until kafka_message_finish, in any
 * order. Of each partition the offset is committed up to which all messages are finished, so a
 * message that is not finished is read again by whoever gets the partition next. At most
 * `in_flight_max` messages are with the caller, and no further one once their values have
 * `in_hand_bytes_max` bytes. When that has been so for a second, or the caller pauses the consumer,
 * the partitions are paused: librdkafka drops what it has fetched, and the membership in the group
 * stays.
 *
 * When the group takes partitions away, messages of them that are with the caller get
 * KAFKA_REVOKE_WAIT_MS to be finished. Partitions that are lost (the membership has ended) go at
 * once, and what is finished later is not committed.
 *
 * When the certificates have changed, or the group has expelled the client, a new client takes its
 * place. The old one leaves the group with its last message.
 *
 * All functions and callbacks: loop thread, except where said. librdkafka's log is discarded, and
 * its errors are logged by name (kafka_events.h).
 */
enum { KAFKA_REVOKE_WAIT_MS = 5000 };

struct kafka_consumer_state { /* once per second, and when partitions come or go */
	uint32_t partitions;
	/* Messages of these partitions that are not finished, as far as the brokers have said. */
	int64_t lag;
};

struct kafka_message_in;

struct kafka_consumer_options {
	struct loop *loop;
	const struct log *log;
	const struct kafka_client_config *config;
	/* Names, or regular expressions that begin with '^' */
	const struct strings *topics, *exclude_topics;
	const char *group, *instance, *rack; /* instance and rack may be NULL or empty */
	const char *strategies;              /* librdkafka's partition.assignment.strategy */
	const char *initial_offset;          /* of a group without one: "earliest" or "latest" */
	int64_t session_timeout_ns, heartbeat_ns, commit_interval_ns, fetch_wait_ns;
	int64_t fetch_min_bytes, fetch_max_bytes, partition_fetch_max_bytes;
	uint32_t in_flight_max;
	int64_t in_hand_bytes_max;
	void (*arrived)(void *context, struct kafka_message_in *message);
	void (*partitions)(void *context, uint32_t started, uint32_t closed);
	void (*observed)(void *context, const struct kafka_consumer_state *state);
	/* The client reports an error: one of the words of kafka_judge. */
	void (*failed)(void *context, const char *reason);
	void *context;
};

struct kafka_message_in {
	const char *topic;
	int32_t partition;
	int64_t offset;
	struct view value; /* without an address: the record has none */
	size_t excess;     /* bytes of it that are beyond in_hand_bytes_max, with those before it */
	/* The rest belongs to the consumer. */
	struct kafka_partition *from;
	struct kafka_message_in *next;
	const void *record;
	void *event;
	bool abandoned;
};

struct kafka_consumer;

/* Options are borrowed for the consumer's life, except the struct itself. Does not wait for a
 * connection. */
struct kafka_consumer *kafka_consumer_new(const struct kafka_consumer_options *options,
					  struct error *err);
/* No messages arrive any more, except some that were on their way. */
void kafka_consumer_pause(struct kafka_consumer *consumer);
void kafka_consumer_resume(struct kafka_consumer *consumer);
/* Appends the headers whose names and values are UTF-8 text. Others are left out. False: they
 * exceed the limits. */
bool kafka_message_headers(const struct kafka_message_in *message, struct fields *headers,
			   struct error *err);
/* The offset may be committed; frees the message. */
void kafka_message_finish(struct kafka_message_in **message);
/* Frees the message, which will be read again. Before kafka_consumer_unref only. */
void kafka_message_abandon(struct kafka_message_in **message);
/* Reads the certificates again. False: they are broken, and the old ones stay in use. [any thread]
 */
bool kafka_consumer_reopen(struct kafka_consumer *consumer, bool *changed, struct error *err);
/* Commits, leaves the group, and waits for librdkafka's threads; all messages are finished or
 * abandoned. Clears the pointer; accepts NULL. [pool thread] */
void kafka_consumer_unref(struct kafka_consumer **consumer);

#endif
