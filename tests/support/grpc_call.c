/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/grpc_call.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static void on_done(void *argument, const struct grpc_result *result)
{
	struct answer *a = argument;
	pthread_mutex_lock(&a->lock);
	a->status = result->status;
	a->retry_delay_ms = result->retry_delay_ms;
	a->unsent = result->unsent;
	snprintf(a->message, sizeof a->message, "%s", result->message);
	a->length = result->response.len;
	snprintf(a->response, sizeof a->response, "%.*s", (int)result->response.len,
		 a->length ? (const char *)result->response.at : "");
	a->done = true;
	pthread_cond_signal(&a->there);
	pthread_mutex_unlock(&a->lock);
}

static void on_release(void *owner)
{
	struct answer *a = owner;
	pthread_mutex_lock(&a->lock);
	a->released++;
	pthread_cond_signal(&a->there);
	pthread_mutex_unlock(&a->lock);
}

static void begin(struct answer *a, struct grpc_client *client, struct grpc_message message,
		  uint64_t timeout_ns)
{
	*a = (struct answer){ .lock = PTHREAD_MUTEX_INITIALIZER,
			      .there = PTHREAD_COND_INITIALIZER };
	message.release = on_release;
	message.owner = a;
	grpc_client_call(client, &message, timeout_ns, on_done, a);
}

void answer_begin(struct answer *a, struct grpc_client *client, struct view bytes,
		  enum coding coding, uint64_t timeout_ns)
{
	begin(a, client, (struct grpc_message){ .bytes = bytes, .coding = coding }, timeout_ns);
}

void answer_wait_done(struct answer *a)
{
	pthread_mutex_lock(&a->lock);
	while (!a->done)
		pthread_cond_wait(&a->there, &a->lock);
	pthread_mutex_unlock(&a->lock);
}

void answer_wait(struct answer *a)
{
	answer_wait_done(a);
	pthread_mutex_lock(&a->lock);
	while (!a->released)
		pthread_cond_wait(&a->there, &a->lock);
	pthread_mutex_unlock(&a->lock);
}

void ask_within(struct grpc_client *client, const char *script, uint64_t timeout_ns,
		struct answer *a)
{
	answer_begin(a, client, view_of(script), CODING_IDENTITY, timeout_ns);
	answer_wait(a);
}

void ask(struct grpc_client *client, const char *script, struct answer *a)
{
	ask_within(client, script, 20 * SECOND, a);
}

void ask_with(struct grpc_client *client, const char *script, enum coding coding,
	      const struct metadatum *metadata, struct answer *a)
{
	begin(a, client,
	      (struct grpc_message){
		      .bytes = view_of(script), .coding = coding, .metadata = metadata },
	      20 * SECOND);
	answer_wait(a);
}

bool answer_has(const struct answer *a, const char *line)
{
	return strstr(a->response, line) != NULL;
}

struct grpc_client *client_with(struct grpc_client_options options)
{
	struct error err = { 0 };
	options.method = METHOD;
	struct grpc_client *client = grpc_client_new(&options, &err);
	if (!client)
		fail_msg("%s", err.text);
	return client;
}
