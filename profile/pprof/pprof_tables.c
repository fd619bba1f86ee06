/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/pprof/pprof_tables.h"
#include "base/memory.h"

static const struct attribute *attribute_in(const struct profiles *p, struct list list, uint32_t i)
{
	return &p->attributes.at[p->indices.at[list.first + i]];
}

static bool has_true(const struct profiles *p, struct list attributes, enum pprof_key key)
{
	for (uint32_t i = 0; i < attributes.count; i++) {
		const struct attribute *a = attribute_in(p, attributes, i);
		if (a->type == VALUE_BOOL && a->boolean &&
		    pprof_key_of(string_view(p, a->key)) == key)
			return true;
	}
	return false;
}

static uint32_t number_mapping(struct pprof_writer *w, uint32_t mapping)
{
	struct pprof_number *known = &w->mappings[mapping];
	if (!mapping)
		return 0;
	if (known->run != w->run) {
		w->used_mappings[w->mapping_count] = mapping;
		w->mapping_flags[w->mapping_count] = 0;
		*known = (struct pprof_number){ w->run, ++w->mapping_count };
	}
	return known->number;
}

/* pprof's first mapping is the program's own. */
void pprof_tables_number_main_first(struct pprof_writer *w, struct list samples)
{
	const struct profiles *p = w->p;
	for (uint32_t i = 0; w->main_mappings && i < samples.count; i++) {
		struct list stack = p->stacks.at[p->samples.at[samples.first + i].stack].locations;
		for (uint32_t k = 0; k < stack.count; k++) {
			uint32_t mapping = p->locations.at[p->indices.at[stack.first + k]].mapping;
			if (w->main_mappings[mapping]) {
				number_mapping(w, mapping);
				return;
			}
		}
	}
}

void pprof_tables_find_main(struct pprof_writer *w)
{
	const struct profiles *p = w->p;
	for (uint32_t i = 1; i < p->mappings.count; i++) {
		if (!has_true(p, p->mappings.at[i].attributes, PPROF_KEY_IS_MAIN))
			continue;
		if (!w->main_mappings)
			w->main_mappings =
				memory_array(p->mappings.count, sizeof *w->main_mappings);
		w->main_mappings[i] = true;
	}
}

static uint32_t number_function(struct pprof_writer *w, uint32_t function)
{
	struct pprof_number *known = &w->functions[function];
	if (!function || known->run == w->run)
		return function ? known->number : 0;
	*known = (struct pprof_number){ w->run, ++w->function_count };
	const struct function *f = &w->p->functions.at[function];
	struct pprof_plain message = { .len = 0 };
	pprof_writer_put(&message, PPROF_FUNCTION_ID, known->number);
	pprof_writer_put(&message, PPROF_FUNCTION_NAME, pprof_writer_string(w, f->name));
	pprof_writer_put(&message, PPROF_FUNCTION_SYSTEM_NAME,
			 pprof_writer_string(w, f->system_name));
	pprof_writer_put(&message, PPROF_FUNCTION_FILENAME, pprof_writer_string(w, f->filename));
	pprof_writer_put(&message, PPROF_FUNCTION_START_LINE, (uint64_t)f->start_line);
	pprof_writer_add(w, &w->table[PPROF_FUNCTION], PPROF_FUNCTION, &message);
	return known->number;
}

/* OTLP has no flags on mappings; what lines show stands in for those that nobody set. */
static uint8_t add_lines(struct pprof_writer *w, struct list lines)
{
	const struct profiles *p = w->p;
	uint8_t flags = lines.count > 1 ? 1 << PPROF_KEY_HAS_INLINE_FRAMES : 0;
	for (uint32_t i = 0; i < lines.count; i++) {
		const struct line *line = &p->lines.at[lines.first + i];
		struct pprof_plain message = { .len = 0 };
		pprof_writer_put(&message, PPROF_LINE_FUNCTION, number_function(w, line->function));
		pprof_writer_put(&message, PPROF_LINE_LINE, (uint64_t)line->line);
		pprof_writer_put(&message, PPROF_LINE_COLUMN, (uint64_t)line->column);
		pprof_writer_add(w, &w->packed, PPROF_LOCATION_LINE, &message);
		flags |= (line->function != 0) << PPROF_KEY_HAS_FUNCTIONS;
		flags |= (p->functions.at[line->function].filename != 0) << PPROF_KEY_HAS_FILENAMES;
		flags |= (line->line != 0) << PPROF_KEY_HAS_LINE_NUMBERS;
	}
	return flags;
}

uint32_t pprof_tables_location(struct pprof_writer *w, uint32_t location)
{
	struct pprof_number *known = &w->locations[location];
	if (known->run == w->run)
		return known->number;
	*known = (struct pprof_number){ w->run, ++w->location_count };
	const struct location *l = &w->p->locations.at[location];
	struct pprof_plain head = { .len = 0 }, tail = { .len = 0 };
	uint32_t mapping = number_mapping(w, l->mapping);
	pprof_writer_put(&head, PPROF_LOCATION_ID, known->number);
	pprof_writer_put(&head, PPROF_LOCATION_MAPPING, mapping);
	pprof_writer_put(&head, PPROF_LOCATION_ADDRESS, l->address);
	pprof_writer_put(&tail, PPROF_LOCATION_FOLDED,
			 has_true(w->p, l->attributes, PPROF_KEY_IS_FOLDED));
	w->packed.len = 0;
	w->full |= !bytes_add(&w->packed, head.at, head.len);
	uint8_t flags = add_lines(w, l->lines);
	w->full |= !bytes_add(&w->packed, tail.at, tail.len) ||
		   !wire_add_len(&w->table[PPROF_LOCATION], PPROF_LOCATION, bytes_view(&w->packed));
	if (mapping)
		w->mapping_flags[mapping - 1] |= flags;
	return known->number;
}

static void add_mapping(struct pprof_writer *w, uint32_t number)
{
	const struct profiles *p = w->p;
	const struct mapping *mapping = &p->mappings.at[w->used_mappings[number - 1]];
	uint8_t said = 0, flags = 0;
	uint32_t build_id[PPROF_KEY_COUNT] = { 0 };
	for (uint32_t i = 0; i < mapping->attributes.count; i++) {
		const struct attribute *a = attribute_in(p, mapping->attributes, i);
		enum pprof_key key = pprof_key_of(string_view(p, a->key));
		if ((int)key < PPROF_FLAG_COUNT && a->type == VALUE_BOOL) {
			said = 1;
			flags |= (uint8_t)(a->boolean != 0) << key;
		} else if (key < PPROF_KEY_COUNT && a->type == VALUE_STRING) {
			build_id[key] = a->string;
		}
	}
	uint32_t id = build_id[PPROF_KEY_BUILD_ID_GNU];
	id = id ? id : build_id[PPROF_KEY_BUILD_ID_HTLHASH];
	id = id ? id : build_id[PPROF_KEY_BUILD_ID_GO];
	flags = said ? flags : w->mapping_flags[number - 1];

	struct pprof_plain message = { .len = 0 };
	pprof_writer_put(&message, PPROF_MAPPING_ID, number);
	pprof_writer_put(&message, PPROF_MAPPING_START, mapping->start);
	pprof_writer_put(&message, PPROF_MAPPING_LIMIT, mapping->limit);
	pprof_writer_put(&message, PPROF_MAPPING_OFFSET, mapping->offset);
	pprof_writer_put(&message, PPROF_MAPPING_FILENAME,
			 pprof_writer_string(w, mapping->filename));
	pprof_writer_put(&message, PPROF_MAPPING_BUILD_ID, pprof_writer_string(w, id));
	for (uint32_t i = 0; i < PPROF_FLAG_COUNT; i++)
		pprof_writer_put(&message, PPROF_MAPPING_HAS_FUNCTIONS + i, flags >> i & 1);
	pprof_writer_add(w, &w->table[PPROF_MAPPING], PPROF_MAPPING, &message);
}

void pprof_tables_add_mappings(struct pprof_writer *w)
{
	for (uint32_t number = 1; number <= w->mapping_count; number++)
		add_mapping(w, number);
}
