/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/delivery/letter_box.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/system.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOOK_NS UINT64_C(1000000000) /* when it seems full */
#define LOOK_AGAIN_NS (60 * LOOK_NS) /* otherwise */
#define REQUEST ".otlp"
#define REASON ".json"
#define PART ".part"

enum {
	FILE_MODE = 0600,
	DIRECTORY_MODE = 0700,
	OTHERS_WRITE = S_IWGRP | S_IWOTH,
	LEFTOVER_S = 600 /* seconds */
};

struct file_name {
	char text[LETTER_NAME + 16];
};

static struct file_name file_name(const char *name, const char *suffix, bool part)
{
	struct file_name file;
	snprintf(file.text, sizeof file.text, "%s%s%s%s", part ? "." : "", name, suffix,
		 part ? PART : "");
	return file;
}

static bool cannot(struct error *err, const char *what, const char *path)
{
	return error_set(err, ERROR_CONFIG, "%s %s: %s", what, path, strerror(errno));
}

int letter_directory(const char *path, struct error *err)
{
	struct stat is;
	int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory < 0) {
		cannot(err, "cannot open the directory", path);
		return -1;
	}
	if (fstat(directory, &is) == 0 && !(is.st_mode & OTHERS_WRITE))
		return directory;
	/* In a directory that others can write to, links could redirect what is opened by name. */
	error_set(err, ERROR_CONFIG, "the directory %s must not be writable by other users", path);
	close(directory);
	return -1;
}

/* ---- looking */

/* If it is not, errno is ENOENT; any other error says nothing. */
static bool is_there(int directory, const char *name, const char *suffix, struct stat *is)
{
	return fstatat(directory, file_name(name, suffix, false).text, is, AT_SYMLINK_NOFOLLOW) ==
	       0;
}

static bool is_old(const struct stat *is)
{
	return is->st_mtime + LEFTOVER_S < (time_t)(clock_wall() / 1000000000);
}

/* One file of a letter: it counts, or is left over. */
static void look_at(struct letter_box *box, int directory, const char *file)
{
	char name[LETTER_NAME];
	struct stat is, other;
	bool part = *file == '.' && (letter_name_fits(file + 1, REQUEST PART) ||
				     letter_name_fits(file + 1, REASON PART));
	bool request = letter_name_fits(file, REQUEST), reason = letter_name_fits(file, REASON);
	if ((!part && !request && !reason) ||
	    fstatat(directory, file, &is, AT_SYMLINK_NOFOLLOW) != 0)
		return;
	snprintf(name, sizeof name, "%s", file);
	bool rest = part || (!is_there(directory, name, request ? REASON : REQUEST, &other) &&
			     errno == ENOENT);
	if (rest && is_old(&is)) {
		unlinkat(directory, file, 0);
		return;
	}
	box->bytes += (uint64_t)is.st_size;
	box->letters += request;
}

static void look(struct letter_box *box, int directory)
{
	int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	box->bytes = box->letters = 0;
	box->looked = clock_now();
	for (struct dirent *file; dir && (file = readdir(dir));)
		look_at(box, directory, file->d_name);
	if (dir)
		closedir(dir);
}

static int open_box(const struct letter_box *box, struct error *err)
{
	struct stat is;
	if (stat(box->path, &is) != 0 && errno == ENOENT &&
	    !system_make_directories(box->path, DIRECTORY_MODE)) {
		cannot(err, "cannot create the directory", box->path);
		return -1;
	}
	return letter_directory(box->path, err);
}

bool letter_box_open(struct letter_box *box, struct error *err)
{
	int directory = open_box(box, err);
	if (directory < 0)
		return false;
	close(directory);
	return true;
}

void letter_box_look(struct letter_box *box)
{
	struct error err;
	int directory = letter_directory(box->path, &err);
	if (directory < 0)
		return;
	look(box, directory);
	close(directory);
}

/* ---- writing */

static bool write_all(int fd, struct view data)
{
	while (data.len) {
		ssize_t wrote = write(fd, data.at, data.len);
		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote < 0)
			return false;
		data.at += wrote;
		data.len -= (size_t)wrote;
	}
	return true;
}

/* Under the temporary name. */
static bool write_part(int directory, const char *name, const char *suffix, struct view data)
{
	int fd = openat(directory, file_name(name, suffix, true).text,
			O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
	if (fd < 0)
		return false;
	bool ok = write_all(fd, data) && fsync(fd) == 0;
	int reason = errno;
	ok = close(fd) == 0 && ok;
	errno = reason;
	return ok;
}

static bool publish(int directory, const char *name, const char *suffix)
{
	return renameat(directory, file_name(name, suffix, true).text, directory,
			file_name(name, suffix, false).text) == 0;
}

static void remove_all(int directory, const char *name)
{
	static const char *const suffixes[] = { REQUEST, REASON };
	for (int part = 0; part < 2; part++)
		for (int i = 0; i < 2; i++)
			unlinkat(directory, file_name(name, suffixes[i], part).text, 0);
}

static bool write_letter(int directory, const struct letter *letter, struct view reason)
{
	char name[LETTER_NAME];
	letter_name(name);
	if (write_part(directory, name, REQUEST, bytes_view(&letter->packet->otlp)) &&
	    write_part(directory, name, REASON, reason) && publish(directory, name, REQUEST) &&
	    publish(directory, name, REASON) && fsync(directory) == 0)
		return true;
	int failure = errno;
	remove_all(directory, name);
	errno = failure;
	return false;
}

static bool fits(const struct letter_box *box, uint64_t bytes)
{
	return box->letters < box->max_letters && bytes <= box->max_bytes &&
	       box->bytes <= box->max_bytes - bytes;
}

static enum letter_result add(struct letter_box *box, int directory, const struct letter *letter,
			      struct view reason, struct error *err)
{
	uint64_t bytes = letter->packet->otlp.len + reason.len;
	if (!box->looked ||
	    clock_now() - box->looked >= (fits(box, bytes) ? LOOK_AGAIN_NS : LOOK_NS))
		look(box, directory);
	if (!fits(box, bytes))
		return LETTER_FULL;
	if (!write_letter(directory, letter, reason)) {
		cannot(err, "cannot write a dead letter to", box->path);
		return LETTER_FAILED;
	}
	box->letters++;
	box->bytes += bytes;
	return LETTER_WRITTEN;
}

static bool encode(const struct letter *letter, struct bytes *reason, struct error *err)
{
	bytes_init(reason, LETTER_REASON_MAX);
	return letter_encode(letter, reason) ||
	       error_set(err, ERROR_CONFIG,
			 "the metadata of a packet is too large for a reason "
			 "file");
}

enum letter_result letter_box_add(struct letter_box *box, const struct letter *letter,
				  struct error *err)
{
	struct bytes reason;
	enum letter_result result = LETTER_FAILED;
	int directory = open_box(box, err);
	if (directory < 0)
		return result;
	if (encode(letter, &reason, err))
		result = add(box, directory, letter, bytes_view(&reason), err);
	bytes_fini(&reason);
	close(directory);
	return result;
}

bool letter_rewrite(int directory, const char *name, const struct letter *letter, struct error *err)
{
	struct bytes reason;
	bool ok = encode(letter, &reason, err);
	unlinkat(directory, file_name(name, REASON, true).text, 0);
	if (ok && !(write_part(directory, name, REASON, bytes_view(&reason)) &&
		    publish(directory, name, REASON)))
		ok = cannot(err, "cannot write the reason file of", name);
	bytes_fini(&reason);
	return ok;
}

/* ---- reading */

void letter_remove(int directory, const char *name)
{
	unlinkat(directory, file_name(name, REQUEST, false).text, 0);
	unlinkat(directory, file_name(name, REASON, false).text, 0);
}

static void list_file(int directory, struct letter_names *names, bool tidy, const char *file)
{
	struct stat other;
	char name[LETTER_NAME];
	bool request = letter_name_fits(file, REQUEST), reason = letter_name_fits(file, REASON);
	if (!strcmp(file, ".") || !strcmp(file, ".."))
		return;
	snprintf(name, sizeof name, "%s", file);
	if (reason && is_there(directory, name, REQUEST, &other)) {
		names->at = memory_resize(names->at, (names->count + 1) * sizeof *names->at);
		memcpy(names->at[names->count++], name, sizeof name);
	} else if (reason && tidy && errno == ENOENT) {
		unlinkat(directory, file, 0);
	} else if (!request || !is_there(directory, name, REASON, &other)) {
		names->others++;
	}
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

bool letter_list(int directory, bool tidy, struct letter_names *names, struct error *err)
{
	int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	*names = (struct letter_names){ 0 };
	if (!dir) {
		if (copy >= 0)
			close(copy);
		return cannot(err, "cannot read", "the directory");
	}
	for (struct dirent *file; (file = readdir(dir));)
		list_file(directory, names, tidy, file->d_name);
	closedir(dir);
	if (names->count)
		qsort(names->at, names->count, sizeof *names->at, by_name);
	return true;
}

void letter_names_fini(struct letter_names *names)
{
	memory_free(names->at);
}
