/* SPDX-License-Identifier: Apache-2.0 */
#include "receivers/pprof_remote_config.h"
#include "receivers/pprof_private.h"
#include "receivers/pprof_targets.h"

#include "base/memory.h"

/*
 * The keys of `remote`. Those of an HTTP client, collection_interval and initial_delay are the
 * Collector's; scheme, static_configs, file_sd_configs and job_name are Prometheus'; those of
 * profiling_config are Parca's.
 */
enum { INTERVAL_MIN_MS = 100 };

static bool given(const char *text)
{
	return text && *text;
}

/* ---- profiles ---- */

/* A path on the target's server, perhaps with a query. */
static bool is_path(const char *text)
{
	if (!given(text) || *text != '/' || text[1] == '/')
		return false;
	for (; *text; text++)
		if ((unsigned char)*text <= ' ' || *text == 0x7f || *text == '#')
			return false;
	return true;
}

static void check_profile(const void *config, struct faults *faults)
{
	const struct pprof_profile_config *c = config;
	if (!is_path(c->path))
		faults_add(faults, "path: must begin with / and must not contain "
				   "white space or a fragment");
	if (c->delta && c->seconds)
		faults_relate(faults, "seconds",
			      "delta and seconds cannot be combined: a profile of `seconds` is "
			      "not cumulative");
}

#define PROFILE_ROWS(path_default, seconds_default, delta_default) \
	{ \
		CONFIG_ROW(struct pprof_profile_config, enabled, .key = "enabled", .def = "true", \
			   .help = "Whether this profile is scraped."), \
			CONFIG_ROW(struct pprof_profile_config, path, .key = "path", \
				   .def = path_default, \
				   .help = "Path of the profile, also with a query."), \
			CONFIG_ROW(struct pprof_profile_config, seconds, .key = "seconds", \
				   .def = seconds_default, .unit = "seconds", .limited = true, \
				   .min = 0, .max = 3600, \
				   .help = "Duration that the target is asked for, in the query " \
					   "parameter `seconds`. It is added to `timeout`. `0`: " \
					   "none."), \
			CONFIG_ROW( \
				struct pprof_profile_config, delta, .key = "delta", \
				.def = delta_default, \
				.help = "Sends what was added since the last scrape instead of " \
					"cumulative values."), \
		{ \
			0 \
		} \
	}

static const struct config_row cpu_rows[] = PROFILE_ROWS("/debug/pprof/profile", "5", "false");
static const struct config_row memory_rows[] = PROFILE_ROWS("/debug/pprof/allocs", "0", "true");
static const struct config_row mutex_rows[] = PROFILE_ROWS("/debug/pprof/mutex", "0", "true");
static const struct config_row block_rows[] = PROFILE_ROWS("/debug/pprof/block", "0", "true");
static const struct config_row goroutine_rows[] =
	PROFILE_ROWS("/debug/pprof/goroutine", "0", "false");
static const struct config_row custom_rows[] = PROFILE_ROWS(NULL, "0", "false");

#define PROFILE_TABLE(name) \
	static const struct config_table name##_table = { sizeof(struct pprof_profile_config), \
							  name##_rows, check_profile, false }
PROFILE_TABLE(cpu);
PROFILE_TABLE(memory);
PROFILE_TABLE(mutex);
PROFILE_TABLE(block);
PROFILE_TABLE(goroutine);
PROFILE_TABLE(custom);

const char *const pprof_builtin_names[PPROF_BUILTINS] = { "process_cpu", "memory", "mutex", "block",
							  "goroutine" };

#define BUILTIN(index, sub_table, name, help_text) \
	CONFIG_SECTION(struct pprof_profiles_config, builtin[index], sub_table, .key = name, \
		       .help = help_text)

static const struct config_row profiles_rows[] = {
	BUILTIN(PPROF_PROCESS_CPU, cpu_table, "process_cpu", "CPU profile."),
	BUILTIN(PPROF_MEMORY, memory_table, "memory", "Allocations and memory in use."),
	BUILTIN(PPROF_MUTEX, mutex_table, "mutex", "Contended mutexes."),
	BUILTIN(PPROF_BLOCK, block_table, "block", "Blocked goroutines."),
	BUILTIN(PPROF_GOROUTINE, goroutine_table, "goroutine", "Stacks of all goroutines."),
	CONFIG_ITEMS(struct pprof_profiles_config, custom, CONFIG_MAP, custom_table,
		     .key = "custom", .help = "Other profiles, by a name for the log."),
	{ 0 }
};
static const struct config_table profiles_table = { sizeof(struct pprof_profiles_config),
						    profiles_rows, NULL, false };

static void check_profiling(const void *config, struct faults *faults)
{
	const struct pprof_profiling_config *c = config;
	if (given(c->path_prefix) && !is_path(c->path_prefix))
		faults_add(faults, "path_prefix: must begin with / and must not contain "
				   "white space or a fragment");
}

static const struct config_row profiling_rows[] = {
	CONFIG_ROW(struct pprof_profiling_config, path_prefix, .key = "path_prefix",
		   .help = "Put before the path of each profile."),
	CONFIG_SECTION(struct pprof_profiling_config, pprof_config, profiles_table,
		       .key = "pprof_config", .help = "The profiles that are scraped."),
	{ 0 }
};
static const struct config_table profiling_table = { sizeof(struct pprof_profiling_config),
						     profiling_rows, check_profiling, false };

/* ---- target files ---- */

static const struct config_row files_rows[] = {
	CONFIG_ROW(struct pprof_files_config, files, .key = "files", .required = true,
		   .help = "Globs of target files, YAML or JSON in Prometheus' `file_sd` format."),
	CONFIG_ROW(struct pprof_files_config, refresh_interval, .key = "refresh_interval",
		   .def = "5s",
		   .help = "The files are checked for changes this often. Of several entries, the "
			   "shortest interval applies."),
	{ 0 }
};

static void check_files(const void *config, struct faults *faults)
{
	const struct pprof_files_config *c = config;
	if (!c->files.count)
		faults_add(faults, "files: must not be empty");
	if (c->refresh_interval.ns < INTERVAL_MIN_MS * 1000000)
		faults_add(faults, "refresh_interval: must be at least %dms", INTERVAL_MIN_MS);
}

static const struct config_table files_table = { sizeof(struct pprof_files_config), files_rows,
						 check_files, false };

/* ---- all ---- */

static void check_targets(const struct pprof_remote_config *c, struct faults *faults)
{
	const struct pprof_targets_defaults defaults = { c->scheme, "", (size_t)c->max_targets };
	struct pprof_targets targets = { 0 };
	struct error why;
	if (!given(c->endpoint) && c->static_configs)
		pprof_targets_check(c->static_configs, "static_configs", &defaults, faults);
	else if (!pprof_remote_targets(c, "", &targets, &why))
		faults_relate(faults, "scheme profiling_config max_targets", "%s", why.text);
	pprof_targets_fini(&targets);
}

static void check_times(const struct pprof_remote_config *c, struct faults *faults)
{
	if (c->collection_interval.ns < INTERVAL_MIN_MS * 1000000)
		faults_add(faults, "collection_interval: must be at least %dms", INTERVAL_MIN_MS);
	if (c->timeout.ns <= 0)
		faults_add(faults, "timeout: must be positive");
	if (c->initial_delay.ns < 0)
		faults_add(faults, "initial_delay must not be negative");
	if (c->jitter.ns < 0)
		faults_add(faults, "jitter must not be negative");
}

static void check_remote(const void *config, struct faults *faults)
{
	const struct pprof_remote_config *c = config;
	bool listed = (c->static_configs && c->static_configs->kind != NODE_NULL) ||
		      c->file_sd_configs.count;
	if (!given(c->endpoint) && !listed)
		faults_relate(faults, "static_configs file_sd_configs",
			      "endpoint must be specified, or static_configs or "
			      "file_sd_configs");
	if (given(c->endpoint) && listed)
		faults_add(faults, "endpoint cannot be combined with static_configs or "
				   "file_sd_configs");
	if (strcmp(c->scheme, "http") && strcmp(c->scheme, "https"))
		faults_add(faults, "scheme: must be http or https");
	check_times(c, faults);
	check_targets(c, faults);
	http_client_config_check(&c->client, "endpoint", NULL, faults);
}

bool pprof_remote_targets(const struct pprof_remote_config *c, const char *job,
			  struct pprof_targets *targets, struct error *err)
{
	const struct pprof_targets_defaults defaults = { c->scheme, job, (size_t)c->max_targets };
	if (given(c->endpoint))
		return pprof_targets_add_url(targets, c->endpoint, &defaults, err) ||
		       error_prefix(err, "endpoint");
	return !c->static_configs ||
	       pprof_targets_add(targets, c->static_configs, &defaults, err) ||
	       error_prefix(err, "static_configs");
}

#define ROW(member, ...) CONFIG_ROW(struct pprof_remote_config, member, .key = #member, __VA_ARGS__)

static const struct config_row rows[] = {
	ROW(endpoint,
	    .help = "URL of one profile, which is scraped as it is, for example "
		    "`http://localhost:6060/debug/pprof/heap`. For several targets or profiles, "
		    "use the keys below instead."),
	ROW(static_configs,
	    .help = "Groups of targets: a list of `{targets: [host:port], labels: {name: "
		    "value}}`. "
		    "Labels become resource attributes."),
	CONFIG_ITEMS(struct pprof_remote_config, file_sd_configs, CONFIG_LIST, files_table,
		     .key = "file_sd_configs", .help = "Files with groups of targets."),
	ROW(job_name, .help = "`service.name` of targets without the label `job`. Default: the ID "
			      "of the receiver."),
	ROW(scheme, .def = "http",
	    .help = "`http` or `https`. The label `__scheme__` overrides it."),
	CONFIG_SECTION(struct pprof_remote_config, profiling_config, profiling_table,
		       .key = "profiling_config",
		       .help = "What is scraped of each target. Unused with `endpoint`."),
	ROW(collection_interval, .def = "10s", .help = "Each profile is scraped this often."),
	ROW(initial_delay, .def = "1s", .help = "Delay before the first scrape of a target."),
	ROW(jitter, .def = "10s",
	    .help = "A random part of this is added to `initial_delay`, for each profile of each "
		    "target, so that scrapes spread over time."),
	ROW(timeout, .def = "10s",
	    .help = "Maximum duration of a scrape, in addition to `seconds`."),
	HTTP_CLIENT_ROWS(struct pprof_remote_config, client),
	ROW(max_body_size, .def = "20971520", .unit = "bytes", .limited = true, .min = 1,
	    .max = 1 << 30, .help = "Maximum size of a profile, both as sent and decompressed."),
	ROW(max_concurrent_scrapes, .def = "1000", .limited = true, .min = 1, .max = 100000,
	    .help = "Scrapes in progress at the same time. Profiles whose last scrape failed may "
		    "have a quarter of them."),
	ROW(max_targets, .def = "20000", .limited = true, .min = 1, .max = 1000000,
	    .help = "A list with more targets is an error."),
	{ 0 }
};

const struct config_table pprof_remote_table = { sizeof(struct pprof_remote_config), rows,
						 check_remote, true };
