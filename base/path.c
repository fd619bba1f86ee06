/* SPDX-License-Identifier: Apache-2.0 */
#include "base/path.h"

#include <string.h>

#include "base/memory.h"

struct names { /* "/a/b", also of a relative path */
	char *text;
	size_t len;
	bool absolute;
};

static bool is(const char *name, size_t len, const char *text)
{
	return len == strlen(text) && memcmp(name, text, len) == 0;
}

static void add(struct names *names, const char *name, size_t len)
{
	names->text[names->len] = '/';
	memcpy(names->text + names->len + 1, name, len);
	names->len += len + 1;
}

/* Above the root is the root; above the start of a relative path is something else. */
static void go_up(struct names *names)
{
	const char *last = memrchr(names->text, '/', names->len);
	size_t above = last ? (size_t)(last - names->text) : 0;
	if (last && !is(last, names->len - above, "/.."))
		names->len = above;
	else if (!names->absolute)
		add(names, "..", 2);
}

char *path_normal(const char *path)
{
	struct names names = { .text = memory_new(strlen(path) + 2), .absolute = *path == '/' };
	for (const char *at = path; *at;) {
		at += strspn(at, "/");
		size_t len = strcspn(at, "/");
		if (is(at, len, ".."))
			go_up(&names);
		else if (len && !is(at, len, "."))
			add(&names, at, len);
		at += len;
	}
	char *normal = !names.len       ? memory_text(names.absolute ? "/" : ".")
		       : names.absolute ? memory_text_of(names.text, names.len)
					: memory_text_of(names.text + 1, names.len - 1);
	memory_free(names.text);
	return normal;
}

static const char *after(const char *path, const char *start)
{
	size_t len = strlen(start);
	return strncmp(path, start, len) == 0 ? path + len : NULL;
}

static bool is_open_file(const char *path)
{
	const char *process = after(path, "/proc/"), *number = NULL;
	if (process)
		number = after(process + strcspn(process, "/"), "/fd/");
	return number && *number && !strchr(number, '/');
}

bool path_is_device(const char *path)
{
	char *normal = path_normal(path);
	bool device =
		(after(normal, "/dev/") && !after(normal, "/dev/shm/")) || is_open_file(normal);
	memory_free(normal);
	return device;
}
