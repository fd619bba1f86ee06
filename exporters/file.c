/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "exporters/file_config.h"
#include "exporters/file_groups.h"
#include "exporters/file_manual.h"
#include "exporters/file_place.h"
#include "exporters/file_spool.h"
#include "net/compress.h"
#include "pipeline/component.h"
#include "pipeline/delivery/body.h"
#include "pipeline/delivery/unsupported.h"
#include "profile/collect/split.h"
#include "profile/otlp/decode_otlp.h"
#include "profile/pprof/encode_pprof.h"
#include "profile/pprof/pprof_manual.h"

/*
 * Writes what leaves to disk: requests one after the other into one file (file_log.c) or into one
 * for each value of a resource attribute (file_groups.c), as the Collector's file exporter does, or
 * each profile as a pprof file of its own into a directory (file_spool.c).
 *
 * With groups, each part of a packet holds what belongs to one file. Which one that is, is found
 * again in the part when it is sent, because parts may have been on disk in between.
 *
 * Sends come one at a time (max_in_flight) on pool threads. reopen runs on the loop thread and only
 * leaves a newly opened file, or a mark, for the next send. Nothing is buffered: what is
 * acknowledged has been written. A full disk is like a destination that is down: the packet is
 * retried.
 */
enum {
	KEEP_BYTES = 1 << 20, /* of each buffer, between packets */
	SPOOL_FILES = 10000,  /* without `rotation` */
	SPOOL_MEGABYTES = 1024
};

/* Why resources are in no file. */
enum ungrouped {
	UNGROUPED_MISSING = FILE_PLACE_MISSING,
	UNGROUPED_INVALID = FILE_PLACE_INVALID,
	UNGROUPED_UNUSABLE,
	UNGROUPED_TOO_MANY_FILES,
	UNGROUPED_KINDS
};

struct file {
	const struct file_config *config;
	struct log log;
	bool open, failing;      /* failing: the last send failed, and it was logged */
	struct file_log lines;   /* json, proto */
	struct file_place place; /* the same with group_by, instead of `lines` */
	struct file_groups groups;
	struct bytes path;
	struct metric_series *files, *ungrouped[UNGROUPED_KINDS];
	bool full;               /* max_files was reached, and that was logged */
	struct file_spool spool; /* pprof */
	struct profiles tables;  /* pprof: the packet, decoded */
	struct bytes scratch;    /* compressed */
	struct unsupported unsupported;
	struct metric_series *removed[FILE_SURPLUS_KINDS]; /* pprof */
};

/* Of pprof files. */
#define UNSUPPORTED \
	(UNSUPPORTED_BY_PPROF | 1u << UNSUPPORTED_RESOURCE_ATTRIBUTE | \
	 1u << UNSUPPORTED_SCOPE_ATTRIBUTE | 1u << UNSUPPORTED_PROFILE_ATTRIBUTE)

static bool is_spool(const struct file *self)
{
	return file_config_is_spool(self->config);
}

static bool has_groups(const struct file *self)
{
	return self->config->group_by.enabled;
}

/* Two exporters would truncate and rotate each other's records. */
static const char *file_owned_path(const void *config)
{
	const struct file_config *c = config;
	return file_config_is_spool(c) ? c->directory : c->path;
}

static const struct metric removed_metric = {
	"otelcol_exporter_removed_files", METRIC_COUNTER, "{files}",
	"pprof files that the `file` exporter removed, by the limit of `rotation` that they "
	"exceeded."
};

static const struct metric files_metric = {
	"otelcol_exporter_file_groups", METRIC_GAUGE, "{files}",
	"Files that the `file` exporter has written to since the start because of `group_by`; "
	"rotated ones do not count."
};
static const struct metric ungrouped_metric = {
	"otelcol_exporter_ungrouped_resources", METRIC_COUNTER, "{resources}",
	"Resources that the `file` exporter dropped because `group_by` had no file for them, by "
	"reason: missing (no such attribute, or no string), invalid (the value names no file), "
	"unusable (what is there is no file that can be written), too_many_files."
};

static const struct metric *const file_metrics[] = { &removed_metric, &files_metric,
						     &ungrouped_metric, NULL };

static void make_series(struct file *self, const struct host *host)
{
	static const char *const limits[FILE_SURPLUS_KINDS] = {
		[FILE_TOO_MANY] = "max_backups",
		[FILE_TOO_OLD] = "max_days",
		[FILE_TOO_LARGE] = "max_total_megabytes",
	};
	unsupported_init(&self->unsupported, UNSUPPORTED, host->metrics, host->id);
	for (int i = FILE_TOO_MANY; i < FILE_SURPLUS_KINDS; i++)
		self->removed[i] =
			metrics_series(host->metrics, &removed_metric,
				       (const struct metric_label[]){ { "exporter", host->id },
								      { "limit", limits[i] },
								      { 0 } });
}

static void make_group_series(struct file *self, const struct host *host)
{
	static const char *const reasons[UNGROUPED_KINDS] = {
		[UNGROUPED_MISSING] = "missing",
		[UNGROUPED_INVALID] = "invalid",
		[UNGROUPED_UNUSABLE] = "unusable",
		[UNGROUPED_TOO_MANY_FILES] = "too_many_files",
	};
	self->files =
		metrics_series(host->metrics, &files_metric,
			       (const struct metric_label[]){ { "exporter", host->id }, { 0 } });
	for (int i = UNGROUPED_MISSING; i < UNGROUPED_KINDS; i++)
		self->ungrouped[i] =
			metrics_series(host->metrics, &ungrouped_metric,
				       (const struct metric_label[]){ { "exporter", host->id },
								      { "reason", reasons[i] },
								      { 0 } });
}

static bool file_create(void *instance, const void *config, const struct host *host,
			struct error *err)
{
	struct file *self = instance;
	(void)err;
	self->config = config;
	self->log = host->log;
	if (is_spool(self))
		make_series(self, host);
	if (has_groups(self)) {
		make_group_series(self, host);
		file_place_init(&self->place, self->config->path,
				self->config->group_by.resource_attribute);
	}
	bytes_init(&self->scratch, PROFILES_INPUT_MAX);
	return true;
}

static bool make_directory(const struct file_config *c, struct error *err)
{
	mode_t mode = file_config_mode(c);
	if (!c->create_directory)
		return true;
	if (file_config_is_spool(c))
		return file_make_directories(c->directory, mode, err);
	const char *slash = strrchr(c->path, '/');
	if (!slash || slash == c->path)
		return true;
	char *directory = memory_text_of(c->path, (size_t)(slash - c->path));
	bool ok = file_make_directories(directory, mode, err);
	memory_free(directory);
	return ok;
}

static struct file_log_options log_options(const struct file_config *c)
{
	const struct rotation_config *r = &c->rotation;
	bool plain_json = c->format.index == FORMAT_JSON && !file_config_zstd(c);
	struct file_log_options options = {
		.path = c->path,
		.frame = plain_json ? FRAME_LINE : FRAME_LENGTH,
		.append = c->append || r->present.enabled,
		.sync = c->fsync,
	};
	if (r->present.enabled) {
		options.max_bytes = (uint64_t)(r->max_megabytes ? r->max_megabytes : 100) << 20;
		options.max_age_ns = (uint64_t)r->max_days * 86400 * 1000000000;
		options.max_backups = r->max_backups;
		options.local_time = r->localtime;
	}
	return options;
}

static bool open_lines(struct file *self, struct error *err)
{
	const struct file_log_options options = log_options(self->config);
	return make_directory(self->config, err) && file_log_open(&self->lines, &options, err);
}

static bool open_groups(struct file *self, struct error *err)
{
	const struct file_config *c = self->config;
	struct file_groups_options options = {
		.log = log_options(c),
		.directory = file_place_directory(&self->place),
		.mode = file_config_mode(c),
		.create = c->create_directory,
		.max_open = (size_t)c->group_by.max_open_files,
		.max_files = (size_t)c->group_by.max_files,
	};
	options.log.shown = c->path;
	return file_groups_start(&self->groups, &options, err);
}

/* Removal by size may come sooner than the operator expects. */
static void note_removed(struct file *self)
{
	const uint64_t *files = self->spool.removed.files;
	for (int i = FILE_TOO_MANY; i < FILE_SURPLUS_KINDS; i++)
		metric_add(self->removed[i], (int64_t)files[i]);
	if (files[FILE_TOO_LARGE])
		log_warn(&self->log,
			 "Removed the oldest pprof files to stay within "
			 "rotation::max_total_megabytes",
			 log_number("files", files[FILE_TOO_LARGE]),
			 log_number("files_left", files[FILE_KEPT]));
}

static bool open_spool(struct file *self, struct error *err)
{
	const struct rotation_config *r = &self->config->rotation;
	struct file_spool_options options = { .directory = self->config->directory,
					      .sync = self->config->fsync,
					      .max_files = SPOOL_FILES,
					      .max_bytes = (uint64_t)SPOOL_MEGABYTES << 20 };
	if (r->present.enabled) {
		options.max_age_ns = (uint64_t)r->max_days * 86400 * 1000000000;
		options.max_files = r->max_backups;
		options.max_bytes = (uint64_t)r->max_total_megabytes << 20;
		options.local_time = r->localtime;
	}
	if (!make_directory(self->config, err) || !file_spool_open(&self->spool, &options, err))
		return false;
	note_removed(self);
	return true;
}

static bool file_start(void *instance, struct error *err)
{
	struct file *self = instance;
	self->open = true;
	if (is_spool(self)     ? open_spool(self, err)
	    : has_groups(self) ? open_groups(self, err)
			       : open_lines(self, err))
		return true;
	err->kind = ERROR_CONFIG; /* at start the operator must fix it */
	return error_prefix(err, is_spool(self) ? "directory" : "path");
}

static struct packet_form file_reads(void *instance)
{
	const struct file *self = instance;
	return self->config->format.index == FORMAT_JSON ? FORM_JSON : FORM_OTLP;
}

/* The bytes of a record, valid until the next call. */
static bool make_record(struct file *self, struct packet *packet, struct view *record,
			struct error *err)
{
	const struct file_config *c = self->config;
	const struct bytes *form = body_of(packet, file_reads(self), err);
	if (!form)
		return false;
	*record = bytes_view(form);
	if (!file_config_zstd(c))
		return true;
	self->scratch.len = 0;
	if (!compress_deflate(CODING_ZSTD, (int)c->compression_params.level, *record,
			      &self->scratch, err))
		return false;
	*record = bytes_view(&self->scratch);
	return true;
}

/* How a packet ended. */
struct end {
	enum send_outcome outcome;
	const char *reason;
};

static const struct end end_ok = { SEND_OK, NULL };

static struct end end_failed(const struct error *err)
{
	return err->kind == ERROR_BUSY ? (struct end){ SEND_RETRY, "disk" }
				       : (struct end){ SEND_PERMANENT, "encoding" };
}

/* Creates again what was removed meanwhile, including the directory. */
static bool restore_lines(struct file *self, struct error *err)
{
	return !file_log_removed(&self->lines) ||
	       (make_directory(self->config, err) && file_log_reopen(&self->lines, err));
}

static struct end write_line(struct file *self, struct packet *packet, struct error *err)
{
	struct view record;
	bool ok = restore_lines(self, err) && make_record(self, packet, &record, err) &&
		  file_log_add(&self->lines, record, err);
	return ok ? end_ok : end_failed(err);
}

/* ---- group_by */

static bool file_plans(void *instance)
{
	return has_groups(instance);
}

/* A part holds the resources of one file. What is in no part has no file. */
static bool file_plan(void *instance, const struct part *whole, const struct limits *wanted,
		      struct parts *parts, struct error *err)
{
	struct file *self = instance;
	struct profiles p = { 0 };
	struct limits limits = *wanted;
	uint64_t faults[FILE_PLACE_FAULTS] = { 0 };
	uint32_t *groups = NULL;
	bool ok = split_open(whole->packet, &p, err);
	if (ok) {
		limits.groups = groups = file_place_sort(&self->place, &p, faults);
		ok = split_profiles(&p, whole->packet, &limits, NULL, parts, err);
	}
	for (int i = FILE_PLACE_MISSING; i < FILE_PLACE_FAULTS && ok; i++)
		metric_add(self->ungrouped[i], (int64_t)faults[i]);
	memory_free(groups);
	profiles_fini(&p);
	return ok;
}

static void log_full(struct file *self)
{
	if (!self->full)
		log_warn(&self->log,
			 "The file exporter writes to group_by::max_files files. Data for other "
			 "files is dropped. Logged once, always counted.",
			 log_number("max_files", self->config->group_by.max_files));
	self->full = true;
}

static struct end end_ungrouped(struct file *self, const struct packet *packet, enum ungrouped why)
{
	static const char *const reasons[UNGROUPED_KINDS] = {
		[UNGROUPED_MISSING] = "no_group",
		[UNGROUPED_INVALID] = "no_group",
		[UNGROUPED_UNUSABLE] = "unusable_file",
		[UNGROUPED_TOO_MANY_FILES] = "too_many_files",
	};
	metric_add(self->ungrouped[why], packet->resources);
	if (why == UNGROUPED_TOO_MANY_FILES)
		log_full(self);
	return (struct end){ SEND_PERMANENT, reasons[why] };
}

static struct end write_to_group(struct file *self, struct packet *packet, struct error *err)
{
	struct view record;
	/* of a part that another configuration planned */
	enum file_place_fault fault = file_place_of_packet(&self->place, packet, &self->path);
	if (fault != FILE_PLACE_OK)
		return end_ungrouped(self, packet, (enum ungrouped)fault);
	if (!make_record(self, packet, &record, err))
		return end_failed(err);
	enum file_groups_result result =
		file_groups_add(&self->groups, (const char *)self->path.at, record, err);
	metric_set(self->files, self->groups.groups.count);
	switch (result) {
	case FILE_GROUPS_UNUSABLE:
		error_clear(err); /* senders choose such paths: nothing is logged */
		return end_ungrouped(self, packet, UNGROUPED_UNUSABLE);
	case FILE_GROUPS_FULL:
		return end_ungrouped(self, packet, UNGROUPED_TOO_MANY_FILES);
	case FILE_GROUPS_OK:
		return end_ok;
	case FILE_GROUPS_DISK:
		break;
	}
	return end_failed(err);
}

/* ---- pprof */

struct writing {
	struct file *file;
	struct error *err;
};

static bool write_pprof(const struct pprof_out *out, void *context)
{
	struct writing *w = context;
	struct file *self = w->file;
	self->scratch.len = 0;
	return compress_deflate(CODING_GZIP, 0, out->bytes, &self->scratch, w->err) &&
	       file_spool_add(&self->spool, bytes_view(&self->scratch), w->err);
}

static bool encode_pprofs(struct file *self, struct packet *packet, struct error *err)
{
	struct profiles *p = &self->tables;
	struct writing writing = { self, err };
	if (!profiles_reset(p, NULL, bytes_view(&packet->otlp), PROFILES_INPUT_MAX) ||
	    !decode_otlp(p, err))
		return false;
	if (!file_spool_begin(&self->spool, err))
		return false;
	bool ok = encode_pprof(p, false, write_pprof, &writing, err) &&
		  file_spool_sync(&self->spool, err);
	file_spool_end(&self->spool, ok);
	note_removed(self);
	if (ok) {
		struct unsupported_counts unsupported;
		unsupported_look(p, &unsupported);
		unsupported_count(&self->unsupported, &unsupported);
	}
	return ok;
}

/* Tables, encoder and compressor take up to twelve times the packet. */
static struct end write_pprofs(struct file *self, struct packet *packet, struct error *err)
{
	int64_t needed = (int64_t)packet->otlp.len * 12;
	packet_claim(packet, needed);
	bool ok = make_directory(self->config, err) && encode_pprofs(self, packet, err);
	profiles_shrink(&self->tables, KEEP_BYTES);
	if (self->scratch.room > KEEP_BYTES)
		bytes_fini(&self->scratch);
	packet_claim(packet, -needed);
	return ok ? end_ok : end_failed(err);
}

/* Logs one line when writing starts to fail, and one when it works again. */
static void log_change(struct file *self, bool ok, const struct error *err)
{
	if (!ok && !self->failing)
		log_error(&self->log, "Writing failed.", log_text("error", err->text));
	else if (ok && self->failing)
		log_info(&self->log, "Writing works again.");
	self->failing = !ok;
}

static void file_send(void *instance, const struct part *part, uint64_t timeout_ns,
		      struct sending *sending)
{
	struct file *self = instance;
	struct error err = { 0 };
	(void)timeout_ns;
	struct end end = is_spool(self)     ? write_pprofs(self, part->packet, &err)
			 : has_groups(self) ? write_to_group(self, part->packet, &err)
					    : write_line(self, part->packet, &err);
	if (end.outcome == SEND_OK || err.kind)
		log_change(self, end.outcome == SEND_OK, &err);
	sending_done(sending, &(struct send_result){ .outcome = end.outcome,
						     .reason = end.reason,
						     .retry_after_ms = -1 });
}

static bool file_reopen(void *instance, struct error *err)
{
	struct file *self = instance;
	if (has_groups(self))
		return file_groups_reopen(&self->groups, err);
	return make_directory(self->config, err) &&
	       (is_spool(self) || file_log_reopen(&self->lines, err));
}

static void close_files(struct file *self)
{
	if (is_spool(self))
		file_spool_close(&self->spool);
	else if (has_groups(self))
		file_groups_fini(&self->groups);
	else
		file_log_close(&self->lines);
}

static void file_destroy(void *instance)
{
	struct file *self = instance;
	if (self->open)
		close_files(self);
	file_place_fini(&self->place);
	profiles_fini(&self->tables);
	bytes_fini(&self->scratch);
	bytes_fini(&self->path);
}

static const struct exporter_ops file_ops = {
	.start = file_start,
	.owned_path = file_owned_path,
	.delivery_offset = offsetof(struct file_config, delivery),
	.max_in_flight = 1,
	.reads = file_reads,
	.plan = file_plan,
	.plans = file_plans,
	.send = file_send,
};

const struct component_factory file_exporter = {
	.type = "file",
	.help = "Writes profiles to disk: OTLP requests to one file or several, or pprof files to "
		"a directory.",
	.manual = FILE_MANUAL PPROF_MANUAL,
	.kind = COMPONENT_EXPORTER,
	.exporter = &file_ops,
	.size = sizeof(struct file),
	.config = &file_config_table,
	.metrics = file_metrics,
	.create = file_create,
	.destroy = file_destroy,
	.reopen = file_reopen,
};
