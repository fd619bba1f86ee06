/* SPDX-License-Identifier: Apache-2.0 */
#include "receivers/pprof_discovery.h"

#include "base/memory.h"
#include "pipeline/intake/file_list.h"

enum { FILES_MAX = 1000, FILE_MAX = 16 << 20 };

struct target_file {
	struct file_entry path;
	struct pprof_targets targets; /* what was last read without an error */
	bool bad;
};

struct files {
	struct target_file *at;
	size_t count;
};

struct pprof_discovery {
	const struct strings *globs;
	struct pprof_targets_defaults defaults;
	const struct log *log;
	struct files files; /* sorted by name */
	bool crowded;       /* more files match than FILES_MAX */
};

struct pprof_discovery *pprof_discovery_new(const struct strings *globs,
					    const struct pprof_targets_defaults *defaults,
					    const struct log *log)
{
	struct pprof_discovery *d = memory_new(sizeof *d);
	*d = (struct pprof_discovery){ .globs = globs, .defaults = *defaults, .log = log };
	return d;
}

static void release(struct files *files)
{
	for (size_t i = 0; i < files->count; i++) {
		memory_free(files->at[i].path.name);
		pprof_targets_fini(&files->at[i].targets);
	}
	memory_free(files->at);
	*files = (struct files){ 0 };
}

void pprof_discovery_unref(struct pprof_discovery **slot)
{
	struct pprof_discovery *d = *slot;
	*slot = NULL;
	if (!d)
		return;
	release(&d->files);
	memory_free(d);
}

static bool parse(const struct pprof_discovery *d, const char *name, struct pprof_targets *targets,
		  struct error *err)
{
	struct bytes text;
	bytes_init(&text, FILE_MAX);
	bool ok = file_list_read(name, &text, err) &&
		  pprof_targets_parse(targets, bytes_view(&text), &d->defaults, err);
	bytes_fini(&text);
	return ok;
}

static void read_file(const struct pprof_discovery *d, struct target_file *file)
{
	struct pprof_targets fresh = { 0 };
	struct error err = { 0 };
	file->bad = !parse(d, file->path.name, &fresh, &err);
	if (file->bad) {
		log_warn(d->log, "Target file cannot be read, its last targets stay in use",
			 log_text("path", file->path.name), log_text("error", err.text));
		pprof_targets_fini(&fresh);
		return;
	}
	pprof_targets_fini(&file->targets);
	file->targets = fresh;
	log_info(d->log, "Target file read", log_text("path", file->path.name),
		 log_number("targets", fresh.count));
}

/* Takes what was known of the file. Both lists are sorted by name; *at is the place in the old
 * one. */
static struct target_file *find(struct files *old, size_t *at, const char *name)
{
	while (*at < old->count && strcmp(old->at[*at].path.name, name) < 0)
		++*at;
	bool found = *at < old->count && !strcmp(old->at[*at].path.name, name);
	return found ? &old->at[*at] : NULL;
}

/* True: something has changed. */
static bool update(struct pprof_discovery *d, const struct file_list *paths, struct files *fresh)
{
	bool changed = paths->count != d->files.count;
	size_t at = 0;
	for (size_t i = 0; i < paths->count; i++) {
		struct target_file *file = &fresh->at[fresh->count++];
		struct target_file *old = find(&d->files, &at, paths->at[i].name);
		file->path = paths->at[i];
		file->path.name = memory_text(paths->at[i].name);
		if (old) {
			file->targets = old->targets;
			file->bad = old->bad;
			old->targets = (struct pprof_targets){ 0 };
		}
		if (!old || !file_list_same(&old->path, &paths->at[i])) {
			read_file(d, file);
			changed = true;
		}
	}
	return changed;
}

static void note_crowd(struct pprof_discovery *d, bool crowded)
{
	if (crowded && !d->crowded)
		log_warn(d->log, "More target files match than are read",
			 log_number("read", FILES_MAX));
	d->crowded = crowded;
}

bool pprof_discovery_read(struct pprof_discovery *d, bool anyway, struct pprof_targets *out,
			  uint32_t *bad)
{
	struct file_list paths;
	bool whole = file_list_find(d->globs, NULL, FILES_MAX, &paths);
	struct files fresh = { memory_array(paths.count, sizeof *fresh.at), 0 };
	note_crowd(d, !whole);
	bool changed = update(d, &paths, &fresh) || anyway;
	release(&d->files);
	d->files = fresh;
	file_list_fini(&paths);
	*bad = 0;
	for (size_t i = 0; i < fresh.count; i++) {
		*bad += fresh.at[i].bad;
		if (changed)
			pprof_targets_join(out, &fresh.at[i].targets);
	}
	return changed;
}
