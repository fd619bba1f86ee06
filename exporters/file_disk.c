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

bool file_failed(struct error *err, const char *what, const char *path)
{
	return error_set(err, ERROR_BUSY, "cannot %s %s: %s", what, path, strerror(errno));
}

bool file_make_directories(const char *path, mode_t mode, struct error *err)
{
	char *copy = memory_text(path);
	bool ok = true;
	for (char *at = copy + 1; ok && *copy; at++) {
		char here = *at;
		if (here != '/' && here != '\0')
			continue;
		*at = '\0';
		ok = mkdir(copy, mode) == 0 || errno == EEXIST;
		*at = here;
		if (here == '\0')
			break;
	}
	memory_free(copy);
	return ok || file_failed(err, "make the directory", path);
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

bool file_name_fits(const struct file_names *names, const char *name)
{
	size_t prefix = strlen(names->prefix), digits = strlen(names->digits);
	if (strlen(name) != prefix + digits + strlen(names->suffix) ||
	    strncmp(name, names->prefix, prefix) != 0 ||
	    strcmp(name + prefix + digits, names->suffix) != 0)
		return false;
	for (size_t i = 0; i < digits; i++) {
		char c = name[prefix + i];
		if (names->digits[i] == '0' ? !isdigit((unsigned char)c) : c != names->digits[i])
			return false;
	}
	return true;
}

struct tm file_time(uint64_t wall_ns, bool local)
{
	time_t seconds = (time_t)(wall_ns / 1000000000);
	struct tm tm;
	return local ? *localtime_r(&seconds, &tm) : *gmtime_r(&seconds, &tm);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_old(int directory, const char *name, uint64_t not_before_ns)
{
	struct stat st;
	return not_before_ns && fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       (uint64_t)st.st_mtime < not_before_ns / 1000000000;
}

void file_prune(const char *directory, const struct file_names *names, const struct file_keep *keep)
{
	DIR *dir = opendir(directory);
	char **found = NULL;
	size_t count = 0;
	if (!dir)
		return;
	for (struct dirent *entry; (entry = readdir(dir));) {
		if (!file_name_fits(names, entry->d_name))
			continue;
		found = memory_resize(found, (count + 1) * sizeof *found);
		found[count++] = memory_text(entry->d_name);
	}
	if (count)
		qsort(found, count, sizeof *found, by_name);
	for (size_t i = 0; i < count; i++) {
		bool surplus = keep->files && count - i > (size_t)keep->files;
		if (surplus || is_old(dirfd(dir), found[i], keep->not_before_ns))
			unlinkat(dirfd(dir), found[i], 0);
		memory_free(found[i]);
	}
	memory_free(found);
	closedir(dir);
}
