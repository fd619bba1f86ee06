/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "pipeline/component.h"
#include "pipeline/storage/storage.h"

/* The directory where exporters keep their queues (sending_queue.storage). All work is done by
 * pipeline/storage. The keys are the Collector's, which keeps a bbolt file for each component. */
struct compaction_config {
	bool on_start, on_rebound, cleanup_on_start;
	char *directory;
	int64_t max_transaction_size, rebound_needed, rebound_trigger;
	struct duration check_interval;
};

struct file_storage_config {
	char *directory, *directory_permissions;
	bool create_directory, fsync, recreate;
	struct duration timeout;
	struct compaction_config compaction;
	struct choice on_error; /* enum storage_on_error */
	int64_t max_size_mib;
};

struct file_storage {
	struct storage *storage;
};

enum { GROUP_OTHERS_WRITE = 022, PERMISSIONS_MAX = 0777 };
#define MIB ((uint64_t)1 << 20)

/* -1: no octal number of a mode. */
static long permissions_of(const char *text)
{
	char *end;
	long mode = strtol(text, &end, 8);
	return *text && !*end && mode >= 0 && mode <= PERMISSIONS_MAX ? mode : -1;
}

static bool file_storage_create(void *self, const void *config, const struct host *host,
				struct error *err)
{
	struct file_storage *f = self;
	const struct file_storage_config *c = config;
	(void)err;
	f->storage = storages_get(host->storages,
				  &(struct storage_options){
					  .id = host->id,
					  .directory = c->directory,
					  .create_directory = c->create_directory,
					  .directory_mode = (unsigned)permissions_of(
						  c->directory_permissions),
					  .lock_timeout_ns = (uint64_t)c->timeout.ns,
					  .sync = c->fsync,
					  .max_bytes = (uint64_t)c->max_size_mib * MIB,
					  .on_error = (enum storage_on_error)c->on_error.index,
				  });
	return true;
}

static void file_storage_destroy(void *self)
{
	storage_unref(&((struct file_storage *)self)->storage);
}

static bool file_storage_start(void *self, struct error *err)
{
	return storage_open(((struct file_storage *)self)->storage, err) ||
	       error_prefix(err, "directory");
}

static struct storage *file_storage_of(void *self)
{
	return ((struct file_storage *)self)->storage;
}

static void file_storage_check(const void *config, struct faults *faults)
{
	const struct file_storage_config *c = config;
	long mode = permissions_of(c->directory_permissions);
	if (!c->directory || !*c->directory)
		faults_add(faults, "`directory` must not be empty");
	if (mode < 0)
		faults_add(faults, "`directory_permissions` must be an octal number, such as "
				   "\"0700\"");
	else if (mode & GROUP_OTHERS_WRITE)
		faults_add(faults, "`directory_permissions` must not let other users write");
}

static const char *const on_error_choices[] = { "refuse", "memory", NULL };

#define INERT_COMPACTION "Inert: the database needs no compaction; it uses freed space again."
static const struct config_row compaction_rows[] = {
	CONFIG_ROW(struct compaction_config, on_start, .key = "on_start", .def = "false",
		   .inert = true, .help = INERT_COMPACTION),
	CONFIG_ROW(struct compaction_config, on_rebound, .key = "on_rebound", .def = "false",
		   .inert = true, .help = INERT_COMPACTION),
	CONFIG_ROW(struct compaction_config, directory, .key = "directory", .inert = true,
		   .help = INERT_COMPACTION),
	CONFIG_ROW(struct compaction_config, max_transaction_size, .key = "max_transaction_size",
		   .def = "65536", .inert = true, .help = INERT_COMPACTION),
	CONFIG_ROW(struct compaction_config, cleanup_on_start, .key = "cleanup_on_start",
		   .def = "false", .inert = true, .help = INERT_COMPACTION),
	CONFIG_ROW(struct compaction_config, rebound_needed, .key = "rebound_needed_threshold_mib",
		   .def = "100", .inert = true, .help = INERT_COMPACTION),
	CONFIG_ROW(struct compaction_config, rebound_trigger,
		   .key = "rebound_trigger_threshold_mib", .def = "10", .inert = true,
		   .help = INERT_COMPACTION),
	CONFIG_ROW(struct compaction_config, check_interval, .key = "check_interval", .def = "5s",
		   .inert = true, .help = INERT_COMPACTION),
	{ 0 }
};
static const struct config_table compaction_table = { sizeof(struct compaction_config),
						      compaction_rows };

static const struct config_row rows[] = {
	CONFIG_ROW(struct file_storage_config, directory, .key = "directory",
		   .role = ROLE_WRITES_DIRECTORY, .def = "/var/lib/otelcol/file_storage",
		   .help = "The directory. It belongs to one process: a second one is refused. "
			   "Other users must not be able to write to it."),
	CONFIG_ROW(struct file_storage_config, create_directory, .key = "create_directory",
		   .def = "false", .help = "Creates the directory if it does not exist."),
	CONFIG_ROW(struct file_storage_config, directory_permissions,
		   .key = "directory_permissions", .def = "\"0700\"",
		   .help = "Permissions of a directory that is created, in octal. The Collector's "
			   "default is 0750."),
	CONFIG_ROW(struct file_storage_config, timeout, .key = "timeout", .def = "1s",
		   .help = "How long to wait for another process to leave the directory."),
	CONFIG_ROW(struct file_storage_config, fsync, .key = "fsync", .def = "true",
		   .help = "A commit waits for the disk. With `false`, the default of the "
			   "Collector, a power failure can lose data and damage the database; the "
			   "end of the process cannot."),
	CONFIG_ROW(struct file_storage_config, recreate, .key = "recreate", .def = "false",
		   .inert = true,
		   .help = "Inert: a database that is damaged is always renamed, and a new one "
			   "begun."),
	CONFIG_SECTION(struct file_storage_config, compaction, compaction_table,
		       .key = "compaction", .help = "Compaction of the Collector's files."),
	CONFIG_ROW(struct file_storage_config, on_error, .key = "on_error", .def = "refuse",
		   .choices = on_error_choices,
		   .help = "When nothing can be stored (the disk is full, read-only or fails, or "
			   "`max_size_mib` is reached): `refuse` senders with a retry hint, or "
			   "continue in `memory`, where a crash loses the data. Not a key of the "
			   "Collector."),
	CONFIG_ROW(
		struct file_storage_config, max_size_mib, .key = "max_size_mib", .def = "10240",
		.limited = true, .min = 1, .max = 16 << 20,
		.help = "Maximum size of all records, in MiB. The file can become twice as large. "
			"Not a key of the Collector."),
	{ 0 }
};
static const struct config_table table = { sizeof(struct file_storage_config), rows,
					   file_storage_check };

static const struct extension_ops file_storage_ops = { .storage = file_storage_of,
						       .start = file_storage_start };

const struct component_factory file_storage_extension = {
	.type = "file_storage",
	.help = "Keeps the queues of exporters on disk.",
	.manual = "Exporters name it in `sending_queue.storage`. It must also be in "
		  "`service::extensions`. See [Queues on disk](durable-queue.md).\n",
	.kind = COMPONENT_EXTENSION,
	.extension = &file_storage_ops,
	.size = sizeof(struct file_storage),
	.config = &table,
	.create = file_storage_create,
	.destroy = file_storage_destroy,
};
