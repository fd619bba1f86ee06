/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/graph/inventory_private.h"

#include "base/memory.h"
#include "config/id.h"
#include "config/suggest.h"

#include <stdio.h>
#include <string.h>

/* The checks of the section `service`: its pipelines, and the components that it names. */

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

/* A declaration of this ID that has an error, which has been reported: its type is unknown, or the
 * error is that of the section as a whole. */
static bool is_written_in(const struct inventory *inventory, enum component_kind kind,
			  const char *id, const struct problems *problems)
{
	const char *name = component_section_names[kind];
	const struct node *section = node_get(inventory->root, name);
	if (inventory_is_elsewhere(inventory, name, problems) ||
	    (section &&
	     (section->broken || (section->kind != NODE_NULL && section->kind != NODE_MAP))))
		return true;
	for (uint32_t i = 0; i < inventory->faulty[kind].count; i++)
		if (!strcmp(inventory->faulty[kind].at[i]->key, id))
			return true;
	return false;
}

static bool is_written(const struct inventory *inventory, enum component_kind kind, const char *id,
		       const struct problems *problems)
{
	bool connects = kind == COMPONENT_RECEIVER || kind == COMPONENT_EXPORTER;
	return is_written_in(inventory, kind, id, problems) ||
	       (connects && is_written_in(inventory, COMPONENT_CONNECTOR, id, problems));
}

/* The same of an ID that this one may be meant to be. */
static void suggest_written(const struct inventory *inventory, enum component_kind kind,
			    struct suggest *suggest)
{
	for (uint32_t i = 0; i < inventory->faulty[kind].count; i++)
		suggest_try(suggest, inventory->faulty[kind].at[i]->key);
}

static bool is_meant(const struct inventory *inventory, enum component_kind kind, const char *id)
{
	struct suggest suggest = { .name = id };
	suggest_written(inventory, kind, &suggest);
	if (kind == COMPONENT_RECEIVER || kind == COMPONENT_EXPORTER)
		suggest_written(inventory, COMPONENT_CONNECTOR, &suggest);
	return suggest.best;
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

/* The kinds of the components that are declared with this ID. Returns out. */
static const char *kinds_of(const struct inventory *inventory, const char *id, char out[KINDS_TEXT])
{
	bool has[COMPONENT_EXTENSION + 1];
	for (enum component_kind kind = COMPONENT_RECEIVER; kind <= COMPONENT_EXTENSION; kind++)
		has[kind] = inventory_find(inventory, kind, id);
	inventory_list_kinds(has, out);
	return out;
}

/* The name is trimmed, as in the declaration. */
static bool check_name(const struct inventory *inventory, char **name, enum component_kind kind,
		       const struct node *at, const char *path, struct problems *problems)
{
	struct config_id id;
	struct error why, placed;
	char meant[SUGGEST_TEXT], kinds[KINDS_TEXT];
	if (!config_id_parse(*name, &id, &why)) {
		inventory_bad_id(at, at->reference, path, &why, &placed);
		return problems_add_at(problems, at, &placed);
	}
	memory_free(*name);
	*name = memory_text(id.text);
	config_id_fini(&id);
	if (is_declared(inventory, kind, *name))
		return true;
	if (is_written(inventory, kind, *name, problems))
		return false;
	const char *shown = at->reference ? at->reference : *name;
	if (*kinds_of(inventory, *name, kinds)) {
		node_error(at, path, &placed,
			   "references %s \"%s\" which is not configured; \"%s\" is %s",
			   component_kind_names[kind], shown, shown, kinds);
		return problems_add_at(problems, at, &placed);
	}
	bool full = problems_full(problems); /* then it is only counted */
	if (!full && is_meant(inventory, kind, *name))
		return false;
	struct suggest suggest = { .name = at->reference || full ? NULL : *name };
	if (suggest.name)
		suggest_id(inventory, kind, &suggest);
	node_error(at, path, &placed, "references %s \"%s\" which is not configured%s",
		   component_kind_names[kind], shown, suggest_text(&suggest, meant));
	return problems_add_at(problems, at, &placed);
}

/* Every name must be that of a declared component. False also if one is that of a declaration with
 * an error. */
static bool check_names(const struct inventory *inventory, struct strings *names,
			enum component_kind kind, const struct node *section, const char *path,
			struct problems *problems)
{
	const char *list = component_section_names[kind];
	bool ok = true;
	for (size_t i = 0; i < names->count; i++) {
		const struct node *at = place_of(section, list, i);
		if (problems_has(problems, at))
			ok = false;
		else
			ok &= check_name(inventory, &names->at[i], kind, at, path, problems);
	}
	return ok;
}

static bool contradict(const struct inventory *inventory, const char *a, const char *b)
{
	const struct declared *one = inventory_find(inventory, COMPONENT_PROCESSOR, a);
	const struct declared *other = inventory_find(inventory, COMPONENT_PROCESSOR, b);
	return one && other && one->factory == other->factory && one->factory->processor->once;
}

/* What is wrong with the processor because of those before it; NULL: nothing. */
static const char *find_repetition(const struct inventory *inventory, const struct strings *names,
				   size_t i)
{
	const char *fault = NULL;
	for (size_t k = 0; k < i; k++) {
		if (!strcmp(names->at[k], names->at[i]))
			return "references processor \"%s\" multiple times";
		if (contradict(inventory, names->at[k], names->at[i]))
			fault = "processor \"%s\" is the second of its type; a pipeline may have "
				"at most one";
	}
	return fault;
}

static void check_twice(const struct inventory *inventory, const struct strings *names,
			const struct node *section, const char *path, struct problems *problems)
{
	for (size_t i = 1; i < names->count; i++) {
		const char *fault = find_repetition(inventory, names, i);
		const struct node *at = place_of(section, "processors", i);
		struct error why;
		if (!fault || problems_has(problems, at))
			continue;
		node_error(at, path, &why, fault, at->reference ? at->reference : names->at[i]);
		problems_add_at(problems, at, &why);
	}
}

static bool is_type(const struct config_id *id, const char *type)
{
	return strlen(type) == id->type_len && strncmp(id->text, type, id->type_len) == 0;
}

/* About names that are no pipelines. */
static const struct config_hint pipeline_hints[] = {
	{ "receivers", .text = "put it under a pipeline, such as `profiles`" },
	{ "processors", .text = "put it under a pipeline, such as `profiles`" },
	{ "exporters", .text = "put it under a pipeline, such as `profiles`" },
	{ 0 }
};

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
				  "unknown pipeline signal: \"%s\"; use profiles or profiles/NAME",
				  node->reference);
	char meant[SUGGEST_TEXT];
	struct suggest suggest = { .name = id->text };
	suggest_hint(&suggest, pipeline_hints);
	return node_error(node, "service::pipelines", err,
			  "unknown pipeline signal: \"%.*s\"; use profiles or profiles/NAME%s",
			  (int)id->type_len, id->text, suggest_text(&suggest, meant));
}

static bool check_id(const char *text, const struct node *node, struct error *err)
{
	struct config_id id;
	struct error why;
	if (!config_id_parse(text, &id, &why))
		return inventory_bad_id(node, node->brought_key ? node->reference : NULL,
					"service::pipelines", &why, err);
	bool ok = check_signal(&id, node, err);
	config_id_fini(&id);
	return ok;
}

static struct faults service_faults(const struct inventory *inventory, struct problems *problems)
{
	return (struct faults){ &service_table, node_get(inventory->root, "service"), "service",
				problems };
}

static bool lacks(const struct faults *service, const struct strings *list, size_t index,
		  const char *key)
{
	char path[PATH_TEXT];
	snprintf(path, sizeof path, "pipelines[%zu]::%s", index, key);
	return !list->count && faults_know(service, path);
}

static void check_lists(const struct inventory *inventory, const struct pipeline_config *p,
			size_t index, const struct node *node, const char *path,
			struct problems *problems)
{
	const struct faults service = service_faults(inventory, problems);
	bool receiver = lacks(&service, &p->receivers, index, "receivers");
	struct error why;
	if (!receiver && !lacks(&service, &p->exporters, index, "exporters"))
		return;
	const struct node *list = node_get(node, receiver ? "receivers" : "exporters");
	node_error(list ? list : node, path, &why, "must have at least one %s",
		   receiver ? "receiver" : "exporter");
	problems_add(problems, &why);
}

/* Returns whether each name is that of a component. */
static bool check_pipeline(const struct inventory *inventory, size_t index, const struct node *node,
			   struct problems *problems)
{
	const struct config_items *pipelines = &inventory->service.pipelines;
	struct pipeline_config *p = (struct pipeline_config *)pipelines->at + index;
	struct path top = { NULL, "service::pipelines", 0 }, step = path_step(&top, node, index);
	char text[PATH_TEXT];
	struct error why;
	const char *path = path_text(&step, text);
	bool ok = check_id(pipelines->names[index], node, &why);
	if (!ok)
		problems_add(problems, &why);
	if (node->broken)
		return false;
	if (ok && !problems_has(problems, node))
		check_lists(inventory, p, index, node, path, problems);
	ok &= check_names(inventory, &p->receivers, COMPONENT_RECEIVER, node, path, problems);
	ok &= check_names(inventory, &p->exporters, COMPONENT_EXPORTER, node, path, problems);
	ok &= check_names(inventory, &p->processors, COMPONENT_PROCESSOR, node, path, problems);
	check_twice(inventory, &p->processors, node, path, problems);
	return ok;
}

bool inventory_check_service(struct inventory *inventory, struct problems *problems)
{
	const struct node *root = inventory->root;
	struct service_config *service = &inventory->service;
	const struct node *node = node_get(root, "service");
	const struct node *section = node_get(node, "pipelines");
	const struct faults faults = service_faults(inventory, problems);
	struct error why;
	bool ok = true;
	if (!service->pipelines.count && faults_know(&faults, "pipelines") &&
	    !inventory_is_elsewhere(inventory, "service", problems)) {
		node_error(section ? section
			   : node  ? node
				   : root,
			   "service::pipelines", &why, "service must have at least one pipeline");
		problems_add(problems, &why);
	}
	for (size_t i = 0; i < service->pipelines.count; i++)
		ok &= check_pipeline(inventory, i, section->children[i], problems);
	return check_names(inventory, &service->extensions, COMPONENT_EXTENSION, node,
			   "service::extensions", problems) &&
	       ok;
}
