/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/file_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/system.h"

static const char backup_digits[] = "0000-00-00T00-00-00.000";

bool file_log_is_backup(const char *name)
{
	for (const char *at = strchr(name, '-'); at; at = strchr(at + 1, '-'))
		if (file_digits_fit(backup_digits, at + 1))
			return true;
	return false;
}

static bool failed(const struct file_log *log, const char *what, struct error *err)
{
	const struct file_log_options *o = &log->options;
	return file_failed(err, what, o->shown ? o->shown : o->path);
}

static int open_file(const struct file_log *log, struct error *err)
{
	int fd = system_open_output(log->options.path, O_APPEND, err);
	if (fd < 0 && log->options.shown)
		failed(log, "open", err);
	else if (fd < 0 && err)
		err->kind = ERROR_BUSY;
	/* its name, and that of a file that was renamed */
	if (fd < 0 || !log->options.sync || file_sync_directory(log->directory))
		return fd;
	failed(log, "sync the directory of", err);
	close(fd);
	return -1;
}

/* Rotation. */

static void format_backup(const struct file_log *log, uint64_t wall_ns, char *path, size_t size)
{
	char stamp[24];
	struct tm tm = file_time(wall_ns, log->options.local_time);
	strftime(stamp, sizeof stamp, "%Y-%m-%dT%H-%M-%S", &tm);
	snprintf(path, size, "%s/%s-%s.%03u%s", log->directory, log->stem, stamp,
		 (unsigned)(wall_ns / 1000000 % 1000), log->extension);
}

/* Renames the file to an unused name. If the file does not exist, that is a success: it was moved
 * away, or an earlier rotation failed after the rename. */
static bool set_aside(const struct file_log *log, struct error *err)
{
	char backup[4096];
	uint64_t now = clock_wall();
	do {
		format_backup(log, now, backup, sizeof backup);
		now += 1000000;
	} while (access(backup, F_OK) == 0);
	return rename(log->options.path, backup) == 0 || errno == ENOENT ||
	       failed(log, "rotate", err);
}

static void prune_backups(const struct file_log *log)
{
	char *prefix = memory_format("%s-", log->stem);
	struct file_names names = { prefix, backup_digits, log->extension };
	uint64_t age = log->options.max_age_ns;
	file_prune(log->directory, &names,
		   &(struct file_keep){ log->options.max_backups, age ? clock_wall() - age : 0 });
	memory_free(prefix);
}

static bool rotate(struct file_log *log, struct error *err)
{
	if (!set_aside(log, err))
		return false;
	log->rotations++;
	int fd = open_file(log, err);
	if (fd < 0)
		return false;
	close(log->fd);
	log->fd = fd;
	prune_backups(log);
	return true;
}

/* What an earlier run left. */

/* Does the file end with a complete record? Follows the lengths; a read past the end returns
 * nothing. */
static bool ends_in_frame(int fd, off_t size)
{
	off_t at = 0;
	uint8_t head[4];
	while (at < size && pread(fd, head, sizeof head, at) == sizeof head)
		at += 4 + ((off_t)head[0] << 24 | head[1] << 16 | head[2] << 8 | head[3]);
	return at == size;
}

static bool ends_in_line(int fd, off_t size)
{
	char last;
	return pread(fd, &last, 1, size - 1) == 1 && last == '\n';
}

static bool is_whole(const struct file_log *log)
{
	struct stat st;
	int fd = open(log->options.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	bool whole = true;
	if (fd < 0)
		return true;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size)
		whole = log->options.frame == FRAME_LINE ? ends_in_line(fd, st.st_size)
							 : ends_in_frame(fd, st.st_size);
	close(fd);
	return whole;
}

static void split_path(struct file_log *log)
{
	const char *path = log->options.path, *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
	if (!dot || dot == name)
		dot = name + strlen(name);
	log->directory = slash == path ? memory_text("/")
			 : slash       ? memory_text_of(path, (size_t)(slash - path))
				       : memory_text(".");
	log->stem = memory_text_of(name, (size_t)(dot - name));
	log->extension = memory_text(dot);
}

bool file_log_open(struct file_log *log, const struct file_log_options *options, struct error *err)
{
	*log = (struct file_log){ .options = *options, .fd = -1, .next = FILE_LOG_NONE, .cut = -1 };
	split_path(log);
	if (options->append && !options->whole && !is_whole(log) && !set_aside(log, err))
		return false;
	log->stale = !options->append;
	log->fd = open_file(log, err);
	return log->fd >= 0;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* What was to come next and is not, is closed. The copy is for clang 14, which compiles no member
 * of what the exchange yields. */
static void set_next(struct file_log *log, struct file_log_next next)
{
	struct file_log_next old = atomic_exchange(&log->next, next);
	close_fd(old.fd);
}

void file_log_close(struct file_log *log)
{
	close_fd(log->fd);
	set_next(log, FILE_LOG_NONE);
	memory_free(log->directory);
	memory_free(log->stem);
	memory_free(log->extension);
	*log = (struct file_log){ .fd = -1, .next = FILE_LOG_NONE };
}

bool file_log_reopen(struct file_log *log, struct error *err)
{
	struct file_log_next next = { .rotations = log->rotations };
	next.fd = open_file(log, err);
	if (next.fd >= 0)
		set_next(log, next);
	return next.fd >= 0;
}

bool file_log_removed(const struct file_log *log)
{
	struct stat st;
	return fstat(log->fd, &st) == 0 && S_ISREG(st.st_mode) && !st.st_nlink;
}

/* Writing. */

static void take_next(struct file_log *log)
{
	struct file_log_next next = atomic_exchange(&log->next, FILE_LOG_NONE);
	if (next.fd < 0)
		return;
	if (next.rotations != log->rotations) {
		close(next.fd);
		return;
	}
	close(log->fd);
	log->fd = next.fd;
	log->cut = -1;
}

/* Truncates what a failed write or an earlier run left. Pipes and devices have nothing to
 * truncate. */
static bool repair(struct file_log *log, struct error *err)
{
	if (log->cut >= 0 && ftruncate(log->fd, log->cut) != 0 && errno != EINVAL)
		return failed(log, "truncate", err);
	log->cut = -1;
	return true;
}

bool file_log_add(struct file_log *log, struct view record, struct error *err)
{
	const struct file_log_options *o = &log->options;
	uint8_t head[4] = { (uint8_t)(record.len >> 24), (uint8_t)(record.len >> 16),
			    (uint8_t)(record.len >> 8), (uint8_t)record.len };
	struct iovec body = { (void *)record.at, record.len };
	struct iovec parts[2] = { body, { (void *)"\n", 1 } };
	if (o->frame == FRAME_LENGTH) {
		parts[0] = (struct iovec){ head, sizeof head };
		parts[1] = body;
	}
	struct stat st;
	take_next(log);
	log->cut = log->stale ? 0 : log->cut;
	if (!repair(log, err))
		return false;
	log->stale = false;
	if (fstat(log->fd, &st) != 0)
		return failed(log, "inspect", err);
	uint64_t size = (uint64_t)st.st_size;
	uint64_t more = parts[0].iov_len + parts[1].iov_len;
	if (o->max_bytes && size && size + more > o->max_bytes) {
		if (!rotate(log, err))
			return false;
		st.st_size = 0;
	}
	if (file_write(log->fd, parts, 2) && (!o->sync || file_sync(log->fd)))
		return true;
	failed(log, "write", err);
	log->cut = st.st_size;
	repair(log, NULL);
	return false;
}
