/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/http_server.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "config/load.h"

/*
 * An HTTP server for tests/net/http/test_http_server.py: http_serve YAML [I/O THREADS], two by
 * default. It prints "listening
 * ADDRESS", then one line per event. It executes commands from stdin: release (replies to all
 * requests that /hold holds), release-soon (a thread does it while the next command runs), reload,
 * metrics, budget (prints the bytes charged for connections), budget BYTES (sets their maximum),
 * grow BYTES (sets the maximum of a body of /grow), stop MILLISECONDS.
 */
enum { BODY_MAX = 1 << 20, BIG = 16 << 20, GROW_MAX = 200000, HELD_MAX = 512 };

/* The maximum and the current charge for connections. The rest is the gateway's task. */
static _Atomic int64_t budget_max = INT64_MAX, budget_used;
static size_t grow_max = GROW_MAX; /* mutex */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct http_exchange *held[HELD_MAX]; /* mutex */
static size_t held_count;

static void say(const char *word)
{
	pthread_mutex_lock(&mutex);
	printf("%s\n", word);
	fflush(stdout);
	pthread_mutex_unlock(&mutex);
}

static void accept_body(void *context, struct http_exchange *x)
{
	(void)context;
	http_exchange_accept(x, BODY_MAX);
}

static void lost(void *context, struct http_exchange *x, bool too_large)
{
	(void)context;
	(void)x;
	say(too_large ? "too large" : "lost");
}

static void reply(struct http_exchange *x, int status, struct view body)
{
	http_exchange_reply(x, &(struct http_reply){ .status = status,
						     .content_type = "text/plain",
						     .body = body });
}

static void echo(void *context, struct http_exchange *x, struct view body)
{
	(void)context;
	reply(x, 200, body);
}

static void hold(void *context, struct http_exchange *x, struct view body)
{
	(void)context;
	(void)body;
	pthread_mutex_lock(&mutex);
	held[held_count++] = x;
	pthread_mutex_unlock(&mutex);
	say("held");
}

static void refuse(void *context, struct http_exchange *x)
{
	struct error err;
	(void)context;
	error_set(&err, ERROR_BUSY, "no room");
	err.retry_after_ms = 2500;
	http_exchange_refuse(x, &err);
}

static enum http_grow grow(void *context, struct http_exchange *x, struct http_growth *growth)
{
	pthread_mutex_lock(&mutex);
	bool has_memory = growth->need <= grow_max;
	pthread_mutex_unlock(&mutex);
	growth->room = growth->need + 1000 < growth->limit ? growth->need + 1000 : growth->limit;
	if (has_memory)
		return HTTP_GROW_YES;
	if (!growth->last)
		return HTTP_GROW_LATER;
	refuse(context, x);
	return HTTP_GROW_REFUSED;
}

static void big(void *context, struct http_exchange *x)
{
	uint8_t *data = memory_new(BIG);
	(void)context;
	reply(x, 200, (struct view){ data, BIG });
	memory_free(data);
}

static void show(struct bytes *out, const struct metadatum *at)
{
	for (; at->name; at++)
		bytes_format(out, "%s=%s\n", at->name, at->value);
}

static void who(void *context, struct http_exchange *x)
{
	const struct metadatum *query;
	struct bytes out;
	struct error err;
	enum coding coding;
	(void)context;
	bytes_init(&out, 100000);
	if (!http_exchange_query(x, &query, &err) || !http_exchange_coding(x, &coding, &err)) {
		http_exchange_refuse(x, &err);
		return;
	}
	bytes_format(&out,
		     "method %s "
		     "peer %s "
		     "coding %d\n",
		     http_exchange_method(x), http_exchange_peer(x), coding);
	for (const struct metadatum *m = http_exchange_auth(x); m && m->name; m++)
		bytes_format(&out, "auth.%s=%s\n", m->name, m->value);
	show(&out, query);
	show(&out, http_exchange_headers(x));
	reply(x, 200, bytes_view(&out));
	bytes_fini(&out);
}

static const struct http_route routes[] = {
	{ .path = "/echo", .methods = "POST", .headers = accept_body, .body = echo, .lost = lost },
	{ .path = "/hold", .methods = "POST", .headers = accept_body, .body = hold, .lost = lost },
	{ .path = "/grow",
	  .methods = "POST",
	  .headers = accept_body,
	  .body = echo,
	  .lost = lost,
	  .grow = grow },
	{ .path = "/refuse", .methods = "POST", .headers = refuse },
	{ .path = "/big", .methods = "GET", .headers = big },
	{ .path = "/who", .methods = "GET,HEAD,POST", .headers = who },
};

static bool hold_budget(void *context, int64_t bytes)
{
	(void)context;
	if (budget_used + bytes > budget_max)
		return false;
	budget_used += bytes;
	return true;
}

static void release_budget(void *context, int64_t bytes)
{
	(void)context;
	budget_used -= bytes;
}

static int64_t budget_room(void *context)
{
	(void)context;
	return budget_max - budget_used;
}

static bool budget_is_short(void *context)
{
	(void)context;
	return budget_used > budget_max;
}

static void release(void)
{
	pthread_mutex_lock(&mutex);
	while (held_count)
		reply(held[--held_count], 200, view_of("released"));
	pthread_mutex_unlock(&mutex);
}

static void *release_soon(void *argument)
{
	usleep(300000);
	release();
	return argument;
}

static void print_metrics(struct metrics *metrics)
{
	struct bytes text;
	bytes_init(&text, 100000);
	metrics_write(metrics, &text);
	bytes_add_byte(&text, 0);
	printf("%s.\n", (char *)text.at);
	fflush(stdout);
	bytes_fini(&text);
}

static void obey(const char *line, struct http_server **server, struct metrics *metrics)
{
	struct error err;
	if (!strcmp(line, "release")) {
		release();
		say("released");
	} else if (!strcmp(line, "release-soon")) {
		pthread_t thread;
		pthread_create(&thread, NULL, release_soon, NULL);
		pthread_detach(thread);
	} else if (!strcmp(line, "reload")) {
		say(http_server_reopen(*server, &err) ? "reloaded" : err.text);
	} else if (!strcmp(line, "metrics")) {
		print_metrics(metrics);
	} else if (!strcmp(line, "budget")) {
		printf("%ld\n", (long)budget_used);
		fflush(stdout);
	} else if (!strncmp(line, "budget ", 7)) {
		budget_max = strtoll(line + 7, NULL, 10);
		say("budgeted");
	} else if (!strncmp(line, "grow ", 5)) {
		pthread_mutex_lock(&mutex);
		grow_max = strtoull(line + 5, NULL, 10);
		pthread_mutex_unlock(&mutex);
	} else if (!strncmp(line, "stop ", 5)) {
		http_server_stop(server, strtoull(line + 5, NULL, 10) * 1000000);
		say("stopped");
	}
}

static bool bind(const char *yaml, struct http_server_config *config, struct error *err)
{
	struct node *node = config_parse("driver", yaml, strlen(yaml), err);
	bool ok = node && config_bind(&http_server_table, node, "server", config, err);
	node_unref(&node);
	return ok;
}

int main(int argc, char **argv)
{
	struct http_server_config config = { 0 };
	struct error err;
	const struct log log = { .component_kind = "receiver", .component_id = "driver" };
	struct metrics *metrics = metrics_new();
	struct http_server *server = NULL;
	struct io *io = io_start(argc == 3 ? (uint32_t)strtoul(argv[2], NULL, 10) : 2, &err);
	char line[200];
	if ((argc == 2 || argc == 3) && bind(argv[1], &config, &err))
		server = http_server_start(
			&(struct http_server_options){
				.config = &config,
				.routes = routes,
				.route_count = sizeof routes / sizeof *routes,
				.log = &log,
				.metrics = metrics,
				.io = io,
				.budget = { hold_budget, release_budget, budget_room,
					    budget_is_short, NULL } },
			&err);
	if (!server) {
		printf("error %s\n", argc == 2 || argc == 3 ? err.text : "usage");
	} else {
		printf("listening %s\n", http_server_address(server));
		fflush(stdout);
		while (fgets(line, sizeof line, stdin)) {
			line[strcspn(line, "\n")] = '\0';
			obey(line, &server, metrics);
		}
	}
	http_server_stop(&server, 0);
	release();
	io_stop(&io);
	config_release(&http_server_table, &config);
	metrics_unref(&metrics);
	return 0;
}
