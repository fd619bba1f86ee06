/* SPDX-License-Identifier: Apache-2.0 */
#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/support/time.h>

#include "base/memory.h"
#include "net/grpc/grpc_core.h"
#include "tests/bench/peers/counting.h"

/*
 * sink [-t]
 *
 * An OTLP server over gRPC that counts what it gets (counting.h). -t: does not count the contents
 * of requests, for measurements of time that share a CPU with it. Prints "port N".
 */
enum { CALLS = 64 };

struct call {
	grpc_call *call;
	gpr_timespec deadline;
	grpc_metadata_array metadata;
	grpc_byte_buffer *body;
	int cancelled;
	bool answered;
};

static struct sink {
	grpc_server *server;
	grpc_completion_queue *queue;
	void *method;
	struct bytes body;
} sink;

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

static void take(grpc_byte_buffer *body)
{
	copy_body(body);
	count_request(bytes_view(&sink.body));
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
	counting.times_only = argc > 1 && !strcmp(argv[1], "-t");
	grpc_core_init();
	bytes_init(&sink.body, BODY_MAX);
	int port = listen_on_any();
	for (int i = 0; i < CALLS; i++)
		await_call();
	counting_start(port);
	for (;;) {
		grpc_event event =
			grpc_completion_queue_next(sink.queue, gpr_inf_future(GPR_CLOCK_MONOTONIC),
						   NULL);
		if (event.type == GRPC_OP_COMPLETE)
			serve(event.tag, event.success);
	}
}
