/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROCESSORS_RESOURCE_ACTIONS_H
#define PROCESSORS_RESOURCE_ACTIONS_H

#include "config/table.h"
#include "processors/regex.h"

/* The actions of the `resource` processor. Their keys, rules and error messages are the
 * Collector's. */
enum resource_verb {
	VERB_INSERT,
	VERB_UPDATE,
	VERB_UPSERT,
	VERB_DELETE,
	VERB_HASH,
	VERB_EXTRACT,
	VERB_CONVERT,
	VERB_COUNT
};

enum resource_type { TYPE_INT, TYPE_DOUBLE, TYPE_STRING, TYPE_COUNT };

enum resource_source {
	SOURCE_VALUE,
	SOURCE_ATTRIBUTE,
	SOURCE_CLIENT_ADDRESS,
	SOURCE_AUTH,
	SOURCE_METADATA
};

struct resource_action_config {
	char *key, *action, *pattern;
	struct config_any value;
	char *from_attribute, *from_context, *converted_type;
};

struct resource_action {
	enum resource_verb verb;
	enum resource_type type;     /* of VERB_CONVERT */
	enum resource_source source; /* of insert, update, upsert */
	const char *key;             /* may be NULL for delete and hash */
	const struct config_any *value;
	/* an attribute; of the sender or its metadata in any case */
	const char *from;
	struct regex *pattern;
};

extern const struct config_table resource_action_table;

/* index: of the action, for the errors. The action borrows the configuration's strings. */
bool resource_action_init(struct resource_action *action,
			  const struct resource_action_config *config, size_t index,
			  struct faults *faults);
void resource_action_fini(struct resource_action *action);

#endif
