/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/intake/gate.h"

#include "base/memory.h"
#include "pipeline/intake/gate_refusal.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

struct gate {
	struct gate_options options;
	uint32_t routes; /* the largest number of routes of any path */
	bool required;   /* some path has a required destination */
	struct request_limiter limiter;
	_Atomic bool closed;
	_Atomic uint32_t unanswered; /* requests that were submitted */
	pthread_mutex_t lock;        /* guards the creation of counters */
	/* by transport; NULL: no request yet */
	struct gate_counters *_Atomic counters[TRANSPORT_COUNT];
};

struct gate *gate_new(const struct gate_options *options)
{
	struct gate *gate = memory_new(sizeof *gate);
	gate->options = *options;
	gate->routes = 1;
	for (uint32_t i = 0; i < options->pipeline_count; i++) {
		if (options->paths[i]->route_count > gate->routes)
			gate->routes = options->paths[i]->route_count;
		gate->required = gate->required || pipeline_is_required(options->paths[i]);
	}
	request_limits_init(&gate->limiter, &options->limits, options->metrics, options->receiver);
	pthread_mutex_init(&gate->lock, NULL);
	return gate;
}

const struct request_limiter *gate_limiter(const struct gate *gate)
{
	return &gate->limiter;
}

void gate_close(struct gate *gate)
{
	gate->closed = true;
}

/* Polls, so that requests do not pay for a lock that only the end of a graph needs. */
void gate_wait(struct gate *gate)
{
	const struct timespec pause = { 0, 1000000 };
	while (atomic_load(&gate->unanswered))
		nanosleep(&pause, NULL);
}

void gate_unref(struct gate **slot)
{
	struct gate *gate = *slot;
	*slot = NULL;
	if (!gate)
		return;
	for (int i = 0; i < TRANSPORT_COUNT; i++)
		memory_free(gate->counters[i]);
	pthread_mutex_destroy(&gate->lock);
	memory_free(gate);
}

static struct gate_counters *counters_of(struct gate *gate, const struct inbound *in)
{
	enum transport transport = in->request.transport;
	struct gate_counters *c = gate->counters[transport];
	if (c)
		return c;
	pthread_mutex_lock(&gate->lock);
	c = gate->counters[transport];
	if (!c) {
		c = memory_new(sizeof *c);
		gate_counters_init(c, gate->options.metrics, gate->options.receiver, transport);
		gate->counters[transport] = c;
	}
	pthread_mutex_unlock(&gate->lock);
	return c;
}

static void count_refusal(struct gate *gate, const struct inbound *in, enum refusal reason)
{
	struct gate_counters *c = counters_of(gate, in);
	metric_add(c->refusal, 1);
	metric_add(c->reasons[reason], 1);
}

static bool is_blocked(const struct gate *gate)
{
	for (uint32_t i = 0; i < gate->options.pipeline_count; i++)
		if (pipeline_blocks(gate->options.paths[i], gate->options.ack))
			return true;
	return false;
}

/* Is the path one of those of which one must accept a document? Not if others have required
 * destinations and this one has none. */
static bool counts(const struct gate *gate, const struct pipeline *path)
{
	return !gate->required || pipeline_is_required(path);
}

static bool has_room(const struct gate *gate)
{
	for (uint32_t i = 0; i < gate->options.pipeline_count; i++)
		if (counts(gate, gate->options.paths[i]) &&
		    pipeline_has_room(gate->options.paths[i]))
			return true;
	return gate->options.pipeline_count == 0;
}

/* The charge for the request when the receiver's buffers have `bytes` bytes. */
static int64_t whole(const struct inbound *in, size_t bytes)
{
	return (int64_t)(GATE_REQUEST_BYTES + in->overhead + bytes);
}

/* The rule in pipeline/intake/gate.h: the peer's limit is the soft limit less what the peer would
 * then hold. */
static bool charge_to(struct gate *gate, struct inbound *in, int64_t bytes)
{
	struct budget *budget = gate->options.budget;
	int64_t more = bytes - in->charged, limit = budget->soft;
	if (!in->favoured)
		limit -= in->peer->bytes + more;
	if (!budget_take(budget, more, limit))
		return false;
	in->charged = bytes;
	in->peer->bytes += more;
	return true;
}

/* The request could not get `bytes` bytes in total. Until it is processed, a request can have half
 * of the budget, the share of a peer that is alone. */
static bool out_of_memory(const struct gate *gate, struct inbound *in, int64_t bytes,
			  struct error *err)
{
	return gate_refusal_memory(gate->options.budget, in, in->gate ? bytes : 2 * bytes,
				   bytes - in->charged, err);
}

static bool admit(struct gate *gate, struct inbound *in, size_t announced, struct error *err)
{
	if (gate->closed)
		return gate_refusal_busy(in, err, REFUSAL_STOPPING, "the gateway is shutting down");
	if (!tenants_resolve(gate->options.tenants, &in->request, in->headers, err)) {
		in->refusal = refusal_of(err);
		return false;
	}
	if (is_blocked(gate))
		return gate_refusal_busy(
			in, err, REFUSAL_QUEUE_FULL,
			"the queue of a destination that must not drop data is full");
	if (!has_room(gate))
		return gate_refusal_busy(in, err, REFUSAL_QUEUE_FULL,
					 "the queues of all destinations are full");
	if (!budget_could_take(gate->options.budget, 2 * whole(in, announced)))
		return out_of_memory(gate, in, whole(in, announced), err);
	in->peer = peers_hold(gate->options.peers, &in->request);
	if (!workers_has_place(*gate->options.workers, in->peer))
		return gate_refusal_waiting(*gate->options.workers, in, err);
	return charge_to(gate, in, whole(in, 0)) || out_of_memory(gate, in, whole(in, 0), err);
}

static void give_back(struct gate *gate, struct inbound *in)
{
	if (!in->peer)
		return;
	budget_give(gate->options.budget, in->charged);
	in->peer->bytes -= in->charged;
	in->charged = 0;
	peers_release(gate->options.peers, &in->peer);
}

bool gate_wants_headers(const struct gate *gate)
{
	return tenants_want_headers(gate->options.tenants);
}

bool gate_admit(struct gate *gate, struct inbound *in, size_t announced, struct error *err)
{
	if (admit(gate, in, announced, err))
		return true;
	give_back(gate, in);
	count_refusal(gate, in, in->refusal);
	in->refusal = REFUSAL_NONE;
	return false;
}

bool gate_charge(struct gate *gate, struct inbound *in, size_t bytes, struct error *err)
{
	if (!charge_to(gate, in, whole(in, bytes)))
		return out_of_memory(gate, in, whole(in, bytes), err);
	in->refusal = REFUSAL_NONE;
	return true;
}

void gate_forget(struct gate *gate, struct inbound *in, enum refusal reason)
{
	give_back(gate, in);
	if (reason || in->refusal)
		count_refusal(gate, in, reason ? reason : in->refusal);
	in->refusal = REFUSAL_NONE;
}

bool gate_hold(struct gate *gate, int64_t bytes)
{
	return budget_take_spare(gate->options.budget, bytes);
}

void gate_release(struct gate *gate, int64_t bytes)
{
	budget_give_spare(gate->options.budget, bytes);
}

int64_t gate_spare(const struct gate *gate)
{
	return budget_spare(gate->options.budget);
}

bool gate_is_short(const struct gate *gate)
{
	return budget_is_short(gate->options.budget);
}

static bool hold(void *context, int64_t bytes)
{
	return gate_hold(context, bytes);
}

static void release(void *context, int64_t bytes)
{
	gate_release(context, bytes);
}

static int64_t spare(void *context)
{
	return gate_spare(context);
}

static bool is_short(void *context)
{
	return gate_is_short(context);
}

struct net_budget gate_net_budget(struct gate *gate)
{
	return (struct net_budget){ hold, release, spare, is_short, gate };
}

static struct inbound *inbound_of(struct ack *ack)
{
	return (struct inbound *)((char *)ack - offsetof(struct inbound, ack));
}

static void count_outcome(struct gate *gate, const struct inbound *in)
{
	struct gate_counters *c = counters_of(gate, in);
	const struct error *err = in->outcome.error;
	bool ours = err && err->kind == ERROR_INTERNAL && !in->refusal;
	metric_add(!err ? c->accepted : ours ? c->failed : c->refused, (int64_t)in->samples);
	if (!err) {
		metric_add(in->outcome.rejected_profiles ? c->partial : c->success, 1);
		metric_add(c->empty, !in->samples && !in->outcome.rejected_profiles);
		return;
	}
	metric_add(ours ? c->failure : c->refusal, 1);
	metric_add(c->reasons[in->refusal ? in->refusal : refusal_of(err)], 1);
}

/* A destination that the sender waits for did not accept all of the data. */
static void tell_delivery(struct inbound *in, enum ack_outcome outcome)
{
	gate_refusal_busy(in, &in->error, REFUSAL_DELIVERY,
			  "a destination did not accept the data");
	if (outcome == ACK_REFUSED)
		error_set(&in->error, ERROR_INTERNAL,
			  "a destination rejected the data permanently");
	in->outcome.error = &in->error;
}

static void answer(struct ack *ack, enum ack_outcome outcome)
{
	struct inbound *in = inbound_of(ack);
	struct gate *gate = in->gate;
	if (outcome != ACK_TAKEN && !in->outcome.error)
		tell_delivery(in, outcome);
	count_outcome(gate, in);
	give_back(gate, in);
	in->ops->reply(in, &in->outcome);
	atomic_fetch_sub(&gate->unanswered, 1);
}

static void begin(struct gate *gate, struct inbound *in)
{
	gate->unanswered++;
	in->gate = gate;
	in->outcome = (struct outcome){ 0 };
	in->samples = 0;
	in->refusal = REFUSAL_NONE;
	error_clear(&in->error);
	ack_init(&in->ack, gate->options.ack, answer);
	in->request.ack = &in->ack;
	in->request.receiver = gate->options.receiver;
	assert(in->peer);
}

void gate_run_here(struct gate *gate, struct inbound *in, uint32_t io_thread)
{
	struct worker **seat = &gate->options.seats[io_thread];
	begin(gate, in);
	in->here = true;
	if (!*seat)
		*seat = worker_new(*gate->options.workers);
	worker_run(*seat, in);
}

static void enqueue(struct gate *gate, struct inbound *in)
{
	in->here = in->moves = false;
	if (workers_submit(*gate->options.workers, in))
		return;
	gate_refusal_waiting(*gate->options.workers, in, &in->error);
	in->outcome.error = &in->error;
	ack_release(&in->ack, ACK_TAKEN);
}

void gate_submit(struct gate *gate, struct inbound *in)
{
	begin(gate, in);
	enqueue(gate, in);
}

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
		if (charge_to(gate, in, needed))
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
	struct gate_counters *c = counters_of(gate, in);
	if (p->rejected_profiles) {
		in->outcome.rejected_profiles += p->rejected_profiles;
		if (!in->outcome.rejection)
			snprintf(in->rejection, sizeof in->rejection, "%s", p->rejection);
		in->outcome.rejection = in->rejection;
		metric_add(c->bad_profiles, p->rejected_profiles);
		metric_add(c->refused, p->rejected_samples);
	}
	if (p->repaired_strings)
		metric_add(c->repaired_strings, p->repaired_strings);
}

/* Decodes for one path and runs it. Decoding errors are reported and counted with the first path
 * only. */
static bool run_path(struct worker *worker, struct inbound *in, struct pass *pass, uint32_t i,
		     bool *decoded, struct error *err)
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
	if (i == 0) {
		note_decoded(gate, in, p);
		pass->rejected_profiles = p->rejected_profiles;
	}
	if (!*decoded)
		return false;
	pass->samples = pipeline_count(p);
	return pipeline_run(gate->options.paths[i], p, worker->scratch, err);
}

static bool is_the_senders(const struct error *err)
{
	return err->kind == ERROR_INVALID || err->kind == ERROR_TOO_LARGE ||
	       err->kind == ERROR_UNSUPPORTED;
}

/* Runs all paths of the receiver. The document is accepted if any path accepted it that counts; the
 * first refusal is reported only if none did, or if the sender waits for the destinations of all
 * paths. */
static bool run_paths(struct worker *worker, struct inbound *in, struct pass *pass,
		      struct error *first)
{
	struct gate *gate = in->gate;
	bool taken = false, decoded = true;
	for (uint32_t i = 0; i < gate->options.pipeline_count && decoded; i++) {
		struct error err;
		error_clear(&err);
		bool ok = run_path(worker, in, pass, i, &decoded, &err);
		bool matters = counts(gate, gate->options.paths[i]);
		taken = taken || (ok && matters);
		if (!ok && (matters || !decoded) && first->kind == ERROR_NONE)
			*first = err;
	}
	if (taken && first->kind != ERROR_NONE && in->ack.mode != ACK_ENQUEUE)
		ack_note(&in->ack, is_the_senders(first) ? ACK_REFUSED : ACK_FAILED);
	if (!taken && first->kind == ERROR_BUSY)
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
		return out_of_memory(gate, in, more, err);
	bool taken = run_paths(worker, in, pass, err);
	if (in->again) {
		charge_to(gate, in, held);
		return translate_document(worker, in, pass, err);
	}
	/* The tables are free again, although the sender may still have to wait for a
	 * destination. */
	charge_to(gate, in, held);
	if (!taken && err->kind == ERROR_TOO_LARGE && more)
		return out_of_memory(gate, in, more, err);
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
	metric_add(counters_of(in->gate, in)->refused, (int64_t)pass->samples);
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
	metric_add(counters_of(in->gate, in)->bad_profiles, tally->uncounted);
	error_clear(first);
	return true;
}

static bool run(struct worker *worker, struct inbound *in, struct error *first)
{
	struct tally tally = { 0 };
	if (!in->ops->load(in, &worker->body, first))
		return false;
	for (;; tally.documents++) {
		struct pass pass = { .samples = 0 };
		struct error err;
		error_clear(&err);
		enum inbound_next next = in->ops->next(in, &worker->body, &pass.document, &err);
		if (next == INBOUND_END)
			return finish_documents(in, &tally, first);
		if (next == INBOUND_DOCUMENT && run_document(worker, in, &pass, &err)) {
			tally.taken++;
			in->samples += pass.samples;
		} else if (in->moves) {
			return false;
		} else if (is_the_senders(&err)) {
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
	if (in->favoured)
		atomic_store(&peer->favoured, false);
	in->favoured = false;
	if (in->moves) {
		error_clear(&in->error);
		in->refusal = REFUSAL_NONE;
		enqueue(in->gate, in);
		return;
	}
	if (!taken) {
		in->outcome.error = &in->error;
		log_debug(in->gate->options.log, "Request refused",
			  log_text("error", in->error.text));
	}
	ack_release(&in->ack, ACK_TAKEN);
}
