/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_DELIVERY_DEAD_LETTERS_H
#define PIPELINE_DELIVERY_DEAD_LETTERS_H

#include "pipeline/delivery/delivery.h"
#include "pipeline/delivery/letter_box.h"

/*
 * The dead letters of a delivery (`dead_letter`). Part of struct delivery; without that section it
 * does nothing. Everything that a delivery drops goes through delivery_lose, and from there to
 * dead_letters_take.
 *
 * One pool thread at a time writes what waits, in groups, so a disk that hangs delays neither the
 * consumers nor other destinations. Until a letter is written, its item keeps its place in the
 * queue and its record on disk, and the ledger counts its samples as queued. At most a quarter of
 * the destination's memory may wait so (at the end: everything); more is dropped.
 *
 * No letter is written for what the kill switch discards; for what is shed because memory is short;
 * for what no packet holds (a request that no batch could hold, what the exporter's plan has no
 * part for, an unreadable record); and for what its senders will repeat because they still wait for
 * the result.
 */
struct delivery;
struct item;

/* Samples that an item loses. */
struct loss {
	struct packet *packet; /* borrowed; holds exactly these samples; NULL: there is none */
	uint64_t samples;
	enum ledger_column reason;
	const char *error; /* a fixed word for the last failure; NULL: it was not attempted */
	uint32_t attempts;
	bool planned; /* the exporter's plan has rewritten the packet */
};

enum { DEAD_LETTER_KINDS = LEDGER_COLUMNS + 1 }; /* reasons, and LETTER_PARTIAL */
/* Why there is no letter. */
enum dead_letter_failure {
	DEAD_LETTER_FULL,
	DEAD_LETTER_BUSY,
	DEAD_LETTER_ERROR,
	DEAD_LETTER_FAILURES
};

struct dead_letters {
	bool on;
	pthread_mutex_t turn;   /* held while a loss is reported (delivery_options.lost) */
	struct letter_box *box; /* NULL until it starts */
	bool failing[DEAD_LETTER_FAILURES]; /* and it was logged; under the delivery's lock */
	/* Under the delivery's lock. */
	struct dead_letter *first, **last;
	uint32_t pending; /* those that wait or are being written */
	int64_t bytes;    /* of their packets */
	bool writing;
	struct metric_series *written[DEAD_LETTER_KINDS], *failed[DEAD_LETTER_FAILURES], *letters,
		*used;
};

extern const struct metric *const dead_letter_metrics[]; /* for the manual; NULL-terminated */

void dead_letters_init(struct delivery *delivery);
/* Makes sure of the directory. [loop thread] */
bool dead_letters_start(struct delivery *delivery, struct error *err);
void dead_letters_fini(struct delivery *delivery);
/* When the delivery has started: a pool thread counts what is in the directory. [loop thread] */
void dead_letters_look(struct delivery *delivery);

/* Keeps the loss, if it can; the result goes to the ledger. False: it does not, and the caller
 * counts it as dropped. The item must have a hold. [any thread] */
bool dead_letters_take(struct delivery *delivery, struct item *item, const struct loss *loss);
/* A request that the destination accepted in part. The ledger does not change. */
void dead_letters_take_partial(struct delivery *delivery, struct item *item,
			       const struct loss *loss, uint64_t rejected_profiles);

#endif
