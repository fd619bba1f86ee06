/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFIG_NODE_H
#define CONFIG_NODE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/*
 * The YAML as a tree with the position of every value. Built by config/load.h from all sources,
 * merged and expanded; read-only afterwards. Children belong to their parent; node_unref frees all.
 */
enum { PATH_TEXT = 200 }; /* longer paths are truncated */

enum node_kind { NODE_NULL, NODE_SCALAR, NODE_LIST, NODE_MAP };

struct node {
	enum node_kind kind;
	const char *source; /* file name as given, or "--set KEY"; lives as long as the tree */
	int line, column;   /* 1-based; 0: the source has only this value */
	char *key;          /* in a map: this entry's key */
	char *text;         /* of a scalar: the text after expansion */
	bool quoted;        /* always a string, whatever its content */
	char *verbatim;     /* the complete content of ${...}, for string fields; else NULL */
	/* If the value, or part of it, came from ${...}: the value as it was written, which
	 * messages show instead, because the content may be a secret. Shared like source. NULL: the
	 * value is as written in the source. */
	const char *reference;
	/* The first environment variable in ${...} of the value that is not set; NULL: there is
	 * none. Errors about the value name it. */
	char *unset;
	bool brought_key; /* the key came from ${...} too, with its map */
	bool broken;      /* could not be read, which has been reported: the value is not known */
	struct node **children;
	size_t count;
};

/* The entry of a map, NULL if absent (or if the node is not a map). */
const struct node *node_get(const struct node *map, const char *key);
/* The first entry below the node with this key and, as far as it goes, this value. Its path below
 * the node is appended to `path`, which has room for PATH_TEXT bytes. NULL: there is none. */
const struct node *node_find(const struct node *node, const char *key, const char *text,
			     char *path);
void node_unref(struct node **node);

/*
 * For building a tree. A new node has the position of `at`, or none if that is NULL. The name of a
 * source is shared by all its nodes and counted without atomics: a tree belongs to one thread while
 * it is built or freed.
 */
struct node *node_new(enum node_kind kind, const struct node *at);
void node_add(struct node *parent, struct node *child); /* takes child */
void node_remove(struct node *parent, size_t index);    /* frees the child */
struct node *node_copy(const struct node *node);
/* True if both are the same configuration after expansion. Positions, references, the order of a
 * map's entries and the keys of the two nodes themselves do not count. */
bool node_equal(const struct node *a, const struct node *b);
/* Gives the node and all nodes below it the position of `at`. */
void node_place(struct node *node, const struct node *at);
/* Marks the node, and all nodes below it with their keys, as coming from ${...}. */
void node_refer(struct node *node, const char *reference);
/* A new shared string for source or reference. The caller owns one reference count. */
const char *node_source(const char *name);
void node_source_unref(const char **source);

/* A scalar's text, and an entry's key, as messages may show them. */
const char *node_shown(const struct node *node);
const char *node_shown_key(const struct node *entry);

/*
 * A position in a tree, as a list on the stack, rendered only for errors: "exporters::file::path",
 * "resource::attributes[2]::key". key NULL means the index.
 */
struct path {
	const struct path *up;
	const char *key;
	size_t index;
};

const char *path_text(const struct path *path, char out[PATH_TEXT]); /* returns out */
/* The step to an entry of a map or list: by its key, or by its index if the key came from
 * ${...}. */
struct path path_step(const struct path *up, const struct node *entry, size_t index);

/* err = "file:line:column: path: text", or "--set KEY: path: text"; returns false. path may be "".
 * If the value has a variable that is not set, or one that is not expanded, the text ends with
 * that. */
bool node_error(const struct node *at, const char *path, struct error *err, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#endif
