/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/pprof/pprof_labels.h"
#include "profile/value_text.h"

#include <stdio.h>

/* A label is text or number; everything else becomes text. */

static uint32_t text_of(struct pprof_writer *w, const struct attribute *a)
{
	if (a->type == VALUE_STRING)
		return pprof_writer_string(w, a->string);
	w->text.len = 0;
	w->full |= !value_text_add(w->p, a, &w->text);
	return pprof_writer_text(w, bytes_view(&w->text));
}

/* A text 0 would read as the number 0, so an empty text gets a string of its own. */
static void add_text_label(struct pprof_writer *w, uint32_t key, uint32_t text)
{
	struct pprof_plain label = { .len = 0 };
	if (!text && !w->blank) {
		w->blank = ++w->string_count;
		w->full |= !wire_add_len(&w->table[PPROF_STRING], PPROF_STRING,
					 (struct view){ NULL, 0 });
	}
	pprof_writer_put(&label, PPROF_LABEL_KEY, key);
	pprof_writer_put(&label, PPROF_LABEL_STR, text ? text : w->blank);
	pprof_writer_add(w, &w->part, PPROF_SAMPLE_LABEL, &label);
}

static void add_number_label(struct pprof_writer *w, uint32_t key, const struct attribute *number,
			     uint32_t unit)
{
	struct pprof_plain label = { .len = 0 };
	pprof_writer_put(&label, PPROF_LABEL_KEY, key);
	pprof_writer_put(&label, PPROF_LABEL_NUM, (uint64_t)attribute_integer(number));
	pprof_writer_put(&label, PPROF_LABEL_UNIT, pprof_writer_string(w, unit));
	pprof_writer_add(w, &w->part, PPROF_SAMPLE_LABEL, &label);
}

/* [number, unit]: how decode_pprof keeps a number whose unit is not that of its attribute. */
static bool is_pair(const struct profiles *p, const struct attribute *a)
{
	if (a->type != VALUE_ARRAY || a->children.count != 2)
		return false;
	const struct attribute *pair = &p->attributes.at[a->children.first];
	return pair[0].type == VALUE_INT && pair[1].type == VALUE_STRING;
}

static void add_value(struct pprof_writer *w, uint32_t key, const struct attribute *value,
		      uint32_t unit)
{
	if (value->type == VALUE_INT)
		add_number_label(w, key, value, unit);
	else
		add_text_label(w, key, text_of(w, value));
}

static void add_attribute(struct pprof_writer *w, const struct attribute *a)
{
	const struct profiles *p = w->p;
	uint32_t key = pprof_writer_string(w, a->key);
	if (a->type != VALUE_ARRAY) {
		add_value(w, key, a, a->unit);
		return;
	}
	for (uint32_t i = 0; i < a->children.count; i++) {
		const struct attribute *element = &p->attributes.at[a->children.first + i];
		if (is_pair(p, element)) {
			const struct attribute *pair = &p->attributes.at[element->children.first];
			add_number_label(w, key, pair, pair[1].string);
		} else {
			add_value(w, key, element, a->unit);
		}
	}
}

static void add_id_label(struct pprof_writer *w, const char *key, const uint8_t *id, size_t size)
{
	char hex[33];
	for (size_t i = 0; i < size; i++)
		snprintf(hex + 2 * i, 3, "%02x", id[i]);
	uint32_t name = pprof_writer_text(w, view_of(key));
	add_text_label(w, name,
		       pprof_writer_text(w, (struct view){ (const uint8_t *)hex, 2 * size }));
}

void pprof_labels_add(struct pprof_writer *w, const struct sample *sample)
{
	const struct profiles *p = w->p;
	for (uint32_t i = 0; i < sample->attributes.count && !w->full; i++)
		add_attribute(w, &p->attributes.at[p->indices.at[sample->attributes.first + i]]);
	if (sample->link) {
		add_id_label(w, "trace_id", p->links.at[sample->link].trace_id, 16);
		add_id_label(w, "span_id", p->links.at[sample->link].span_id, 8);
	}
}
