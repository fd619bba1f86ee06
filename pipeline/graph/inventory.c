/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/graph/inventory.h"

#include "base/memory.h"
#include "base/path.h"
#include "config/id.h"
#include "config/suggest.h"
#include "pipeline/delivery/delivery.h"

#include <stdio.h>
#include <string.h>

const char *const component_kind_names[] = { "receiver", "processor", "exporter", "connector",
					     "extension" };
const char *const component_section_names[] = { "receivers", "processors", "exporters",
						"connectors", "extensions" };

const struct component_factory *factory_find(const struct component_factory *const *factories,
					     enum component_kind kind, const char *type)
{
	for (; *factories; factories++) {
		const struct component_factory *f = *factories;
		if (f->kind == kind &&
		    (!strcmp(f->type, type) || (f->alias && !strcmp(f->alias, type))))
			return f;
	}
	return NULL;
}

static bool unknown_type(const struct node *node, enum component_kind kind, const char *type,
			 const struct component_factory *const *factories, struct error *err)
{
	struct bytes valid;
	char meant[SUGGEST_TEXT];
	struct suggest suggest = { .name = node->brought_key ? NULL : type };
	bytes_init(&valid, 4096);
	if (kind == COMPONENT_EXPORTER && !strcmp(type, "logging"))
		return node_error(node, component_section_names[kind], err,
				  "the logging exporter has been deprecated, use the debug "
				  "exporter instead");
	for (; *factories; factories++) {
		if ((*factories)->kind != kind)
			continue;
		bytes_format(&valid, "%s%s", valid.len ? " " : "", (*factories)->type);
		suggest_try(&suggest, (*factories)->type);
	}
	node_error(node, component_section_names[kind], err,
		   "unknown type: \"%s\" for id: \"%s\" (valid values: [%.*s])%s",
		   node->brought_key ? "?" : type, node_shown_key(node), (int)valid.len,
		   valid.at ? (char *)valid.at : "", suggest_text(&suggest, meant));
	bytes_fini(&valid);
	return false;
}

bool declared_blame(const struct declared *declared, struct error *err)
{
	if (!err)
		return false;
	const struct error why = *err;
	config_blame(declared->factory->config, declared->node, declared->path, &why, err);
	err->kind = why.kind;
	return false;
}

static bool check_delivery(const struct declared *d, struct problems *problems)
{
	struct error why;
	error_clear(&why);
	if (!d->factory->exporter || delivery_config_check(inventory_delivery(d), &why))
		return true;
	declared_blame(d, &why);
	return problems_add(problems, &why);
}

/* Takes ownership of the ID string. */
static bool declare_id(struct inventory *inventory, enum component_kind kind,
		       const struct node *node, size_t index, char *id,
		       const struct component_factory *factory, struct problems *problems)
{
	struct path top = { NULL, component_section_names[kind], 0 },
		    path = path_step(&top, node, index);
	char text[PATH_TEXT];
	if (inventory_find(inventory, kind, id)) {
		struct error why;
		node_error(node, component_section_names[kind], &why,
			   "duplicate name \"%s\" after unmarshaling", node_shown_key(node));
		memory_free(id);
		return problems_add(problems, &why);
	}
	inventory->at =
		memory_resize(inventory->at, (inventory->count + 1) * sizeof *inventory->at);
	struct declared *d = &inventory->at[inventory->count++];
	*d = (struct declared){
		.factory = factory,
		.id = id,
		.path = memory_text(path_text(&path, text)),
		.node = node,
		.config = memory_new(factory->config->size),
	};
	return config_bind_all(factory->config, node, d->path, d->config, problems) &&
	       check_delivery(d, problems);
}

/* The error message contains the ID, or the reference that produced it. */
static bool bad_id(const struct node *node, const char *reference, const char *path,
		   const struct error *why, struct error *err)
{
	if (reference)
		return node_error(node, path, err, "\"%s\" is not a valid component ID", reference);
	return node_error(node, path, err, "%s", why->text);
}

static bool declare(struct inventory *inventory, enum component_kind kind, const struct node *node,
		    size_t index, const struct component_factory *const *factories,
		    struct problems *problems)
{
	struct config_id id;
	struct error why, placed;
	if (!config_id_parse(node->key, &id, &why)) {
		bad_id(node, node->brought_key ? node->reference : NULL,
		       component_section_names[kind], &why, &placed);
		return problems_add(problems, &placed);
	}
	char *type = memory_text_of(id.text, id.type_len);
	const struct component_factory *factory = factory_find(factories, kind, type);
	bool ok = factory ? declare_id(inventory, kind, node, index, memory_text(id.text), factory,
				       problems)
			  : unknown_type(node, kind, type, factories, &placed) ||
				    problems_add(problems, &placed);
	memory_free(type);
	config_id_fini(&id);
	return ok;
}

static void declare_section(struct inventory *inventory, const struct node *root,
			    enum component_kind kind,
			    const struct component_factory *const *factories,
			    struct problems *problems)
{
	const struct node *section = node_get(root, component_section_names[kind]);
	struct error why;
	if (!section || section->kind == NODE_NULL)
		return;
	if (section->kind != NODE_MAP) {
		node_error(section, component_section_names[kind], &why,
			   "must be a map of component IDs");
		problems_add(problems, &why);
		return;
	}
	for (size_t i = 0; i < section->count; i++)
		declare(inventory, kind, section->children[i], i, factories, problems);
}

static const char *const sections[] = { "receivers",  "processors", "exporters", "connectors",
					"extensions", "service",    NULL };

static bool is_section(const struct node *entry)
{
	size_t i = 0;
	while (sections[i] && strcmp(sections[i], entry->key) != 0)
		i++;
	return sections[i];
}

static bool check_root(const struct node *root, struct error *err)
{
	if (!root || root->kind == NODE_NULL || (root->kind == NODE_MAP && !root->count))
		return node_error(root, "", err, "empty configuration file");
	return root->kind == NODE_MAP ||
	       node_error(root, "", err, "the configuration must be a map");
}

static void check_sections(const struct node *root, struct problems *problems)
{
	for (size_t i = 0; i < root->count; i++) {
		const struct node *entry = root->children[i];
		struct suggest suggest = { .name = entry->brought_key ? NULL : entry->key };
		char meant[SUGGEST_TEXT];
		struct error why;
		if (is_section(entry))
			continue;
		for (size_t k = 0; sections[k]; k++)
			suggest_try(&suggest, sections[k]);
		node_error(entry, "", &why,
			   "'' has invalid keys: %s%s (valid keys: [receivers processors exporters "
			   "connectors extensions service])",
			   node_shown_key(entry), suggest_text(&suggest, meant));
		problems_add(problems, &why);
	}
}

/* The node of the n-th name of a list, or the closest node that is known. */
static const struct node *place_of(const struct node *section, const char *list, size_t n)
{
	const struct node *node = node_get(section, list);
	if (!node)
		return section;
	return node->kind == NODE_LIST && n < node->count ? node->children[n] : node;
}

/* A connector is among the receivers of some pipelines, and the exporters of others. */
static bool is_declared(const struct inventory *inventory, enum component_kind kind, const char *id)
{
	bool connects = kind == COMPONENT_RECEIVER || kind == COMPONENT_EXPORTER;
	return inventory_find(inventory, kind, id) ||
	       (connects && inventory_find(inventory, COMPONENT_CONNECTOR, id));
}

/* One whose declaration has an error, which has been reported. */
static bool is_written(const struct inventory *inventory, enum component_kind kind, const char *id)
{
	bool connects = kind == COMPONENT_RECEIVER || kind == COMPONENT_EXPORTER;
	const struct node *section = node_get(inventory->root, component_section_names[kind]);
	return (section && section->kind != NODE_NULL && section->kind != NODE_MAP) ||
	       node_get(section, id) ||
	       (connects && node_get(node_get(inventory->root, "connectors"), id));
}

static void suggest_id(const struct inventory *inventory, enum component_kind kind,
		       struct suggest *suggest)
{
	for (size_t i = 0; i < inventory->count; i++) {
		const struct declared *d = &inventory->at[i];
		bool connects = (kind == COMPONENT_RECEIVER || kind == COMPONENT_EXPORTER) &&
				d->factory->kind == COMPONENT_CONNECTOR;
		if (!d->node->brought_key && (d->factory->kind == kind || connects))
			suggest_try(suggest, d->id);
	}
}

/* The name is trimmed, as in the declaration. */
static bool check_name(const struct inventory *inventory, char **name, enum component_kind kind,
		       const struct node *at, const char *path, struct error *err)
{
	struct config_id id;
	struct error why;
	char meant[SUGGEST_TEXT];
	if (!config_id_parse(*name, &id, &why))
		return bad_id(at, at->reference, path, &why, err);
	memory_free(*name);
	*name = memory_text(id.text);
	config_id_fini(&id);
	if (is_declared(inventory, kind, *name) || is_written(inventory, kind, *name))
		return true;
	struct suggest suggest = { .name = at->reference ? NULL : *name };
	suggest_id(inventory, kind, &suggest);
	return node_error(at, path, err, "references %s \"%s\" which is not configured%s",
			  component_kind_names[kind], at->reference ? at->reference : *name,
			  suggest_text(&suggest, meant));
}

/* Every name must be that of a declared component. */
static bool check_names(const struct inventory *inventory, struct strings *names,
			enum component_kind kind, const struct node *section, const char *path,
			struct problems *problems)
{
	const char *list = component_section_names[kind];
	bool ok = true;
	for (size_t i = 0; i < names->count; i++) {
		struct error why;
		if (!check_name(inventory, &names->at[i], kind, place_of(section, list, i), path,
				&why))
			ok = problems_add(problems, &why);
	}
	return ok;
}

static bool contradict(const struct inventory *inventory, const char *a, const char *b)
{
	const struct declared *one = inventory_find(inventory, COMPONENT_PROCESSOR, a);
	const struct declared *other = inventory_find(inventory, COMPONENT_PROCESSOR, b);
	return one && other && one->factory == other->factory && one->factory->processor->once;
}

static bool check_twice(const struct inventory *inventory, const struct strings *names,
			const struct node *section, const char *path, struct error *err)
{
	for (size_t i = 1; i < names->count; i++)
		for (size_t k = 0; k < i; k++) {
			const char *a = names->at[k], *b = names->at[i], *fault = NULL;
			if (!strcmp(a, b))
				fault = "references processor \"%s\" multiple times";
			else if (contradict(inventory, a, b))
				fault = "processor \"%s\" is the second of its type; a "
					"pipeline may have at most one";
			const struct node *at = place_of(section, "processors", i);
			if (fault)
				return node_error(at, path, err, fault,
						  at->reference ? at->reference : b);
		}
	return true;
}

static bool is_type(const struct config_id *id, const char *type)
{
	return strlen(type) == id->type_len && strncmp(id->text, type, id->type_len) == 0;
}

static bool check_signal(const struct config_id *id, const struct node *node, struct error *err)
{
	static const char *const known[] = { "traces", "metrics", "logs", NULL };
	size_t i = 0;
	if (is_type(id, "profiles"))
		return true;
	while (known[i] && !is_type(id, known[i]))
		i++;
	if (known[i])
		return node_error(node, "service::pipelines", err,
				  "pipeline \"%s\": telemetry type is not supported; this gateway "
				  "is for profiles (--profiles-only skips such pipelines)",
				  node_shown_key(node));
	if (node->brought_key)
		return node_error(node, "service::pipelines", err,
				  "unknown pipeline signal: \"%s\"", node->reference);
	return node_error(node, "service::pipelines", err, "unknown pipeline signal: \"%.*s\"",
			  (int)id->type_len, id->text);
}

static bool check_id(const char *text, const struct node *node, struct error *err)
{
	struct config_id id;
	struct error why;
	if (!config_id_parse(text, &id, &why))
		return bad_id(node, node->brought_key ? node->reference : NULL,
			      "service::pipelines", &why, err);
	bool ok = check_signal(&id, node, err);
	config_id_fini(&id);
	return ok;
}

static bool check_lists(const struct pipeline_config *p, const struct node *node, const char *path,
			struct error *err)
{
	return (p->receivers.count && p->exporters.count) ||
	       node_error(node, path, err, "must have at least one %s",
			  p->receivers.count ? "exporter" : "receiver");
}

/* bound: the section `service` has no error so far, which may be that a list is missing. */
static void check_pipeline(const struct inventory *inventory, size_t index, const struct node *node,
			   bool bound, struct problems *problems)
{
	const struct config_items *pipelines = &inventory->service.pipelines;
	struct pipeline_config *p = (struct pipeline_config *)pipelines->at + index;
	struct path top = { NULL, "service::pipelines", 0 }, step = path_step(&top, node, index);
	char text[PATH_TEXT];
	struct error why;
	const char *path = path_text(&step, text);
	if (!check_id(pipelines->names[index], node, &why)) {
		problems_add(problems, &why);
		return;
	}
	if (bound && !check_lists(p, node, path, &why))
		problems_add(problems, &why);
	check_names(inventory, &p->receivers, COMPONENT_RECEIVER, node, path, problems);
	check_names(inventory, &p->exporters, COMPONENT_EXPORTER, node, path, problems);
	if (check_names(inventory, &p->processors, COMPONENT_PROCESSOR, node, path, problems) &&
	    !check_twice(inventory, &p->processors, node, path, &why))
		problems_add(problems, &why);
}

bool inventory_uses(const struct inventory *inventory, const struct declared *d)
{
	const struct config_items *pipelines = &inventory->service.pipelines;
	const struct pipeline_config *p = pipelines->at;
	enum component_kind kind = d->factory->kind;
	bool used =
		kind == COMPONENT_EXTENSION && config_lists(&inventory->service.extensions, d->id);
	for (size_t i = 0; i < pipelines->count && !used; i++)
		used = (kind == COMPONENT_EXPORTER && config_lists(&p[i].exporters, d->id)) ||
		       (kind == COMPONENT_RECEIVER && config_lists(&p[i].receivers, d->id)) ||
		       (kind == COMPONENT_PROCESSOR && config_lists(&p[i].processors, d->id));
	return used;
}

/* What only this exporter may write to: where it exports to, and its dead letters. */
enum { PATHS = 2 };

/* Normalised; NULL: there is none, or no pipeline uses the exporter. */
static char *owned_path(const struct inventory *inventory, const struct declared *d, size_t which)
{
	const struct exporter_ops *ops = d->factory->exporter;
	const char *path = NULL;
	if (!ops || !inventory_uses(inventory, d))
		return NULL;
	if (which)
		path = inventory_delivery(d)->dead_letter.directory;
	else if (ops->owned_path)
		path = ops->owned_path(d->config);
	return path && !path_is_device(path) ? path_normal(path) : NULL;
}

/* Two exporters that write to the same path would destroy each other's data. */
static bool check_owned_paths(const struct inventory *inventory, struct error *err)
{
	size_t count = inventory->count * PATHS;
	char **paths = memory_array(count, sizeof *paths);
	bool ok = true;
	for (size_t i = 0; i < count; i++) {
		const struct declared *d = &inventory->at[i / PATHS];
		paths[i] = owned_path(inventory, d, i % PATHS);
		for (size_t k = 0; k < i && ok && paths[i]; k++)
			ok = !paths[k] || strcmp(paths[k], paths[i]) != 0 ||
			     node_error(
				     d->node, d->path, err,
				     "writes to the same place as %s; each exporter needs its own",
				     inventory->at[k / PATHS].path);
	}
	for (size_t i = 0; i < count; i++)
		memory_free(paths[i]);
	memory_free(paths);
	return ok;
}

static void check_service(struct inventory *inventory, const struct node *root, bool bound,
			  struct problems *problems)
{
	struct service_config *service = &inventory->service;
	const struct node *node = node_get(root, "service");
	const struct node *section = node_get(node, "pipelines");
	struct error why;
	if (bound && !service->pipelines.count) {
		node_error(section ? section
			   : node  ? node
				   : root,
			   "service::pipelines", &why, "service must have at least one pipeline");
		problems_add(problems, &why);
	}
	for (size_t i = 0; i < service->pipelines.count; i++)
		check_pipeline(inventory, i, section->children[i], bound, problems);
	check_names(inventory, &service->extensions, COMPONENT_EXTENSION, node,
		    "service::extensions", problems);
}

/* The checks of components together, all of which are valid. */
static bool check_whole(const struct inventory *inventory, struct error *err)
{
	return check_owned_paths(inventory, err) && inventory_check_connectors(inventory, err) &&
	       inventory_check_acks(inventory, err);
}

bool inventory_has(const struct inventory *inventory, enum component_kind kind)
{
	size_t i = 0;
	while (i < inventory->count && inventory->at[i].factory->kind != kind)
		i++;
	return i < inventory->count;
}

static void check_kinds(const struct inventory *inventory, const struct node *root,
			struct problems *problems)
{
	static const enum component_kind required[] = { COMPONENT_RECEIVER, COMPONENT_EXPORTER };
	for (size_t i = 0; i < sizeof required / sizeof *required; i++) {
		const struct node *section = node_get(root, component_section_names[required[i]]);
		struct error why;
		if (inventory_has(inventory, required[i]) ||
		    (section && section->kind != NODE_NULL && (section->count || section->text)))
			continue;
		node_error(section ? section : root, "", &why,
			   "no %s configuration specified in config",
			   component_kind_names[required[i]]);
		problems_add(problems, &why);
	}
}

bool inventory_read(struct inventory *inventory, const struct node *root,
		    const struct component_factory *const *factories, struct problems *problems)
{
	size_t before = problems->count;
	struct error why;
	inventory->root = root;
	if (!check_root(root, &why))
		return problems_add(problems, &why);
	check_sections(root, problems);
	for (enum component_kind kind = COMPONENT_RECEIVER; kind <= COMPONENT_EXTENSION; kind++)
		declare_section(inventory, root, kind, factories, problems);
	check_kinds(inventory, root, problems);
	bool bound = config_bind_all(&service_table, node_get(root, "service"), "service",
				     &inventory->service, problems);
	check_service(inventory, root, bound, problems);
	if (problems->count != before)
		return false;
	return check_whole(inventory, &why) || problems_add(problems, &why);
}

bool inventory_check(const struct node *root, const struct component_factory *const *factories,
		     struct problems *problems)
{
	struct inventory inventory = { 0 };
	bool ok = inventory_read(&inventory, root, factories, problems);
	inventory_fini(&inventory);
	return ok;
}

void inventory_fini(struct inventory *inventory)
{
	for (size_t i = 0; i < inventory->count; i++) {
		struct declared *d = &inventory->at[i];
		config_release(d->factory->config, d->config);
		memory_free(d->config);
		memory_free(d->id);
		memory_free(d->path);
	}
	memory_free(inventory->at);
	config_release(&service_table, &inventory->service);
	*inventory = (struct inventory){ 0 };
}

bool declared_copy(struct declared *copy, const struct declared *d, struct error *err)
{
	*copy = (struct declared){
		.factory = d->factory,
		.id = memory_text(d->id),
		.path = memory_text(d->path),
		.node = node_copy(d->node),
		.config = memory_new(d->factory->config->size),
	};
	return config_bind(d->factory->config, copy->node, copy->path, copy->config, err);
}

void declared_fini(struct declared *copy)
{
	struct node *node = (struct node *)copy->node;
	if (!copy->factory)
		return;
	config_release(copy->factory->config, copy->config);
	memory_free(copy->config);
	memory_free(copy->id);
	memory_free(copy->path);
	node_unref(&node);
	*copy = (struct declared){ 0 };
}

bool declared_same(const struct declared *a, const struct declared *b)
{
	return a->factory == b->factory && !strcmp(a->id, b->id) && node_equal(a->node, b->node);
}

const struct declared *inventory_find(const struct inventory *inventory, enum component_kind kind,
				      const char *id)
{
	for (size_t i = 0; i < inventory->count; i++)
		if (inventory->at[i].factory->kind == kind && !strcmp(inventory->at[i].id, id))
			return &inventory->at[i];
	return NULL;
}

const struct delivery_config *inventory_delivery(const struct declared *declared)
{
	const char *config = declared->config;
	return (const struct delivery_config *)(config +
						declared->factory->exporter->delivery_offset);
}

uint32_t inventory_blocking_sends(const struct inventory *inventory)
{
	uint32_t sends = 0;
	for (size_t i = 0; i < inventory->count; i++) {
		const struct exporter_ops *ops = inventory->at[i].factory->exporter;
		if (ops && !ops->prompt)
			sends += ops->max_in_flight;
		if (ops && inventory_delivery(&inventory->at[i])->dead_letter.present.enabled)
			sends++;
	}
	return sends;
}
