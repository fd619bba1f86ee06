/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/intake/file_tail.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include "pipeline/intake/file_list.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define SETTLED_NS (5 * INT64_C(1000000000))

enum { BLOCK = 65536, FINGERPRINT_MAX = 65536 };

struct tailed {
	char *name;
	int fd;
	uint64_t device, inode;
	uint64_t offset;  /* everything before was accepted or skipped */
	uint64_t size;    /* at the last poll */
	int64_t modified; /* at the last poll: ns since the epoch */
	bool matches;     /* its name does */
	bool skipping;    /* the line at the offset is too long; its rest is skipped */
	size_t print_len; /* the number of bytes whose hash is known */
	uint64_t print;
};

struct file_tail {
	struct file_tail_options options;
	struct tailed *files; /* files_max */
	size_t count, current;
	bool polled;
	uint64_t line_at, next; /* of the last line: its begin, and what follows it */
	/* a part of the current file */
	uint64_t block_at;
	size_t block_len;
	uint8_t block[BLOCK];
};

struct file_tail *file_tail_new(const struct file_tail_options *options)
{
	struct file_tail *tail = memory_new(sizeof *tail);
	tail->options = *options;
	if (tail->options.fingerprint > FINGERPRINT_MAX)
		tail->options.fingerprint = FINGERPRINT_MAX;
	tail->files = memory_array(options->files_max, sizeof *tail->files);
	return tail;
}

static void close_file(struct tailed *f)
{
	close(f->fd);
	memory_free(f->name);
}

void file_tail_free(struct file_tail **slot)
{
	struct file_tail *tail = *slot;
	*slot = NULL;
	if (!tail)
		return;
	for (size_t i = 0; i < tail->count; i++)
		close_file(&tail->files[i]);
	memory_free(tail->files);
	memory_free(tail);
}

const char *file_tail_name(const struct file_tail *tail)
{
	return tail->files[tail->current].name;
}

uint64_t file_tail_offset(const struct file_tail *tail)
{
	return tail->line_at;
}

/* ---- polling */

static size_t read_at(const struct tailed *f, void *out, size_t len, uint64_t offset)
{
	ssize_t got = pread(f->fd, out, len, (off_t)offset);
	return got > 0 ? (size_t)got : 0;
}

static void begin_again(struct tailed *f)
{
	f->offset = 0;
	f->print_len = 0;
	f->skipping = false;
}

/* Hashes as much of the beginning as was read. */
static void learn_beginning(const struct file_tail *tail, struct tailed *f)
{
	uint8_t begin[FINGERPRINT_MAX];
	size_t max = tail->options.fingerprint;
	size_t want = f->offset < max ? (size_t)f->offset : max;
	if (want <= f->print_len || read_at(f, begin, want, 0) != want)
		return;
	f->print_len = want;
	f->print = hash_bytes(begin, want);
}

/* Is the beginning still the one that was read? */
static void check_beginning(struct tailed *f)
{
	uint8_t begin[FINGERPRINT_MAX];
	if (read_at(f, begin, f->print_len, 0) != f->print_len ||
	    (f->print_len && hash_bytes(begin, f->print_len) != f->print))
		begin_again(f);
}

/* What is read of a file that exists from before. */
static void start_at_end(const struct file_tail *tail, struct tailed *f)
{
	uint8_t last = '\n';
	f->offset = f->size;
	if (f->size)
		read_at(f, &last, 1, f->size - 1);
	f->skipping = last != '\n';
	learn_beginning(tail, f);
}

/* False: it is gone, or no regular file. */
static bool look_at(struct file_tail *tail, struct tailed *f)
{
	struct stat st;
	if (fstat(f->fd, &st) || !S_ISREG(st.st_mode))
		return false;
	int64_t modified = st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec;
	bool changed = (uint64_t)st.st_size != f->size || modified != f->modified;
	f->size = (uint64_t)st.st_size;
	f->modified = modified;
	if (tail->options.replay || f->size < f->offset)
		begin_again(f);
	else if (changed && f->offset)
		check_beginning(f);
	return f->matches || f->offset < f->size;
}

static struct tailed *find_file(struct file_tail *tail, const struct file_entry *entry)
{
	for (size_t i = 0; i < tail->count; i++)
		if (tail->files[i].inode == entry->inode && tail->files[i].device == entry->device)
			return &tail->files[i];
	return NULL;
}

/* A pipe or device that has taken the file's place does not block. */
static bool open_file(struct file_tail *tail, struct file_entry *entry)
{
	int fd = open(entry->name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return true;
	if (tail->count == tail->options.files_max) {
		close(fd);
		return false;
	}
	struct tailed *f = &tail->files[tail->count++];
	*f = (struct tailed){ .name = entry->name,
			      .fd = fd,
			      .device = entry->device,
			      .inode = entry->inode,
			      .size = entry->size,
			      .modified = entry->modified,
			      .matches = true };
	entry->name = NULL;
	if (!tail->polled && !tail->options.from_start)
		start_at_end(tail, f);
	return true;
}

/* The name may be a new one. */
static void match(struct file_tail *tail, struct file_entry *entry)
{
	struct tailed *f = find_file(tail, entry);
	if (!f)
		return;
	memory_free(f->name);
	f->name = entry->name;
	entry->name = NULL;
	f->matches = true;
}

static void drop_finished(struct file_tail *tail)
{
	size_t kept = 0;
	for (size_t i = 0; i < tail->count; i++)
		if (look_at(tail, &tail->files[i]))
			tail->files[kept++] = tail->files[i];
		else
			close_file(&tail->files[i]);
	tail->count = kept;
}

bool file_tail_poll(struct file_tail *tail)
{
	const struct file_tail_options *o = &tail->options;
	struct file_list list;
	bool whole = file_list_find(o->include, o->exclude, o->files_max, &list);
	for (size_t i = 0; i < tail->count; i++)
		tail->files[i].matches = false;
	for (size_t i = 0; i < list.count; i++)
		match(tail, &list.at[i]);
	drop_finished(tail);
	for (size_t i = 0; i < list.count; i++)
		whole = (!list.at[i].name || open_file(tail, &list.at[i])) && whole;
	file_list_fini(&list);
	tail->polled = true;
	tail->current = 0;
	tail->block_len = 0;
	return whole;
}

/* ---- reading */

/* The bytes at an offset of the current file, as many as are at hand; empty at its end. What was
 * written since the last poll is not read, because it may be the content of a new file. */
static struct view bytes_at(struct file_tail *tail, uint64_t at)
{
	const struct tailed *f = &tail->files[tail->current];
	if (at < tail->block_at || at >= tail->block_at + tail->block_len) {
		tail->block_at = at;
		tail->block_len = read_at(f, tail->block, sizeof tail->block, at);
	}
	size_t skip = (size_t)(at - tail->block_at), len = tail->block_len - skip;
	uint64_t left = f->size > at ? f->size - at : 0;
	return (struct view){ tail->block + skip, len < left ? len : (size_t)left };
}

static void move_on(struct tailed *f, uint64_t offset, bool skipping)
{
	f->offset = offset;
	f->skipping = skipping;
}

static bool is_blank(const struct bytes *line)
{
	size_t i = 0;
	while (i < line->len && (line->at[i] == ' ' || line->at[i] == '\t' || line->at[i] == '\r'))
		i++;
	return i == line->len;
}

/* The last bytes of a file without the end of a line: a line if the writer is done with it. */
static enum file_tail_more end_of_file(struct file_tail *tail, uint64_t at,
				       const struct bytes *line)
{
	struct tailed *f = &tail->files[tail->current];
	if (f->skipping || is_blank(line) || f->modified + SETTLED_NS > (int64_t)clock_wall())
		return FILE_TAIL_NONE;
	tail->next = at;
	return FILE_TAIL_LINE;
}

static enum file_tail_more read_line(struct file_tail *tail, struct bytes *line)
{
	struct tailed *f = &tail->files[tail->current];
	uint64_t at = tail->line_at = f->offset;
	for (;;) {
		struct view part = bytes_at(tail, at);
		if (!part.len)
			return end_of_file(tail, at, line);
		const uint8_t *end = memchr(part.at, '\n', part.len);
		size_t len = end ? (size_t)(end - part.at) : part.len;
		at += len + (end != NULL);
		if (f->skipping) {
			move_on(f, at, !end);
			tail->line_at = at;
		} else if (line->len + len > tail->options.line_max) {
			move_on(f, at, !end);
			return FILE_TAIL_LONG;
		} else if (!bytes_add(line, part.at, len)) {
			return FILE_TAIL_FULL;
		} else if (end && is_blank(line)) {
			move_on(f, at, false);
			tail->line_at = at;
			line->len = 0;
		} else if (end) {
			tail->next = at;
			return FILE_TAIL_LINE;
		}
	}
}

enum file_tail_more file_tail_read(struct file_tail *tail, struct bytes *line)
{
	for (; tail->current < tail->count; tail->current++) {
		line->len = 0;
		enum file_tail_more more = read_line(tail, line);
		if (more != FILE_TAIL_NONE)
			return more;
		tail->block_len = 0;
	}
	return FILE_TAIL_NONE;
}

void file_tail_accept(struct file_tail *tail)
{
	struct tailed *f = &tail->files[tail->current];
	move_on(f, tail->next, false);
	learn_beginning(tail, f);
}

void file_tail_skip(struct file_tail *tail)
{
	struct tailed *f = &tail->files[tail->current];
	move_on(f, f->offset, true);
}
