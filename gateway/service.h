/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATEWAY_SERVICE_H
#define GATEWAY_SERVICE_H

#include "gateway/options.h"
#include "gateway/runtime.h"

/*
 * The life of the program around one graph. service_open builds everything without starting it,
 * which is all that `validate` does. service_run starts it, waits for SIGTERM or SIGINT, and
 * drains.
 */
struct service {
	struct log log;
	struct sources sources; /* of the configuration that runs */
	struct sources found;   /* while comparing */
	struct error found_error;
	const struct options *options;
	struct node *root;
	struct runtime runtime;
	struct graph *graph;
	struct service_view view;
	uint64_t shutdown_ns, started;
	_Atomic bool ready;
	/* Loop thread: */
	bool stopping, hurried, comparing;
	const char *failure;     /* why the start failed */
	struct loop_timer *last; /* the shutdown exceeded its deadline */
	uint64_t end;            /* clock_now of that; 0: no shutdown */
};

/* The options are borrowed until service_close. */
bool service_open(struct service *service, const struct options *options, struct error *err);
bool service_run(struct service *service, struct error *err);
void service_close(struct service *service); /* also after a failed open */

#endif
