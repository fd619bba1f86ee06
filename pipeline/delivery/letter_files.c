/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/delivery/letter_files.h"

#include "base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MODE = 0600, DIRECTORY_MODE = 0700, OTHERS_WRITE = S_IWGRP | S_IWOTH };

/* A directory with the letters that replace the letter of its name (letter_replace). */
#define SUCCESSORS ".rest"

struct file_name {
	char text[LETTER_NAME + 16];
};

static struct file_name file_name(const char *name, const char *suffix, bool part)
{
	struct file_name file;
	snprintf(file.text, sizeof file.text, "%s%s%s%s", part ? "." : "", name, suffix,
		 part ? LETTER_PART : "");
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

/* ---- writing */

bool letter_draft_init(struct letter_draft *draft, const struct letter *letter, struct error *err)
{
	*draft = (struct letter_draft){ .letter = letter, .request_fd = -1, .reason_fd = -1 };
	bytes_init(&draft->reason, LETTER_REASON_MAX);
	letter_name(draft->name);
	return letter_encode(letter, &draft->reason) ||
	       error_set(err, ERROR_CONFIG,
			 "the metadata of a packet is too large for a reason file");
}

uint64_t letter_draft_bytes(const struct letter_draft *draft)
{
	return draft->letter->packet->otlp.len + draft->reason.len;
}

void letter_draft_fini(struct letter_draft *draft)
{
	bytes_fini(&draft->reason);
}

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

/* Under the temporary name. The kernel begins to write it to the disk. */
static bool write_part(int directory, const char *name, const char *suffix, struct view data,
		       int *fd)
{
	*fd = openat(directory, file_name(name, suffix, true).text,
		     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
	if (*fd < 0 || !write_all(*fd, data))
		return false;
	(void)sync_file_range(*fd, 0, 0, SYNC_FILE_RANGE_WRITE);
	return true;
}

static bool finish_part(int *fd)
{
	bool ok = fsync(*fd) == 0;
	int reason = errno;
	ok = close(*fd) == 0 && ok;
	errno = reason;
	*fd = -1;
	return ok;
}

static bool publish(int directory, const char *name, const char *suffix)
{
	return renameat(directory, file_name(name, suffix, true).text, directory,
			file_name(name, suffix, false).text) == 0;
}

/* Nothing of it stays. */
static void fail(int directory, struct letter_draft *draft, int failure)
{
	static const char *const suffixes[] = { LETTER_REQUEST, LETTER_REASON };
	draft->failure = failure;
	for (int part = 0; part < 2; part++)
		for (int i = 0; i < 2; i++)
			unlinkat(directory, file_name(draft->name, suffixes[i], part).text, 0);
	if (draft->request_fd >= 0)
		close(draft->request_fd);
	if (draft->reason_fd >= 0)
		close(draft->reason_fd);
	draft->request_fd = draft->reason_fd = -1;
}

void letter_drafts_write(int directory, struct letter_draft *drafts, uint32_t count)
{
	struct letter_draft *end = drafts + count;
	for (struct letter_draft *d = drafts; d < end; d++) {
		struct view request = bytes_view(&d->letter->packet->otlp);
		if (d->failure)
			continue;
		if (!write_part(directory, d->name, LETTER_REQUEST, request, &d->request_fd) ||
		    !write_part(directory, d->name, LETTER_REASON, bytes_view(&d->reason),
				&d->reason_fd))
			fail(directory, d, errno);
	}
	for (struct letter_draft *d = drafts; d < end; d++)
		if (!d->failure && !(finish_part(&d->request_fd) && finish_part(&d->reason_fd) &&
				     publish(directory, d->name, LETTER_REQUEST) &&
				     publish(directory, d->name, LETTER_REASON)))
			fail(directory, d, errno);
	int failure = fsync(directory) == 0 ? 0 : errno;
	for (struct letter_draft *d = drafts; d < end && failure; d++)
		if (!d->failure)
			fail(directory, d, failure);
}

/* ---- removing and replacing */

void letter_remove(int directory, const char *name)
{
	unlinkat(directory, file_name(name, LETTER_REQUEST, false).text, 0);
	unlinkat(directory, file_name(name, LETTER_REASON, false).text, 0);
}

static DIR *open_list(int directory, const char *path)
{
	int fd = openat(directory, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

static void move_up(DIR *from, int directory, const char *suffix)
{
	rewinddir(from);
	for (struct dirent *file; (file = readdir(from));)
		if (letter_name_fits(file->d_name, suffix))
			renameat(dirfd(from), file->d_name, directory, file->d_name);
}

/* The successors are complete: the letter goes, and they take its place. Can be repeated. */
static void complete_replacement(int directory, const char *name)
{
	struct file_name successors = file_name(name, SUCCESSORS, false);
	DIR *dir = open_list(directory, successors.text);
	if (!dir)
		return;
	letter_remove(directory, name);
	move_up(dir, directory, LETTER_REQUEST);
	move_up(dir, directory, LETTER_REASON);
	closedir(dir);
	unlinkat(directory, successors.text, AT_REMOVEDIR);
	fsync(directory);
}

/* Successors that were not complete. */
static void remove_successors(int directory, const char *path)
{
	DIR *dir = open_list(directory, path);
	for (struct dirent *file; dir && (file = readdir(dir));) {
		const char *name = file->d_name + (*file->d_name == '.');
		if (strcmp(name, "") != 0 && strcmp(name, ".") != 0)
			unlinkat(dirfd(dir), file->d_name, 0);
	}
	if (dir)
		closedir(dir);
	unlinkat(directory, path, AT_REMOVEDIR);
}

static bool write_group(int directory, const struct letter *letters, uint32_t count,
			struct error *err)
{
	struct letter_draft drafts[LETTER_GROUP_MAX];
	uint32_t made = 0;
	bool ok = true;
	while (ok && made < count) {
		ok = letter_draft_init(&drafts[made], &letters[made], err);
		made++;
	}
	if (ok)
		letter_drafts_write(directory, drafts, count);
	for (uint32_t i = 0; i < made; i++) {
		errno = drafts[i].failure;
		ok = ok && (!errno || cannot(err, "cannot write", "a dead letter"));
		letter_draft_fini(&drafts[i]);
	}
	return ok;
}

static bool write_successors(int directory, const struct letter *letters, size_t count,
			     struct error *err)
{
	bool ok = true;
	for (size_t i = 0, some; ok && i < count; i += some) {
		some = count - i < LETTER_GROUP_MAX ? count - i : LETTER_GROUP_MAX;
		ok = write_group(directory, letters + i, (uint32_t)some, err);
	}
	return ok;
}

/* From then on, the letter is replaced. */
static bool commit(int directory, const char *name)
{
	if (!publish(directory, name, SUCCESSORS))
		return false;
	if (fsync(directory) == 0)
		return true;
	int failure = errno;
	renameat(directory, file_name(name, SUCCESSORS, false).text, directory,
		 file_name(name, SUCCESSORS, true).text);
	errno = failure;
	return false;
}

bool letter_replace(int directory, const char *name, const struct letter *letters, size_t count,
		    struct error *err)
{
	struct file_name part = file_name(name, SUCCESSORS, true);
	remove_successors(directory, part.text);
	int inside = mkdirat(directory, part.text, DIRECTORY_MODE) != 0
			     ? -1
			     : openat(directory, part.text,
				      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	bool ok = inside >= 0 ? write_successors(inside, letters, count, err)
			      : cannot(err, "cannot create the directory", part.text);
	if (inside >= 0)
		close(inside);
	if (ok && !commit(directory, name))
		ok = cannot(err, "cannot replace the dead letter", name);
	if (ok)
		complete_replacement(directory, name);
	else
		remove_successors(directory, part.text);
	return ok;
}

/* ---- listing */

/* If it is not, errno is ENOENT; any other error says nothing. */
static bool is_there(int directory, const char *name, const char *suffix)
{
	struct stat is;
	return fstatat(directory, file_name(name, suffix, false).text, &is, AT_SYMLINK_NOFOLLOW) ==
	       0;
}

static void list_file(int directory, struct letter_names *names, bool tidy, const char *file)
{
	char name[LETTER_NAME];
	bool request = letter_name_fits(file, LETTER_REQUEST),
	     reason = letter_name_fits(file, LETTER_REASON);
	if (!strcmp(file, ".") || !strcmp(file, ".."))
		return;
	snprintf(name, sizeof name, "%s", file);
	if (reason && is_there(directory, name, LETTER_REQUEST)) {
		names->at = memory_resize(names->at, (names->count + 1) * sizeof *names->at);
		memcpy(names->at[names->count++], name, sizeof name);
	} else if (reason && tidy && errno == ENOENT) {
		unlinkat(directory, file, 0);
	} else if (!request || !is_there(directory, name, LETTER_REASON)) {
		names->others++;
	}
}

/* Replacements that a process has not ended. */
static void end_replacement(int directory, const char *file)
{
	char name[LETTER_NAME];
	if (letter_name_fits(file, SUCCESSORS)) {
		snprintf(name, sizeof name, "%s", file);
		complete_replacement(directory, name);
	} else if (*file == '.' && letter_name_fits(file + 1, SUCCESSORS LETTER_PART)) {
		remove_successors(directory, file);
	}
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

bool letter_list(int directory, bool tidy, struct letter_names *names, struct error *err)
{
	DIR *dir = open_list(directory, ".");
	*names = (struct letter_names){ 0 };
	if (!dir)
		return cannot(err, "cannot read", "the directory");
	for (struct dirent *file; tidy && (file = readdir(dir));)
		end_replacement(directory, file->d_name);
	rewinddir(dir);
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
