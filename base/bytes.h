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
 */
#define BYTES_SLACK 32

struct bytes {
	uint8_t *at;
	size_t len, room, max;
};

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

/* Makes room for `more` bytes after len; false if that would exceed the maximum. */
bool bytes_enlarge(struct bytes *b, size_t more);

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
