/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/service.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/version.h"
#include "config/scalar.h"
#include "gateway/components.h"
#include "gateway/details.h"
#include "gateway/routes.h"
#include "net/places.h"
#include "pipeline/graph/service_config.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

/* after the deadline, for cancelled work to end */
#define LAST_GRACE_NS (5 * UINT64_C(1000000000))
enum { EXIT_LOST = 3 };

static bool is_ready(void *context)
{
	const struct service *s = context;
	return s->ready && !kill_switch_is_total(s->runtime.kills);
}

static void details(void *context, bool all, struct bytes *json)
{
	details_write(context, all, json);
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

static struct graph *graph_of(const struct service *s)
{
	return s->reload.running->graph;
}

static const struct shutdown_config *shutdown_of(const struct service *s)
{
	return &graph_service(graph_of(s))->shutdown;
}

static int64_t drain_ns(void *context)
{
	const struct service *s = context;
	return s->timeout_ns >= 0 ? s->timeout_ns : shutdown_of(s)->timeout.ns;
}

static void finish(void *context);

bool service_open(struct service *s, const struct options *options, struct error *err)
{
	*s = (struct service){ .options = options, .started = clock_wall() };
	if (!read_timeout(s, options, err))
		return false;
	places_know(components_find_place);
	s->root = options_load(options, options->problems);
	if (!runtime_open(&s->runtime, s->root, err))
		return false;
	s->view = (struct service_view){ s, is_ready, up_since, details };
	s->reload = (struct reload){ .runtime = &s->runtime,
				     .options = options,
				     .view = &s->view,
				     .first = s->root,
				     .grace_ns = drain_ns,
				     .retired = finish,
				     .context = s };
	return reload_open(&s->reload, options->problems) || problems_none(options->problems, err);
}

static int64_t sent(const struct service *s)
{
	return ledger_sum(s->runtime.ledger, LEDGER_DESTINATION, LEDGER_OUT);
}

static int64_t dead(const struct service *s)
{
	return ledger_sum(s->runtime.ledger, LEDGER_DESTINATION, LEDGER_DEAD_LETTER);
}

/* What became of the samples that waited when the program began to end. kept: the largest number
 * of those that count as queued and are on disk. */
static void report(struct service *s, bool stuck, int64_t kept)
{
	struct ledger *ledger = s->runtime.ledger;
	int64_t queued = ledger_sum(ledger, LEDGER_DESTINATION, LEDGER_QUEUED);
	kept = kept < queued ? kept : queued;
	losses_end(&s->losses, ledger);
	log_info(&s->log, "Shutdown report", log_number("sent_samples", sent(s) - s->sent_before),
		 log_number("kept_samples", kept),
		 log_number("lost_samples", losses_total(&s->losses)),
		 log_number("dead_letter_samples", dead(s) - s->dead_before));
	ledger_log(ledger, &s->log);
	ledger_check(ledger, !stuck && s->graph_stopped);
}

/* The exit status is that of the Collector unless the operator wants another one. */
int service_exit_status(const struct service *s)
{
	return s->options->strict_exit && losses_total(&s->losses) ? EXIT_LOST : 0;
}

static void note_lost(void *context, const char *exporter, int64_t samples)
{
	losses_add(context, exporter, samples);
}

/* A thread that hangs in the kernel cannot be ended, and joining it blocks. The log is
 * unbuffered. */
static void give_up(void *argument)
{
	struct service *s = argument;
	int64_t open = exporters_log_stuck(s->runtime.exporters, note_lost, &s->losses);
	report(s, true, open + storages_left(s->runtime.storages));
	log_error(&s->log, "Shutdown did not finish in time; exiting anyway",
		  log_text("error", s->failure));
	losses_log(&s->losses, &s->log);
	_exit(s->failure ? 1 : service_exit_status(s));
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

/* The graph that runs, earlier ones and exporters without a graph end in any order. The loop ends
 * when the pool is done, and a source that is being read may hang. */
static void finish(void *context)
{
	struct service *s = context;
	if (!s->graph_stopped || s->finished || s->reload.retiring ||
	    exporters_alone(s->runtime.exporters))
		return;
	s->finished = true;
	if (s->reload.loading)
		end_in(s, LAST_GRACE_NS);
	loop_timer_cancel(s->half);
	loop_timer_cancel(s->deadline);
	admin_stop(s->admin);
	loop_stop(s->runtime.loop);
}

static void graph_has_stopped(void *context)
{
	((struct service *)context)->graph_stopped = true;
	finish(context);
}

static void deadline_passed(void *context)
{
	struct service *s = context;
	reload_expire(&s->reload);
	exporters_expire_alone(s->runtime.exporters);
}

static void half_is_over(void *context)
{
	exporters_keep_waiting(((struct service *)context)->runtime.exporters);
}

static void drain(void *context)
{
	struct service *s = context;
	uint64_t grace_ns = s->hurried ? 0 : (uint64_t)drain_ns(s);
	s->draining = true;
	loop_timer_cancel(s->delay);
	reload_stop(&s->reload);
	graph_stop(graph_of(s), grace_ns, graph_has_stopped, s);
	exporters_end_alone(s->runtime.exporters, finish, s);
	loop_timer_start(s->half, grace_ns / 2);
	loop_timer_start(s->deadline, grace_ns);
}

static void hurry_stop(struct service *s)
{
	if (s->hurried)
		return;
	s->hurried = true;
	end_in(s, LAST_GRACE_NS);
	if (!s->draining) {
		drain(s);
		return;
	}
	graph_expire(graph_of(s));
	deadline_passed(s);
}

/* From the signal to the end of the process at the latest. */
static uint64_t time_left(struct service *s)
{
	return (uint64_t)(s->ready ? shutdown_of(s)->delay.ns : 0) + (uint64_t)drain_ns(s) +
	       LAST_GRACE_NS;
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
	s->sent_before = sent(s);
	losses_begin(&s->losses, s->runtime.ledger);
	s->dead_before = dead(s);
	log_info(&s->log, "Starting shutdown...");
	if (was_ready && shutdown_of(s)->delay.ns)
		loop_timer_start(s->delay, (uint64_t)shutdown_of(s)->delay.ns);
	else
		drain(s);
}

void service_reload(struct service *s, struct admin_call *call)
{
	struct error err;
	if (!log_reopen(&s->log, &err))
		log_error(&s->log, "Failed to reopen the log; keeping the current one",
			  log_text("error", err.text));
	if (!s->stopping) {
		runtime_reopen(&s->runtime);
		graph_reopen(graph_of(s));
	}
	reload_begin(&s->reload, call);
}

static void caught(void *argument, int number)
{
	struct service *s = argument;
	const char *name = number == SIGHUP   ? "hangup"
			   : number == SIGINT ? "interrupt"
					      : "terminated";
	if (number != SIGHUP)
		/* before the log, which may hang */
		end_in(s, s->stopping ? LAST_GRACE_NS : time_left(s));
	log_info(&s->log, "Received signal from OS", log_text("signal", name));
	if (number == SIGHUP)
		service_reload(s, NULL);
	else
		begin_stop(s);
}

static bool watch_signals(struct service *s, struct error *err)
{
	static const int numbers[] = { SIGTERM, SIGINT, SIGHUP };
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit of file sizes fails instead */
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
	const struct admin_config *config = &graph_service(graph_of(s))->admin;
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
	bytes_format(out, "{\"ready\":%s,\"stopping\":%s,", s->ready ? "true" : "false",
		     s->stopping ? "true" : "false");
	reload_status(&s->reload, out);
	bytes_add_text(out, ",\"details\":");
	details_write(s, true, out);
	bytes_add_byte(out, '}');
}

static bool start(struct service *s, struct error *err)
{
	if (!telemetry_open_log(s->runtime.telemetry, err))
		return false;
	log_info(&s->log, "Starting portcullis...", log_text("Version", PORTCULLIS_VERSION),
		 log_number("NumCPU", s->runtime.workers));
	raise_descriptor_limit();
	return watch_signals(s, err) && runtime_start(&s->runtime, err) && start_admin(s, err) &&
	       (runtime_run(&s->runtime, graph_of(s), s->options->problems) ||
		problems_none(s->options->problems, err));
}

bool service_run(struct service *s, struct error *err)
{
	s->last = loop_timer_new(s->runtime.loop, give_up, s);
	s->delay = loop_timer_new(s->runtime.loop, drain, s);
	s->half = loop_timer_new(s->runtime.loop, half_is_over, s);
	s->deadline = loop_timer_new(s->runtime.loop, deadline_passed, s);
	bool ok = start(s, err);
	if (ok) {
		s->ready = true;
		log_info(&s->log, "Everything is ready. Begin running and processing data.");
	} else {
		s->failure = err->text;
		begin_stop(s);
	}
	loop_run(s->runtime.loop);
	report(s, false, INT64_MAX);
	log_info(&s->log, "Shutdown complete.");
	losses_log(&s->losses, &s->log);
	return ok;
}

void service_close(struct service *s)
{
	loop_timer_unref(&s->last);
	loop_timer_unref(&s->delay);
	loop_timer_unref(&s->half);
	loop_timer_unref(&s->deadline);
	admin_unref(&s->admin);
	reload_close(&s->reload);
	alarm(0);
	runtime_close(&s->runtime);
	node_unref(&s->root);
	losses_fini(&s->losses);
	log_close();
}
