/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_SITES_H
#define PROFILE_SITES_H

#include "profile/profiles.h"

/*
 * The only list of places in a profile that can hold strings or free bytes. The allow-list, PII,
 * explain and leakcheck all walk this list. A test fails if a protocol field that can hold such
 * data is missing from it, or a numeric field from sites_open_fields (tests/profile/test_sites.py
 * compares both with the .proto descriptors).
 */
enum site_role {
	ROLE_KEY,      /* an attribute key: the allow-list decides */
	ROLE_VALUE,    /* an attribute value, nested ones included */
	ROLE_UNIT,     /* the unit of an attribute */
	ROLE_SCOPE,    /* scope name and version */
	ROLE_SCHEMA,   /* schema URLs */
	ROLE_ENTITY,   /* entity types (its keys follow the resource's) */
	ROLE_FUNCTION, /* function and system names */
	ROLE_FILE,     /* source files of functions */
	ROLE_MAPPING,  /* files of mappings */
	ROLE_TYPE,     /* sample and period types and units */
	ROLE_COUNT
};

enum site {
	SITE_NONE,
	/* with keys */
	SITE_RESOURCE,
	SITE_SCOPE,
	SITE_PROFILE, /* Profile.profile_id counts as the key profile_id */
	SITE_SAMPLE,
	SITE_LOCATION,
	SITE_MAPPING,
	SITE_LINK,   /* counts as the keys trace_id and span_id */
	SITE_ENTITY, /* the keys of entity references */
	/* without keys */
	SITE_SCOPE_NAME,
	SITE_SCOPE_VERSION,
	SITE_RESOURCE_SCHEMA_URL,
	SITE_SCOPE_SCHEMA_URL,
	SITE_ENTITY_SCHEMA_URL,
	SITE_ENTITY_TYPE,
	SITE_FUNCTION_NAME,
	SITE_FUNCTION_SYSTEM_NAME,
	SITE_FUNCTION_FILENAME,
	SITE_MAPPING_FILENAME,
	SITE_SAMPLE_TYPE,
	SITE_SAMPLE_UNIT,
	SITE_PERIOD_TYPE,
	SITE_PERIOD_UNIT,
	SITE_COUNT
};

struct site_info {
	/* as in the configuration and the manual: "resource", "function.name" */
	const char *name;
	enum site_role role; /* of the text at keyless sites; ROLE_KEY at sites with keys */
	bool has_keys;
	/* The protocol's fields, blank-separated: Message.field, or Message.field.field below a
	 * message that stands in several places. The test compares these. */
	const char *field;
	const char *help;
};

extern const struct site_info sites[SITE_COUNT];

/* What an attribute holds at every site with keys: its key, unit and (nested) values. The roles of
 * values and units are ROLE_VALUE and ROLE_UNIT. */
extern const char sites_attribute_fields[];

/* The numeric fields that belong to no site. They leave unchanged, whatever the policy.
 * Message.field, NULL ends. */
extern const char *const sites_open_fields[];

extern const char *const site_role_names[ROLE_COUNT];

/* The site of a name, SITE_NONE if there is none. */
enum site site_find(const char *name);

/*
 * Walks every attribute list of the tables that a non-dropped Profile can own, at the given site
 * (one of the sites with keys except link and entity); empty lists are passed over. The callback
 * may shrink the list in place, replace indices in it, or store another list through the pointer;
 * `changed` is the owner's flag. It must not grow the tables that it is walked through; attributes,
 * strings, indices and added may grow.
 */
void sites_each_list(struct profiles *p, enum site site,
		     void (*visit)(struct profiles *p, struct list *list, uint8_t *changed,
				   void *context),
		     void *context);

/* Strings that the visitor has already handled and need not see again: those with at[string] ==
 * string + 1. */
struct sites_settled {
	const uint32_t *at;
	uint32_t count;
};

/* Walks every text at a keyless site but "" and what is settled, which may become more during the
 * walk; the callback may store another string index through the pointer. */
void sites_each_text(struct profiles *p, enum site site, struct sites_settled settled,
		     void (*visit)(struct profiles *p, uint32_t *string, uint8_t *changed,
				   void *context),
		     void *context);

#endif
