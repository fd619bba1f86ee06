/* SPDX-License-Identifier: Apache-2.0 */
#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/support/time.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "net/grpc_core.h"
#include "tests/bench/peers/clock.h"

/*
 * A sender of OTLP requests over gRPC that costs little.
 *
 *	load -p PORT -k REQUESTS [-c CALLS] [-n CONNECTIONS] [-r REQUESTS_A_SECOND] [-z] FILE...
 *
 * Sends the files in turn, from the first on, until so many requests were taken. Without a rate: as fast as it goes with
 * so many calls under way. With one: each request at its own time, however late the answers are, and the latency counts
 * from that time. -z: the files are gzip, and sent as such. A refusal (UNAVAILABLE, RESOURCE_EXHAUSTED) is tried again
 * 20 ms later, the latency goes on; any other failure ends the run with exit 1.
 *
 * Prints one line of JSON: when it began (CLOCK_MONOTONIC), seconds, own CPU seconds, bytes, refusals, and the latency
 * (median and 99th percentile, milliseconds).
 */
enum { CONNECTIONS_MAX = 64, PARKED_S = 1, RETRY_MS = 20 };

struct call {
	grpc_call *call;
	grpc_metadata_array initial, trailing;
	grpc_byte_buffer *sent, *answer;
	grpc_status_code status;
	grpc_slice details;
	int number;       /* of the request: its place in the order */
	double due;       /* when it should have been sent */
	struct call *next; /* of those that wait to be tried again */
};

static struct options {
	int port, requests, calls, connections;
	double rate;
	bool zipped;
} options = { .calls = 8, .connections = 1 };

static struct load {
	grpc_slice *bodies;
	int body_count, connections;
	grpc_channel *channels[CONNECTIONS_MAX];
	void *methods[CONNECTIONS_MAX];
	grpc_completion_queue *queue;
	grpc_metadata encoding;
	struct call *refused;
	double retry_at, start;
	int begun, live, taken, refusals;
	size_t bytes;
	double *latencies;
} load;

__attribute__((noreturn)) static void die(const char *what, const char *why)
{
	fprintf(stderr, "load: %s: %s\n", what, why);
	exit(1);
}

static grpc_slice read_body(const char *path)
{
	FILE *file = fopen(path, "rb");
	if (!file || fseek(file, 0, SEEK_END))
		die(path, "cannot be read");
	long size = ftell(file);
	rewind(file);
	grpc_slice body = grpc_slice_malloc((size_t)size);
	if (fread(GRPC_SLICE_START_PTR(body), 1, (size_t)size, file) != (size_t)size)
		die(path, "cannot be read");
	fclose(file);
	return body;
}

static void open_channels(void)
{
	char address[32];
	snprintf(address, sizeof address, "127.0.0.1:%d", options.port);
	grpc_arg own_pool = { .type = GRPC_ARG_INTEGER, .key = (char *)GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL,
			      .value.integer = 1 };
	grpc_channel_args arguments = { 1, &own_pool };
	grpc_channel_credentials *insecure = grpc_insecure_credentials_create();
	for (int i = 0; i < options.connections; i++) {
		load.channels[i] = grpc_channel_create(address, insecure, &arguments);
		load.methods[i] = grpc_channel_register_call(load.channels[i], EXPORT_METHOD, NULL, NULL);
	}
	load.encoding.key = grpc_slice_from_static_string("grpc-encoding");
	load.encoding.value = grpc_slice_from_static_string("gzip");
	load.queue = grpc_completion_queue_create_for_next(NULL);
}

static void send_request(struct call *c)
{
	int connection = c->number % options.connections;
	grpc_slice *body = &load.bodies[c->number % load.body_count];
	c->call = grpc_channel_create_registered_call(load.channels[connection], NULL, GRPC_PROPAGATE_DEFAULTS, load.queue,
						      load.methods[connection], gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
	grpc_metadata_array_init(&c->initial);
	grpc_metadata_array_init(&c->trailing);
	c->sent = options.zipped ? grpc_raw_compressed_byte_buffer_create(body, 1, GRPC_COMPRESS_GZIP)
				 : grpc_raw_byte_buffer_create(body, 1);
	grpc_op ops[] = {
		{ .op = GRPC_OP_SEND_INITIAL_METADATA,
		  .flags = GRPC_INITIAL_METADATA_WAIT_FOR_READY | GRPC_INITIAL_METADATA_WAIT_FOR_READY_EXPLICITLY_SET,
		  .data.send_initial_metadata = { .count = options.zipped, .metadata = &load.encoding } },
		{ .op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = c->sent },
		{ .op = GRPC_OP_SEND_CLOSE_FROM_CLIENT },
		{ .op = GRPC_OP_RECV_INITIAL_METADATA, .data.recv_initial_metadata.recv_initial_metadata = &c->initial },
		{ .op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &c->answer },
		{ .op = GRPC_OP_RECV_STATUS_ON_CLIENT,
		  .data.recv_status_on_client = { .trailing_metadata = &c->trailing, .status = &c->status,
						  .status_details = &c->details } },
	};
	if (grpc_call_start_batch(c->call, ops, sizeof ops / sizeof *ops, c, NULL) != GRPC_CALL_OK)
		die("call", "cannot be started");
	load.live++;
}

static void release(struct call *c)
{
	grpc_byte_buffer_destroy(c->sent);
	if (c->answer)
		grpc_byte_buffer_destroy(c->answer);
	c->answer = NULL;
	grpc_metadata_array_destroy(&c->initial);
	grpc_metadata_array_destroy(&c->trailing);
	grpc_slice_unref(c->details);
	grpc_call_unref(c->call);
}

static void finish(struct call *c)
{
	load.live--;
	if (c->status == GRPC_STATUS_OK) {
		load.latencies[load.taken++] = now() - c->due;
		load.bytes += GRPC_SLICE_LENGTH(load.bodies[c->number % load.body_count]);
		release(c);
		memory_free(c);
		return;
	}
	if (c->status != GRPC_STATUS_UNAVAILABLE && c->status != GRPC_STATUS_RESOURCE_EXHAUSTED)
		die("status", grpc_slice_to_c_string(c->details));
	release(c);
	load.refusals++;
	load.retry_at = now() + RETRY_MS * 1e-3;
	c->next = load.refused;
	load.refused = c;
}

static double due(int number)
{
	return options.rate > 0 ? load.start + number / options.rate : now();
}

/* Sends what may be sent now. */
static void send_some(void)
{
	bool open = options.rate > 0;
	while (load.refused && (open || load.live < options.calls) && now() >= load.retry_at) {
		struct call *c = load.refused;
		load.refused = c->next;
		send_request(c);
	}
	while (load.begun < options.requests && (open ? due(load.begun) <= now() : !load.refused && load.live < options.calls)) {
		struct call *c = memory_new(sizeof *c);
		c->number = load.begun++;
		c->due = due(c->number);
		send_request(c);
	}
}

/* Until when nothing is to be sent. */
static gpr_timespec pause_end(void)
{
	double until = now() + PARKED_S;
	if (load.refused)
		until = load.retry_at;
	else if (options.rate > 0 && load.begun < options.requests)
		until = due(load.begun);
	double wait = until - now();
	return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
			    gpr_time_from_micros(wait > 0 ? (int64_t)(wait * 1e6) : 0, GPR_TIMESPAN));
}

static void run(void)
{
	load.start = now();
	while (load.taken < options.requests) {
		send_some();
		grpc_event event = grpc_completion_queue_next(load.queue, pause_end(), NULL);
		if (event.type == GRPC_OP_COMPLETE)
			finish(event.tag);
	}
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void print(void)
{
	double seconds = now() - load.start;
	qsort(load.latencies, (size_t)load.taken, sizeof *load.latencies, ascending);
	printf("{\"began\": %.6f, \"seconds\": %.6f, \"cpu\": %.6f, \"bytes\": %zu, \"refused\": %d, "
	       "\"p50_ms\": %.3f, \"p99_ms\": %.3f}\n", load.start, seconds, cpu_used(), load.bytes, load.refusals,
	       load.latencies[load.taken / 2] * 1e3, load.latencies[load.taken * 99 / 100] * 1e3);
}

static void parse(int argc, char **argv)
{
	for (int option; (option = getopt(argc, argv, "p:k:c:n:r:z")) != -1;) {
		switch (option) {
		case 'p': options.port = (int)strtol(optarg, NULL, 10); break;
		case 'k': options.requests = (int)strtol(optarg, NULL, 10); break;
		case 'c': options.calls = (int)strtol(optarg, NULL, 10); break;
		case 'n': options.connections = (int)strtol(optarg, NULL, 10); break;
		case 'r': options.rate = strtod(optarg, NULL); break;
		case 'z': options.zipped = true; break;
		default: die("usage", "load -p PORT -k REQUESTS [-c CALLS] [-n CONNECTIONS] [-r RATE] [-z] FILE...");
		}
	}
	if (optind == argc || options.requests < 1 || options.connections < 1 || options.connections > CONNECTIONS_MAX)
		die("usage", "no file, or a number out of range");
}

int main(int argc, char **argv)
{
	parse(argc, argv);
	grpc_core_init();
	load.body_count = argc - optind;
	load.bodies = memory_array((size_t)load.body_count, sizeof *load.bodies);
	for (int i = 0; i < load.body_count; i++)
		load.bodies[i] = read_body(argv[optind + i]);
	load.latencies = memory_array((size_t)options.requests, sizeof *load.latencies);
	open_channels();
	run();
	print();
	fflush(stdout);
	_exit(0); /* what core still holds is nobody's business */
}
