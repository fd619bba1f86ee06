/* SPDX-License-Identifier: Apache-2.0 */
#include "base/watched_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"

#define LOOK_EVERY_NS UINT64_C(1000000000)

void watched_file_init(struct watched_file *f, const char *path)
{
	*f = (struct watched_file){ .path = path, .look_every_ns = LOOK_EVERY_NS };
	pthread_mutex_init(&f->lock, NULL);
}

void watched_file_fini(struct watched_file *f)
{
	pthread_mutex_destroy(&f->lock);
}

/* Remembers which file this is; false: the one that was seen last. */
static bool is_new(struct watched_file *f, const struct stat *st)
{
	struct watched_file now = {
		.device = st->st_dev,
		.inode = st->st_ino,
		.size = (uint64_t)st->st_size,
		.modified =
			(uint64_t)st->st_mtim.tv_sec * 1000000000 + (uint64_t)st->st_mtim.tv_nsec,
	};
	bool same = f->seen && f->device == now.device && f->inode == now.inode &&
		    f->size == now.size && f->modified == now.modified;
	f->device = now.device;
	f->inode = now.inode;
	f->size = now.size;
	f->modified = now.modified;
	f->seen = true;
	return !same;
}

static bool failure(struct watched_file *f, struct error *err)
{
	f->missing = errno == ENOENT;
	return error_set(err, ERROR_CONFIG, "cannot read %s: %s", f->path, strerror(errno));
}

static bool read_all(struct watched_file *f, FILE *stream, struct bytes *out, struct error *err)
{
	struct stat st;
	size_t count = 1;
	if (fstat(fileno(stream), &st) != 0)
		return failure(f, err);
	is_new(f, &st);
	while (count && bytes_reserve(out, 4096)) {
		count = fread(out->at + out->len, 1, 4096, stream);
		out->len += count;
	}
	if (ferror(stream))
		return failure(f, err);
	return !count ||
	       error_set(err, ERROR_CONFIG, "%s exceeds %d bytes", f->path, (int)WATCHED_FILE_MAX);
}

static bool read_locked(struct watched_file *f, struct bytes *out, struct error *err)
{
	out->len = 0;
	out->max = WATCHED_FILE_MAX + 4096;
	FILE *stream = fopen(f->path, "re");
	bool ok = stream ? read_all(f, stream, out, err) : failure(f, err);
	if (stream)
		fclose(stream);
	f->failed = !ok;
	return ok;
}

bool watched_file_read(struct watched_file *f, struct bytes *out, struct error *err)
{
	pthread_mutex_lock(&f->lock);
	bool ok = read_locked(f, out, err);
	pthread_mutex_unlock(&f->lock);
	return ok;
}

static enum watched_state look(struct watched_file *f, struct bytes *out, struct error *err)
{
	struct stat st;
	bool failed = f->failed;
	if (stat(f->path, &st) != 0) {
		f->failed = true;
		f->seen = false;
		failure(f, err);
		return failed ? WATCHED_SAME : WATCHED_FAILED;
	}
	bool fresh = is_new(f, &st);
	if (!fresh &&
	    !failed) /* what could not be read is tried again: it may only have lacked rights */
		return WATCHED_SAME;
	if (read_locked(f, out, err))
		return WATCHED_CHANGED;
	return fresh || !failed ? WATCHED_FAILED : WATCHED_SAME;
}

enum watched_state watched_file_look(struct watched_file *f, struct bytes *out, struct error *err)
{
	enum watched_state state = WATCHED_SAME;
	uint64_t now = clock_now();
	if (!f->path || pthread_mutex_trylock(&f->lock) != 0)
		return WATCHED_SAME;
	if (now >= f->look_next) {
		f->look_next = now + f->look_every_ns;
		state = look(f, out, err);
	}
	pthread_mutex_unlock(&f->lock);
	return state;
}
