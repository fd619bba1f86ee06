/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CONFIG_FIXTURE_H
#define TESTS_CONFIG_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <limits.h>
#include <string.h>

#include "base/memory.h"
#include "config/load.h"
#include "config/print.h"
#include "config/table.h"

/* A component's configuration that has a row of every type. */
struct item_config {
	char *key;
	struct config_any value;
};

struct tls_config {
	struct optional optional;
	char *ca_file;
	bool insecure;
};

struct queue_config {
	struct optional optional;
	int64_t queue_size;
	struct choice sizer;
};

struct deep_config {
	struct duration wait;
	struct tls_config tls;
};

struct whole_config {
	bool on;
	int64_t size;
	double factor;
	char *path;
	struct duration timeout;
	struct duration offset;
	struct secret token;
	struct strings keys;
	struct pairs headers;
	struct choice level;
	const struct node *raw;
	struct config_any any;
	struct deep_config deep;
	struct queue_config queue;
	struct tls_config batch;
	struct config_items actions;
	struct config_items named;
	int64_t buffer;
};

static const struct config_row item_rows[] = {
	CONFIG_ROW(struct item_config, key, .key = "key", .required = true, .help = "Which."),
	CONFIG_ROW(struct item_config, value, .key = "value", .help = "What."),
	{ 0 }
};
static const struct config_table item_table = { sizeof(struct item_config), item_rows };

static const struct config_row tls_rows[] = {
	CONFIG_ROW(struct tls_config, ca_file, .key = "ca_file", .help = "Roots."),
	CONFIG_ROW(struct tls_config, insecure, .key = "insecure", .help = "Plaintext."),
	{ 0 }
};
static const struct config_table tls_table = { sizeof(struct tls_config), tls_rows,
					       .optional = true };

static const char *const sizers[] = { "requests", "items", "bytes", NULL };
static const struct config_row queue_rows[] = {
	CONFIG_ROW(struct queue_config, queue_size, .key = "queue_size", .def = "1000",
		   .limited = true, .min = 1, .help = "How many."),
	CONFIG_ROW(struct queue_config, sizer, .key = "sizer", .def = "items", .choices = sizers,
		   .help = "Of what."),
	{ 0 }
};
static const struct config_table queue_table = { sizeof(struct queue_config), queue_rows,
						 .optional = true };

static const struct config_row deep_rows[] = {
	CONFIG_ROW(struct deep_config, wait, .key = "wait", .def = "1m30s", .help = "How long."),
	CONFIG_SECTION(struct deep_config, tls, tls_table, .key = "tls", .presence = PRESENCE_NONE,
		       .help = "TLS."),
	{ 0 }
};
static const struct config_table deep_table = { sizeof(struct deep_config), deep_rows };

static const char *const levels[] = { "", "basic", "detailed", NULL };

static inline void check_whole(const void *config, struct faults *faults)
{
	const struct whole_config *c = config;
	if (c->size == 13)
		faults_add(faults, "'size' must not be thirteen");
}

static const struct config_row whole_rows[] = {
	CONFIG_ROW(struct whole_config, on, .key = "on", .def = "true", .help = "Whether."),
	CONFIG_ROW(struct whole_config, size, .key = "size", .def = "4", .limited = true, .min = 0,
		   .max = 100, .help = "Size | in pieces."),
	CONFIG_ROW(struct whole_config, factor, .key = "factor", .def = "0.5", .help = "Factor."),
	CONFIG_ROW(struct whole_config, path, .key = "path", .help = "Path."),
	CONFIG_ROW(struct whole_config, timeout, .key = "timeout", .def = "5s", .help = "Timeout."),
	CONFIG_ROW(struct whole_config, offset, .key = "offset", .limited = true, .min = INT64_MIN,
		   .max = INT64_MAX, .help = "May be negative."),
	CONFIG_ROW(struct whole_config, token, .key = "token", .help = "Secret."),
	CONFIG_ROW(struct whole_config, keys, .key = "keys", .def = "[a, b]", .help = "Keys."),
	CONFIG_ROW(struct whole_config, headers, .key = "headers", .help = "Headers."),
	CONFIG_ROW(struct whole_config, level, .key = "level", .def = "basic", .choices = levels,
		   .help = "Level."),
	CONFIG_ROW(struct whole_config, raw, .key = "raw", .help = "Anything."),
	CONFIG_ROW(struct whole_config, any, .key = "any", .help = "A scalar."),
	CONFIG_SECTION(struct whole_config, deep, deep_table, .key = "deep", .help = "Deep."),
	CONFIG_SECTION(struct whole_config, queue, queue_table, .key = "queue",
		       .presence = PRESENCE_SOME, .help = "Queue."),
	CONFIG_SECTION(struct whole_config, batch, tls_table, .key = "batch",
		       .presence = PRESENCE_DEFAULT, .help = "Batch."),
	CONFIG_ITEMS(struct whole_config, actions, CONFIG_LIST, item_table, .key = "actions",
		     .help = "List."),
	CONFIG_ITEMS(struct whole_config, named, CONFIG_MAP, item_table, .key = "named",
		     .help = "Map."),
	CONFIG_ROW(struct whole_config, buffer, .key = "buffer", .inert = true,
		   .help = "Not needed here."),
	{ .key = "old_size", .alias_of = "size", .help = "Old name." },
	{ 0 }
};
static const struct config_table whole_table = { sizeof(struct whole_config), whole_rows,
						 check_whole };

/* Parses and binds; the text of the error, or "" when it went well. */
static inline const char *bind_text(const char *yaml, struct whole_config *config,
				    struct node **tree)
{
	static struct error err;
	error_clear(&err);
	*config = (struct whole_config){ 0 };
	*tree = config_parse("c.yaml", yaml, strlen(yaml), &err);
	if (*tree)
		config_bind(&whole_table, *tree, "exporters::file", config, &err);
	return err.text;
}

static inline void release(struct whole_config *config, struct node **tree)
{
	config_release(&whole_table, config);
	node_unref(tree);
}

#endif
