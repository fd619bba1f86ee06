/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * A growable buffer with a maximum that is set at creation, so a peer cannot make it grow without
 * bound. Exceeding the maximum is an ordinary failure (false). Every buffer keeps BYTES_SLACK
 * readable and writable bytes after its end, so that short copies may move 16 bytes at a time.
 *
 * A buffer whose size is not known in advance may have a meter. Its maximum is then what the owner
 * has charged so far, and the meter is asked to raise it.
 */
#define BYTES_SLACK 32

struct bytes_meter;

struct bytes {
	uint8_t *at;
	size_t len, room, max;
	struct bytes_meter *meter; /* NULL: the maximum is final */
};

/* The first member of the owner's struct. */
struct bytes_meter {
	/* `need` bytes must fit. Sets b->max to at least that, or returns false and remembers the
	 * reason. */
	bool (*raise)(struct bytes_meter *meter, struct bytes *b, size_t need);
};

/*
 * Keeps a part of what is charged for a buffer for something else that its owner needs meanwhile:
 * between the two calls, the meter is asked for `held` bytes more than the buffer needs. False if
 * that is not available. A buffer without a meter has no charge, and nothing happens.
 */
struct bytes_share {
	struct bytes_meter meter;
	struct bytes_meter *whole;
	size_t held;
};

bool bytes_share(struct bytes_share *share, struct bytes *b, size_t held);
void bytes_unshare(struct bytes_share *share, struct bytes *b);

/* Bytes that somebody else owns. */
struct view {
	const uint8_t *at;
	size_t len;
};

static inline void bytes_init(struct bytes *b, size_t max)
{
	*b = (struct bytes){ .max = max };
}

void bytes_fini(struct bytes *b);

/* Makes room for `more` bytes after len, and clears it; false if that would exceed the maximum. */
bool bytes_enlarge(struct bytes *b, size_t more);
/* The same without clearing the room, for large outputs of which the caller writes each byte. */
bool bytes_enlarge_raw(struct bytes *b, size_t more);

/* Releases the unused room after len, for buffers that are kept and will not grow. */
void bytes_trim(struct bytes *b);

static inline bool bytes_reserve(struct bytes *b, size_t more)
{
	return more <= b->room - b->len || bytes_enlarge(b, more);
}

static inline bool bytes_add(struct bytes *b, const void *data, size_t len)
{
	if (!bytes_reserve(b, len))
		return false;
	if (len)
		memcpy(b->at + b->len, data, len);
	b->len += len;
	return true;
}

static inline bool bytes_add_byte(struct bytes *b, uint8_t byte)
{
	return bytes_add(b, &byte, 1);
}

static inline bool bytes_add_text(struct bytes *b, const char *text)
{
	return bytes_add(b, text, strlen(text));
}

bool bytes_format(struct bytes *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

static inline struct view bytes_view(const struct bytes *b)
{
	return (struct view){ b->at, b->len };
}

static inline struct view view_of(const char *text)
{
	return (struct view){ (const uint8_t *)text, strlen(text) };
}

static inline bool view_is(struct view v, const char *text)
{
	return v.len == strlen(text) && (!v.len || memcmp(v.at, text, v.len) == 0);
}

static inline bool view_equal(struct view a, struct view b)
{
	return a.len == b.len && (!a.len || a.at == b.at || memcmp(a.at, b.at, a.len) == 0);
}

#endif
