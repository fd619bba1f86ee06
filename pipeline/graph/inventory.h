/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_GRAPH_INVENTORY_H
#define PIPELINE_GRAPH_INVENTORY_H

#include "pipeline/component.h"

/*
 * What the configuration declares: every component with its bound and checked configuration, used
 * or not (as in the Collector, unused ones are checked but never built), and the service section.
 */
struct declared {
	const struct component_factory *factory;
	char *id;   /* "otlp_grpc/a", as in the YAML */
	char *path; /* "exporters::otlp_grpc/a"; as errors may show it */
	const struct node *node;
	void *config;
};

struct pipeline_config {
	struct strings receivers, processors, exporters;
};

struct service_config {
	struct strings extensions;
	struct config_items pipelines; /* of struct pipeline_config */
	const struct node *telemetry;
};

struct delivery_config;

struct inventory {
	const struct node *root; /* borrowed */
	struct declared *at;
	size_t count;
	struct service_config service;
};

extern const struct config_table service_table;
extern const char *const component_kind_names[];    /* "receiver" ...; by enum component_kind */
extern const char *const component_section_names[]; /* "receivers" ... */

/*
 * root: the whole tree. Everything that can be wrong without building anything is checked:
 * afterwards every name of the service section is that of a declared component. On failure what was
 * read is released by inventory_fini.
 */
bool inventory_read(struct inventory *inventory, const struct node *root,
		    const struct component_factory *const *factories, struct error *err);
void inventory_fini(struct inventory *inventory);

/* NULL if it is not declared. */
const struct declared *inventory_find(const struct inventory *inventory, enum component_kind kind,
				      const char *id);

/* Of an exporter: queue, retries, limits and timeout. */
const struct delivery_config *inventory_delivery(const struct declared *declared);

/* How many sends may hang at once, each in a thread of the pool: those of exporters that are not
 * prompt. */
uint32_t inventory_blocking_sends(const struct inventory *inventory);

/* By type or alias; NULL if there is none of that kind. */
const struct component_factory *factory_find(const struct component_factory *const *factories,
					     enum component_kind kind, const char *type);

/* Logs aliases that are deprecated and keys that are without effect, once each. */
void inventory_log(const struct inventory *inventory, const struct log *log);

/* The keys of one section that are accepted and without effect. */
void inventory_log_inert(const struct config_table *table, const struct node *node,
			 const char *path, const struct log *log);

/* Everything, as YAML or as a JSON object with a line end. telemetry: service::telemetry printed
 * alike, at indent 4. */
void inventory_print(const struct inventory *inventory, bool redact, bool json,
		     struct view telemetry, struct bytes *out);

#endif
