/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * An error that the outside world caused (assert is for our own bugs). Flat and owned by the
 * caller, so that reporting an error never allocates. A function that can fail returns bool and
 * takes the error as its last parameter. The kind says who must act; the text is one complete
 * sentence without a trailing full stop.
 *
 * The text may reach senders, logs and metrics. It names fields, indices and limits, and never
 * contains a byte that a sender sent.
 */
enum error_kind {
	ERROR_NONE,
	ERROR_CONFIG,  /* the operator: configuration, files, ports */
	ERROR_INVALID, /* the sender: malformed (400, INVALID_ARGUMENT) */
	/* the sender: over a limit (413, RESOURCE_EXHAUSTED without RetryInfo) */
	ERROR_TOO_LARGE,
	ERROR_UNSUPPORTED,     /* the sender: encoding or media type (415, UNIMPLEMENTED) */
	ERROR_UNAUTHENTICATED, /* the sender: credentials (401, UNAUTHENTICATED) */
	ERROR_FORBIDDEN,       /* the operator does not want it (403, PERMISSION_DENIED) */
	/* nobody: try later (503 and UNAVAILABLE, or if over_quota 429 and RESOURCE_EXHAUSTED; with
	 * Retry-After or RetryInfo) */
	ERROR_BUSY,
	ERROR_INTERNAL /* us (500, INTERNAL) */
};

/* Where an error is: its text begins with this number of bytes of a source's name, and with
 * ":line:column" unless line is 0. A length of 0: the place is not known. */
struct error_place {
	size_t source_len;
	int line, column;
};

struct error {
	enum error_kind kind;
	struct error_place place; /* of an error of the configuration (node_error) */
	uint32_t retry_after_ms;  /* of ERROR_BUSY; 0 means one second */
	bool short_of_memory;     /* of ERROR_BUSY */
	bool over_quota;          /* of ERROR_BUSY: the sender has used up its quota */
	char text[400];
};

/* Fills err (which may be NULL) and returns false, so that `return error_set(...)` reads well. */
bool error_set(struct error *err, enum error_kind kind, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts "prefix: " before the existing text, which then no longer begins with a place; returns
 * false. */
bool error_prefix(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

static inline void error_clear(struct error *err)
{
	err->kind = ERROR_NONE;
	err->place = (struct error_place){ 0 };
	err->retry_after_ms = 0;
	err->short_of_memory = err->over_quota = false;
	err->text[0] = '\0';
}

#endif
