/* SPDX-License-Identifier: Apache-2.0 */
#include "extensions/pprof_profile.h"

#include "base/array.h"
#include "base/memory.h"
#include "profile/memo.h"
#include "profile/pprof/pprof.h"
#include "profile/wire.h"

enum { MEMO_MAX = 8 << 20, PCS_MAX = 1 << 20, INLINED_MAX = 16, MESSAGE_MAX = 1 << 16 };

struct stack {
	uint32_t first, depth; /* in pcs */
	uint64_t seen;
};

struct own_profile {
	struct memo memo;
	ARRAY(uint64_t) pcs;
	ARRAY(struct stack) stacks;
};

struct own_profile *own_profile_new(void)
{
	struct own_profile *profile = memory_new(sizeof *profile);
	profile->memo.max_bytes = MEMO_MAX;
	return profile;
}

void own_profile_unref(struct own_profile **slot)
{
	struct own_profile *profile = *slot;
	*slot = NULL;
	if (!profile)
		return;
	memo_fini(&profile->memo);
	memory_free(profile->pcs.at);
	memory_free(profile->stacks.at);
	memory_free(profile);
}

void own_profile_add(struct own_profile *profile, const uint64_t *pcs, size_t count)
{
	if (profile->pcs.count + count > PCS_MAX)
		return;
	struct memo_entry *entry = memo_enter(&profile->memo, 0, pcs, count * sizeof *pcs);
	if (!entry)
		return;
	if (!entry->first) {
		array_push(&profile->stacks) =
			(struct stack){ profile->pcs.count, (uint32_t)count, 0 };
		entry->first = profile->stacks.count;
		for (size_t i = 0; i < count; i++)
			array_push(&profile->pcs) = pcs[i];
	}
	profile->stacks.at[entry->first - 1].seen++;
}

/* ---- writing: tables are written where they are first needed; only the order within each counts
 * ---- */

enum kind { KIND_TEXT, KIND_FUNCTION, KIND_LOCATION, KIND_MAPPING, KIND_COUNT };

struct writer {
	struct symbols *symbols;
	struct memo memo;
	uint32_t counts[KIND_COUNT];
	struct bytes *out;
	bool full;
};

/* The number of what has this key, from 1 on; *fresh if it has to be written. */
static uint32_t number_of(struct writer *w, enum kind kind, const void *key, size_t len,
			  bool *fresh)
{
	struct memo_entry *entry = memo_enter(&w->memo, kind, key, len);
	*fresh = entry && !entry->first;
	if (*fresh)
		entry->first = ++w->counts[kind];
	w->full |= !entry;
	return entry ? entry->first : 0;
}

static void add(struct writer *w, struct bytes *out, uint32_t number, uint64_t value)
{
	w->full |= !wire_add_varint(out, number, value);
}

/* Appends the message and empties it. */
static void add_message(struct writer *w, struct bytes *out, uint32_t number, struct bytes *message)
{
	w->full |= !wire_add_len(out, number, bytes_view(message));
	bytes_fini(message);
}

static uint32_t text(struct writer *w, const char *characters)
{
	bool fresh;
	if (!*characters)
		return 0;
	uint32_t number = number_of(w, KIND_TEXT, characters, strlen(characters), &fresh);
	if (fresh)
		w->full |= !wire_add_len(w->out, PPROF_STRING, view_of(characters));
	return number;
}

static uint32_t function(struct writer *w, const struct symbol_line *line)
{
	bool fresh;
	uint32_t key[] = { text(w, line->function), text(w, line->file) };
	uint32_t number = number_of(w, KIND_FUNCTION, key, sizeof key, &fresh);
	if (!fresh)
		return number;
	struct bytes message;
	bytes_init(&message, MESSAGE_MAX);
	add(w, &message, PPROF_FUNCTION_ID, number);
	add(w, &message, PPROF_FUNCTION_NAME, key[0]);
	add(w, &message, PPROF_FUNCTION_SYSTEM_NAME, key[0]);
	add(w, &message, PPROF_FUNCTION_FILENAME, key[1]);
	add_message(w, w->out, PPROF_FUNCTION, &message);
	return number;
}

/* 0: the address belongs to no file. */
static uint32_t mapping(struct writer *w, uint64_t pc)
{
	bool fresh;
	struct symbol_module module;
	if (!symbols_module(w->symbols, pc, &module))
		return 0;
	uint32_t number = number_of(w, KIND_MAPPING, &module.start, sizeof module.start, &fresh);
	if (!fresh)
		return number;
	struct bytes message;
	bytes_init(&message, MESSAGE_MAX);
	add(w, &message, PPROF_MAPPING_ID, number);
	add(w, &message, PPROF_MAPPING_START, module.start);
	add(w, &message, PPROF_MAPPING_LIMIT, module.end);
	add(w, &message, PPROF_MAPPING_FILENAME, text(w, module.path));
	add(w, &message, PPROF_MAPPING_BUILD_ID, text(w, module.build_id));
	for (uint32_t flag = 0; flag < PPROF_FLAG_COUNT; flag++)
		add(w, &message, PPROF_MAPPING_HAS_FUNCTIONS + flag, !flag || module.has_debug);
	add_message(w, w->out, PPROF_MAPPING, &message);
	return number;
}

static void add_line(struct writer *w, struct bytes *location, const struct symbol_line *line)
{
	struct bytes message;
	bytes_init(&message, MESSAGE_MAX);
	add(w, &message, PPROF_LINE_FUNCTION, function(w, line));
	add(w, &message, PPROF_LINE_LINE, (uint64_t)line->line);
	add_message(w, location, PPROF_LOCATION_LINE, &message);
}

static uint32_t location(struct writer *w, uint64_t pc)
{
	bool fresh;
	uint32_t number = number_of(w, KIND_LOCATION, &pc, sizeof pc, &fresh);
	if (!fresh)
		return number;
	struct symbol_line lines[INLINED_MAX];
	struct bytes message;
	bytes_init(&message, MESSAGE_MAX);
	add(w, &message, PPROF_LOCATION_ID, number);
	add(w, &message, PPROF_LOCATION_MAPPING, mapping(w, pc));
	add(w, &message, PPROF_LOCATION_ADDRESS, pc);
	size_t count = symbols_lines(w->symbols, pc, lines, INLINED_MAX);
	for (size_t i = 0; i < count; i++)
		add_line(w, &message, &lines[i]);
	add_message(w, w->out, PPROF_LOCATION, &message);
	return number;
}

static void add_sample(struct writer *w, const struct own_profile *profile,
		       const struct stack *stack)
{
	struct bytes message;
	bytes_init(&message, MESSAGE_MAX);
	for (uint32_t i = 0; i < stack->depth; i++)
		add(w, &message, PPROF_SAMPLE_LOCATIONS,
		    location(w, profile->pcs.at[stack->first + i]));
	add(w, &message, PPROF_SAMPLE_VALUES, stack->seen);
	add(w, &message, PPROF_SAMPLE_VALUES, stack->seen * SAMPLER_PERIOD_NS);
	add_message(w, w->out, PPROF_SAMPLE, &message);
}

static void add_type(struct writer *w, uint32_t number, const char *type, const char *unit)
{
	struct bytes message;
	bytes_init(&message, MESSAGE_MAX);
	add(w, &message, PPROF_TYPE_TYPE, text(w, type));
	add(w, &message, PPROF_TYPE_UNIT, text(w, unit));
	add_message(w, w->out, number, &message);
}

bool own_profile_write(const struct own_profile *profile, struct symbols *symbols, uint64_t time,
		       uint64_t duration, struct bytes *out)
{
	struct writer w = { .symbols = symbols, .memo = { .max_bytes = MEMO_MAX }, .out = out };
	w.full |= !wire_add_len(out, PPROF_STRING, (struct view){ 0 });
	add_type(&w, PPROF_SAMPLE_TYPE, "samples", "count");
	add_type(&w, PPROF_SAMPLE_TYPE, "cpu", "nanoseconds");
	add_type(&w, PPROF_PERIOD_TYPE, "cpu", "nanoseconds");
	add(&w, out, PPROF_PERIOD, SAMPLER_PERIOD_NS);
	add(&w, out, PPROF_TIME, time);
	add(&w, out, PPROF_DURATION, duration);
	/* readers take the first mapping for the program */
	mapping(&w, (uintptr_t)own_profile_write);
	for (uint32_t i = 0; i < profile->stacks.count; i++)
		add_sample(&w, profile, &profile->stacks.at[i]);
	memo_fini(&w.memo);
	return !w.full;
}
