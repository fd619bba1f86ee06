/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/file_spool.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define DIGITS "00000000T000000.000000000-000000"
static const struct file_names whole_names = { "", DIGITS, ".pb.gz" };
static const struct file_names part_names = { ".", DIGITS, ".pb.gz.part" };

enum { NAMES_MAX = 64 << 20 }; /* in bytes, of all names of one packet */

struct name {
	char whole[sizeof DIGITS + 16], part[sizeof DIGITS + 16];
};

static struct name next_name(struct file_spool *spool)
{
	struct name name;
	char stamp[16];
	uint64_t now = clock_wall();
	struct tm tm = file_time(now, spool->options.local_time);
	strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%S", &tm);
	spool->counter = (spool->counter + 1) % 1000000;
	snprintf(name.whole, sizeof name.whole, "%s.%09u-%06u%s", stamp,
		 (unsigned)(now % 1000000000), spool->counter, whole_names.suffix);
	snprintf(name.part, sizeof name.part, "%s%s.part", part_names.prefix, name.whole);
	return name;
}

bool file_spool_open(struct file_spool *spool, const struct file_spool_options *options,
		     struct error *err)
{
	*spool = (struct file_spool){ .options = *options, .directory = -1, .bytes = INT64_MAX };
	bytes_init(&spool->added, NAMES_MAX);
	if (!file_spool_begin(spool, err))
		return false;
	file_spool_end(spool, true);
	file_prune(options->directory, &part_names,
		   &(struct file_keep){ .not_before_ns = UINT64_MAX });
	return true;
}

void file_spool_close(struct file_spool *spool)
{
	bytes_fini(&spool->added);
}

bool file_spool_begin(struct file_spool *spool, struct error *err)
{
	const char *path = spool->options.directory;
	spool->added.len = 0;
	spool->directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return spool->directory >= 0 || file_failed(err, "open the directory", path);
}

static bool write_file(int directory, const char *name, struct view document, bool sync)
{
	struct iovec part = { (void *)document.at, document.len };
	int fd = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
	if (fd < 0)
		return false;
	bool ok = file_write(fd, &part, 1) && (!sync || file_sync(fd));
	return close(fd) == 0 && ok;
}

bool file_spool_add(struct file_spool *spool, struct view document, struct error *err)
{
	struct name name = next_name(spool);
	if (!bytes_add(&spool->added, name.whole, strlen(name.whole) + 1))
		return error_set(err, ERROR_TOO_LARGE,
				 "the request contains more profiles than one request may write");
	if (write_file(spool->directory, name.part, document, spool->options.sync) &&
	    renameat(spool->directory, name.part, spool->directory, name.whole) == 0) {
		spool->bytes += document.len;
		return true;
	}
	file_failed(err, "write a profile to", spool->options.directory);
	unlinkat(spool->directory, name.part, 0);
	return false;
}

bool file_spool_sync(struct file_spool *spool, struct error *err)
{
	return !spool->options.sync || file_sync(spool->directory) ||
	       file_failed(err, "sync the directory", spool->options.directory);
}

/* Sizes are read only if the bytes written since then may have exceeded the limit. */
static void prune(struct file_spool *spool)
{
	const struct file_spool_options *o = &spool->options;
	struct file_keep keep = {
		.files = o->max_files,
		.not_before_ns = o->max_age_ns ? clock_wall() - o->max_age_ns : 0,
		.bytes = spool->bytes > o->max_bytes ? o->max_bytes : 0,
	};
	spool->removed = (struct file_pruned){ 0 };
	if (keep.files || keep.not_before_ns || keep.bytes)
		spool->removed = file_prune(o->directory, &whole_names, &keep);
	if (keep.bytes)
		spool->bytes = spool->removed.bytes;
}

void file_spool_end(struct file_spool *spool, bool keep)
{
	for (size_t at = 0; at < spool->added.len && !keep;) {
		const char *name = (const char *)spool->added.at + at;
		unlinkat(spool->directory, name, 0);
		at += strlen(name) + 1;
	}
	close(spool->directory);
	spool->directory = -1;
	prune(spool);
}
