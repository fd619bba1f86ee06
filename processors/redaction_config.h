/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROCESSORS_REDACTION_CONFIG_H
#define PROCESSORS_REDACTION_CONFIG_H

#include "processors/key_rules.h"
#include "processors/redaction_values.h"

/* The configuration of `redaction`: the Collector's keys, and two of ours. */
enum { REDACTION_STRUCTURAL_ALLOW, REDACTION_STRUCTURAL_DENY };
enum { REDACTION_SILENT, REDACTION_INFO, REDACTION_DEBUG, REDACTION_UNSET };

enum { REDACTION_STORES = 7 };

struct redaction_sanitizer_config {
	bool enabled, sanitize_span_name;
	struct strings attributes;
};

struct redaction_db_config {
	struct redaction_sanitizer_config stores[REDACTION_STORES];
	bool sanitize_span_name;
};

struct redaction_config {
	bool allow_all_keys, redact_all_types;
	struct strings allowed_keys, ignored_keys, ignored_key_patterns, blocked_key_patterns;
	struct strings blocked_values, allowed_values;
	char *hash_function;
	struct secret hmac_key;
	struct choice summary;
	struct redaction_sanitizer_config url_sanitizer;
	struct redaction_db_config db_sanitizer;
	/* ours */
	struct choice structural;
	struct strings roles;
};

/* What it becomes; immutable, shared by all workers. */
struct redaction_rules {
	struct key_rules allowed, ignored, blocked;
	struct redaction_values values;
	uint32_t roles; /* 1 << enum site_role */
	bool allow_all_keys, redact_all_types, structural, summary;
};

extern const struct config_table redaction_config_table;

/* Borrows config. fini must be called also after a failure. */
bool redaction_rules_init(struct redaction_rules *rules, const struct redaction_config *config,
			  struct error *err);
void redaction_rules_fini(struct redaction_rules *rules);

#endif
