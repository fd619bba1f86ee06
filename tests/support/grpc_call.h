/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SUPPORT_GRPC_CALL_H
#define TESTS_SUPPORT_GRPC_CALL_H

#include <pthread.h>

#include "net/grpc/grpc_client.h"

/* Calls of a client that the test waits for. An answer must not be reused before the call has ended
 * and its message was released. */
#define SECOND UINT64_C(1000000000)
#define METHOD "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"

struct answer {
	pthread_mutex_t lock;
	pthread_cond_t there;
	bool done;
	_Atomic int released;
	int status;
	int64_t retry_delay_ms;
	bool unsent;
	char message[200];
	char response[4096];
	size_t length;
};

/* Message and response are truncated; length is that of the whole response. */
void answer_begin(struct answer *a, struct grpc_client *client, struct view bytes,
		  enum coding coding, uint64_t timeout_ns);
void answer_wait_done(struct answer *a);
void answer_wait(struct answer *a); /* until the call is done and the message released */
bool answer_has(const struct answer *a, const char *line);

/* One call within 20 s. */
void ask(struct grpc_client *client, const char *script, struct answer *a);
void ask_within(struct grpc_client *client, const char *script, uint64_t timeout_ns,
		struct answer *a);

void ask_with(struct grpc_client *client, const char *script, enum coding coding,
	      const struct metadatum *metadata, struct answer *a);

/* A client of METHOD; fails the test if there is an error. */
struct grpc_client *client_with(struct grpc_client_options options);

#endif
