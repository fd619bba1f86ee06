/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/profiles_only.h"

#include "base/memory.h"
#include "config/id.h"
#include "gateway/components.h"
#include "pipeline/graph/inventory.h"

#include <stdio.h>
#include <string.h>

static struct node *entry_of(struct node *map, const char *key)
{
	return (struct node *)node_get(map, key);
}

/* "" if the ID is invalid: it stays, for the check to report. */
static char *type_of(const char *id)
{
	struct config_id parsed;
	if (!config_id_parse(id, &parsed, NULL))
		return memory_text("");
	char *type = memory_text_of(parsed.text, parsed.type_len);
	config_id_fini(&parsed);
	return type;
}

static bool is_other_signal(const char *id)
{
	static const char *const signals[] = { "traces", "metrics", "logs" };
	char *type = type_of(id);
	bool other = false;
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		other = other || !strcmp(type, signals[i]);
	memory_free(type);
	return other;
}

static void warn_pipeline(const struct log *log, const char *key, const char *at)
{
	log_warn(log, "Skipping a pipeline that is not for profiles", log_text("key", key),
		 log_text("at", at));
}

static void warn_component(const struct log *log, const char *key, const char *at)
{
	log_warn(log, "Skipping a component that no pipeline for profiles uses",
		 log_text("key", key), log_text("at", at));
}

static void warn_extension(const struct log *log, const char *key, const char *at)
{
	log_warn(log, "Skipping an extension that this build does not have", log_text("key", key),
		 log_text("at", at));
}

static void remove_entry(struct node *map, size_t index, const char *section,
			 void (*warn)(const struct log *log, const char *key, const char *at),
			 const struct log *log)
{
	const struct node *entry = map->children[index];
	char key[PATH_TEXT], at[PATH_TEXT];
	snprintf(key, sizeof key, "%s::%s", section, node_shown_key(entry));
	const char *source = entry->source ? entry->source : "";
	if (entry->line)
		snprintf(at, sizeof at, "%.150s:%d:%d", source, entry->line, entry->column);
	else
		snprintf(at, sizeof at, "%.150s", source);
	warn(log, key, at);
	node_remove(map, index);
}

static void remove_pipelines(struct node *pipelines, const struct log *log)
{
	for (size_t i = pipelines ? pipelines->count : 0; i-- > 0;)
		if (pipelines->children[i]->key && is_other_signal(pipelines->children[i]->key))
			remove_entry(pipelines, i, "service::pipelines", warn_pipeline, log);
}

/* Is the ID one of the names, which may have blanks around them? */
static bool names(const char *list, const char *id)
{
	for (size_t len; *list; list += len + (list[len] == ',')) {
		len = strcspn(list, ",");
		size_t from = strspn(list, " ");
		size_t width = from < len ? len - from : 0;
		while (width && list[from + width - 1] == ' ')
			width--;
		if (strlen(id) == width && !strncmp(list + from, id, width))
			return true;
	}
	return false;
}

static bool lists(const struct node *list, const char *id)
{
	bool found = list && list->text && names(list->text, id);
	for (size_t i = 0; list && i < list->count && !found; i++)
		found = list->children[i]->text && names(list->children[i]->text, id);
	return found;
}

/* Does the pipeline name the component where its kind stands? */
static bool uses(const struct node *pipeline, enum component_kind kind, const char *id)
{
	static const char *const lists_of[][2] = {
		[COMPONENT_RECEIVER] = { "receivers", "receivers" },
		[COMPONENT_PROCESSOR] = { "processors", "processors" },
		[COMPONENT_EXPORTER] = { "exporters", "exporters" },
		[COMPONENT_CONNECTOR] = { "exporters", "receivers" },
	};
	return lists(node_get(pipeline, lists_of[kind][0]), id) ||
	       lists(node_get(pipeline, lists_of[kind][1]), id);
}

static bool is_used(const struct node *pipelines, enum component_kind kind, const char *id)
{
	bool used = false;
	for (size_t i = 0; pipelines && i < pipelines->count && !used; i++)
		used = uses(pipelines->children[i], kind, id);
	return used;
}

static bool is_lacking(enum component_kind kind, const char *id)
{
	char *type = type_of(id);
	bool lacking = *type && !factory_find(components, kind, type);
	memory_free(type);
	return lacking;
}

/* Is this the name of a component of the kind, or of a connector where one may stand? */
static bool is_declared(const struct node *root, enum component_kind kind, const char *name)
{
	const char *const sections[] = { component_section_names[kind], "connectors" };
	for (size_t k = 0; k < (kind == COMPONENT_PROCESSOR ? 1 : 2); k++) {
		const struct node *section = node_get(root, sections[k]);
		for (size_t i = 0; section && i < section->count; i++)
			if (section->children[i]->key && names(name, section->children[i]->key))
				return true;
	}
	return false;
}

/* Is it known which components of the kind a list names? Receivers and exporters must have one. */
static bool is_list_sound(const struct node *root, const struct node *pipeline,
			  enum component_kind kind)
{
	const struct node *list = node_get(pipeline, component_section_names[kind]);
	if (!list)
		return kind == COMPONENT_PROCESSOR;
	bool sound = !list->broken && list->kind != NODE_MAP;
	for (size_t i = 0; i < list->count && sound; i++) {
		const struct node *item = list->children[i];
		sound = !item->broken && item->text && is_declared(root, kind, item->text);
	}
	return sound;
}

static bool is_pipeline_sound(const struct node *root, const struct node *pipeline)
{
	bool sound = pipeline->kind == NODE_MAP && !pipeline->broken;
	size_t known = 0;
	for (enum component_kind kind = COMPONENT_RECEIVER; kind <= COMPONENT_EXPORTER; kind++) {
		known += node_get(pipeline, component_section_names[kind]) != NULL;
		sound = sound && is_list_sound(root, pipeline, kind);
	}
	return sound && known == pipeline->count;
}

/* Is it known which components are used? Not if an error, which is reported later, may hide one. */
static bool is_use_known(const struct node *root, const struct node *pipelines,
			 const struct problems *problems)
{
	bool known = pipelines && pipelines->count && pipelines->kind == NODE_MAP &&
		     !pipelines->broken && !problems->incomplete;
	for (size_t i = 0; known && i < pipelines->count; i++)
		known = is_pipeline_sound(root, pipelines->children[i]);
	return known;
}

static void remove_unused(struct node *root, const struct node *pipelines, enum component_kind kind,
			  const struct log *log)
{
	const char *name = component_section_names[kind];
	struct node *section = entry_of(root, name);
	for (size_t i = section && section->kind == NODE_MAP ? section->count : 0; i-- > 0;)
		if (!is_used(pipelines, kind, section->children[i]->key))
			remove_entry(section, i, name, warn_component, log);
}

/* What this build does not have, and is probably of another signal, would only add errors. */
static void remove_foreign(struct node *root, const struct node *pipelines,
			   enum component_kind kind)
{
	struct node *section = entry_of(root, component_section_names[kind]);
	for (size_t i = section && section->kind == NODE_MAP ? section->count : 0; i-- > 0;) {
		const char *id = section->children[i]->key;
		if (is_lacking(kind, id) && !is_used(pipelines, kind, id))
			node_remove(section, i);
	}
}

static void remove_extensions(struct node *root, struct node *service, const struct log *log)
{
	struct node *section = entry_of(root, "extensions");
	struct node *list = entry_of(service, "extensions");
	for (size_t i = list && list->kind == NODE_LIST ? list->count : 0; i-- > 0;)
		if (list->children[i]->text &&
		    is_lacking(COMPONENT_EXTENSION, list->children[i]->text))
			node_remove(list, i);
	for (size_t i = section && section->kind == NODE_MAP ? section->count : 0; i-- > 0;)
		if (is_lacking(COMPONENT_EXTENSION, section->children[i]->key))
			remove_entry(section, i, "extensions", warn_extension, log);
}

void profiles_only_apply(struct node *root, const struct problems *problems, const struct log *log)
{
	struct node *service = entry_of(root, "service");
	struct node *pipelines = entry_of(service, "pipelines");
	remove_pipelines(pipelines, log);
	bool known = is_use_known(root, pipelines, problems);
	for (enum component_kind kind = COMPONENT_RECEIVER; kind <= COMPONENT_CONNECTOR; kind++)
		if (known)
			remove_unused(root, pipelines, kind, log);
		else
			remove_foreign(root, pipelines, kind);
	remove_extensions(root, service, log);
}
