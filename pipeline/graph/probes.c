/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/memory.h"
#include "pipeline/graph/lone.h"
#include "pipeline/graph/private.h"

/*
 * `validate --connect`: asks each destination of the exporters in use through a lone instance of
 * the exporter. All begin at once; the loop runs until the last instance has stopped. Then the
 * errors are reported in the order of the configuration.
 */
/* The members of an exporter are looked for at this interval until there are some. */
#define LOOK_NS UINT64_C(10000000)
/* How long they may take to appear, unless the caller says it. */
#define RESOLVE_NS UINT64_C(5000000000)

/* One destination. */
struct question {
	struct probed *of;
	uint32_t member;
	struct error why; /* ERROR_NONE: it answers */
};

/* One exporter. */
struct probed {
	struct probing *all;
	const struct declared *declared;
	struct lone *lone;
	struct loop_timer *look;
	uint64_t looks_until;
	struct question *questions;
	uint32_t count, unanswered;
};

struct probing {
	struct graph *graph;
	uint64_t timeout_ns;
	struct probed *at;
	size_t count, running;
};

static const struct exporter_ops *ops_of(const struct probed *p)
{
	return p->declared->factory->exporter;
}

/* ---- the end of an exporter ---- */

static void has_stopped(void *argument)
{
	struct probing *all = ((struct probed *)argument)->all;
	if (!--all->running)
		loop_stop(all->graph->options.loop);
}

static void stop(struct probed *p)
{
	lone_stop(p->lone, has_stopped, p);
}

/* ---- questions ---- */

/* Room for this number of them. */
static void prepare(struct probed *p, uint32_t count)
{
	p->questions = memory_array(count, sizeof *p->questions);
	p->count = p->unanswered = count;
	for (uint32_t i = 0; i < count; i++)
		p->questions[i].of = p;
}

/* The error gets the place of the key that names the destination. */
static void place(struct question *q)
{
	const struct probed *p = q->of;
	if (ops_of(p)->blame)
		ops_of(p)->blame(lone_exporter(p->lone), q->member, &q->why);
	else
		error_prefix(&q->why, "endpoint");
	declared_blame(p->declared, &q->why);
}

static void answered(void *context, const struct send_result *result)
{
	struct question *q = context;
	if (!delivery_probe_judge(result, &q->why))
		place(q);
	if (!--q->of->unanswered)
		stop(q->of);
}

static void ask(struct question *q, uint32_t member, uint64_t timeout_ns)
{
	q->member = member;
	delivery_probe(lone_delivery(q->of->lone), member, timeout_ns, answered, q);
}

/* What is left of the caller's timeout, which holds from the first look on; 0: there is none. */
static uint64_t time_left(const struct probed *p)
{
	uint64_t now = clock_now();
	if (!p->all->timeout_ns)
		return 0;
	return p->looks_until > now ? p->looks_until - now : 1;
}

static void ask_members(struct probed *p, uint32_t count)
{
	uint64_t timeout_ns = time_left(p);
	prepare(p, count);
	for (uint32_t i = 0; i < count; i++)
		ask(&p->questions[i], ops_of(p)->members->number(lone_exporter(p->lone), i),
		    timeout_ns);
}

/* The names of members are resolved after the start of the exporter. */
static void look_for_members(void *argument)
{
	static const struct send_result unresolved = { .outcome = SEND_RETRY,
						       .reason = "unresolved",
						       .cause = { CAUSE_UNRESOLVED, 0 } };
	struct probed *p = argument;
	uint32_t count = ops_of(p)->members->count(lone_exporter(p->lone));
	if (count) {
		ask_members(p, count);
	} else if (clock_now() < p->looks_until) {
		loop_timer_start(p->look, LOOK_NS);
	} else {
		prepare(p, 1);
		answered(p->questions, &unresolved);
	}
}

/* ---- the beginning of an exporter ---- */

static void fail(struct probed *p, const struct error *why)
{
	prepare(p, 1);
	p->questions->why = *why;
}

static void begin_exporter(struct probed *p)
{
	struct error err;
	error_clear(&err);
	if (!lone_start(p->lone, &err)) {
		fail(p, &err);
		stop(p);
	} else if (ops_of(p)->members) {
		look_for_members(p);
	} else {
		prepare(p, 1);
		ask(p->questions, 0, p->all->timeout_ns);
	}
}

/* On the loop thread. */
static void begin(void *argument)
{
	struct probing *all = argument;
	for (size_t i = 0; i < all->count; i++)
		if (all->at[i].lone)
			begin_exporter(&all->at[i]);
}

static void add(struct probing *all, const struct declared *declared)
{
	struct probed *p = &all->at[all->count++];
	uint64_t resolves = all->timeout_ns ? all->timeout_ns : RESOLVE_NS;
	struct error err;
	error_clear(&err);
	*p = (struct probed){ .all = all,
			      .declared = declared,
			      .looks_until = clock_now() + resolves };
	p->lone = lone_new(all->graph, declared->id, NULL, NULL, &err);
	if (!p->lone) {
		fail(p, &err);
		return;
	}
	p->look = loop_timer_new(all->graph->options.loop, look_for_members, p);
	all->running++;
}

/* ---- all of them ---- */

static bool report(struct probing *all, struct problems *problems)
{
	bool ok = true;
	for (size_t i = 0; i < all->count; i++) {
		struct probed *p = &all->at[i];
		for (uint32_t k = 0; k < p->count; k++)
			if (p->questions[k].why.kind)
				ok = problems_add(problems, &p->questions[k].why);
	}
	return ok;
}

static void fini(struct probing *all)
{
	for (size_t i = 0; i < all->count; i++) {
		loop_timer_unref(&all->at[i].look);
		lone_unref(&all->at[i].lone);
		memory_free(all->at[i].questions);
	}
	memory_free(all->at);
}

bool graph_probe(struct graph *g, uint64_t timeout_ns, struct problems *problems)
{
	const struct inventory *inventory = &g->inventory;
	struct probing all = { .graph = g,
			       .timeout_ns = timeout_ns,
			       .at = memory_array(inventory->count, sizeof *all.at) };
	for (size_t i = 0; i < inventory->count; i++) {
		const struct declared *d = &inventory->at[i];
		if (d->factory->exporter && d->factory->exporter->probe &&
		    inventory_uses(inventory, d))
			add(&all, d);
	}
	if (all.running) {
		loop_post(g->options.loop, begin, &all);
		loop_run(g->options.loop);
	}
	bool ok = report(&all, problems);
	fini(&all);
	return ok;
}
