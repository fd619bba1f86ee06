/* SPDX-License-Identifier: Apache-2.0 */
#include "config/print.h"

#include <string.h>

static const char *const type_names[] = {
	[CONFIG_BOOL] = "bool",
	[CONFIG_INT] = "integer",
	[CONFIG_DOUBLE] = "number",
	[CONFIG_STRING] = "string",
	[CONFIG_DURATION] = "duration",
	[CONFIG_SECRET] = "secret",
	[CONFIG_STRINGS] = "list of strings",
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

static void add_rows(struct bytes *out, const struct config_table *table, struct bytes *prefix)
{
	static const char *const joints[] = {
		[CONFIG_TABLE] = ".", [CONFIG_LIST] = "[].", [CONFIG_MAP] = ".<name>."
	};
	for (const struct config_row *row = table->rows; row->key; row++) {
		bytes_format(out, "| `%.*s", (int)prefix->len,
			     prefix->len ? (const char *)prefix->at : "");
		bytes_format(out, "%s` | ", row->key);
		if (!row->alias_of)
			add_type(out, row);
		bytes_add_text(out, " | ");
		if (!row->alias_of)
			add_default(out, row);
		bytes_add_text(out, " | ");
		add_meaning(out, row);
		bytes_add_text(out, " |\n");
		if (row->alias_of || row->inert || !row->table)
			continue;
		size_t mark = prefix->len;
		bytes_format(prefix, "%s%s", row->key, joints[row->type]);
		add_rows(out, row->table, prefix);
		prefix->len = mark;
	}
}

void config_manual(const struct config_table *table, struct bytes *out)
{
	struct bytes prefix;
	bytes_init(&prefix, 4096);
	bytes_add_text(out, "| key | type | default | meaning |\n|---|---|---|---|\n");
	add_rows(out, table, &prefix);
	bytes_fini(&prefix);
}
