/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATEWAY_RELOAD_H
#define GATEWAY_RELOAD_H

#include "gateway/admin.h"
#include "gateway/options.h"
#include "gateway/runtime.h"

/*
 * The configurations of the process, one after the other. A generation is one of them with its
 * graph. A reload reads the sources on a pool thread and compares the result with the generation
 * that runs. If it differs, it builds and starts a graph beside the one that runs, lets it succeed,
 * and lets the old one retire. A failure changes nothing: the error is logged, counted and kept for
 * reload_status.
 *
 * All functions run on the loop thread.
 */
enum { RELOAD_HASH = 16 }; /* hex digits */

struct generation {
	struct reload *reload;
	struct generation *next; /* of the retiring ones */
	struct node *root;
	struct graph *graph;
	uint64_t number; /* 1 is the start */
	char hash[RELOAD_HASH + 1];
};

struct reload_waiter;

struct reload {
	struct runtime *runtime;
	const struct options *options;
	const struct service_view *view;
	const struct node *first; /* the configuration of the start; borrowed */
	struct log log;
	struct generation *running, *retiring;
	/* a request that begins while a reload is loading waits for another one */
	struct reload_waiter *waiting, *later;
	bool loading, again, stopping;
	struct node *loaded; /* on a pool thread while loading, with its problems */
	struct problems problems;
	struct error err;    /* of the last reload; ERROR_NONE: it succeeded */
	_Atomic bool failed; /* the last reload; any thread may read it */
	uint64_t last;       /* wall clock of the last reload, ns */
	struct metric_series *successful, *success_time, *generation, *info;
	int64_t (*grace_ns)(void *context); /* for requests of an old generation */
	void (*retired)(void *context);     /* a generation has ended */
	void *context;
};

extern const struct metric *const reload_metrics[]; /* for the manual; NULL-terminated */

/* Builds the first generation. The members up to `first`, and the last three, are set. */
bool reload_open(struct reload *reload, struct problems *problems);
/* Begins a reload; call: gets the result, NULL: nobody does. */
void reload_begin(struct reload *reload, struct admin_call *call);
/* No reload succeeds any more. */
void reload_stop(struct reload *reload);
/* The deadline of the program has passed: old generations must end. */
void reload_expire(struct reload *reload);
/* Members of a JSON object: generation, hash, last reload. */
void reload_status(const struct reload *reload, struct bytes *out);
void reload_close(struct reload *reload); /* also after a failed open */

#endif
