/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_INTAKE_GRPC_INTAKE_H
#define PIPELINE_INTAKE_GRPC_INTAKE_H

#include "net/h2/rpc_config.h"
#include "pipeline/component.h"
#include "pipeline/intake/documents.h"

/*
 * The way in for receivers that speak gRPC: unary methods whose requests carry profiles. A receiver
 * says which methods, how a document is decoded, and what the reply's message is. The intake does
 * the rest of a call's life: asks the gate from the headers and again as the message grows, runs a
 * small message to completion on its I/O thread and hands a large one to a worker, inflates it, and
 * gives everything back when the call has been answered or is lost.
 *
 * Messages that hold several documents, or compressed ones, are always run by workers: what they
 * inflate to is not known before the first document has been taken.
 *
 * Errors are status codes with a message, as net/h2/rpc.h defines them for each kind.
 */
struct grpc_intake;
struct grpc_intake_method;

/* One call. The first member of the receiver's own struct, of which the intake allocates
 * request_size zeroed bytes; freed after the reply, or when the call is refused or lost. */
struct grpc_intake_request {
	struct inbound in;
	struct grpc_intake *intake;
	const struct grpc_intake_method *method;
	struct rpc_call *call;
	struct documents documents;
};

enum { GRPC_INTAKE_RESPONSE_MAX = 256 };

/* Constant. */
struct grpc_intake_method {
	const char *path;    /* "/package.Service/Method" */
	size_t request_size; /* at least sizeof(struct grpc_intake_request) */
	struct document_format documents;
	/* Writes the message of a successful reply, at most GRPC_INTAKE_RESPONSE_MAX bytes, and
	 * returns its length; outcome->rejection has less than 160 bytes. NULL: an empty message.
	 * [any thread] */
	size_t (*respond)(const struct outcome *outcome, uint8_t *out);
	/* Releases what the receiver's struct owns; may be NULL. */
	void (*fini)(struct grpc_intake_request *request);
};

struct grpc_intake_options {
	const struct host *host;                /* borrowed, as is all that follows */
	const struct rpc_server_config *config; /* messages of at most max_recv_msg_size_mib, as
						 * sent and again inflated */
	const struct grpc_intake_method *methods;
	size_t method_count;
};

/* For the manual: the metrics of a receiver that has an intake. */
extern const struct metric grpc_intake_unknown_metric;
#define GRPC_INTAKE_METRICS &grpc_intake_unknown_metric, H2_METRICS

/* new in create, unref in destroy. */
struct grpc_intake *grpc_intake_new(const struct grpc_intake_options *options);
bool grpc_intake_start(struct grpc_intake *intake, struct error *err);
/* Gives accepted calls 10 s; new ones are refused meanwhile. */
void grpc_intake_stop(struct grpc_intake *intake);
/* The same while another graph listens at the address: refuses nothing. */
void grpc_intake_retire(struct grpc_intake *intake);
/* Reads the certificate files again, as rpc_server_reopen. */
bool grpc_intake_reopen(struct grpc_intake *intake, struct error *err);
void grpc_intake_unref(struct grpc_intake **intake);

#endif
