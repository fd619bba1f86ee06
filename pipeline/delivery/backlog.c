/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/delivery/backlog.h"

#include "base/clock.h"

#include <assert.h>

#define CROWDED_NS UINT64_C(2000000000)
/* Without a queue, senders wait for the result, as in the Collector, so only a few packets may
 * wait. */
#define UNQUEUED 64
/* Fractions of the share: for parts made by plans, if the exporter plans, and if it only splits at
 * times. Of the rest: by which packets may exceed it. */
#define PLANNED_SHARE 3
#define SPLIT_SHARE 8
#define STRETCH_SHARE 5

void backlog_init(struct backlog *b, const struct queue_config *config, bool plans)
{
	*b = (struct backlog){ .capacity = UNQUEUED, .plans = plans };
	if (config->present.enabled) {
		b->sizer = (enum queue_sizer)config->sizer.index;
		b->capacity = config->queue_size;
		b->order = (enum queue_order)config->order.index;
	}
	b->tail = &b->head;
}

void backlog_fini(struct backlog *b)
{
	assert(!b->head && !b->arrivals.heap.count);
	arrivals_fini(&b->arrivals);
}

static int64_t at_least_one(int64_t bytes)
{
	return bytes > 0 ? bytes : 1;
}

void backlog_set_share(struct backlog *b, int64_t bytes)
{
	int64_t made = bytes / (b->plans ? PLANNED_SHARE : SPLIT_SHARE), rest = bytes - made;
	b->bytes_max = bytes ? at_least_one(rest - rest / STRETCH_SHARE) : 0;
	b->made_max = bytes ? at_least_one(made) : 0;
}

int64_t backlog_bytes(const struct backlog *b)
{
	return b->bytes + b->made;
}

int64_t backlog_units_of(const struct backlog *b, const struct packet *packet)
{
	switch (b->sizer) {
	case SIZER_ITEMS:
		return packet->samples ? (int64_t)packet->samples : 1;
	case SIZER_BYTES:
		return (int64_t)packet->otlp.len;
	default:
		return 1;
	}
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

int64_t backlog_load(const struct backlog *b)
{
	int64_t max = b->bytes_max;
	int64_t units = (int64_t)((double)b->units / (double)b->capacity * BACKLOG_FULL);
	return larger(units, max ? b->bytes * BACKLOG_FULL / max : 0);
}

static bool fits_memory(const struct backlog *b, int64_t bytes, int64_t max)
{
	return !max || b->bytes + bytes <= max;
}

/* The bytes do not fit now, but may fit soon. */
static bool is_crowded(struct backlog *b, int64_t bytes, bool works)
{
	uint64_t none = 0;
	if (!works || b->full || fits_memory(b, bytes, b->bytes_max))
		return false;
	atomic_compare_exchange_strong(&b->crowded, &none, clock_now());
	return clock_now() - b->crowded < CROWDED_NS;
}

enum delivery_room backlog_room(struct backlog *b, struct packet *packet, bool works)
{
	int64_t bytes = packet ? (int64_t)packet_footprint(packet) : 1;
	int64_t units = packet ? backlog_units_of(b, packet) : 1;
	if (!b->units)
		return ROOM_SOME;
	if (b->units + units > b->capacity)
		return ROOM_NONE;
	if (is_crowded(b, bytes, works))
		return ROOM_SOON;
	return !b->full && fits_memory(b, bytes, b->bytes_max) ? ROOM_SOME : ROOM_NONE;
}

bool backlog_admits(struct backlog *b, const struct item *item, enum queue_entry entry, bool works)
{
	int64_t units = entry == ENTRY_PROMISED ? 1 : item->units,
		bytes = (int64_t)packet_footprint(item->packet);
	int64_t max = b->bytes_max, stretched = b->full ? max : max + max / (STRETCH_SHARE - 1);
	if (entry == ENTRY_REFUSED || entry == ENTRY_ALWAYS || !b->units)
		return entry != ENTRY_REFUSED;
	bool fits = b->units + units <= b->capacity &&
		    (fits_memory(b, bytes, stretched) || is_crowded(b, bytes, works));
	b->full = b->full || !fits;
	return fits;
}

bool backlog_is_half_full(const struct backlog *b)
{
	return b->bytes_max && b->bytes > b->bytes_max / 2;
}

void backlog_push(struct backlog *b, struct item *item)
{
	struct item **at = b->order == ORDER_NEWEST ? &b->head : b->tail;
	item->next = *at;
	*at = item;
	if (!item->next)
		b->tail = &item->next;
}

void backlog_attach(struct backlog *b, struct item *item)
{
	uint64_t arrival = item->packet->oldest_arrival;
	item->holder.bytes = &b->bytes;
	packet_attach(item->packet, &item->holder);
	if (arrival)
		arrivals_add(&b->arrivals, arrival, &item->arrival);
}

void backlog_detach(struct backlog *b, struct item *item)
{
	arrivals_remove(&b->arrivals, &item->arrival);
	packet_detach(item->packet, &item->holder);
}

uint64_t backlog_oldest(const struct backlog *b)
{
	return arrivals_earliest(&b->arrivals);
}

void backlog_add(struct backlog *b, struct item *item)
{
	backlog_attach(b, item);
	b->units += item->units;
	if (!item->spilled)
		backlog_push(b, item);
}

struct item *backlog_take(struct backlog *b)
{
	struct item *item = b->head;
	if (item) {
		b->head = item->next;
		if (!b->head)
			b->tail = &b->head;
		item->next = NULL;
	}
	return item;
}

struct item *backlog_take_stored(struct backlog *b)
{
	struct item **at = &b->head;
	while (*at && !(*at)->stored)
		at = &(*at)->next;
	struct item *item = *at;
	if (!item)
		return NULL;
	*at = item->next;
	if (!*at)
		b->tail = at;
	item->next = NULL;
	return item;
}

bool backlog_remove(struct backlog *b, struct item *item)
{
	if (item->packet)
		backlog_detach(b, item);
	return backlog_count(b, -item->units);
}

bool backlog_count(struct backlog *b, int64_t units)
{
	b->units += units;
	bool recovered = b->full && (!b->units || backlog_load(b) <= BACKLOG_FULL / 2);
	b->full = b->full && !recovered;
	b->crowded = b->units ? b->crowded : 0;
	return recovered;
}

bool backlog_may_make(const struct backlog *b, int64_t bytes)
{
	return !bytes || !b->made || !b->made_max || b->made + bytes <= b->made_max;
}

void backlog_made(struct backlog *b, int64_t bytes)
{
	b->made += bytes;
}
