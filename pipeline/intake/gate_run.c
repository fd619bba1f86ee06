/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/intake/gate_private.h"
#include "pipeline/intake/gate_refusal.h"

#include <assert.h>
#include <stdio.h>

/*
 * Charges the tables before anything is decoded: the need of the densest legitimate document if the
 * budget allows, else down to a quarter of that. *more is the charge of the next larger step; 0:
 * there is none. The charge is the cap of the tables. It also bounds the growth of the batch until
 * the batch itself is charged.
 */
static size_t charge_tables(struct gate *gate, struct inbound *in, size_t body, int64_t *more)
{
	int64_t base = in->charged;
	*more = 0;
	size_t most = in->ops->tables_factor;
	for (size_t factor = most; factor >= most / 4; factor /= 2) {
		size_t cap = body * factor + 65536;
		int64_t needed = base + (int64_t)(cap + BATCHER_FOOTPRINT * BATCHER_GROWTH(body) *
								gate->routes);
		if (gate_charge_to(gate, in, needed))
			return cap;
		*more = needed;
	}
	return 0;
}

/* The state of one document while it passes through the paths. */
struct pass {
	struct view document;
	size_t cap;                 /* maximum size of its tables */
	uint64_t samples;           /* decoded */
	uint32_t rejected_profiles; /* counted by the decoder */
};

static void note_decoded(struct gate *gate, struct inbound *in, const struct profiles *p)
{
	struct gate_counters *c = gate_counters_of(gate, in);
	if (p->rejected_profiles) {
		in->outcome.rejected_profiles += p->rejected_profiles;
		if (!in->outcome.rejection)
			snprintf(in->rejection, sizeof in->rejection, "%s", p->rejection);
		in->outcome.rejection = in->rejection;
		metric_add(c->bad_profiles, p->rejected_profiles);
		metric_add(c->refused, p->rejected_samples);
		gate_count_in(gate, p->rejected_samples, LEDGER_REFUSED);
	}
	if (p->repaired_strings)
		metric_add(c->repaired_strings, p->repaired_strings);
}

/* The kill switch and the quotas decide with the first path, for all of them. */
static bool screen(struct worker *worker, struct inbound *in, const struct pass *pass, bool first,
		   struct error *err)
{
	struct screening *s = &worker->screening;
	struct profiles *p = &worker->profiles;
	bool left = first ? screen_document(&in->gate->options.screen, s, &in->quota, p,
					    pass->document.len, err)
			  : screen_again(s, p, err);
	if (p->over_cap)
		return profiles_over_cap(p, err);
	if (left)
		return true;
	in->refusal = s->refusal;
	in->quota.kind = s->over.kind;
	in->quota.unit = s->over.unit;
	return false;
}

/* Decodes for one path and runs it. Decoding errors are reported and counted with the first path
 * only. */
static bool run_path(struct worker *worker, struct inbound *in, struct pass *pass,
		     struct pipeline *path, bool first, bool *decoded, struct error *err)
{
	struct gate *gate = in->gate;
	struct profiles *p = &worker->profiles;
	if (!profiles_reset(p, &in->request, pass->document, pass->cap))
		return profiles_over_cap(p, err);
	*decoded = in->ops->decode(in, p, err);
	if (in->again)
		return false;
	*decoded = *decoded && request_limits_allows_tables(&gate->limiter, p, err) &&
		   tenants_mark(gate->options.tenants, p, err);
	if (*decoded)
		*decoded = screen(worker, in, pass, first, err);
	if (first) {
		note_decoded(gate, in, p);
		pass->rejected_profiles = p->rejected_profiles;
	}
	if (!*decoded)
		return false;
	uint64_t removed = worker->screening.removed;
	if (first) {
		pass->samples = pipeline_count(p) + removed;
		gate_count_in(gate, pass->samples, LEDGER_PROCESSING);
	}
	return pipeline_run(path, p, removed, worker->scratch, err);
}

/* Is the document rejected alone? */
static bool is_the_senders(const struct inbound *in, const struct error *err)
{
	return err->kind == ERROR_INVALID || err->kind == ERROR_TOO_LARGE ||
	       err->kind == ERROR_UNSUPPORTED || in->refusal == REFUSAL_QUOTA ||
	       in->refusal == REFUSAL_KILLED || in->refusal == REFUSAL_SHED;
}

/* Runs all paths of the receiver. The document is accepted if any path accepted it that counts; the
 * first refusal is reported only if none did, or if the sender waits for the destinations of all
 * paths. What queues had no room for is concluded when it is known whether the sender will repeat
 * it. */
static bool run_paths(struct worker *worker, struct inbound *in, struct pass *pass,
		      struct error *first)
{
	struct gate *gate = in->gate;
	bool taken = false, decoded = true;
	struct refused *refused = NULL;
	in->request.refused = &refused;
	for (uint32_t i = 0; i < gate->options.pipeline_count && decoded; i++) {
		struct pipeline *path = gate->options.paths[i];
		struct error err;
		error_clear(&err);
		bool ok = run_path(worker, in, pass, path, i == 0, &decoded, &err);
		bool matters = gate_counts(gate, path);
		taken = taken || (ok && matters);
		if (!ok && (matters || !decoded) && first->kind == ERROR_NONE)
			*first = err;
	}
	in->request.refused = NULL;
	in->request.incomplete |= taken && first->kind != ERROR_NONE;
	pipeline_conclude(&refused, taken);
	if (taken && first->kind != ERROR_NONE && in->ack.mode != ACK_ENQUEUE)
		ack_note(&in->ack, is_the_senders(in, first) ? ACK_REFUSED : ACK_FAILED);
	if (!taken && first->kind == ERROR_BUSY && !first->retry_after_ms)
		first->retry_after_ms = gate_refusal_retry_ms();
	return taken;
}

static bool run_document(struct worker *worker, struct inbound *in, struct pass *pass,
			 struct error *err);

/* Decoding the document has shown how it must be translated. That of the translation cannot. */
static bool translate_document(struct worker *worker, struct inbound *in, struct pass *pass,
			       struct error *err)
{
	in->again = false;
	error_clear(err);
	if (!in->ops->translate(in, &worker->body, &pass->document, err))
		return false;
	bool taken = run_document(worker, in, pass, err);
	assert(!in->again);
	return taken;
}

static bool run_document(struct worker *worker, struct inbound *in, struct pass *pass,
			 struct error *err)
{
	struct gate *gate = in->gate;
	int64_t more, held = in->charged;
	pass->cap = charge_tables(gate, in, pass->document.len, &more);
	if (!pass->cap)
		return gate_out_of_memory(gate, in, more, err);
	bool taken = run_paths(worker, in, pass, err);
	if (in->again) {
		gate_charge_to(gate, in, held);
		return translate_document(worker, in, pass, err);
	}
	/* The tables are free again, although the sender may still have to wait for a
	 * destination. */
	gate_charge_to(gate, in, held);
	if (!taken && err->kind == ERROR_TOO_LARGE && more)
		return gate_out_of_memory(gate, in, more, err);
	return taken;
}

/* The results of a request's documents so far. */
struct tally {
	uint32_t documents, taken, rejected;
	uint32_t uncounted;   /* rejected documents that have no rejected Profile */
	uint32_t first;       /* index of the first rejected one, */
	enum refusal refusal; /* and the reason */
};

/* Keeps the error of the first rejected document in `first`, in case none is accepted. */
static void reject(struct inbound *in, struct tally *tally, const struct pass *pass,
		   struct error *err, struct error *first)
{
	metric_add(gate_counters_of(in->gate, in)->refused, (int64_t)pass->samples);
	gate_count_end(in->gate, pass->samples, LEDGER_REFUSED);
	tally->uncounted += pass->rejected_profiles == 0;
	if (!in->outcome.rejection)
		snprintf(in->rejection, sizeof in->rejection, "document %u: %s", tally->documents,
			 err->text);
	in->outcome.rejection = in->rejection;
	if (!tally->rejected++) {
		tally->first = tally->documents;
		tally->refusal = in->refusal;
		*first = *err;
	}
	in->refusal = REFUSAL_NONE;
}

/* False: the request fails with the error `first`. */
static bool finish_documents(struct inbound *in, const struct tally *tally, struct error *first)
{
	if (!tally->rejected)
		return true;
	if (tally->documents > 1)
		error_prefix(first, "document %u", tally->first);
	if (!tally->taken) {
		in->refusal = tally->refusal;
		return false;
	}
	log_debug(in->gate->options.log, "Documents refused",
		  log_number("documents", tally->rejected), log_text("error", first->text));
	in->outcome.rejected_profiles += tally->uncounted;
	metric_add(gate_counters_of(in->gate, in)->bad_profiles, tally->uncounted);
	error_clear(first);
	return true;
}

static bool run(struct worker *worker, struct inbound *in, struct error *first)
{
	struct tally tally = { 0 };
	int64_t bytes = 0;
	if (!gate_within_quota(in->gate, in, (size_t)in->quota.bytes, first))
		return false;
	if (!in->ops->load(in, &worker->body, first))
		return false;
	for (;; tally.documents++) {
		struct pass pass = { .samples = 0 };
		struct error err;
		error_clear(&err);
		enum inbound_next next = in->ops->next(in, &worker->body, &pass.document, &err);
		if (next == INBOUND_END)
			return finish_documents(in, &tally, first);
		bytes += (int64_t)pass.document.len;
		quotas_set_bytes(in->gate->options.screen.quotas, &in->quota, bytes);
		if (next == INBOUND_DOCUMENT && run_document(worker, in, &pass, &err)) {
			tally.taken++;
			in->samples += pass.samples;
		} else if (in->moves) {
			return false;
		} else if (is_the_senders(in, &err)) {
			reject(in, &tally, &pass, &err, first);
		} else {
			in->samples += pass.samples;
			*first = err;
			return false;
		}
	}
}

void gate_run(struct worker *worker, struct inbound *in)
{
	struct peer *peer = in->peer;
	in->favoured = !atomic_exchange(&peer->favoured, true);
	bool taken = run(worker, in, &in->error);
	worker->profiles.request = NULL;
	screening_rest(&worker->screening);
	if (in->favoured)
		atomic_store(&peer->favoured, false);
	in->favoured = false;
	if (in->moves) {
		error_clear(&in->error);
		in->refusal = REFUSAL_NONE;
		gate_enqueue(in->gate, in);
		return;
	}
	if (in->request.incomplete)
		metric_add(gate_counters_of(in->gate, in)->incomplete, 1);
	if (!taken) {
		in->outcome.error = &in->error;
		log_debug(in->gate->options.log, "Request refused",
			  log_text("error", in->error.text));
	}
	ack_release(&in->ack, ACK_TAKEN);
}
