/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROCESSORS_PII_CONFIG_H
#define PROCESSORS_PII_CONFIG_H

#include "config/table.h"
#include "processors/pii_scan.h"

/* The configuration of `pii`, and how it becomes an engine. */
struct pii_detector_config {
	struct optional optional;
	struct choice action;
	struct strings roles;
};

struct pii_pattern_config {
	char *pattern;
	struct choice action;
	struct strings roles;
};

struct pii_detectors_config {
	struct pii_detector_config at[PII_BUILT_IN];
};

struct pii_config {
	struct choice action;
	struct secret hmac_key;
	struct strings roles;
	bool normalize_paths;
	struct strings number_keys;
	struct pii_detectors_config detectors;
	struct config_items patterns; /* of struct pii_pattern_config */
};

extern const struct config_table pii_config_table;

/* fini must be called also after a failure. */
bool pii_config_engine(const struct pii_config *config, struct pii_engine *engine,
		       struct error *err);

#endif
