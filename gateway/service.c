/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/service.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/version.h"
#include "config/scalar.h"
#include "gateway/routes.h"
#include "pipeline/graph/service_config.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

/* after the deadline, for cancelled work to end */
#define LAST_GRACE_NS (5 * UINT64_C(1000000000))

static bool is_ready(void *context)
{
	const struct service *s = context;
	return s->ready && !kill_switch_is_total(s->runtime.kills);
}

static uint64_t up_since(void *context)
{
	return ((struct service *)context)->started;
}

/* --shutdown-timeout; -1: the configuration's. */
static bool read_timeout(struct service *s, const struct options *options, struct error *err)
{
	s->timeout_ns = -1;
	if (!options->shutdown_timeout)
		return true;
	if (!scalar_duration(options->shutdown_timeout, &s->timeout_ns, err))
		return error_prefix(err, "--shutdown-timeout");
	s->timeout_ns = s->timeout_ns > 0 ? s->timeout_ns : 0;
	return true;
}

static const struct shutdown_config *shutdown_of(const struct service *s)
{
	return &graph_service(s->graph)->shutdown;
}

static uint64_t drain_ns(const struct service *s)
{
	return (uint64_t)(s->timeout_ns >= 0 ? s->timeout_ns : shutdown_of(s)->timeout.ns);
}

bool service_open(struct service *s, const struct options *options, struct error *err)
{
	*s = (struct service){ .options = options, .started = clock_wall() };
	if (!read_timeout(s, options, err))
		return false;
	s->root = options_load(options, &s->sources, err);
	if (!s->root)
		return error_prefix(err, "failed to get config");
	if (!runtime_open(&s->runtime, s->root, err))
		return false;
	s->view = (struct service_view){ .context = s, .ready = is_ready, .up_since = up_since };
	s->graph = runtime_build(&s->runtime, s->root, &s->view, NULL, err);
	return s->graph != NULL;
}

/* A thread that hangs in the kernel cannot be ended, and joining it blocks. The log is
 * unbuffered. */
static void give_up(void *argument)
{
	struct service *s = argument;
	graph_log_stuck(s->graph);
	log_error(&s->log, "Shutdown did not finish in time; exiting anyway",
		  log_text("error", s->failure));
	_exit(s->failure ? 1 : 0);
}

/* Sets the latest end of the process; it can only become earlier. If even the log or the loop
 * hangs, the kernel ends the process. */
static void end_in(struct service *s, uint64_t ns)
{
	uint64_t end = clock_now() + ns;
	if (s->end && s->end <= end)
		return;
	s->end = end;
	loop_timer_start(s->last, ns);
	alarm((unsigned)(ns / 1000000000) + 2);
}

/* The loop ends when the pool is done, and a source that is being compared may hang. */
static void stopped(void *argument)
{
	struct service *s = argument;
	if (s->comparing)
		end_in(s, LAST_GRACE_NS);
	admin_stop(s->admin);
	loop_stop(s->runtime.loop);
}

static void drain(void *argument);

static void hurry_stop(struct service *s)
{
	if (s->hurried)
		return;
	s->hurried = true;
	end_in(s, LAST_GRACE_NS);
	if (s->draining)
		graph_expire(s->graph);
	else
		drain(s);
}

static void drain(void *argument)
{
	struct service *s = argument;
	s->draining = true;
	loop_timer_cancel(s->delay);
	graph_stop(s->graph, s->hurried ? 0 : drain_ns(s), stopped, s);
}

/* From the signal to the end of the process at the latest. */
static uint64_t time_left(const struct service *s)
{
	return (s->ready ? (uint64_t)shutdown_of(s)->delay.ns : 0) + drain_ns(s) + LAST_GRACE_NS;
}

/* Load balancers get some time to notice that the program is not ready. If the start failed, none
 * has ever sent anything. */
static void begin_stop(struct service *s)
{
	bool was_ready = s->ready;
	if (s->stopping) {
		hurry_stop(s);
		return;
	}
	end_in(s, time_left(s));
	s->stopping = true;
	s->ready = false;
	log_info(&s->log, "Starting shutdown...");
	if (was_ready && shutdown_of(s)->delay.ns)
		loop_timer_start(s->delay, (uint64_t)shutdown_of(s)->delay.ns);
	else
		drain(s);
}

/* Pool thread: a disk or a server may hang. */
static void read_sources(void *argument)
{
	struct service *s = argument;
	error_clear(&s->found_error);
	options_read_again(s->options, &s->found, &s->found_error);
}

static void report_sources(void *argument)
{
	struct service *s = argument;
	for (size_t i = 0; i < s->found.count; i++)
		if (!sources_have(&s->sources, &s->found.at[i]))
			log_warn(&s->log,
				 "The configuration has changed since the start; a restart is "
				 "needed to apply it",
				 log_text("source", s->found.at[i].name));
	if (s->found_error.kind != ERROR_NONE)
		log_warn(&s->log, "The configuration would not load after a restart",
			 log_text("error", s->found_error.text));
	sources_fini(&s->found);
	s->comparing = false;
}

/* Does the configuration that runs differ from what a restart would read? */
static void compare_sources(struct service *s)
{
	if (s->comparing)
		return;
	s->comparing = true;
	loop_work(s->runtime.loop, read_sources, report_sources, s);
}

static void caught(void *argument, int number)
{
	struct service *s = argument;
	struct error err;
	const char *name = number == SIGHUP   ? "hangup"
			   : number == SIGINT ? "interrupt"
					      : "terminated";
	if (number != SIGHUP)
		/* before the log, which may hang */
		end_in(s, s->stopping ? LAST_GRACE_NS : time_left(s));
	log_info(&s->log, "Received signal from OS", log_text("signal", name));
	if (number != SIGHUP) {
		begin_stop(s);
		return;
	}
	if (!log_reopen(&s->log, &err))
		log_error(&s->log, "Failed to reopen the log; keeping the current one",
			  log_text("error", err.text));
	if (s->stopping)
		return;
	runtime_reopen(&s->runtime);
	graph_reopen(s->graph);
	compare_sources(s);
}

static bool watch_signals(struct service *s, struct error *err)
{
	static const int numbers[] = { SIGTERM, SIGINT, SIGHUP };
	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		if (!loop_signal(s->runtime.loop, numbers[i], caught, s, err))
			return false;
	return true;
}

/* Raises the limit of file descriptors to the permitted maximum. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static bool start_admin(struct service *s, struct error *err)
{
	const struct admin_config *config = &graph_service(s->graph)->admin;
	if (!config->present.enabled)
		return true;
	routes_of(s, s->routes);
	s->admin = admin_start(
		&(struct admin_options){
			.endpoint = config->endpoint,
			.routes = s->routes,
			.loop = s->runtime.loop,
			.metrics = s->runtime.metrics,
		},
		err);
	return s->admin != NULL;
}

void service_status(const struct service *s, struct bytes *out)
{
	bytes_format(out, "{\"ready\":%s,\"stopping\":%s}", s->ready ? "true" : "false",
		     s->stopping ? "true" : "false");
}

static bool start(struct service *s, struct error *err)
{
	if (!telemetry_open_log(s->runtime.telemetry, err))
		return false;
	log_info(&s->log, "Starting portcullis...", log_text("Version", PORTCULLIS_VERSION),
		 log_number("NumCPU", s->runtime.workers));
	raise_descriptor_limit();
	return watch_signals(s, err) && runtime_start(&s->runtime, err) && start_admin(s, err) &&
	       runtime_run(&s->runtime, s->graph, err);
}

bool service_run(struct service *s, struct error *err)
{
	s->last = loop_timer_new(s->runtime.loop, give_up, s);
	s->delay = loop_timer_new(s->runtime.loop, drain, s);
	bool ok = start(s, err);
	if (ok) {
		s->ready = true;
		log_info(&s->log, "Everything is ready. Begin running and processing data.");
	} else {
		s->failure = err->text;
		begin_stop(s);
	}
	loop_run(s->runtime.loop);
	log_info(&s->log, "Shutdown complete.");
	return ok;
}

void service_close(struct service *s)
{
	loop_timer_unref(&s->last);
	loop_timer_unref(&s->delay);
	admin_unref(&s->admin);
	graph_unref(&s->graph);
	alarm(0);
	runtime_close(&s->runtime);
	node_unref(&s->root);
	sources_fini(&s->sources);
	log_close();
}
