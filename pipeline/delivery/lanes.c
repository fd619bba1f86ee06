/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/delivery/lanes.h"

#include "base/memory.h"
#include "pipeline/delivery/delivery_private.h"

#include <assert.h>

/* A lane may hold one part of this many of what is left. */
#define LEFT_PARTS 3
#define CONSUMERS_MAX 64

static const struct member_ops *members_of(const struct delivery *d)
{
	return d->options.ops->members;
}

static struct lane *lane_of(const struct delivery *d, uint32_t member)
{
	return &d->lanes[(member - 1) % d->lane_count];
}

/* ---- life */

static void init_lane(struct delivery *d, struct lane *lane)
{
	lane->tail = &lane->head;
	lane->consumers = memory_array(d->lane_consumers, sizeof *lane->consumers);
	for (uint32_t i = 0; i < d->lane_consumers; i++) {
		sending_init(&lane->consumers[i], d, lane);
		lane->consumers[i].next = lane->idle;
		lane->idle = &lane->consumers[i];
	}
	circuit_init(&lane->circuit, &(struct circuit_options){
					     .retry = &d->options.config->retry_on_failure,
					     .consumers = d->lane_consumers,
					     .loop = d->options.loop,
					     .start = sending_start,
					     .expired = sending_expired,
				     });
}

static void members_changed(void *context);

void lanes_init(struct delivery *d)
{
	const struct member_ops *members = members_of(d);
	d->lane_consumers = d->consumer_count < CONSUMERS_MAX ? d->consumer_count : CONSUMERS_MAX;
	d->lane_count = members ? members->lanes(d->options.exporter) : 0;
	d->lanes = d->lane_count ? memory_array(d->lane_count, sizeof *d->lanes) : NULL;
	for (uint32_t i = 0; i < d->lane_count; i++)
		init_lane(d, &d->lanes[i]);
	if (members)
		members->watch(d->options.exporter, members_changed, d);
}

void lanes_fini(struct delivery *d)
{
	for (uint32_t i = 0; i < d->lane_count; i++) {
		struct lane *lane = &d->lanes[i];
		assert(!lane->head);
		for (uint32_t k = 0; k < d->lane_consumers; k++)
			sending_fini(&lane->consumers[k]);
		circuit_fini(&lane->circuit);
		memory_free(lane->consumers);
	}
	memory_free(d->lanes);
}

/* ---- how much a lane holds; under the delivery's lock */

/* Does it hold more than one `parts`th of what is left for all? */
static bool holds_more(const struct delivery *d, const struct lane *lane, int64_t parts)
{
	const struct backlog *b = &d->backlog;
	int64_t max = b->bytes_max;
	return lane->units > 0 && (lane->units * parts > b->capacity - b->units ||
				   (max && lane->bytes * parts > max - b->bytes));
}

/* Does the member fail, or have more than twice its share of everything? */
static bool is_behind(const struct delivery *d, const struct lane *lane)
{
	return lane->circuit.state != CIRCUIT_CLOSED ||
	       (lane->head && lane->units * d->member_count > d->backlog.units * 2);
}

static void weigh(struct delivery *d, struct lane *lane)
{
	lane->avoided = lane->avoided ? holds_more(d, lane, LEFT_PARTS * 2)
				      : holds_more(d, lane, LEFT_PARTS) && is_behind(d, lane);
}

/* ---- the list; under the delivery's lock */

static void append(struct delivery *d, struct lane *lane, struct item *item)
{
	struct item **at = d->backlog.order == ORDER_NEWEST ? &lane->head : lane->tail;
	item->next = *at;
	*at = item;
	if (!item->next)
		lane->tail = &item->next;
}

static struct item *take_at(struct lane *lane, struct item **at)
{
	struct item *item = *at;
	*at = item->next;
	if (!*at)
		lane->tail = at;
	item->next = NULL;
	return item;
}

static void enter(struct delivery *d, struct item *item, uint32_t member)
{
	struct lane *lane = lane_of(d, member);
	if (item->member)
		lanes_leave(d, item);
	item->member = member;
	item->weight = (int64_t)packet_footprint(item->packet);
	lane->units += backlog_units_of(&d->backlog, item->packet);
	lane->bytes += item->weight;
	if (lane->member != member) {
		lane->taken_over = true;
		lane->member = member;
		lane->avoided = false;
	}
	append(d, lane, item);
	weigh(d, lane);
}

void lanes_leave(struct delivery *d, struct item *item)
{
	struct lane *lane = lane_of(d, item->member);
	lane->units -= backlog_units_of(&d->backlog, item->packet);
	lane->bytes -= item->weight;
	item->member = 0;
	weigh(d, lane);
}

struct item *lanes_take(struct delivery *d, bool stored)
{
	for (uint32_t i = 0; i < d->lane_count; i++) {
		struct lane *lane = &d->lanes[i];
		for (struct item **at = &lane->head; *at; at = &(*at)->next) {
			struct item *root = (*at)->parent ? (*at)->parent : *at;
			if (!stored || (root->stored && durable_keep(d, *at) == DURABLE_KEEPS))
				return take_at(lane, at);
		}
	}
	return NULL;
}

bool lanes_are_empty(const struct delivery *d)
{
	for (uint32_t i = 0; i < d->lane_count; i++)
		if (d->lanes[i].head)
			return false;
	return true;
}

void lanes_each(struct delivery *d, void (*use)(void *context, struct item *item), void *context)
{
	for (uint32_t i = 0; i < d->lane_count; i++) {
		for (struct item *item = d->lanes[i].head; item; item = item->next)
			use(context, item);
		for (uint32_t k = 0; k < d->lane_consumers; k++)
			if (d->lanes[i].consumers[k].item)
				use(context, d->lanes[i].consumers[k].item);
	}
}

struct sending *lanes_take_consumer(struct delivery *d, struct lane *lane)
{
	struct sending *s = lane->idle;
	if (!s || !lane->head || delivery_is_killed(d) || d->durable.abandoned)
		return NULL;
	lane->idle = s->next;
	d->busy++;
	s->item = take_at(lane, &lane->head);
	return s;
}

struct sending *lanes_take_any(struct delivery *d)
{
	struct sending *s = NULL;
	for (uint32_t i = 0; i < d->lane_count && !s; i++)
		s = lanes_take_consumer(d, &d->lanes[i]);
	return s;
}

/* ---- dividing */

static struct item *child_of(struct delivery *d, struct item *parent, const struct part *part)
{
	struct item *child = delivery_item(d, part->packet, parent->book);
	child->parent = parent;
	child->answered = true;
	child->several = parent->several;
	child->left = part->samples;
	child->queued = 0;
	backlog_attach(&d->backlog, child);
	parent->holds++;
	parent->divided = true;
	return child;
}

/* Under the lock. */
static void divide(struct delivery *d, struct item *item, const struct parts *parts)
{
	struct item *parent = item->parent ? item->parent : item;
	if (item->member)
		lanes_leave(d, item);
	for (uint32_t i = 0; i < parts->count; i++) {
		const struct part *part = &parts->at[i];
		item->left -= part->samples;
		enter(d, child_of(d, parent, part), part->group);
	}
}

static bool all_have_members(const struct parts *parts)
{
	for (uint32_t i = 0; i < parts->count; i++)
		if (!parts->at[i].group)
			return false;
	return parts->count > 0;
}

uint32_t *lanes_avoided(struct delivery *d)
{
	uint32_t *list = memory_array(d->lane_count + 1, sizeof *list), count = 0;
	pthread_mutex_lock(&d->lock);
	for (uint32_t i = 0; i < d->lane_count; i++)
		if (d->lanes[i].avoided)
			list[count++] = d->lanes[i].member;
	pthread_mutex_unlock(&d->lock);
	return list;
}

/* What the circuit of a lane knows is about the member that had it before. */
static void renew_circuits(struct delivery *d, const struct parts *parts)
{
	for (uint32_t i = 0; i < parts->count; i++) {
		struct lane *lane = lane_of(d, parts->at[i].group);
		if (lane->taken_over && atomic_exchange(&lane->taken_over, false))
			circuit_reset(&lane->circuit);
	}
}

bool lanes_divide(struct sending *s, uint64_t *rest)
{
	struct delivery *d = s->delivery;
	struct item *item = s->item;
	const struct parts *parts = &s->parts;
	*rest = 0;
	if (!all_have_members(parts))
		return false;
	d->member_count = members_of(d)->count(d->options.exporter);
	pthread_mutex_lock(&d->lock);
	if (parts->count == 1 && parts->at[0].packet == item->packet) {
		s->item = NULL;
		enter(d, item, parts->at[0].group);
	} else {
		divide(d, item, parts);
		*rest = item->left;
	}
	pthread_mutex_unlock(&d->lock);
	renew_circuits(d, parts);
	return true;
}

/* ---- changes of the list of members */

bool lanes_is_stray(const struct sending *s)
{
	const struct delivery *d = s->delivery;
	return s->lane && !members_of(d)->serves(d->options.exporter, s->item->member);
}

/* Of the consumer's item; 0: there is none. */
static uint32_t member_of(struct delivery *d, const struct sending *s)
{
	pthread_mutex_lock(&d->lock);
	uint32_t member = s->item ? s->item->member : 0;
	pthread_mutex_unlock(&d->lock);
	return member;
}

static bool has_strays(struct delivery *d, const struct lane *lane)
{
	for (uint32_t i = 0; i < d->lane_consumers; i++) {
		uint32_t member = member_of(d, &lane->consumers[i]);
		if (member && !members_of(d)->serves(d->options.exporter, member))
			return true;
	}
	return false;
}

/* Is the circuit about a member that has left? */
static bool is_left(struct delivery *d, const struct lane *lane)
{
	pthread_mutex_lock(&d->lock);
	uint32_t member = lane->member;
	pthread_mutex_unlock(&d->lock);
	return member && !members_of(d)->serves(d->options.exporter, member);
}

static void hasten(struct sending *consumers, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		sending_hasten(&consumers[i]);
}

/* On the loop thread, as all waiting. The delivery's own consumers wait for the first member. */
static void members_changed(void *context)
{
	struct delivery *d = context;
	d->changes++;
	circuit_reset(&d->circuit);
	hasten(d->consumers, d->consumer_count);
	for (uint32_t i = 0; i < d->lane_count; i++) {
		struct lane *lane = &d->lanes[i];
		if (is_left(d, lane))
			circuit_reset(&lane->circuit);
		if (has_strays(d, lane))
			hasten(lane->consumers, d->lane_consumers);
	}
}

/* ---- all of them */

bool lanes_fail(const struct delivery *d)
{
	for (uint32_t i = 0; i < d->lane_count; i++) {
		uint32_t member = d->lanes[i].failing;
		if (member && members_of(d)->serves(d->options.exporter, member))
			return true;
	}
	return false;
}

enum circuit_state lanes_circuit(const struct delivery *d)
{
	enum circuit_state worst = d->circuit.state;
	for (uint32_t i = 0; i < d->lane_count; i++) {
		enum circuit_state state = d->lanes[i].circuit.state;
		worst = state > worst ? state : worst;
	}
	return worst;
}

void lanes_bypass(struct delivery *d, bool on)
{
	for (uint32_t i = 0; i < d->lane_count; i++)
		circuit_bypass(&d->lanes[i].circuit, on);
}

void lanes_hasten(struct delivery *d)
{
	for (uint32_t i = 0; i < d->lane_count; i++)
		hasten(d->lanes[i].consumers, d->lane_consumers);
}
