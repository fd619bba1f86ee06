/* SPDX-License-Identifier: Apache-2.0 */
#include "config/faults.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "config/blame.h"

/* Nothing can be said about this key: it has an error, or it may stand where nobody can read it. */
static bool is_unknown(const struct faults *f, const struct blame *b)
{
	if (b->lost)
		return b->misspelt || f->problems->incomplete;
	return problems_touch(f->problems, b->node);
}

bool faults_know(const struct faults *faults, const char *key)
{
	struct blame b = blame_begin(faults->table, faults->node, faults->path);
	char text[PATH_TEXT];
	snprintf(text, sizeof text, "%s: ", key);
	blame_descend(&b, text);
	assert(b.keyed || !faults->table);
	return !faults->table || !is_unknown(faults, &b);
}

static bool depends_on_unknown(const struct faults *f, const char *others)
{
	for (size_t len; *others; others += len + (others[len] == ' ')) {
		len = strcspn(others, " ");
		char key[PATH_TEXT];
		snprintf(key, sizeof key, "%.*s", (int)len, others);
		if (!faults_know(f, key))
			return true;
	}
	return false;
}

static bool place(struct faults *f, const char *others, const struct error *why)
{
	struct blame b = blame_begin(f->table, f->node, f->path);
	struct error placed;
	const char *text = blame_descend(&b, why->text);
	bool follows = b.keyed ? is_unknown(f, &b) : f->problems->incomplete;
	if (follows || depends_on_unknown(f, others))
		return false;
	node_error(b.node, b.path, &placed, "%s", text);
	return problems_add_at(f->problems, b.lost ? NULL : b.node, &placed);
}

bool faults_take(struct faults *faults, const struct error *why)
{
	return place(faults, "", why);
}

bool faults_add(struct faults *faults, const char *format, ...)
{
	struct error why = { .kind = ERROR_CONFIG };
	va_list args;
	va_start(args, format);
	vsnprintf(why.text, sizeof why.text, format, args);
	va_end(args);
	return place(faults, "", &why);
}

bool faults_relate(struct faults *faults, const char *others, const char *format, ...)
{
	struct error why = { .kind = ERROR_CONFIG };
	va_list args;
	va_start(args, format);
	vsnprintf(why.text, sizeof why.text, format, args);
	va_end(args);
	return place(faults, others, &why);
}
