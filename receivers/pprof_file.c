/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/memory.h"
#include "net/fields.h"
#include "pipeline/intake/file_list.h"
#include "pipeline/intake/source.h"
#include "profile/pprof/decode_pprof.h"
#include "receivers/pprof_private.h"
#include "receivers/pprof_report.h"

#include <pthread.h>

/*
 * `file`: each file that matches is one profile, and is read once after each change. A file that
 * was modified less than an interval ago must have been the same at two checks: its writer may not
 * be done. What was read is remembered only while the program runs.
 *
 * The loop thread owns the list of files. A pool thread looks for files and reads them, one at a
 * time; the next file is read when a pipeline has accepted the last one. What finds no memory or no
 * room in the queues is read again at the next check.
 */
struct known_file {
	struct file_entry entry;
	bool settled, done;
};

struct pprof_file {
	const struct pprof_file_config *config;
	const struct host *host;
	struct source *source;
	struct fields resource;
	const struct metadatum *attributes;
	struct metric_series *results[3];
	pthread_mutex_t lock; /* held while a pool thread uses files */
	_Atomic bool stopped;
	/* of the work that runs */
	struct file_list found;
	bool whole;
	struct source_request *request;
	struct error err;
	/* Loop thread: */
	struct loop_timer *timer;
	struct known_file *files; /* sorted by name */
	size_t count, next;       /* next: the file that is read, or the next one */
	uint32_t refs;            /* of the owner, and of what goes on */
	bool begun, crowded;
};

struct file_request {
	struct source_request source;
	struct pprof_file *file;
	struct error err; /* of the outcome */
};

enum file_result { FILE_SUCCESS, FILE_POSTPONED, FILE_FAILED };

static const struct fields_limits resource_limits = {
	.count = 64, .name = 256, .value = 4096, .total = 16384
};

/* ---- reading ---- */

static bool file_decode(struct inbound *in, struct profiles *p, struct error *err)
{
	const struct pprof_file *f = ((struct file_request *)in)->file;
	return p->input.len ? decode_pprof(p, p->input, f->attributes, err)
			    : error_set(err, ERROR_INVALID, "the profile is empty");
}

static const struct document_format documents = {
	.decode = file_decode,
	.packed = true,
	/* A zero among many values is a byte, and becomes a sample. */
	.tables_factor = sizeof(struct sample) + 4,
};

static void file_release(struct pprof_file *f)
{
	if (--f->refs)
		return;
	for (size_t i = 0; i < f->count; i++)
		memory_free(f->files[i].entry.name);
	memory_free(f->files);
	file_list_fini(&f->found);
	fields_fini(&f->resource);
	source_unref(&f->source);
	pthread_mutex_destroy(&f->lock);
	memory_free(f);
}

static void read_next(struct pprof_file *f);

static void check_later(struct pprof_file *f)
{
	loop_timer_start(f->timer, (uint64_t)f->config->collection_interval.ns);
}

/* The file that was read is done with, or there is a reason to read it again later. */
static void conclude(struct pprof_file *f, const struct error *err)
{
	struct known_file *file = &f->files[f->next];
	enum file_result result = err->kind == ERROR_NONE   ? FILE_SUCCESS
				  : err->kind == ERROR_BUSY ? FILE_POSTPONED
							    : FILE_FAILED;
	metric_add(f->results[result], 1);
	if (result == FILE_FAILED)
		log_warn(&f->host->log, "File cannot be read as a profile",
			 log_text("path", file->entry.name), log_text("error", err->text));
	file->done = result != FILE_POSTPONED;
	f->next++;
	if (file->done)
		read_next(f);
	else
		check_later(f);
}

static void accepted(void *argument)
{
	struct pprof_file *f = argument;
	if (!f->stopped)
		conclude(f, &f->err);
	file_release(f);
}

/* [any thread] */
static void file_done(struct source_request *r, const struct outcome *outcome)
{
	struct pprof_file *f = ((struct file_request *)r)->file;
	error_clear(&f->err);
	if (outcome->error)
		f->err = *outcome->error;
	if (loop_here(f->host->loop))
		accepted(f);
	else
		loop_post(f->host->loop, accepted, f);
}

static struct size_limit file_limit(const struct pprof_file_config *c)
{
	return (struct size_limit){ (size_t)c->max_file_size, "max_file_size", c->max_file_size };
}

/* [pool thread] */
static void read_file(void *argument)
{
	struct pprof_file *f = argument;
	const struct size_limit limit = file_limit(f->config);
	const struct file_entry *entry = &f->files[f->next].entry;
	struct source_request *r = f->request;
	pthread_mutex_lock(&f->lock);
	if (f->stopped)
		error_set(&f->err, ERROR_BUSY, "the gateway is shutting down");
	else if (entry->size > limit.max)
		size_limit_exceeded(&limit, "the file", entry->size, &f->err);
	else if (!file_list_read(entry->name, &r->body, &f->err) && r->err.kind != ERROR_NONE)
		f->err = r->err;
	pthread_mutex_unlock(&f->lock);
}

static void file_read(void *argument)
{
	struct pprof_file *f = argument;
	struct source_request *r = f->request;
	f->request = NULL;
	if (!f->stopped && f->err.kind == ERROR_NONE) {
		source_submit(r);
		return;
	}
	source_forget(r, f->err.kind == ERROR_TOO_LARGE ? REFUSAL_TOO_LARGE : REFUSAL_NONE);
	accepted(f);
}

static bool begin_file(struct pprof_file *f)
{
	struct source_request *r = source_request_new(f->source);
	((struct file_request *)r)->file = f;
	error_clear(&f->err);
	if (!source_admit(r, f->files[f->next].entry.size, &f->err))
		return false;
	f->request = r;
	f->refs++;
	loop_work(f->host->loop, read_file, file_read, f);
	return true;
}

static void read_next(struct pprof_file *f)
{
	while (f->next < f->count && (f->files[f->next].done || !f->files[f->next].settled))
		f->next++;
	if (f->next == f->count)
		check_later(f);
	else if (!begin_file(f))
		conclude(f, &f->err);
}

/* ---- finding ---- */

/* [pool thread] */
static void find_files(void *argument)
{
	struct pprof_file *f = argument;
	pthread_mutex_lock(&f->lock);
	if (!f->stopped)
		f->whole = file_list_find(&f->config->include, &f->config->exclude,
					  (size_t)f->config->max_files, &f->found);
	pthread_mutex_unlock(&f->lock);
}

static bool is_old(const struct pprof_file *f, const struct file_entry *entry)
{
	return entry->modified + f->config->collection_interval.ns < (int64_t)clock_wall();
}

/* Both lists are sorted by name. The entries of f->found, with their names, become the known
 * files. */
static void update(struct pprof_file *f)
{
	struct known_file *fresh = memory_array(f->found.count, sizeof *fresh);
	bool skip = !f->begun && !strcmp(f->config->start_at, "end");
	size_t at = 0;
	for (size_t i = 0; i < f->found.count; i++) {
		struct file_entry *entry = &f->found.at[i];
		while (at < f->count && strcmp(f->files[at].entry.name, entry->name) < 0)
			at++;
		const struct known_file *old = at < f->count ? &f->files[at] : NULL;
		bool same = old && !strcmp(old->entry.name, entry->name) &&
			    file_list_same(&old->entry, entry);
		fresh[i] = (struct known_file){ *entry, same || is_old(f, entry),
						same ? old->done : skip };
	}
	for (size_t i = 0; i < f->count; i++)
		memory_free(f->files[i].entry.name);
	memory_free(f->files);
	f->files = fresh;
	f->count = f->found.count;
	f->found.count = 0;
	file_list_fini(&f->found);
}

static void files_found(void *argument)
{
	struct pprof_file *f = argument;
	if (!f->stopped) {
		if (!f->whole && !f->crowded)
			log_warn(&f->host->log, "More files match than max_files",
				 log_number("max_files", f->config->max_files));
		f->crowded = !f->whole;
		update(f);
		f->begun = true;
		f->next = 0;
		read_next(f);
	}
	file_release(f);
}

static void on_timer(void *context)
{
	struct pprof_file *f = context;
	f->refs++;
	loop_work(f->host->loop, find_files, files_found, f);
}

/* ---- life ---- */

static bool add_resource(struct fields *fields, const struct pairs *pairs, struct error *err)
{
	for (size_t i = 0; i < pairs->count; i++) {
		const char *value = pairs->at[i].value.text;
		if (!fields_add(fields, view_of(pairs->at[i].name), view_of(value ? value : ""),
				err))
			return false;
	}
	return true;
}

struct pprof_file *pprof_file_new(const struct pprof_file_config *config, const struct host *host)
{
	static const char *const outcomes[] = { "success", "postponed", "failed" };
	struct pprof_file *f = memory_new(sizeof *f);
	f->config = config;
	f->host = host;
	f->refs = 1;
	pthread_mutex_init(&f->lock, NULL);
	fields_init(&f->resource, &resource_limits);
	add_resource(&f->resource, &config->resource, NULL); /* was checked */
	f->attributes = fields_list(&f->resource);
	f->source =
		source_new(&(struct source_options){ .host = host,
						     .transport = TRANSPORT_FILE,
						     .documents = &documents,
						     .request_size = sizeof(struct file_request),
						     .body_limit = file_limit(config),
						     .done = file_done });
	for (int i = 0; i < 3; i++)
		f->results[i] =
			metrics_series(host->metrics, &pprof_file_reads,
				       (const struct metric_label[]){ { "receiver", host->id },
								      { "outcome", outcomes[i] },
								      { 0 } });
	return f;
}

bool pprof_file_start(struct pprof_file *f, struct error *err)
{
	(void)err;
	f->timer = loop_timer_new(f->host->loop, on_timer, f);
	loop_timer_start(f->timer, (uint64_t)f->config->initial_delay.ns);
	return true;
}

static void stop_checking(void *argument)
{
	struct pprof_file *f = argument;
	f->stopped = true;
	loop_timer_unref(&f->timer);
}

void pprof_file_stop(struct pprof_file *f)
{
	loop_call(f->host->loop, stop_checking, f);
	pthread_mutex_lock(&f->lock); /* what a pool thread has begun ends first */
	pthread_mutex_unlock(&f->lock);
	source_stop(f->source);
}

void pprof_file_unref(struct pprof_file **slot)
{
	struct pprof_file *f = *slot;
	*slot = NULL;
	if (f)
		file_release(f);
}

/* ---- configuration ---- */

static void check_file(const void *config, struct faults *faults)
{
	const struct pprof_file_config *c = config;
	if (!c->include.count)
		faults_add(faults, "include must be specified");
	if (strcmp(c->start_at, "beginning") && strcmp(c->start_at, "end"))
		faults_add(faults, "start_at: must be beginning or end");
	if (c->collection_interval.ns < 100000000)
		faults_add(faults, "collection_interval: must be at least 100ms");
	if (c->initial_delay.ns < 0)
		faults_add(faults, "initial_delay must not be negative");
	struct fields resource;
	struct error why;
	fields_init(&resource, &resource_limits);
	if (!add_resource(&resource, &c->resource, &why))
		faults_add(faults, "resource: %s", why.text);
	fields_fini(&resource);
}

#define ROW(member, ...) CONFIG_ROW(struct pprof_file_config, member, .key = #member, __VA_ARGS__)

static const struct config_row rows[] = {
	ROW(include,
	    .help = "Globs of files to read. Each file is one profile, also compressed with "
		    "gzip or zstd."),
	ROW(exclude, .help = "Globs of files that are not read."),
	ROW(start_at, .def = "beginning",
	    .help = "`end`: files that exist at the start are not read until they change."),
	ROW(collection_interval, .def = "10s", .help = "Files are checked for changes this often."),
	ROW(initial_delay, .def = "1s", .help = "Delay before the first check."),
	ROW(resource, .help = "Resource attributes of the profiles, as `name: value`."),
	ROW(max_file_size, .def = "20971520", .unit = "bytes", .limited = true, .min = 1,
	    .max = 1 << 30, .help = "Maximum size of a file, both as it is and decompressed."),
	ROW(max_files, .def = "10000", .limited = true, .min = 1, .max = 100000,
	    .help = "Files that are considered; others are ignored, with a warning."),
	{ 0 }
};

const struct config_table pprof_file_table = { sizeof(struct pprof_file_config), rows, check_file,
					       true };
