/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_INTAKE_HTTP_INTAKE_H
#define PIPELINE_INTAKE_HTTP_INTAKE_H

#include "net/http/http_server.h"
#include "pipeline/component.h"
#include "pipeline/intake/documents.h"

/*
 * The intake of receivers that speak HTTP. A receiver supplies its routes, what each of them
 * accepts, how a document is decoded, and the form of a reply. The intake handles the rest of a
 * request. It checks the headers, asks the gate, charges the body as it arrives, hands it to a
 * worker and decompresses it. It releases everything when the request has been answered or is lost.
 *
 * Every refusal of a request that has reached its route goes through the route's `reply`, so the
 * receiver decides the form of the response (plain text, google.rpc.Status, JSON). Only responses
 * of the server itself are plain text: to unknown paths and methods, to oversized headers, and to
 * bodies that arrive too slowly.
 */
struct http_intake;
struct http_intake_route;

/* One request. The first member of the receiver's own struct, for which the intake allocates
 * request_size zeroed bytes. It is freed after the reply, or when the request is lost. */
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
	/* Accepted media types, NULL-terminated; a request without a media type is always accepted.
	 * The hint is the list of media types in the error message. NULL: any. */
	const char *const *media_types;
	const char *media_types_hint;
	/* Reads more from the headers before the gate is asked; adds the bytes that it keeps to
	 * in.overhead. May be NULL. [the server's thread] */
	bool (*examine)(struct http_intake_request *request, struct error *err);
	struct document_format documents;
	/* Replies, once. outcome->error may also be a refusal from the headers. [any thread] */
	void (*reply)(struct http_exchange *exchange, const struct outcome *outcome);
	/* Releases what the receiver's struct owns; may be NULL. */
	void (*fini)(struct http_intake_request *request);
};

struct http_intake_options {
	const struct host *host; /* borrowed, as are all that follow */
	void *receiver;          /* in->receiver of each request; may be NULL */
	/* limits bodies to max_request_body_size, both compressed and decompressed */
	const struct http_server_config *config;
	const struct http_intake_route *routes; /* all with the method POST */
	size_t route_count;
};

/* new is called in the receiver's create, unref in its destroy: requests that a worker still holds
 * outlive the stop. */
struct http_intake *http_intake_new(const struct http_intake_options *options);
bool http_intake_start(struct http_intake *intake, struct error *err);
/* Gives accepted requests 10 s to complete; new ones are refused meanwhile. */
void http_intake_stop(struct http_intake *intake);
/* The same while another graph listens at the address: new requests are not refused. */
void http_intake_retire(struct http_intake *intake);
/* Reads the certificate files again, as http_server_reopen. */
bool http_intake_reopen(struct http_intake *intake, struct error *err);
void http_intake_unref(struct http_intake **intake);

#endif
