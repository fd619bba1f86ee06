/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_GRAPH_NAMED_AUTHS_H
#define PIPELINE_GRAPH_NAMED_AUTHS_H

#include "pipeline/component.h"

/*
 * The authenticators that a component has found by name while it was created. A component can pass
 * from one graph to the next only if these names stand for the same authenticators there: it keeps
 * those that it has found. [loop thread]
 */
struct named_auths {
	struct named_auth {
		char *id;
		const struct authenticator *found; /* alive as long as the component */
	} * at;
	size_t count;
	struct authenticators graph; /* while the component is created */
};

/* What the component gets for its create: the graph's authenticators, recorded in `named`. */
struct authenticators named_auths_record(struct named_auths *named, struct authenticators graph);
bool named_auths_same(const struct named_auths *named, struct authenticators graph);
/* The metadata keys that one of them needs (net/authenticator.h); NULL: none. */
const char *const *named_auths_context_keys(const struct named_auths *named);
void named_auths_fini(struct named_auths *named);

#endif
