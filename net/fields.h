/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_FIELDS_H
#define NET_FIELDS_H

#include "base/bytes.h"
#include "base/error.h"
#include "profile/request.h"

/*
 * A short list of names and values that a sender chose: headers, query parameters, attributes in a
 * header. Its limits are set at creation. Exceeding them is an error that names the position and
 * the limit, never the content. Zeroed memory with limits set is a valid empty list.
 */
struct fields_limits {
	size_t count;       /* entries */
	size_t name, value; /* bytes of one */
	size_t total;       /* bytes of all names and values */
};

struct fields {
	const struct fields_limits *limits;
	struct bytes text; /* name NUL value NUL ... */
	size_t count;
	struct metadatum *at; /* made by fields_list */
};

void fields_init(struct fields *f, const struct fields_limits *limits);
void fields_fini(struct fields *f);

/* Appends an entry unchanged. Fails with ERROR_TOO_LARGE over a limit and ERROR_INVALID at a NUL
 * byte. */
bool fields_add(struct fields *f, struct view name, struct view value, struct error *err);

/*
 * Appends "a=1&b=x%20y+z", the query of a URL: '+' and percent escapes are decoded, empty parts are
 * skipped. Fails with ERROR_INVALID on an invalid escape, an empty name, and content that is not
 * UTF-8 or contains control characters.
 */
bool fields_add_query(struct fields *f, const char *query, struct error *err);

/* Appends "a=1,b=x%20y", the form of OTEL_RESOURCE_ATTRIBUTES; the same rules, but '+' is
 * literal. */
bool fields_add_pairs(struct fields *f, const char *pairs, struct error *err);

/* Checks that no name occurs twice; otherwise ERROR_INVALID with the position. Quadratic: for lists
 * of at most a hundred entries. */
bool fields_unique(struct fields *f, struct error *err);

/* The entries in order; ends with name == NULL. Valid until the next change. */
const struct metadatum *fields_list(struct fields *f);

/* Lower-cases the name of an ASCII header in place. */
void fields_lower(struct fields *f);

#endif
