/* SPDX-License-Identifier: Apache-2.0 */
#include "net/grpc_client.h"

#include <assert.h>
#include <ctype.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/support/alloc.h>
#include <pthread.h>

#include "base/memory.h"
#include "net/compress.h"
#include "net/grpc_core.h"
#include "net/grpc_queue.h"
#include "net/rpc_channel.h"
#include "status.pb-c.h"

struct grpc_client {
	struct grpc_client_options options; /* with texts of its own */
	grpc_completion_queue *queue;
	struct grpc_endpoint endpoint;
	struct tls_material material;
	grpc_metadata *metadata;  /* the headers, then grpc-encoding: gzip */
	size_t header_count;
	pthread_mutex_t lock;     /* guards channel, calls, material */
	struct rpc_channel *channel;
	struct call *calls;       /* that can be cancelled */
	/* A lock of its own, because core may release a message while `lock` is held around one of its functions. */
	pthread_mutex_t busy_lock; /* guards busy */
	pthread_cond_t idle;      /* busy became 0 */
	size_t busy;              /* calls, and messages that core holds */
};

/*
 * Two batches of operations: while a peer does not read, what is being written can neither be cancelled nor
 * ended by a deadline, but the answer can; so `done` waits for the answer alone, and the call for both.
 */
struct call {
	struct grpc_tag sent, answered;
	int pending; /* events; on the queue's thread */
	struct grpc_client *client;
	struct rpc_channel *channel;
	struct call *next, **slot; /* in client->calls */
	grpc_call *core;
	void (*done)(void *argument, const struct grpc_result *result);
	void *argument;
	grpc_byte_buffer *request, *response;
	grpc_metadata_array initial, trailing;
	grpc_status_code status;
	grpc_slice details;
};

/* ---- answers: on the queue's thread ---- */

static int64_t milliseconds(const Google__Rpc__Duration *delay)
{
	if (!delay || delay->seconds < 0 || delay->seconds > INT32_MAX || delay->nanos < 0)
		return 0;
	return delay->seconds * 1000 + (delay->nanos + 999999LL) / 1000000;
}

/* -1 if it is no RetryInfo. */
static int64_t retry_delay_of(const Google__Rpc__Any *detail)
{
	const char *name = strrchr(detail->type_url, '/');
	if (!name || strcmp(name, "/google.rpc.RetryInfo"))
		return -1;
	Google__Rpc__RetryInfo *info =
		google__rpc__retry_info__unpack(NULL, detail->value.len, detail->value.data);
	if (!info)
		return -1;
	int64_t delay = milliseconds(info->retry_delay);
	google__rpc__retry_info__free_unpacked(info, NULL);
	return delay;
}

static int64_t retry_delay_in(grpc_slice details)
{
	int64_t delay = -1;
	if (GRPC_SLICE_LENGTH(details) > RPC_METADATA_MAX)
		return -1;
	Google__Rpc__Status *status = google__rpc__status__unpack(NULL, GRPC_SLICE_LENGTH(details),
								  GRPC_SLICE_START_PTR(details));
	for (size_t i = 0; status && i < status->n_details && delay < 0; i++)
		delay = retry_delay_of(status->details[i]);
	if (status)
		google__rpc__status__free_unpacked(status, NULL);
	return delay;
}

static int64_t find_retry_delay(const grpc_metadata_array *trailing)
{
	int64_t delay = -1;
	for (size_t i = 0; i < trailing->count && delay < 0; i++)
		if (grpc_slice_str_cmp(trailing->metadata[i].key, "grpc-status-details-bin") == 0)
			delay = retry_delay_in(trailing->metadata[i].value);
	return delay;
}

static enum coding coding_of(const grpc_byte_buffer *buffer)
{
	switch (buffer->data.raw.compression) {
	case GRPC_COMPRESS_GZIP:
		return CODING_GZIP;
	case GRPC_COMPRESS_DEFLATE:
		return CODING_ZLIB;
	default:
		return CODING_IDENTITY;
	}
}

/* Core inflates nothing for us: it would do so without a limit. */
static void read_response(grpc_byte_buffer *buffer, struct bytes *out)
{
	grpc_byte_buffer_reader reader;
	bytes_init(out, GRPC_CLIENT_ANSWER_MAX);
	if (!buffer || !grpc_byte_buffer_reader_init(&reader, buffer))
		return;
	grpc_slice all = grpc_byte_buffer_reader_readall(&reader);
	grpc_byte_buffer_reader_destroy(&reader);
	struct view in = { GRPC_SLICE_START_PTR(all), GRPC_SLICE_LENGTH(all) };
	if (!compress_inflate(coding_of(buffer), in, out, NULL))
		out->len = 0;
	grpc_slice_unref(all);
}

/*
 * What core's balancers and resolvers say when they have no connection to give a call to. They are texts, and may change;
 * then nothing is known to be unsent any more, which is the safe side.
 */
static bool never_left(int status, const char *message)
{
	static const char *const words[] = { "failed to connect to all addresses", "connections to all backends failing",
					     "DNS resolution failed", "empty address list" };
	for (size_t i = 0; status == GRPC_STATUS_UNAVAILABLE && i < sizeof words / sizeof *words; i++)
		if (!strncmp(message, words[i], strlen(words[i])))
			return true;
	return false;
}

static void call_unlink(struct call *call)
{
	pthread_mutex_lock(&call->client->lock);
	*call->slot = call->next;
	if (call->next)
		call->next->slot = call->slot;
	pthread_mutex_unlock(&call->client->lock);
}

static void client_enter(struct grpc_client *client)
{
	pthread_mutex_lock(&client->busy_lock);
	client->busy++;
	pthread_mutex_unlock(&client->busy_lock);
}

/* The client may be gone on return. */
static void client_leave(struct grpc_client *client)
{
	pthread_mutex_lock(&client->busy_lock);
	if (!--client->busy)
		pthread_cond_signal(&client->idle);
	pthread_mutex_unlock(&client->busy_lock);
}

static void call_free(struct call *call)
{
	grpc_call_unref(call->core);
	rpc_channel_unref(&call->channel);
	grpc_byte_buffer_destroy(call->request);
	grpc_byte_buffer_destroy(call->response);
	grpc_metadata_array_destroy(&call->initial);
	grpc_metadata_array_destroy(&call->trailing);
	grpc_slice_unref(call->details);
	memory_free(call);
}

static void call_over(void *owner, bool ok)
{
	struct call *call = owner;
	struct grpc_client *client = call->client;
	(void)ok;
	if (--call->pending)
		return;
	call_unlink(call);
	call_free(call);
	client_leave(client);
}

static void on_answer(void *owner, bool ok)
{
	struct call *call = owner;
	struct bytes response;
	char *message = grpc_slice_to_c_string(call->details);
	read_response(call->response, &response);
	struct grpc_result result = { .status = (int)call->status, .message = message,
				      .response = bytes_view(&response),
				      .retry_delay_ms = find_retry_delay(&call->trailing),
				      .unsent = never_left((int)call->status, message) };
	call->done(call->argument, &result);
	bytes_fini(&response);
	gpr_free(message);
	call_over(call, ok);
}

/* ---- headers ---- */

/* What core writes itself; a second value would contradict it. */
static bool is_reserved(const char *name)
{
	static const char *const names[] = { "content-type", "te", "user-agent", "host", "connection" };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(name, names[i]))
			return true;
	return !strncmp(name, "grpc-", 5);
}

static grpc_metadata header_of(const struct pair *pair)
{
	char *name = memory_text(pair->name);
	for (char *c = name; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	grpc_metadata m = { .key = grpc_slice_from_copied_string(name),
			    .value = grpc_slice_from_copied_string(pair->value.text ? pair->value.text : "") };
	memory_free(name);
	return m;
}

static void header_release(grpc_metadata *m)
{
	grpc_slice_unref(m->key);
	grpc_slice_unref(m->value);
}

static bool header_is_legal(const grpc_metadata *m)
{
	char *name = grpc_slice_to_c_string(m->key);
	bool legal = grpc_header_key_is_legal(m->key) && !is_reserved(name) &&
		     (grpc_is_binary_header(m->key) || grpc_header_nonbin_value_is_legal(m->value));
	gpr_free(name);
	return legal;
}

bool grpc_client_check_headers(const struct pairs *headers, struct error *err)
{
	for (size_t i = 0; headers && i < headers->count; i++) {
		grpc_metadata m = header_of(&headers->at[i]);
		bool legal = header_is_legal(&m);
		header_release(&m);
		if (!legal)
			return error_set(err, ERROR_CONFIG, "headers[%zu]: cannot be sent: the name is reserved, "
					 "or name or value has bytes that HTTP/2 forbids", i);
	}
	return true;
}

static void build_metadata(struct grpc_client *client, const struct pairs *headers)
{
	size_t count = headers ? headers->count : 0;
	client->metadata = memory_array(count + 1, sizeof *client->metadata);
	for (size_t i = 0; i < count; i++)
		client->metadata[i] = header_of(&headers->at[i]);
	client->metadata[count] = (grpc_metadata){ .key = grpc_slice_from_static_string("grpc-encoding"),
						   .value = grpc_slice_from_static_string("gzip") };
	client->header_count = count;
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
	pthread_mutex_init(&client->busy_lock, NULL);
	pthread_cond_init(&client->idle, NULL);
	return client;
}

static void client_free(struct grpc_client *client)
{
	for (size_t i = 0; i < client->header_count; i++)
		header_release(&client->metadata[i]);
	memory_free(client->metadata);
	memory_free((char *)client->options.method);
	memory_free((char *)client->options.user_agent);
	memory_free((char *)client->options.authority);
	memory_free((char *)client->options.balancer);
	tls_release(&client->material);
	grpc_endpoint_fini(&client->endpoint);
	pthread_cond_destroy(&client->idle);
	pthread_mutex_destroy(&client->busy_lock);
	pthread_mutex_destroy(&client->lock);
	memory_free(client);
}

static bool load_material(const struct grpc_client *client, struct tls_material *out, struct error *err)
{
	*out = (struct tls_material){ 0 };
	const struct tls_client_config *tls = client->options.tls;
	return !tls || grpc_endpoint_is_plaintext(&client->endpoint, tls) || tls_load_client(tls, out, err);
}

struct grpc_client *grpc_client_new(const struct grpc_client_options *options, struct error *err)
{
	struct grpc_client *client = client_make(options);
	if (!grpc_endpoint_parse(options->endpoint, &client->endpoint, err) ||
	    !grpc_client_check_headers(options->headers, err) ||
	    !load_material(client, &client->material, err)) {
		client_free(client);
		return NULL;
	}
	client->queue = grpc_queue_hold();
	build_metadata(client, options->headers);
	client->channel = rpc_channel_new(&client->endpoint, &client->options, &client->material);
	return client;
}

bool grpc_client_reload(struct grpc_client *client, bool *changed, struct error *err)
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
		client->channel = rpc_channel_new(&client->endpoint, &client->options, &fresh);
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
	pthread_mutex_lock(&client->busy_lock);
	while (client->busy)
		pthread_cond_wait(&client->idle, &client->busy_lock);
	pthread_mutex_unlock(&client->busy_lock);
	client_free(client);
	grpc_queue_release();
}

/* ---- calls ---- */

/*
 * What a thread of core hands back to us it has ordered by means that our thread sanitizer does not see. So one
 * atomic member, here `release`, is written last and read first.
 */
struct owner {
	struct grpc_client *client;
	void *owner;
	void (*_Atomic release)(void *owner);
};

static void release_bytes(void *argument)
{
	struct owner *owner = argument;
	void (*release)(void *) = atomic_load(&owner->release);
	if (release)
		release(owner->owner);
	client_leave(owner->client);
	memory_free(owner);
}

/* Core may still write from the bytes after a call has been cancelled: it tells when it lets go of them. */
static grpc_byte_buffer *buffer_of(struct grpc_client *client, const struct grpc_message *message)
{
	client_enter(client);
	struct owner *owner = memory_new(sizeof *owner);
	owner->client = client;
	owner->owner = message->owner;
	atomic_store(&owner->release, message->release);
	grpc_slice slice = grpc_slice_new_with_user_data((void *)message->bytes.at, message->bytes.len,
							 release_bytes, owner);
	grpc_byte_buffer *buffer =
		message->gzip ? grpc_raw_compressed_byte_buffer_create(&slice, 1, GRPC_COMPRESS_GZIP)
			      : grpc_raw_byte_buffer_create(&slice, 1);
	grpc_slice_unref(slice);
	return buffer;
}

static gpr_timespec deadline_after(uint64_t timeout_ns)
{
	if (!timeout_ns || timeout_ns > INT64_MAX)
		return gpr_inf_future(GPR_CLOCK_MONOTONIC);
	return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos((int64_t)timeout_ns, GPR_TIMESPAN));
}

static void call_join(struct call *call, uint64_t timeout_ns)
{
	struct grpc_client *client = call->client;
	pthread_mutex_lock(&client->lock);
	call->channel = rpc_channel_ref(client->channel);
	call->core = grpc_channel_create_registered_call(call->channel->core, NULL, GRPC_PROPAGATE_DEFAULTS,
							 client->queue, call->channel->method,
							 deadline_after(timeout_ns), NULL);
	call->next = client->calls;
	call->slot = &client->calls;
	if (call->next)
		call->next->slot = &call->next;
	client->calls = call;
	pthread_mutex_unlock(&client->lock);
}

static void start_batch(struct call *call, const grpc_op *ops, size_t count, struct grpc_tag *tag)
{
	grpc_call_error code = grpc_call_start_batch(call->core, ops, count, tag, NULL);
	assert(code == GRPC_CALL_OK);
	(void)code;
}

static void start_receiving(struct call *call)
{
	const grpc_op ops[] = {
		{ .op = GRPC_OP_RECV_INITIAL_METADATA,
		  .data.recv_initial_metadata.recv_initial_metadata = &call->initial },
		{ .op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &call->response },
		{ .op = GRPC_OP_RECV_STATUS_ON_CLIENT,
		  .data.recv_status_on_client = { .trailing_metadata = &call->trailing,
						  .status = &call->status,
						  .status_details = &call->details } },
	};
	start_batch(call, ops, sizeof ops / sizeof *ops, &call->answered);
}

static void start_sending(struct call *call, bool gzip)
{
	const struct grpc_client *client = call->client;
	uint32_t flags = GRPC_INITIAL_METADATA_WAIT_FOR_READY_EXPLICITLY_SET |
			 (client->options.wait_for_ready ? GRPC_INITIAL_METADATA_WAIT_FOR_READY : 0);
	const grpc_op ops[] = {
		{ .op = GRPC_OP_SEND_INITIAL_METADATA, .flags = flags,
		  .data.send_initial_metadata = { .count = client->header_count + gzip,
						  .metadata = client->metadata } },
		{ .op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = call->request },
		{ .op = GRPC_OP_SEND_CLOSE_FROM_CLIENT },
	};
	start_batch(call, ops, sizeof ops / sizeof *ops, &call->sent);
}

void grpc_client_call(struct grpc_client *client, const struct grpc_message *message, uint64_t timeout_ns,
		      void (*done)(void *argument, const struct grpc_result *result), void *argument)
{
	client_enter(client);
	struct call *call = memory_new(sizeof *call);
	call->client = client;
	call->done = done;
	call->argument = argument;
	call->request = buffer_of(client, message);
	call->details = grpc_empty_slice();
	grpc_metadata_array_init(&call->initial);
	grpc_metadata_array_init(&call->trailing);
	call->pending = 2;
	call_join(call, timeout_ns);
	grpc_tag_init(&call->sent, call_over, call);
	grpc_tag_init(&call->answered, on_answer, call);
	start_sending(call, message->gzip);
	start_receiving(call);
}
