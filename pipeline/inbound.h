/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_INBOUND_H
#define PIPELINE_INBOUND_H

#include "base/bytes.h"
#include "net/budget.h"
#include "pipeline/quota_sender.h"
#include "pipeline/refusal.h"
#include "profile/profiles.h"
#include "profile/request.h"

/*
 * A request on its way in, and the gate (pipeline/intake/gate.c) that admits it, charges it to the
 * memory budget, and runs it. Receivers of HTTP and gRPC do not use this directly but through the
 * intake of their transport (pipeline/intake/http_intake.h, grpc_intake.h). A path is a pipeline of
 * the receiver.
 *
 * A request consists of one or more documents: with most protocols one, in a push request one for
 * each series. Documents are processed one after the other. Each is decompressed, its tables are
 * charged, it is decoded once per path, processed and collected, and its tables are released before
 * the next one begins. A request therefore needs the tables of its largest document only. A batch
 * joins documents as it joins requests; without a batch, each document becomes a packet of its own.
 * The documents of a request keep their order and share its ack: the sender is answered when all of
 * them are done.
 *
 * A document that is invalid by the sender's fault (ERROR_INVALID, ERROR_TOO_LARGE,
 * ERROR_UNSUPPORTED), over a quota or killed is rejected alone. It counts as one rejected Profile,
 * unless its decoder has counted them, and the outcome names the first such document. If every
 * document is rejected, the request fails with the first error. Any other error (mainly
 * ERROR_BUSY) fails the request, and the remaining documents are skipped. The sender then sends
 * the whole request again, so documents that were already accepted arrive twice rather than never.
 */
struct entrance;
struct gate;
struct inbound;

struct outcome {                    /* what the sender gets as a reply */
	const struct error *error;  /* NULL: accepted, perhaps in part */
	uint32_t rejected_profiles; /* for partial success */
	const char *rejection;      /* describes the first fault; NULL: none */
};

/* The error for protocols whose responses cannot report that a part was rejected. False: nothing
 * was rejected, or everything. */
static inline bool inbound_in_part(const struct outcome *outcome, struct error *err)
{
	return !outcome->error && outcome->rejected_profiles &&
	       !error_set(err, ERROR_INVALID, "profiles rejected: %u, the others were accepted: %s",
			  outcome->rejected_profiles, outcome->rejection);
}

/* A worker's reusable buffers: the decompressed body, its translation, one decompressed document */
struct body {
	struct bytes raw, translated, inflated;
};

enum inbound_next {
	INBOUND_DOCUMENT, /* here is one */
	INBOUND_REJECTED, /* a document that cannot be read; err gives the reason */
	INBOUND_END       /* there is none left */
};

struct inbound_ops {
	/* Decompresses the whole body, once. It may use the buffers of `body`; it sets their maxima
	 * from the receiver's limits. Before it grows memory beyond what was charged, it calls
	 * gate_charge. [worker] */
	bool (*load)(struct inbound *in, struct body *body, struct error *err);
	/* Returns the next document, decompressed, with BYTES_SLACK readable bytes behind it. It is
	 * valid until the next call. Called until INBOUND_END. [worker] */
	enum inbound_next (*next)(struct inbound *in, struct body *body, struct view *document,
				  struct error *err);
	/* Decodes the document into tables that were reset; once per path. [worker] */
	bool (*decode)(struct inbound *in, struct profiles *profiles, struct error *err);
	/* Translates the document that decode has returned with in->again, and sets *document to
	 * the translation, which is decoded instead. NULL if decode never does that. [worker] */
	bool (*translate)(struct inbound *in, struct body *body, struct view *document,
			  struct error *err);
	/* Replies to the sender and frees the inbound; the last call, once. [any thread] */
	void (*reply)(struct inbound *in, const struct outcome *outcome);
	/* The number of bytes of tables that the densest legitimate document needs for each of its
	 * own bytes. This is charged before decode; if the budget is short, down to a quarter of
	 * it. */
	uint32_t tables_factor;
};

struct inbound {
	const struct inbound_ops *ops;
	struct request request;
	void *receiver; /* the intake's options.receiver */
	/* set before gate_admit if gate_wants_headers; ends with name == NULL; may be NULL */
	const struct metadatum *headers;
	/* set before gate_admit: bytes that the receiver holds for the request in addition to its
	 * body and small structures, such as copies of the headers */
	size_t overhead;
	struct ack ack;    /* initialised by gate_submit */
	struct gate *gate; /* from entrance_take, set before all else */
	bool submitted;    /* by gate_submit or gate_run_here */
	/* the peer whose share is charged; from gate_admit to the reply or gate_forget */
	struct peer *peer;
	/* here: run by gate_run_here; moves: load has found the request too large for that, so a
	 * worker runs it */
	bool here, moves;
	/* The version or encoding of the document, in the receiver's own numbering, once it is
	 * known; 0: not yet. */
	uint8_t dialect;
	/* decode has found by the content that the document must be translated first: it has set
	 * dialect, and returned false without setting err */
	bool again;
	bool favoured;        /* is processed regardless of the peer's share */
	struct inbound *next; /* the workers' queue */
	/* bytes charged to the budget for this request (gate_admit, gate_charge) */
	_Atomic int64_t charged;
	struct quota_sender quota;
	struct outcome outcome; /* the paths' outcome, kept until the ack is done */
	struct error error;
	uint64_t samples;     /* decoded, without those of rejected Profiles and documents */
	uint32_t duplicate;   /* its place in the table of duplicates; 0: none */
	bool repeated;        /* was answered as the request that it repeats */
	enum refusal refusal; /* why the gate refused, until it is counted */
	char rejection[160];
};

/* The charge for a request before any of its body has arrived: its structures, the receiver's
 * included. */
#define GATE_REQUEST_BYTES 4096

/* The gate of the graph that runs, for one request that arrives: all calls for the request go to
 * this gate. The graph does not end before gate_leave, which is the request's last use of anything
 * that belongs to a graph. [any thread] */
struct gate *entrance_take(struct entrance *entrance);
void gate_leave(struct gate *gate);

/* Does the gate need in->headers, to find the tenant or to recognise a repetition? */
bool gate_wants_headers(const struct gate *gate);
/*
 * Decides from the headers, before the body is read, whether the request is admitted: some
 * destination has room, the peer may have one more request waiting, the request has a tenant if it
 * must have one, and the program is not stopping. Sets request.tenant. Charges GATE_REQUEST_BYTES
 * and in->overhead, but nothing for the body. `announced` is the length of the body according to
 * the headers; 0: unknown.
 *
 * False with ERROR_TOO_LARGE if that could not fit even if nothing else were charged, with
 * ERROR_UNAUTHENTICATED or ERROR_INVALID because of the tenant, with ERROR_FORBIDDEN because of the
 * kill switch; otherwise with ERROR_BUSY and a retry hint. A refusal is counted, nothing is held,
 * and gate_forget must not be called. [any thread]
 */
bool gate_admit(struct gate *gate, struct inbound *in, size_t announced, struct error *err);
/*
 * Announces the total size that the receiver's buffers for this request are about to have (more or
 * less than before). Called before they grow: as the body arrives (gate_grow), and by load.
 *
 * False with ERROR_BUSY and a retry hint if memory is short or the peer has used its share. Nothing
 * has changed then; the receiver may stop reading and ask again later, or refuse. False with
 * ERROR_TOO_LARGE if asking again is useless. The refusal is counted when the request ends, by
 * gate_forget(REFUSAL_NONE) or its reply. [any thread, one at a time for a request]
 */
bool gate_charge(struct gate *gate, struct inbound *in, size_t bytes, struct error *err);
/*
 * The same for the buffer of a body that is arriving, while the receiver holds nothing else for the
 * request. *room bytes are charged, `need` bytes must fit now, and the buffer will never exceed
 * `limit` bytes (the announced length, if there is one), which is at least `need`. The charge is
 * doubled, to at least 16 KiB. If that is not available, the next multiple of 16 KiB is taken.
 * *room is the new charge.
 */
bool gate_grow(struct gate *gate, struct inbound *in, size_t need, size_t limit, size_t *room,
	       struct error *err);
/* The request will not be submitted: releases its charge and counts the reason. REFUSAL_NONE:
 * gate_charge has refused it and set the reason, or gate_admit has already counted it. May be
 * called without a preceding gate_admit. [any thread] */
void gate_forget(struct gate *gate, struct inbound *in, enum refusal reason);
/* Takes the request; a worker runs it to completion, unless it repeats an accepted one
 * (pipeline/intake/duplicates.h). Always ends in ops->reply. Does not block. [any thread] */
void gate_submit(struct gate *gate, struct inbound *in);
/* The same for a request that is too small to delay others: runs it immediately, with in->here set.
 * If load finds more data than expected, it returns false with in->moves set, and a worker runs the
 * request from the start. No document has been accepted by then. [I/O thread with that index] */
void gate_run_here(struct gate *gate, struct inbound *in, uint32_t io_thread);

/* The limits of what documents contain (pipeline/intake/request_limits.h). [any thread] */
struct request_limiter;
const struct request_limiter *gate_limiter(const struct gate *gate);

/* Memory that does not belong to a request: the cost of a connection. False, with nothing charged,
 * if the budget is short. That happens before requests are refused. [any thread] */
bool entrance_hold(struct entrance *entrance, int64_t bytes);
void entrance_release(struct entrance *entrance, int64_t bytes);
/* The same for a server in net/. */
struct net_budget entrance_net_budget(struct entrance *entrance);

#endif
