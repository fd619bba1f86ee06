/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/file_place.h"

#include <stdlib.h>
#include <string.h>

/*
 * Whatever the value of `group_by`'s attribute is, its path is below the operator's directory, in
 * names that file systems take; the same value has the same path, and no folder of it could be the
 * file of a shorter value.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const char *const patterns[] = { "base/*.json", "base/svc-*", "base/*/out.pb", "base/*" };
static const char base[] = "base/";

static void check_names(const char *name)
{
	for (const char *end; (end = strchrnul(name, '/')); name = end + 1) {
		size_t len = (size_t)(end - name);
		if (!len || len > 255 - strlen("-0000-00-00T00-00-00.000") ||
		    (len == 1 && !memcmp(name, ".", 1)) || (len == 2 && !memcmp(name, "..", 2)))
			abort();
		for (const char *c = name; c < end; c++)
			if ((unsigned char)*c < 0x20 || *c == 0x7f)
				abort();
		if (!*end)
			return;
	}
}

/* Each folder as a path of its own: no value may have it. */
static void check_folders(const struct file_place *place, const char *path)
{
	struct bytes other = { 0 };
	size_t before = strlen(place->before), after = strlen(place->after);
	for (const char *at = path + before; (at = strchr(at, '/')); at++) {
		size_t len = (size_t)(at - path);
		if (len < before + after || memcmp(at - after, place->after, after) != 0)
			continue;
		struct view value = { (const uint8_t *)path + before, len - before - after };
		if (file_place_of_value(place, value, &other) == FILE_PLACE_OK &&
		    other.len == len + 1 && !memcmp(other.at, path, len))
			abort();
	}
	bytes_fini(&other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct file_place place = { 0 };
	struct bytes path = { 0 }, again = { 0 };
	if (!len)
		return 0;
	file_place_init(&place, patterns[data[0] % 4], "group");
	struct view value = { data + 1, len - 1 };
	enum file_place_fault fault = file_place_of_value(&place, value, &path);
	if (fault != file_place_of_value(&place, value, &again))
		abort();
	if (fault == FILE_PLACE_OK) {
		const char *text = (const char *)path.at;
		if (path.len != again.len || memcmp(path.at, again.at, path.len) != 0 ||
		    strlen(text) != path.len - 1 || strncmp(text, base, strlen(base)) != 0)
			abort();
		check_names(text + strlen(base));
		check_folders(&place, text);
	}
	bytes_fini(&path);
	bytes_fini(&again);
	file_place_fini(&place);
	return 0;
}
