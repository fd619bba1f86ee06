/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/graph/inventory.h"

#include "base/memory.h"
#include "base/path.h"
#include "base/quote.h"
#include "config/id.h"
#include "config/print.h"
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
	bytes_init(&valid, 4096);
	if (kind == COMPONENT_EXPORTER && !strcmp(type, "logging"))
		return node_error(node, component_section_names[kind], err,
				  "the logging exporter has been deprecated, use the debug "
				  "exporter instead");
	for (; *factories; factories++)
		if ((*factories)->kind == kind)
			bytes_format(&valid, "%s%s", valid.len ? " " : "", (*factories)->type);
	node_error(node, component_section_names[kind], err,
		   "unknown type: \"%s\" for id: \"%s\" (valid values: [%.*s])",
		   node->brought_key ? "?" : type, node_shown_key(node), (int)valid.len,
		   valid.at ? (char *)valid.at : "");
	bytes_fini(&valid);
	return false;
}

/* Takes ownership of the ID string. */
static bool declare_id(struct inventory *inventory, enum component_kind kind,
		       const struct node *node, size_t index, char *id,
		       const struct component_factory *factory, struct error *err)
{
	struct path top = { NULL, component_section_names[kind], 0 },
		    path = path_step(&top, node, index);
	char text[PATH_TEXT];
	if (inventory_find(inventory, kind, id)) {
		node_error(node, component_section_names[kind], err,
			   "duplicate name \"%s\" after unmarshaling", node_shown_key(node));
		memory_free(id);
		return false;
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
	struct error why;
	error_clear(&why);
	return config_bind(factory->config, node, d->path, d->config, err) &&
	       (!factory->exporter || delivery_config_check(inventory_delivery(d), &why) ||
		node_error(node, d->path, err, "%s", why.text));
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
		    struct error *err)
{
	struct config_id id;
	struct error why;
	if (!config_id_parse(node->key, &id, &why))
		return bad_id(node, node->brought_key ? node->reference : NULL,
			      component_section_names[kind], &why, err);
	char *type = memory_text_of(id.text, id.type_len);
	const struct component_factory *factory = factory_find(factories, kind, type);
	bool ok;
	if (factory) {
		ok = declare_id(inventory, kind, node, index, memory_text(id.text), factory, err);
	} else {
		ok = unknown_type(node, kind, type, factories, err);
	}
	memory_free(type);
	config_id_fini(&id);
	return ok;
}

static bool declare_section(struct inventory *inventory, const struct node *root,
			    enum component_kind kind,
			    const struct component_factory *const *factories, struct error *err)
{
	const struct node *section = node_get(root, component_section_names[kind]);
	if (!section || section->kind == NODE_NULL)
		return true;
	if (section->kind != NODE_MAP)
		return node_error(section, component_section_names[kind], err,
				  "must be a map of component IDs");
	for (size_t i = 0; i < section->count; i++)
		if (!declare(inventory, kind, section->children[i], i, factories, err))
			return false;
	return true;
}

static bool check_top(const struct node *root, struct error *err)
{
	static const char *const known[] = { "receivers",  "processors", "exporters", "connectors",
					     "extensions", "service",    NULL };
	if (!root || root->kind == NODE_NULL || (root->kind == NODE_MAP && !root->count))
		return node_error(root, "", err, "empty configuration file");
	if (root->kind != NODE_MAP)
		return node_error(root, "", err, "the configuration must be a map");
	for (size_t i = 0; i < root->count; i++) {
		size_t k = 0;
		while (known[k] && strcmp(known[k], root->children[i]->key) != 0)
			k++;
		if (!known[k])
			return node_error(root->children[i], "", err, "'' has invalid keys: %s",
					  node_shown_key(root->children[i]));
	}
	return true;
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

/* Every name must be that of a declared component. The name is trimmed, as in the declaration. */
static bool check_names(const struct inventory *inventory, struct strings *names,
			enum component_kind kind, const struct node *section, const char *path,
			struct error *err)
{
	const char *list = component_section_names[kind];
	for (size_t i = 0; i < names->count; i++) {
		struct config_id id;
		struct error why;
		const struct node *at = place_of(section, list, i);
		if (!config_id_parse(names->at[i], &id, &why))
			return bad_id(at, at->reference, path, &why, err);
		memory_free(names->at[i]);
		names->at[i] = memory_text(id.text);
		config_id_fini(&id);
		if (!is_declared(inventory, kind, names->at[i]))
			return node_error(at, path, err,
					  "references %s \"%s\" which is not configured",
					  component_kind_names[kind],
					  at->reference ? at->reference : names->at[i]);
	}
	return true;
}

static bool contradict(const struct inventory *inventory, const char *a, const char *b)
{
	const struct component_factory *factory =
		inventory_find(inventory, COMPONENT_PROCESSOR, a)->factory;
	return factory->processor->once &&
	       factory == inventory_find(inventory, COMPONENT_PROCESSOR, b)->factory;
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
				  "is for profiles",
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

static bool check_pipeline(const struct inventory *inventory, size_t index, const struct node *node,
			   struct error *err)
{
	const struct config_items *pipelines = &inventory->service.pipelines;
	struct pipeline_config *p = (struct pipeline_config *)pipelines->at + index;
	struct path top = { NULL, "service::pipelines", 0 }, step = path_step(&top, node, index);
	char text[PATH_TEXT];
	const char *path = path_text(&step, text);
	if (!check_id(pipelines->names[index], node, err))
		return false;
	if (!p->receivers.count || !p->exporters.count)
		return node_error(node, path, err, "must have at least one %s",
				  p->receivers.count ? "exporter" : "receiver");
	return check_names(inventory, &p->receivers, COMPONENT_RECEIVER, node, path, err) &&
	       check_names(inventory, &p->processors, COMPONENT_PROCESSOR, node, path, err) &&
	       check_names(inventory, &p->exporters, COMPONENT_EXPORTER, node, path, err) &&
	       check_twice(inventory, &p->processors, node, path, err);
}

static bool is_named(const struct strings *names, const char *id)
{
	size_t i = 0;
	while (i < names->count && strcmp(names->at[i], id) != 0)
		i++;
	return i < names->count;
}

static bool is_used(const struct inventory *inventory, const struct declared *d)
{
	const struct config_items *pipelines = &inventory->service.pipelines;
	const struct pipeline_config *p = pipelines->at;
	bool used = false;
	for (size_t i = 0; i < pipelines->count && d->factory->exporter; i++)
		used = used || is_named(&p[i].exporters, d->id);
	return used;
}

/* What only this exporter may write to: where it exports to, and its dead letters. */
enum { PATHS = 2 };

/* Normalised; NULL: there is none, or no pipeline uses the exporter. */
static char *owned_path(const struct inventory *inventory, const struct declared *d, size_t which)
{
	const struct exporter_ops *ops = d->factory->exporter;
	const char *path = NULL;
	if (!is_used(inventory, d))
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

static bool check_service(struct inventory *inventory, const struct node *root, struct error *err)
{
	struct service_config *service = &inventory->service;
	const struct node *node = node_get(root, "service");
	const struct node *section = node_get(node, "pipelines");
	if (!service->pipelines.count)
		return node_error(section ? section
				  : node  ? node
					  : root,
				  "service::pipelines", err,
				  "service must have at least one pipeline");
	for (size_t i = 0; i < service->pipelines.count; i++)
		if (!check_pipeline(inventory, i, section->children[i], err))
			return false;
	return check_names(inventory, &service->extensions, COMPONENT_EXTENSION, node,
			   "service::extensions", err) &&
	       check_owned_paths(inventory, err) && inventory_check_connectors(inventory, err) &&
	       inventory_check_acks(inventory, err);
}

static bool has_kind(const struct inventory *inventory, enum component_kind kind)
{
	size_t i = 0;
	while (i < inventory->count && inventory->at[i].factory->kind != kind)
		i++;
	return i < inventory->count;
}

bool inventory_read(struct inventory *inventory, const struct node *root,
		    const struct component_factory *const *factories, struct error *err)
{
	static const enum component_kind required[] = { COMPONENT_RECEIVER, COMPONENT_EXPORTER };
	inventory->root = root;
	if (!check_top(root, err))
		return false;
	for (enum component_kind kind = COMPONENT_RECEIVER; kind <= COMPONENT_EXTENSION; kind++)
		if (!declare_section(inventory, root, kind, factories, err))
			return false;
	for (size_t i = 0; i < sizeof required / sizeof *required; i++)
		if (!has_kind(inventory, required[i]))
			return node_error(root, "", err, "no %s configuration specified in config",
					  component_kind_names[required[i]]);
	return config_bind(&service_table, node_get(root, "service"), "service",
			   &inventory->service, err) &&
	       check_service(inventory, root, err);
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

static void log_inert(void *context, const char *path, const struct config_row *row)
{
	log_info(context, "Configuration key is accepted but has no effect", log_text("key", path),
		 log_text("why", row->help));
}

static void log_alias(const struct declared *d)
{
	const struct log own = { .component_kind = component_kind_names[d->factory->kind],
				 .component_id = d->id };
	char *text = memory_format("\"%s\" alias is deprecated; use \"%s\" instead",
				   d->factory->alias, d->factory->type);
	log_warn(&own, text);
	memory_free(text);
}

void inventory_log(const struct inventory *inventory, const struct log *log)
{
	for (size_t i = 0; i < inventory->count; i++) {
		const struct declared *d = &inventory->at[i];
		size_t len = strcspn(d->id, "/");
		if (d->factory->alias && strlen(d->factory->alias) == len &&
		    !strncmp(d->id, d->factory->alias, len))
			log_alias(d);
		inventory_log_inert(d->factory->config, d->node, d->path, log);
	}
}

void inventory_log_inert(const struct config_table *table, const struct node *node,
			 const char *path, const struct log *log)
{
	config_each_inert(table, node, path, log_inert, (void *)log);
}

struct print {
	bool redact, json;
	struct bytes *out;
};

static void put_key(const struct print *p, int indent, const char *key)
{
	if (p->json)
		quote_json(p->out, key, strlen(key));
	else
		bytes_format(p->out, "%*s%s", indent, "", key);
	bytes_add_text(p->out, ":");
}

/* A value that consists of one ${...} reference is printed as it was written. */
static bool print_reference(const struct print *p, const struct node *node)
{
	if (!p->redact || !node || !node->reference)
		return false;
	bytes_add_text(p->out, p->json ? "" : " ");
	quote_json(p->out, node->reference, strlen(node->reference));
	bytes_add_text(p->out, p->json ? "" : "\n");
	return true;
}

static void print_table(const struct print *p, const struct config_table *table, const void *config,
			const struct node *node, int indent)
{
	bytes_add_text(p->out, p->json ? "" : "\n");
	if (p->json)
		config_print_json(table, config, node, p->redact, p->out);
	else
		config_print(table, config, node, indent, p->redact, p->out);
}

static void print_declared(const struct print *p, const struct inventory *inventory,
			   enum component_kind kind)
{
	bool first = true;
	bytes_add_text(p->out, p->json ? "{" : "\n");
	for (size_t i = 0; i < inventory->count; i++) {
		const struct declared *d = &inventory->at[i];
		if (d->factory->kind != kind)
			continue;
		bytes_add_text(p->out, p->json && !first ? "," : "");
		first = false;
		put_key(p, 2, d->id);
		if (!print_reference(p, d->node))
			print_table(p, d->factory->config, d->config, d->node, 4);
	}
	bytes_add_text(p->out, p->json ? "}" : "");
}

static void print_service(const struct print *p, const struct inventory *inventory,
			  struct view telemetry)
{
	const struct node *node = node_get(inventory->root, "service");
	struct service_config service = inventory->service;
	service.telemetry = NULL; /* bound where it is used */
	if (print_reference(p, node))
		return;
	if (p->json) {
		bytes_add_byte(p->out, '{');
		config_print_members(&service_table, &service, node, p->redact, p->out);
		bytes_add_byte(p->out, ','); /* `pipelines` always follows */
	} else {
		print_table(p, &service_table, &service, node, 2);
	}
	put_key(p, 2, "telemetry");
	if (!print_reference(p, node_get(node, "telemetry"))) {
		bytes_add_text(p->out, p->json ? "" : "\n");
		bytes_add(p->out, telemetry.at, telemetry.len);
	}
	bytes_add_text(p->out, p->json ? "}" : "");
}

void inventory_print(const struct inventory *inventory, bool redact, bool json,
		     struct view telemetry, struct bytes *out)
{
	const struct print p = { redact, json, out };
	bytes_add_text(out, json ? "{" : "");
	for (enum component_kind kind = COMPONENT_RECEIVER; kind <= COMPONENT_EXTENSION; kind++) {
		const char *name = component_section_names[kind];
		if (!has_kind(inventory, kind))
			continue;
		put_key(&p, 0, name);
		if (!print_reference(&p, node_get(inventory->root, name)))
			print_declared(&p, inventory, kind);
		bytes_add_text(out, json ? "," : "");
	}
	put_key(&p, 0, "service");
	print_service(&p, inventory, telemetry);
	bytes_add_text(out, json ? "}\n" : "");
}
