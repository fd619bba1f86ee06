/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATEWAY_SERVICE_H
#define GATEWAY_SERVICE_H

#include "gateway/admin.h"
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
	struct admin *admin; /* NULL: there is none */
	struct admin_route routes[ADMIN_ROUTES_MAX];
	int64_t timeout_ns; /* --shutdown-timeout; -1: the configuration's */
	uint64_t started;
	_Atomic bool ready;
	/* Loop thread: */
	/* stopping: since the signal; draining: since the delay has passed */
	bool stopping, draining, hurried, comparing;
	const char *failure;      /* why the start failed */
	struct loop_timer *delay; /* the drain begins */
	struct loop_timer *last;  /* the shutdown exceeded its deadline */
	uint64_t end;             /* clock_now of that; 0: no shutdown */
};

/* The options are borrowed until service_close. */
bool service_open(struct service *service, const struct options *options, struct error *err);
bool service_run(struct service *service, struct error *err);
void service_close(struct service *service); /* also after a failed open */

/* The state of the program, as a JSON object. [loop thread] */
void service_status(const struct service *service, struct bytes *out);

#endif
