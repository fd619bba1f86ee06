/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/graph/private.h"

#include "base/memory.h"
#include "pipeline/graph/lint.h"

#include <assert.h>
#include <string.h>

#define WORKER_QUEUE 2048 /* one peer may use half of it */
/* Workers together, and open batches together, may each keep this fraction of the memory between
 * the process at rest and the soft limit while they are empty. More would starve the requests for
 * which it is kept. */
#define IDLE_SHARE 8

struct instance *graph_find(const struct graph *g, enum component_kind kind, const char *id)
{
	for (uint32_t i = 0; i < g->instance_count; i++)
		if (instance_kind(g->instances[i]) == kind &&
		    !strcmp(g->instances[i]->declared->id, id))
			return g->instances[i];
	return NULL;
}

static struct instance *append(struct graph *g, struct instance *instance)
{
	g->instances = memory_resize(g->instances, (g->instance_count + 1) * sizeof *g->instances);
	g->instances[g->instance_count++] = instance;
	instance->graphs++;
	return instance;
}

static struct instance *append_instance(struct graph *g, const struct declared *declared)
{
	struct instance *instance = memory_new(sizeof *instance);
	instance->declared = declared;
	instance->owner = g->options.number;
	return append(g, instance);
}

static void make_host(struct graph *g, struct instance *instance, const struct pipeline *path)
{
	const struct declared *d = instance->declared;
	enum component_kind kind = d->factory->kind;
	if (kind == COMPONENT_RECEIVER) {
		instance->entrance = entrance_new(g->budget);
		instance->duplicates = duplicates_new(inventory_duplicates(d), g->budget,
						      g->options.metrics, d->id);
	}
	instance->host = (struct host){
		.id = d->id,
		.pipeline = path ? path->id : NULL,
		.log = {
			.component_kind = component_kind_names[kind],
			.component_id = d->id,
			.pipeline_id = path ? path->id : NULL,
			.signal = kind == COMPONENT_EXTENSION ? NULL : "profiles",
		},
		.metrics = g->options.metrics,
		.loop = g->options.loop,
		.entrance = instance->entrance,
		.sockets = { g->options.sockets, &instance->owner },
		.storages = g->options.storages,
		.authenticators = named_auths_record(&instance->auths, graph_authenticators(g)),
		.service = g->options.service,
	};
}

static bool create(struct graph *g, struct instance *instance, const struct pipeline *path,
		   struct error *err)
{
	const struct component_factory *factory = instance->declared->factory;
	g->missing.reason = NULL;
	make_host(g, instance, path);
	instance->self = memory_new(factory->size);
	return (factory->create(instance->self, instance->declared->config, &instance->host, err) ||
		declared_blame(instance->declared, err)) &&
	       graph_resolved(g, instance->declared, err);
}

struct instance *graph_add(struct graph *g, const struct declared *declared,
			   const struct pipeline *path, struct error *err)
{
	struct instance *instance = append_instance(g, declared);
	return create(g, instance, path, err) ? instance : NULL;
}

/* A receiver or an extension: the predecessor's if it is the same. */
static struct instance *add_instance(struct graph *g, const struct declared *declared,
				     struct error *err)
{
	struct instance *instance = succession_find(g, declared, graph_authenticators(g));
	if (instance)
		return append(g, instance);
	instance = append_instance(g, declared);
	if (!declared_copy(&instance->own, declared, err))
		return NULL;
	instance->declared = &instance->own;
	return create(g, instance, NULL, err) ? instance : NULL;
}

/* NULL: there is none without an error. inventory_read has reported that. */
static const struct declared *resolve(const struct graph *g, enum component_kind kind,
				      const char *id)
{
	const struct declared *declared = inventory_find(&g->inventory, kind, id);
	return declared && declared->sound ? declared : NULL;
}

/* No text: it needs a component that has an error. */
static void note(struct problems *problems, const struct error *why)
{
	assert(*why->text || problems->count);
	if (*why->text)
		problems_add(problems, why);
}

static const struct pipeline_config *pipeline_at(const struct graph *g, size_t i)
{
	return (const struct pipeline_config *)g->inventory.service.pipelines.at + i;
}

/* Connectors stand among exporters and receivers. */
static bool is_connector(const struct graph *g, const char *id)
{
	return inventory_find(&g->inventory, COMPONENT_CONNECTOR, id);
}

static bool build_exporter(struct graph *g, const struct declared *d, struct error *err)
{
	struct instance *instance = append_instance(g, d);
	g->missing.reason = NULL;
	struct storage *storage = graph_storage(g, inventory_delivery(d));
	instance->exporter =
		exporters_borrow(g->options.exporters, d, storage, graph_authenticators(g), err);
	return instance->exporter && graph_resolved(g, d, err);
}

/* Those of a list that have no error. */
static void build_list(struct graph *g, enum component_kind kind, const struct strings *list,
		       struct problems *problems)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct declared *d = resolve(g, kind, list->at[i]);
		struct error why;
		error_clear(&why);
		if (!d || graph_find(g, kind, d->id))
			continue;
		bool ok = kind == COMPONENT_EXPORTER ? build_exporter(g, d, &why)
						     : add_instance(g, d, &why) != NULL;
		if (!ok)
			note(problems, &why);
	}
}

static void build_stages(struct graph *g, struct pipeline *path, const struct strings *list,
			 struct problems *problems)
{
	path->stages = memory_array(list->count, sizeof *path->stages);
	for (size_t k = 0; k < list->count; k++) {
		const struct declared *d = resolve(g, COMPONENT_PROCESSOR, list->at[k]);
		struct error why;
		error_clear(&why);
		struct instance *instance = d ? graph_add(g, d, path, &why) : NULL;
		if (!instance) {
			note(problems, &why);
			continue;
		}
		struct stage *stage = &path->stages[path->stage_count++];
		*stage = (struct stage){ .ops = d->factory->processor,
					 .self = instance->self,
					 .scratch = g->slot_count };
		pipeline_stage_metrics(stage, g->options.metrics, d->id, path->id);
		g->slots = memory_resize(g->slots, (g->slot_count + 1) * sizeof *g->slots);
		g->slots[g->slot_count++] =
			(struct scratch_slot){ d->factory->processor, instance->self };
		if (d->factory->processor->settle)
			d->factory->processor->settle(instance->self, &path->settings);
	}
}

static void add_destinations(struct graph *g, struct pipeline *path,
			     const struct strings *exporters, bool required)
{
	for (size_t k = 0; k < exporters->count; k++) {
		if (is_connector(g, exporters->at[k]))
			continue;
		const struct instance *e = graph_find(g, COMPONENT_EXPORTER, exporters->at[k]);
		const struct delivery_config *config = inventory_delivery(e->declared);
		struct batch_settings own = queue_batching(&config->sending_queue);
		if (config->required == required)
			pipeline_add_destination(path, exporters_delivery(e->exporter), required,
						 &own, sample_types_selects(&config->sample_types),
						 exporters_context_keys(e->exporter));
	}
}

static void build_routes(struct graph *g, struct pipeline *path, const struct strings *exporters)
{
	path->routes = memory_array(exporters->count, sizeof *path->routes);
	path->budget = g->budget;
	path->tenants = g->tenants;
	path->ledger = g->options.ledger;
	path->row = ledger_pipeline(path->ledger, path->id);
	add_destinations(g, path, exporters, true);
	add_destinations(g, path, exporters, false);
	g->route_count += path->route_count;
}

static void open_batches(struct graph *g, struct route *route)
{
	route->batcher = batcher_new(&(struct batcher_options){
		.settings = &route->settings,
		.shards = g->options.workers,
		.hold_acks = pipeline_held_acks(route),
		.loop = g->options.loop,
		.budget = g->budget,
		.idle_bytes = (size_t)(budget_allowance(g->budget) / IDLE_SHARE / g->route_count),
		.collected = pipeline_collected,
		.emit = pipeline_emit,
		.context = route,
	});
}

static void open_gate(struct graph *g, struct instance *receiver)
{
	const struct declared *d = receiver->declared;
	struct pipeline **paths = memory_array(g->pipeline_count, sizeof(struct pipeline *));
	uint32_t count = 0;
	for (uint32_t i = 0; i < g->pipeline_count; i++) {
		const struct strings *list = &pipeline_at(g, i)->receivers;
		for (size_t k = 0; k < list->count; k++)
			if (!strcmp(list->at[k], d->id) &&
			    (!count || paths[count - 1] != &g->paths[i]))
				paths[count++] = &g->paths[i];
	}
	enum ack_mode ack = inventory_ack(&g->inventory, d);
	for (uint32_t i = 0; i < count; i++)
		pipeline_expect_senders(paths[i], ack);
	struct reception *reception = &g->receptions[g->reception_count++];
	reception->paths = paths;
	reception->receiver = receiver;
	reception->gate = gate_new(&(struct gate_options){
		.receiver = d->id,
		.paths = paths,
		.pipeline_count = count,
		.budget = g->budget,
		.peers = &g->peers,
		.workers = &g->workers,
		.seats = g->seats,
		.tenants = g->tenants,
		.limits = g->inventory.service.limits,
		.duplicates = receiver->duplicates,
		.ack = ack,
		.screen = { g->options.kills, g->quotas, g->budget },
		.metrics = g->options.metrics,
		.ledger = g->options.ledger,
		.log = &g->log,
	});
	if (!receiver->started)
		entrance_lead(receiver->entrance, reception->gate);
}

static void open_gates(struct graph *g)
{
	g->receptions = memory_array(g->inventory.count, sizeof *g->receptions);
	for (uint32_t i = 0; i < g->instance_count; i++)
		if (instance_kind(g->instances[i]) == COMPONENT_RECEIVER)
			open_gate(g, g->instances[i]);
}

/* The components of all pipelines, in their order; each needs only extensions. */
static void build_components(struct graph *g, struct problems *problems)
{
	build_list(g, COMPONENT_EXTENSION, &g->inventory.service.extensions, problems);
	for (uint32_t i = 0; i < g->pipeline_count; i++)
		build_list(g, COMPONENT_EXPORTER, &pipeline_at(g, i)->exporters, problems);
	for (uint32_t i = 0; i < g->pipeline_count; i++)
		build_stages(g, &g->paths[i], &pipeline_at(g, i)->processors, problems);
	for (uint32_t i = 0; i < g->pipeline_count; i++)
		build_list(g, COMPONENT_RECEIVER, &pipeline_at(g, i)->receivers, problems);
}

static void name_paths(struct graph *g)
{
	const struct config_items *pipelines = &g->inventory.service.pipelines;
	g->tenants =
		tenants_new(&g->inventory.service.tenant, g->options.metrics, g->options.ledger);
	if (g->options.quotas)
		g->quotas = quotas_new(&g->inventory.service.quotas, g->options.quotas,
				       g->options.metrics);
	g->paths = memory_array(pipelines->count, sizeof *g->paths);
	g->pipeline_count = (uint32_t)pipelines->count;
	for (uint32_t i = 0; i < g->pipeline_count; i++)
		g->paths[i].id = pipelines->names[i];
}

static bool build_paths(struct graph *g, struct problems *problems)
{
	struct error why;
	error_clear(&why);
	name_paths(g);
	build_components(g, problems);
	if (problems->count)
		return false;
	graph_settle_memory(g);
	for (uint32_t i = 0; i < g->pipeline_count; i++)
		build_routes(g, &g->paths[i], &pipeline_at(g, i)->exporters);
	if (!connect_pipelines(g, &why))
		return problems_add(problems, &why);
	for (uint32_t i = 0; i < g->pipeline_count; i++)
		for (uint32_t k = 0; k < g->paths[i].route_count; k++)
			open_batches(g, &g->paths[i].routes[k]);
	graph_share_memory(g);
	open_gates(g);
	return true;
}

/* What else is wrong with a configuration that has an error. Beside a graph that runs, none of its
 * components is built. What is not in the tree may be in a source that could not be read. */
static void look_further(struct graph *g, struct problems *problems)
{
	if (g->options.predecessor || problems->incomplete)
		return;
	name_paths(g);
	build_components(g, problems);
	graph_check_names(g, problems);
}

static void check(struct graph *g, struct problems *problems)
{
	const struct graph_options *o = &g->options;
	inventory_read(&g->inventory, o->root, o->factories, problems);
	lint_require_policy(&g->inventory, problems);
	if (o->check)
		o->check(o->context, &g->inventory, problems);
}

struct graph *graph_build(const struct graph_options *options, struct error *err)
{
	struct graph *g = memory_new(sizeof *g);
	g->options = *options;
	g->budget = options->budget;
	peers_init(&g->peers);
	g->seats = memory_array((size_t)IO_KINDS * options->workers, sizeof *g->seats);
	g->check = loop_timer_new(options->loop, graph_check_memory, g);
	struct problems own = { 0 }, *problems = options->problems ? options->problems : &own;
	check(g, problems);
	if (problems->count)
		look_further(g, problems);
	else if (!options->predecessor)
		loop_widen_pool(inventory_blocking_sends(&g->inventory));
	if (problems->count || !build_paths(g, problems)) {
		problems_none(problems, err);
		graph_unref(&g);
	}
	problems_fini(&own);
	return g;
}

enum component_kind instance_kind(const struct instance *instance)
{
	return instance->declared->factory->kind;
}

struct activity instance_activity(const struct graph *g, const struct instance *instance)
{
	const struct component_factory *f = instance->declared->factory;
	if (f->receiver)
		return (struct activity){ f->receiver->start, g->retiring && f->receiver->retire
								      ? f->receiver->retire
								      : f->receiver->stop };
	if (f->extension)
		return (struct activity){ f->extension->start, f->extension->stop };
	return (struct activity){ 0 };
}

static bool start_instance(struct graph *g, struct instance *instance, struct error *err)
{
	instance->started = true;
	instance->host.io = g->io;
	if (instance->exporter)
		return exporters_start(instance->exporter, err);
	struct activity activity = instance_activity(g, instance);
	bool extension = instance_kind(instance) == COMPONENT_EXTENSION;
	if (extension)
		log_info(&instance->host.log, "Extension is starting...");
	if (activity.start && !activity.start(instance->self, err))
		return declared_blame(instance->declared, err);
	if (extension)
		log_info(&instance->host.log, "Extension started.");
	return true;
}

/* While a graph runs, its rules stay in force until this one takes its place. */
static bool prepare_kills(struct graph *g, struct error *err)
{
	struct kill_switch *kills = g->options.kills;
	if (kills)
		g->kills = kill_switch_prepare(kills, &g->inventory.service.kill_switch, err);
	if (kills && !g->kills)
		return false;
	if (!g->options.predecessor)
		kill_switch_apply(&g->kills);
	return true;
}

/* The message about variables is the Collector's. */
static void log_warning(void *context, const struct lint_finding *found)
{
	if (found->variable)
		log_warn(context, "Configuration references unset environment variable",
			 log_text("name", found->variable), log_text("warning", found->id),
			 log_text("text", found->text));
	else
		log_warn(context, "The configuration is valid, but probably not what you want",
			 log_text("warning", found->id), log_text("text", found->text));
}

/* The instance of this index could not be started: why, and what would prevent the others. */
static void report_failure(struct graph *g, uint32_t failed, const struct error *why,
			   struct problems *problems)
{
	const struct graph_options *o = &g->options;
	bool reported = false;
	for (uint32_t i = failed; i < g->instance_count && o->examine; i++)
		if (i == failed || !g->instances[i]->started)
			reported |= o->examine(o->context, g->instances[i]->declared,
					       i == failed ? why : NULL, problems);
	if (!reported)
		problems_add(problems, why);
}

static bool start_instances(struct graph *g, struct problems *problems)
{
	for (uint32_t i = 0; i < g->instance_count; i++) {
		struct error why;
		error_clear(&why);
		if (g->instances[i]->started || start_instance(g, g->instances[i], &why))
			continue;
		report_failure(g, i, &why, problems);
		return false;
	}
	return true;
}

bool graph_start(struct graph *g, struct io *io, struct problems *problems)
{
	struct error why;
	error_clear(&why);
	inventory_log(&g->inventory, &g->log);
	lint_inventory(&g->inventory, log_warning, &g->log);
	g->io = io;
	g->workers = workers_start(
		&(struct workers_options){
			.count = g->options.workers,
			.queue_max = WORKER_QUEUE,
			.slots = g->slots,
			.slot_count = g->slot_count,
			.budget = g->budget,
			.idle_bytes = (size_t)(budget_allowance(g->budget) / IDLE_SHARE),
			.run = gate_run,
		},
		&why);
	succession_own(g);
	bool ok = (g->workers && prepare_kills(g, &why)) || problems_add(problems, &why);
	ok = ok && start_instances(g, problems);
	if (!ok)
		succession_return(g);
	return ok;
}

void graph_ready(struct graph *g)
{
	graph_share_memory(g);
	loop_timer_start(g->check, g->check_interval_ns);
}

void component_reopen(const struct component_factory *factory, void *self, const struct log *log)
{
	struct error err;
	error_clear(&err);
	if (!factory->reopen)
		return;
	if (factory->reopen(self, &err))
		log_info(log, "Files and certificates reopened");
	else
		log_error(log, "Failed to reopen files or certificates; keeping the current ones",
			  log_text("error", err.text));
}

void graph_reopen(struct graph *g)
{
	for (uint32_t i = 0; i < g->instance_count; i++) {
		struct instance *instance = g->instances[i];
		if (!instance->exporter)
			component_reopen(instance->declared->factory, instance->self,
					 &instance->host.log);
	}
}

static void leave_instance(struct instance *instance)
{
	if (--instance->graphs)
		return;
	exporters_return(&instance->exporter);
	if (instance->self && instance->declared->factory->destroy)
		instance->declared->factory->destroy(instance->self);
	entrance_unref(&instance->entrance);
	duplicates_unref(&instance->duplicates);
	named_auths_fini(&instance->auths);
	declared_fini(&instance->own);
	memory_free(instance->self);
	memory_free(instance);
}

static void close_receptions(struct graph *g)
{
	for (uint32_t i = 0; i < g->reception_count; i++) {
		gate_unref(&g->receptions[i].gate);
		memory_free(g->receptions[i].paths);
	}
	memory_free(g->receptions);
}

static void close_routes(struct pipeline *path)
{
	for (uint32_t k = 0; k < path->route_count; k++) {
		batcher_unref(&path->routes[k].batcher);
		memory_free(path->routes[k].deliveries);
		memory_free(path->routes[k].keys);
	}
	for (uint32_t k = 0; k < path->connection_count; k++)
		connection_fini(&path->connections[k]);
	memory_free(path->connections);
	memory_free(path->routes);
}

void graph_unref(struct graph **graph)
{
	struct graph *g = *graph;
	if (!g)
		return;
	assert(!g->workers);
	for (uint32_t i = 0; i < g->pipeline_count; i++)
		close_routes(&g->paths[i]);
	for (uint32_t i = g->instance_count; i-- > 0;)
		leave_instance(g->instances[i]);
	close_receptions(g);
	for (uint32_t i = 0; i < g->pipeline_count; i++)
		memory_free(g->paths[i].stages);
	memory_free(g->instances);
	memory_free(g->paths);
	memory_free(g->slots);
	loop_timer_unref(&g->check);
	loop_timer_unref(&g->deadline);
	tenants_unref(&g->tenants);
	quotas_unref(&g->quotas);
	kill_change_free(&g->kills);
	inventory_fini(&g->inventory);
	peers_fini(&g->peers);
	memory_free(g->seats);
	memory_free(g);
	*graph = NULL;
}

uint32_t graph_lint(const struct graph *g,
		    void (*found)(void *context, const struct lint_finding *finding), void *context)
{
	return lint_inventory(&g->inventory, found, context);
}

const struct service_config *graph_service(const struct graph *g)
{
	return &g->inventory.service;
}

void graph_print(const struct graph *g, bool redact, bool json, struct view telemetry,
		 struct bytes *out)
{
	inventory_print(&g->inventory, redact, json, telemetry, out);
}
