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
	snprintf(at, sizeof at, "%.150s:%d:%d", entry->source ? entry->source : "", entry->line,
		 entry->column);
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

static bool is_used(const struct node *pipelines, const char *id)
{
	bool used = false;
	for (size_t i = 0; pipelines && i < pipelines->count && !used; i++)
		for (enum component_kind kind = COMPONENT_RECEIVER; kind <= COMPONENT_EXPORTER;
		     kind++)
			used = used || lists(node_get(pipelines->children[i],
						      component_section_names[kind]),
					     id);
	return used;
}

static bool is_lacking(const char *id)
{
	char *type = type_of(id);
	bool lacking = *type && !factory_find(components, COMPONENT_EXTENSION, type);
	memory_free(type);
	return lacking;
}

static void remove_components(struct node *root, const struct node *pipelines,
			      enum component_kind kind, const struct log *log)
{
	const char *name = component_section_names[kind];
	struct node *section = entry_of(root, name);
	for (size_t i = section && section->kind == NODE_MAP ? section->count : 0; i-- > 0;)
		if (!is_used(pipelines, section->children[i]->key))
			remove_entry(section, i, name, warn_component, log);
}

static void remove_extensions(struct node *root, struct node *service, const struct log *log)
{
	struct node *section = entry_of(root, "extensions");
	struct node *list = entry_of(service, "extensions");
	for (size_t i = list && list->kind == NODE_LIST ? list->count : 0; i-- > 0;)
		if (list->children[i]->text && is_lacking(list->children[i]->text))
			node_remove(list, i);
	for (size_t i = section && section->kind == NODE_MAP ? section->count : 0; i-- > 0;)
		if (is_lacking(section->children[i]->key))
			remove_entry(section, i, "extensions", warn_extension, log);
}

void profiles_only_apply(struct node *root, const struct problems *problems, const struct log *log)
{
	struct node *service = entry_of(root, "service");
	struct node *pipelines = entry_of(service, "pipelines");
	remove_pipelines(pipelines, log);
	for (enum component_kind kind = COMPONENT_RECEIVER;
	     kind <= COMPONENT_CONNECTOR && !problems->incomplete; kind++)
		remove_components(root, pipelines, kind, log);
	remove_extensions(root, service, log);
}
