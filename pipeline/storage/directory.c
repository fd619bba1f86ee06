/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/system.h"
#include "pipeline/storage/storage_private.h"

/* The files of a storage. A new database gets its format under another name, so that a file with
 * the final name always has one. */
#define FILE_NAME "queue.mdb"
#define NEW_NAME "queue.mdb.new"
#define LOCK_NAME "portcullis.lock"
#define LOCK_SUFFIX "-lock"
#define FORMAT "portcullis queue 1"

#define LOCK_WAIT_NS 20000000
/* Freed space is not always contiguous, and changes are written beside what they replace. */
#define MAP_FACTOR 2
#define MAP_SLACK ((uint64_t)64 << 20)

enum { FILE_MODE = 0600, OTHERS_WRITE = S_IWGRP | S_IWOTH };

/* Does the disk not allow a change, as opposed to a path that is wrong? */
static bool is_of_disk(int code)
{
	return code == EROFS || code == EACCES || code == EPERM || code == ENOSPC ||
	       code == EDQUOT || code == EIO;
}

static bool cannot(const struct storage *s, const char *what, struct error *err)
{
	return error_set(err, is_of_disk(errno) ? ERROR_BUSY : ERROR_CONFIG, "%s %s: %s", what,
			 s->path, strerror(errno));
}

static bool make_directory(const struct storage *s, struct error *err)
{
	struct stat is;
	if (!s->options.create_directory || stat(s->path, &is) == 0)
		return true;
	return system_make_directories(s->path, s->options.directory_mode) ||
	       cannot(s, "cannot create the directory", err);
}

/* In a directory that others can write to, links could redirect what is opened by name. */
static bool is_ours(const struct storage *s, struct error *err)
{
	struct stat is;
	if (fstat(s->directory, &is) != 0)
		return cannot(s, "cannot read the directory", err);
	if (is.st_mode & OTHERS_WRITE)
		return error_set(err, ERROR_CONFIG,
				 "the directory %s must not be writable by other users", s->path);
	return true;
}

static bool lock(struct storage *s, struct error *err)
{
	uint64_t begun = clock_now();
	s->lock_file = openat(s->directory, LOCK_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
			      FILE_MODE);
	if (s->lock_file < 0)
		return cannot(s, "cannot create a file in", err);
	while (flock(s->lock_file, LOCK_EX | LOCK_NB) != 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return cannot(s, "cannot lock the directory", err);
		if (s->running || clock_now() - begun >= s->options.lock_timeout_ns)
			return error_set(err, ERROR_CONFIG,
					 "the directory %s is in use by another process", s->path);
		nanosleep(&(struct timespec){ .tv_nsec = LOCK_WAIT_NS }, NULL);
	}
	return true;
}

static bool open_and_lock(struct storage *s, struct error *err)
{
	if (!make_directory(s, err))
		return false;
	s->directory = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->directory < 0)
		return errno == ENOENT ? error_set(err, ERROR_CONFIG,
						   "directory must exist: %s; to have it created, "
						   "set create_directory",
						   s->path)
				       : cannot(s, "cannot open the directory", err);
	return is_ours(s, err) && lock(s, err);
}

bool directory_open(struct storage *s, struct error *err)
{
	if (open_and_lock(s, err))
		return true;
	directory_close(s);
	return false;
}

void directory_close(struct storage *s)
{
	if (s->lock_file >= 0)
		close(s->lock_file);
	if (s->directory >= 0)
		close(s->directory);
	s->lock_file = s->directory = -1;
}

static void remove_file(const struct storage *s, const char *name)
{
	unlinkat(s->directory, name, 0);
}

void directory_set_aside(struct storage *s, const char *reason)
{
	char stamp[32], name[96];
	time_t now = (time_t)(clock_wall() / 1000000000);
	struct tm tm;
	strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", gmtime_r(&now, &tm));
	snprintf(name, sizeof name, FILE_NAME ".%s.%09u", stamp,
		 (unsigned)(clock_wall() % 1000000000));
	if (renameat(s->directory, FILE_NAME, s->directory, name) != 0)
		remove_file(s, FILE_NAME);
	remove_file(s, FILE_NAME LOCK_SUFFIX);
	fsync(s->directory);
	metric_add(s->count.set_aside, 1);
	s->set_aside = true;
	log_error(&s->log, "The queue database was set aside; a new one is begun",
		  log_text("directory", s->path), log_text("renamed_to", name),
		  log_text("reason", reason));
}

static enum database_result open_file(const struct storage *s, const char *name,
				      struct database **db, struct error *err)
{
	char *path = memory_format("%s/%s", s->path, name);
	enum database_result result =
		database_open(db,
			      &(struct database_options){
				      .path = path,
				      .max_bytes = s->options.max_bytes * MAP_FACTOR + MAP_SLACK,
				      .sync = s->options.sync,
			      },
			      err);
	memory_free(path);
	return result;
}

static enum database_result write_format(struct database *db, struct error *err)
{
	enum database_result result = database_begin(db, err);
	if (result == DATABASE_OK)
		result = database_set(db, "format", view_of(FORMAT), err);
	if (result == DATABASE_OK)
		return database_commit(db, err);
	database_abort(db);
	return result;
}

/* A database with a format and nothing else. */
static enum database_result make_file(struct storage *s, struct error *err)
{
	struct database *db = NULL;
	remove_file(s, NEW_NAME);
	remove_file(s, NEW_NAME LOCK_SUFFIX);
	enum database_result result = open_file(s, NEW_NAME, &db, err);
	if (result == DATABASE_OK)
		result = write_format(db, err);
	database_close(&db);
	remove_file(s, NEW_NAME LOCK_SUFFIX);
	if (result == DATABASE_OK &&
	    renameat(s->directory, NEW_NAME, s->directory, FILE_NAME) != 0) {
		cannot(s, "cannot rename a file in", err);
		return DATABASE_DISK;
	}
	fsync(s->directory);
	s->made += result == DATABASE_OK;
	return result;
}

static enum database_result check_format(struct database *db, struct error *err)
{
	struct bytes format;
	bytes_init(&format, 256);
	enum database_result result = database_get(db, "format", &format, err);
	if (result == DATABASE_NONE ||
	    (result == DATABASE_OK && !view_is(bytes_view(&format), FORMAT))) {
		error_set(err, ERROR_CONFIG,
			  result == DATABASE_NONE ? "not a database of this program"
						  : "unknown format: of a newer version?");
		result = DATABASE_BROKEN;
	}
	bytes_fini(&format);
	return result;
}

static bool is_regular(const struct storage *s, const char *name)
{
	struct stat is;
	return fstatat(s->directory, name, &is, AT_SYMLINK_NOFOLLOW) != 0 || S_ISREG(is.st_mode);
}

static enum database_result open_existing(struct storage *s, struct database **db,
					  struct error *err)
{
	struct stat is;
	if (fstatat(s->directory, FILE_NAME, &is, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT) {
		enum database_result made = make_file(s, err);
		if (made != DATABASE_OK)
			return made == DATABASE_BROKEN ? DATABASE_DISK : made;
	}
	if (!is_regular(s, FILE_NAME)) {
		error_set(err, ERROR_CONFIG, "not a regular file");
		return DATABASE_BROKEN;
	}
	/* LMDB's table of readers; of a process that has ended, because we hold the lock. */
	remove_file(s, FILE_NAME LOCK_SUFFIX);
	enum database_result result = open_file(s, FILE_NAME, db, err);
	if (result != DATABASE_OK)
		return result;
	result = check_format(*db, err);
	if (result != DATABASE_OK)
		database_close(db);
	return result;
}

struct database *directory_database(struct storage *s, struct error *err)
{
	struct database *db = NULL;
	enum database_result result = open_existing(s, &db, err);
	if (result == DATABASE_BROKEN) {
		directory_set_aside(s, err->text);
		error_clear(err);
		result = open_existing(s, &db, err);
	}
	if (result == DATABASE_OK)
		return db;
	error_prefix(err, "cannot open the database in %s", s->path);
	return NULL;
}
