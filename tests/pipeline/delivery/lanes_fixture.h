/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_PIPELINE_DELIVERY_LANES_FIXTURE_H
#define TESTS_PIPELINE_DELIVERY_LANES_FIXTURE_H

#include "pipeline/delivery/delivery_private.h"
#include "tests/pipeline/delivery/delivery_fixture.h"

/* A destination of three members: what one of them does concerns only what is for it. A packet of
 * nine samples has three for each member; a smaller one is for the first member alone. A number
 * above MEMBERS stands for a member that may take the place, and the lane, of one that has left. */
enum { MEMBERS = 3, NUMBERS = 2 * MEMBERS + 1 };

static struct {
	_Atomic bool absent[NUMBERS], fails[NUMBERS], refuses[NUMBERS];
	_Atomic int samples[NUMBERS]; /* that it has accepted */
	_Atomic int attempts[NUMBERS];
	_Atomic bool avoided; /* a plan had to avoid the second one */
	/* The second one gets two parts, and leaves when it has refused the second of these as too
	 * large. */
	_Atomic bool halves;
	_Atomic bool holds;  /* the next request to the second one gets no answer */
	_Atomic bool joins;  /* while a plan finds no member, all join */
	_Atomic bool leaves; /* the second one, before the next request to it is sent */
	struct sending *_Atomic held;
	void (*changed)(void *context);
	void *context;
} members;

static inline uint32_t lanes(void *self)
{
	(void)self;
	return MEMBERS;
}

static inline bool serves(void *self, uint32_t member)
{
	(void)self;
	return !members.absent[member];
}

static inline uint32_t count(void *self)
{
	uint32_t present = 0;
	for (uint32_t i = 1; i < NUMBERS; i++)
		present += serves(self, i);
	return present;
}

static inline void watch(void *self, void (*changed)(void *context), void *context)
{
	(void)self;
	members.changed = changed;
	members.context = context;
}

static inline char *endpoint(void *self, uint32_t member)
{
	return serves(self, member) ? memory_format("member:%u", member) : NULL;
}

static const struct member_ops member_ops = {
	.lanes = lanes, .count = count, .serves = serves, .watch = watch, .endpoint = endpoint
};

/* The member in this place, or else in the next one. */
static inline uint32_t present(uint32_t member)
{
	for (uint32_t i = 0; i < MEMBERS; i++, member = member % MEMBERS + 1)
		for (uint32_t number = member; number < NUMBERS; number += MEMBERS)
			if (!members.absent[number])
				return number;
	return 0;
}

static inline void add_part(const struct part *whole, uint32_t member, uint64_t samples,
			    struct parts *parts)
{
	struct packet *packet = packet_new(10, 0);
	packet->otlp.len = 10;
	packet->samples = samples;
	packet->oldest_arrival = whole->packet->oldest_arrival;
	parts_add(parts, packet, samples, 0);
	parts->at[parts->count - 1].group = present(member);
}

/* Both are large enough to be split again. */
static inline void add_halves(const struct part *whole, struct parts *parts)
{
	for (int i = 0; i < 2; i++) {
		add_part(whole, 2, whole->samples / 2, parts);
		parts->at[parts->count - 1].bytes = whole->samples * 10000;
	}
}

static inline bool plan(void *self, const struct part *whole, const struct limits *limits,
			struct parts *parts, struct error *err)
{
	(void)self;
	(void)err;
	for (const uint32_t *a = limits->avoided; a && *a; a++)
		members.avoided = members.avoided || *a == 2;
	if (whole->samples >= MEMBERS && !whole->group && present(1)) {
		for (uint32_t i = 1; i <= MEMBERS; i++)
			add_part(whole, i, whole->samples / MEMBERS, parts);
		return true;
	}
	if (members.halves && whole->group == 2 && whole->samples > 1) {
		add_halves(whole, parts);
		return true;
	}
	parts_add(parts, packet_ref(whole->packet), whole->samples, 0);
	parts->at[parts->count - 1].group = whole->group ? whole->group : present(1);
	return true;
}

static inline void set_absent(bool absent)
{
	for (int i = 1; i <= MEMBERS; i++)
		members.absent[i] = absent;
}

static inline void send_to_member(void *self, const struct part *part, uint64_t timeout_ns,
				  struct sending *sending)
{
	struct send_result result = { .outcome = SEND_OK, .retry_after_ms = -1, .reason = "down" };
	uint32_t member = part->group;
	(void)timeout_ns;
	members.attempts[member]++;
	if (member == 2 && atomic_exchange(&members.holds, false)) {
		members.held = sending;
		return;
	}
	if (!member && atomic_exchange(&members.joins, false)) {
		set_absent(false);
		loop_call((*(struct fixture **)self)->loop, members.changed, members.context);
	}
	if (member == 2 && atomic_exchange(&members.leaves, false)) {
		members.absent[2] = true;
		loop_call((*(struct fixture **)self)->loop, members.changed, members.context);
	}
	result.unsent = members.absent[member] || !member;
	if (members.halves && member == 2 && members.samples[2]) {
		members.absent[2] = true;
		result.outcome = SEND_TOO_LARGE;
	} else if (!member || members.fails[member] || members.absent[member])
		result.outcome = SEND_RETRY;
	else if (members.refuses[member])
		result.outcome = SEND_PERMANENT;
	else
		members.samples[member] += (int)part->samples;
	sending_done(sending, &result);
}

static inline void reset(struct fixture *f)
{
	memset(&members, 0, sizeof members);
	for (int i = MEMBERS + 1; i < NUMBERS; i++)
		members.absent[i] = true;
	f->ops = (struct exporter_ops){ .plan = plan, .members = &member_ops };
	f->ops.send = send_to_member;
	f->config.sending_queue.queue_size = 1000;
}

static inline int setup_members(void **state)
{
	setup(state);
	reset(*state);
	return 0;
}

/* ---- running: the loop runs until the condition is true */

static struct {
	struct fixture *f;
	bool (*is_true)(struct fixture *f);
	struct loop_timer *timer;
} awaited;

static inline void look_again(void *argument)
{
	(void)argument;
	if (awaited.is_true(awaited.f))
		loop_stop(awaited.f->loop);
	else
		loop_timer_start(awaited.timer, 200000);
}

static inline void run_while_not(struct fixture *f, bool (*is_true)(struct fixture *f))
{
	awaited.f = f;
	awaited.is_true = is_true;
	awaited.timer = loop_timer_new(f->loop, look_again, NULL);
	loop_timer_start(awaited.timer, 200000);
	loop_run(f->loop);
	loop_timer_unref(&awaited.timer);
}

static inline void end(struct fixture *f)
{
	drain(f);
	loop_run(f->loop);
}

static inline int others(void)
{
	return members.samples[1] + members.samples[3];
}

static inline bool others_have_all(struct fixture *f)
{
	(void)f;
	return others() == 60 && members.attempts[2] > 3;
}

static inline bool nothing_waits(struct fixture *f)
{
	return read_metric(f, QUEUED) == 0;
}

static inline void fill(struct fixture *f, int packets)
{
	for (int i = 0; i < packets; i++)
		assert_true(enqueue(f, 9));
}

#define MEMBERS_TEST(name) cmocka_unit_test_setup_teardown(name, setup_members, teardown)

#endif
