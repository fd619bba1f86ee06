/* SPDX-License-Identifier: Apache-2.0 */
#include "net/grpc/grpc_client.h"

#include <assert.h>
#include <ctype.h>
#include <grpc/grpc.h>
#include <grpc/support/alloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include "net/grpc/grpc_allowance.h"
#include "net/grpc/grpc_coding.h"
#include "net/grpc/grpc_queue.h"
#include "net/grpc/grpc_reply.h"
#include "net/grpc/rpc_channel.h"

#define OVERDUE_NS UINT64_C(100000000) /* after the deadline; until then core ends a call itself */

struct grpc_client {
	struct grpc_client_options options; /* its strings are our copies */
	grpc_completion_queue *queue;
	struct grpc_endpoint endpoint;
	struct tls_material material;
	struct grpc_allowance *allowance;
	/* A row for each coding: the headers, then grpc-encoding. The rows share their slices. */
	grpc_metadata *metadata;
	size_t header_count;
	struct grpc_tick tick;
	uint64_t renew_at;    /* for the tick: the time of the next channel */
	pthread_mutex_t lock; /* guards channel, calls, material */
	struct rpc_channel *channel;
	struct call *calls; /* calls that can be cancelled */
	/* Separate from `lock`, because core may release a message while `lock` is held around a
	 * call of core. */
	pthread_mutex_t spare_lock; /* guards spare */
	struct call *spare;
	_Atomic size_t holds; /* references: of the owner, and of each call */
	sem_t idle;           /* holds became 0 */
};

/*
 * All operations of a call are one batch, so that the thread of the queue wakes up only once, for
 * the reply. While a peer does not read, neither a cancellation nor a deadline ends the write, and
 * the batch waits for it. In this case end_overdue calls `done`.
 *
 * `users` counts the batch and the bytes of the message, from which core may still write after a
 * call was cancelled.
 */
struct call {
	struct grpc_tag tag;
	struct grpc_client *client;
	struct rpc_channel *channel;
	struct call *next, **slot; /* in client->calls; `next` is also used in client->spare */
	grpc_call *core;
	grpc_byte_buffer *request;
	grpc_metadata *metadata; /* the call's metadata, if it has its own; NULL: the client's */
	size_t metadata_count;   /* the number of the call's own entries */
	struct grpc_reply reply;
	void (*done)(void *argument, const struct grpc_result *result); /* NULL: was called */
	void *argument;
	void *owner; /* passed to `release` */
	size_t bytes;
	uint64_t overdue_at;
	unsigned overruns; /* overruns of the allowance when the call began */
	_Atomic unsigned users;
	_Atomic bool started; /* for the thread that starts a call, as `release` below */
	/* Written last and read first: core orders the hand-over by means that the thread sanitizer
	 * does not recognise. */
	void (*_Atomic release)(void *owner);
};

/* ---- lifetimes ---- */

static void client_hold(struct grpc_client *client)
{
	atomic_fetch_add(&client->holds, 1);
}

/* The client may have been freed on return. */
static void client_leave(struct grpc_client *client)
{
	if (atomic_fetch_sub(&client->holds, 1) == 1)
		sem_post(&client->idle);
}

static struct call *take_spare(struct grpc_client *client)
{
	pthread_mutex_lock(&client->spare_lock);
	struct call *call = client->spare;
	if (call)
		client->spare = call->next;
	pthread_mutex_unlock(&client->spare_lock);
	if (call)
		return call;
	call = memory_new(sizeof *call);
	call->client = client;
	grpc_reply_init(&call->reply);
	return call;
}

/* Called when the batch is complete and when the bytes have been released, on either thread. */
static void call_leave(struct call *call)
{
	struct grpc_client *client = call->client;
	if (atomic_fetch_sub(&call->users, 1) > 1)
		return;
	pthread_mutex_lock(&client->spare_lock);
	call->next = client->spare;
	client->spare = call;
	pthread_mutex_unlock(&client->spare_lock);
	client_leave(client);
}

static void call_unlink(struct call *call)
{
	pthread_mutex_lock(&call->client->lock);
	*call->slot = call->next;
	if (call->next)
		call->next->slot = call->slot;
	pthread_mutex_unlock(&call->client->lock);
}

/* ---- headers ---- */

/* Headers that core writes itself. A second value would contradict the first one. */
static bool is_reserved(const char *name)
{
	static const char *const names[] = { "content-type", "te", "user-agent", "host",
					     "connection" };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(name, names[i]))
			return true;
	return !strncmp(name, "grpc-", 5);
}

static grpc_metadata header_of(const char *name, const char *value)
{
	char *lower = memory_text(name);
	for (char *c = lower; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	grpc_metadata m = { .key = grpc_slice_from_copied_string(lower),
			    .value = grpc_slice_from_copied_string(value ? value : "") };
	memory_free(lower);
	return m;
}

static grpc_metadata header_of_pair(const struct pair *pair)
{
	return header_of(pair->name, pair->value.text);
}

static void header_release(grpc_metadata *m)
{
	grpc_slice_unref(m->key);
	grpc_slice_unref(m->value);
}

/* Frees the header's slices. */
static bool header_is_legal(grpc_metadata m)
{
	char *name = grpc_slice_to_c_string(m.key);
	bool legal = grpc_header_key_is_legal(m.key) && !is_reserved(name) &&
		     (grpc_is_binary_header(m.key) || grpc_header_nonbin_value_is_legal(m.value));
	gpr_free(name);
	header_release(&m);
	return legal;
}

static bool check_header(const char *what, size_t index, grpc_metadata m, struct error *err)
{
	return header_is_legal(m) ||
	       error_set(err, ERROR_CONFIG,
			 "%s[%zu]: cannot be sent: the name is reserved, or the name or value "
			 "contains bytes that HTTP/2 forbids",
			 what, index);
}

bool grpc_client_check_header(const struct pairs *headers, size_t index, struct error *err)
{
	return check_header("headers", index, header_of_pair(&headers->at[index]), err);
}

bool grpc_client_check_headers(const struct pairs *headers, struct error *err)
{
	for (size_t i = 0; headers && i < headers->count; i++)
		if (!grpc_client_check_header(headers, i, err))
			return false;
	return true;
}

bool grpc_client_check_metadata(const struct metadatum *metadata, struct error *err)
{
	size_t bytes = 0;
	for (size_t i = 0; metadata && metadata[i].name; i++) {
		const char *name = metadata[i].name, *value = metadata[i].value;
		bytes += strlen(name) + strlen(value ? value : "");
		if (i >= GRPC_METADATA_MAX || bytes > GRPC_METADATA_BYTES)
			return error_set(err, ERROR_TOO_LARGE,
					 "too many or too large metadata entries");
		if (!check_header("metadata", i, header_of(name, value), err))
			return false;
	}
	return true;
}

static grpc_metadata encoding_header(enum coding coding)
{
	return (grpc_metadata){ .key = grpc_slice_from_static_string("grpc-encoding"),
				.value = grpc_slice_from_static_string(
					grpc_coding_metadata(coding)) };
}

static size_t encoding_count(enum coding coding)
{
	return grpc_coding_metadata(coding) ? 1 : 0;
}

static grpc_metadata *row_of(const struct grpc_client *client, enum coding coding)
{
	return client->metadata + (size_t)coding * (client->header_count + 1);
}

static void build_metadata(struct grpc_client *client, const struct pairs *headers)
{
	size_t count = client->header_count = headers ? headers->count : 0;
	client->metadata = memory_array(CODING_COUNT * (count + 1), sizeof *client->metadata);
	for (size_t i = 0; i < count; i++)
		client->metadata[i] = header_of_pair(&headers->at[i]);
	for (enum coding coding = 0; coding < CODING_COUNT; coding++) {
		grpc_metadata *row = row_of(client, coding);
		if (coding)
			memcpy(row, client->metadata, count * sizeof *row);
		if (encoding_count(coding))
			row[count] = encoding_header(coding);
	}
}

/* The client's headers, the call's metadata, grpc-encoding. */
static void call_build_metadata(struct call *call, const struct metadatum *metadata,
				enum coding coding)
{
	const struct grpc_client *client = call->client;
	while (metadata && metadata[call->metadata_count].name)
		call->metadata_count++;
	if (!call->metadata_count)
		return;
	size_t first = client->header_count, end = first + call->metadata_count;
	call->metadata = memory_array(end + 1, sizeof *call->metadata);
	memcpy(call->metadata, client->metadata, first * sizeof *call->metadata);
	for (size_t i = first; i < end; i++)
		call->metadata[i] = header_of(metadata[i - first].name, metadata[i - first].value);
	if (encoding_count(coding))
		call->metadata[end] = encoding_header(coding);
}

static void call_clear_metadata(struct call *call)
{
	for (size_t i = 0; i < call->metadata_count; i++)
		header_release(&call->metadata[call->client->header_count + i]);
	memory_free(call->metadata);
	call->metadata = NULL;
	call->metadata_count = 0;
}

/* ---- replies: on the thread of the queue ---- */

static bool is_connected(const struct call *call)
{
	return grpc_channel_check_connectivity_state(call->channel->core, 0) == GRPC_CHANNEL_READY;
}

static struct grpc_reply_context context_of(const struct call *call)
{
	const struct grpc_client *client = call->client;
	const struct grpc_allowance *a = client->allowance;
	struct grpc_reply_context context = { .overrun = call->overruns !=
							 grpc_allowance_overruns(a) };
	if (call->reply.status == GRPC_STATUS_OK)
		return context;
	context.connected = is_connected(call);
	context.reached =
		grpc_allowance_reached(a, !grpc_endpoint_is_plaintext(&client->endpoint,
								      client->options.tls));
	return context;
}

static void on_answer(void *owner, bool ok)
{
	struct call *call = owner;
	bool started = atomic_load_explicit(&call->started, memory_order_acquire);
	assert(started);
	(void)ok, (void)started;
	call_unlink(call);
	if (call->done)
		grpc_reply_report(&call->reply, context_of(call), call->done, call->argument);
	grpc_allowance_end(call->client->allowance, call->bytes,
			   grpc_reply_is_answer(&call->reply));
	grpc_reply_clear(&call->reply);
	grpc_byte_buffer_destroy(call->request);
	call_clear_metadata(call);
	grpc_call_unref(call->core);
	rpc_channel_unref(&call->channel);
	call_leave(call);
}

/* A call that must be reported as done, because its batch did not complete in time. NULL: none. */
static struct call *take_overdue(struct grpc_client *client, uint64_t now)
{
	pthread_mutex_lock(&client->lock);
	struct call *call = client->calls;
	while (call && (!call->done || now < call->overdue_at))
		call = call->next;
	pthread_mutex_unlock(&client->lock);
	return call;
}

static void end_overdue(struct grpc_client *client)
{
	static const struct grpc_result late = { .status = GRPC_STATUS_DEADLINE_EXCEEDED,
						 .message = "",
						 .retry_delay_ms = -1,
						 .cause = { CAUSE_NO_RESPONSE, 0 } };
	uint64_t now = clock_now();
	for (struct call *call; (call = take_overdue(client, now));) {
		void (*done)(void *, const struct grpc_result *) = call->done;
		call->done = NULL;
		done(call->argument, &late);
	}
}

/* ---- clients ---- */

static struct grpc_client *client_make(const struct grpc_client_options *options)
{
	struct grpc_client *client = memory_new(sizeof *client);
	struct grpc_client_options *own = &client->options;
	*own = *options;
	own->method = memory_text(options->method);
	own->user_agent = memory_text(options->user_agent);
	own->authority = memory_text(options->authority);
	own->balancer = memory_text(options->balancer);
	own->endpoint = NULL;
	own->headers = NULL;
	pthread_mutex_init(&client->lock, NULL);
	pthread_mutex_init(&client->spare_lock, NULL);
	sem_init(&client->idle, 0, 0);
	atomic_init(&client->holds, 1);
	return client;
}

static void free_spare(struct grpc_client *client)
{
	for (struct call *call; (call = client->spare);) {
		client->spare = call->next;
		grpc_reply_fini(&call->reply);
		memory_free(call);
	}
}

static void client_free(struct grpc_client *client)
{
	free_spare(client);
	for (size_t i = 0; i < client->header_count; i++)
		header_release(&client->metadata[i]);
	memory_free(client->metadata);
	memory_free((char *)client->options.method);
	memory_free((char *)client->options.user_agent);
	memory_free((char *)client->options.authority);
	memory_free((char *)client->options.balancer);
	tls_release(&client->material);
	grpc_endpoint_fini(&client->endpoint);
	grpc_allowance_unref(&client->allowance);
	sem_destroy(&client->idle);
	pthread_mutex_destroy(&client->spare_lock);
	pthread_mutex_destroy(&client->lock);
	memory_free(client);
}

static bool load_material(const struct grpc_client *client, struct tls_material *out,
			  struct error *err)
{
	*out = (struct tls_material){ 0 };
	const struct tls_client_config *tls = client->options.tls;
	return !tls || grpc_endpoint_is_plaintext(&client->endpoint, tls) ||
	       tls_load_client(tls, out, err) || error_prefix(err, "tls");
}

static struct rpc_channel *channel_make(const struct grpc_client *client,
					const struct tls_material *material)
{
	return rpc_channel_new(&client->endpoint, &client->options, material, client->allowance);
}

/* Clients that were started together must not all connect again at the same time. */
static uint64_t next_renewal(const struct grpc_client *client)
{
	uint64_t age = (uint64_t)client->options.max_age.ns, random;
	hash_random(&random, sizeof random);
	return age ? clock_now() + age - age / 10 + random % (age / 5 + 1) : UINT64_MAX;
}

static void renew_channel(struct grpc_client *client)
{
	pthread_mutex_lock(&client->lock);
	struct rpc_channel *old = client->channel;
	client->channel = channel_make(client, &client->material);
	pthread_mutex_unlock(&client->lock);
	rpc_channel_unref(&old);
	client->renew_at = next_renewal(client);
}

static void tick(void *context)
{
	struct grpc_client *client = context;
	grpc_allowance_tick(client->allowance);
	end_overdue(client);
	if (clock_now() >= client->renew_at)
		renew_channel(client);
}

struct grpc_client *grpc_client_new(const struct grpc_client_options *options, struct error *err)
{
	struct grpc_client *client = client_make(options);
	if (!grpc_endpoint_parse(options->endpoint, &client->endpoint, err) ||
	    !grpc_endpoint_find_proxy(&client->endpoint, err) ||
	    !grpc_client_check_headers(options->headers, err) ||
	    !load_material(client, &client->material, err) ||
	    !(client->allowance = grpc_allowance_new(err))) {
		client_free(client);
		return NULL;
	}
	client->queue = grpc_queue_hold();
	build_metadata(client, options->headers);
	client->channel = channel_make(client, &client->material);
	client->renew_at = next_renewal(client);
	client->tick = (struct grpc_tick){ .tick = tick, .context = client };
	grpc_queue_tick(&client->tick);
	return client;
}

bool grpc_client_reopen(struct grpc_client *client, bool *changed, struct error *err)
{
	struct tls_material fresh;
	*changed = false;
	if (!load_material(client, &fresh, err))
		return false;
	pthread_mutex_lock(&client->lock);
	struct rpc_channel *old = NULL;
	if (!tls_equal(&fresh, &client->material)) {
		struct tls_material last = client->material;
		old = client->channel;
		client->channel = channel_make(client, &fresh);
		client->material = fresh;
		fresh = last;
	}
	pthread_mutex_unlock(&client->lock);
	*changed = old != NULL;
	rpc_channel_unref(&old);
	tls_release(&fresh);
	return true;
}

static void cancel_all(struct grpc_client *client)
{
	pthread_mutex_lock(&client->lock);
	for (struct call *call = client->calls; call; call = call->next)
		grpc_call_cancel(call->core, NULL);
	pthread_mutex_unlock(&client->lock);
}

void grpc_client_unref(struct grpc_client **slot)
{
	struct grpc_client *client = *slot;
	*slot = NULL;
	if (!client)
		return;
	assert(!grpc_queue_here());
	cancel_all(client);
	rpc_channel_unref(&client->channel);
	client_leave(client);
	while (sem_wait(&client->idle))
		continue; /* interrupted by a signal */
	grpc_queue_untick(&client->tick);
	client_free(client);
	grpc_queue_release();
}

/* ---- calls ---- */

static void release_bytes(void *argument)
{
	struct call *call = argument;
	void (*release)(void *) = atomic_load(&call->release);
	if (release)
		release(call->owner);
	call_leave(call);
}

static grpc_byte_buffer *buffer_of(struct call *call, const struct grpc_message *message)
{
	grpc_slice slice = grpc_slice_new_with_user_data((void *)message->bytes.at,
							 message->bytes.len, release_bytes, call);
	grpc_byte_buffer *buffer =
		message->coding
			? grpc_raw_compressed_byte_buffer_create(&slice, 1, GRPC_COMPRESS_GZIP)
			: grpc_raw_byte_buffer_create(&slice, 1);
	grpc_slice_unref(slice);
	return buffer;
}

static gpr_timespec deadline_at(uint64_t ns)
{
	return ns == UINT64_MAX ? gpr_inf_future(GPR_CLOCK_MONOTONIC)
				: (gpr_timespec){ .tv_sec = (int64_t)(ns / 1000000000),
						  .tv_nsec = (int32_t)(ns % 1000000000),
						  .clock_type = GPR_CLOCK_MONOTONIC };
}

static void call_join(struct call *call, uint64_t deadline)
{
	struct grpc_client *client = call->client;
	pthread_mutex_lock(&client->lock);
	call->channel = rpc_channel_ref(client->channel);
	call->core = grpc_channel_create_registered_call(call->channel->core, NULL,
							 GRPC_PROPAGATE_DEFAULTS, client->queue,
							 call->channel->method,
							 deadline_at(deadline), NULL);
	call->next = client->calls;
	call->slot = &client->calls;
	if (call->next)
		call->next->slot = &call->next;
	client->calls = call;
	pthread_mutex_unlock(&client->lock);
}

static void call_start(struct call *call, enum coding coding)
{
	const struct grpc_client *client = call->client;
	enum { SEND_OPS = 3 };
	grpc_op ops[SEND_OPS + GRPC_REPLY_OPS] = {
		{ .op = GRPC_OP_SEND_INITIAL_METADATA,
		  .flags = GRPC_INITIAL_METADATA_WAIT_FOR_READY_EXPLICITLY_SET |
			   (client->options.wait_for_ready ? GRPC_INITIAL_METADATA_WAIT_FOR_READY
							   : 0),
		  .data.send_initial_metadata = { .count = client->header_count +
							   call->metadata_count +
							   encoding_count(coding),
						  .metadata = call->metadata
								      ? call->metadata
								      : row_of(client, coding) } },
		{ .op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = call->request },
		{ .op = GRPC_OP_SEND_CLOSE_FROM_CLIENT },
	};
	grpc_reply_ops(&call->reply, ops + SEND_OPS);
	grpc_tag_init(&call->tag, on_answer, call);
	grpc_call *core = call->core;
	struct grpc_tag *tag = &call->tag;
	/* from here on the call may end, and its struct may be reused */
	atomic_store_explicit(&call->started, true, memory_order_release);
	grpc_call_error code =
		grpc_call_start_batch(core, ops, sizeof ops / sizeof *ops, tag, NULL);
	assert(code == GRPC_CALL_OK);
	(void)code;
}

void grpc_client_call(struct grpc_client *client, const struct grpc_message *message,
		      uint64_t timeout_ns,
		      void (*done)(void *argument, const struct grpc_result *result),
		      void *argument)
{
	assert(GRPC_CODINGS & 1u << message->coding);
	client_hold(client);
	uint64_t deadline =
		timeout_ns && timeout_ns < INT64_MAX ? clock_now() + timeout_ns : UINT64_MAX;
	struct call *call = take_spare(client);
	call->done = done;
	call->argument = argument;
	call->overdue_at = deadline == UINT64_MAX ? UINT64_MAX : deadline + OVERDUE_NS;
	call->overruns = grpc_allowance_overruns(client->allowance);
	call->owner = message->owner;
	atomic_store(&call->users, 2);
	atomic_store(&call->release, message->release);
	call->request = buffer_of(call, message);
	call->bytes = message->bytes.len;
	call_build_metadata(call, message->metadata, message->coding);
	grpc_allowance_begin(client->allowance, call->bytes);
	call_join(call, deadline);
	call_start(call, message->coding);
}
