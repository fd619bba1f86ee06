/* SPDX-License-Identifier: Apache-2.0 */
#include "config/load.h"
#include "gateway/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * The program's runtime with one graph after the other, for test_graphs.py: graph_serve CONFIG
 * GRACE, the latter in seconds. Lines on standard input:
 *
 *	next   reads CONFIG again, builds and starts a graph beside the one that runs, and lets that
 *	       one retire; prints "retired" when it has
 *	reopen does what SIGHUP does, then prints "reopened"
 *	stop   stops the graph that runs, and the program ends
 *
 * Prints "ready" when a graph has started.
 */
static struct runtime runtime;
static struct served { /* a graph with its configuration */
	struct node *root;
	struct graph *graph;
} running, retiring;
static const char *location;
static uint64_t grace_ns;
static struct loop_socket *commands;

static bool ready(void *context)
{
	(void)context;
	return true;
}

static void details(void *context, bool all, struct bytes *json)
{
	(void)context, (void)all;
	bytes_add_text(json, "[]");
}

static uint64_t since(void *context)
{
	(void)context;
	return 0;
}

static const struct service_view view = { .ready = ready, .up_since = since, .details = details };

static void say(const char *text)
{
	puts(text);
	fflush(stdout);
}

static struct node *load(struct error *err)
{
	return config_load(&(struct config_sources){ .locations = &location, .location_count = 1 },
			   err);
}

static void begin(void)
{
	struct error err = { 0 };
	struct problems problems = { 0 };
	running.root = load(&err);
	running.graph = running.root ? runtime_build(&runtime, running.root, &view, retiring.graph,
						     &problems)
				     : NULL;
	if (running.graph && runtime_run(&runtime, running.graph, &problems)) {
		graph_succeed(running.graph);
		problems_fini(&problems);
		say("ready");
		return;
	}
	problems_end(&problems, &err);
	say(err.text);
	_exit(1);
}

static void end(struct served *served)
{
	graph_unref(&served->graph);
	node_unref(&served->root);
}

static void has_retired(void *argument)
{
	(void)argument;
	end(&retiring);
	say("retired");
}

static void none_is_left(void *argument)
{
	(void)argument;
	loop_socket_unref(&commands);
	loop_stop(runtime.loop);
}

static void has_stopped(void *argument)
{
	exporters_end_alone(runtime.exporters, none_is_left, argument);
	if (!exporters_alone(runtime.exporters))
		none_is_left(argument);
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
		begin();
		graph_retire(retiring.graph, grace_ns, has_retired, NULL);
	} else if (!strcmp(line, "reopen\n")) {
		runtime_reopen(&runtime);
		graph_reopen(running.graph);
		say("reopened");
	} else {
		loop_socket_watch(commands, 0);
		graph_stop(running.graph, grace_ns, has_stopped, NULL);
	}
}

int main(int argc, char **argv)
{
	struct error err = { 0 };
	if (argc != 3)
		return 2;
	location = argv[1];
	grace_ns = strtoull(argv[2], NULL, 10) * 1000000000;
	struct node *root = load(&err);
	if (!root || !runtime_open(&runtime, root, &err) ||
	    !telemetry_open_log(runtime.telemetry, &err) || !runtime_start(&runtime, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	begin();
	commands = loop_socket_new(runtime.loop, STDIN_FILENO, obey, NULL);
	loop_socket_watch(commands, LOOP_READABLE);
	loop_run(runtime.loop);
	end(&running);
	runtime_close(&runtime);
	node_unref(&root);
	log_close();
	return 0;
}
