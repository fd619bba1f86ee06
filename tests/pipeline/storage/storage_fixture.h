/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_PIPELINE_STORAGE_STORAGE_FIXTURE_H
#define TESTS_PIPELINE_STORAGE_STORAGE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dirent.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/memory.h"
#include "pipeline/storage/storage.h"
#include "tests/support/shell.h"

/* A storage in a directory of its own, and one queue. */
struct fixture {
	char directory[64];
	struct metrics *metrics;
	struct storages *all;
	struct storage *storage;
	struct storage_queue *queue;
	struct storage_options options;
	_Atomic uint64_t attached; /* records, plus one for each call times 1000000 */
	_Atomic int changes, done, failed, released;
};

static inline void attached(void *context, struct storage_queue *queue, uint64_t records)
{
	(void)queue;
	struct fixture *f = context;
	f->attached += 1000000 + records - f->attached % 1000000;
}

static inline void changed(void *context)
{
	((struct fixture *)context)->changes++;
}

static inline int setup(void **state)
{
	struct fixture *f = memory_new(sizeof *f);
	snprintf(f->directory, sizeof f->directory, "/tmp/portcullis-storage-XXXXXX");
	assert_non_null(mkdtemp(f->directory));
	f->metrics = metrics_new();
	f->options = (struct storage_options){ .id = "file_storage",
					       .directory = f->directory,
					       .directory_mode = 0700,
					       .sync = true,
					       .max_bytes = 64 << 20 };
	*state = f;
	return 0;
}

static inline bool begin_error(struct fixture *f, struct error *err)
{
	f->all = storages_new(f->metrics);
	f->storage = storages_get(f->all, &f->options);
	error_clear(err);
	return storage_open(f->storage, err);
}

static inline void begin(struct fixture *f)
{
	struct error err;
	if (!begin_error(f, &err))
		fail_msg("%s", err.text);
	const struct storage_owner owner = { f, attached, changed };
	f->queue = storage_queue_open(f->storage, "otlp", &owner, &err);
	assert_non_null(f->queue);
}

static inline void wait_settled(struct fixture *f)
{
	for (int i = 0; i < 10000 && !storage_queue_settled(f->queue); i++)
		usleep(1000);
	assert_true(storage_queue_settled(f->queue));
}

static inline void end(struct fixture *f)
{
	if (f->queue) {
		storage_queue_end(f->queue);
		wait_settled(f);
		storage_queue_close(&f->queue);
	}
	storage_unref(&f->storage);
	storages_unref(&f->all);
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;
	metrics_unref(&f->metrics);
	assert_int_equal(shell("rm -rf %s", f->directory), 0);
	memory_free(f);
	return 0;
}

struct record {
	struct storage_entry entry;
	struct fixture *f;
	char text[32];
	char *large;
};

static inline struct record *record_of(struct storage_entry *entry)
{
	return (struct record *)((char *)entry - offsetof(struct record, entry));
}

static inline void on_done(struct storage_entry *entry, bool stored)
{
	struct fixture *f = record_of(entry)->f;
	(stored ? &f->done : &f->failed)[0]++;
}

static inline void on_release(struct storage_entry *entry)
{
	struct record *r = record_of(entry);
	r->f->released++;
	memory_free(r->large);
	memory_free(r);
}

static inline struct record *record_new(struct fixture *f, int number, size_t large)
{
	struct record *r = memory_new(sizeof *r);
	r->f = f;
	snprintf(r->text, sizeof r->text, "record %d;", number);
	r->large = memory_new(large + 1);
	r->entry.head = view_of(r->text);
	r->entry.body = (struct view){ (uint8_t *)r->large, large };
	r->entry.account = storage_queue_account(f->queue, "profiles");
	r->entry.samples = 10;
	r->entry.bytes = large;
	r->entry.done = on_done;
	r->entry.release = on_release;
	return r;
}

static inline struct record *append_large(struct fixture *f, int number, size_t large)
{
	struct record *r = record_new(f, number, large);
	if (storage_append(f->queue, &r->entry))
		return r;
	on_release(&r->entry);
	return NULL;
}

static inline struct record *append(struct fixture *f, int number)
{
	return append_large(f, number, 3);
}

/* Entries of records that stay on disk when the test ends. */
static inline void forget(struct record *r)
{
	memory_free(r->large);
	memory_free(r);
}

struct found {
	uint64_t sequence;
	size_t size;
	char text[32];
};

static inline void copy(void *context, uint64_t sequence, struct view record)
{
	struct found *found = context;
	*found = (struct found){ .sequence = sequence, .size = record.len };
	const char *end = memchr(record.at, ';', record.len);
	assert_non_null(end);
	memcpy(found->text, record.at, (size_t)((const uint8_t *)end - record.at));
}

/* All records in the queue, as their numbers: "1 2 3 ". */
static inline const char *contents(struct fixture *f)
{
	static char text[4096];
	struct found found;
	uint64_t from = 0;
	size_t len = 0;
	text[0] = '\0';
	while (storage_read(f->queue, from, copy, &found) == STORAGE_READ) {
		len += (size_t)snprintf(text + len, sizeof text - len, "%s ",
					found.text + strlen("record "));
		from = found.sequence + 1;
	}
	return text;
}

static inline int64_t value_of(struct fixture *f, const char *metric)
{
	struct bytes text;
	char line[256];
	snprintf(line, sizeof line, "%s{storage=\"file_storage\"} ", metric);
	bytes_init(&text, 1 << 20);
	metrics_write(f->metrics, &text);
	bytes_add_byte(&text, 0);
	const char *at = strstr((char *)text.at, line);
	int64_t value = at ? strtoll(at + strlen(line), NULL, 10) : -1;
	bytes_fini(&text);
	return value;
}

static inline int count_files(const struct fixture *f, const char *prefix)
{
	int count = 0;
	DIR *directory = opendir(f->directory);
	for (const struct dirent *d; (d = readdir(directory));)
		count += strncmp(d->d_name, prefix, strlen(prefix)) == 0;
	closedir(directory);
	return count;
}

#endif
