/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_DELIVERY_LANES_H
#define PIPELINE_DELIVERY_LANES_H

#include "pipeline/delivery/backlog.h"
#include "pipeline/delivery/circuit.h"

/*
 * The members of a destination that consists of several (struct member_ops). Part of struct
 * delivery; without members, there are no lanes.
 *
 * The consumers of the delivery do not send then. They plan an item, and divide it: each part
 * becomes an item of its own, a child, in the lane of its member. A lane has its own consumers and
 * its own circuit, so a member that does not answer delays only what is for it. An item of which
 * one member gets everything moves into the lane itself.
 *
 * The parent keeps its place in the queue, its record on disk and its senders until all children
 * have ended; its packet leaves memory when no sender waits for it. Its samples stay in its account
 * (`queued`), from which the children settle them. After a restart, the whole record is planned
 * again: members that had accepted their parts get these twice, with the same Idempotency-Key if
 * the members are the same.
 *
 * When the list of members changes, what waits for a member that has left is divided again at once,
 * and so is what found no member at all. What is in flight to a member that has left ends first: it
 * may be accepted. If that fails, it is divided again at once, too.
 *
 * A lane may hold as much as a third of what is then left of the queue for all. When the lane of a
 * member that fails, or is much slower than the others, holds more, its exporter is asked to give
 * what is new to other members, until half of that has gone. So one dead member does not fill the
 * queue.
 */
struct delivery;
struct sending;

struct lane {
	struct circuit circuit;
	struct sending *consumers;
	_Atomic uint32_t failing; /* the member whose last attempt failed; 0: none */
	_Atomic bool taken_over;  /* another member has it now: the circuit is not yet its own */
	/* Under the delivery's lock. */
	struct sending *idle;
	struct item *head, **tail; /* those that wait */
	int64_t units, bytes;      /* of all that are in it */
	uint32_t member;           /* that of the last item that came; 0: none */
	bool avoided;
};

void lanes_init(struct delivery *delivery);
void lanes_fini(struct delivery *delivery); /* they are empty */

/* [pool thread] Moves all parts of the consumer's item into the lanes of their members. False:
 * there are no parts, or one has no member. If the item itself has moved, the consumer has none any
 * more. *rest: the samples of its item that are in no part, for the caller to give up; those of the
 * item itself (item->left) may grow again by what its children leave on disk. The caller wakes the
 * lanes' consumers (delivery_wake). */
bool lanes_divide(struct sending *sending, uint64_t *rest);
/* [pool thread] limits.avoided; the caller frees it. */
uint32_t *lanes_avoided(struct delivery *delivery);
/* [any thread] Does any member fail that has not left? */
bool lanes_fail(const struct delivery *delivery);
/* [any thread] Is the consumer's item for a member that has left? */
bool lanes_is_stray(const struct sending *sending);

/* All under the delivery's lock. */
struct sending *lanes_take_consumer(struct delivery *delivery, struct lane *lane);
/* The next consumer of any lane, or NULL. */
struct sending *lanes_take_any(struct delivery *delivery);
/* An item that waits is taken from its lane; NULL: none waits. `stored`: only of one that stays on
 * disk if the delivery ends now (durable_keep), and it has a record. */
struct item *lanes_take(struct delivery *delivery, bool stored);
/* The item, which has the member's number, has ended. */
void lanes_leave(struct delivery *delivery, struct item *item);
bool lanes_are_empty(const struct delivery *delivery); /* nothing waits */
/* The worst state of all circuits. */
enum circuit_state lanes_circuit(const struct delivery *delivery);
/* What waits in the lanes and what their consumers have: calls for each item. */
void lanes_each(struct delivery *delivery, void (*use)(void *context, struct item *item),
		void *context);

/* [loop thread] */
void lanes_bypass(struct delivery *delivery, bool on);
void lanes_hasten(struct delivery *delivery);

#endif
