/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/file_groups.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/system.h"

static bool make_directory(const struct file_groups *groups, struct error *err)
{
	const struct file_groups_options *o = &groups->options;
	struct stat st;
	if (o->create && !file_make_directories(o->directory, o->mode, err))
		return false;
	if (stat(o->directory, &st) != 0)
		return file_failed(err, "open the directory", o->directory);
	errno = ENOTDIR;
	return S_ISDIR(st.st_mode) || file_failed(err, "open the directory", o->directory);
}

bool file_groups_start(struct file_groups *groups, const struct file_groups_options *options,
		       struct error *err)
{
	groups->options = *options;
	groups->known.max_bytes = SIZE_MAX;
	return make_directory(groups, err);
}

/* ---- closing */

static void close_at(struct file_groups *groups, uint32_t i)
{
	struct file_group_open *open = &groups->open.at[i];
	groups->groups.at[open->group] =
		(struct file_group){ .begun = !open->log.stale, .whole = open->log.cut < 0 };
	file_log_close(&open->log);
	memory_free(open->path);
	if (i == --groups->open.count)
		return;
	*open = groups->open.at[groups->open.count];
	groups->groups.at[open->group].open = i + 1;
}

static void close_all(struct file_groups *groups)
{
	while (groups->open.count)
		close_at(groups, groups->open.count - 1);
}

static void close_oldest(struct file_groups *groups)
{
	uint32_t oldest = 0;
	for (uint32_t i = 1; i < groups->open.count; i++)
		if (groups->open.at[i].used < groups->open.at[oldest].used)
			oldest = i;
	close_at(groups, oldest);
}

void file_groups_fini(struct file_groups *groups)
{
	close_all(groups);
	memo_fini(&groups->known);
	memory_free(groups->groups.at);
	memory_free(groups->open.at);
	memory_free(groups->options.directory);
}

bool file_groups_reopen(struct file_groups *groups, struct error *err)
{
	if (!make_directory(groups, err))
		return false;
	groups->stale = true;
	return true;
}

/* ---- opening */

/* The fault is that of one path, not of the disk or the process: a sender that chooses such a path
 * must not delay the others. Some file systems allow fewer names than others: shorter ones (for
 * ENAMETOOLONG), or without some characters (EINVAL, EILSEQ). */
static bool is_of_path(const struct file_groups *groups, int reason)
{
	static const int reasons[] = { EACCES, EPERM,   EISDIR,       ENOTDIR, ELOOP,
				       ENXIO,  ETXTBSY, ENAMETOOLONG, EINVAL,  EILSEQ };
	for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
		if (reasons[i] == reason)
			return access(groups->options.directory, W_OK | X_OK) == 0;
	return false;
}

static enum file_groups_result judge(const struct file_groups *groups, int reason)
{
	return is_of_path(groups, reason) ? FILE_GROUPS_UNUSABLE : FILE_GROUPS_DISK;
}

/* That of a file; NULL: it is the root, or the current one. The caller frees it. */
static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash && slash != path ? memory_text_of(path, (size_t)(slash - path)) : NULL;
}

/* The directory, and the folders below it. */
static bool make_folders(const struct file_groups *groups, const char *path, struct error *err)
{
	if (!make_directory(groups, err))
		return false;
	char *folder = folder_of(path);
	if (!folder)
		return true;
	bool ok = system_make_directories(folder, groups->options.mode) ||
		  file_failed(err, "create a folder of", groups->options.log.shown);
	int reason = errno;
	memory_free(folder);
	errno = reason;
	return ok;
}

static enum file_groups_result open_file(struct file_groups *groups, const char *path,
					 uint32_t group, struct file_group_open **result,
					 struct error *err)
{
	struct file_group *state = &groups->groups.at[group];
	if (groups->open.count >= groups->options.max_open)
		close_oldest(groups);
	struct file_group_open *open = &array_push(&groups->open);
	*open = (struct file_group_open){ .log = { .fd = -1, .next = FILE_LOG_NONE },
					  .path = memory_text(path),
					  .group = group };
	struct file_log_options options = groups->options.log;
	options.path = open->path;
	options.append |= state->begun;
	options.whole = state->whole;
	if (make_folders(groups, path, err) && file_log_open(&open->log, &options, err)) {
		state->open = groups->open.count;
		*result = open;
		return FILE_GROUPS_OK;
	}
	enum file_groups_result why = judge(groups, errno);
	file_log_close(&open->log);
	memory_free(open->path);
	groups->open.count--;
	return why;
}

static bool has_folder(const char *path)
{
	char *folder = folder_of(path);
	bool has = !folder || access(folder, F_OK) == 0;
	memory_free(folder);
	return has;
}

/* A path that cannot be opened is no file of the exporter, and takes none of max_files, unless a
 * folder was created for it: the number of these is bounded too. */
static enum file_groups_result open_first(struct file_groups *groups, const char *path,
					  struct file_group_open **open, struct error *err)
{
	if (groups->groups.count >= groups->options.max_files)
		return FILE_GROUPS_FULL;
	bool had_folder = has_folder(path);
	array_push(&groups->groups) = (struct file_group){ 0 };
	enum file_groups_result result =
		open_file(groups, path, groups->groups.count - 1, open, err);
	if (result == FILE_GROUPS_OK || (!had_folder && has_folder(path)))
		memo_enter(&groups->known, 0, path, strlen(path))->first = groups->groups.count;
	else
		groups->groups.count--;
	return result;
}

/* Creates again what was removed meanwhile. */
static enum file_groups_result restore(struct file_groups *groups, struct file_group_open *open,
				       struct error *err)
{
	if (!file_log_removed(&open->log))
		return FILE_GROUPS_OK;
	if (make_folders(groups, open->path, err) && file_log_reopen(&open->log, err))
		return FILE_GROUPS_OK;
	return judge(groups, errno);
}

static enum file_groups_result find(struct file_groups *groups, const char *path,
				    struct file_group_open **open, struct error *err)
{
	const struct memo_entry *entry = memo_find(&groups->known, 0, path, strlen(path));
	if (!entry)
		return open_first(groups, path, open, err);
	uint32_t group = entry->first - 1, at = groups->groups.at[group].open;
	if (!at)
		return open_file(groups, path, group, open, err);
	*open = &groups->open.at[at - 1];
	return restore(groups, *open, err);
}

enum file_groups_result file_groups_add(struct file_groups *groups, const char *path,
					struct view record, struct error *err)
{
	struct file_group_open *open;
	if (atomic_exchange(&groups->stale, false))
		close_all(groups);
	enum file_groups_result result = find(groups, path, &open, err);
	if (result != FILE_GROUPS_OK)
		return result;
	open->used = ++groups->uses;
	return file_log_add(&open->log, record, err) ? FILE_GROUPS_OK : FILE_GROUPS_DISK;
}
