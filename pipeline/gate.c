/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/gate.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"

#include <assert.h>
#include <stdio.h>

static const struct metric accepted_samples = {
	"otelcol_receiver_accepted_profile_samples", METRIC_COUNTER, "{samples}",
	"Samples that were taken; those that policy drops on purpose are among them."
};
static const struct metric refused_samples = {
	"otelcol_receiver_refused_profile_samples", METRIC_COUNTER, "{samples}",
	"Decoded samples that were refused: of bad Profiles, or of requests that no pipeline took."
};
static const struct metric failed_samples = {
	"otelcol_receiver_failed_profile_samples", METRIC_COUNTER, "{samples}",
	"Decoded samples of requests that failed for an internal reason."
};
static const struct metric requests = {
	"otelcol_receiver_requests", METRIC_COUNTER, "{requests}",
	"Requests by outcome: success, partial, refused, failure."
};
static const struct metric refused_requests = {
	"otelcol_receiver_refused_requests", METRIC_COUNTER, "{requests}",
	"Requests refused, by reason."
};
static const struct metric refused_profiles = {
	"otelcol_receiver_refused_profiles", METRIC_COUNTER, "{profiles}",
	"Bad Profiles that were rejected alone, their requests being accepted."
};
static const struct metric repaired_strings = {
	"otelcol_receiver_repaired_strings", METRIC_COUNTER, "{strings}",
	"Strings with invalid UTF-8, replaced by U+FFFD."
};

const struct metric *const gate_metrics[] = {
	&accepted_samples, &refused_samples, &failed_samples, &requests, &refused_requests,
	&refused_profiles, &repaired_strings, NULL
};

struct gate {
	struct gate_options options;
	_Atomic bool closed;
};

struct gate *gate_new(const struct gate_options *options)
{
	struct gate *gate = memory_new(sizeof *gate);
	gate->options = *options;
	return gate;
}

void gate_close(struct gate *gate)
{
	gate->closed = true;
}

void gate_unref(struct gate **gate)
{
	memory_free(*gate);
	*gate = NULL;
}

static void count(const struct gate *gate, const struct metric *metric, const char *transport,
		  const char *name, const char *value, int64_t n)
{
	const struct metric_label labels[] = {
		{ "receiver", gate->options.receiver }, { "transport", transport }, { name, value }, { 0 }
	};
	if (n)
		series_add(metrics_series(gate->options.metrics, metric, labels), n);
}

/* One to two seconds, so that refused senders do not come back together. */
static bool busy(const struct gate *gate, const struct inbound *in, struct error *err, const char *reason,
		 const char *text)
{
	uint32_t random;
	hash_random(&random, sizeof random);
	count(gate, &refused_requests, in->request.transport, "reason", reason, 1);
	error_set(err, ERROR_BUSY, "%s", text);
	err->retry_after_ms = 1000 + random % 1000;
	return false;
}

static bool has_room(const struct gate *gate)
{
	bool room = gate->options.pipeline_count == 0;
	for (uint32_t i = 0; i < gate->options.pipeline_count; i++)
		room = pipeline_has_room(gate->options.paths[i]) || room;
	return room;
}

static bool charge_to(struct gate *gate, struct inbound *in, int64_t bytes)
{
	int64_t before = in->charged;
	if (!memory_take(gate->options.memory, bytes - before, gate->options.memory->soft))
		return false;
	in->charged = bytes;
	return true;
}

bool gate_admit(struct gate *gate, struct inbound *in, size_t bytes, struct error *err)
{
	if (gate->closed)
		return busy(gate, in, err, "stopping", "the gateway is shutting down");
	if (!has_room(gate))
		return busy(gate, in, err, "queue_full", "the queues of all destinations are full");
	if (workers_full(*gate->options.workers))
		return busy(gate, in, err, "workers_busy", "too many requests are waiting");
	if (!charge_to(gate, in, (int64_t)bytes))
		return busy(gate, in, err, "memory", "data refused due to high memory usage");
	return true;
}

bool gate_charge(struct gate *gate, struct inbound *in, size_t bytes, struct error *err)
{
	if (charge_to(gate, in, (int64_t)bytes))
		return true;
	return busy(gate, in, err, "memory", "data refused due to high memory usage");
}

void gate_forget(struct gate *gate, struct inbound *in, const char *transport, const char *reason)
{
	memory_give(gate->options.memory, in->charged);
	in->charged = 0;
	if (reason)
		count(gate, &refused_requests, transport, "reason", reason, 1);
}

uint64_t gate_memory_limit(const struct gate *gate)
{
	return (uint64_t)gate->options.memory->limit;
}

static struct inbound *inbound_of(struct ack *ack)
{
	return (struct inbound *)((char *)ack - offsetof(struct inbound, ack));
}

static void answer(struct ack *ack, bool failed)
{
	struct inbound *in = inbound_of(ack);
	struct gate *gate = in->gate;
	if (failed && !in->outcome.error) {
		busy(gate, in, &in->error, "delivery", "a destination did not take the data");
		in->outcome.error = &in->error;
	}
	memory_give(gate->options.memory, in->charged);
	in->charged = 0;
	in->ops->reply(in, &in->outcome);
}

void gate_submit(struct gate *gate, struct inbound *in)
{
	in->gate = gate;
	in->outcome = (struct outcome){ 0 };
	error_clear(&in->error);
	ack_init(&in->ack, answer);
	in->request.ack = &in->ack;
	in->request.receiver = gate->options.receiver;
	if (workers_submit(*gate->options.workers, in))
		return;
	busy(gate, in, &in->error, "workers_busy", "too many requests are waiting");
	in->outcome.error = &in->error;
	ack_release(&in->ack, false);
}

/*
 * The tables are charged before anything is decoded: sixteen times the body if the budget allows, for that
 * is what the densest legitimate table needs, else eight or four times. What is charged is the cap.
 */
static size_t charge_tables(struct gate *gate, struct inbound *in, size_t body, bool *squeezed)
{
	int64_t base = in->charged;
	for (size_t factor = 16; factor >= 4; factor /= 2) {
		size_t cap = body * factor + 65536;
		*squeezed = factor < 16;
		if (charge_to(gate, in, base + (int64_t)cap))
			return cap;
	}
	return 0;
}

static void note_rejections(struct gate *gate, struct inbound *in, const struct profiles *p)
{
	const char *transport = in->request.transport;
	const struct metric_label labels[] = {
		{ "receiver", gate->options.receiver }, { "transport", transport }, { 0 }
	};
	struct metrics *m = gate->options.metrics;
	in->outcome.rejected_profiles = p->rejected_profiles;
	if (p->rejected_profiles) {
		snprintf(in->rejection, sizeof in->rejection, "%s", p->rejection);
		in->outcome.rejection = in->rejection;
		series_add(metrics_series(m, &refused_profiles, labels), p->rejected_profiles);
		series_add(metrics_series(m, &refused_samples, labels), p->rejected_samples);
	}
	if (p->repaired_strings)
		series_add(metrics_series(m, &repaired_strings, labels), p->repaired_strings);
}

/* Decodes for one path and runs it. What cannot be decoded is told and counted with the first path only. */
static bool run_path(struct worker *worker, struct inbound *in, struct view body, size_t cap, uint32_t i,
		     uint64_t *samples, bool *decoded, struct error *err)
{
	struct gate *gate = in->gate;
	struct profiles *p = &worker->profiles;
	if (!profiles_reset(p, &in->request, body, cap))
		return profiles_over_cap(p, err);
	*decoded = in->ops->decode(in, p, err);
	if (!*decoded)
		return false;
	if (i == 0)
		note_rejections(gate, in, p);
	*samples = pipeline_count(p);
	return pipeline_run(gate->options.paths[i], p, worker->scratch, err);
}

static const char *reason_of(enum error_kind kind)
{
	switch (kind) {
	case ERROR_INVALID:
		return "invalid";
	case ERROR_TOO_LARGE:
		return "too_large";
	case ERROR_UNSUPPORTED:
		return "unsupported";
	case ERROR_BUSY:
		return "busy";
	default:
		return "internal";
	}
}

static void count_outcome(struct gate *gate, struct inbound *in, bool taken, uint64_t samples,
			  const struct error *err)
{
	const char *transport = in->request.transport;
	const struct metric_label labels[] = {
		{ "receiver", gate->options.receiver }, { "transport", transport }, { 0 }
	};
	bool ours = !taken && err->kind == ERROR_INTERNAL;
	const struct metric *metric = taken ? &accepted_samples : ours ? &failed_samples : &refused_samples;
	series_add(metrics_series(gate->options.metrics, metric, labels), (int64_t)samples);
	count(gate, &requests, transport, "outcome",
	      !taken ? (ours ? "failure" : "refused") : in->outcome.rejected_profiles ? "partial" : "success", 1);
	/* Refusals for want of room were counted where they were made. */
	if (!taken && err->kind != ERROR_BUSY)
		count(gate, &refused_requests, transport, "reason", reason_of(err->kind), 1);
}

/* All paths of the receiver. Taken when any path took it; the first refusal is told only if none did. */
static bool run_paths(struct worker *worker, struct inbound *in, struct view body, size_t cap, uint64_t *samples,
		      struct error *first)
{
	struct gate *gate = in->gate;
	bool taken = false;
	for (uint32_t i = 0; i < gate->options.pipeline_count; i++) {
		struct error err;
		bool decoded = true;
		error_clear(&err);
		bool ok = run_path(worker, in, body, cap, i, samples, &decoded, &err);
		taken = taken || ok;
		if (!ok && first->kind == ERROR_NONE)
			*first = err;
		if (!decoded)
			break;
	}
	return taken;
}

static bool run(struct worker *worker, struct inbound *in, struct error *err)
{
	struct gate *gate = in->gate;
	struct view body;
	uint64_t samples = 0;
	bool squeezed = false;
	bool taken = in->ops->load(in, &worker->body, &body, err);
	if (taken) {
		size_t cap = charge_tables(gate, in, body.len, &squeezed);
		if (cap)
			taken = run_paths(worker, in, body, cap, &samples, err);
		else
			taken = busy(gate, in, err, "memory", "data refused due to high memory usage");
		if (!taken && err->kind == ERROR_TOO_LARGE && squeezed)
			taken = busy(gate, in, err, "memory", "data refused due to high memory usage");
	}
	count_outcome(gate, in, taken, samples, err);
	return taken;
}

void gate_run(struct worker *worker, struct inbound *in)
{
	if (!run(worker, in, &in->error)) {
		in->outcome.error = &in->error;
		log_debug(in->gate->options.log, "Request refused", log_text("error", in->error.text));
	}
	worker->profiles.request = NULL;
	ack_release(&in->ack, false);
}
