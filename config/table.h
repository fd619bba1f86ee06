/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFIG_TABLE_H
#define CONFIG_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/faults.h"
#include "config/node.h"
#include "config/problems.h"
#include "config/suggest.h"

/*
 * Typed tables: one row per key, with everything about the key: member, default, range, help. The C
 * type of the member selects the parser (_Generic), so a row and its member cannot disagree.
 * Defaults are written as in YAML and use the same parser. The manual, `validate`, `print-config`
 * and the struct are all derived from these tables.
 *
 *	struct file_config { char *path; struct duration flush_interval; struct rotation_config
 *	rotation; };
 *
 *	static const struct config_row file_rows[] = { CONFIG_ROW(struct file_config, path, .key =
 *		"path", .help = "Where to write.", .required = true), CONFIG_ROW(struct file_config,
 *		flush_interval, .key = "flush_interval", .def = "1s", .help = "..."),
 *		CONFIG_SECTION(struct file_config, rotation, rotation_table, .key = "rotation",
 *		.help = "..."), { 0 }
 *	}; static const struct config_table file_table = { sizeof(struct file_config), file_rows,
 *	check_file };
 *
 * Typing is strict, as in the Collector: an integer for a string is an error, a quoted number for
 * an integer too; a plain string is split at "," where a list of strings is expected; durations are
 * Go's ("300ms", "1h30m"; a unit is mandatory). Unknown keys are errors: 'exporters::file' has
 * invalid keys: x.
 */
struct duration {
	int64_t ns;
};

struct secret { /* printed as [REDACTED] */
	char *text;
};

struct strings {
	char **at;
	size_t count;
};

struct secrets { /* each printed as [REDACTED] */
	struct strings list;
};

struct pair {
	char *name;
	struct secret value;
};

struct pairs { /* a map {k: v} or a list of {name, value}: headers */
	struct pair *at;
	size_t count;
};

struct choice { /* one of the row's choices, as its index */
	int index;
};

/* An optional section, as in the Collector: the struct of a section that may be absent starts with
 * it. */
struct optional {
	bool enabled;
};

enum config_type {
	CONFIG_BOOL,     /* bool */
	CONFIG_INT,      /* int64_t */
	CONFIG_DOUBLE,   /* double */
	CONFIG_STRING,   /* char *; NULL when absent and without default */
	CONFIG_DURATION, /* struct duration */
	CONFIG_SECRET,   /* struct secret */
	CONFIG_STRINGS,  /* struct strings */
	CONFIG_SECRETS,  /* struct secrets */
	CONFIG_PAIRS,    /* struct pairs */
	CONFIG_CHOICE,   /* struct choice */
	CONFIG_NODE,     /* const struct node *: the raw subtree (borrowed), NULL when absent */
	CONFIG_TABLE,    /* a nested struct */
	CONFIG_LIST,     /* struct config_items: a list of structs */
	CONFIG_MAP,      /* struct config_items: a map of name -> struct */
	/* struct config_any: a scalar, list or map of any types, for attribute values */
	CONFIG_ANY
};

struct config_any {
	enum { ANY_ABSENT, ANY_STRING, ANY_INT, ANY_DOUBLE, ANY_BOOL, ANY_TREE } kind;
	char *text;
	int64_t integer; /* also the bool */
	double number;
	const struct node *tree; /* a list or map; borrowed */
};

struct config_items {
	void *at;     /* count structs of table->size bytes */
	char **names; /* of a map; NULL for a list */
	size_t count;
};

enum config_presence {
	PRESENCE_PLAIN,   /* an ordinary section: always present */
	PRESENCE_NONE,    /* optional, absent unless the key has a non-null body */
	PRESENCE_DEFAULT, /* optional, absent until the key appears, even as `key:` */
	PRESENCE_SOME     /* optional, present by default */
};

/* What a string is outside of the configuration, for checks that know nothing of the component. */
enum config_role {
	ROLE_NONE,
	/* host:port to listen on; a key `transport` beside it may make it the path of a socket */
	ROLE_LISTENS,
	ROLE_CONNECTS, /* host:port or the URL of a destination; or a list of these */
	ROLE_WRITES_FILE,
	ROLE_WRITES_LOG, /* a file in a directory that exists, or log_is_stream; a list of these */
	ROLE_WRITES_DIRECTORY
};

struct config_row {
	const char *key;
	const char *help; /* one sentence; ends in the manual */
	const char *def;  /* as YAML; NULL: zero, empty, absent */
	const char *unit; /* for the manual */
	enum config_type type;
	size_t offset;
	bool required;
	/* accepted without effect; help says why. Listed in the manual, logged once */
	bool inert;
	bool limited; /* check the number against min and max; max < min: no maximum */
	int64_t min, max;
	const char *const *choices; /* NULL-terminated */
	const struct config_table *table;
	enum config_presence presence;
	enum config_role role;
	/* a deprecated spelling of that key: no other member of the row is used */
	const char *alias_of;
};

struct config_table {
	size_t size;
	const struct config_row *rows; /* key == NULL ends */
	/* Rules beyond type and range (config/faults.h). Asked for each section that is there. A
	 * string without a default, also a required one, may be NULL; an entry of a list that
	 * could not be bound is empty. May be NULL. */
	void (*check)(const void *config, struct faults *faults);
	/* Set when the struct starts with struct optional. */
	bool optional;
	const struct config_hint *hints; /* about keys that it does not have; may be NULL */
};

/* clang-format off */
#define CONFIG_TYPE_OF(member) \
	_Generic((member), bool: CONFIG_BOOL, int64_t: CONFIG_INT, double: CONFIG_DOUBLE, char *: CONFIG_STRING, \
		 struct duration: CONFIG_DURATION, struct secret: CONFIG_SECRET, struct strings: CONFIG_STRINGS, struct secrets: CONFIG_SECRETS, \
		 struct pairs: CONFIG_PAIRS, struct choice: CONFIG_CHOICE, const struct node *: CONFIG_NODE, \
		 struct config_any: CONFIG_ANY)
/* clang-format on */

#define CONFIG_ROW(struct_type, member, ...) \
	{ \
		.type = CONFIG_TYPE_OF(((struct_type *)0)->member), \
		.offset = offsetof(struct_type, member), __VA_ARGS__ \
	}
#define CONFIG_SECTION(struct_type, member, sub_table, ...) \
	{ \
		.type = CONFIG_TABLE, \
		.offset = offsetof(struct_type, member) + \
			  0 * sizeof(char[sizeof(((struct_type *)0)->member)]), \
		.table = &(sub_table), __VA_ARGS__ \
	}
/* clang-format off */
#define CONFIG_ITEMS(struct_type, member, kind, sub_table, ...) \
	{ .type = (kind), \
	  .offset = offsetof(struct_type, member) + \
		    0 * _Generic(((struct_type *)0)->member, struct config_items: 1), \
	  .table = &(sub_table), __VA_ARGS__ }
/* clang-format on */

/*
 * Binds a node to a zeroed struct of table->size bytes: defaults first, then the node's keys, then
 * check. path names the section in errors ("receivers::otlp"). node may be NULL or null: all
 * defaults. After a failure, config_release must still be called.
 */
bool config_bind(const struct config_table *table, const struct node *node, const char *path,
		 void *config, struct error *err);
void config_release(const struct config_table *table, void *config);

/* The same with all errors, one for each key and each entry of a list that has one. */
bool config_bind_all(const struct config_table *table, const struct node *node, const char *path,
		     void *config, struct problems *problems);

/*
 * Gives an error about a section its place. `why` begins with the key that is at fault, if it is
 * about one: "tls: cert_file: cannot read ...", "list[2]::key: must be ..." or "`key` must be ...".
 * err gets the position of that key in the file, or of the closest one around it that is set, and
 * the path to it. Returns false.
 */
bool config_blame(const struct config_table *table, const struct node *node, const char *path,
		  const struct error *why, struct error *err);

/* The row of a key, which is no old name; NULL: the table has none. */
const struct config_row *config_find_row(const struct config_table *table, const char *key);

/* One row of a bound struct. */
struct config_spot {
	const struct config_table *table;
	const struct config_row *row;
	const void *config;         /* the struct of the section */
	const void *member;         /* the row's in it */
	const struct node *section; /* NULL: it is not in the file */
	const struct node *node; /* the entry in the file, or the closest around it; may be NULL */
	bool given;              /* it is the entry */
	const char *path;        /* of the row */
};

/* Is the text one of the list, in the same case? */
bool config_lists(const struct strings *list, const char *text);

/* Visits all rows of a bound struct, sections that are there and their rows included. */
void config_walk(const struct config_table *table, const void *config, const struct node *node,
		 const char *path, void (*visit)(void *context, const struct config_spot *spot),
		 void *context);

/* Calls `inert` for each inert key that the node sets (path of the key). */
void config_each_inert(const struct config_table *table, const struct node *node, const char *path,
		       void (*inert)(void *context, const char *path, const struct config_row *row),
		       void *context);

#endif
