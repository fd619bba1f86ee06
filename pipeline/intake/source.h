/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_INTAKE_SOURCE_H
#define PIPELINE_INTAKE_SOURCE_H

#include "pipeline/component.h"
#include "pipeline/intake/documents.h"

/*
 * The intake of receivers that fetch what others do not send: they scrape, or read files. A fetched
 * body passes through the gate like a request from outside. The order of calls:
 *
 *   source_request_new   on the receiver's own thread or loop
 *   source_admit         before anything is fetched
 *   bytes_add(&r->body)  as the data arrives; charged as it grows
 *   source_submit        a worker decompresses and decodes it; `done` is called once
 *
 * Until source_submit, source_forget ends the request instead, and `done` is not called.
 *
 * If memory is short or the queues are full, admission and growth fail with ERROR_BUSY and a retry
 * hint. The receiver then postpones what it would fetch.
 */
struct source;

/* One request. The first member of the receiver's own struct, of which the source allocates
 * request_size zeroed bytes. */
struct source_request {
	struct inbound in; /* request.peer and in.overhead may be set before source_admit */
	struct source *source;
	enum coding coding; /* of the body; the receiver may set it before source_submit */
	struct bytes body;  /* maximum: what is charged; grows up to body_limit */
	struct error err;   /* why the body could not grow */
	struct bytes_meter meter;
	struct documents documents;
};

struct source_options {
	const struct host *host; /* borrowed, as documents is */
	enum transport transport;
	const struct document_format *documents;
	size_t request_size;          /* at least sizeof(struct source_request) */
	struct size_limit body_limit; /* of a body, both as fetched and decompressed */
	/* The outcome of a submitted request, which is freed afterwards. [any thread] */
	void (*done)(struct source_request *r, const struct outcome *outcome);
};

/* new is called in the receiver's create, unref in its destroy. */
struct source *source_new(const struct source_options *options);
/* Waits until all submitted requests have their outcome. The receiver submits none afterwards.
 * [pool thread] */
void source_stop(struct source *source);
void source_unref(struct source **source);

struct source_request *source_request_new(struct source *source);
/* Asks the gate; false as gate_admit, and the request is freed. `announced` is the expected size;
 * 0: unknown. [any thread] */
bool source_admit(struct source_request *r, size_t announced, struct error *err);
/* Frees an admitted request that is not submitted. The reason is counted, except REFUSAL_NONE: then
 * the reason is that for which the body could not grow, if any. [any thread] */
void source_forget(struct source_request *r, enum refusal reason);
/* [any thread] */
void source_submit(struct source_request *r);

#endif
