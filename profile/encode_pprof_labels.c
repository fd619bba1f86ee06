/* SPDX-License-Identifier: Apache-2.0 */
#include "base/quote.h"
#include "profile/pprof_writer.h"
#include "profile/wire.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A label is text or number; everything else becomes text, as the Collector's AsString would have
 * it. */

static bool add_base64(struct bytes *out, struct view data)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	for (size_t i = 0; i < data.len; i += 3) {
		size_t left = data.len - i;
		uint32_t group = (uint32_t)data.at[i] << 16 | (left > 1 ? data.at[i + 1] << 8 : 0) |
				 (left > 2 ? data.at[i + 2] : 0);
		char text[4] = { digits[group >> 18], digits[group >> 12 & 63],
				 left > 1 ? digits[group >> 6 & 63] : '=',
				 left > 2 ? digits[group & 63] : '=' };
		if (!bytes_add(out, text, sizeof text))
			return false;
	}
	return true;
}

/* The shortest of the spellings that read back as the same number. */
static bool add_double(struct bytes *out, double number)
{
	char text[32];
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof text, "%.*g", digits, number);
		if (strtod(text, NULL) == number)
			break;
	}
	return bytes_add_text(out, isnan(number) ? "NaN" : text);
}

static bool add_json(struct pprof_writer *w, const struct attribute *a);

static bool add_json_children(struct pprof_writer *w, const struct attribute *a, bool keys)
{
	const struct profiles *p = w->p;
	bool ok = bytes_add_byte(&w->text, keys ? '{' : '[');
	for (uint32_t i = 0; i < a->children.count && ok; i++) {
		const struct attribute *child = &p->attributes.at[a->children.first + i];
		struct view key = string_view(p, child->key);
		ok = (!i || bytes_add_byte(&w->text, ',')) &&
		     (!keys ||
		      (quote_json(&w->text, key.at, key.len) && bytes_add_byte(&w->text, ':'))) &&
		     add_json(w, child);
	}
	return ok && bytes_add_byte(&w->text, keys ? '}' : ']');
}

/* Recursion ends at VALUE_DEPTH_MAX: decoders refuse what is deeper. */
static bool add_json(struct pprof_writer *w, const struct attribute *a)
{
	struct view text =
		a->type == VALUE_STRING ? string_view(w->p, a->string) : (struct view){ 0 };
	switch ((enum value_type)a->type) {
	case VALUE_STRING:
		return quote_json(&w->text, text.at, text.len);
	case VALUE_BOOL:
		return bytes_add_text(&w->text, a->boolean ? "true" : "false");
	case VALUE_INT:
		return bytes_format(&w->text, "%lld", (long long)attribute_integer(a));
	case VALUE_DOUBLE:
		return isfinite(attribute_number(a)) ? add_double(&w->text, attribute_number(a)) :
						       bytes_add_text(&w->text, "null");
	case VALUE_BYTES:
		return bytes_add_byte(&w->text, '"') &&
		       add_base64(&w->text, span_view(w->p, a->bytes)) &&
		       bytes_add_byte(&w->text, '"');
	case VALUE_ARRAY:
	case VALUE_KVLIST:
		return add_json_children(w, a, a->type == VALUE_KVLIST);
	case VALUE_EMPTY:
		break;
	}
	return bytes_add_text(&w->text, "null");
}

static uint32_t text_of(struct pprof_writer *w, const struct attribute *a)
{
	bool ok = true;
	w->text.len = 0;
	switch ((enum value_type)a->type) {
	case VALUE_STRING:
		return pprof_string(w, a->string);
	case VALUE_DOUBLE:
		ok = add_double(&w->text, attribute_number(a));
		break;
	case VALUE_BYTES:
		ok = add_base64(&w->text, span_view(w->p, a->bytes));
		break;
	case VALUE_EMPTY:
		break;
	default:
		ok = add_json(w, a);
	}
	w->full |= !ok;
	return pprof_text(w, bytes_view(&w->text));
}

static void add_label(struct pprof_writer *w, const struct pprof_plain *label)
{
	w->full |=
		!wire_add_len(&w->part, PPROF_SAMPLE_LABEL, (struct view){ label->at, label->len });
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
	pprof_put(&label, PPROF_LABEL_KEY, key);
	pprof_put(&label, PPROF_LABEL_STR, text ? text : w->blank);
	add_label(w, &label);
}

static void add_number_label(struct pprof_writer *w, uint32_t key, const struct attribute *number,
			     uint32_t unit)
{
	struct pprof_plain label = { .len = 0 };
	pprof_put(&label, PPROF_LABEL_KEY, key);
	pprof_put(&label, PPROF_LABEL_NUM, (uint64_t)attribute_integer(number));
	pprof_put(&label, PPROF_LABEL_UNIT, pprof_string(w, unit));
	add_label(w, &label);
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
	uint32_t key = pprof_string(w, a->key);
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
	uint32_t name = pprof_text(w, view_of(key));
	add_text_label(w, name, pprof_text(w, (struct view){ (const uint8_t *)hex, 2 * size }));
}

void pprof_add_labels(struct pprof_writer *w, const struct sample *sample)
{
	const struct profiles *p = w->p;
	for (uint32_t i = 0; i < sample->attributes.count && !w->full; i++)
		add_attribute(w, &p->attributes.at[p->indices.at[sample->attributes.first + i]]);
	if (sample->link) {
		add_id_label(w, "trace_id", p->links.at[sample->link].trace_id, 16);
		add_id_label(w, "span_id", p->links.at[sample->link].span_id, 8);
	}
}
