/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_GRPC_CLIENT_H
#define NET_GRPC_CLIENT_H

#include "base/bytes.h"
#include "base/log.h"
#include "config/table.h"
#include "net/tls.h"

/*
 * One channel to one target, unary calls of one method. [any thread] `done` runs on the client's
 * completion-queue thread (one for the whole process) and must not block.
 */
struct grpc_client_options {
	const char *endpoint;   /* host:port, dns:///h:p, unix:///path; http:// stripped, https:// forces TLS */
	const char *method;     /* "/package.Service/Method" */
	const struct tls_client_config *tls;
	const struct pairs *headers;
	const char *user_agent, *authority, *balancer; /* NULL: default; balancer round_robin or pick_first */
	bool wait_for_ready, keepalive, permit_without_stream;
	struct duration keepalive_time, keepalive_timeout;
	struct log *log;
};

struct grpc_result {
	int status;          /* gRPC code, 0 = OK */
	const char *message; /* the peer's text: for classification only, never logged */
	struct view response;
	int64_t retry_delay_ms; /* of RetryInfo; -1: none was sent */
};

struct grpc_client;

struct grpc_client *grpc_client_new(const struct grpc_client_options *options, struct error *err);
/* gzip: `message` is already gzip; the header says so. The bytes must stay until done. */
void grpc_client_call(struct grpc_client *client, struct view message, bool gzip, uint64_t timeout_ns,
		      void (*done)(void *argument, const struct grpc_result *result), void *argument);
bool grpc_client_reload(struct grpc_client *client, struct error *err);
/* Cancels calls in flight (their done runs) and returns when none is left. */
void grpc_client_unref(struct grpc_client **client);

#endif
