/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATEWAY_ADMIN_H
#define GATEWAY_ADMIN_H

#include "base/bytes.h"
#include "base/error.h"
#include "base/metrics.h"

/*
 * The admin endpoint (service::admin): plain HTTP on loopback, a table of routes. Requests are not
 * authenticated, so a web page must not be able to send them: those that carry an Origin header, or
 * that name another host than this machine (DNS rebinding), fail with 403. A body has at most 64
 * KiB.
 *
 * Routes run on the loop thread, one at a time, and reply with JSON. All functions are called
 * there.
 */
struct admin_call;

struct admin_route {
	const char *path;    /* exact: "/-/reload" */
	const char *methods; /* "POST"; "GET,HEAD" */
	/* Calls admin_reply once, now or later. The call stays valid until then. */
	void (*run)(void *context, struct admin_call *call);
	void *context; /* outlives the endpoint */
};

const char *admin_method(const struct admin_call *call);
/* A parameter of the query, decoded; NULL: absent. */
const char *admin_parameter(const struct admin_call *call, const char *name);
struct view admin_body(const struct admin_call *call);
/* json: one value, copied; a newline is added. */
void admin_reply(struct admin_call *call, int status, struct view json);
/* {"error":"..."} */
void admin_refuse(struct admin_call *call, int status, const char *text);

enum { ADMIN_ROUTES_MAX = 16 };

struct loop;

struct admin_options {
	const char *endpoint;
	const struct admin_route *routes; /* path == NULL ends; must outlive the endpoint */
	struct loop *loop;
	struct metrics *metrics;
};

struct admin;

struct admin *admin_start(const struct admin_options *options, struct error *err);
/* Closes the port and waits up to a second for replies. Requests that have arrived may still run
 * until the loop ends. */
void admin_stop(struct admin *admin);
void admin_unref(struct admin **admin); /* after the loop has ended; stops it before, if needed */

#endif
