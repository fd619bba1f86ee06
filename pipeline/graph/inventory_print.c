/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/graph/inventory.h"

#include "base/memory.h"
#include "base/quote.h"
#include "config/print.h"

#include <string.h>

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
		if (!inventory_has(inventory, kind))
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
