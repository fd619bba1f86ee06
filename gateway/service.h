/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATEWAY_SERVICE_H
#define GATEWAY_SERVICE_H

#include "gateway/admin.h"
#include "gateway/losses.h"
#include "gateway/options.h"
#include "gateway/reload.h"
#include "gateway/runtime.h"

/*
 * The life of the program around its graphs. service_open builds everything without starting it,
 * which is all that `validate` does. service_run starts it, reloads the configuration on SIGHUP,
 * waits for SIGTERM or SIGINT, and drains.
 */
struct service {
	struct log log;
	const struct options *options;
	struct node *root; /* the configuration of the start */
	struct runtime runtime;
	struct reload reload; /* the graphs */
	struct service_view view;
	struct admin *admin; /* NULL: there is none */
	struct admin_route routes[ADMIN_ROUTES_MAX];
	int64_t timeout_ns; /* --shutdown-timeout; -1: the configuration's */
	uint64_t started;
	_Atomic bool ready;
	/* Loop thread: */
	/* stopping: since the signal; draining: since the delay has passed */
	bool stopping, draining, hurried, graph_stopped, finished;
	/* the signal: samples that destinations accepted, and that became dead letters */
	int64_t sent_before, dead_before;
	struct losses losses;        /* since the signal */
	const char *failure;         /* why the start failed */
	struct loop_timer *half;     /* of the time until the deadline */
	struct loop_timer *deadline; /* of what the graph that runs does not stop */
	struct loop_timer *delay;    /* the drain begins */
	struct loop_timer *last;     /* the shutdown exceeded its deadline */
	uint64_t end;                /* clock_now of that; 0: no shutdown */
};

/* The options are borrowed until service_close. */
bool service_open(struct service *service, const struct options *options, struct error *err);
bool service_run(struct service *service, struct error *err);
/* The exit status after service_run has succeeded. */
int service_exit_status(const struct service *service);
void service_close(struct service *service); /* also after a failed open */

/* What SIGHUP does; call: gets the result, NULL: nobody does. [loop thread] */
void service_reload(struct service *service, struct admin_call *call);
/* The state of the program, as a JSON object. [loop thread] */
void service_status(const struct service *service, struct bytes *out);

#endif
