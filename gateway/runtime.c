/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/runtime.h"

#include "base/system.h"
#include "gateway/components.h"
#include "gateway/environment.h"
#include "pipeline/graph/inventory.h"

enum { CORES_MAX = 64 };

static uint32_t core_count(void)
{
	uint32_t cores = system_cores();
	return cores < CORES_MAX ? cores : CORES_MAX;
}

static const struct node *telemetry_node(const struct node *root)
{
	return node_get(node_get(root, "service"), "telemetry");
}

static bool is_telemetry_sound(const struct node *root)
{
	struct problems problems = { 0 };
	bool sound = telemetry_check(telemetry_node(root), &problems);
	problems_fini(&problems);
	return sound;
}

bool runtime_open(struct runtime *r, const struct node *root, struct error *err)
{
	*r = (struct runtime){ .workers = core_count(),
			       .metrics = metrics_new(),
			       .sockets = sockets_new() };
	r->ledger = ledger_new(r->metrics);
	r->defaulted = !is_telemetry_sound(root);
	r->telemetry = telemetry_new(r->defaulted ? NULL : telemetry_node(root), r->metrics, err);
	if (!r->telemetry)
		return false;
	r->loop = loop_new(err);
	if (!r->loop)
		return false;
	r->storages = storages_new(r->metrics);
	r->exporters = exporters_new(r->loop, r->metrics, r->ledger, &r->budget);
	r->kills = kill_switch_new(r->loop, r->metrics);
	exporters_obey(r->exporters, r->kills);
	return true;
}

bool runtime_start(struct runtime *r, struct error *err)
{
	if (!telemetry_start(r->telemetry, err))
		return false;
	r->io = io_start(r->workers, err);
	return r->io != NULL;
}

void runtime_close(struct runtime *r)
{
	io_stop(&r->io);
	if (r->measured)
		budget_hide(&r->budget, r->metrics);
	telemetry_unref(&r->telemetry);
	exporters_unref(&r->exporters);
	kill_switch_unref(&r->kills);
	quota_tables_fini(&r->quotas);
	storages_unref(&r->storages);
	loop_unref(&r->loop);
	ledger_unref(&r->ledger);
	metrics_unref(&r->metrics);
	sockets_unref(&r->sockets);
}

static bool examine(void *context, const struct declared *declared, const struct error *why,
		    struct problems *problems)
{
	(void)context;
	return environment_examine(declared, why, problems);
}

static void check_addresses(void *context, const struct inventory *inventory,
			    struct problems *problems)
{
	const struct runtime *r = context;
	struct listeners listeners;
	listeners_find(&listeners, inventory, r->defaulted ? NULL : r->telemetry, problems);
	listeners_check(&listeners, problems);
	listeners_fini(&listeners);
}

struct graph *runtime_build(struct runtime *r, const struct node *root,
			    const struct service_view *service, struct graph *predecessor,
			    struct problems *problems)
{
	struct error err;
	telemetry_check(telemetry_node(root), problems);
	return graph_build(
		&(struct graph_options){
			.root = root,
			.factories = components,
			.loop = r->loop,
			.metrics = r->metrics,
			.ledger = r->ledger,
			.budget = &r->budget,
			.sockets = r->sockets,
			.exporters = r->exporters,
			.kills = r->kills,
			.quotas = &r->quotas,
			.storages = r->storages,
			.service = service,
			.workers = r->workers,
			.number = ++r->graphs,
			.predecessor = predecessor,
			.problems = problems,
			.check = check_addresses,
			.examine = examine,
			.context = r,
		},
		&err);
}

void runtime_reopen(struct runtime *r)
{
	exporters_reopen(r->exporters);
}

static bool measure(struct runtime *r, struct error *err)
{
	if (!budget_ready(&r->budget, err))
		return false;
	r->measured = true;
	budget_show(&r->budget, r->metrics);
	return true;
}

bool runtime_run(struct runtime *r, struct graph *graph, struct problems *problems)
{
	struct error why;
	if (!graph_start(graph, r->io, problems))
		return false;
	if (!r->measured && !measure(r, &why))
		return problems_add(problems, &why);
	graph_ready(graph);
	return true;
}
