/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/pprof/pprof_writer.h"
#include "base/memory.h"

/* One attribute may stand for many labels on many samples, so what a packet can become is bounded.
 */
static size_t table_max(const struct profiles *p)
{
	size_t max = (size_t)1 << 20;
	max += 32 * p->input.len;
	return max < PROFILES_INPUT_MAX ? max : PROFILES_INPUT_MAX;
}

void pprof_writer_init(struct pprof_writer *w, const struct profiles *p, bool signs_apart)
{
	size_t max = table_max(p);
	*w = (struct pprof_writer){ .p = p, .signs_apart = signs_apart, .texts.max_bytes = max };
	for (int i = 0; i < PPROF_PROFILE_FIELDS; i++)
		bytes_init(&w->table[i], max);
	bytes_init(&w->part, max);
	bytes_init(&w->packed, max);
	bytes_init(&w->text, max);
	w->strings = memory_array(p->strings.count, sizeof *w->strings);
	w->functions = memory_array(p->functions.count, sizeof *w->functions);
	w->mappings = memory_array(p->mappings.count, sizeof *w->mappings);
	w->locations = memory_array(p->locations.count, sizeof *w->locations);
	w->used_mappings = memory_array(p->mappings.count, sizeof *w->used_mappings);
	w->mapping_flags = memory_array(p->mappings.count, sizeof *w->mapping_flags);
}

void pprof_writer_fini(struct pprof_writer *w)
{
	for (int i = 0; i < PPROF_PROFILE_FIELDS; i++)
		bytes_fini(&w->table[i]);
	bytes_fini(&w->part);
	bytes_fini(&w->packed);
	bytes_fini(&w->text);
	memo_fini(&w->texts);
	memory_free(w->strings);
	memory_free(w->functions);
	memory_free(w->mappings);
	memory_free(w->locations);
	memory_free(w->used_mappings);
	memory_free(w->mapping_flags);
	memory_free(w->main_mappings);
}

void pprof_writer_begin(struct pprof_writer *w)
{
	for (int i = 0; i < PPROF_PROFILE_FIELDS; i++)
		w->table[i].len = 0;
	w->run++;
	w->string_count = w->function_count = w->mapping_count = w->location_count = w->blank = 0;
	w->full = !wire_add_len(&w->table[PPROF_STRING], PPROF_STRING, (struct view){ NULL, 0 });
}

/* One allocation of the right size: growing would need up to twice as much. */
bool pprof_writer_join(struct pprof_writer *w)
{
	size_t total = 0, max = w->table[0].max;
	for (int i = 1; i < PPROF_PROFILE_FIELDS; i++)
		total += w->table[i].len;
	w->table[0].max = total < max ? total : max;
	w->full |= total > w->table[0].room && !bytes_reserve(&w->table[0], total);
	w->table[0].max = max;
	for (int i = 1; i < PPROF_PROFILE_FIELDS; i++)
		w->full |= !bytes_add(&w->table[0], w->table[i].at, w->table[i].len);
	return !w->full;
}

uint32_t pprof_writer_text(struct pprof_writer *w, struct view text)
{
	if (!text.len)
		return 0;
	struct memo_entry *entry = memo_enter(&w->texts, 0, text.at, text.len);
	if (!entry) {
		w->full = true;
		return 0;
	}
	if (entry->second != w->run) {
		entry->second = w->run;
		entry->first = ++w->string_count;
		w->full |= !wire_add_len(&w->table[PPROF_STRING], PPROF_STRING, text);
	}
	return entry->first;
}

uint32_t pprof_writer_string(struct pprof_writer *w, uint32_t string)
{
	struct pprof_number *known = &w->strings[string];
	if (known->run != w->run)
		*known = (struct pprof_number){ w->run,
						pprof_writer_text(w, string_view(w->p, string)) };
	return known->number;
}

void pprof_writer_add(struct pprof_writer *w, struct bytes *out, uint32_t number,
		      const struct pprof_plain *message)
{
	w->full |= !wire_add_len(out, number, (struct view){ message->at, message->len });
}
