/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/graph/lone.h"

#include "base/memory.h"
#include "pipeline/graph/private.h"

struct lone {
	struct graph *graph;
	struct declared declared; /* its own copy */
	struct delivery_config config;
	struct named_auths auths;
	size_t borrowed; /* extensions behind them, in this order */
	struct host host;
	void *self;
	struct delivery *delivery;
	void (*stopped)(void *argument);
	void *argument;
};

static const struct exporter_ops *ops_of(const struct lone *lone)
{
	return lone->declared.factory->exporter;
}

static struct delivery_config config_of(const struct lone *lone)
{
	struct delivery_config config = *inventory_delivery(&lone->declared);
	config.required = true;
	config.sending_queue = (struct queue_config){
		.present = { true }, .num_consumers = 1, .queue_size = 1, .wait_for_result = true
	};
	config.dead_letter = (struct dead_letter_config){ .directory = NULL };
	return config;
}

static void init_host(struct lone *lone)
{
	const struct graph_options *o = &lone->graph->options;
	lone->host = (struct host){
		.id = lone->declared.id,
		.log = {
			.component_kind = component_kind_names[COMPONENT_EXPORTER],
			.component_id = lone->declared.id,
			.signal = "profiles",
		},
		.metrics = o->metrics,
		.loop = o->loop,
		.authenticators =
			named_auths_record(&lone->auths, graph_authenticators(lone->graph)),
	};
}

static bool create(struct lone *lone, struct delivery_options *options, struct error *err)
{
	const struct component_factory *factory = lone->declared.factory;
	struct graph *g = lone->graph;
	if (ops_of(lone)->owned_path && ops_of(lone)->owned_path(lone->declared.config))
		return error_set(err, ERROR_CONFIG,
				 "%s: it writes to a file or directory, which would be overwritten",
				 lone->declared.id);
	init_host(lone);
	lone->self = memory_new(factory->size);
	if (!factory->create(lone->self, lone->declared.config, &lone->host, err) ||
	    !graph_resolved(g, &lone->declared, err))
		return false;
	lone->config = config_of(lone);
	options->ops = factory->exporter;
	options->exporter = lone->self;
	options->config = &lone->config;
	options->id = lone->declared.id;
	options->type = factory->type;
	options->log = &lone->host.log;
	options->metrics = g->options.metrics;
	options->ledger = g->options.ledger;
	options->loop = g->options.loop;
	lone->delivery = delivery_new(options);
	return true;
}

struct lone *lone_new(struct graph *graph, const char *id,
		      void (*lost)(void *context, const struct loss *loss,
				   uint64_t rejected_profiles),
		      void *context, struct error *err)
{
	struct delivery_options options = { .lost = lost, .lost_context = context };
	const struct declared *declared = inventory_find(&graph->inventory, COMPONENT_EXPORTER, id);
	struct lone *lone = memory_new(sizeof *lone);
	lone->graph = graph;
	bool ok = declared ? declared_copy(&lone->declared, declared, err)
			   : error_set(err, ERROR_CONFIG, "there is no exporter \"%s\"", id);
	if (!ok || !create(lone, &options, err))
		lone_unref(&lone);
	return lone;
}

/* The extension behind its authenticator. Several lone exporters can share it. */
static bool borrow_extension(struct instance *e, struct error *err)
{
	const struct extension_ops *ops = e->declared->factory->extension;
	if (!e->borrowers && ops->start && !ops->start(e->self, err))
		return declared_blame(e->declared, err);
	e->borrowers++;
	return true;
}

static void return_extension(struct instance *e)
{
	const struct extension_ops *ops = e->declared->factory->extension;
	if (!--e->borrowers && ops->stop)
		ops->stop(e->self);
}

static struct instance *extension_of(const struct lone *lone, size_t index)
{
	return graph_find(lone->graph, COMPONENT_EXTENSION, lone->auths.at[index].id);
}

static bool start_extensions(struct lone *lone, struct error *err)
{
	for (; lone->borrowed < lone->auths.count; lone->borrowed++)
		if (!borrow_extension(extension_of(lone, lone->borrowed), err))
			return false;
	return true;
}

static void stop_extensions(struct lone *lone)
{
	while (lone->borrowed)
		return_extension(extension_of(lone, --lone->borrowed));
}

bool lone_start(struct lone *lone, struct error *err)
{
	if (!start_extensions(lone, err))
		return false;
	return ((!ops_of(lone)->start || ops_of(lone)->start(lone->self, err)) &&
		delivery_start(lone->delivery, err)) ||
	       declared_blame(&lone->declared, err);
}

struct delivery *lone_delivery(struct lone *lone)
{
	return lone->delivery;
}

void *lone_exporter(const struct lone *lone)
{
	return lone->self;
}

const char *lone_type(const struct lone *lone)
{
	return lone->declared.factory->type;
}

static void run_stop(void *argument)
{
	struct lone *lone = argument;
	if (ops_of(lone)->stop)
		ops_of(lone)->stop(lone->self);
}

static void has_stopped(void *argument)
{
	struct lone *lone = argument;
	stop_extensions(lone);
	lone->stopped(lone->argument);
}

static void has_drained(void *argument)
{
	struct lone *lone = argument;
	loop_work(lone->graph->options.loop, run_stop, has_stopped, lone);
}

void lone_stop(struct lone *lone, void (*stopped)(void *argument), void *argument)
{
	lone->stopped = stopped;
	lone->argument = argument;
	delivery_drain(lone->delivery, has_drained, lone);
}

void lone_unref(struct lone **lone)
{
	struct lone *l = *lone;
	if (!l)
		return;
	delivery_unref(&l->delivery);
	if (l->self && l->declared.factory->destroy)
		l->declared.factory->destroy(l->self);
	memory_free(l->self);
	declared_fini(&l->declared);
	named_auths_fini(&l->auths);
	memory_free(l);
	*lone = NULL;
}
