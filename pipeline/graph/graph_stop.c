/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/graph/private.h"

static void stop_kind(struct graph *g, enum component_kind kind)
{
	for (uint32_t i = g->instance_count; i-- > 0;) {
		struct instance *instance = g->instances[i];
		if (instance_kind(instance) != kind || !instance->started)
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

/* On a pool thread: these wait for threads of their own. */
static void stop_intake(void *argument)
{
	struct graph *g = argument;
	stop_kind(g, COMPONENT_RECEIVER);
	for (uint32_t i = 0; g->io && i < io_count(g->io); i++)
		io_call(io_thread_at(g->io, i), free_seat, &g->seats[i]);
	workers_stop(&g->workers);
	for (uint32_t i = 0; i < g->pipeline_count; i++)
		for (uint32_t k = 0; k < g->paths[i].route_count; k++)
			batcher_flush(g->paths[i].routes[k].batcher);
}

static void stop_exporters(void *argument)
{
	stop_kind(argument, COMPONENT_EXPORTER);
}

static void finish_stop(struct graph *g)
{
	if (!g->draining || g->undrained || !g->exporters_stopped)
		return;
	stop_kind(g, COMPONENT_EXTENSION);
	g->stopped(g->argument);
}

static void exporters_gone(void *argument)
{
	struct graph *g = argument;
	g->exporters_stopped = true;
	finish_stop(g);
}

/* Once; what is in flight is cancelled by it. */
static void begin_exporters_stop(struct graph *g)
{
	if (!g->exporters_stopping)
		loop_work(g->options.loop, stop_exporters, exporters_gone, g);
	g->exporters_stopping = true;
}

static void exporter_drained(void *argument)
{
	struct graph *g = argument;
	if (--g->undrained == 0) {
		loop_timer_cancel(g->deadline);
		begin_exporters_stop(g);
		finish_stop(g);
	}
}

/*
 * Also while receivers still stop: perhaps one of them waits for a sender that waits for a
 * destination. What is enqueued later finds its exporter stopped.
 */
static void deadline_passed(void *argument)
{
	struct graph *g = argument;
	g->late = true;
	for (uint32_t i = 0; i < g->instance_count; i++)
		if (g->instances[i]->delivery)
			delivery_abandon(g->instances[i]->delivery);
	begin_exporters_stop(g);
}

void graph_hurry(struct graph *g)
{
	loop_timer_start(g->deadline, 0);
}

void graph_log_stuck(const struct graph *g)
{
	for (uint32_t i = 0; i < g->instance_count; i++)
		if (g->instances[i]->delivery)
			delivery_log_stuck(g->instances[i]->delivery);
}

static void drain(void *argument)
{
	struct graph *g = argument;
	g->draining = true;
	for (uint32_t i = 0; i < g->instance_count; i++)
		g->undrained += g->instances[i]->delivery != NULL;
	for (uint32_t i = 0; i < g->instance_count; i++) {
		struct delivery *d = g->instances[i]->delivery;
		if (!d)
			continue;
		delivery_drain(d, exporter_drained, g);
		if (g->late)
			delivery_abandon(d);
	}
}

static void release_senders_of(const struct route *route)
{
	for (uint32_t k = 0; k < route->delivery_count; k++)
		if (delivery_waits(route->deliveries[k]))
			delivery_hasten(route->deliveries[k]);
	if (route->waits)
		batcher_flush(route->batcher);
}

/* A receiver does not stop before its senders are answered: those who wait for a result are not
 * kept waiting. */
static void release_senders(struct graph *g)
{
	for (uint32_t i = 0; i < g->pipeline_count; i++)
		for (uint32_t k = 0; k < g->paths[i].route_count; k++)
			release_senders_of(&g->paths[i].routes[k]);
}

void graph_stop(struct graph *g, uint64_t grace_ns, void (*stopped)(void *argument), void *argument)
{
	g->stopped = stopped;
	g->argument = argument;
	g->deadline = loop_timer_new(g->options.loop, deadline_passed, g);
	loop_timer_start(g->deadline, grace_ns);
	loop_timer_cancel(g->check);
	for (uint32_t i = 0; i < g->instance_count && !g->retiring; i++)
		if (g->instances[i]->gate)
			gate_close(g->instances[i]->gate);
	release_senders(g);
	loop_work(g->options.loop, stop_intake, drain, g);
}

void graph_retire(struct graph *g, uint64_t grace_ns, void (*stopped)(void *argument),
		  void *argument)
{
	g->retiring = true;
	graph_stop(g, grace_ns, stopped, argument);
}
