/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SUPPORT_POLICY_H
#define TESTS_SUPPORT_POLICY_H

#include "pipeline/component.h"
#include "profile/sites.h"

/* A single processor, created from YAML as in the program, and open tables made by hand. */
struct policy {
	const struct component_factory *factory;
	struct node *tree;
	void *config, *self, *scratch;
	struct host host;
	struct error err;
};

/* False with policy->err: the configuration was refused. It must be closed in both cases. */
bool policy_open(struct policy *policy, const struct component_factory *factory, const char *yaml);
void policy_close(struct policy *policy);
/* Asserts that it opens. */
void policy_must_open(struct policy *policy, const struct component_factory *factory,
		      const char *yaml);
bool policy_run(struct policy *policy, struct profiles *p);
/* The sum of those series of the metric that have this label. */
int64_t policy_count(struct policy *policy, const char *metric, const char *label,
		     const char *value);

/* Tables with one resource, one scope and one Profile of type cpu/nanoseconds, with this number of
 * samples. */
void tables_init(struct profiles *p, struct request *request, uint32_t samples);
uint32_t tables_text(struct profiles *p, const char *text);
uint32_t tables_attribute(struct profiles *p, const char *key, const char *value);
uint32_t tables_integer(struct profiles *p, const char *key, int64_t value);
/* An array or a map of attributes given by their indices, ending with 0. */
uint32_t tables_nested(struct profiles *p, enum value_type type, const char *key, ...);
/* A list of indices, ending with 0. */
struct list tables_list(struct profiles *p, ...);
uint32_t tables_function(struct profiles *p, const char *name, const char *file);
uint32_t tables_entity(struct profiles *p, const char *type, const char *id_key,
		       const char *description_key);

/* The first attribute of a list with that key; NULL: there is none. Its string, or "" if it is not
 * a string. */
const struct attribute *tables_find(struct profiles *p, struct list list, const char *key);
const char *tables_value(struct profiles *p, struct list list, const char *key);
const char *tables_string(struct profiles *p, uint32_t string);

/* All strings that the records of the tables refer to, one per line. */
void tables_dump(struct profiles *p, struct bytes *out);
bool tables_reach(struct profiles *p, const char *text);

#endif
