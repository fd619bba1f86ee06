/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_DELIVERY_BOOK_H
#define PIPELINE_DELIVERY_BOOK_H

#include <stdatomic.h>

#include "pipeline/delivery/record.h"
#include "pipeline/ledger.h"

/*
 * The account of one pipeline and tenant at one delivery: which rows of the ledger its samples
 * count in, and under which name its records count in the storage. Rows belong to IDs, and an
 * exporter that was replaced may have the same ID as the one that took its place: `queued` is what
 * this delivery alone has.
 *
 * A delivery makes at most BOOKS_MAX for data that arrives; beyond that, tenants share the book
 * `other`. Its queue on disk may have more accounts, of an earlier program: each of them has a
 * book, which counts in the row `other` if its tenant has no row. So the account of a record is
 * always the one in which the record was counted when it was written.
 */
enum { BOOKS_MAX = 1000 };

struct book {
	struct book *next;
	struct ledger *ledger;
	char *pipeline; /* its ID; a later graph's pipeline of this ID is the same */
	struct ledger_row *row, *tenant; /* tenant: NULL: of data without one */
	char *name;                      /* of the tenant in the storage; NULL: none */
	char *account;                   /* name in the storage: pipeline and tenant */
	_Atomic int64_t queued;          /* samples that wait or are in flight, also on disk */
	/* Of these, under the delivery's lock: samples that are on disk only; and those that were
	 * in memory too until the delivery left them to the next one. */
	int64_t disk, kept;
};

/* Finds or creates the book of data that arrives; `list` is the head of the delivery's, under its
 * lock. */
struct book *book_of(struct book **list, struct ledger *ledger, const char *exporter,
		     const char *pipeline, const char *tenant);
/* That of an account which the storage had at the start. */
struct book *book_of_account(struct book **list, struct ledger *ledger, const char *exporter,
			     const char *account);
/* Do the tenants of its data differ from its name? */
bool book_is_shared(const struct book *book);
/* The book of a record that is on disk only. Of a record that does not say where it was counted:
 * the tenant's book, or else the shared one. NULL: it does not have this many samples. */
struct book *book_of_record(struct book *list, const char *pipeline, const char *tenant,
			    enum record_account account, uint64_t samples);
void books_free(struct book **list);

/* Within a transaction of the ledger: the pipeline hands samples to the destination. `batched`:
 * they were in the destination's own batch, and are in its row already. */
void book_receive(struct book *book, uint64_t samples, bool batched);
/* Samples that the queue on disk had at the start. */
void book_restore(struct book *book, uint64_t samples);
/* Samples that an earlier delivery of the same ID has left in the queue on disk: the ledger counts
 * them as queued already. */
void book_inherit(struct book *book, uint64_t samples);
/* Samples that are left to the next delivery of the ID. */
void book_leave(struct book *book, uint64_t samples);
/* Samples leave the queue; `end` says where they are now. */
void book_settle(struct book *book, enum ledger_column end, uint64_t samples);

#endif
