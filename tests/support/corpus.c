/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/corpus.h"
#include "base/memory.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CUTS = 2000 }; /* the number of cuts of a large file */

static bool read_file(const char *folder, const char *name, struct bytes *out)
{
	char *path = memory_format("%s/%s", folder, name);
	FILE *file = fopen(path, "rb");
	memory_free(path);
	if (!file)
		return false;
	out->len = bytes_reserve(out, out->max) ? fread(out->at, 1, out->max, file) : 0;
	fclose(file);
	return true;
}

bool corpus_each(const char *folder, size_t most, void (*visit)(const char *name, struct view file))
{
	const char *corpus = getenv("PORTCULLIS_CORPUS");
	char *path = memory_format("%s/%s", corpus ? corpus : "../shared/corpus", folder);
	DIR *dir = opendir(path);
	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		struct bytes file;
		bytes_init(&file, most + 1);
		if (*entry->d_name != '.' && read_file(path, entry->d_name, &file) &&
		    file.len <= most)
			visit(entry->d_name, bytes_view(&file));
		bytes_fini(&file);
	}
	if (dir)
		closedir(dir);
	memory_free(path);
	return dir != NULL;
}

void corpus_cut(struct view whole, void (*visit)(struct view cut))
{
	size_t step = whole.len > CORPUS_CUT_WHOLE ? whole.len / CUTS : 1;
	for (size_t len = 0; len <= whole.len; len += step) {
		uint8_t *copy = memory_new(len + BYTES_SLACK);
		if (len)
			memcpy(copy, whole.at, len);
		visit((struct view){ copy, len });
		memory_free(copy);
	}
}
