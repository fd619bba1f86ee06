/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/graph/private.h"

/* how often what senders wait for is flushed while the graph waits for its requests */
#define FLUSH_NS (50 * UINT64_C(1000000))

/* Another graph may be stopping its instances at the same time, so only the owner looks further. */
static void stop_kind(struct graph *g, enum component_kind kind)
{
	for (uint32_t i = g->instance_count; i-- > 0;) {
		struct instance *instance = g->instances[i];
		if (instance->owner != g->options.number || instance_kind(instance) != kind ||
		    !instance->started)
			continue;
		struct activity activity = instance_activity(g, instance);
		instance->started = false;
		if (activity.stop)
			activity.stop(instance->self);
	}
}

static void free_seat(void *seat)
{
	worker_unref(seat);
}

/* A receiver stops only after its senders have replies, so batches for which senders wait are
 * flushed at once. */
static void flush_awaited(struct graph *g)
{
	for (uint32_t i = 0; i < g->pipeline_count; i++)
		for (uint32_t k = 0; k < g->paths[i].route_count; k++)
			if (g->paths[i].routes[k].waits || g->paths[i].routes[k].awaited)
				batcher_flush(g->paths[i].routes[k].batcher);
}

static void free_seats(struct graph *g)
{
	uint32_t count = g->io ? io_count(g->io) : 0;
	for (enum io_kind kind = 0; kind < IO_KINDS; kind++) {
		for (uint32_t i = 0; i < count; i++) {
			struct io_thread *thread = io_thread_at(g->io, kind, i);
			io_call(thread, free_seat, &g->seats[io_thread_index(thread)]);
		}
	}
}

/* On a pool thread, because these calls wait for other threads. Receivers that another graph has
 * now do not stop, but have requests that still belong to this one. */
static void stop_intake(void *argument)
{
	struct graph *g = argument;
	stop_kind(g, COMPONENT_RECEIVER);
	for (uint32_t i = 0; i < g->reception_count; i++)
		while (!gate_wait(g->receptions[i].gate, FLUSH_NS))
			flush_awaited(g);
	free_seats(g);
	workers_stop(&g->workers);
	for (uint32_t i = 0; i < g->pipeline_count; i++)
		for (uint32_t k = 0; k < g->paths[i].route_count; k++)
			batcher_flush(g->paths[i].routes[k].batcher);
}

static void exporter_gone(void *argument)
{
	struct graph *g = argument;
	if (--g->waiting_for)
		return;
	loop_timer_cancel(g->deadline);
	stop_kind(g, COMPONENT_EXTENSION);
	g->stopped(g->argument);
}

/* Runs also while receivers are still stopping: one of them may be waiting for a sender that waits
 * for a destination. Packets that are enqueued later find their exporter stopped. */
static void deadline_passed(void *argument)
{
	struct graph *g = argument;
	g->late = true;
	for (uint32_t i = 0; i < g->instance_count; i++) {
		struct instance *e = g->instances[i];
		if (!e->exporter || !e->started)
			continue;
		exporters_expire(e->exporter, g->retiring && !g->ends);
	}
}

void graph_expire(struct graph *g)
{
	g->ends = true;
	loop_timer_start(g->deadline, 0);
}

/* The graph counts itself until it has left all exporters, because exporter_gone may free it. */
static void leave_exporters(void *argument)
{
	struct graph *g = argument;
	g->waiting_for = 1;
	for (uint32_t i = 0; i < g->instance_count; i++) {
		struct instance *e = g->instances[i];
		if (!e->exporter || !e->started)
			continue;
		if (g->retiring) {
			e->started = false;
			exporters_let_go(e->exporter, g->late);
			continue;
		}
		e->started = exporters_leave(e->exporter, g->late, exporter_gone, g);
		g->waiting_for += e->started;
	}
	exporter_gone(g);
}

/* Batches that were opened may have posted to the loop. What is posted runs in order. */
static void intake_has_stopped(void *argument)
{
	struct graph *g = argument;
	loop_post(g->options.loop, leave_exporters, g);
}

static void release_senders(struct graph *g)
{
	for (uint32_t i = 0; i < g->instance_count; i++)
		if (g->instances[i]->exporter && g->instances[i]->started)
			exporters_end(g->instances[i]->exporter, g->retiring);
	flush_awaited(g);
}

void graph_stop(struct graph *g, uint64_t grace_ns, void (*stopped)(void *argument), void *argument)
{
	g->stopped = stopped;
	g->argument = argument;
	g->deadline = loop_timer_new(g->options.loop, deadline_passed, g);
	loop_timer_start(g->deadline, grace_ns);
	loop_timer_cancel(g->check);
	for (uint32_t i = 0; i < g->reception_count && !g->retiring; i++)
		gate_close(g->receptions[i].gate);
	release_senders(g);
	loop_work(g->options.loop, stop_intake, intake_has_stopped, g);
}

void graph_retire(struct graph *g, uint64_t grace_ns, void (*stopped)(void *argument),
		  void *argument)
{
	g->retiring = true;
	graph_stop(g, grace_ns, stopped, argument);
}
