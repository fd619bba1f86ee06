/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kafka/kafka_partitions.h"

#include <string.h>

#include "base/memory.h"

struct kafka_partition *kafka_partitions_add(struct kafka_partitions *all, struct member *member,
					     const char *topic, int32_t number)
{
	struct kafka_partition *p = memory_new(sizeof *p);
	p->member = member;
	p->topic = memory_text(topic);
	p->number = number;
	p->tail = &p->head;
	p->committable = -1;
	p->next = all->first;
	all->first = p;
	all->count++;
	return p;
}

struct kafka_partition *kafka_partitions_find(const struct kafka_partitions *all, const char *topic,
					      int32_t number)
{
	struct kafka_partition *p = all->first;
	while (p && (p->number != number || strcmp(p->topic, topic)))
		p = p->next;
	return p;
}

static void partition_free(struct kafka_partition *p)
{
	while (p->head) {
		struct kafka_message_in *m = p->head;
		p->head = m->next;
		memory_free(m);
	}
	memory_free(p->topic);
	memory_free(p);
}

void kafka_partitions_remove(struct kafka_partitions *all, struct kafka_partition *p)
{
	struct kafka_partition **place = &all->first;
	while (*place != p)
		place = &(*place)->next;
	*place = p->next;
	all->count--;
	p->gone = true;
	if (!p->in_hand)
		partition_free(p);
}

uint32_t kafka_partitions_leaving(const struct kafka_partitions *all)
{
	uint32_t count = 0;
	for (const struct kafka_partition *p = all->first; p; p = p->next)
		count += p->leaving ? p->in_hand : 0;
	return count;
}

struct kafka_message_in *kafka_partition_push(struct kafka_partition *p,
					      const rd_kafka_message_t *record,
					      rd_kafka_event_t *event)
{
	struct kafka_message_in *m = memory_new(sizeof *m);
	*m = (struct kafka_message_in){ .topic = p->topic,
					.partition = p->number,
					.offset = record->offset,
					.value = { record->payload, record->len },
					.from = p,
					.record = record,
					.event = event };
	*p->tail = m;
	p->tail = &m->next;
	p->in_hand++;
	if (p->committable < 0)
		p->committable = record->offset;
	return m;
}

bool kafka_partition_settle(struct kafka_partition *p)
{
	int64_t before = p->committable;
	p->in_hand--;
	while (p->head && !p->head->event && !p->head->abandoned) {
		struct kafka_message_in *m = p->head;
		p->committable = m->offset + 1;
		p->head = m->next;
		memory_free(m);
	}
	if (!p->head)
		p->tail = &p->head;
	if (!p->gone)
		return p->committable != before;
	if (!p->in_hand)
		partition_free(p);
	return false;
}
