/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/delivery/letter_box.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/system.h"
#include "pipeline/delivery/letter_files.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOOK_NS UINT64_C(1000000000) /* when it seems full */
#define LOOK_AGAIN_NS (60 * LOOK_NS) /* otherwise */

enum { DIRECTORY_MODE = 0700, LEFTOVER_S = 600 /* seconds */ };

static pthread_mutex_t boxes_lock = PTHREAD_MUTEX_INITIALIZER;
static struct letter_box *boxes;

static int open_directory(const char *path, struct error *err)
{
	struct stat is;
	if (stat(path, &is) != 0 && errno == ENOENT &&
	    !system_make_directories(path, DIRECTORY_MODE)) {
		error_set(err, ERROR_CONFIG, "cannot create the directory %s: %s", path,
			  strerror(errno));
		return -1;
	}
	return letter_directory(path, err);
}

/* ---- the boxes of the process */

/* Under the lock. */
static struct letter_box *find_box(const char *key)
{
	struct letter_box *box = boxes;
	while (box && strcmp(box->key, key) != 0)
		box = box->next;
	return box;
}

static struct letter_box *make_box(const char *path, const char *key)
{
	struct letter_box *box = memory_new(sizeof *box);
	box->path = memory_text(path);
	box->key = memory_text(key);
	box->next = boxes;
	boxes = box;
	pthread_mutex_init(&box->lock, NULL);
	return box;
}

struct letter_box *letter_box_open(const char *path, uint64_t max_bytes, uint64_t max_letters,
				   struct error *err)
{
	int directory = open_directory(path, err);
	if (directory < 0)
		return NULL;
	close(directory);
	char absolute[PATH_MAX];
	const char *key = realpath(path, absolute) ? absolute : path;
	pthread_mutex_lock(&boxes_lock);
	struct letter_box *box = find_box(key);
	box = box ? box : make_box(path, key);
	box->users++;
	box->max_bytes = max_bytes;
	box->max_letters = max_letters;
	pthread_mutex_unlock(&boxes_lock);
	return box;
}

void letter_box_unref(struct letter_box **users)
{
	struct letter_box *box = *users;
	*users = NULL;
	if (!box)
		return;
	pthread_mutex_lock(&boxes_lock);
	bool last = !--box->users;
	struct letter_box **at = &boxes;
	while (*at != box)
		at = &(*at)->next;
	if (last)
		*at = box->next;
	pthread_mutex_unlock(&boxes_lock);
	if (!last)
		return;
	pthread_mutex_destroy(&box->lock);
	memory_free(box->path);
	memory_free(box->key);
	memory_free(box);
}

/* ---- looking */

/* Is the other file of a letter not there? An error says nothing. */
static bool is_missing(int directory, const char *name, const char *suffix)
{
	struct stat is;
	char other[LETTER_NAME + 8];
	snprintf(other, sizeof other, "%s%s", name, suffix);
	return fstatat(directory, other, &is, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT;
}

static bool is_old(const struct stat *is)
{
	return is->st_mtime + LEFTOVER_S < (time_t)(clock_wall() / 1000000000);
}

/* One file of a letter: it counts, or is left over. */
static void look_at(struct letter_box *box, int directory, const char *file)
{
	char name[LETTER_NAME];
	struct stat is;
	bool part = *file == '.' && (letter_name_fits(file + 1, LETTER_REQUEST LETTER_PART) ||
				     letter_name_fits(file + 1, LETTER_REASON LETTER_PART));
	bool request = letter_name_fits(file, LETTER_REQUEST),
	     reason = letter_name_fits(file, LETTER_REASON);
	if ((!part && !request && !reason) ||
	    fstatat(directory, file, &is, AT_SYMLINK_NOFOLLOW) != 0)
		return;
	snprintf(name, sizeof name, "%s", file);
	bool rest = part || is_missing(directory, name, request ? LETTER_REASON : LETTER_REQUEST);
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

void letter_box_look(struct letter_box *box)
{
	struct error err;
	pthread_mutex_lock(&box->lock);
	int directory = box->looked ? -1 : letter_directory(box->path, &err);
	if (directory >= 0) {
		look(box, directory);
		close(directory);
	}
	pthread_mutex_unlock(&box->lock);
}

/* ---- adding */

static bool fits(const struct letter_box *box, uint64_t letters, uint64_t bytes)
{
	return letters <= box->max_letters && box->letters <= box->max_letters - letters &&
	       bytes <= box->max_bytes && box->bytes <= box->max_bytes - bytes;
}

static void count(struct letter_box *box, const struct letter_draft *draft, bool in)
{
	uint64_t bytes = letter_draft_bytes(draft);
	box->letters += in ? 1 : -(uint64_t)1;
	box->bytes += in ? bytes : -bytes;
}

static void look_if_due(struct letter_box *box, int directory, const struct letter_draft *drafts,
			uint32_t count)
{
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < count; i++)
		bytes += letter_draft_bytes(&drafts[i]);
	if (!box->looked ||
	    clock_now() - box->looked >= (fits(box, count, bytes) ? LOOK_AGAIN_NS : LOOK_NS))
		look(box, directory);
}

/* Takes the room for it, before it is written. */
static enum letter_result admit(struct letter_box *box, struct letter_draft *draft)
{
	if (!fits(box, 1, letter_draft_bytes(draft))) {
		draft->failure = EDQUOT;
		return LETTER_FULL;
	}
	count(box, draft, true);
	return LETTER_WRITTEN;
}

static void add(struct letter_box *box, int directory, struct letter_draft *drafts, uint32_t all,
		enum letter_result *results, struct error *err)
{
	uint32_t admitted = 0;
	look_if_due(box, directory, drafts, all);
	for (uint32_t i = 0; i < all; i++) {
		results[i] = drafts[i].failure ? LETTER_FAILED : admit(box, &drafts[i]);
		admitted += results[i] == LETTER_WRITTEN;
	}
	if (admitted)
		letter_drafts_write(directory, drafts, all);
	for (uint32_t i = 0; i < all; i++) {
		if (results[i] != LETTER_WRITTEN || !drafts[i].failure)
			continue;
		results[i] = LETTER_FAILED;
		count(box, &drafts[i], false);
		error_set(err, ERROR_CONFIG, "cannot write a dead letter to %s: %s", box->path,
			  strerror(drafts[i].failure));
	}
}

void letter_box_add(struct letter_box *box, const struct letter *letters, uint32_t all,
		    enum letter_result *results, struct error *err)
{
	struct letter_draft drafts[LETTER_GROUP_MAX];
	assert(all <= LETTER_GROUP_MAX);
	for (uint32_t i = 0; i < all; i++) {
		results[i] = LETTER_FAILED;
		if (!letter_draft_init(&drafts[i], &letters[i], err))
			drafts[i].failure = EMSGSIZE;
	}
	pthread_mutex_lock(&box->lock);
	int directory = open_directory(box->path, err);
	if (directory >= 0) {
		add(box, directory, drafts, all, results, err);
		close(directory);
	}
	pthread_mutex_unlock(&box->lock);
	for (uint32_t i = 0; i < all; i++)
		letter_draft_fini(&drafts[i]);
}
