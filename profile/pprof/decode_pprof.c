/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/pprof/decode_pprof.h"
#include "profile/pprof/pprof_attach.h"
#include "profile/strings.h"
#include "profile/wire.h"

/*
 * The tables of a pprof may stand in any order and refer to each other by ids, so the body is
 * walked four times, each time for the messages whose references are known by then (the table
 * `steps`).
 */

/* Was the message read to its end? Otherwise the fault stands at the field of the last tag. */
static bool is_whole(struct pprof_reader *r, struct wire *w, uint32_t number)
{
	return wire_done(w) || error_set(r->err, ERROR_INVALID, "%s (at field %u)",
					 wire_fault_text(w->fault), number);
}

/* The plain fields 1..max of a message, each number at its place in `fields`. */
static bool read_fields(struct pprof_reader *r, struct view message, uint64_t *fields, uint32_t max)
{
	struct wire w = wire_of(message);
	uint32_t tag = 0;
	while (wire_more(&w)) {
		tag = wire_tag(&w);
		if (tag >> 3 > max)
			wire_skip(&w, tag);
		else if ((tag & 7) == WIRE_VARINT)
			fields[tag >> 3] = wire_varint(&w);
		else
			wire_fail(&w, WIRE_MISMATCH);
	}
	return is_whole(r, &w, tag >> 3);
}

/* A nested message; empty (and the reader failed) if it is none. */
static struct view message_of(struct wire *w, uint32_t tag)
{
	if ((tag & 7) == WIRE_LEN)
		return wire_len(w);
	wire_fail(w, WIRE_MISMATCH);
	return (struct view){ w->end, 0 };
}

/* The varints of a repeated number: packed, or one by one. */
static struct view numbers_of(struct wire *w, uint32_t tag)
{
	if ((tag & 7) != WIRE_VARINT)
		return message_of(w, tag);
	const uint8_t *at = w->at;
	wire_varint(w);
	return w->at <= w->end ? (struct view){ at, (size_t)(w->at - at) }
			       : (struct view){ w->end, 0 };
}

static bool refer_string(struct pprof_reader *r, uint64_t index, const char *name, uint32_t *string)
{
	if (index >= r->string_count)
		return error_set(r->err, ERROR_INVALID, "%s: no such string", name);
	*string = index ? r->string_base + (uint32_t)index : 0;
	return true;
}

/* The way back: the document's own number of a string. */
static uint64_t string_number(const struct pprof_reader *r, uint32_t string)
{
	return string ? string - r->string_base : 0;
}

static bool add_id(struct pprof_reader *r, enum pprof_memo kind, uint64_t id, uint32_t index)
{
	struct memo_entry *entry = memo_enter(&r->memo, kind, &id, sizeof id);
	if (!entry)
		return pprof_reader_too_large(r);
	if (entry->first)
		return pprof_reader_refuse(r, "id: duplicate");
	entry->first = index;
	return true;
}

/* Entries without an id (some writers leave them out) have their place in the table, from 1, for
 * one. */
static bool remember_id(struct pprof_reader *r, enum pprof_memo kind, uint64_t id, uint32_t index)
{
	if (!id)
		id = index;
	if (!r->sparse[kind] && id == index)
		return true;
	for (uint32_t i = 1; !r->sparse[kind] && i < index; i++)
		if (!add_id(r, kind, i, i))
			return false;
	r->sparse[kind] = true;
	return add_id(r, kind, id, index);
}

/* `count` entries are in the table. */
static bool refer_id(struct pprof_reader *r, enum pprof_memo kind, uint64_t id, uint32_t count,
		     uint32_t *index)
{
	uint32_t base = r->base[kind];
	if (!r->sparse[kind]) {
		*index = base + (uint32_t)id;
		return id && id < count - base;
	}
	const struct memo_entry *entry = memo_find(&r->memo, kind, &id, sizeof id);
	*index = entry ? base + entry->first : 0;
	return entry != NULL;
}

/* Pass 1: strings and numbers. */

/* Entry 0 is "" whatever was sent. */
static bool read_string(struct pprof_reader *r, struct view text, uint32_t ordinal)
{
	struct span span = { (uint32_t)(text.at - r->p->input.at), (uint32_t)text.len };
	uint32_t string;
	return ordinal == 0 || strings_add(r->p, text, span, &string) || pprof_reader_too_large(r);
}

/* Between the passes: everything that is counted now has its room. */
static bool make_room(struct pprof_reader *r)
{
	struct profiles *p = r->p;
	uint32_t types = r->count[PPROF_SAMPLE_TYPE];
	r->string_count = p->strings.count - r->string_base;
	if (!types)
		return pprof_reader_refuse(r, "sample_type: missing");
	if (types > PPROF_TYPES_MAX)
		return pprof_reader_refuse(r, "sample_type: more than 256 entries");
	uint64_t samples = (uint64_t)r->count[PPROF_SAMPLE] * types;
	bool ok = samples < UINT32_MAX && profiles_room(p, &p->samples, samples) &&
		  profiles_room(p, &p->profiles, types) &&
		  profiles_room(p, &p->attributes, r->count[PPROF_COMMENT]) &&
		  profiles_room(p, &p->functions, r->count[PPROF_FUNCTION]) &&
		  profiles_room(p, &p->mappings, r->count[PPROF_MAPPING]) &&
		  profiles_room(p, &p->locations, r->count[PPROF_LOCATION]) &&
		  profiles_room(p, &p->stacks, r->count[PPROF_SAMPLE]);
	if (!ok)
		return pprof_reader_too_large(r);
	p->samples.count += (uint32_t)samples;
	return true;
}

/* Pass 2: what refers to strings only. */

/* What comes twice is merged, as protobuf says. */
static bool read_value_type(struct pprof_reader *r, struct view message, struct value_kind *kind)
{
	uint64_t fields[PPROF_TYPE_FIELDS] = { [PPROF_TYPE_TYPE] = string_number(r, kind->type),
					       [PPROF_TYPE_UNIT] = string_number(r, kind->unit) };
	return read_fields(r, message, fields, PPROF_TYPE_FIELDS - 1) &&
	       refer_string(r, fields[PPROF_TYPE_TYPE], "type", &kind->type) &&
	       refer_string(r, fields[PPROF_TYPE_UNIT], "unit", &kind->unit);
}

static bool read_sample_type(struct pprof_reader *r, struct view message, uint32_t ordinal)
{
	struct profile *profile = pprof_reader_profile(r, ordinal);
	*profile = (struct profile){ .has_sample_type = 1 };
	r->p->profiles.count = r->first_profile + ordinal + 1;
	return read_value_type(r, message, &profile->sample_type);
}

static bool read_period_type(struct pprof_reader *r, struct view message, uint32_t ordinal)
{
	(void)ordinal;
	r->has_period_type = true;
	return read_value_type(r, message, &r->period_type);
}

static bool read_function(struct pprof_reader *r, struct view message, uint32_t ordinal)
{
	uint64_t fields[PPROF_FUNCTION_FIELDS] = { 0 };
	struct profiles *p = r->p;
	if (!read_fields(r, message, fields, PPROF_FUNCTION_FIELDS - 1) ||
	    !remember_id(r, PPROF_MEMO_FUNCTION, fields[PPROF_FUNCTION_ID], ordinal + 1))
		return false;
	struct function *function = &p->functions.at[p->functions.count++];
	*function = (struct function){ .start_line = (int64_t)fields[PPROF_FUNCTION_START_LINE] };
	return refer_string(r, fields[PPROF_FUNCTION_NAME], "name", &function->name) &&
	       refer_string(r, fields[PPROF_FUNCTION_SYSTEM_NAME], "system_name",
			    &function->system_name) &&
	       refer_string(r, fields[PPROF_FUNCTION_FILENAME], "filename", &function->filename);
}

static bool read_mapping(struct pprof_reader *r, struct view message, uint32_t ordinal)
{
	uint64_t fields[PPROF_MAPPING_FIELDS] = { 0 };
	struct profiles *p = r->p;
	uint32_t build_id = 0;
	if (!read_fields(r, message, fields, PPROF_MAPPING_FIELDS - 1) ||
	    !remember_id(r, PPROF_MEMO_MAPPING, fields[PPROF_MAPPING_ID], ordinal + 1))
		return false;
	struct mapping *mapping = &p->mappings.at[p->mappings.count++];
	*mapping = (struct mapping){
		.start = fields[PPROF_MAPPING_START],
		.limit = fields[PPROF_MAPPING_LIMIT],
		.offset = fields[PPROF_MAPPING_OFFSET],
	};
	return refer_string(r, fields[PPROF_MAPPING_FILENAME], "filename", &mapping->filename) &&
	       refer_string(r, fields[PPROF_MAPPING_BUILD_ID], "build_id", &build_id) &&
	       pprof_attach_mapping(r, mapping, build_id, fields + PPROF_MAPPING_HAS_FUNCTIONS) &&
	       (ordinal || r->count[PPROF_MAPPING] == 1 || pprof_attach_main(r, mapping));
}

static bool read_comments(struct pprof_reader *r, struct view indices, uint32_t ordinal)
{
	(void)ordinal;
	struct wire w = wire_of(indices);
	while (wire_more(&w)) {
		uint32_t string = 0;
		if (!refer_string(r, wire_varint(&w), "index", &string))
			return false;
		if (!bytes_add(&r->comments, &string, sizeof string))
			return pprof_reader_too_large(r);
	}
	return is_whole(r, &w, PPROF_COMMENT);
}

/* Pass 3: locations. */

static bool read_line(struct pprof_reader *r, struct view message)
{
	uint64_t fields[PPROF_LINE_FIELDS] = { 0 };
	struct profiles *p = r->p;
	if (!read_fields(r, message, fields, PPROF_LINE_FIELDS - 1))
		return false;
	if (!profiles_room(p, &p->lines, 1))
		return pprof_reader_too_large(r);
	struct line *line = &p->lines.at[p->lines.count++];
	*line = (struct line){
		.line = (int64_t)fields[PPROF_LINE_LINE],
		.column = (int64_t)fields[PPROF_LINE_COLUMN],
	};
	uint64_t function = fields[PPROF_LINE_FUNCTION];
	return !function ||
	       refer_id(r, PPROF_MEMO_FUNCTION, function, p->functions.count, &line->function) ||
	       pprof_reader_refuse(r, "line: function_id: no such function");
}

static bool read_location_fields(struct pprof_reader *r, struct view message, uint64_t *fields)
{
	struct wire w = wire_of(message);
	uint32_t number = 0;
	while (wire_more(&w)) {
		uint32_t tag = wire_tag(&w);
		number = tag >> 3;
		if (tag == WIRE_TAG(PPROF_LOCATION_LINE, WIRE_LEN)) {
			if (!read_line(r, wire_len(&w)))
				return false;
		} else if (number >= PPROF_LOCATION_FIELDS) {
			wire_skip(&w, tag);
		} else if ((tag & 7) == WIRE_VARINT && number != PPROF_LOCATION_LINE) {
			fields[number] = wire_varint(&w);
		} else {
			wire_fail(&w, WIRE_MISMATCH);
		}
	}
	return is_whole(r, &w, number);
}

static bool read_location(struct pprof_reader *r, struct view message, uint32_t ordinal)
{
	uint64_t fields[PPROF_LOCATION_FIELDS] = { 0 };
	struct profiles *p = r->p;
	struct location location = { .lines.first = p->lines.count };
	if (!read_location_fields(r, message, fields) ||
	    !remember_id(r, PPROF_MEMO_LOCATION, fields[PPROF_LOCATION_ID], ordinal + 1))
		return false;
	location.address = fields[PPROF_LOCATION_ADDRESS];
	location.lines.count = p->lines.count - location.lines.first;
	uint64_t mapping = fields[PPROF_LOCATION_MAPPING];
	if (mapping &&
	    !refer_id(r, PPROF_MEMO_MAPPING, mapping, p->mappings.count, &location.mapping))
		return pprof_reader_refuse(r, "mapping_id: no such mapping");
	if (fields[PPROF_LOCATION_FOLDED] && !pprof_attach_folded(r, &location))
		return false;
	p->locations.at[p->locations.count++] = location;
	return !location.mapping || !location.lines.count ||
	       pprof_attach_no_flags(r, &p->mappings.at[location.mapping]);
}

/* Pass 4: samples. */

static bool read_stack(struct pprof_reader *r, struct view ids, struct list *locations)
{
	struct profiles *p = r->p;
	struct wire w = wire_of(ids);
	if (!profiles_room(p, &p->indices, ids.len))
		return pprof_reader_too_large(r);
	while (wire_more(&w)) {
		uint32_t *index = &p->indices.at[p->indices.count];
		if (!refer_id(r, PPROF_MEMO_LOCATION, wire_varint(&w), p->locations.count, index))
			return pprof_reader_refuse(r, "location_id: no such location");
		p->indices.count++;
		locations->count++;
	}
	return is_whole(r, &w, PPROF_SAMPLE_LOCATIONS);
}

static struct sample *sample_at(const struct pprof_reader *r, uint32_t type, uint32_t ordinal)
{
	uint64_t slot = (uint64_t)type * r->count[PPROF_SAMPLE] + ordinal;
	return &r->p->samples.at[r->first_sample + slot];
}

/* Values stay where they are: each is one packed varint of the input. */
static bool read_values(struct pprof_reader *r, struct view packed, uint32_t ordinal,
			uint32_t *count)
{
	struct profiles *p = r->p;
	struct wire w = wire_of(packed);
	while (wire_more(&w)) {
		const uint8_t *at = w.at;
		wire_varint(&w);
		if (*count == pprof_reader_types(r))
			return pprof_reader_refuse(r, "value: more values than sample types");
		sample_at(r, pprof_reader_place(r, *count), ordinal)->values =
			(struct span){ (uint32_t)(at - p->input.at), (uint32_t)(w.at - at) };
		++*count;
	}
	return is_whole(r, &w, PPROF_SAMPLE_VALUES);
}

static bool read_label(struct pprof_reader *r, struct view message)
{
	uint64_t fields[PPROF_LABEL_FIELDS] = { 0 };
	struct pprof_label label = { 0 };
	if (!read_fields(r, message, fields, PPROF_LABEL_FIELDS - 1) ||
	    !refer_string(r, fields[PPROF_LABEL_KEY], "key", &label.key) ||
	    !refer_string(r, fields[PPROF_LABEL_STR], "str", &label.text) ||
	    !refer_string(r, fields[PPROF_LABEL_UNIT], "num_unit", &label.unit))
		return false;
	label.number = fields[PPROF_LABEL_NUM];
	if (label.text && (label.number || label.unit))
		return pprof_reader_refuse(r, "has both a string and a number");
	return bytes_add(&r->labels, &label, sizeof label) || pprof_reader_too_large(r);
}

/* Location ids and values come packed or one by one. */
static bool read_sample_fields(struct pprof_reader *r, struct view message, uint32_t ordinal,
			       struct list *locations)
{
	struct wire w = wire_of(message);
	uint32_t values = 0, labels = 0, tag = 0;
	while (wire_more(&w)) {
		tag = wire_tag(&w);
		bool ok = true;
		switch (tag >> 3) {
		case PPROF_SAMPLE_LOCATIONS:
			ok = read_stack(r, numbers_of(&w, tag), locations);
			break;
		case PPROF_SAMPLE_VALUES:
			ok = read_values(r, numbers_of(&w, tag), ordinal, &values);
			break;
		case PPROF_SAMPLE_LABEL:
			ok = read_label(r, message_of(&w, tag)) ||
			     error_prefix(r->err, "label %u", labels);
			labels++;
			break;
		default:
			wire_skip(&w, tag);
		}
		if (!ok)
			return false;
	}
	if (!is_whole(r, &w, tag >> 3))
		return false;
	return values == pprof_reader_types(r) ||
	       pprof_reader_refuse(r, "value: fewer values than sample types");
}

/* The same sample for each sample type. Each owns its list of attributes: lists are shrunk in
 * place. */
static bool spread_sample(struct pprof_reader *r, uint32_t ordinal, uint32_t stack)
{
	struct profiles *p = r->p;
	struct pprof_label_set set = { 0 };
	if (r->labels.len && !pprof_attach_labels(r, &set))
		return false;
	for (uint32_t i = 0; i < pprof_reader_types(r); i++) {
		struct sample *sample = sample_at(r, i, ordinal);
		*sample = (struct sample){ .stack = stack,
					   .link = set.link,
					   .values = sample->values };
		if (set.attributes.count)
			sample->attributes = profiles_list_copy(p, set.attributes, 0);
	}
	return !p->over_cap || pprof_reader_too_large(r);
}

static bool read_sample(struct pprof_reader *r, struct view message, uint32_t ordinal)
{
	struct profiles *p = r->p;
	struct list locations = { p->indices.count, 0 };
	uint32_t stack = 0;
	r->labels.len = 0;
	if (!read_sample_fields(r, message, ordinal, &locations))
		return false;
	if (locations.count) {
		stack = p->stacks.count++;
		p->stacks.at[stack] = (struct stack){ .locations = locations };
	}
	return spread_sample(r, ordinal, stack);
}

/* The body. */

static const struct step {
	const char *name;
	enum { STEP_NONE, STEP_NUMBER, STEP_NUMBERS, STEP_MESSAGE } kind;
	int pass;
	bool (*read)(struct pprof_reader *r, struct view message, uint32_t ordinal);
} steps[PPROF_PROFILE_FIELDS] = {
	[PPROF_SAMPLE_TYPE] = { "sample_type", STEP_MESSAGE, 2, read_sample_type },
	[PPROF_SAMPLE] = { "sample", STEP_MESSAGE, 4, read_sample },
	[PPROF_MAPPING] = { "mapping", STEP_MESSAGE, 2, read_mapping },
	[PPROF_LOCATION] = { "location", STEP_MESSAGE, 3, read_location },
	[PPROF_FUNCTION] = { "function", STEP_MESSAGE, 2, read_function },
	[PPROF_STRING] = { "string_table", STEP_MESSAGE, 1, read_string },
	[PPROF_DROP_FRAMES] = { "drop_frames", STEP_NUMBER },
	[PPROF_KEEP_FRAMES] = { "keep_frames", STEP_NUMBER },
	[PPROF_TIME] = { "time_nanos", STEP_NUMBER },
	[PPROF_DURATION] = { "duration_nanos", STEP_NUMBER },
	[PPROF_PERIOD_TYPE] = { "period_type", STEP_MESSAGE, 2, read_period_type },
	[PPROF_PERIOD] = { "period", STEP_NUMBER },
	[PPROF_COMMENT] = { "comment", STEP_NUMBERS, 2, read_comments },
	[PPROF_DEFAULT_SAMPLE_TYPE] = { "default_sample_type", STEP_NUMBER },
	[PPROF_DOC_URL] = { "doc_url", STEP_NUMBER },
};

/* Unknown fields are step 0, which does nothing. */
static uint32_t known(uint32_t number)
{
	return number < PPROF_PROFILE_FIELDS ? number : 0;
}

/* What the one takes the others cannot have: all together stay within what was charged. */
static void share_budget(struct pprof_reader *r)
{
	struct profiles *p = r->p;
	size_t scratch = r->memo.room * sizeof *r->memo.at + r->labels.room + r->label_sets.room +
			 r->comments.room;
	if (scratch == r->scratch)
		return;
	size_t taken = scratch + profiles_used(p), left = r->budget > taken ? r->budget - taken : 0;
	r->scratch = scratch;
	r->memo.max_bytes = r->memo.room * sizeof *r->memo.at + left;
	r->labels.max = r->labels.room + left;
	r->label_sets.max = r->label_sets.room + left;
	r->comments.max = r->comments.room + left;
	p->table_bytes_max = profiles_used(p) + left;
}

static bool walk(struct pprof_reader *r, int pass)
{
	uint32_t count[PPROF_PROFILE_FIELDS] = { 0 }, number = 0;
	struct wire w = wire_of(r->document);
	while (wire_more(&w)) {
		uint32_t tag = wire_tag(&w);
		number = tag >> 3;
		const struct step *step = &steps[known(number)];
		if (step->kind == STEP_NONE) {
			wire_skip(&w, tag);
		} else if (step->kind == STEP_NUMBER && (tag & 7) == WIRE_VARINT) {
			uint64_t value = wire_varint(&w);
			if (pass == 1)
				r->number[number] = value;
		} else {
			struct view view = step->kind == STEP_NUMBERS ? numbers_of(&w, tag)
								      : message_of(&w, tag);
			uint32_t ordinal = count[number]++;
			if (step->pass == pass && !w.fault && !step->read(r, view, ordinal))
				return error_prefix(r->err, "%s %u", step->name, ordinal);
			share_budget(r);
		}
	}
	memcpy(r->count, count, sizeof count);
	if (is_whole(r, &w, number))
		return true;
	return known(number) ? error_prefix(r->err, "%s", steps[number].name) : false;
}

/* From here on these numbers are the tables' strings. */
static bool refer_texts(struct pprof_reader *r)
{
	static const uint8_t texts[] = { PPROF_DROP_FRAMES, PPROF_KEEP_FRAMES,
					 PPROF_DEFAULT_SAMPLE_TYPE, PPROF_DOC_URL };
	for (size_t i = 0; i < sizeof texts; i++) {
		uint32_t string = 0;
		if (!refer_string(r, r->number[texts[i]], steps[texts[i]].name, &string))
			return false;
		r->number[texts[i]] = string;
	}
	return true;
}

/* Between the passes: which sample type is the default, and so the first in OTLP. */
static void find_default_type(struct pprof_reader *r)
{
	struct profiles *p = r->p;
	struct view name = string_view(p, (uint32_t)r->number[PPROF_DEFAULT_SAMPLE_TYPE]);
	for (uint32_t i = 0; i < pprof_reader_types(r) && name.len; i++)
		if (view_equal(string_view(p, pprof_reader_profile(r, i)->sample_type.type),
			       name)) {
			r->default_type = i;
			return;
		}
}

/* The default type moves to the front; what all Profiles share is filled in. */
static bool finish_profiles(struct pprof_reader *r)
{
	struct profiles *p = r->p;
	struct profile *first = pprof_reader_profile(r, 0);
	uint32_t samples = r->count[PPROF_SAMPLE];
	struct value_kind front = first[r->default_type].sample_type;
	for (uint32_t i = r->default_type; i > 0; i--)
		first[i].sample_type = first[i - 1].sample_type;
	first->sample_type = front;
	for (uint32_t i = 0; i < pprof_reader_types(r); i++) {
		struct profile *profile = &first[i];
		profile->samples = (struct list){ r->first_sample + i * samples, samples };
		profile->time = r->number[PPROF_TIME];
		profile->duration = r->number[PPROF_DURATION];
		profile->period = (int64_t)r->number[PPROF_PERIOD];
		profile->period_type = r->period_type;
		profile->has_period_type = r->has_period_type;
		if (i)
			profile->attributes = profiles_list_copy(p, first->attributes, 0);
		else if (!pprof_attach_profile(r, profile))
			return false;
	}
	return true;
}

static bool finish(struct pprof_reader *r, const struct metadatum *attributes)
{
	struct profiles *p = r->p;
	struct scope scope = { .profiles = { r->first_profile, pprof_reader_types(r) } };
	struct resource resource = { .scopes = { p->scopes.count, 1 } };
	if (!pprof_attach_scope(r, &scope) || !finish_profiles(r) ||
	    !pprof_attach_resource(r, &resource, attributes))
		return false;
	if (!profiles_room(p, &p->scopes, 1) || !profiles_room(p, &p->resources, 1))
		return pprof_reader_too_large(r);
	p->scopes.at[p->scopes.count++] = scope;
	p->resources.at[p->resources.count++] = resource;
	return profiles_within_cap(p) || pprof_reader_too_large(r);
}

static bool decode(struct pprof_reader *r, const struct metadatum *attributes)
{
	if (!walk(r, 1) || !make_room(r) || !refer_texts(r) || !walk(r, 2))
		return false;
	find_default_type(r);
	return walk(r, 3) && walk(r, 4) && finish(r, attributes);
}

bool decode_pprof(struct profiles *p, struct view document, const struct metadatum *attributes,
		  struct error *err)
{
	size_t max = p->table_bytes_max;
	struct profiles_mark before = profiles_mark(p);
	struct pprof_reader r = {
		.p = p,
		.document = document,
		.err = err,
		.memo.max_bytes = max,
		.budget = max,
		.string_base = p->strings.count - 1,
		.base = { [PPROF_MEMO_FUNCTION] = p->functions.count - 1,
			  [PPROF_MEMO_MAPPING] = p->mappings.count - 1,
			  [PPROF_MEMO_LOCATION] = p->locations.count - 1 },
		.first_profile = p->profiles.count,
		.first_sample = p->samples.count,
	};
	bytes_init(&r.labels, max);
	bytes_init(&r.label_sets, max);
	bytes_init(&r.comments, max);
	bool ok = decode(&r, attributes) || error_prefix(err, "pprof");
	memo_fini(&r.memo);
	bytes_fini(&r.labels);
	bytes_fini(&r.label_sets);
	bytes_fini(&r.comments);
	p->table_bytes_max = max;
	if (!ok)
		profiles_rewind(p, &before);
	return ok;
}
