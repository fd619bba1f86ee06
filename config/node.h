/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFIG_NODE_H
#define CONFIG_NODE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/*
 * The YAML as a tree that remembers where everything stood. Built by config/load.h from all sources,
 * merged and expanded; read-only afterwards. Children belong to their parent; node_unref frees all.
 */
enum node_kind { NODE_NULL, NODE_SCALAR, NODE_LIST, NODE_MAP };

struct node {
	enum node_kind kind;
	const char *source; /* file name as given, or "--set"; lives as long as the tree */
	int line, column;   /* 1-based */
	char *key;          /* in a map: this entry's key */
	char *text;         /* of a scalar: the text after expansion, verbatim */
	bool quoted;        /* a string whatever it looks like */
	bool expanded;      /* came from ${...}: into a string field its text is taken verbatim */
	struct node **children;
	size_t count;
};

/* The entry of a map, NULL if absent (or if the node is no map). */
const struct node *node_get(const struct node *map, const char *key);
void node_unref(struct node **node);

/* err = "file:line:column: path: text"; returns false. path like "exporters::otlp::timeout", may be "". */
bool node_error(const struct node *at, const char *path, struct error *err, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#endif
