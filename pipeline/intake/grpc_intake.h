/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_INTAKE_GRPC_INTAKE_H
#define PIPELINE_INTAKE_GRPC_INTAKE_H

#include "net/h2/rpc_config.h"
#include "pipeline/component.h"
#include "pipeline/intake/documents.h"

/*
 * The intake of receivers that speak gRPC: unary methods whose requests carry profiles. A receiver
 * supplies the methods, how a document is decoded, and the message of the reply. The intake handles
 * the rest of a call. It asks the gate when the headers have arrived, and again as the message
 * grows. It runs a small message to completion on its I/O thread, and hands a large one to a
 * worker. It decompresses the message. It releases everything when the call has been answered or is
 * lost.
 *
 * Messages that contain several documents, or compressed ones, are always run by workers, because
 * their decompressed size is not known before the first document has been processed.
 *
 * Errors become status codes with a message, as net/h2/rpc.h defines for each kind.
 */
struct grpc_intake;
struct grpc_intake_method;

/* One call. The first member of the receiver's own struct, for which the intake allocates
 * request_size zeroed bytes. It is freed after the reply, or when the call is refused or lost. */
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
	const char *path; /* "/package.Service/Method" */
	/* The reason why calls fail with UNIMPLEMENTED, from their headers, also if the method has
	 * streams. Nothing else is set then. NULL: the method is supported. */
	const char *unsupported;
	size_t request_size; /* at least sizeof(struct grpc_intake_request) */
	struct document_format documents;
	/* Writes the message of a successful reply, at most GRPC_INTAKE_RESPONSE_MAX bytes, and
	 * returns its length; outcome->rejection has less than 160 bytes. NULL: an empty message.
	 * [any thread] */
	size_t (*respond)(const struct outcome *outcome, uint8_t *out);
	/* The reply cannot report that a part was rejected: such a request fails, although what is
	 * valid stays accepted. */
	bool whole;
	/* Releases what the receiver's struct owns; may be NULL. */
	void (*fini)(struct grpc_intake_request *request);
};

struct grpc_intake_options {
	const struct host *host; /* borrowed, as are all that follow */
	void *receiver;          /* in->receiver of each request; may be NULL */
	/* limits messages to max_recv_msg_size_mib, both compressed and decompressed */
	const struct rpc_server_config *config;
	const struct grpc_intake_method *methods;
	size_t method_count;
};

/* The metrics of a receiver with an intake, for the manual. */
extern const struct metric grpc_intake_refused_metric;
#define GRPC_INTAKE_METRICS &grpc_intake_refused_metric, H2_METRICS

/* new is called in the receiver's create, unref in its destroy. */
struct grpc_intake *grpc_intake_new(const struct grpc_intake_options *options);
bool grpc_intake_start(struct grpc_intake *intake, struct error *err);
/* Gives accepted calls 10 s to complete; new ones are refused meanwhile. */
void grpc_intake_stop(struct grpc_intake *intake);
/* The same while another graph listens at the address: new calls are not refused. */
void grpc_intake_retire(struct grpc_intake *intake);
/* Reads the certificate files again, as rpc_server_reopen. */
bool grpc_intake_reopen(struct grpc_intake *intake, struct error *err);
void grpc_intake_unref(struct grpc_intake **intake);

#endif
