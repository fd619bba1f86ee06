/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_KAFKA_KAFKA_MEMBER_H
#define NET_KAFKA_KAFKA_MEMBER_H

#include "net/kafka/kafka_events.h"
#include "net/kafka/kafka_partitions.h"

/*
 * One client of librdkafka that is a member of a consumer group: its configuration, and the calls
 * that change what it reads. Which partitions it has, and what becomes of messages, is the
 * consumer's business (kafka_consumer.c). For this folder only.
 */
struct member {
	const struct kafka_consumer_options *options;
	struct kafka_consumer *consumer;
	struct member *next; /* of those that end */
	rd_kafka_t *rk;
	struct kafka_events events;
	struct kafka_partitions partitions;
	uint32_t in_hand; /* messages that the caller has */
	/* taken since member_fetch: the queue may have been full */
	uint64_t taken_bytes, taken_messages;
	rd_kafka_event_t *revocation; /* waits for messages; NULL: there is none */
	uint64_t revoke_by;
};

/* Subscribes; `ready` as in kafka_events_open, with the member as its argument. [loop thread] */
struct member *member_new(const struct kafka_consumer_options *options,
			  const struct tls_material *material,
			  void (*ready)(void *argument, int fd, unsigned events),
			  struct error *err);
/* Leaves the group; what is finished is committed. The loop does not know the member any more.
 * Frees it. [pool thread] */
void member_close(struct member *member);

/* Asks again for topics that do not exist yet, too. False: a topic is not valid. */
bool member_subscribe(const struct member *member);
void member_set_paused(struct member *member, bool paused);
/* The queue is empty: fetching continues now, and not a second later. */
void member_fetch(struct member *member);
void member_assign(struct member *member, const rd_kafka_topic_partition_list_t *list);
/* Commits what was stored of these partitions (NULL: of all), and lets go of them. */
void member_unassign(struct member *member, const rd_kafka_topic_partition_list_t *list);
/* Everything before partition->committable may be committed. */
void member_store_offset(struct member *member, const struct kafka_partition *partition);

#endif
