/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/reload.h"

#include "base/clock.h"
#include "base/digest.h"
#include "base/memory.h"
#include "base/quote.h"
#include "pipeline/graph/service_config.h"

#include <stdio.h>
#include <string.h>

/* Old generations that finish at the same time. Each has threads, so a further reload waits. */
enum { RETIRING_MAX = 8 };
#define HASHED_MAX ((size_t)64 << 20)

static const struct metric last_successful = {
	"otelcol_config_last_reload_successful", METRIC_GAUGE, "1",
	"1: the last reload of the configuration succeeded, or there was none. 0: it failed, and "
	"an earlier configuration is in use."
};
static const struct metric last_success_time = {
	"otelcol_config_last_reload_success_timestamp_seconds", METRIC_GAUGE, "s",
	"When a configuration was last loaded successfully, since the epoch."
};
static const struct metric generation_number = {
	"otelcol_config_generation", METRIC_GAUGE, "1",
	"The number of configurations that have been applied since the start, with the first."
};
static const struct metric config_info = {
	"otelcol_config_info", METRIC_GAUGE, "1",
	"The configuration that runs: `hash` is of its content without what ${...} inserted."
};
static const struct metric reloads = { "otelcol_config_reloads", METRIC_COUNTER, "{reloads}",
				       "Reloads of the configuration, by result: applied, "
				       "unchanged, failed." };
const struct metric *const reload_metrics[] = { &last_successful,   &last_success_time,
						&generation_number, &config_info,
						&reloads,           NULL };

struct reload_waiter {
	struct reload_waiter *next;
	struct admin_call *call;
};

/* A value that came from ${...} may be a secret: as it was written. */
static void add_node(struct bytes *out, const struct node *node)
{
	const char *text = node->reference ? node->reference : node->text ? node->text : "";
	bytes_format(out, "%d:", (int)node->kind);
	if (node->key)
		quote_json(out, node_shown_key(node), strlen(node_shown_key(node)));
	quote_json(out, text, strlen(text));
	bytes_add_byte(out, '(');
	for (size_t i = 0; i < node->count && !node->reference; i++)
		add_node(out, node->children[i]);
	bytes_add_byte(out, ')');
}

static void hash_tree(const struct node *root, char out[RELOAD_HASH + 1])
{
	uint8_t digest[DIGEST_SIZE];
	struct bytes text;
	bytes_init(&text, HASHED_MAX);
	add_node(&text, root);
	digest_sha256(bytes_view(&text), digest);
	digest_hex(digest, RELOAD_HASH / 2, out);
	out[RELOAD_HASH] = '\0';
	bytes_fini(&text);
}

static void generation_free(struct generation *g)
{
	graph_unref(&g->graph);
	node_unref(&g->root);
	memory_free(g);
}

/* Takes root. */
static struct generation *generation_new(struct reload *r, struct node *root,
					 struct problems *problems)
{
	struct graph *predecessor = r->running ? r->running->graph : NULL;
	struct generation *g = memory_new(sizeof *g);
	*g = (struct generation){ .reload = r,
				  .root = root,
				  .number = r->running ? r->running->number + 1 : 1 };
	hash_tree(root, g->hash);
	g->graph = runtime_build(r->runtime, root, r->view, predecessor, problems);
	if (g->graph)
		return g;
	generation_free(g);
	return NULL;
}

static void count(struct reload *r, const char *result)
{
	const struct metric_label labels[] = { { "result", result }, { 0 } };
	metric_add(metrics_series(r->runtime->metrics, &reloads, labels), 1);
}

/* Metrics and log of the generation that runs. */
static void show(struct reload *r)
{
	const struct metric_label labels[] = { { "hash", r->running->hash }, { 0 } };
	r->info = metrics_relabel(r->runtime->metrics, &config_info, r->info, labels);
	metric_set(r->generation, (int64_t)r->running->number);
}

static void note_success(struct reload *r)
{
	r->last = clock_wall();
	error_clear(&r->err);
	r->failed = false;
	metric_set(r->successful, 1);
	metric_set(r->success_time, (int64_t)(r->last / 1000000000));
}

bool reload_open(struct reload *r, struct problems *problems)
{
	const struct metric_label none[] = { { 0 } };
	struct metrics *m = r->runtime->metrics;
	r->running = generation_new(r, node_copy(r->first), problems);
	if (!r->running)
		return false;
	r->successful = metrics_series(m, &last_successful, none);
	r->success_time = metrics_series(m, &last_success_time, none);
	r->generation = metrics_series(m, &generation_number, none);
	r->info = metrics_series(m, &config_info, none);
	metric_set(r->info, 1);
	note_success(r);
	show(r);
	return true;
}

static void has_retired(void *argument)
{
	struct generation *g = argument, **at;
	struct reload *r = g->reload;
	for (at = &r->retiring; *at != g; at = &(*at)->next)
		;
	*at = g->next;
	log_info(&r->log, "The previous configuration has ended",
		 log_number("generation", g->number));
	generation_free(g);
	r->retired(r->context);
	if (r->again && !r->loading)
		reload_begin(r, NULL);
}

static void retire(struct reload *r, struct generation *g)
{
	g->next = r->retiring;
	r->retiring = g;
	graph_retire(g->graph, (uint64_t)r->grace_ns(r->context), has_retired, g);
}

static bool same_section(const struct reload *r, const struct node *root, const char *key)
{
	const struct node *now = node_get(node_get(r->first, "service"), key);
	const struct node *then = node_get(node_get(root, "service"), key);
	return now && then ? node_equal(now, then) : now == then;
}

/* What runs longer than a graph does not change with it. */
static void name_fixed_parts(const struct reload *r, const struct generation *g)
{
	char parts[256] = "";
	const char *const names[] = {
		"service::telemetry", "service::admin", "processors::memory_limiter",
		"the number of threads for exporters of files and for dead letters"
	};
	const bool same[] = { same_section(r, g->root, "telemetry"),
			      same_section(r, g->root, "admin"), graph_fits_memory(g->graph),
			      graph_fits_pool(g->graph) };
	for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
		size_t len = strlen(parts);
		if (!same[i])
			snprintf(parts + len, sizeof parts - len, "%s%s", len ? ", " : "",
				 names[i]);
	}
	if (*parts)
		log_warn(&r->log,
			 "Some changes of the configuration take effect after a restart only",
			 log_text("parts", parts));
}

/* Takes root. On failure, all is as before. */
static bool apply(struct reload *r, struct node *root, struct problems *problems, struct error *err)
{
	struct generation *old = r->running, *g = generation_new(r, root, problems);
	if (!g)
		return problems_none(problems, err);
	name_fixed_parts(r, g);
	uint32_t kept = graph_kept(g->graph);
	if (!runtime_run(r->runtime, g->graph, problems)) {
		retire(r, g);
		return problems_none(problems, err);
	}
	graph_succeed(g->graph);
	r->running = g;
	retire(r, old);
	log_info(&r->log, "Configuration reloaded", log_number("generation", g->number),
		 log_text("hash", g->hash), log_number("kept_components", kept));
	return true;
}

/* Pool thread: a disk or a server may hang. */
static void load(void *argument)
{
	struct reload *r = argument;
	r->loaded = options_load_again(r->options, &r->problems);
}

static void log_failure(const struct reload *r)
{
	const struct problems *problems = &r->problems;
	log_error(&r->log, "Failed to reload the configuration; keeping the current one",
		  log_text("error", r->err.text));
	for (size_t i = 1; i < problems->count; i++)
		log_error(&r->log, "The configuration has another error",
			  log_text("error", problems->at[i]));
}

static const char *settle(struct reload *r)
{
	struct node *root = r->loaded;
	struct error err;
	r->loaded = NULL;
	if (!r->problems.count && node_equal(root, r->running->root)) {
		node_unref(&root);
		note_success(r);
		return "unchanged";
	}
	if (apply(r, root, &r->problems, &err)) {
		note_success(r);
		show(r);
		return "applied";
	}
	r->err = err;
	r->failed = true;
	r->last = clock_wall();
	metric_set(r->successful, 0);
	log_failure(r);
	problems_fini(&r->problems);
	return "failed";
}

void reload_status(const struct reload *r, struct bytes *out)
{
	uint32_t retiring = 0;
	for (const struct generation *g = r->retiring; g; g = g->next)
		retiring++;
	bytes_format(out,
		     "\"generation\":%lu,\"hash\":\"%s\",\"retiring\":%u,\"lastReload\":{"
		     "\"successful\":%s,\"time\":%lu,\"error\":",
		     r->running->number, r->running->hash, retiring,
		     r->err.kind == ERROR_NONE ? "true" : "false", r->last / 1000000000);
	if (r->err.kind == ERROR_NONE)
		bytes_add_text(out, "null");
	else
		quote_json(out, r->err.text, strlen(r->err.text));
	bytes_add_byte(out, '}');
}

/* Replies to the requests for the reload that has ended. */
static void answer(struct reload *r, const char *result)
{
	struct bytes json;
	bytes_init(&json, 65536);
	bytes_format(&json, "{\"result\":\"%s\",", result);
	reload_status(r, &json);
	bytes_add_byte(&json, '}');
	for (struct reload_waiter *w = r->waiting, *next; w; w = next) {
		next = w->next;
		admin_reply(w->call, r->err.kind == ERROR_NONE ? 200 : 400, bytes_view(&json));
		memory_free(w);
	}
	r->waiting = r->later;
	r->later = NULL;
	bytes_fini(&json);
}

static void refuse_all(struct reload_waiter **list)
{
	for (struct reload_waiter *w = *list, *next; w; w = next) {
		next = w->next;
		admin_refuse(w->call, 503, "the gateway is shutting down");
		memory_free(w);
	}
	*list = NULL;
}

static void loaded(void *argument)
{
	struct reload *r = argument;
	r->loading = false;
	if (r->stopping) {
		reload_stop(r);
		r->retired(r->context);
		return;
	}
	const char *result = settle(r);
	count(r, result);
	answer(r, result);
	if (r->again)
		reload_begin(r, NULL);
}

static bool is_full(const struct reload *r)
{
	uint32_t retiring = 0;
	for (const struct generation *g = r->retiring; g; g = g->next)
		retiring++;
	return retiring >= RETIRING_MAX;
}

void reload_begin(struct reload *r, struct admin_call *call)
{
	if (call) {
		struct reload_waiter *w = memory_new(sizeof *w);
		struct reload_waiter **list = r->loading ? &r->later : &r->waiting;
		*w = (struct reload_waiter){ *list, call };
		*list = w;
	}
	if (r->stopping) {
		reload_stop(r);
		return;
	}
	r->again = r->loading || is_full(r);
	if (r->again)
		return;
	r->loading = true;
	loop_work(r->runtime->loop, load, loaded, r);
}

void reload_stop(struct reload *r)
{
	r->stopping = true;
	r->again = false;
	refuse_all(&r->waiting);
	refuse_all(&r->later);
	if (!r->loading)
		node_unref(&r->loaded);
}

void reload_expire(struct reload *r)
{
	for (struct generation *g = r->retiring; g; g = g->next)
		graph_expire(g->graph);
}

void reload_close(struct reload *r)
{
	problems_fini(&r->problems);
	node_unref(&r->loaded);
	if (r->running)
		generation_free(r->running);
	r->running = NULL;
}
