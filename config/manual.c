/* SPDX-License-Identifier: Apache-2.0 */
#include "config/print.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const char *const type_names[] = {
	[CONFIG_BOOL] = "bool",
	[CONFIG_INT] = "integer",
	[CONFIG_DOUBLE] = "number",
	[CONFIG_STRING] = "string",
	[CONFIG_DURATION] = "duration",
	[CONFIG_SECRET] = "secret",
	[CONFIG_STRINGS] = "list of strings",
	[CONFIG_SECRETS] = "list of secrets",
	[CONFIG_PAIRS] = "map of strings",
	[CONFIG_CHOICE] = "one of",
	[CONFIG_NODE] = "any",
	[CONFIG_TABLE] = "section",
	[CONFIG_LIST] = "list of sections",
	[CONFIG_MAP] = "map of sections",
	[CONFIG_ANY] = "scalar, list or map",
};

/* A table cell: "|" would end it. */
static void add_cell(struct bytes *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '|')
			bytes_add_byte(out, '\\');
		bytes_add_byte(out, *text == '\n' ? ' ' : (uint8_t)*text);
	}
}

static void add_code(struct bytes *out, const char *text)
{
	bytes_add_text(out, "`");
	add_cell(out, text);
	bytes_add_text(out, "`");
}

static void add_bound(struct bytes *out, const struct config_row *row, int64_t bound)
{
	if (row->type == CONFIG_DURATION)
		bytes_format(out, "%lldms", (long long)(bound / 1000000));
	else
		bytes_format(out, "%lld", (long long)bound);
}

static void add_range(struct bytes *out, const struct config_row *row)
{
	bool open = row->max < row->min || row->max == INT64_MAX;
	if (!row->limited || (open && row->min == INT64_MIN))
		return;
	bytes_add_text(out, ", ");
	add_bound(out, row, row->min);
	bytes_add_text(out, open ? " or more" : " to ");
	if (!open)
		add_bound(out, row, row->max);
}

static void add_type(struct bytes *out, const struct config_row *row)
{
	static const char *const presences[] = {
		[PRESENCE_PLAIN] = "",
		[PRESENCE_NONE] = ", absent unless given",
		[PRESENCE_DEFAULT] = ", absent until the key appears",
		[PRESENCE_SOME] = ", on unless `enabled: false`",
	};
	bytes_add_text(out, type_names[row->type]);
	for (size_t i = 0; row->type == CONFIG_CHOICE && row->choices[i]; i++) {
		bytes_add_text(out, i ? ", " : " ");
		add_code(out, row->choices[i][0] ? row->choices[i] : "\"\"");
	}
	if (row->type == CONFIG_TABLE)
		bytes_add_text(out, presences[row->presence]);
	if (row->unit)
		bytes_format(out, ", %s", row->unit);
	add_range(out, row);
}

static void add_default(struct bytes *out, const struct config_row *row)
{
	if (row->required)
		bytes_add_text(out, "required");
	else if (row->def)
		add_code(out, row->def[0] ? row->def : "\"\"");
	else if (row->type == CONFIG_CHOICE)
		add_code(out, row->choices[0][0] ? row->choices[0] : "\"\"");
	else if (row->type == CONFIG_BOOL)
		add_code(out, "false");
	else if (row->type == CONFIG_INT || row->type == CONFIG_DOUBLE ||
		 row->type == CONFIG_DURATION)
		add_code(out, row->type == CONFIG_DURATION ? "0s" : "0");
	else
		bytes_add_text(out, "–");
}

static void add_meaning(struct bytes *out, const struct config_row *row)
{
	if (row->alias_of)
		bytes_format(out, "Old name of `%s`. ", row->alias_of);
	if (row->inert)
		bytes_add_text(out, "**Accepted, no effect.** ");
	add_cell(out, row->help ? row->help : "");
}

/* Where keys were printed already: in shared sections, or for an earlier row of this manual. */
struct printing {
	const struct config_manual_section *shared;
	struct bytes prefix;
	struct {
		const struct config_table *table;
		char path[128];
	} printed[32];
	size_t count;
};

static const struct config_manual_section *find_section(const struct config_manual_section *list,
							const struct config_table *table)
{
	while (list && list->title && list->table != table)
		list++;
	return list && list->title ? list : NULL;
}

static void add_link(struct bytes *out, const char *title)
{
	bytes_format(out, "[%s](#", title);
	for (; *title; title++)
		if (*title != '`')
			bytes_add_byte(out, *title == ' ' ? '-' : (uint8_t)tolower(*title));
	bytes_add_text(out, ")");
}

/* Says where the keys of the row's table are; false: nowhere, they are to be printed now. */
static bool add_reference(struct bytes *out, struct printing *p, const struct config_row *row)
{
	const struct config_manual_section *section = find_section(p->shared, row->table);
	if (section) {
		bytes_add_text(out, " Keys: ");
		add_link(out, section->title);
		bytes_add_text(out, ".");
		return true;
	}
	for (size_t i = 0; p->shared && i < p->count; i++) {
		if (p->printed[i].table != row->table)
			continue;
		bytes_format(out, " Keys: as of `%s`.", p->printed[i].path);
		return true;
	}
	return false;
}

static void remember(struct printing *p, const struct config_table *table)
{
	if (p->count == sizeof p->printed / sizeof *p->printed)
		return;
	p->printed[p->count].table = table;
	snprintf(p->printed[p->count].path, sizeof p->printed->path, "%.*s", (int)p->prefix.len,
		 (const char *)p->prefix.at);
	p->count++;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* Is this row, with this default, one of the section's? */
static bool is_embedded(const struct config_manual_section *section, const struct config_row *row)
{
	const struct config_row *other = section->table->rows;
	while (other->key &&
	       (strcmp(other->key, row->key) != 0 || !same_text(other->help, row->help)))
		other++;
	return other->key && same_text(other->def, row->def);
}

/* The section whose rows the table repeats among its own (HTTP_SERVER_ROWS), or NULL. */
static const struct config_manual_section *find_embedded(const struct config_manual_section *list,
							 const struct config_table *table)
{
	for (; list && list->title; list++) {
		size_t rows = 0, embedded = 0;
		for (const struct config_row *row = table->rows; row->key; row++)
			embedded += list->table != table && is_embedded(list, row);
		while (list->table->rows[rows].key)
			rows++;
		if (embedded > rows / 2)
			return list;
	}
	return NULL;
}

static void add_rows(struct bytes *out, const struct config_table *table, struct printing *p);

static void add_row(struct bytes *out, const struct config_row *row, struct printing *p)
{
	static const char *const joints[] = {
		[CONFIG_TABLE] = ".", [CONFIG_LIST] = "[].", [CONFIG_MAP] = ".<name>."
	};
	bytes_format(out, "| `%.*s%s` | ", (int)p->prefix.len,
		     p->prefix.len ? (const char *)p->prefix.at : "", row->key);
	if (!row->alias_of)
		add_type(out, row);
	bytes_add_text(out, " | ");
	if (!row->alias_of)
		add_default(out, row);
	bytes_add_text(out, " | ");
	add_meaning(out, row);
	bool done = row->alias_of || row->inert || !row->table || add_reference(out, p, row);
	const struct config_manual_section *section =
		done ? NULL : find_embedded(p->shared, row->table);
	if (section) {
		bytes_add_text(out, " Besides those below, it has the keys of ");
		add_link(out, section->title);
		bytes_add_text(out, ".");
	}
	bytes_add_text(out, " |\n");
	if (done)
		return;
	size_t mark = p->prefix.len;
	bytes_format(&p->prefix, "%s", row->key);
	remember(p, row->table);
	bytes_add_text(&p->prefix, joints[row->type]);
	add_rows(out, row->table, p);
	p->prefix.len = mark;
}

static void add_rows(struct bytes *out, const struct config_table *table, struct printing *p)
{
	const struct config_manual_section *section = find_embedded(p->shared, table);
	for (const struct config_row *row = table->rows; row->key; row++)
		if (!section || !is_embedded(section, row))
			add_row(out, row, p);
	if (section && !p->prefix.len) {
		bytes_add_text(out, "\nBesides these, the keys of ");
		add_link(out, section->title);
		bytes_add_text(out, ", at the same level.\n");
	}
}

void config_manual(const struct config_table *table, const struct config_manual_section *shared,
		   struct bytes *out)
{
	struct printing p = { .shared = shared };
	bytes_init(&p.prefix, 4096);
	bytes_add_text(out, "| key | type | default | meaning |\n|---|---|---|---|\n");
	add_rows(out, table, &p);
	bytes_fini(&p.prefix);
}
