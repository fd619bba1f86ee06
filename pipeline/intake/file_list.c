/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/intake/file_list.h"

#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <glob.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_excluded(const struct strings *exclude, const char *name)
{
	for (size_t i = 0; exclude && i < exclude->count; i++)
		if (!fnmatch(exclude->at[i], name, FNM_PATHNAME | FNM_PERIOD))
			return true;
	return false;
}

static int by_name(const void *a, const void *b)
{
	const struct file_entry *x = a, *y = b;
	return strcmp(x->name, y->name);
}

/* Sorts, and removes names that two patterns match. */
static void make_unique(struct file_list *list)
{
	size_t kept = 0;
	if (list->count)
		qsort(list->at, list->count, sizeof *list->at, by_name);
	for (size_t i = 0; i < list->count; i++)
		if (kept && !strcmp(list->at[kept - 1].name, list->at[i].name))
			memory_free(list->at[i].name);
		else
			list->at[kept++] = list->at[i];
	list->count = kept;
}

static bool examine(const char *name, struct file_entry *path)
{
	struct stat st;
	if (stat(name, &st) || !S_ISREG(st.st_mode))
		return false;
	*path = (struct file_entry){
		.name = memory_text(name),
		.device = st.st_dev,
		.inode = st.st_ino,
		.size = (uint64_t)st.st_size,
		.modified = st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec,
	};
	return true;
}

/* glob(3) sorts the matches of one pattern. */
static bool add_matches(struct file_list *list, const char *pattern, const struct strings *exclude,
			size_t max)
{
	glob_t found;
	if (glob(pattern, 0, NULL, &found))
		return true;
	bool fits = true;
	for (size_t i = 0; i < found.gl_pathc && fits; i++) {
		if (is_excluded(exclude, found.gl_pathv[i]))
			continue;
		fits = list->count < max;
		if (fits && examine(found.gl_pathv[i], &list->at[list->count]))
			list->count++;
	}
	globfree(&found);
	return fits;
}

bool file_list_find(const struct strings *include, const struct strings *exclude, size_t max,
		    struct file_list *list)
{
	bool whole = true;
	*list = (struct file_list){ memory_array(max, sizeof *list->at), 0 };
	for (size_t i = 0; i < include->count; i++)
		whole = add_matches(list, include->at[i], exclude, max) && whole;
	make_unique(list);
	return whole;
}

void file_list_fini(struct file_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		memory_free(list->at[i].name);
	memory_free(list->at);
	*list = (struct file_list){ 0 };
}

bool file_list_same(const struct file_entry *a, const struct file_entry *b)
{
	return a->device == b->device && a->inode == b->inode && a->size == b->size &&
	       a->modified == b->modified;
}

static bool read_all(int fd, struct bytes *out, struct error *err)
{
	uint8_t block[65536];
	ssize_t got;
	while ((got = read(fd, block, sizeof block)) > 0)
		if (!bytes_add(out, block, (size_t)got))
			return error_set(err, ERROR_TOO_LARGE, "larger than %zu bytes", out->max);
	return got == 0 || error_set(err, ERROR_CONFIG, "cannot be read: %s", strerror(errno));
}

/* A pipe or device that has taken the file's place does not block. */
bool file_list_read(const char *name, struct bytes *out, struct error *err)
{
	struct stat st;
	int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return error_set(err, ERROR_CONFIG, "cannot be opened: %s", strerror(errno));
	bool ok = !fstat(fd, &st) && S_ISREG(st.st_mode);
	ok = ok ? read_all(fd, out, err) : error_set(err, ERROR_CONFIG, "is not a regular file");
	close(fd);
	return ok;
}
