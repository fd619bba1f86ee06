/* SPDX-License-Identifier: Apache-2.0 */
#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/support/time.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "net/compress.h"
#include "net/grpc/grpc_core.h"
#include "profile/wire.h"
#include "tests/bench/peers/clock.h"

/*
 * sink [-t]
 *
 * An OTLP server over gRPC that accepts everything and counts it. -t: does not count the contents
 * of requests, for measurements of time that share a CPU with it. Prints "port N". For each line of
 * its input, it then prints a line of JSON: requests, their bytes as received (gzip or not), CPU
 * seconds of this process, the mean arrival time (CLOCK_MONOTONIC), and their contents: samples,
 * timestamps, the sum of all values (mod 2^64). The line "take" also resets the counts. It ends at
 * the end of its input.
 */
enum { CALLS = 64, BODY_MAX = 256 << 20 };

struct call {
	grpc_call *call;
	gpr_timespec deadline;
	grpc_metadata_array metadata;
	grpc_byte_buffer *body;
	int cancelled;
	bool answered;
};

struct counts {
	uint64_t requests, bytes, samples, timestamps, values;
	double came; /* the sum of the arrival times */
};

static struct sink {
	grpc_server *server;
	grpc_completion_queue *queue;
	void *method;
	struct bytes body, inflated;
	pthread_mutex_t lock; /* guards counts */
	struct counts counts;
	bool times_only;
} sink = { .lock = PTHREAD_MUTEX_INITIALIZER };

__attribute__((noreturn)) static void die(const char *why)
{
	fprintf(stderr, "sink: %s\n", why);
	exit(1);
}

/* A single value may be unpacked; several are packed. */
static void count_values(struct wire_field f, struct counts *counts)
{
	struct wire packed = wire_of(f.view);
	if (f.type == WIRE_VARINT)
		counts->values += f.value;
	else
		while (wire_more(&packed))
			counts->values += wire_varint(&packed);
}

static void count_sample(struct view sample, struct counts *counts)
{
	struct wire w = wire_of(sample);
	struct wire_field f;
	counts->samples++;
	while (wire_next(&w, &f)) {
		if (f.number == 4)
			count_values(f, counts);
		else if (f.number == 5)
			counts->timestamps += f.type == WIRE_LEN ? f.view.len / 8 : 1;
	}
}

/* Descends by field number: request, ResourceProfiles, ScopeProfiles, Profile, Sample. */
static void count_in(struct view message, int depth, struct counts *counts)
{
	static const uint32_t down[] = { WIRE_TAG(1, WIRE_LEN), WIRE_TAG(2, WIRE_LEN),
					 WIRE_TAG(2, WIRE_LEN), WIRE_TAG(2, WIRE_LEN) };
	if (depth == sizeof down / sizeof *down) {
		count_sample(message, counts);
		return;
	}
	struct wire w = wire_of(message);
	while (wire_more(&w)) {
		uint32_t tag = wire_tag(&w);
		if (tag == down[depth])
			count_in(wire_len(&w), depth + 1, counts);
		else
			wire_skip(&w, tag);
	}
	if (!wire_done(&w))
		die("a request is malformed");
}

static void copy_body(grpc_byte_buffer *body)
{
	grpc_byte_buffer_reader reader;
	grpc_slice slice;
	sink.body.len = 0;
	if (!grpc_byte_buffer_reader_init(&reader, body))
		die("a request cannot be read");
	while (grpc_byte_buffer_reader_next(&reader, &slice)) {
		if (!bytes_add(&sink.body, GRPC_SLICE_START_PTR(slice), GRPC_SLICE_LENGTH(slice)))
			die("a request is too large");
		grpc_slice_unref(slice);
	}
	grpc_byte_buffer_reader_destroy(&reader);
}

static struct view inflate(void)
{
	struct error err;
	struct view body = bytes_view(&sink.body);
	enum coding coding = compress_sniff(body);
	if (coding == CODING_IDENTITY)
		return body;
	sink.inflated.len = 0;
	if (!compress_inflate(coding, body, &sink.inflated, &err))
		die(err.text);
	return bytes_view(&sink.inflated);
}

static void take(grpc_byte_buffer *body)
{
	copy_body(body);
	struct counts counts = { .requests = 1, .bytes = sink.body.len, .came = now() };
	if (!sink.times_only)
		count_in(inflate(), 0, &counts);
	pthread_mutex_lock(&sink.lock);
	sink.counts.requests += counts.requests;
	sink.counts.bytes += counts.bytes;
	sink.counts.samples += counts.samples;
	sink.counts.timestamps += counts.timestamps;
	sink.counts.values += counts.values;
	sink.counts.came += counts.came;
	pthread_mutex_unlock(&sink.lock);
}

static void *talk(void *unused)
{
	(void)unused;
	char line[64];
	while (fgets(line, sizeof line, stdin)) {
		pthread_mutex_lock(&sink.lock);
		const struct counts *c = &sink.counts;
		printf("{\"requests\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"samples\": %" PRIu64
		       ", \"timestamps\": %" PRIu64 ", \"values\": %" PRIu64
		       ", \"came\": %.6f, \"cpu\": %.6f}\n",
		       c->requests, c->bytes, c->samples, c->timestamps, c->values,
		       c->requests ? c->came / (double)c->requests : 0, cpu_used());
		if (!strcmp(line, "take\n"))
			sink.counts = (struct counts){ 0 };
		pthread_mutex_unlock(&sink.lock);
		fflush(stdout);
	}
	_exit(0);
}

static void await_call(void)
{
	struct call *c = memory_new(sizeof *c);
	grpc_metadata_array_init(&c->metadata);
	if (grpc_server_request_registered_call(sink.server, sink.method, &c->call, &c->deadline,
						&c->metadata, &c->body, sink.queue, sink.queue,
						c) != GRPC_CALL_OK)
		die("cannot wait for calls");
}

static void answer(struct call *c)
{
	grpc_slice nothing = grpc_empty_slice();
	grpc_byte_buffer *empty = grpc_raw_byte_buffer_create(&nothing, 1);
	grpc_op ops[] = {
		{ .op = GRPC_OP_SEND_INITIAL_METADATA },
		{ .op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = empty },
		{ .op = GRPC_OP_SEND_STATUS_FROM_SERVER },
		{ .op = GRPC_OP_RECV_CLOSE_ON_SERVER,
		  .data.recv_close_on_server.cancelled = &c->cancelled },
	};
	c->answered = true;
	if (grpc_call_start_batch(c->call, ops, sizeof ops / sizeof *ops, c, NULL) != GRPC_CALL_OK)
		die("cannot answer");
	grpc_byte_buffer_destroy(empty);
}

static void serve(struct call *c, bool success)
{
	if (c->answered || !success) {
		grpc_metadata_array_destroy(&c->metadata);
		if (c->call)
			grpc_call_unref(c->call);
		memory_free(c);
		return;
	}
	await_call();
	if (c->body) {
		take(c->body);
		grpc_byte_buffer_destroy(c->body);
	}
	answer(c);
}

static int listen_on_any(void)
{
	grpc_arg arguments[] = {
		{ .type = GRPC_ARG_INTEGER,
		  .key = (char *)GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH,
		  .value.integer = BODY_MAX },
		{ .type = GRPC_ARG_INTEGER,
		  .key = (char *)GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION,
		  .value.integer = 0 },
	};
	grpc_channel_args all = { sizeof arguments / sizeof *arguments, arguments };
	sink.server = grpc_server_create(&all, NULL);
	sink.queue = grpc_completion_queue_create_for_next(NULL);
	grpc_server_register_completion_queue(sink.server, sink.queue, NULL);
	sink.method = grpc_server_register_method(sink.server, EXPORT_METHOD, NULL,
						  GRPC_SRM_PAYLOAD_READ_INITIAL_BYTE_BUFFER, 0);
	int port = grpc_server_add_http2_port(sink.server, "127.0.0.1:0",
					      grpc_insecure_server_credentials_create());
	if (!port)
		die("no port");
	grpc_server_start(sink.server);
	return port;
}

int main(int argc, char **argv)
{
	pthread_t talker;
	sink.times_only = argc > 1 && !strcmp(argv[1], "-t");
	grpc_core_init();
	bytes_init(&sink.body, BODY_MAX);
	bytes_init(&sink.inflated, BODY_MAX);
	printf("port %d\n", listen_on_any());
	fflush(stdout);
	for (int i = 0; i < CALLS; i++)
		await_call();
	if (pthread_create(&talker, NULL, talk, NULL))
		die("no thread");
	for (;;) {
		grpc_event event =
			grpc_completion_queue_next(sink.queue, gpr_inf_future(GPR_CLOCK_MONOTONIC),
						   NULL);
		if (event.type == GRPC_OP_COMPLETE)
			serve(event.tag, event.success);
	}
}
