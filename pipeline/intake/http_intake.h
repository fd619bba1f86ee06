/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_INTAKE_HTTP_INTAKE_H
#define PIPELINE_INTAKE_HTTP_INTAKE_H

#include "net/http/http_server.h"
#include "pipeline/component.h"
#include "pipeline/intake/documents.h"

/*
 * The way in for receivers that speak HTTP. A receiver says what is its own: routes, what each
 * accepts, how a document is decoded, and what a reply looks like. The intake does the rest of a
 * request's life: checks its headers, asks the gate, charges the body as it arrives, hands it to a
 * worker, inflates it, and gives everything back when the request has been answered or is lost.
 *
 * Every refusal of a request that has reached its route goes through the route's `reply`, so the
 * receiver decides its form (plain text, google.rpc.Status, JSON). Only what the server answers by
 * itself is plain text: unknown paths and methods, oversized headers, and a body of unannounced
 * length that passes the limit while it arrives.
 */
struct http_intake;
struct http_intake_route;

/* One request. The first member of the receiver's own struct, of which the intake allocates
 * request_size zeroed bytes; freed after the reply, or when the request is lost. */
struct http_intake_request {
	struct inbound in;
	struct http_intake *intake;
	const struct http_intake_route *route;
	struct http_exchange *exchange;
	enum coding coding; /* of the body: Content-Encoding */
	struct view sent;
	struct documents documents;
};

/* Constant. */
struct http_intake_route {
	const char *path;
	size_t request_size; /* at least sizeof(struct http_intake_request) */
	/* Media types that are accepted, NULL-terminated; a request without one always is. The hint
	 * is the error's list of those that a client should use. NULL: any. */
	const char *const *media_types;
	const char *media_types_hint;
	/* Reads more from the headers before the gate is asked; adds to in.overhead what it keeps.
	 * May be NULL. [the server's thread] */
	bool (*examine)(struct http_intake_request *request, struct error *err);
	struct document_format documents;
	/* Answers the exchange, once. outcome->error is also a refusal from the headers. [any
	 * thread] */
	void (*reply)(struct http_exchange *exchange, const struct outcome *outcome);
	/* Releases what the receiver's struct owns; may be NULL. */
	void (*fini)(struct http_intake_request *request);
};

struct http_intake_options {
	const struct host *host;                 /* borrowed, as is all that follows */
	const struct http_server_config *config; /* bodies of at most max_request_body_size, as
						  * sent and again inflated */
	const struct http_intake_route *routes;  /* POST */
	size_t route_count;
};

/* new in create, unref in destroy: requests that a worker still holds outlive the stop. */
struct http_intake *http_intake_new(const struct http_intake_options *options);
bool http_intake_start(struct http_intake *intake, struct error *err);
/* Gives accepted requests 10 s; new ones are refused meanwhile. */
void http_intake_stop(struct http_intake *intake);
/* The same while another graph listens at the address: refuses nothing. */
void http_intake_retire(struct http_intake *intake);
/* Reads the certificate files again, as http_server_reopen. */
bool http_intake_reopen(struct http_intake *intake, struct error *err);
void http_intake_unref(struct http_intake **intake);

#endif
