/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/file_config.h"

#include <stdlib.h>
#include <string.h>

#include "exporters/file_place.h"

static const char *const formats[] = { "json", "proto", "pprof", NULL };
static const char *const compressions[] = {
	[COMPRESSION_NONE] = "none", [COMPRESSION_ZSTD] = "zstd", [COMPRESSION_EMPTY] = "", NULL
};

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
		   .help = "Writes to several files, as the section's text says."),
	CONFIG_ROW(struct group_config, resource_attribute, .key = "resource_attribute",
		   .def = "fileexporter.path_segment",
		   .help = "The attribute whose value replaces `*` in `path`. The policy must "
			   "permit it: it is read from what leaves."),
	CONFIG_ROW(struct group_config, max_open_files, .key = "max_open_files", .def = "100",
		   .limited = true, .min = 1, .max = 100000,
		   .help = "Maximum number of files that are open at the same time. Beyond it, the "
			   "one that was not used for the longest time is closed."),
	CONFIG_ROW(struct group_config, max_files, .key = "max_files", .def = "10000",
		   .limited = true, .min = 1, .max = 1000000,
		   .help = "Maximum number of files that are written to, since the start, without "
			   "rotated ones. Data for another file is dropped after a permanent "
			   "error. Not a key of the Collector."),
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
	CONFIG_ROW(struct file_config, path, .key = "path", .role = ROLE_WRITES_FILE,
		   .help = "The file, for `json` and `proto`. No other `file` exporter may use "
			   "it. A named pipe must have a reader when the gateway starts. A "
			   "symbolic link is an error, except for those of the system "
			   "(`/dev/stdout`, `/proc/self/fd/1`)."),
	CONFIG_ROW(struct file_config, directory, .key = "directory", .role = ROLE_WRITES_DIRECTORY,
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
			   "length, as with `proto`; also with `json`. `\"\"` is `none`."),
	CONFIG_SECTION(struct file_config, compression_params, compression_table,
		       .key = "compression_params", .help = "Settings of the compression."),
	CONFIG_ROW(struct file_config, encoding, .key = "encoding",
		   .help = "Encoding extensions are not supported: setting it is an error."),
	CONFIG_ROW(struct file_config, flush_interval, .key = "flush_interval", .def = "1s",
		   .inert = true, .help = "Every request is written immediately."),
	CONFIG_ROW(struct file_config, fsync, .key = "fsync", .def = "false",
		   .help = "Waits until the disk has each record before it is acknowledged, so "
			   "that it survives a power failure. Not a key of the Collector."),
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
		       .help = "One file for each value of a resource attribute, for `json` and "
			       "`proto`: see below."),
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

mode_t file_config_mode(const struct file_config *config)
{
	mode_t mode;
	return read_mode(config->directory_permissions, &mode) ? mode : 0755;
}

static void check_place(const struct file_config *c, struct faults *faults)
{
	bool pprof = file_config_is_spool(c);
	const char *wanted = pprof ? c->directory : c->path,
		   *other = pprof ? c->path : c->directory;
	const char *name = pprof ? "directory" : "path";
	const char *format = formats[c->format.index];
	if (other)
		faults_relate(faults, "format",
			      pprof ? "`path` requires `format: json` or `format: proto`"
				    : "`directory` requires `format: pprof`");
	else if (!wanted || !*wanted)
		faults_relate(faults, "format", "`%s` must be non-empty with format %s", name,
			      format);
}

static void check_groups(const struct file_config *c, struct faults *faults)
{
	const char *attribute = c->group_by.resource_attribute;
	struct error why;
	if (!c->group_by.enabled)
		return;
	if (file_config_is_spool(c)) {
		faults_relate(faults, "format",
			      "`group_by` is not supported with format pprof, whose files have "
			      "names of their own");
		return;
	}
	if (!attribute || !*attribute)
		faults_add(faults, "`group_by::resource_attribute` must be non-empty");
	if (c->path && *c->path && !file_place_check(c->path, &why))
		faults_relate(faults, "group_by format", "`path`: %s", why.text);
}

static void check_format(const struct file_config *c, struct faults *faults)
{
	if (c->append && c->rotation.present.enabled)
		faults_relate(faults, "rotation",
			      "`append` and `rotation` enabled at the same time is not supported");
	if (file_config_is_spool(c) && (c->append || file_config_zstd(c)))
		faults_relate(faults, "append compression format",
			      "%s: `append` and `compression` are not supported with format pprof, "
			      "which is always gzip",
			      c->append ? "append" : "compression");
}

static void file_check(const void *config, struct faults *faults)
{
	const struct file_config *c = config;
	mode_t mode;
	if (c->encoding)
		faults_add(faults,
			   "`encoding`: encoding extensions are not supported; use `format`");
	if (!read_mode(c->directory_permissions, &mode))
		faults_add(faults, "`directory_permissions` must be an octal number up to 0777");
	check_format(c, faults);
	check_place(c, faults);
	check_groups(c, faults);
}

const struct config_table file_config_table = { sizeof(struct file_config), file_rows, file_check };
