/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_KAFKA_KAFKA_PARTITIONS_H
#define NET_KAFKA_KAFKA_PARTITIONS_H

#include <librdkafka/rdkafka.h>

#include "net/kafka/kafka_consumer.h"

struct member; /* kafka_member.h */

/*
 * The partitions that a member of a group has, and their messages that are with the caller. For
 * this folder only; one thread at a time.
 */
struct kafka_partition {
	struct kafka_partition *next;
	struct member *member;
	char *topic;
	int32_t number;
	/* Messages from the first that is not finished, in the order of their offsets. Finished
	 * ones have no event, nor have abandoned ones, which committable does not pass. */
	struct kafka_message_in *head, **tail;
	uint32_t in_hand;    /* of them, not finished */
	int64_t committable; /* all messages before this offset are finished; -1: none has come */
	bool leaving;        /* no more messages are taken of it */
	bool gone;           /* not in the list any more; freed with its last message */
};

struct kafka_partitions {
	struct kafka_partition *first;
	uint32_t count;
};

struct kafka_partition *kafka_partitions_add(struct kafka_partitions *partitions,
					     struct member *member, const char *topic,
					     int32_t number);
struct kafka_partition *kafka_partitions_find(const struct kafka_partitions *partitions,
					      const char *topic, int32_t number);
/* Removes it; its messages stay until they are finished. */
void kafka_partitions_remove(struct kafka_partitions *partitions,
			     struct kafka_partition *partition);
/* Messages of leaving partitions that are not finished. */
uint32_t kafka_partitions_leaving(const struct kafka_partitions *partitions);

/* Appends a message; `event` is what keeps the record. */
struct kafka_message_in *kafka_partition_push(struct kafka_partition *partition,
					      const rd_kafka_message_t *record,
					      rd_kafka_event_t *event);
/* A message has been finished or abandoned (its event is NULL). True: partition->committable has
 * moved. If the partition is gone and this was its last message, it is freed, and the result is
 * false. */
bool kafka_partition_settle(struct kafka_partition *partition);

#endif
