/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded: after each successful fsync or fdatasync of a file, and each write to one that was
 * opened with O_DSYNC, FILE.synced is a copy of it. A machine finds at least that after a power
 * cut. Copies are made one at a time, and appear whole.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void copy_content(int from, int to)
{
	char buffer[65536];
	off_t at = 0;
	ssize_t got;
	while ((got = pread(from, buffer, sizeof buffer, at)) > 0) {
		if (pwrite(to, buffer, (size_t)got, at) != got)
			abort();
		at += got;
	}
}

static void keep(int fd)
{
	char link[64], path[4000], temporary[4096], copy[4096];
	struct stat status;
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t len = readlink(link, path, sizeof path - 1);
	if (len < 0 || fstat(fd, &status) || !S_ISREG(status.st_mode))
		return;
	path[len] = 0;
	snprintf(temporary, sizeof temporary, "%s.copy", path);
	snprintf(copy, sizeof copy, "%s.synced", path);
	int from = open(path, O_RDONLY | O_CLOEXEC);
	int to = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (from < 0 || to < 0)
		abort();
	copy_content(from, to);
	close(from);
	close(to);
	if (rename(temporary, copy))
		abort();
}

static int sync_and_keep(const char *name, int fd)
{
	int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
	pthread_mutex_lock(&lock);
	int result = real(fd);
	if (result == 0)
		keep(fd);
	pthread_mutex_unlock(&lock);
	return result;
}

static ssize_t write_and_keep(const char *name, int fd, const void *data, size_t len, off_t at)
{
	ssize_t (*real)(int, const void *, size_t, off_t) =
		(ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, name);
	if (!(fcntl(fd, F_GETFL) & O_DSYNC))
		return real(fd, data, len, at);
	pthread_mutex_lock(&lock);
	ssize_t result = real(fd, data, len, at);
	if (result == (ssize_t)len)
		keep(fd);
	pthread_mutex_unlock(&lock);
	return result;
}

#define REPLACES __attribute__((visibility("default")))

REPLACES int fsync(int fd)
{
	return sync_and_keep("fsync", fd);
}

REPLACES int fdatasync(int fd)
{
	return sync_and_keep("fdatasync", fd);
}

REPLACES ssize_t pwrite(int fd, const void *data, size_t len, off_t at)
{
	return write_and_keep("pwrite", fd, data, len, at);
}

REPLACES ssize_t pwrite64(int fd, const void *data, size_t len, off_t at)
{
	return write_and_keep("pwrite64", fd, data, len, at);
}
