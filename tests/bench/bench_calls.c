/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "net/grpc/grpc_client.h"
#include "tests/bench/peers/clock.h"

/*
 * bench_calls [-n calls] [-b bytes] [-k in flight] host:port
 *
 * Makes calls of the gRPC client to a server that accepts everything (tests/bench/peers/sink -t).
 * Prints the CPU time of this process and the wall-clock time for each call.
 */
#define TIMEOUT_NS (UINT64_C(60) * 1000000000)

static struct load {
	struct grpc_client *client;
	struct grpc_message message;
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t changed;
	unsigned in_flight, failed;
} load = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void on_done(void *argument, const struct grpc_result *result)
{
	(void)argument;
	pthread_mutex_lock(&load.lock);
	load.in_flight--;
	load.failed += result->status != 0;
	pthread_cond_signal(&load.changed);
	pthread_mutex_unlock(&load.lock);
}

static void wait_until_fewer(unsigned count)
{
	pthread_mutex_lock(&load.lock);
	while (load.in_flight >= count)
		pthread_cond_wait(&load.changed, &load.lock);
	load.in_flight++;
	pthread_mutex_unlock(&load.lock);
}

static void call_many(unsigned calls, unsigned in_flight)
{
	for (unsigned i = 0; i < calls; i++) {
		wait_until_fewer(in_flight);
		grpc_client_call(load.client, &load.message, TIMEOUT_NS, on_done, NULL);
	}
	wait_until_fewer(1); /* the last call has its reply */
	load.in_flight = 0;
}

static struct grpc_client *connect_to(const char *endpoint)
{
	struct error err = { 0 };
	struct tls_client_config tls = { .insecure = true };
	struct grpc_client *client =
		grpc_client_new(&(struct grpc_client_options){ .endpoint = endpoint,
							       .method = EXPORT_METHOD,
							       .tls = &tls,
							       .balancer = "round_robin",
							       .wait_for_ready = true,
							       .user_agent = "bench" },
				&err);
	if (!client) {
		fprintf(stderr, "bench_calls: %s\n", err.text);
		exit(1);
	}
	return client;
}

int main(int argc, char **argv)
{
	unsigned calls = 10000, bytes = 2000, in_flight = 8;
	for (int option; (option = getopt(argc, argv, "n:b:k:")) != -1;) {
		unsigned *const into = option == 'n'   ? &calls
				       : option == 'b' ? &bytes
				       : option == 'k' ? &in_flight
						       : NULL;
		if (!into)
			return 2;
		*into = (unsigned)strtoul(optarg, NULL, 10);
	}
	if (optind != argc - 1)
		return 2;
	uint8_t *body = memory_new(bytes);
	load.message.bytes = (struct view){ body, bytes };
	load.client = connect_to(argv[optind]);
	call_many(100, in_flight);
	double cpu = cpu_used(), wall = now();
	call_many(calls, in_flight);
	cpu = cpu_used() - cpu;
	wall = now() - wall;
	printf("calls %u bytes %u in_flight %u cpu_us %.2f wall_us %.2f "
	       "failed %u\n",
	       calls, bytes, in_flight, cpu / calls * 1e6, wall / calls * 1e6, load.failed);
	grpc_client_unref(&load.client);
	memory_free(body);
	return load.failed != 0;
}
