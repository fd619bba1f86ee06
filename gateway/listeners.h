/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATEWAY_LISTENERS_H
#define GATEWAY_LISTENERS_H

#include "config/table.h"
#include "gateway/telemetry.h"
#include "pipeline/graph/inventory.h"

/* Every address that a configuration listens on: those of its components in use, of
 * service::admin, and of the gateway's metrics. */
struct listener {
	char *endpoint;        /* host:port, or the path of a socket */
	const char *transport; /* "tcp", "tcp4", "tcp6", "unix" */
	char *path;            /* of the key */
	const struct node *node;
};

struct listeners {
	struct listener *at;
	size_t count;
};

/* The nodes are those of the configuration. problems: those found so far; an address with an error
 * is left out. telemetry: NULL if it has an error. */
void listeners_find(struct listeners *listeners, const struct inventory *inventory,
		    const struct telemetry *telemetry, struct problems *problems);
void listeners_fini(struct listeners *listeners);
/* Two that cannot both listen, whatever the state of the machine, are an error. */
void listeners_check(const struct listeners *listeners, struct problems *problems);

#endif
