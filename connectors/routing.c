/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "connectors/routing_condition.h"
#include "pipeline/component.h"
#include "pipeline/sample_types.h"

#include <string.h>

/*
 * Leads each Profile to the pipelines of the first entry of the table that matches it. The keys are
 * those of the Collector's routing connector (connector/routingconnector in
 * opentelemetry-collector-contrib), which does not support profiles; entries can also match by
 * tenant and by sample type.
 */
struct entry_config {
	struct choice context, action;
	char *condition, *statement;
	struct strings tenants, sample_types, pipelines;
};

struct routing_config {
	struct config_items table;
	struct strings default_pipelines;
	struct choice error_mode;
};

static const char *const contexts[] = {
	[ROUTING_RESOURCE] = "resource", [ROUTING_REQUEST] = "request", NULL
};
static const char *const actions[] = { "move", NULL };
static const char *const error_modes[] = { "ignore", "silent", "propagate", NULL };

/* NULL: the entry has none, or err is set. */
static struct routing_condition *parse(const struct entry_config *e, struct error *err)
{
	const char *text = e->condition ? e->condition : e->statement;
	struct routing_condition *condition =
		text ? routing_condition_parse(text, e->statement,
					       (enum routing_context)e->context.index, err)
		     : NULL;
	if (text && !condition)
		error_prefix(err, "%s", e->condition ? "condition" : "statement");
	return condition;
}

static void check_entry(const void *config, struct faults *faults)
{
	const struct entry_config *e = config;
	if (!e->pipelines.count)
		faults_add(faults, "`pipelines` must name at least one pipeline");
	if (e->condition && e->statement)
		faults_add(faults, "statement: only one of `condition` and `statement` may be set");
	if (!e->condition && !e->statement && !e->tenants.count && !e->sample_types.count)
		faults_relate(faults, "condition statement tenants sample_types",
			      "at least one of `condition`, `statement`, `tenants` and "
			      "`sample_types` must be set");
	sample_types_check(&e->sample_types, "sample_types", faults);
	struct error why;
	struct routing_condition *condition = parse(e, &why);
	if (!condition && (e->condition || e->statement))
		faults_relate(faults, "context", "%s", why.text);
	routing_condition_free(&condition);
}

static const struct config_row entry_rows[] = {
	CONFIG_ROW(struct entry_config, context, .key = "context", .def = "resource",
		   .choices = contexts,
		   .help = "What the condition is about: attributes of the `resource`, or metadata "
			   "of the `request` (headers, if the receiver has `include_metadata`)."),
	CONFIG_ROW(struct entry_config, condition, .key = "condition",
		   .help = "A condition in OTTL, as `attributes[\"deployment.environment\"] == "
			   "\"canary\"`."),
	CONFIG_ROW(struct entry_config, statement, .key = "statement",
		   .help = "The older form of a condition: `route() where` and the condition."),
	CONFIG_ROW(struct entry_config, tenants, .key = "tenants",
		   .help = "Matches data of these tenants (`service::tenant`). Not a key of the "
			   "Collector."),
	CONFIG_ROW(struct entry_config, sample_types, .key = "sample_types",
		   .help = "Matches Profiles of these sample types, as `type` or `type:unit`. Not "
			   "a key of the Collector."),
	CONFIG_ROW(struct entry_config, action, .key = "action", .def = "move", .choices = actions,
		   .help = "What matches is not matched again. The Collector's `copy` is not "
			   "supported: name all pipelines in one entry."),
	CONFIG_ROW(
		struct entry_config, pipelines, .key = "pipelines",
		.help = "The pipelines that get what matches; each must have the connector among "
			"its receivers."),
	{ 0 }
};
static const struct config_table entry_table = { .size = sizeof(struct entry_config),
						 .rows = entry_rows,
						 .check = check_entry };

static void check_routing(const void *config, struct faults *faults)
{
	const struct routing_config *c = config;
	if (!c->table.count)
		faults_add(faults, "`table` must have an entry");
}

static const struct config_row routing_rows[] = {
	CONFIG_ITEMS(struct routing_config, table, CONFIG_LIST, entry_table, .key = "table",
		     .help = "The routes. The first entry that matches a Profile decides; all that "
			     "an entry sets must match."),
	CONFIG_ROW(struct routing_config, default_pipelines, .key = "default_pipelines",
		   .help = "The pipelines that get what matches no entry. Empty: it is dropped."),
	CONFIG_ROW(struct routing_config, error_mode, .key = "error_mode", .def = "ignore",
		   .choices = error_modes, .inert = true,
		   .help = "The supported conditions cannot fail."),
	{ 0 }
};
static const struct config_table routing_table = { .size = sizeof(struct routing_config),
						   .rows = routing_rows,
						   .check = check_routing };

struct routing {
	const struct routing_config *config;
	struct routing_condition **conditions; /* by entry; NULL: it has none */
};

static const struct entry_config *entry_at(const struct routing_config *c, size_t i)
{
	return (const struct entry_config *)c->table.at + i;
}

static bool routing_create(void *instance, const void *config, const struct host *host,
			   struct error *err)
{
	struct routing *self = instance;
	(void)host;
	self->config = config;
	self->conditions = memory_array(self->config->table.count, sizeof *self->conditions);
	for (size_t i = 0; i < self->config->table.count; i++)
		self->conditions[i] = parse(entry_at(self->config, i), err);
	return true;
}

static void routing_destroy(void *instance)
{
	struct routing *self = instance;
	for (size_t i = 0; self->conditions && i < self->config->table.count; i++)
		routing_condition_free(&self->conditions[i]);
	memory_free(self->conditions);
}

/* The routes are those of the entries, and then the default. */
static const struct strings *routing_route(const void *config, uint32_t number)
{
	const struct routing_config *c = config;
	if (number < c->table.count)
		return &entry_at(c, number)->pipelines;
	return number == c->table.count && c->default_pipelines.count ? &c->default_pipelines
								      : NULL;
}

static bool is_of_tenant(const struct strings *tenants, const struct profiles *p,
			 const struct resource *r)
{
	const char *all = p->request ? p->request->tenant : NULL;
	struct view tenant = r->tenant ? string_view(p, r->tenant)
			     : all     ? view_of(all)
				       : (struct view){ 0 };
	for (size_t i = 0; i < tenants->count; i++)
		if (view_is(tenant, tenants->at[i]))
			return true;
	return false;
}

static bool matches_resource(const struct routing *self, size_t entry, const struct profiles *p,
			     const struct resource *r)
{
	const struct strings *tenants = &entry_at(self->config, entry)->tenants;
	const struct routing_condition *condition = self->conditions[entry];
	return (!tenants->count || is_of_tenant(tenants, p, r)) &&
	       (!condition || routing_condition_holds(condition, p, r));
}

static uint32_t route_of(const struct routing *self, const struct profiles *p,
			 const struct profile *profile, const bool *matches)
{
	const struct routing_config *c = self->config;
	for (size_t i = 0; i < c->table.count; i++) {
		const struct strings *types = &entry_at(c, i)->sample_types;
		if (matches[i] && (!types->count || sample_types_named(types, p, profile)))
			return (uint32_t)i;
	}
	return c->default_pipelines.count ? (uint32_t)c->table.count : CONNECTOR_NONE;
}

static void routing_choose(void *instance, const struct profiles *p, uint32_t *chosen)
{
	const struct routing *self = instance;
	size_t entries = self->config->table.count;
	bool *matches = memory_array(entries, sizeof *matches);
	for (uint32_t i = 0; i < p->profiles.count; i++)
		chosen[i] = CONNECTOR_NONE;
	for (uint32_t i = 0; i < p->resources.count; i++) {
		const struct resource *r = &p->resources.at[i];
		for (size_t k = 0; k < entries; k++)
			matches[k] = matches_resource(self, k, p, r);
		for (uint32_t s = 0; s < r->scopes.count; s++) {
			struct list list = p->scopes.at[r->scopes.first + s].profiles;
			for (uint32_t n = list.first; n < list.first + list.count; n++)
				chosen[n] = route_of(self, p, &p->profiles.at[n], matches);
		}
	}
	memory_free(matches);
}

static const char manual[] =
	"Each Profile takes the route of the first entry that matches it. **What matches no "
	"entry is dropped**, unless there are `default_pipelines`: it counts in "
	"`otelcol_ledger_dropped_samples` with the reason `unrouted`, and its sender is not "
	"informed.\n\n"
	"Conditions are evaluated after the processors of the pipeline before the connector. "
	"An attribute that these remove is missing then, so route before the policy removes "
	"it, or permit it there and remove it behind the connector.\n\n"
	"A condition consists of comparisons with `==` and `!=`, joined by `and`, `or`, "
	"`not` and parentheses. On the left is `attributes[\"key\"]` or "
	"`resource.attributes[\"key\"]`; in the context `request`, `request[\"key\"]`. On "
	"the right is a string, an integer, `true`, `false` or `nil`. They mean what they "
	"mean in OTTL: values of different types are not equal, and a missing attribute is "
	"`nil`. Everything else is an error, also the other contexts of the Collector.\n\n"
	"Profiles that take different routes are accepted separately. If one route has no "
	"room, the sender is asked to repeat the whole request, and the others get their "
	"part twice. Requests of one tenant each avoid that.\n";

static const struct connector_ops routing_ops = { .route = routing_route,
						  .choose = routing_choose };

const struct component_factory routing_connector = {
	.type = "routing",
	.help = "Leads Profiles to different pipelines: by attributes of their resource, by "
		"metadata of the request, by tenant, by sample type.",
	.manual = manual,
	.kind = COMPONENT_CONNECTOR,
	.connector = &routing_ops,
	.size = sizeof(struct routing),
	.config = &routing_table,
	.create = routing_create,
	.destroy = routing_destroy,
};
