/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_GRAPH_WAYS_H
#define PIPELINE_GRAPH_WAYS_H

#include "base/bytes.h"
#include "pipeline/graph/graph.h"

/*
 * The ways of a graph, for `portcullis explain`: each leads from a pipeline that has a receiver,
 * through connectors if there are any, to a pipeline that has exporters. Nothing of the graph runs
 * but its processors and the choices of its connectors. Main thread.
 */
struct way;

struct ways {
	struct way *at;
	uint32_t count;
	bool more; /* there are further ways, which are left out */
};

enum { WAYS_MAX = 256 };

/* graph: built; outlives them. */
void ways_init(struct ways *ways, const struct graph *graph);
void ways_fini(struct ways *ways);

/* "profiles", or "profiles/in > routing > profiles/out": pipelines and connectors. */
void ways_name(const struct ways *ways, uint32_t way, struct bytes *out);

/* Runs all processors of a way over p. p->audit, if it is set, gets the processor that runs. False:
 * one of them refused the request. */
bool ways_run(const struct ways *ways, uint32_t way, struct profiles *p, struct error *err);

#endif
