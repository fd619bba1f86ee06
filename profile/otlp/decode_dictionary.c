/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dictionary. A first scan of tags and lengths counts the entries of each table and records
 * where they are. The tables can therefore be allocated at once, and each reference can be checked
 * against the final count. The tables are then decoded in the order of their references: the faults
 * of an entry are known before another entry refers to it.
 *
 * Later occurrences of the dictionary append their entries, as protobuf merges messages. Entry 0 is
 * not read: it is the zero value, regardless of what the sender put there.
 */
#include "profile/otlp/decoder.h"

#include <assert.h>

MESSAGE(dictionary, "mapping_table", "location_table", "function_table", "link_table",
	"string_table", "attribute_table", "stack_table");
MESSAGE(mapping, "memory_start", "memory_limit", "file_offset", "filename_strindex",
	"attribute_indices");
MESSAGE(function, "name_strindex", "system_name_strindex", "filename_strindex", "start_line");
MESSAGE(location, "mapping_index", "address", "lines", "attribute_indices");
MESSAGE(line, "function_index", "line", "column");
MESSAGE(link, "trace_id", "span_id");
MESSAGE(stack, "location_indices");

/* From the first entry of a table to its last. Entries of other tables may lie between them. */
struct extent {
	struct wire wire;
	uint32_t count;
};

static bool measure(struct decoder *d, struct view v, struct extent extents[static TABLE_COUNT])
{
	struct wire w = wire_of(v);
	uint32_t tag = 0;
	while (wire_more(&w)) {
		const uint8_t *start = w.at;
		tag = wire_tag(&w);
		uint32_t table = tag >> 3;
		if (table - 1 >= TABLE_COUNT - 1 || (tag & 7) != WIRE_LEN) {
			decoder_other(&w, tag, &dictionary);
			continue;
		}
		struct extent *extent = &extents[table];
		if (!extent->count)
			extent->wire.at = start;
		wire_len(&w);
		extent->count++;
		while (wire_more(&w) && *w.at == tag) {
			w.at++;
			wire_len(&w);
			extent->count++;
		}
		extent->wire.end = w.at;
	}
	return decoder_end(d, &w, tag, &dictionary);
}

static inline bool decode_string(struct decoder *d, struct view v, uint32_t i)
{
	struct string *string = &d->p->strings.at[i];
	const uint8_t *end = v.at + v.len;
	if (end > d->ascii)
		d->ascii = wire_ascii(v.at, d->p->input.at + d->p->input.len);
	if (__builtin_expect(end > d->ascii, 0))
		return decoder_string(d, v, string);
	*string = (struct string){ .text = decoder_span(d, v) };
	return true;
}

static inline bool decode_function(struct decoder *d, struct view v, uint32_t i)
{
	struct function *f = &d->p->functions.at[i];
	*f = (struct function){ 0 };
	struct wire w = wire_of(v);
	uint32_t tag = 0;
	while (wire_more(&w)) {
		tag = wire_tag(&w);
		switch (tag) {
		case WIRE_TAG(1, WIRE_VARINT):
			f->name = decoder_index(d, "name_strindex", TABLE_STRING, wire_varint(&w),
						&f->fault);
			WIRE_THEN(&w, WIRE_TAG(2, WIRE_VARINT));
		case WIRE_TAG(2, WIRE_VARINT):
			f->system_name = decoder_index(d, "system_name_strindex", TABLE_STRING,
						       wire_varint(&w), &f->fault);
			WIRE_THEN(&w, WIRE_TAG(3, WIRE_VARINT));
		case WIRE_TAG(3, WIRE_VARINT):
			f->filename = decoder_index(d, "filename_strindex", TABLE_STRING,
						    wire_varint(&w), &f->fault);
			WIRE_THEN(&w, WIRE_TAG(4, WIRE_VARINT));
		case WIRE_TAG(4, WIRE_VARINT):
			f->start_line = (int64_t)wire_varint(&w);
			break;
		default:
			decoder_other(&w, tag, &function);
		}
	}
	return decoder_end(d, &w, tag, &function);
}

static bool decode_mapping(struct decoder *d, struct view v, uint32_t i)
{
	struct profiles *p = d->p;
	struct mapping m = { .attributes.first = p->indices.count };
	struct wire w = wire_of(v);
	uint32_t tag = 0;
	while (wire_more(&w)) {
		tag = wire_tag(&w);
		switch (tag) {
		case WIRE_TAG(1, WIRE_VARINT):
			m.start = wire_varint(&w);
			break;
		case WIRE_TAG(2, WIRE_VARINT):
			m.limit = wire_varint(&w);
			break;
		case WIRE_TAG(3, WIRE_VARINT):
			m.offset = wire_varint(&w);
			break;
		case WIRE_TAG(4, WIRE_VARINT):
			m.filename = decoder_index(d, "filename_strindex", TABLE_STRING,
						   wire_varint(&w), &m.fault);
			break;
		case WIRE_TAG(5, WIRE_LEN):
			if (!decoder_indices(d, "attribute_indices", TABLE_ATTRIBUTE, wire_len(&w),
					     &m.fault))
				return false;
			break;
		case WIRE_TAG(5, WIRE_VARINT):
			if (!decoder_one_index(d, "attribute_indices", TABLE_ATTRIBUTE,
					       wire_varint(&w), &m.fault))
				return false;
			break;
		default:
			decoder_other(&w, tag, &mapping);
		}
	}
	m.attributes.count = p->indices.count - m.attributes.first;
	p->mappings.at[i] = m;
	return decoder_end(d, &w, tag, &mapping);
}

/* The fast path: a line without faults, as writers usually send it, with each field at most once
 * and in order. False: the line is not of this form. */
WIRE_HOT bool usual_line(struct decoder *d, struct wire w)
{
	struct profiles *p = d->p;
	uint64_t number = 0;
	if (p->lines.count == p->lines.room)
		return false;
	struct line *l = &p->lines.at[p->lines.count];
	*l = (struct line){ 0 };
	if (wire_seems(&w, WIRE_TAG(1, WIRE_VARINT)))
		number = wire_varint(&w);
	if (wire_seems(&w, WIRE_TAG(2, WIRE_VARINT)))
		l->line = (int64_t)wire_varint(&w);
	if (wire_is(&w, WIRE_TAG(3, WIRE_VARINT)))
		l->column = (int64_t)wire_varint(&w);
	l->function = (uint32_t)number;
	p->lines.count++;
	return wire_at_end(&w) && number < d->limit[TABLE_FUNCTION] && !d->bad[TABLE_FUNCTION];
}

/* The same for a location. */
WIRE_HOT bool usual_location(struct decoder *d, struct wire w, struct location *l)
{
	uint64_t number = 0;
	struct view attributes = { 0 };
	if (wire_seems(&w, WIRE_TAG(1, WIRE_VARINT)))
		number = wire_varint(&w);
	if (wire_seems(&w, WIRE_TAG(2, WIRE_VARINT)))
		l->address = wire_varint(&w);
	while (wire_is(&w, WIRE_TAG(3, WIRE_LEN)))
		if (!usual_line(d, wire_sub(&w)))
			return false;
	if (wire_is(&w, WIRE_TAG(4, WIRE_LEN)))
		attributes = wire_len(&w);
	l->mapping = (uint32_t)number;
	return wire_at_end(&w) && number < d->limit[TABLE_MAPPING] && !d->bad[TABLE_MAPPING] &&
	       (!attributes.len ||
		decoder_indices(d, "attribute_indices", TABLE_ATTRIBUTE, attributes, &l->fault));
}

static bool decode_line(struct decoder *d, struct view v, uint8_t *fault)
{
	struct profiles *p = d->p;
	if (!profiles_room(p, &p->lines, 1))
		return decoder_full(d);
	struct line *l = &p->lines.at[p->lines.count++];
	*l = (struct line){ 0 };
	struct wire w = wire_of(v);
	uint32_t tag = 0;
	while (wire_more(&w)) {
		tag = wire_tag(&w);
		switch (tag) {
		case WIRE_TAG(1, WIRE_VARINT):
			l->function = decoder_index(d, "lines.function_index", TABLE_FUNCTION,
						    wire_varint(&w), fault);
			break;
		case WIRE_TAG(2, WIRE_VARINT):
			l->line = (int64_t)wire_varint(&w);
			break;
		case WIRE_TAG(3, WIRE_VARINT):
			l->column = (int64_t)wire_varint(&w);
			break;
		default:
			decoder_other(&w, tag, &line);
		}
	}
	if (d->bad[TABLE_FUNCTION] && p->functions.at[l->function].fault)
		*fault = decoder_bad_index(d, "lines.function_index", TABLE_FUNCTION, l->function);
	return decoder_end(d, &w, tag, &line);
}

static __attribute__((noinline)) bool unusual_location(struct decoder *d, struct wire w,
						       struct location *l)
{
	uint32_t tag = 0;
	while (wire_more(&w)) {
		tag = wire_tag(&w);
		switch (tag) {
		case WIRE_TAG(1, WIRE_VARINT):
			l->mapping = decoder_index(d, "mapping_index", TABLE_MAPPING,
						   wire_varint(&w), &l->fault);
			break;
		case WIRE_TAG(2, WIRE_VARINT):
			l->address = wire_varint(&w);
			break;
		case WIRE_TAG(3, WIRE_LEN):
			if (!decode_line(d, wire_len(&w), &l->fault))
				return false;
			break;
		case WIRE_TAG(4, WIRE_LEN):
			if (!decoder_indices(d, "attribute_indices", TABLE_ATTRIBUTE, wire_len(&w),
					     &l->fault))
				return false;
			break;
		case WIRE_TAG(4, WIRE_VARINT):
			if (!decoder_one_index(d, "attribute_indices", TABLE_ATTRIBUTE,
					       wire_varint(&w), &l->fault))
				return false;
			break;
		default:
			decoder_other(&w, tag, &location);
		}
	}
	if (d->bad[TABLE_MAPPING] && d->p->mappings.at[l->mapping].fault)
		l->fault = decoder_bad_index(d, "mapping_index", TABLE_MAPPING, l->mapping);
	return decoder_end(d, &w, tag, &location);
}

WIRE_HOT bool decode_location(struct decoder *d, struct view v, uint32_t i)
{
	struct profiles *p = d->p;
	struct location *l = &p->locations.at[i];
	struct location begun = { .lines.first = p->lines.count,
				  .attributes.first = p->indices.count };
	*l = begun;
	if (!usual_location(d, wire_of(v), l)) {
		p->lines.count = begun.lines.first;
		*l = begun;
		if (!unusual_location(d, wire_of(v), l))
			return false;
	}
	l->lines.count = p->lines.count - l->lines.first;
	l->attributes.count = p->indices.count - l->attributes.first;
	return true;
}

static bool decode_stack(struct decoder *d, struct view v, uint32_t i)
{
	struct profiles *p = d->p;
	struct stack *s = &p->stacks.at[i];
	*s = (struct stack){ .locations.first = p->indices.count };
	struct wire w = wire_of(v);
	uint32_t tag = 0;
	while (wire_more(&w)) {
		tag = wire_tag(&w);
		if (tag == WIRE_TAG(1, WIRE_LEN)) {
			if (!decoder_indices(d, "location_indices", TABLE_LOCATION, wire_len(&w),
					     &s->fault))
				return false;
		} else if (tag == WIRE_TAG(1, WIRE_VARINT)) {
			if (!decoder_one_index(d, "location_indices", TABLE_LOCATION,
					       wire_varint(&w), &s->fault))
				return false;
		} else {
			decoder_other(&w, tag, &stack);
		}
	}
	s->locations.count = p->indices.count - s->locations.first;
	return decoder_end(d, &w, tag, &stack);
}

/* An ID is absent or has the fixed length. Any other length could hide arbitrary bytes. */
static void decode_id(struct decoder *d, const char *field, struct view v, uint8_t *id, size_t len,
		      uint8_t *fault)
{
	if (v.len == len)
		memcpy(id, v.at, len);
	else if (v.len)
		*fault = decoder_fault(d, FAULT_ID, field, "has the wrong length");
}

static bool decode_link(struct decoder *d, struct view v, uint32_t i)
{
	struct link l = { 0 };
	struct wire w = wire_of(v);
	uint32_t tag = 0;
	while (wire_more(&w)) {
		tag = wire_tag(&w);
		if (tag == WIRE_TAG(1, WIRE_LEN))
			decode_id(d, "trace_id", wire_len(&w), l.trace_id, sizeof l.trace_id,
				  &l.fault);
		else if (tag == WIRE_TAG(2, WIRE_LEN))
			decode_id(d, "span_id", wire_len(&w), l.span_id, sizeof l.span_id,
				  &l.fault);
		else
			decoder_other(&w, tag, &link);
	}
	d->p->links.at[i] = l;
	return decoder_end(d, &w, tag, &link);
}

/* Decodes one table of one occurrence of the dictionary. The entries of earlier occurrences are
 * already in the table. Each table gets a loop of its own, into which its decoder is inlined. */
WIRE_HOT bool decode_table(struct decoder *d, struct wire w, enum table table,
			   bool (*decode)(struct decoder *, struct view, uint32_t))
{
	while (wire_more(&w)) {
		uint32_t tag = wire_tag(&w);
		if (tag != WIRE_TAG(table, WIRE_LEN)) {
			wire_skip(&w, tag);
			continue;
		}
		struct view entry = wire_len(&w);
		if (d->entry && !decode(d, entry, d->entry))
			return false;
		d->entry++;
	}
	return true;
}

#define STEP(name, table, decode) \
	static bool name(struct decoder *d, struct wire w) \
	{ \
		return decode_table(d, w, table, decode); \
	}

STEP(decode_strings, TABLE_STRING, decode_string)
STEP(decode_attributes, TABLE_ATTRIBUTE, decode_value_table_entry)
STEP(decode_functions, TABLE_FUNCTION, decode_function)
STEP(decode_mappings, TABLE_MAPPING, decode_mapping)
STEP(decode_locations, TABLE_LOCATION, decode_location)
STEP(decode_stacks, TABLE_STACK, decode_stack)
STEP(decode_links, TABLE_LINK, decode_link)

static const struct {
	enum table table;
	bool (*decode)(struct decoder *d, struct wire w);
} steps[] = {
	{ TABLE_STRING, decode_strings },     { TABLE_ATTRIBUTE, decode_attributes },
	{ TABLE_FUNCTION, decode_functions }, { TABLE_MAPPING, decode_mappings },
	{ TABLE_LOCATION, decode_locations }, { TABLE_STACK, decode_stacks },
	{ TABLE_LINK, decode_links },
};

static bool make_room(struct decoder *d)
{
	struct profiles *p = d->p;
	bool ok = true;
#define X(member, TABLE) \
	ok = ok && profiles_room(p, &p->member, d->limit[TABLE]); \
	p->member.count = ok ? d->limit[TABLE] : 1;
	X(mappings, TABLE_MAPPING)
	X(locations, TABLE_LOCATION)
	X(functions, TABLE_FUNCTION)
	X(links, TABLE_LINK)
	X(strings, TABLE_STRING)
	X(attributes, TABLE_ATTRIBUTE)
	X(stacks, TABLE_STACK)
#undef X
	p->dictionary_strings = d->limit[TABLE_STRING];
	p->dictionary_attributes = d->limit[TABLE_ATTRIBUTE];
	return ok || decoder_full(d);
}

bool decode_dictionary(struct decoder *d, const struct view *dictionaries, uint32_t count)
{
	struct extent extents[DICTIONARIES_MAX][TABLE_COUNT] = { 0 };
	assert(count <= DICTIONARIES_MAX);
	for (uint32_t i = 0; i < count; i++)
		if (!measure(d, dictionaries[i], extents[i]))
			return false;
	for (uint32_t t = 1; t < TABLE_COUNT; t++) {
		for (uint32_t i = 0; i < count; i++)
			d->limit[t] += extents[i][t].count;
		d->limit[t] += !d->limit[t];
	}
	if (!make_room(d))
		return false;
	d->level = LEVEL_TABLE;
	for (uint32_t s = 0; s < sizeof steps / sizeof *steps; s++) {
		d->table = steps[s].table;
		d->entry = 0;
		for (uint32_t i = 0; i < count; i++)
			if (!steps[s].decode(d, extents[i][d->table].wire))
				return false;
	}
	d->level = LEVEL_REQUEST;
	return true;
}
