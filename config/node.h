/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFIG_NODE_H
#define CONFIG_NODE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/*
 * The YAML as a tree that remembers where everything stood. Built by config/load.h from all
 * sources, merged and expanded; read-only afterwards. Children belong to their parent; node_unref
 * frees all.
 */
enum node_kind { NODE_NULL, NODE_SCALAR, NODE_LIST, NODE_MAP };

struct node {
	enum node_kind kind;
	const char *source; /* file name as given, or "--set"; lives as long as the tree */
	int line, column;   /* 1-based */
	char *key;          /* in a map: this entry's key */
	char *text;         /* of a scalar: the text after expansion */
	bool quoted;        /* a string whatever it looks like */
	char *verbatim;     /* what a string field gets: all that ${...} brought; else NULL */
	/* Where ${...} brought the value, or part of it: the value as it was written, which
	 * messages show in its place, for what was brought may be a secret. Shared like source;
	 * NULL: as it stands in the source. */
	const char *reference;
	bool brought_key; /* ${...} brought the key too, with the map that it stands in */
	struct node **children;
	size_t count;
};

/* The entry of a map, NULL if absent (or if the node is no map). */
const struct node *node_get(const struct node *map, const char *key);
void node_unref(struct node **node);

/*
 * For those who build a tree. A node begins at the place of `at`, or nowhere when that is NULL. The
 * name of a source is shared by all its nodes and counted without atomics: a tree belongs to one
 * thread while it is built or freed.
 */
struct node *node_new(enum node_kind kind, const struct node *at);
void node_add(struct node *parent, struct node *child); /* takes child */
struct node *node_copy(const struct node *node);
/* Puts the node and all below it at the place of `at`. */
void node_place(struct node *node, const struct node *at);
/* Says of the node, and of all below it with their keys, that ${...} brought them. */
void node_refer(struct node *node, const char *reference);
/* A fresh shared text for source or reference, of which the caller owns one count. */
const char *node_source(const char *name);
void node_source_unref(const char **source);

/* A scalar's text, and an entry's key, as messages may show them. */
const char *node_shown(const struct node *node);
const char *node_shown_key(const struct node *entry);

/*
 * Where we are in a tree, as a list on the stack, rendered only for errors:
 * "exporters::file::path", "resource::attributes[2]::key". key NULL means the index.
 */
struct path {
	const struct path *up;
	const char *key;
	size_t index;
};

enum { PATH_TEXT = 200 }; /* what is longer is cut */

const char *path_text(const struct path *path, char out[PATH_TEXT]); /* returns out */
/* The step to an entry of a map or list: by its key, or by its index where ${...} brought the key.
 */
struct path path_step(const struct path *up, const struct node *entry, size_t index);

/* err = "file:line:column: path: text"; returns false. path may be "". */
bool node_error(const struct node *at, const char *path, struct error *err, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#endif
