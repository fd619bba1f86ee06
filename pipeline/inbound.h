/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_INBOUND_H
#define PIPELINE_INBOUND_H

#include "base/bytes.h"
#include "net/budget.h"
#include "pipeline/refusal.h"
#include "profile/profiles.h"
#include "profile/request.h"

/*
 * A request on its way in, and the gate (pipeline/intake/gate.c) that admits, charges and runs it.
 * Receivers of HTTP and gRPC do not use this directly but through the intake of their transport
 * (pipeline/intake/http_intake.h, grpc_intake.h).
 *
 * One request carries any number of documents: most protocols one, a push request one for each
 * series. Every document makes its own pass: it is inflated, its tables are charged, it is decoded
 * once per pipeline, processed and collected, and its tables are released before the next one
 * begins. So a request needs the tables of its largest document, not of all, and a batch joins its
 * documents as it joins requests; without a batch each document leaves as a packet of its own. The
 * documents of a request keep their order and share its ack: the sender is answered when all of
 * them are done.
 *
 * A document that is the sender's fault (ERROR_INVALID, ERROR_TOO_LARGE, ERROR_UNSUPPORTED) is
 * rejected alone: it counts as one rejected Profile, unless its decoder has counted them, and the
 * outcome names the first. If every document is rejected, the request fails with the first error.
 * Any other error (ERROR_BUSY above all) fails the request and skips the remaining documents. The
 * sender then sends the request again, documents that were taken included: they arrive twice
 * rather than never.
 */
struct gate;
struct inbound;

struct outcome {                    /* what the sender gets as the answer */
	const struct error *error;  /* NULL: accepted, perhaps in part */
	uint32_t rejected_profiles; /* for partial success */
	const char *rejection;      /* names the first fault; NULL if none */
};

struct body { /* a worker's reusable buffers, to inflate into: the body, and a document of it */
	struct bytes raw, inflated;
};

enum inbound_next {
	INBOUND_DOCUMENT, /* here is one */
	INBOUND_REJECTED, /* one that cannot be read: err says why */
	INBOUND_END       /* there is none left */
};

struct inbound_ops {
	/*
	 * Worker thread, once: undoes the coding of the whole body. It may use the buffers of
	 * `body`, whose maxima are set from the receiver's limits by load itself. Before growing
	 * memory beyond what was charged it calls gate_charge.
	 */
	bool (*load)(struct inbound *in, struct body *body, struct error *err);
	/* Worker thread, until INBOUND_END: the next document, inflated, with BYTES_SLACK readable
	 * bytes behind it. It stays valid until the next call. */
	enum inbound_next (*next)(struct inbound *in, struct body *body, struct view *document,
				  struct error *err);
	/* Worker thread, for each document once per path, on reset tables. */
	bool (*decode)(struct inbound *in, struct profiles *profiles, struct error *err);
	/* Any thread, once, last: answers the sender and frees the inbound. */
	void (*reply)(struct inbound *in, const struct outcome *outcome);
	/* How many bytes of tables the densest legitimate document needs for each of its own: this
	 * much is charged before decode, down to a quarter of it where the budget is short. */
	uint32_t tables_factor;
};

struct inbound {
	const struct inbound_ops *ops;
	struct request request;
	/* set before gate_admit: what the receiver holds for the request beside its body and small
	 * structures, such as copies of the headers */
	size_t overhead;
	struct ack ack;    /* initialised by gate_submit */
	struct gate *gate; /* set by gate_submit */
	/* whose share it is charged to; from gate_admit to the reply or gate_forget */
	struct peer *peer;
	/* run by gate_run_here; load finds it too large for that, and a worker takes it */
	bool here, moves;
	bool favoured;        /* being processed, without regard to the peer's share */
	struct inbound *next; /* the workers' queue */
	/* bytes taken from the budget for this request: gate_admit, gate_charge */
	_Atomic int64_t charged;
	struct outcome outcome; /* the pipeline's, kept until the ack is done */
	struct error error;
	uint64_t samples;     /* decoded, of Profiles and documents that were not rejected */
	enum refusal refusal; /* why the gate refused, until it is counted */
	char rejection[160];
};

/* What a request costs before any of its body has arrived: its structures, in the receiver and
 * here. */
#define GATE_REQUEST_BYTES 4096

/*
 * From the headers, before the body is read: does any destination have room, may the peer have one
 * more request waiting, is the program not stopping? Charges GATE_REQUEST_BYTES and in->overhead,
 * nothing for the body. `announced` is the length of the body that the headers name, 0: they name
 * none; ERROR_TOO_LARGE when it could not fit even if nothing else were charged. All other refusals
 * are ERROR_BUSY with a retry hint. Refused: counted, nothing is held, and gate_forget is not
 * called. [any thread]
 */
bool gate_admit(struct gate *gate, struct inbound *in, size_t announced, struct error *err);
/*
 * The receiver's buffers for this request are about to have `bytes` bytes in all (more or fewer
 * than before): called before they grow, as the body arrives (gate_grow) and by load. ERROR_BUSY
 * with a retry hint when memory is short or the peer has its share: nothing changed, the receiver
 * may stop reading and ask again later, or refuse.
 * ERROR_TOO_LARGE: asking again would be in vain. The refusal is counted when the request ends with
 * gate_forget(REFUSAL_NONE) or by its reply. [any thread, one at a time for a request]
 */
bool gate_charge(struct gate *gate, struct inbound *in, size_t bytes, struct error *err);
/*
 * The same for the buffer of a body that is arriving, while it is all that the receiver holds for
 * the request: *room bytes are charged, `need` must fit now, and the buffer will never have more
 * than `limit` bytes (the announced length where there is one), which is at least `need`. The
 * charge is doubled, at least 16 KiB; when that is too much, the next multiple of 16 KiB will do.
 * *room is the new charge.
 */
bool gate_grow(struct gate *gate, struct inbound *in, size_t need, size_t limit, size_t *room,
	       struct error *err);
/* The request will not be submitted: gives the charge back and counts the reason; REFUSAL_NONE:
 * gate_charge refused it, or gate_admit, which has counted it. Also without gate_admit before it.
 * [any thread] */
void gate_forget(struct gate *gate, struct inbound *in, enum refusal reason);
/* Takes the request; a worker runs it to completion. Always ends in ops->reply. [any thread, does
 * not block] */
void gate_submit(struct gate *gate, struct inbound *in);
/*
 * The same for a request that is too small to delay others: runs it at once, with in->here set.
 * Where load finds more than was to be expected, it returns false with in->moves set, and a worker
 * runs the request from the start: no document has been taken by then. [I/O thread of that index]
 */
void gate_run_here(struct gate *gate, struct inbound *in, uint32_t io_thread);

/* Memory that is no request's: what a connection costs. False, and nothing charged, when the budget
 * is short, which it is before requests are refused. [any thread] */
bool gate_hold(struct gate *gate, int64_t bytes);
void gate_release(struct gate *gate, int64_t bytes);
/* How much gate_hold would still take; what the connections of one peer hold is to stay below it,
 * so that one cannot have all. [any thread] */
int64_t gate_spare(const struct gate *gate);
/* Is less than an eighth of the budget left? Then transports close idle connections, oldest first.
 * [any thread, cheap] */
bool gate_is_short(const struct gate *gate);
/* These four for a server in net/. */
struct net_budget gate_net_budget(struct gate *gate);

#endif
