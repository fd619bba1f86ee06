/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "receivers/pprof_discovery.h"
#include "receivers/pprof_private.h"
#include "receivers/pprof_remote_config.h"
#include "receivers/pprof_scrape.h"

#include <pthread.h>

/*
 * `remote`: what is scraped, and of whom. The targets of the configuration never change; target
 * files are read again by a pool thread, which reports to the loop.
 */
struct pprof_remote {
	const struct pprof_remote_config *config;
	const struct host *host;
	const char *job;
	struct pprof_scrape_profile *profiles;
	size_t profile_count;
	struct pprof_scraper *scraper;
	struct pprof_targets fixed;
	/* Target files */
	struct strings globs; /* borrowed strings */
	uint64_t refresh_ns;
	struct pprof_discovery *discovery; /* NULL: no target files */
	struct loop_timer *timer;
	struct pprof_targets found; /* by the work that runs */
	bool changed;
	uint32_t bad_files;
	pthread_mutex_t lock; /* held while files are read */
	_Atomic bool stopped;
	/* Loop thread: */
	uint32_t refs; /* of the owner, and of the work that runs */
	bool reading, again, refused;
};

static bool given(const char *text)
{
	return text && *text;
}

/* ---- profiles ---- */

static void add_profile(struct pprof_remote *r, const char *series, char *path, int64_t seconds,
			bool delta)
{
	r->profiles[r->profile_count++] = (struct pprof_scrape_profile){
		.name = series ? series : "endpoint",
		.series = series,
		.path = path,
		.timeout_ns = (uint64_t)r->config->timeout.ns + (uint64_t)seconds * 1000000000,
		.delta = delta,
	};
}

static void add_configured(struct pprof_remote *r, const char *name,
			   const struct pprof_profile_config *c)
{
	const char *prefix = r->config->profiling_config.path_prefix;
	size_t end = prefix ? strlen(prefix) : 0;
	if (!c->enabled)
		return;
	while (end && prefix[end - 1] == '/')
		end--;
	char *path = c->seconds ? memory_format("%.*s%s%cseconds=%ld", (int)end, prefix, c->path,
						strchr(c->path, '?') ? '&' : '?', (long)c->seconds)
				: memory_format("%.*s%s", (int)end, prefix ? prefix : "", c->path);
	add_profile(r, name, path, c->seconds, c->delta);
}

static void add_profiles(struct pprof_remote *r)
{
	const struct pprof_profiles_config *c = &r->config->profiling_config.pprof_config;
	const struct pprof_profile_config *custom = c->custom.at;
	r->profiles = memory_array(PPROF_BUILTINS + c->custom.count + 1, sizeof *r->profiles);
	if (given(r->config->endpoint)) {
		const char *host = strstr(r->config->endpoint, "://") + 3;
		const char *path = host + strcspn(host, "/?#");
		add_profile(r, NULL, memory_format("%s%s", *path == '/' ? "" : "/", path), 0,
			    false);
		return;
	}
	for (int i = 0; i < PPROF_BUILTINS; i++)
		add_configured(r, pprof_builtin_names[i], &c->builtin[i]);
	for (size_t i = 0; i < c->custom.count; i++)
		add_configured(r, c->custom.names[i], &custom[i]);
}

/* ---- targets ---- */

static void use_targets(struct pprof_remote *r, struct pprof_targets *targets)
{
	bool many = false, refused;
	pprof_targets_sort(targets);
	many = targets->count > (size_t)r->config->max_targets;
	refused = many || !pprof_scraper_set_targets(r->scraper, targets);
	if (refused && !r->refused)
		log_warn(&r->host->log, "Targets not changed",
			 log_text("reason", many ? "more than max_targets" : "memory is short"),
			 log_number("targets", targets->count));
	r->refused = refused;
	pprof_targets_fini(targets);
}

/* [pool thread] */
static void read_files(void *argument)
{
	struct pprof_remote *r = argument;
	pthread_mutex_lock(&r->lock);
	if (!r->stopped)
		r->changed =
			pprof_discovery_read(r->discovery, r->refused, &r->found, &r->bad_files);
	pthread_mutex_unlock(&r->lock);
}

static void remote_release(struct pprof_remote *r)
{
	if (--r->refs)
		return;
	for (size_t i = 0; i < r->profile_count; i++)
		memory_free(r->profiles[i].path);
	memory_free(r->profiles);
	memory_free(r->globs.at);
	pprof_targets_fini(&r->fixed);
	pprof_targets_fini(&r->found);
	pprof_discovery_unref(&r->discovery);
	pprof_scraper_unref(&r->scraper);
	pthread_mutex_destroy(&r->lock);
	memory_free(r);
}

static void refresh(void *argument);

static void files_read(void *argument)
{
	struct pprof_remote *r = argument;
	r->reading = false;
	if (!r->stopped) {
		pprof_scraper_bad_files(r->scraper, r->bad_files);
		if (r->changed) {
			pprof_targets_join(&r->found, &r->fixed);
			use_targets(r, &r->found);
		}
		loop_timer_start(r->timer, r->refresh_ns);
		if (r->again)
			refresh(r);
	}
	remote_release(r);
}

static void refresh(void *argument)
{
	struct pprof_remote *r = argument;
	r->again = r->reading;
	if (r->reading)
		return;
	r->reading = true;
	r->refs++;
	loop_work(r->host->loop, read_files, files_read, r);
}

/* ---- life ---- */

static void find_files(struct pprof_remote *r)
{
	const struct config_items *items = &r->config->file_sd_configs;
	const struct pprof_files_config *at = items->at;
	size_t count = 0;
	for (size_t i = 0; i < items->count; i++)
		count += at[i].files.count;
	r->globs.at = memory_array(count, sizeof *r->globs.at);
	r->refresh_ns = UINT64_MAX;
	for (size_t i = 0; i < items->count; i++) {
		uint64_t interval = (uint64_t)at[i].refresh_interval.ns;
		r->refresh_ns = interval < r->refresh_ns ? interval : r->refresh_ns;
		for (size_t k = 0; k < at[i].files.count; k++)
			r->globs.at[r->globs.count++] = at[i].files.at[k];
	}
}

static struct pprof_scraper_options scraping_of(struct pprof_remote *r)
{
	const struct pprof_remote_config *c = r->config;
	return (struct pprof_scraper_options){
		.host = r->host,
		.profiles = r->profiles,
		.profile_count = r->profile_count,
		.client = &c->client,
		.interval_ns = (uint64_t)c->collection_interval.ns,
		.delay_ns = (uint64_t)c->initial_delay.ns,
		.jitter_ns = (uint64_t)c->jitter.ns,
		.concurrent_max = (uint32_t)c->max_concurrent_scrapes,
		.body_limit = { (size_t)c->max_body_size, "max_body_size", c->max_body_size },
	};
}

struct pprof_remote *pprof_remote_new(const struct pprof_remote_config *config,
				      const struct host *host, struct error *err)
{
	struct pprof_remote *r = memory_new(sizeof *r);
	pthread_mutex_init(&r->lock, NULL);
	r->refs = 1;
	r->config = config;
	r->host = host;
	r->job = given(config->job_name) ? config->job_name : host->id;
	add_profiles(r);
	struct pprof_scraper_options options = scraping_of(r);
	r->scraper = pprof_scraper_new(&options);
	if (config->file_sd_configs.count) {
		struct pprof_targets_defaults defaults = { config->scheme, r->job,
							   (size_t)config->max_targets };
		find_files(r);
		r->discovery = pprof_discovery_new(&r->globs, &defaults, &host->log);
	}
	if (!pprof_remote_targets(config, r->job, &r->fixed, err))
		pprof_remote_unref(&r);
	return r;
}

bool pprof_remote_start(struct pprof_remote *r, struct error *err)
{
	struct pprof_targets targets = { 0 };
	if (!pprof_scraper_start(r->scraper, err))
		return false;
	pprof_targets_join(&targets, &r->fixed);
	use_targets(r, &targets);
	if (r->discovery) {
		r->timer = loop_timer_new(r->host->loop, refresh, r);
		refresh(r);
	}
	log_info(&r->host->log, "Scraping targets", log_number("profiles", r->profile_count),
		 log_number("static_targets", r->fixed.count));
	return true;
}

static void stop_reading(void *argument)
{
	struct pprof_remote *r = argument;
	r->stopped = true;
	loop_timer_unref(&r->timer);
}

void pprof_remote_stop(struct pprof_remote *r)
{
	loop_call(r->host->loop, stop_reading, r);
	pthread_mutex_lock(&r->lock); /* a read that has begun ends first */
	pthread_mutex_unlock(&r->lock);
	pprof_scraper_stop(r->scraper);
}

bool pprof_remote_reopen(struct pprof_remote *r, struct error *err)
{
	if (r->timer)
		refresh(r);
	return pprof_scraper_reopen(r->scraper, err);
}

void pprof_remote_unref(struct pprof_remote **slot)
{
	struct pprof_remote *r = *slot;
	*slot = NULL;
	if (r)
		remote_release(r);
}
