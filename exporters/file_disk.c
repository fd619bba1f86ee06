/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/file_disk.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/system.h"

bool file_failed(struct error *err, const char *what, const char *path)
{
	int reason = errno;
	error_set(err, ERROR_BUSY, "cannot %s %s: %s", what, path, strerror(reason));
	errno = reason;
	return false;
}

bool file_make_directories(const char *path, mode_t mode, struct error *err)
{
	return system_make_directories(path, mode) ||
	       file_failed(err, "create the directory", path);
}

bool file_write(int fd, struct iovec *parts, int count)
{
	while (count) {
		ssize_t wrote = writev(fd, parts, count);
		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote < 0)
			return false;
		for (; count && (size_t)wrote >= parts->iov_len; parts++, count--)
			wrote -= (ssize_t)parts->iov_len;
		if (count) {
			parts->iov_base = (char *)parts->iov_base + wrote;
			parts->iov_len -= (size_t)wrote;
		}
	}
	return true;
}

bool file_sync(int fd)
{
	return fdatasync(fd) == 0 || errno == EINVAL || errno == EROFS;
}

bool file_sync_directory(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == EACCES;
	bool ok = file_sync(fd);
	int reason = errno;
	close(fd);
	errno = reason;
	return ok;
}

bool file_digits_fit(const char *digits, const char *at)
{
	for (; *digits; digits++, at++)
		if (*digits == '0' ? !isdigit((unsigned char)*at) : *at != *digits)
			return false;
	return true;
}

bool file_name_fits(const struct file_names *names, const char *name)
{
	size_t prefix = strlen(names->prefix), digits = strlen(names->digits);
	return strlen(name) == prefix + digits + strlen(names->suffix) &&
	       strncmp(name, names->prefix, prefix) == 0 &&
	       strcmp(name + prefix + digits, names->suffix) == 0 &&
	       file_digits_fit(names->digits, name + prefix);
}

struct tm file_time(uint64_t wall_ns, bool local)
{
	time_t seconds = (time_t)(wall_ns / 1000000000);
	struct tm tm;
	return local ? *localtime_r(&seconds, &tm) : *gmtime_r(&seconds, &tm);
}

struct entry {
	char *name;
	uint64_t bytes, seconds; /* read only if the rule needs them */
};

struct entries {
	struct entry *at;
	size_t count;
	uint64_t bytes;
};

static int newest_first(const void *a, const void *b)
{
	return strcmp(((const struct entry *)b)->name, ((const struct entry *)a)->name);
}

static struct entries list(DIR *dir, const struct file_names *names, bool look)
{
	struct entries found = { 0 };
	for (struct dirent *file; (file = readdir(dir));) {
		struct stat st;
		if (!file_name_fits(names, file->d_name))
			continue;
		if (!look || fstatat(dirfd(dir), file->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
			st = (struct stat){ .st_mtime = INT64_MAX };
		found.at = memory_resize(found.at, (found.count + 1) * sizeof *found.at);
		found.at[found.count++] =
			(struct entry){ memory_text(file->d_name), (uint64_t)st.st_size,
					(uint64_t)st.st_mtime };
		found.bytes += (uint64_t)st.st_size;
	}
	if (found.count)
		qsort(found.at, found.count, sizeof *found.at, newest_first);
	return found;
}

/* max_bytes: of this file and the newer ones together. */
static enum file_surplus judge(const struct entry *entry, const struct file_pruned *newer,
			       const struct file_keep *keep, uint64_t max_bytes)
{
	uint64_t files = newer->files[FILE_KEPT];
	if (keep->files && files >= (uint64_t)keep->files)
		return FILE_TOO_MANY;
	if (entry->seconds < keep->not_before_ns / 1000000000)
		return FILE_TOO_OLD;
	/* After the first file that was too large, all older ones are removed. */
	if (files && (newer->files[FILE_TOO_LARGE] || newer->bytes + entry->bytes > max_bytes))
		return FILE_TOO_LARGE;
	return FILE_KEPT;
}

struct file_pruned file_prune(const char *directory, const struct file_names *names,
			      const struct file_keep *keep)
{
	struct file_pruned pruned = { 0 };
	DIR *dir = opendir(directory);
	if (!dir)
		return (struct file_pruned){ .bytes = INT64_MAX };
	struct entries found = list(dir, names, keep->bytes || keep->not_before_ns);
	bool fits = !keep->bytes || found.bytes <= keep->bytes;
	uint64_t max_bytes = fits ? UINT64_MAX : keep->bytes - keep->bytes / 16;
	for (size_t i = 0; i < found.count; i++) {
		struct entry *entry = &found.at[i];
		enum file_surplus surplus = judge(entry, &pruned, keep, max_bytes);
		if (surplus != FILE_KEPT && unlinkat(dirfd(dir), entry->name, 0) != 0)
			surplus = FILE_KEPT;
		pruned.files[surplus]++;
		pruned.bytes += surplus == FILE_KEPT ? entry->bytes : 0;
		memory_free(entry->name);
	}
	memory_free(found.at);
	closedir(dir);
	return pruned;
}
