/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/file_place.h"

#include <string.h>

#include "base/memory.h"
#include "exporters/file_log.h"
#include "profile/collect/split.h"
#include "profile/memo.h"
#include "profile/packet_attribute.h"

enum {
	PATTERN_MAX = 2048,
	VALUE_MAX = 512,
	/* of a file or folder; a rotated file has 24 more, and file systems allow 255 */
	NAME_LENGTH_MAX = 200,
	FOLDERS_MAX = 8, /* of a value, with the file's name */
	PATH_ROOM = 4096
};

bool file_place_check(const char *path, struct error *err)
{
	const char *star = strchr(path, '*'), *slash = strrchr(path, '/');
	const char *fault = NULL;
	if (!star || strchr(star + 1, '*'))
		fault = "must contain exactly one `*` with `group_by`";
	else if (star == path)
		fault = "must not start with `*` with `group_by`";
	else if (slash && !slash[1])
		fault = "must not end with `/` with `group_by`";
	else if (strlen(path) > PATTERN_MAX)
		fault = "is too long for `group_by`";
	return !fault || error_set(err, ERROR_CONFIG, "%s", fault);
}

void file_place_init(struct file_place *place, const char *path, const char *attribute)
{
	const char *star = strchr(path, '*');
	place->before = memory_text_of(path, (size_t)(star - path));
	place->after = memory_text(star + 1);
	place->attribute = attribute;
	const char *slash = strrchr(place->after, '/');
	place->ending = slash ? slash + 1 : place->after;
}

void file_place_fini(struct file_place *place)
{
	memory_free(place->before);
	memory_free(place->after);
	*place = (struct file_place){ 0 };
}

char *file_place_directory(const struct file_place *place)
{
	const char *slash = strrchr(place->before, '/');
	if (!slash)
		return memory_text(".");
	return slash == place->before
		       ? memory_text("/")
		       : memory_text_of(place->before, (size_t)(slash - place->before));
}

/* ---- values */

/* C0, DEL and, in UTF-8, C1. */
static bool has_controls(struct view value)
{
	for (size_t i = 0; i < value.len; i++) {
		uint8_t c = value.at[i];
		bool next = i + 1 < value.len;
		if (c < 0x20 || c == 0x7f ||
		    (c == 0xc2 && next && value.at[i + 1] >= 0x80 && value.at[i + 1] < 0xa0))
			return true;
	}
	return false;
}

struct names {
	struct view at[FOLDERS_MAX];
	size_t count;
};

/* The names between slashes, with `.` and `..` resolved. False: there are none, or too many. */
static bool resolve(struct view value, struct names *names)
{
	names->count = 0;
	for (size_t from = 0, to; from <= value.len; from = to + 1) {
		for (to = from; to < value.len && value.at[to] != '/';)
			to++;
		struct view name = { value.at + from, to - from };
		if (!name.len || view_is(name, "."))
			continue;
		if (view_is(name, "..")) {
			names->count -= names->count > 0;
			continue;
		}
		if (names->count == FOLDERS_MAX)
			return false;
		names->at[names->count++] = name;
	}
	return names->count > 0;
}

/* Could a folder of this name be the file of another value? Files are called `ending` if the value
 * is only in the names of their folders; else their names end with it. */
static bool is_file_name(const struct file_place *place, struct view name)
{
	size_t len = strlen(place->ending);
	bool exact = place->ending != place->after;
	return name.len >= len && !memcmp(name.at + name.len - len, place->ending, len) &&
	       (!exact || name.len == len);
}

/* Every name of the path, with what the operator put around the value. */
static bool names_fit(const struct file_place *place, const char *path)
{
	const char *name = path;
	for (const char *end = strchr(name, '/'); end; end = strchr(name, '/')) {
		struct view folder = { (const uint8_t *)name, (size_t)(end - name) };
		if (folder.len > NAME_LENGTH_MAX || is_file_name(place, folder))
			return false;
		name = end + 1;
	}
	return strlen(name) <= NAME_LENGTH_MAX && !file_log_is_backup(name);
}

static void join(const struct file_place *place, const struct names *names, struct bytes *path)
{
	bytes_add(path, place->before, strlen(place->before));
	for (size_t i = 0; i < names->count; i++) {
		bytes_add(path, "/", i > 0);
		bytes_add(path, names->at[i].at, names->at[i].len);
	}
	bytes_add(path, place->after, strlen(place->after) + 1);
}

enum file_place_fault file_place_of_value(const struct file_place *place, struct view value,
					  struct bytes *path)
{
	struct names names;
	if (!path->max)
		bytes_init(path, PATH_ROOM);
	path->len = 0;
	if (value.len > VALUE_MAX || has_controls(value) || !resolve(value, &names))
		return FILE_PLACE_INVALID;
	join(place, &names, path);
	const char *slash = strrchr(place->before, '/');
	size_t own = slash ? (size_t)(slash + 1 - place->before) : 0;
	return names_fit(place, (const char *)path->at + own) ? FILE_PLACE_OK : FILE_PLACE_INVALID;
}

/* ---- packets */

enum file_place_fault file_place_of_packet(const struct file_place *place,
					   const struct packet *packet, struct bytes *path)
{
	struct view value;
	return packet_attribute(packet, place->attribute, &value)
		       ? file_place_of_value(place, value, path)
		       : FILE_PLACE_MISSING;
}

/* ---- open tables */

static enum file_place_fault find(const struct file_place *place, const struct profiles *p,
				  const struct resource *r, struct bytes *path)
{
	for (uint32_t i = 0; i < r->attributes.count; i++) {
		const struct attribute *a =
			&p->attributes.at[p->indices.at[r->attributes.first + i]];
		if (string_is(p, a->key, place->attribute))
			return a->type == VALUE_STRING
				       ? file_place_of_value(place, string_view(p, a->string), path)
				       : FILE_PLACE_MISSING;
	}
	return FILE_PLACE_MISSING;
}

uint32_t *file_place_sort(const struct file_place *place, struct profiles *p,
			  uint64_t faults[FILE_PLACE_FAULTS])
{
	uint32_t *groups = memory_array(p->resources.count, sizeof *groups), count = 0;
	struct memo memo = { .max_bytes = SIZE_MAX };
	struct bytes path = { 0 };
	for (uint32_t i = 0; i < p->resources.count; i++) {
		enum file_place_fault fault = find(place, p, &p->resources.at[i], &path);
		faults[fault]++;
		if (fault != FILE_PLACE_OK)
			continue;
		struct memo_entry *entry = memo_enter(&memo, 0, path.at, path.len);
		if (!entry->first)
			entry->first = ++count;
		groups[i] = entry->first;
	}
	memo_fini(&memo);
	bytes_fini(&path);
	split_groups(p, groups);
	return groups;
}
