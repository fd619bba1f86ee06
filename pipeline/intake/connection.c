/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/intake/connection.h"

#include "base/memory.h"
#include "pipeline/intake/path_results.h"
#include "pipeline/intake/pipeline.h"

/* One document on its way through a connector. */
struct crossing {
	const struct pipeline *from;
	const struct connection *connection;
	struct profiles *p;
	const uint32_t *chosen; /* by Profile; NULL: all take route 0 */
	bool last;
	void **scratch;
};

void connection_fini(struct connection *c)
{
	for (uint32_t i = 0; i < c->route_count; i++)
		memory_free(c->routes[i].paths);
	memory_free(c->routes);
}

static bool is_live(const struct profile *profile)
{
	return !profile->fault && !profile->dropped;
}

static bool takes(const struct crossing *x, uint32_t profile, uint32_t route)
{
	return (x->chosen ? x->chosen[profile] : 0) == route;
}

/* The number of live Profiles of a route, or of none (CONNECTOR_NONE); and their samples. */
static uint32_t count_route(const struct crossing *x, uint32_t route, uint64_t *samples)
{
	uint32_t count = 0;
	*samples = 0;
	for (uint32_t i = 0; i < x->p->profiles.count; i++) {
		const struct profile *profile = &x->p->profiles.at[i];
		if (!is_live(profile) || !takes(x, i, route))
			continue;
		count++;
		*samples += profile->samples.count;
	}
	return count;
}

/* ---- tables of one route */

static bool has_live(const struct profiles *p, const struct resource *r)
{
	for (uint32_t s = 0; s < r->scopes.count; s++) {
		const struct list list = p->scopes.at[r->scopes.first + s].profiles;
		for (uint32_t i = 0; i < list.count; i++)
			if (is_live(&p->profiles.at[list.first + i]))
				return true;
	}
	return false;
}

/* The next pipeline must not see that there was more: neither Profiles nor their resources. */
static void keep_route(const struct crossing *x, struct profiles *p, uint32_t route)
{
	uint32_t kept = 0;
	if (!x->chosen)
		return;
	for (uint32_t i = 0; i < p->profiles.count; i++)
		if (!takes(x, i, route))
			p->profiles.at[i].dropped = 1;
	for (uint32_t i = 0; i < p->resources.count; i++)
		if (has_live(p, &p->resources.at[i]))
			p->resources.at[kept++] = p->resources.at[i];
	p->resources.count = kept;
}

/* The copy is charged like the tables that it is made of: at the most that they may have. */
static bool run_copy(const struct crossing *x, const struct pipeline *path, uint32_t route,
		     uint64_t samples, struct error *err)
{
	struct budget *budget = x->from->budget;
	int64_t bytes = (int64_t)x->p->table_bytes_max;
	struct profiles copy = { 0 };
	if (!budget_take(budget, bytes, budget->soft)) {
		pipeline_refuse(path, samples);
		return budget_refuse(budget, 2 * bytes, err);
	}
	profiles_copy(&copy, x->p);
	keep_route(x, &copy, route);
	bool taken = pipeline_continue(path, &copy, x->scratch, err);
	profiles_fini(&copy);
	budget_give(budget, bytes);
	return taken;
}

/* `own`: nobody reads the tables afterwards. */
static bool run_path(const struct crossing *x, const struct pipeline *path, uint32_t route,
		     uint64_t samples, bool own, struct error *err)
{
	if (!own)
		return run_copy(x, path, route, samples, err);
	keep_route(x, x->p, route);
	return pipeline_continue(path, x->p, x->scratch, err);
}

/* ---- routes */

static bool route_is_required(const struct connection_route *r)
{
	for (uint32_t i = 0; i < r->count; i++)
		if (pipeline_is_required(r->paths[i]))
			return true;
	return false;
}

/* A pipeline counts if it may refuse senders, or if none may. */
static bool counts(const struct connection_route *r, const struct pipeline *path)
{
	return pipeline_is_required(path) || !route_is_required(r);
}

static bool route_has_room(const struct connection_route *r)
{
	for (uint32_t i = 0; i < r->count; i++)
		if (counts(r, r->paths[i]) && pipeline_has_room(r->paths[i]))
			return true;
	return false;
}

static bool route_blocks(const struct connection_route *r, enum ack_mode mode)
{
	for (uint32_t i = 0; i < r->count; i++)
		if (pipeline_blocks(r->paths[i], mode))
			return true;
	return false;
}

/* The samples enter all pipelines of the route in the same instant. */
static void enter(const struct crossing *x, const struct connection_route *r, uint64_t samples)
{
	ledger_enter(x->from->ledger);
	if (x->connection->leads)
		ledger_move(x->from->row, LEDGER_PROCESSING, LEDGER_PASSED, samples);
	ledger_bring(x->connection->row, LEDGER_IN, r ? LEDGER_OUT : LEDGER_UNROUTED, samples);
	for (uint32_t i = 0; r && i < r->count; i++)
		ledger_bring(r->paths[i]->row, LEDGER_IN, LEDGER_PROCESSING, samples);
	ledger_leave(x->from->ledger);
}

/* As the gate decides for all routes together. Batches behind it would promise what no queue has
 * room for. */
static bool admit(const struct connection_route *r, const struct request *request)
{
	enum ack_mode mode = request && request->ack ? request->ack->mode : ACK_ENQUEUE;
	return route_has_room(r) && !route_blocks(r, mode);
}

static bool refuse(const struct connection_route *r, uint64_t samples, struct error *err)
{
	for (uint32_t i = 0; i < r->count; i++)
		pipeline_refuse(r->paths[i], samples);
	return error_set(err, ERROR_BUSY, "the queues behind a connector have no room");
}

/* All pipelines of a route get the same Profiles, so one that accepts them is sufficient, unless
 * the sender waits for all destinations. */
static bool run_route(const struct crossing *x, uint32_t number, uint64_t samples, bool last,
		      struct error *err)
{
	const struct connection_route *r = &x->connection->routes[number];
	struct request *request = x->p->request;
	struct path_results results = { 0 };
	enter(x, r, samples);
	if (!admit(r, request))
		return refuse(r, samples, err);
	for (uint32_t i = 0; i < r->count; i++) {
		const struct pipeline *path = r->paths[i];
		bool own = last && i + 1 == r->count;
		struct error why;
		error_clear(&why);
		bool taken = run_path(x, path, number, samples, own, &why);
		path_results_note(&results, taken, counts(r, path), &why);
	}
	return path_results_end(&results, request, err);
}

/* The number of the last route that gets something. */
static uint32_t last_route(const struct crossing *x)
{
	uint64_t samples;
	uint32_t last = 0;
	for (uint32_t i = 0; i < x->connection->route_count; i++)
		if (count_route(x, i, &samples))
			last = i;
	return last;
}

/* What takes different routes is in no other batch, so each route must accept its part. */
static bool run_routes(const struct crossing *x, struct error *err)
{
	uint32_t last = last_route(x);
	uint64_t samples;
	bool taken = true, some = false;
	if (count_route(x, CONNECTOR_NONE, &samples))
		enter(x, NULL, samples);
	for (uint32_t i = 0; i < x->connection->route_count; i++) {
		struct error why;
		error_clear(&why);
		if (!count_route(x, i, &samples))
			continue;
		if (run_route(x, i, samples, x->last && i == last, &why)) {
			some = true;
			continue;
		}
		if (taken || (err->kind != ERROR_BUSY && why.kind == ERROR_BUSY))
			*err = why;
		taken = false;
	}
	if (x->p->request)
		x->p->request->incomplete |= some && !taken;
	return taken;
}

/* The route of each Profile; NULL: all take route 0. The caller frees it. */
static uint32_t *choose(const struct connection *c, const struct profiles *p)
{
	uint32_t *chosen = c->ops->choose ? memory_array(p->profiles.count, sizeof *chosen) : NULL;
	if (chosen)
		c->ops->choose(c->self, p, chosen);
	return chosen;
}

void connection_keep(const struct connection *c, struct profiles *p, uint32_t route)
{
	uint32_t *chosen = choose(c, p);
	keep_route(&(struct crossing){ .p = p, .chosen = chosen }, p, route);
	memory_free(chosen);
}

bool connection_run(const struct pipeline *from, const struct connection *c, struct profiles *p,
		    bool last, void **scratch, struct error *err)
{
	uint32_t *chosen = choose(c, p);
	bool taken = run_routes(&(struct crossing){ .from = from,
						    .connection = c,
						    .p = p,
						    .chosen = chosen,
						    .last = last,
						    .scratch = scratch },
				err);
	memory_free(chosen);
	return taken;
}

/* ---- what is behind */

bool connection_has_room(const struct connection *c)
{
	for (uint32_t i = 0; i < c->route_count; i++)
		if (route_has_room(&c->routes[i]))
			return true;
	return false;
}

bool connection_blocks(const struct connection *c, enum ack_mode mode)
{
	for (uint32_t i = 0; i < c->route_count; i++)
		if (!route_blocks(&c->routes[i], mode))
			return false;
	return true;
}

bool connection_is_required(const struct connection *c)
{
	for (uint32_t i = 0; i < c->route_count; i++)
		if (route_is_required(&c->routes[i]))
			return true;
	return false;
}

void connection_expect_senders(const struct connection *c, enum ack_mode mode)
{
	for (uint32_t i = 0; i < c->route_count; i++)
		for (uint32_t k = 0; k < c->routes[i].count; k++)
			pipeline_expect_senders(c->routes[i].paths[k], mode);
}

uint32_t connection_batches(const struct connection *c)
{
	uint32_t batches = 0;
	for (uint32_t i = 0; i < c->route_count; i++)
		for (uint32_t k = 0; k < c->routes[i].count; k++)
			batches += pipeline_batches(c->routes[i].paths[k]);
	return batches;
}
