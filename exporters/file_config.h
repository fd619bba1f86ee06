/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTERS_FILE_CONFIG_H
#define EXPORTERS_FILE_CONFIG_H

#include <sys/types.h>

#include "pipeline/delivery/delivery.h"

/* The keys of the `file` exporter: those of the Collector's, and some of our own. */
enum file_format { FORMAT_JSON, FORMAT_PROTO, FORMAT_PPROF };
enum file_compression { COMPRESSION_NONE, COMPRESSION_ZSTD, COMPRESSION_EMPTY };

struct rotation_config {
	struct optional present;
	int64_t max_megabytes, max_days, max_backups, max_total_megabytes;
	bool localtime;
};

struct group_config {
	bool enabled;
	char *resource_attribute;
	int64_t max_open_files, max_files;
};

struct compression_config {
	int64_t level;
};

struct file_config {
	char *path, *directory, *encoding, *directory_permissions;
	struct choice format, compression;
	struct compression_config compression_params;
	bool append, create_directory, fsync;
	struct duration flush_interval;
	struct rotation_config rotation;
	struct group_config group_by;
	struct delivery_config delivery;
};

extern const struct config_table file_config_table;

/* directory_permissions; the table has checked it. */
mode_t file_config_mode(const struct file_config *config);

static inline bool file_config_is_spool(const struct file_config *config)
{
	return config->format.index == FORMAT_PPROF;
}

static inline bool file_config_zstd(const struct file_config *config)
{
	return config->compression.index == COMPRESSION_ZSTD;
}

#endif
