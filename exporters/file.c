/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/memory.h"
#include "exporters/file_log.h"
#include "exporters/file_spool.h"
#include "net/compress.h"
#include "pipeline/component.h"
#include "pipeline/delivery/body.h"
#include "pipeline/delivery/delivery.h"
#include "pipeline/delivery/unsupported.h"
#include "profile/otlp/decode_otlp.h"
#include "profile/pprof/encode_pprof.h"
#include "profile/pprof/pprof_manual.h"

/*
 * Writes what leaves to disk: requests one after the other into one file (file_log.c), as the
 * Collector's file exporter does, or each profile as a pprof file of its own into a directory
 * (file_spool.c).
 *
 * Sends come one at a time (max_in_flight) on pool threads. reopen runs on the loop thread and only
 * leaves a newly opened file for the next send. Nothing is buffered: what is acknowledged has been
 * written. A full disk is like a destination that is down: the packet is retried.
 */
enum { FORMAT_JSON, FORMAT_PROTO, FORMAT_PPROF };
enum { COMPRESSION_NONE, COMPRESSION_ZSTD };
enum {
	KEEP_BYTES = 1 << 20, /* of each buffer, between packets */
	SPOOL_FILES = 10000,  /* without `rotation` */
	SPOOL_MEGABYTES = 1024
};

struct rotation_config {
	struct optional present;
	int64_t max_megabytes, max_days, max_backups, max_total_megabytes;
	bool localtime;
};

struct group_config {
	bool enabled;
	char *resource_attribute;
	int64_t max_open_files;
};

struct compression_config {
	int64_t level;
};

struct file_config {
	char *path, *directory, *encoding, *directory_permissions;
	struct choice format, compression;
	struct compression_config compression_params;
	bool append, create_directory;
	struct duration flush_interval;
	struct rotation_config rotation;
	struct group_config group_by;
	struct delivery_config delivery;
};

static const char *const formats[] = { "json", "proto", "pprof", NULL };
static const char *const compressions[] = { "none", "zstd", NULL };

static const struct config_row rotation_rows[] = {
	CONFIG_ROW(struct rotation_config, max_megabytes, .key = "max_megabytes", .def = "100",
		   .unit = "MiB", .limited = true, .min = 0, .max = 1 << 20,
		   .help = "A file is rotated before it exceeds this size; 0 means 100. `pprof` "
			   "files are never split."),
	CONFIG_ROW(struct rotation_config, max_days, .key = "max_days", .def = "0", .unit = "days",
		   .limited = true, .min = 0, .max = 36500,
		   .help = "Files older than this are removed; 0: never."),
	CONFIG_ROW(struct rotation_config, max_backups, .key = "max_backups", .def = "100",
		   .limited = true, .min = 0, .max = 1000000,
		   .help = "Number of the newest rotated files (with `pprof`: profiles) that "
			   "are kept; 0: all."),
	CONFIG_ROW(struct rotation_config, max_total_megabytes, .key = "max_total_megabytes",
		   .def = "1024", .unit = "MiB", .limited = true, .min = 0, .max = 1 << 30,
		   .help = "Maximum size of all `pprof` files in the directory; beyond it, the "
			   "oldest are removed. 0: no limit. Not a key of the Collector."),
	CONFIG_ROW(struct rotation_config, localtime, .key = "localtime", .def = "false",
		   .help = "File names contain local time instead of UTC."),
	{ 0 }
};
static const struct config_table rotation_table = { sizeof(struct rotation_config), rotation_rows,
						    .optional = true };

static const struct config_row group_rows[] = {
	CONFIG_ROW(struct group_config, enabled, .key = "enabled", .def = "false",
		   .help = "Only `false` is supported."),
	CONFIG_ROW(struct group_config, resource_attribute, .key = "resource_attribute",
		   .def = "fileexporter.path_segment", .inert = true,
		   .help = "Grouping is not supported."),
	CONFIG_ROW(struct group_config, max_open_files, .key = "max_open_files", .def = "100",
		   .inert = true, .help = "Grouping is not supported."),
	{ 0 }
};
static const struct config_table group_table = { sizeof(struct group_config), group_rows };

static const struct config_row compression_rows[] = {
	CONFIG_ROW(struct compression_config, level, .key = "level", .def = "0", .limited = true,
		   .min = 0, .max = 22, .help = "Compression level of zstd; 0: the default level."),
	{ 0 }
};
static const struct config_table compression_table = { sizeof(struct compression_config),
						       compression_rows };

static const struct config_row file_rows[] = {
	CONFIG_ROW(struct file_config, path, .key = "path",
		   .help = "The file, for `json` and `proto`. No other `file` exporter may use "
			   "it. A named pipe must have a reader when the gateway starts. A "
			   "symbolic link is an error, except for those of the system "
			   "(`/dev/stdout`, `/proc/self/fd/1`)."),
	CONFIG_ROW(struct file_config, directory, .key = "directory",
		   .help = "The directory of the files, for `pprof`. No other `file` exporter may "
			   "use it. Not a key of the Collector."),
	CONFIG_ROW(
		struct file_config, format, .key = "format", .def = "json", .choices = formats,
		.help = "`json`: one request per line (OTLP/JSON). `proto`: OTLP requests, each "
			"preceded by its length in 4 bytes, big-endian. `pprof`: each profile as "
			"a gzip-compressed file in `directory`."),
	CONFIG_ROW(struct file_config, append, .key = "append", .def = "false",
		   .help = "Appends to the file instead of truncating it before the first record."),
	CONFIG_ROW(struct file_config, compression, .key = "compression", .def = "none",
		   .choices = compressions,
		   .help = "`zstd`: each request is compressed separately and preceded by its "
			   "length, as with `proto`."),
	CONFIG_SECTION(struct file_config, compression_params, compression_table,
		       .key = "compression_params", .help = "Settings of the compression."),
	CONFIG_ROW(struct file_config, encoding, .key = "encoding",
		   .help = "Encoding extensions are not supported: setting it is an error."),
	CONFIG_ROW(struct file_config, flush_interval, .key = "flush_interval", .def = "1s",
		   .inert = true, .help = "Every request is written immediately."),
	CONFIG_ROW(struct file_config, create_directory, .key = "create_directory", .def = "true",
		   .help = "Creates missing directories."),
	CONFIG_ROW(struct file_config, directory_permissions, .key = "directory_permissions",
		   .def = "\"0755\"", .help = "Permissions of created directories, in octal."),
	CONFIG_SECTION(
		struct file_config, rotation, rotation_table, .key = "rotation",
		.presence = PRESENCE_DEFAULT,
		.help = "Rotation of the output. Without it, one file grows without limit; "
			"with `pprof`, the newest 10000 files are kept, up to 1024 MiB. With "
			"it, the exporter appends to an existing file."),
	CONFIG_SECTION(struct file_config, group_by, group_table, .key = "group_by",
		       .help = "One file per value of a resource attribute: not supported."),
	DELIVERY_ROWS_UNTIMED(struct file_config, delivery),
	{ 0 }
};

static bool read_mode(const char *text, mode_t *mode)
{
	char *end;
	unsigned long value = strtoul(text, &end, 8);
	*mode = (mode_t)value;
	return *text && !*end && value <= 0777;
}

static bool check_place(const struct file_config *c, struct error *err)
{
	bool pprof = c->format.index == FORMAT_PPROF;
	const char *wanted = pprof ? c->directory : c->path,
		   *other = pprof ? c->path : c->directory;
	const char *name = pprof ? "directory" : "path", *not_name = pprof ? "path" : "directory";
	if (!wanted || !*wanted)
		return error_set(err, ERROR_CONFIG, "`%s` must be non-empty with format %s", name,
				 formats[c->format.index]);
	if (other)
		return error_set(err, ERROR_CONFIG, "`%s` is not supported with format %s",
				 not_name, formats[c->format.index]);
	return true;
}

static bool file_check(const void *config, struct error *err)
{
	const struct file_config *c = config;
	mode_t mode;
	const char *fault = NULL;
	if (c->encoding)
		fault = "`encoding`: encoding extensions are not supported; use `format`";
	else if (c->group_by.enabled)
		fault = "`group_by`: not supported";
	else if (c->append && c->rotation.present.enabled)
		fault = "`append` and `rotation` enabled at the same time is not supported";
	else if (c->append && c->compression.index != COMPRESSION_NONE)
		fault = "`append` and `compression` enabled at the same time is not supported";
	else if (c->format.index == FORMAT_PPROF &&
		 (c->append || c->compression.index != COMPRESSION_NONE))
		fault = "`append` and `compression` are not supported with format pprof, which "
			"is always gzip";
	else if (!read_mode(c->directory_permissions, &mode))
		fault = "`directory_permissions` must be an octal number up to 0777";
	return fault ? error_set(err, ERROR_CONFIG, "%s", fault) : check_place(c, err);
}

static const struct config_table file_table = { sizeof(struct file_config), file_rows, file_check };

struct file {
	const struct file_config *config;
	struct log log;
	bool open, failing;      /* failing: the last send failed, and it was logged */
	struct file_log lines;   /* json, proto */
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
	return self->config->format.index == FORMAT_PPROF;
}

/* Two exporters would truncate and rotate each other's records. */
static const char *file_owned_path(const void *config)
{
	const struct file_config *c = config;
	return c->format.index == FORMAT_PPROF ? c->directory : c->path;
}

static const struct metric removed_metric = {
	"otelcol_exporter_removed_files", METRIC_COUNTER, "{files}",
	"pprof files that the `file` exporter removed, by the limit of `rotation` that they "
	"exceeded."
};

static const struct metric *const file_metrics[] = { &removed_metric, NULL };

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

static bool file_create(void *instance, const void *config, const struct host *host,
			struct error *err)
{
	struct file *self = instance;
	(void)err;
	self->config = config;
	self->log = host->log;
	if (is_spool(self))
		make_series(self, host);
	bytes_init(&self->scratch, PROFILES_INPUT_MAX);
	return true;
}

static bool make_directory(const struct file_config *c, struct error *err)
{
	mode_t mode;
	if (!c->create_directory || !read_mode(c->directory_permissions, &mode))
		return true;
	if (c->format.index == FORMAT_PPROF)
		return file_make_directories(c->directory, mode, err);
	const char *slash = strrchr(c->path, '/');
	if (!slash || slash == c->path)
		return true;
	char *directory = memory_text_of(c->path, (size_t)(slash - c->path));
	bool ok = file_make_directories(directory, mode, err);
	memory_free(directory);
	return ok;
}

static bool open_lines(struct file *self, struct error *err)
{
	const struct file_config *c = self->config;
	const struct rotation_config *r = &c->rotation;
	bool plain_json =
		c->format.index == FORMAT_JSON && c->compression.index == COMPRESSION_NONE;
	struct file_log_options options = {
		.path = c->path,
		.frame = plain_json ? FRAME_LINE : FRAME_LENGTH,
		.append = c->append || r->present.enabled,
	};
	if (r->present.enabled) {
		options.max_bytes = (uint64_t)(r->max_megabytes ? r->max_megabytes : 100) << 20;
		options.max_age_ns = (uint64_t)r->max_days * 86400 * 1000000000;
		options.max_backups = r->max_backups;
		options.local_time = r->localtime;
	}
	return file_log_open(&self->lines, &options, err);
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
					      .max_files = SPOOL_FILES,
					      .max_bytes = (uint64_t)SPOOL_MEGABYTES << 20 };
	if (r->present.enabled) {
		options.max_age_ns = (uint64_t)r->max_days * 86400 * 1000000000;
		options.max_files = r->max_backups;
		options.max_bytes = (uint64_t)r->max_total_megabytes << 20;
		options.local_time = r->localtime;
	}
	if (!file_spool_open(&self->spool, &options, err))
		return false;
	note_removed(self);
	return true;
}

static bool file_start(void *instance, struct error *err)
{
	struct file *self = instance;
	self->open = true;
	if (make_directory(self->config, err) &&
	    (is_spool(self) ? open_spool(self, err) : open_lines(self, err)))
		return true;
	err->kind = ERROR_CONFIG; /* at start the operator must fix it */
	return false;
}

/* Creates again what was removed meanwhile, including the directory. */
static bool restore(struct file *self, struct error *err)
{
	if (is_spool(self))
		return make_directory(self->config, err);
	return !file_log_removed(&self->lines) ||
	       (make_directory(self->config, err) && file_log_reopen(&self->lines, err));
}

static struct packet_form file_reads(void *instance)
{
	const struct file *self = instance;
	return self->config->format.index == FORMAT_JSON ? FORM_JSON : FORM_OTLP;
}

static bool write_record(struct file *self, struct packet *packet, struct error *err)
{
	const struct file_config *c = self->config;
	const struct bytes *form = body_of(packet, file_reads(self), err);
	if (!form)
		return false;
	struct view record = bytes_view(form);
	if (c->compression.index == COMPRESSION_ZSTD) {
		self->scratch.len = 0;
		if (!compress_deflate(CODING_ZSTD, (int)c->compression_params.level, record,
				      &self->scratch, err))
			return false;
		record = bytes_view(&self->scratch);
	}
	return file_log_add(&self->lines, record, err);
}

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
	bool ok = encode_pprof(p, false, write_pprof, &writing, err);
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
static bool write_pprofs(struct file *self, struct packet *packet, struct error *err)
{
	int64_t needed = (int64_t)packet->otlp.len * 12;
	packet_claim(packet, needed);
	bool ok = encode_pprofs(self, packet, err);
	profiles_shrink(&self->tables, KEEP_BYTES);
	if (self->scratch.room > KEEP_BYTES)
		bytes_fini(&self->scratch);
	packet_claim(packet, -needed);
	return ok;
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
	struct send_result result = { .outcome = SEND_OK, .retry_after_ms = -1 };
	(void)timeout_ns;
	bool ok = restore(self, &err) && (is_spool(self) ? write_pprofs(self, part->packet, &err)
							 : write_record(self, part->packet, &err));
	if (!ok) {
		bool disk = err.kind == ERROR_BUSY;
		result.outcome = disk ? SEND_RETRY : SEND_PERMANENT;
		result.reason = disk ? "disk" : "encoding";
	}
	log_change(self, ok, &err);
	sending_done(sending, &result);
}

static bool file_reopen(void *instance, struct error *err)
{
	struct file *self = instance;
	return make_directory(self->config, err) &&
	       (is_spool(self) || file_log_reopen(&self->lines, err));
}

static void file_destroy(void *instance)
{
	struct file *self = instance;
	if (self->open && is_spool(self))
		file_spool_close(&self->spool);
	else if (self->open)
		file_log_close(&self->lines);
	profiles_fini(&self->tables);
	bytes_fini(&self->scratch);
}

static const struct exporter_ops file_ops = {
	.start = file_start,
	.owned_path = file_owned_path,
	.delivery_offset = offsetof(struct file_config, delivery),
	.max_in_flight = 1,
	.reads = file_reads,
	.send = file_send,
};

const struct component_factory file_exporter = {
	.type = "file",
	.help = "Writes profiles to disk: OTLP requests to one file, or pprof files to a "
		"directory.",
	.manual =
		"A record is written completely or not at all: the incomplete record of a "
		"failed write is removed. A file that an earlier run left incomplete is "
		"renamed like a rotated one. SIGHUP reopens the file, so another program can "
		"move it first. A file or directory that was removed is created again. While "
		"the disk is full, packets are retried, as for a destination that is down.\n\n"
		"The name of a pprof file is the time of writing and a counter. Without "
		"`rotation` the newest 10000 are kept, up to 1024 MiB; `rotation: {max_backups: "
		"0, max_total_megabytes: 0}` keeps all. A write that the kernel never completes "
		"(an unresponsive network disk) delays this exporter only; a shutdown abandons it "
		"5 s after its deadline. Items of profiles that pprof cannot represent are "
		"counted in `otelcol_exporter_unsupported_items`.\n\n" PPROF_MANUAL,
	.kind = COMPONENT_EXPORTER,
	.exporter = &file_ops,
	.size = sizeof(struct file),
	.config = &file_table,
	.metrics = file_metrics,
	.create = file_create,
	.destroy = file_destroy,
	.reopen = file_reopen,
};
