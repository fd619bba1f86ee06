/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_GRAPH_INVENTORY_H
#define PIPELINE_GRAPH_INVENTORY_H

#include "base/array.h"
#include "pipeline/component.h"
#include "pipeline/graph/service_config.h"

/* The declarations of the configuration: every component with its bound and checked configuration,
 * and the service section. Unused components are included: as in the Collector, they are checked
 * but never built. */
struct declared {
	const struct component_factory *factory;
	char *id;   /* "otlp_grpc/a", as in the YAML */
	char *path; /* "exporters::otlp_grpc/a"; in the form for error messages */
	const struct node *node;
	void *config;
	bool sound; /* without an error of its own */
};

struct delivery_config;

struct inventory {
	const struct node *root; /* borrowed */
	const struct component_factory *const *factories;
	struct declared *at;
	size_t count;
	uint32_t *slots; /* hash table of kinds and IDs: index into `at` + 1; 0: empty */
	size_t slot_count;
	/* the entries of each section that are in error and not in `at` */
	ARRAY(const struct node *) faulty[COMPONENT_EXTENSION + 1];
	struct service_config service;
	/* each name in the section `service` is that of a component; connectors form no cycle */
	bool connected;
};

extern const char *const component_kind_names[];    /* "receiver" ...; by enum component_kind */
extern const char *const component_section_names[]; /* "receivers" ... */

/* root: the whole tree. Makes all checks that do not need a built component, and reports every
 * error. After a failure too, inventory_fini frees what was read. */
bool inventory_read(struct inventory *inventory, const struct node *root,
		    const struct component_factory *const *factories, struct problems *problems);
void inventory_fini(struct inventory *inventory);
/* Visits all rows of the components that pipelines and service::extensions name, and of the section
 * `service`. */
void inventory_walk(const struct inventory *inventory,
		    void (*visit)(void *context, const struct config_spot *spot), void *context);

/* A copy that owns all that it refers to, with its configuration bound again. declared_fini also
 * after a failure. */
bool declared_copy(struct declared *copy, const struct declared *declared, struct error *err);
void declared_fini(struct declared *copy);
/* Gives an error of the component, which begins with the key at fault, its place (config_blame).
 * Returns false. */
bool declared_blame(const struct declared *declared, struct error *err);
/* For errors that are found after the component's own. */
struct faults declared_faults(const struct declared *declared, struct problems *problems);
/* Where in the file a string of the configuration, or another member, comes from. */
const struct node *declared_place(const struct declared *declared, const void *value);
/* The same component with the same configuration? */
bool declared_same(const struct declared *a, const struct declared *b);

bool inventory_has(const struct inventory *inventory, enum component_kind kind);
/* NULL if it is not declared. */
const struct declared *inventory_find(const struct inventory *inventory, enum component_kind kind,
				      const char *id);

/* Does a pipeline, or service::extensions, name it? */
bool inventory_uses(const struct inventory *inventory, const struct declared *declared);

/* The receiver's key `deduplicate`; NULL: it has none. */
const struct duplicates_config *inventory_duplicates(const struct declared *receiver);
/* What the receiver's senders wait for. */
enum ack_mode inventory_ack(const struct inventory *inventory, const struct declared *receiver);
/* A receiver can promise no more than its destinations keep. Connectors form no cycle. */
void inventory_check_acks(const struct inventory *inventory, struct problems *problems);

/* What the Collector checks of connectors: that they connect, that there is no cycle; and the
 * pipelines that they name. */
void inventory_check_connectors(const struct inventory *inventory, struct problems *problems);
/* False: there is a cycle. */
bool inventory_check_cycles(const struct inventory *inventory, struct problems *problems);
/* Does this pipeline (its index in service.pipelines) have the connector among its receivers? */
bool inventory_leads_to(const struct inventory *inventory, const struct declared *connector,
			size_t pipeline);

/* The queue, retries, limits and timeout of an exporter. */
const struct delivery_config *inventory_delivery(const struct declared *declared);

/* The maximum number of sends that can block at once, each in a thread of the pool. Only exporters
 * that are not prompt have such sends. The writing of dead letters can block too. */
uint32_t inventory_blocking_sends(const struct inventory *inventory);

/* Finds a factory by type or alias; NULL: there is none of that kind. */
const struct component_factory *factory_find(const struct component_factory *const *factories,
					     enum component_kind kind, const char *type);

/* Logs deprecated aliases and keys without effect, once each. */
void inventory_log(const struct inventory *inventory, const struct log *log);

/* Logs the keys of one section that are accepted but have no effect. */
void inventory_log_inert(const struct config_table *table, const struct node *node,
			 const char *path, const struct log *log);

/* Prints everything, as YAML or as a JSON object with a newline at the end. telemetry:
 * service::telemetry, printed in the same form, at indent 4. */
void inventory_print(const struct inventory *inventory, bool redact, bool json,
		     struct view telemetry, struct bytes *out);

#endif
