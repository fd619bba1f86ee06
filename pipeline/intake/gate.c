/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/intake/gate_private.h"

#include "base/memory.h"
#include "pipeline/intake/gate_refusal.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

struct gate *gate_new(const struct gate_options *options)
{
	struct gate *gate = memory_new(sizeof *gate);
	gate->options = *options;
	gate->routes = 1;
	for (uint32_t i = 0; i < options->pipeline_count; i++) {
		uint32_t batches = pipeline_batches(options->paths[i]);
		if (batches > gate->routes)
			gate->routes = batches;
		gate->required = gate->required || pipeline_is_required(options->paths[i]);
	}
	request_limits_init(&gate->limiter, &options->limits, options->metrics, options->receiver);
	gate->row = ledger_receiver(options->ledger, options->receiver);
	gate->takers = 1;
	pthread_mutex_init(&gate->lock, NULL);
	pthread_cond_init(&gate->empty, NULL);
	return gate;
}

void gate_take(struct gate *gate)
{
	gate->takers++;
}

void gate_leave(struct gate *gate)
{
	if (--gate->takers)
		return;
	pthread_mutex_lock(&gate->lock);
	gate->is_empty = true;
	pthread_cond_broadcast(&gate->empty);
	pthread_mutex_unlock(&gate->lock);
}

bool gate_wait(struct gate *gate, uint64_t ns)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	ns += (uint64_t)until.tv_nsec;
	until.tv_sec += (time_t)(ns / 1000000000);
	until.tv_nsec = (long)(ns % 1000000000);
	if (!gate->left)
		gate_leave(gate);
	gate->left = true;
	pthread_mutex_lock(&gate->lock);
	while (!gate->is_empty && pthread_cond_timedwait(&gate->empty, &gate->lock, &until) == 0)
		;
	bool is_empty = gate->is_empty;
	pthread_mutex_unlock(&gate->lock);
	return is_empty;
}

const struct request_limiter *gate_limiter(const struct gate *gate)
{
	return &gate->limiter;
}

void gate_close(struct gate *gate)
{
	gate->closed = true;
}

void gate_unref(struct gate **slot)
{
	struct gate *gate = *slot;
	*slot = NULL;
	if (!gate)
		return;
	for (int i = 0; i < TRANSPORT_COUNT; i++)
		memory_free(gate->counters[i]);
	pthread_cond_destroy(&gate->empty);
	pthread_mutex_destroy(&gate->lock);
	memory_free(gate);
}

struct gate_counters *gate_counters_of(struct gate *gate, const struct inbound *in)
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

static void count_reason(struct gate *gate, const struct inbound *in, enum refusal reason)
{
	metric_add(gate_counters_of(gate, in)->reasons[reason], 1);
	if (reason == REFUSAL_QUOTA)
		quotas_count_refusal(gate->options.screen.quotas, &in->quota);
}

static void count_refusal(struct gate *gate, const struct inbound *in, enum refusal reason)
{
	metric_add(gate_counters_of(gate, in)->refusal, 1);
	count_reason(gate, in, reason);
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
bool gate_counts(const struct gate *gate, const struct pipeline *path)
{
	return !gate->required || pipeline_is_required(path);
}

static bool has_room(const struct gate *gate)
{
	for (uint32_t i = 0; i < gate->options.pipeline_count; i++)
		if (gate_counts(gate, gate->options.paths[i]) &&
		    pipeline_has_room(gate->options.paths[i]))
			return true;
	return gate->options.pipeline_count == 0;
}

/* The charge for the request when the receiver's buffers have `bytes` bytes. */
static int64_t whole(const struct inbound *in, size_t bytes)
{
	return (int64_t)(GATE_REQUEST_BYTES + in->overhead + bytes);
}

bool gate_charge_to(struct gate *gate, struct inbound *in, int64_t bytes)
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

bool gate_out_of_memory(const struct gate *gate, struct inbound *in, int64_t bytes,
			struct error *err)
{
	return gate_refusal_memory(gate->options.budget, in, in->submitted ? bytes : 2 * bytes,
				   bytes - in->charged, err);
}

bool gate_within_quota(struct gate *gate, struct inbound *in, size_t bytes, struct error *err)
{
	if (quotas_allow(gate->options.screen.quotas, &in->quota, (int64_t)bytes, err))
		return true;
	in->refusal = REFUSAL_QUOTA;
	return false;
}

static void name_sender(struct inbound *in)
{
	const struct request *r = &in->request;
	if (r->peer || r->auth)
		quotas_name(&in->quota, QUOTA_PEER, in->peer->key);
	if (r->tenant)
		quotas_name(&in->quota, QUOTA_TENANT, quotas_hash(view_of(r->tenant)));
}

static bool may_enter(struct gate *gate, struct inbound *in, struct error *err)
{
	struct tenants *tenants = gate->options.tenants;
	if (!tenants_resolve(tenants, &in->request, in->headers, err)) {
		in->refusal = refusal_of(err);
		return false;
	}
	const struct screen_tenant tenant = { in->request.tenant,
					      tenants_final(tenants, &in->request) };
	if (screen_request(&gate->options.screen, &tenant, err))
		return true;
	in->refusal = REFUSAL_KILLED;
	return false;
}

/* When memory is short, best-effort senders are refused before others. */
static bool gives_way(struct gate *gate, struct inbound *in, struct error *err)
{
	if (!screen_sheds(&gate->options.screen, &in->quota, err))
		return false;
	in->refusal = REFUSAL_SHED;
	err->retry_after_ms = gate_refusal_retry_ms();
	return true;
}

static bool admit(struct gate *gate, struct inbound *in, size_t announced, struct error *err)
{
	if (gate->closed)
		return gate_refusal_busy(in, err, REFUSAL_STOPPING, "the gateway is shutting down");
	if (!may_enter(gate, in, err))
		return false;
	if (is_blocked(gate))
		return gate_refusal_busy(
			in, err, REFUSAL_QUEUE_FULL,
			"the queue of a destination that must not drop data is full");
	if (!has_room(gate))
		return gate_refusal_busy(in, err, REFUSAL_QUEUE_FULL,
					 "the queues of all destinations are full");
	if (!budget_could_take(gate->options.budget, 2 * whole(in, announced)))
		return gate_out_of_memory(gate, in, whole(in, announced), err);
	in->peer = peers_hold(gate->options.peers, &in->request);
	name_sender(in);
	if (!gate_within_quota(gate, in, 0, err) || gives_way(gate, in, err))
		return false;
	if (!workers_has_place(*gate->options.workers, in->peer))
		return gate_refusal_waiting(*gate->options.workers, in, err);
	return gate_charge_to(gate, in, whole(in, 0)) ||
	       gate_out_of_memory(gate, in, whole(in, 0), err);
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
	return gate->options.duplicates || tenants_want_headers(gate->options.tenants);
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

/* While the body arrives, it is charged to the quotas, too. */
bool gate_charge(struct gate *gate, struct inbound *in, size_t bytes, struct error *err)
{
	if (!in->submitted &&
	    (!gate_within_quota(gate, in, bytes, err) || gives_way(gate, in, err)))
		return false;
	if (!gate_charge_to(gate, in, whole(in, bytes)))
		return gate_out_of_memory(gate, in, whole(in, bytes), err);
	in->refusal = REFUSAL_NONE;
	return true;
}

void gate_forget(struct gate *gate, struct inbound *in, enum refusal reason)
{
	give_back(gate, in);
	if (!reason)
		quotas_return(gate->options.screen.quotas, &in->quota);
	if (reason || in->refusal)
		count_refusal(gate, in, reason ? reason : in->refusal);
	in->refusal = REFUSAL_NONE;
}

static struct inbound *inbound_of(struct ack *ack)
{
	return (struct inbound *)((char *)ack - offsetof(struct inbound, ack));
}

void gate_count_in(struct gate *gate, uint64_t samples, enum ledger_column to)
{
	ledger_enter(gate->options.ledger);
	ledger_bring(gate->row, LEDGER_IN, to, samples);
	ledger_leave(gate->options.ledger);
}

void gate_count_end(struct gate *gate, uint64_t samples, enum ledger_column end)
{
	ledger_enter(gate->options.ledger);
	ledger_move(gate->row, LEDGER_PROCESSING, end, samples);
	ledger_leave(gate->options.ledger);
}

/* Its samples are those of the request that it repeats. */
static void count_duplicate(struct gate *gate, struct inbound *in)
{
	struct gate_counters *c = gate_counters_of(gate, in);
	metric_add(c->repeated, 1);
	metric_add(c->duplicate, (int64_t)in->samples);
	gate_count_in(gate, in->samples, LEDGER_DUPLICATE);
	quotas_return(gate->options.screen.quotas, &in->quota);
}

static void count_outcome(struct gate *gate, struct inbound *in)
{
	struct gate_counters *c = gate_counters_of(gate, in);
	const struct error *err = in->outcome.error;
	bool ours = err && err->kind == ERROR_INTERNAL && !in->refusal;
	metric_add(!err ? c->accepted : ours ? c->failed : c->refused, (int64_t)in->samples);
	gate_count_end(gate, in->samples,
		       !err   ? LEDGER_ACCEPTED
		       : ours ? LEDGER_FAILED
			      : LEDGER_REFUSED);
	if (!err) {
		metric_add(in->outcome.rejected_profiles ? c->partial : c->success, 1);
		metric_add(c->empty, !in->samples && !in->outcome.rejected_profiles);
		return;
	}
	metric_add(ours ? c->failure : c->refusal, 1);
	count_reason(gate, in, in->refusal ? in->refusal : refusal_of(err));
	if (err->kind == ERROR_BUSY) /* the sender repeats it */
		quotas_return(gate->options.screen.quotas, &in->quota);
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

/* What a repetition of the request will be answered. */
static void remember(struct gate *gate, struct inbound *in)
{
	struct duplicates *duplicates = gate->options.duplicates;
	struct duplicates_reply reply = { in->samples, in->outcome.rejected_profiles, "" };
	if (in->outcome.error) {
		duplicates_forget(duplicates, in->duplicate);
		return;
	}
	if (in->outcome.rejection)
		snprintf(reply.rejection, sizeof reply.rejection, "%s", in->outcome.rejection);
	duplicates_keep(duplicates, in->duplicate, &reply);
}

static void answer(struct ack *ack, enum ack_outcome outcome)
{
	struct inbound *in = inbound_of(ack);
	struct gate *gate = in->gate;
	if (outcome != ACK_TAKEN && !in->outcome.error)
		tell_delivery(in, outcome);
	if (in->repeated)
		count_duplicate(gate, in);
	else
		count_outcome(gate, in);
	if (in->duplicate)
		remember(gate, in);
	give_back(gate, in);
	in->ops->reply(in, &in->outcome);
}

static void begin(struct gate *gate, struct inbound *in)
{
	in->gate = gate;
	in->submitted = true;
	in->outcome = (struct outcome){ 0 };
	in->samples = 0;
	in->refusal = REFUSAL_NONE;
	in->duplicate = 0;
	in->repeated = false;
	error_clear(&in->error);
	ack_init(&in->ack, gate->options.ack, answer);
	in->request.ack = &in->ack;
	in->request.receiver = gate->options.receiver;
	assert(in->peer);
}

/* Answers a request that repeats another one; false: it is new. */
static bool repeats(struct gate *gate, struct inbound *in)
{
	struct duplicates_reply reply;
	switch (duplicates_enter(gate->options.duplicates, &in->request, in->headers,
				 &in->duplicate, &reply)) {
	case DUPLICATES_NEW:
		return false;
	case DUPLICATES_BUSY:
		gate_refusal_busy(in, &in->error, REFUSAL_IN_PROGRESS,
				  "a request with the same Idempotency-Key is being processed");
		in->outcome.error = &in->error;
		break;
	case DUPLICATES_REPEATS:
		in->repeated = true;
		in->samples = reply.samples;
		in->outcome.rejected_profiles = reply.rejected_profiles;
		if (reply.rejected_profiles)
			in->outcome.rejection = in->rejection;
		snprintf(in->rejection, sizeof in->rejection, "%s",
			 *reply.rejection ? reply.rejection : "as when it was first received");
	}
	ack_release(&in->ack, ACK_TAKEN);
	return true;
}

void gate_run_here(struct gate *gate, struct inbound *in, uint32_t io_thread)
{
	struct worker **seat = &gate->options.seats[io_thread];
	begin(gate, in);
	if (repeats(gate, in))
		return;
	in->here = true;
	if (!*seat)
		*seat = worker_new(*gate->options.workers);
	worker_run(*seat, in);
}

void gate_enqueue(struct gate *gate, struct inbound *in)
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
	if (!repeats(gate, in))
		gate_enqueue(gate, in);
}
