/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SUPPORT_HAND_OVER_H
#define TESTS_SUPPORT_HAND_OVER_H

#include "pipeline/delivery/delivery.h"

/* As the pipeline "profiles" does it. */
static inline bool hand_over(struct ledger *ledger, struct delivery *delivery,
			     struct packet *packet, enum queue_entry entry)
{
	const char *tenant = packet->origin ? packet->origin->tenant : NULL;
	struct book *book = delivery_book(delivery, "profiles", tenant);
	ledger_enter(ledger);
	book_receive(book, packet->samples, false);
	ledger_leave(ledger);
	return delivery_enqueue(delivery, packet, book, entry);
}

#endif
