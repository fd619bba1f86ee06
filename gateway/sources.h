/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATEWAY_SOURCES_H
#define GATEWAY_SOURCES_H

#include "base/bytes.h"
#include "base/hash.h"

/* The files and URLs that a configuration was read from, in order, and a hash of what each held.
 * One thread at a time. */
struct source {
	char *name; /* as messages may show it */
	struct hash128 content;
};

struct sources {
	struct source *at;
	size_t count;
};

void sources_add(struct sources *sources, const char *name, struct view content);
void sources_fini(struct sources *sources);
/* Is it one of the sources, with the same content? */
bool sources_have(const struct sources *sources, const struct source *source);

#endif
