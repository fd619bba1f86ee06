/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/kill_switch.h"

#include <pthread.h>
#include <string.h>

#include "base/memory.h"
#include "base/watched_file.h"

#define LOOK_EVERY_NS (200 * UINT64_C(1000000))

enum { LOG_MAX = 20 };

static const struct metric rules_metric = { "otelcol_kill_switch_rules", METRIC_GAUGE, "{rules}",
					    "Rules of the kill switch that are in force." };
static const struct metric changes_metric = {
	"otelcol_kill_switch_changes", METRIC_COUNTER, "{changes}",
	"The number of times that the rules of the kill switch changed."
};
static const struct metric errors_metric = {
	"otelcol_kill_switch_file_errors", METRIC_COUNTER, "{errors}",
	"The number of times that the file of the kill switch became unreadable or invalid; the "
	"last rules stayed in force."
};
static const struct metric valid_metric = {
	"otelcol_kill_switch_file_valid", METRIC_GAUGE, "",
	"1 if the rules in force are those of the file; 0 if the file cannot be read or has an "
	"error."
};
static const struct metric requests_metric = {
	"otelcol_kill_switch_refused_requests", METRIC_COUNTER, "{requests}",
	"Requests that the kill switch refused before they were decoded, by the scope of the rule."
};
static const struct metric samples_metric = {
	"otelcol_kill_switch_rejected_samples", METRIC_COUNTER, "{samples}",
	"Decoded samples that the kill switch rejected, by the scope of the rule."
};

const struct metric *const kill_switch_metrics[] = {
	&rules_metric, &changes_metric,  &errors_metric,
	&valid_metric, &requests_metric, &samples_metric,
	NULL
};

/* A file that is watched. While a look is in progress it belongs to the pool's thread. */
struct kill_file {
	struct kill_switch *kills; /* NULL: another configuration has taken its place */
	char *path;
	struct watched_file file;
	struct bytes content; /* of the last look that saw a change */
	struct error err;     /* of the last look */
	enum watched_state state;
	bool looking;
	bool fresh; /* `content` is not in force yet */
};

struct kill_switch {
	struct log log;
	struct loop *loop;
	void (*changed)(void *context);
	void *context;
	/* The settings of the configuration. */
	enum kill_queues queues;
	_Atomic enum kill_response response;
	_Atomic uint32_t retry_after_ms;

	struct kill_rules *of_file, *of_admin;
	pthread_mutex_t lock;     /* of the pointer `rules` */
	struct kill_rules *rules; /* all of them; never NULL */
	_Atomic bool about_data, total;

	struct kill_file *file; /* NULL: there is none */
	struct loop_timer *timer;
	bool valid;

	struct metric_series *count[2], *changes, *errors, *valid_gauge;
	struct metric_series *requests[KILL_SCOPES], *samples[KILL_SCOPES];
};

static void make_series(struct kill_switch *k, struct metrics *metrics)
{
	static const char *const actions[] = { "kill", "allow" };
	struct metric_label labels[] = { { 0 }, { 0 } };
	k->changes = metrics_series(metrics, &changes_metric, labels);
	k->errors = metrics_series(metrics, &errors_metric, labels);
	k->valid_gauge = metrics_series(metrics, &valid_metric, labels);
	for (int i = 0; i < 2; i++) {
		labels[0] = (struct metric_label){ "action", actions[i] };
		k->count[i] = metrics_series(metrics, &rules_metric, labels);
	}
	for (int i = 0; i <= KILL_TENANT_SERVICE; i++) {
		labels[0] = (struct metric_label){ "scope", kill_scope_names[i] };
		k->requests[i] = metrics_series(metrics, &requests_metric, labels);
		k->samples[i] = metrics_series(metrics, &samples_metric, labels);
	}
}

static struct kill_file *file_new(struct kill_switch *k, const char *path)
{
	struct kill_file *f = memory_new(sizeof *f);
	f->kills = k;
	f->path = memory_text(path);
	bytes_init(&f->content, WATCHED_FILE_MAX + 4096);
	watched_file_init(&f->file, f->path);
	f->file.look_every_ns = 0;
	return f;
}

static void file_free(struct kill_file *f)
{
	watched_file_fini(&f->file);
	bytes_fini(&f->content);
	memory_free(f->path);
	memory_free(f);
}

static void tick(void *argument);

struct kill_switch *kill_switch_new(struct loop *loop, struct metrics *metrics)
{
	struct kill_switch *k = memory_new(sizeof *k);
	k->loop = loop;
	k->rules = kill_rules_join(NULL, NULL);
	k->timer = loop_timer_new(loop, tick, k);
	pthread_mutex_init(&k->lock, NULL);
	make_series(k, metrics);
	metric_set(k->valid_gauge, 1);
	k->valid = true;
	return k;
}

void kill_switch_unref(struct kill_switch **slot)
{
	struct kill_switch *k = *slot;
	*slot = NULL;
	if (!k)
		return;
	loop_timer_unref(&k->timer);
	if (k->file)
		file_free(k->file);
	kill_rules_unref(&k->of_file);
	kill_rules_unref(&k->of_admin);
	kill_rules_unref(&k->rules);
	pthread_mutex_destroy(&k->lock);
	memory_free(k);
}

void kill_switch_notify(struct kill_switch *k, void (*changed)(void *context), void *context)
{
	k->changed = changed;
	k->context = context;
}

/* ---- the rules in force */

static void log_rule(const struct kill_switch *k, const struct kill_rule *rule, bool added,
		     const char *source)
{
	const char *note = rule->note ? rule->note : "";
	struct bytes text;
	bytes_init(&text, 8 * KILL_NAME_MAX);
	kill_rule_print(rule, &text);
	bytes_add_byte(&text, '\0');
	const char *line = (const char *)text.at;
	if (added)
		log_warn(&k->log, "Kill switch: rule in force", log_text("rule", line),
			 log_text("note", note), log_text("source", source));
	else
		log_warn(&k->log, "Kill switch: rule removed", log_text("rule", line),
			 log_text("note", note), log_text("source", source));
	bytes_fini(&text);
}

/* Logs the rules of `a` that are not among those of `b`; returns their number. */
static uint32_t log_missing(const struct kill_switch *k, const struct kill_rules *a,
			    const struct kill_rules *b, bool added, const char *source)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < a->count; i++)
		if (!kill_rules_has(b, &a->at[i]) && count++ < LOG_MAX)
			log_rule(k, &a->at[i], added, source);
	return count;
}

static void put_in_force(struct kill_switch *k, const char *source)
{
	struct kill_rules *fresh = kill_rules_join(k->of_file, k->of_admin), *old = k->rules;
	uint32_t removed = log_missing(k, old, fresh, false, source);
	uint32_t added = log_missing(k, fresh, old, true, source);
	pthread_mutex_lock(&k->lock);
	k->rules = fresh;
	pthread_mutex_unlock(&k->lock);
	k->about_data = kill_rules_about_data(fresh);
	k->total = kill_rules_total(fresh);
	kill_rules_unref(&old);
	if (!removed && !added)
		return;
	if (removed > LOG_MAX || added > LOG_MAX)
		log_warn(&k->log, "Kill switch: more rules changed than were logged",
			 log_number("removed", removed), log_number("added", added));
	metric_add(k->changes, 1);
	for (int i = 0; i < 2; i++) {
		int64_t count = 0;
		for (int scope = 0; scope < KILL_SCOPES; scope++)
			count += fresh->of[i][scope];
		metric_set(k->count[i], count);
	}
	if (k->changed)
		k->changed(k->context);
}

struct kill_rules *kill_switch_hold(struct kill_switch *k)
{
	if (!k || !k->about_data)
		return NULL;
	pthread_mutex_lock(&k->lock);
	struct kill_rules *rules = kill_rules_ref(k->rules);
	pthread_mutex_unlock(&k->lock);
	return rules;
}

bool kill_switch_is_total(const struct kill_switch *k)
{
	return k->total;
}

bool kill_switch_refuse(struct kill_switch *k, const struct kill_rule *rule, struct error *err)
{
	static const char *const whose[KILL_TENANT_SERVICE + 1] = {
		"everything", "the data of this tenant", "the data of this service",
		"the data of this service of this tenant"
	};
	bool retry = k->response == KILL_RESPONSE_RETRY;
	error_set(err, retry ? ERROR_BUSY : ERROR_FORBIDDEN,
		  "the operator's kill switch stops %s (service::kill_switch)", whose[rule->scope]);
	err->retry_after_ms = retry ? k->retry_after_ms : 0;
	return false;
}

void kill_switch_count(struct kill_switch *k, const struct kill_rule *rule, uint64_t samples)
{
	metric_add(k->samples[rule->scope], (int64_t)samples);
}

void kill_switch_count_request(struct kill_switch *k, const struct kill_rule *rule)
{
	metric_add(k->requests[rule->scope], 1);
}

bool kill_switch_kills_destination(const struct kill_switch *k, const char *id)
{
	return kill_rules_destination(k->rules, id) != NULL;
}

bool kill_switch_drops(const struct kill_switch *k)
{
	return k->queues == KILL_QUEUES_DROP;
}

bool kill_switch_set(struct kill_switch *k, struct view text, const char *who, struct error *err)
{
	struct kill_rules *rules = kill_rules_parse(text, err);
	if (!rules)
		return false;
	kill_rules_unref(&k->of_admin);
	k->of_admin = rules;
	put_in_force(k, who);
	return true;
}

void kill_switch_each(const struct kill_switch *k,
		      void (*each)(const struct kill_rule *rule, void *context), void *context)
{
	for (uint32_t i = 0; i < k->rules->count; i++)
		each(&k->rules->at[i], context);
}

/* ---- the file */

static void set_valid(struct kill_switch *k, bool valid, const struct error *err)
{
	if (!valid && k->valid) {
		log_error(&k->log,
			  "The file of the kill switch cannot be used; the last rules stay in "
			  "force",
			  log_text("file", k->file->path), log_text("error", err->text));
		metric_add(k->errors, 1);
	}
	if (valid && !k->valid)
		log_info(&k->log, "The file of the kill switch is valid again",
			 log_text("file", k->file->path));
	k->valid = valid;
	metric_set(k->valid_gauge, valid);
}

/* Takes the rules of the file; NULL: there are none. */
static void use(struct kill_switch *k, struct kill_rules *rules, const char *source)
{
	kill_rules_unref(&k->of_file);
	k->of_file = rules;
	put_in_force(k, source);
}

static void use_content(struct kill_switch *k)
{
	struct kill_file *f = k->file;
	error_clear(&f->err);
	struct kill_rules *rules = kill_rules_parse(bytes_view(&f->content), &f->err);
	f->fresh = false;
	set_valid(k, rules != NULL, &f->err);
	if (rules)
		use(k, rules, f->path);
}

static void look(void *argument)
{
	struct kill_file *f = argument;
	error_clear(&f->err);
	f->state = watched_file_look(&f->file, &f->content, &f->err);
	if (f->state == WATCHED_FAILED && f->file.missing) {
		f->state = WATCHED_CHANGED;
		f->content.len = 0;
	}
}

static void looked(void *argument)
{
	struct kill_file *f = argument;
	struct kill_switch *k = f->kills;
	f->looking = false;
	if (!k) {
		file_free(f);
		return;
	}
	loop_timer_start(k->timer, LOOK_EVERY_NS);
	if (f->state == WATCHED_FAILED)
		set_valid(k, false, &f->err);
	else if (f->state == WATCHED_CHANGED)
		f->fresh = true;
	else if (f->fresh)
		use_content(k);
}

static void tick(void *argument)
{
	struct kill_switch *k = argument;
	struct kill_file *f = k->file;
	if (!f || f->looking)
		return;
	f->looking = true;
	loop_work(k->loop, look, looked, f);
}

/* ---- configuration */

static bool is_same_file(const struct kill_file *f, const char *path)
{
	return f && path && !strcmp(f->path, path);
}

/* Replaces the file that is watched; `fresh` may be NULL. */
static void watch(struct kill_switch *k, struct kill_file *fresh)
{
	struct kill_file *old = k->file;
	k->file = fresh;
	if (old && old->looking)
		old->kills = NULL;
	else if (old)
		file_free(old);
	if (fresh)
		loop_timer_start(k->timer, LOOK_EVERY_NS);
	else
		loop_timer_cancel(k->timer);
}

struct kill_change {
	struct kill_switch *kills;
	const struct kill_config *config;
	struct kill_file *file; /* NULL: none, or the one that is watched already */
	struct kill_rules *rules;
};

static bool open_file(struct kill_change *c, struct error *err)
{
	c->file = file_new(c->kills, c->config->file);
	if (watched_file_read(&c->file->file, &c->file->content, err))
		c->rules = kill_rules_parse(bytes_view(&c->file->content), err);
	else if (c->file->file.missing)
		c->rules = kill_rules_join(NULL, NULL);
	return c->rules || error_prefix(err, "service::kill_switch::file");
}

static bool has_file(const struct kill_config *config)
{
	return config->file && *config->file;
}

struct kill_change *kill_switch_prepare(struct kill_switch *k, const struct kill_config *config,
					struct error *err)
{
	struct kill_change *c = memory_new(sizeof *c);
	*c = (struct kill_change){ .kills = k, .config = config };
	if (has_file(config) && !is_same_file(k->file, config->file) && !open_file(c, err))
		kill_change_free(&c);
	return c;
}

void kill_change_free(struct kill_change **change)
{
	struct kill_change *c = *change;
	*change = NULL;
	if (!c)
		return;
	if (c->file)
		file_free(c->file);
	kill_rules_unref(&c->rules);
	memory_free(c);
}

static void change_file(struct kill_switch *k, struct kill_change *c)
{
	struct error none;
	error_clear(&none);
	if (c->file) {
		watch(k, c->file);
		set_valid(k, true, &none);
		use(k, c->rules, c->file->path);
	} else if (!has_file(c->config) && k->file) {
		set_valid(k, true, &none);
		watch(k, NULL);
		use(k, NULL, "configuration");
	}
	c->file = NULL;
	c->rules = NULL;
}

void kill_switch_apply(struct kill_change **change)
{
	struct kill_change *c = *change;
	if (!c)
		return;
	struct kill_switch *k = c->kills;
	k->response = (enum kill_response)c->config->response.index;
	k->retry_after_ms = (uint32_t)(c->config->retry_after.ns / 1000000);
	k->queues = (enum kill_queues)c->config->destinations.index;
	change_file(k, c);
	if (k->changed)
		k->changed(k->context);
	kill_change_free(change);
}

static void check_config(const void *config, struct faults *faults)
{
	const struct kill_config *c = config;
	if (c->retry_after.ns < 1000000000 || c->retry_after.ns > INT64_C(86400000000000))
		faults_add(faults, "retry_after must be between 1s and 24h");
}

static const char *const responses[] = { "reject", "retry", NULL };
static const char *const queues[] = { "keep", "drop", NULL };

static const struct config_row rows[] = {
	CONFIG_ROW(struct kill_config, file, .key = "file",
		   .help = "A file with rules, one a line: `kill service checkout`. It is "
			   "watched; a change is in force in less than a second. A file that does "
			   "not exist has no rules. A file with an error changes nothing; when "
			   "the program starts, it is an error."),
	CONFIG_ROW(struct kill_config, response, .key = "response", .def = "reject",
		   .choices = responses,
		   .help = "How requests with killed data are answered. `reject`: 403 or "
			   "PERMISSION_DENIED; they drop the data and do not repeat it. `retry`: "
			   "503 or UNAVAILABLE; they keep the data and repeat it."),
	CONFIG_ROW(struct kill_config, retry_after, .key = "retry_after", .def = "30s",
		   .help = "The time after which they repeat it, with `retry`."),
	CONFIG_ROW(struct kill_config, destinations, .key = "destinations", .def = "keep",
		   .choices = queues,
		   .help = "What the queue of a killed destination does. `keep`: it keeps the data "
			   "as long as it has room. `drop`: it drops what it has and what comes."),
	{ 0 }
};

const struct config_table kill_config_table = { sizeof(struct kill_config), rows, check_config };
