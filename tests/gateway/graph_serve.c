/* SPDX-License-Identifier: Apache-2.0 */
#include "config/load.h"
#include "gateway/runtime.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/*
 * The program's runtime with one graph after the other, for test_graphs.py: graph_serve CONFIG.
 * Lines on standard input:
 *
 *	next   builds and starts a graph beside the one that runs, from the same configuration, and
 *	       lets that one retire; prints "retired" when it has
 *	stop   stops the graph that runs and ends
 *
 * Prints "ready" when a graph has started.
 */
static struct runtime runtime;
static struct node *root;
static struct graph *running, *retiring;
static struct loop_socket *commands;

#define GRACE_NS (20 * UINT64_C(1000000000))

static bool ready(void *context)
{
	(void)context;
	return true;
}

static uint64_t since(void *context)
{
	(void)context;
	return 0;
}

static const struct service_view view = { .ready = ready, .up_since = since };

static void say(const char *text)
{
	puts(text);
	fflush(stdout);
}

static struct graph *begin(void)
{
	struct error err = { 0 };
	struct graph *graph = runtime_build(&runtime, root, &view, &err);
	if (graph && runtime_run(&runtime, graph, &err)) {
		say("ready");
		return graph;
	}
	say(err.text);
	_exit(1);
}

static void has_retired(void *argument)
{
	(void)argument;
	graph_unref(&retiring);
	say("retired");
}

static void has_stopped(void *argument)
{
	(void)argument;
	loop_socket_unref(&commands);
	loop_stop(runtime.loop);
}

static void obey(void *argument, int fd, unsigned events)
{
	char line[64];
	ssize_t len = read(fd, line, sizeof line - 1);
	(void)argument;
	(void)events;
	line[len > 0 ? len : 0] = '\0';
	if (!strcmp(line, "next\n")) {
		retiring = running;
		running = begin();
		graph_retire(retiring, GRACE_NS, has_retired, NULL);
	} else {
		loop_socket_watch(commands, 0);
		graph_stop(running, GRACE_NS, has_stopped, NULL);
	}
}

int main(int argc, char **argv)
{
	struct error err = { 0 };
	const char *const locations[] = { argv[argc - 1] };
	root = config_load(&(struct config_sources){ .locations = locations, .location_count = 1 },
			   &err);
	if (!root || !runtime_open(&runtime, root, &err) ||
	    !telemetry_open_log(runtime.telemetry, &err) || !runtime_start(&runtime, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	running = begin();
	commands = loop_socket_new(runtime.loop, STDIN_FILENO, obey, NULL);
	loop_socket_watch(commands, LOOP_READABLE);
	loop_run(runtime.loop);
	graph_unref(&running);
	runtime_close(&runtime);
	node_unref(&root);
	log_close();
	return 0;
}
