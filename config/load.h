/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFIG_LOAD_H
#define CONFIG_LOAD_H

#include "base/bytes.h"
#include "config/node.h"
#include "config/problems.h"

/*
 * Sources -> one tree, as the Collector's confmap does it: every --config location (file:, env:,
 * yaml:, http:, https:, or a plain path), merged left to right (maps
 * deep, lists and scalars replaced, a later null wipes), then the --set items, then ${env:X}, ${X},
 * ${X:-default},
 * ${file:...}, ${yaml:...} expanded, $$ -> $. At most 1000 expansions; files at most 16 MiB; depth
 * at most 100.
 */
struct config_sources {
	const char *const *locations;
	size_t location_count;
	const char *const *sets; /* "a.b=c" */
	size_t set_count;
	/* Appends the content of an http or https URL; NULL: such URLs are an error. */
	bool (*fetch)(void *context, const char *url, struct bytes *out, struct error *err);
	void *context;
};

struct node *config_load(const struct config_sources *sources, struct error *err);
/* The same with all errors, and with what could be read in spite of them: a value with an error is
 * there, but broken. An environment variable that is not set and has no default is no error; the
 * value is marked (struct node, unset). */
struct node *config_load_all(const struct config_sources *sources, struct problems *problems);

/* Parses one YAML document; for tests and ${yaml:}. No merging, no expansion. */
struct node *config_parse(const char *source, const char *yaml, size_t len, struct error *err);
/* The same with all errors. NULL only if the rest could not be read either. lines: the text is a
 * file; else places have no lines. */
struct node *config_parse_all(const char *source, bool lines, const char *yaml, size_t len,
			      struct problems *problems);

#endif
