/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/graph/inventory_private.h"

#include "base/hash.h"
#include "base/memory.h"
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

void inventory_list_kinds(const bool has[COMPONENT_EXTENSION + 1], char out[KINDS_TEXT])
{
	static const char *const names[] = { "a receiver", "a processor", "an exporter",
					     "a connector", "an extension" };
	*out = '\0';
	for (enum component_kind kind = COMPONENT_RECEIVER; kind <= COMPONENT_EXTENSION; kind++) {
		size_t used = strlen(out);
		if (has[kind])
			snprintf(out + used, KINDS_TEXT - used, "%s%s", used ? " or " : "",
				 names[kind]);
	}
}

/* The kinds that have such a type. Returns out. */
static const char *kinds_of(const struct inventory *inventory, const char *type,
			    char out[KINDS_TEXT])
{
	bool has[COMPONENT_EXTENSION + 1];
	for (enum component_kind kind = COMPONENT_RECEIVER; kind <= COMPONENT_EXTENSION; kind++)
		has[kind] = factory_find(inventory->factories, kind, type);
	inventory_list_kinds(has, out);
	return out;
}

static bool unknown_type(const struct inventory *inventory, const struct node *node,
			 enum component_kind kind, const char *type, struct error *err)
{
	struct bytes valid;
	char meant[SUGGEST_TEXT], kinds[KINDS_TEXT], other[SUGGEST_TEXT] = "";
	struct suggest suggest = { .name = node->brought_key ? NULL : type };
	bytes_init(&valid, 4096);
	for (const struct component_factory *const *f = inventory->factories; *f; f++) {
		if ((*f)->kind != kind)
			continue;
		bytes_format(&valid, "%s%s", valid.len ? " " : "", (*f)->type);
		suggest_hint(&suggest, (*f)->hints);
		suggest_try(&suggest, (*f)->type);
	}
	if (suggest.name && *kinds_of(inventory, type, kinds))
		snprintf(other, sizeof other, " (it is %s)", kinds);
	node_error(node, component_section_names[kind], err,
		   "unknown type: \"%s\" for id: \"%s\" (valid values: [%.*s])%s",
		   suggest.name ? type : "?", node_shown_key(node), (int)valid.len,
		   valid.at ? (char *)valid.at : "",
		   *other ? other : suggest_text(&suggest, meant));
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

struct faults declared_faults(const struct declared *d, struct problems *problems)
{
	return (struct faults){ d->factory->config, d->node, d->path, problems };
}

/* ---- declarations, by kind and ID */

/* The slot of the declaration, or the empty one for it. */
static uint32_t *slot_of(const struct inventory *inventory, enum component_kind kind,
			 const char *id)
{
	size_t mask = inventory->slot_count - 1;
	size_t i = (hash_bytes(id, strlen(id)) + kind) & mask;
	for (; inventory->slots[i]; i = (i + 1) & mask) {
		const struct declared *d = &inventory->at[inventory->slots[i] - 1];
		if (d->factory->kind == kind && !strcmp(d->id, id))
			break;
	}
	return &inventory->slots[i];
}

const struct declared *inventory_find(const struct inventory *inventory, enum component_kind kind,
				      const char *id)
{
	uint32_t found = inventory->count ? *slot_of(inventory, kind, id) : 0;
	return found ? &inventory->at[found - 1] : NULL;
}

/* At most half of the slots are used. */
static void grow(struct inventory *inventory)
{
	if (2 * (inventory->count + 1) <= inventory->slot_count)
		return;
	inventory->slot_count = inventory->slot_count ? 2 * inventory->slot_count : 64;
	memory_free(inventory->slots);
	inventory->slots = memory_array(inventory->slot_count, sizeof *inventory->slots);
	for (size_t i = 0; i < inventory->count; i++) {
		const struct declared *d = &inventory->at[i];
		*slot_of(inventory, d->factory->kind, d->id) = (uint32_t)i + 1;
	}
}

static struct declared *append(struct inventory *inventory, const struct declared *d)
{
	grow(inventory);
	uint32_t *slot = slot_of(inventory, d->factory->kind, d->id);
	inventory->at =
		memory_resize(inventory->at, (inventory->count + 1) * sizeof *inventory->at);
	inventory->at[inventory->count] = *d;
	*slot = (uint32_t)++inventory->count;
	return &inventory->at[inventory->count - 1];
}

/* Takes ownership of the ID string. False: it is taken. */
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
			   "the ID \"%s\" is configured twice, with different blanks",
			   node_shown_key(node));
		memory_free(id);
		return problems_add(problems, &why);
	}
	struct declared *d =
		append(inventory,
		       &(struct declared){ .factory = factory,
					   .id = id,
					   .path = memory_text(path_text(&path, text)),
					   .node = node,
					   .config = memory_new(factory->config->size) });
	size_t before = problems_total(problems);
	config_bind_all(factory->config, node, d->path, d->config, problems);
	struct faults faults = declared_faults(d, problems);
	if (factory->exporter)
		delivery_config_check(inventory_delivery(d), &faults);
	d->sound = problems_total(problems) == before && !problems_touch(problems, node);
	return true;
}

bool inventory_bad_id(const struct node *node, const char *reference, const char *path,
		      const struct error *why, struct error *err)
{
	if (reference)
		return node_error(node, path, err, "\"%s\" is not a valid component ID", reference);
	return node_error(node, path, err, "%s", why->text);
}

static bool declare(struct inventory *inventory, enum component_kind kind, const struct node *node,
		    size_t index, struct problems *problems)
{
	struct config_id id;
	struct error why, placed;
	bool declared = false;
	if (!config_id_parse(node->key, &id, &why)) {
		inventory_bad_id(node, node->brought_key ? node->reference : NULL,
				 component_section_names[kind], &why, &placed);
		return problems_add(problems, &placed);
	}
	char *type = memory_text_of(id.text, id.type_len);
	const struct component_factory *factory = factory_find(inventory->factories, kind, type);
	if (factory)
		declared = declare_id(inventory, kind, node, index, memory_text(id.text), factory,
				      problems);
	else if (!unknown_type(inventory, node, kind, type, &placed))
		problems_add(problems, &placed);
	memory_free(type);
	config_id_fini(&id);
	return declared;
}

static void declare_section(struct inventory *inventory, enum component_kind kind,
			    struct problems *problems)
{
	const struct node *section = node_get(inventory->root, component_section_names[kind]);
	struct error why;
	if (!section || section->kind == NODE_NULL || section->broken)
		return;
	if (section->kind != NODE_MAP) {
		node_error(section, component_section_names[kind], &why,
			   "must be a map of component IDs");
		problems_add(problems, &why);
		return;
	}
	for (size_t i = 0; i < section->count; i++)
		if (!declare(inventory, kind, section->children[i], i, problems))
			array_push(&inventory->faulty[kind]) = section->children[i];
}

static const char *const sections[] = { "receivers",  "processors", "exporters", "connectors",
					"extensions", "service",    NULL };
/* What belongs into the section `service`. */
static const struct config_hint root_hints[] = { { "pipelines", .use = "service::pipelines" },
						 { "telemetry", .use = "service::telemetry" },
						 { 0 } };

static bool is_section(const struct node *entry)
{
	size_t i = 0;
	while (sections[i] && strcmp(sections[i], entry->key) != 0)
		i++;
	return sections[i];
}

static void suggest_section(const struct node *entry, struct suggest *suggest)
{
	*suggest = (struct suggest){ .name = entry->brought_key ? NULL : entry->key };
	suggest_hint(suggest, root_hints);
	for (size_t i = 0; sections[i]; i++)
		suggest_try(suggest, sections[i]);
}

/* The type of the component that an entry of the root would be if it stood in a section; "": it
 * would be none. */
static char *type_at_root(const struct node *entry)
{
	struct config_id id;
	if (entry->brought_key || !config_id_parse(entry->key, &id, NULL))
		return memory_text("");
	char *type = memory_text_of(id.text, id.type_len);
	config_id_fini(&id);
	return type;
}

static bool belongs_into(const struct inventory *inventory, const struct node *entry,
			 const char *section)
{
	char *type = type_at_root(entry);
	bool found = false;
	for (enum component_kind kind = COMPONENT_RECEIVER; kind <= COMPONENT_EXTENSION; kind++)
		found |= !strcmp(component_section_names[kind], section) &&
			 factory_find(inventory->factories, kind, type);
	memory_free(type);
	return found;
}

bool inventory_is_elsewhere(const struct inventory *inventory, const char *section,
			    const struct problems *problems)
{
	struct suggest suggest;
	for (size_t i = 0; i < inventory->root->count; i++) {
		const struct node *entry = inventory->root->children[i];
		if (is_section(entry))
			continue;
		suggest_section(entry, &suggest);
		if (suggest_is(&suggest, section) || belongs_into(inventory, entry, section))
			return true;
	}
	return problems->incomplete;
}

static bool check_root(const struct node *root, struct error *err)
{
	if (!root || root->kind == NODE_NULL || (root->kind == NODE_MAP && !root->count))
		return node_error(root, "", err, "empty configuration file");
	return root->kind == NODE_MAP ||
	       node_error(root, "", err, "the configuration must be a map");
}

static void refuse_section(const struct inventory *inventory, const struct node *entry,
			   struct problems *problems)
{
	struct suggest suggest;
	char meant[SUGGEST_TEXT], kinds[KINDS_TEXT], *type = type_at_root(entry);
	struct error why;
	suggest_section(entry, &suggest);
	suggest_text(&suggest, meant);
	if (*kinds_of(inventory, type, kinds))
		snprintf(meant, sizeof meant, " (`%.60s` is %s; indent it in its section)", type,
			 kinds);
	node_error(entry, "", &why,
		   "'' has invalid keys: %.100s%s (valid keys: [receivers processors exporters "
		   "connectors extensions service])",
		   node_shown_key(entry), meant);
	problems_add(problems, &why);
	memory_free(type);
}

static void check_sections(const struct inventory *inventory, struct problems *problems)
{
	const struct node *root = inventory->root;
	for (size_t i = 0; i < root->count; i++)
		if (!is_section(root->children[i]))
			refuse_section(inventory, root->children[i], problems);
}

/* The checks of components together. named: each name is that of a component. Returns whether it is
 * known how they are connected. */
static bool check_whole(const struct inventory *inventory, bool named, struct problems *problems)
{
	inventory_check_paths(inventory, problems);
	if (named)
		inventory_check_connectors(inventory, problems);
	if (!inventory_check_cycles(inventory, problems))
		return false;
	inventory_check_acks(inventory, problems);
	return named;
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
		    inventory_is_elsewhere(inventory, component_section_names[required[i]],
					   problems) ||
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
	inventory->factories = factories;
	if (!problems->incomplete && !check_root(root, &why))
		return problems_add(problems, &why);
	check_sections(inventory, problems);
	for (enum component_kind kind = COMPONENT_RECEIVER; kind <= COMPONENT_EXTENSION; kind++)
		declare_section(inventory, kind, problems);
	check_kinds(inventory, root, problems);
	config_bind_all(&service_table, node_get(root, "service"), "service", &inventory->service,
			problems);
	bool named = inventory_check_service(inventory, problems) && !problems->incomplete;
	inventory->connected = check_whole(inventory, named, problems);
	return problems->count == before;
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
	memory_free(inventory->slots);
	for (enum component_kind kind = COMPONENT_RECEIVER; kind <= COMPONENT_EXTENSION; kind++)
		memory_free(inventory->faulty[kind].at);
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
