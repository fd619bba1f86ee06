/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "extensions/pprof_profile.h"
#include "net/compress.h"
#include "net/http/http_server.h"
#include "pipeline/component.h"

/*
 * Serves the gateway's own CPU profile. A request starts a thread of its own, which takes the
 * profile and answers; there is one at a time.
 */
enum {
	SECONDS_DEFAULT = 30,
	SECONDS_MAX = 60,
	DEPTH_MAX = 128,
	PROFILE_MAX = 64 << 20,
	CONNECTIONS_MAX = 16
};
#define SECOND_NS UINT64_C(1000000000)
#define DRAIN_NS UINT64_C(20000000)
#define STOP_GRACE_NS SECOND_NS

struct pprof_config {
	char *endpoint, *save_to_file;
	int64_t block_profile_fraction, mutex_profile_fraction;
	const struct node *dialer;
};

struct pprof {
	const struct host *host;
	struct http_server_config http;
	struct http_server *server;
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t wake;  /* stopping became true */
	bool running, stopping, joinable;
	pthread_t thread;
	/* Of the current run; owned by its thread while it runs. */
	struct http_exchange *exchange;
	uint64_t duration_ns;
};

struct run {
	struct symbols *symbols;
	struct own_profile *profile;
};

static void take_sample(const struct snapshot *snapshot, void *context)
{
	struct run *run = context;
	uint64_t pcs[DEPTH_MAX];
	own_profile_add(run->profile, pcs, symbols_unwind(run->symbols, snapshot, pcs, DEPTH_MAX));
}

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){ (time_t)(ns / SECOND_NS), (long)(ns % SECOND_NS) };
}

/* False: the extension is being stopped. */
static bool sleep_until(struct pprof *self, uint64_t when)
{
	struct timespec until = timespec_of(when);
	pthread_mutex_lock(&self->lock);
	while (!self->stopping && pthread_cond_timedwait(&self->wake, &self->lock, &until) == 0)
		;
	bool stopping = self->stopping;
	pthread_mutex_unlock(&self->lock);
	return !stopping;
}

static bool sample(struct pprof *self, struct run *run, struct error *err)
{
	if (!sampler_start(err))
		return false;
	uint64_t end = clock_now() + self->duration_ns;
	bool going_on = true;
	for (uint64_t now; going_on && (now = clock_now()) < end;) {
		going_on = sleep_until(self, now + DRAIN_NS < end ? now + DRAIN_NS : end);
		sampler_drain(take_sample, run);
	}
	sampler_stop();
	return going_on || error_set(err, ERROR_BUSY, "the gateway is shutting down");
}

static bool take_profile(struct pprof *self, struct run *run, struct bytes *gzip, struct error *err)
{
	struct bytes plain;
	uint64_t begun = clock_wall();
	run->symbols = symbols_new(err);
	if (!run->symbols || !sample(self, run, err))
		return false;
	bytes_init(&plain, PROFILE_MAX);
	bool ok = own_profile_write(run->profile, run->symbols, begun, self->duration_ns, &plain) ||
		  error_set(err, ERROR_INTERNAL, "the profile is too large");
	ok = ok && compress_deflate(CODING_GZIP, 0, bytes_view(&plain), gzip, err);
	bytes_fini(&plain);
	return ok;
}

static void *profile_and_reply(void *argument)
{
	struct pprof *self = argument;
	struct run run = { .profile = own_profile_new() };
	struct bytes gzip;
	struct error err = { 0 };
	bytes_init(&gzip, PROFILE_MAX);
	bool ok = take_profile(self, &run, &gzip, &err);
	/* Before the reply: a client that has the reply may request the next profile
	 * immediately. */
	pthread_mutex_lock(&self->lock);
	struct http_exchange *exchange = self->exchange;
	self->running = false;
	pthread_mutex_unlock(&self->lock);
	if (ok)
		http_exchange_reply(exchange, &(struct http_reply){
						      .status = 200,
						      .content_type = "application/octet-stream",
						      .body = bytes_view(&gzip) });
	else
		http_exchange_refuse(exchange, &err);
	bytes_fini(&gzip);
	own_profile_unref(&run.profile);
	symbols_unref(&run.symbols);
	return NULL;
}

/* Under the lock. */
static bool begin_run(struct pprof *self, struct http_exchange *exchange, uint64_t seconds,
		      struct error *err)
{
	if (self->running || self->stopping) {
		error_set(err, ERROR_BUSY, "another profile is in progress");
		err->retry_after_ms = (uint32_t)(self->duration_ns / 1000000);
		return false;
	}
	if (self->joinable)
		pthread_join(self->thread, NULL);
	self->exchange = exchange;
	self->duration_ns = seconds * SECOND_NS;
	self->joinable = self->running = thread_start(&self->thread, profile_and_reply, self, err);
	return self->running;
}

/* 1 to SECONDS_MAX; 0 for anything else. */
static uint64_t parse_seconds(const char *text)
{
	uint64_t seconds = 0;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return 0;
		seconds = seconds * 10 + (uint64_t)(*text - '0');
		if (seconds > SECONDS_MAX)
			return 0;
	}
	return seconds;
}

static bool read_seconds(struct http_exchange *exchange, uint64_t *seconds, struct error *err)
{
	const struct metadatum *query;
	*seconds = SECONDS_DEFAULT;
	if (!http_exchange_query(exchange, &query, err))
		return false;
	for (; query->name; query++)
		if (!strcmp(query->name, "seconds"))
			*seconds = parse_seconds(query->value);
	return *seconds || error_set(err, ERROR_INVALID,
				     "seconds: must be a whole number from "
				     "1 to %d",
				     SECONDS_MAX);
}

/* A delayed reply is possible only after the (empty) body has been read. */
static void accept_request(void *context, struct http_exchange *exchange)
{
	(void)context;
	http_exchange_accept(exchange, 0);
}

static void forget_request(void *context, struct http_exchange *exchange, bool too_large)
{
	(void)context, (void)exchange, (void)too_large;
}

static void serve_profile(void *context, struct http_exchange *exchange, struct view body)
{
	(void)body;
	struct pprof *self = context;
	struct error err = { 0 };
	uint64_t seconds;
	bool ok = read_seconds(exchange, &seconds, &err);
	if (ok) {
		pthread_mutex_lock(&self->lock);
		ok = begin_run(self, exchange, seconds, &err);
		pthread_mutex_unlock(&self->lock);
	}
	if (!ok)
		http_exchange_refuse(exchange, &err);
}

static void serve_index(void *context, struct http_exchange *exchange)
{
	static const char page[] =
		"<!doctype html><title>portcullis: profiles</title>\n<p><a "
		"href=\"/debug/pprof/profile?seconds=10\">/debug/pprof/profile?seconds=N</a>: "
		"the gateway's own CPU profile over N seconds (1 to 60, default 30) as gzipped "
		"pprof.\n<p>An idle process uses no CPU time, so its profile is empty.\n";
	(void)context;
	http_exchange_reply(exchange,
			    &(struct http_reply){ .status = 200,
						  .content_type = "text/html; charset=utf-8",
						  .body = view_of(page) });
}

static bool pprof_create(void *instance, const void *settings, const struct host *host,
			 struct error *err)
{
	struct pprof *self = instance;
	const struct pprof_config *config = settings;
	(void)err;
	self->host = host;
	self->http = (struct http_server_config){
		.endpoint = config->endpoint,
		.transport = (char *)"tcp",
		.keep_alives_enabled = true,
		.read_header_timeout.ns = 10 * (int64_t)SECOND_NS,
		.read_timeout.ns = 10 * (int64_t)SECOND_NS,
		.write_timeout.ns = 30 * (int64_t)SECOND_NS,
		.idle_timeout.ns = 60 * (int64_t)SECOND_NS,
		.max_connections = CONNECTIONS_MAX,
	};
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&self->wake, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_mutex_init(&self->lock, NULL);
	return true;
}

static bool pprof_start(void *instance, struct error *err)
{
	struct pprof *self = instance;
	const struct http_route routes[] = {
		{ .path = "/debug/pprof/profile",
		  .methods = "GET",
		  .headers = accept_request,
		  .body = serve_profile,
		  .lost = forget_request,
		  .context = self },
		{ .path = "/debug/pprof/",
		  .methods = "GET,HEAD",
		  .headers = serve_index,
		  .context = self },
	};
	self->server = http_server_start(
		&(struct http_server_options){
			.config = &self->http,
			.routes = routes,
			.route_count = sizeof routes / sizeof *routes,
			.log = &self->host->log,
			.metrics = self->host->metrics,
			.sockets = self->host->sockets,
		},
		err);
	return self->server != NULL;
}

static void pprof_stop(void *instance)
{
	struct pprof *self = instance;
	pthread_mutex_lock(&self->lock);
	self->stopping = true;
	pthread_cond_signal(&self->wake);
	bool joinable = self->joinable;
	self->joinable = false;
	pthread_mutex_unlock(&self->lock);
	if (joinable)
		pthread_join(self->thread, NULL);
	if (self->server)
		http_server_stop(&self->server, STOP_GRACE_NS);
}

static void pprof_destroy(void *instance)
{
	struct pprof *self = instance;
	pthread_cond_destroy(&self->wake);
	pthread_mutex_destroy(&self->lock);
}

static void pprof_check(const void *config, struct faults *faults)
{
	const struct pprof_config *c = config;
	struct error why;
	if (c->save_to_file && *c->save_to_file)
		faults_add(faults,
			   "save_to_file: not supported; fetch /debug/pprof/profile instead");
	if (c->endpoint && !http_server_check_endpoint("tcp", c->endpoint, &why))
		faults_take(faults, &why);
}

static const struct config_row rows[] = {
	CONFIG_ROW(struct pprof_config, endpoint, .key = "endpoint", .def = "localhost:1777",
		   .role = ROLE_LISTENS,
		   .help = "Address to listen on. Anyone who can reach it can profile the "
			   "gateway, so keep it local."),
	CONFIG_ROW(struct pprof_config, save_to_file, .key = "save_to_file",
		   .help = "Not supported; setting it is an error. Fetch the profile instead."),
	CONFIG_ROW(struct pprof_config, block_profile_fraction, .key = "block_profile_fraction",
		   .def = "0", .inert = true, .help = "It applies only to Go's runtime."),
	CONFIG_ROW(struct pprof_config, mutex_profile_fraction, .key = "mutex_profile_fraction",
		   .def = "0", .inert = true, .help = "It applies only to Go's runtime."),
	CONFIG_ROW(struct pprof_config, dialer, .key = "dialer", .inert = true,
		   .help = "The extension only accepts connections; it does not dial."),
	{ 0 }
};
static const struct config_table table = { sizeof(struct pprof_config), rows, pprof_check, false };

static const struct extension_ops pprof_ops = {
	.start = pprof_start,
	.stop = pprof_stop,
};

const struct component_factory pprof_extension = {
	.type = "pprof",
	.help = "Serves the gateway's own CPU profile in pprof format.",
	.manual = "`GET /debug/pprof/profile?seconds=N` profiles for N seconds (1 to 60, "
		  "default 30) and returns a gzipped pprof. It has one sample per 10 ms of CPU "
		  "time, with sample counts and CPU nanoseconds, and with function names, files "
		  "and lines, including inlined functions. Only one profile runs at a time; a "
		  "second request fails with 503. Any pprof viewer can open the profile, and "
		  "the gateway's own `pprof` receiver accepts it.\n",
	.kind = COMPONENT_EXTENSION,
	.extension = &pprof_ops,
	.size = sizeof(struct pprof),
	.config = &table,
	.create = pprof_create,
	.destroy = pprof_destroy,
};
