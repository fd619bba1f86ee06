/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/pprof/encode_pprof.h"
#include "profile/pprof/pprof_labels.h"
#include "profile/pprof/pprof_run.h"
#include "profile/pprof/pprof_tables.h"
#include "profile/wire.h"

static const struct attribute *attribute_in(const struct profiles *p, struct list list, uint32_t i)
{
	return &p->attributes.at[p->indices.at[list.first + i]];
}

/* Samples. */

uint64_t encode_pprof_value(const struct profiles *p, const struct sample *sample)
{
	if (!sample->values.len)
		return sample->timestamps.len / 8;
	__int128 sum = 0; /* values may cancel out, so only the end of it is bounded */
	struct wire w = wire_of(span_view(p, sample->values));
	while (wire_more(&w))
		sum += (int64_t)wire_varint(&w);
	return (uint64_t)(sum > INT64_MAX ? INT64_MAX : sum < INT64_MIN ? INT64_MIN : (int64_t)sum);
}

static void pack(struct pprof_writer *w, uint64_t number)
{
	w->full |= !bytes_reserve(&w->packed, 10);
	if (!w->full)
		w->packed.len = (size_t)(wire_put_varint(w->packed.at + w->packed.len, number) -
					 w->packed.at);
}

enum sign { SIGN_ANY, SIGN_NEGATIVE, SIGN_OTHER };

/* Of the sample i, as the run's Profile in that place has it; 0 if it is of another sign. */
static uint64_t value_of(const struct pprof_writer *w, const struct pprof_run *run, uint32_t place,
			 uint32_t i, enum sign sign)
{
	const struct profile *profile = &run->profiles[run->place[place]];
	uint64_t value = encode_pprof_value(w->p, &w->p->samples.at[profile->samples.first + i]);
	return sign == SIGN_ANY || (sign == SIGN_NEGATIVE) == ((int64_t)value < 0) ? value : 0;
}

static bool has_both_signs(const struct pprof_writer *w, const struct pprof_run *run, uint32_t i)
{
	bool negative = false, positive = false;
	for (uint32_t k = 0; k < run->count && run->count > 1; k++) {
		int64_t value = (int64_t)value_of(w, run, k, i, SIGN_ANY);
		negative |= value < 0;
		positive |= value > 0;
	}
	return negative && positive;
}

static void add_values(struct pprof_writer *w, const struct pprof_run *run, uint32_t i,
		       enum sign sign)
{
	const struct profiles *p = w->p;
	const struct sample *sample = &p->samples.at[run->profiles->samples.first + i];
	struct list locations = p->stacks.at[sample->stack].locations;
	/* Numbering writes locations into the same scratch: first number them all, then pack. */
	for (uint32_t k = 0; k < locations.count; k++)
		pprof_tables_location(w, p->indices.at[locations.first + k]);
	w->part.len = w->packed.len = 0;
	for (uint32_t k = 0; k < locations.count; k++)
		pack(w, w->locations[p->indices.at[locations.first + k]].number);
	if (locations.count)
		w->full |= !wire_add_len(&w->part, PPROF_SAMPLE_LOCATIONS, bytes_view(&w->packed));
	w->packed.len = 0;
	for (uint32_t k = 0; k < run->count; k++)
		pack(w, value_of(w, run, k, i, sign));
	if (w->cpu_period)
		pack(w, encode_pprof_value(p, sample) * w->cpu_period);
	w->full |= !wire_add_len(&w->part, PPROF_SAMPLE_VALUES, bytes_view(&w->packed));
	pprof_labels_add(w, sample);
	w->full |= !wire_add_len(&w->table[PPROF_SAMPLE], PPROF_SAMPLE, bytes_view(&w->part));
}

static void add_sample(struct pprof_writer *w, const struct pprof_run *run, uint32_t i)
{
	if (!w->signs_apart || !has_both_signs(w, run, i)) {
		add_values(w, run, i, SIGN_ANY);
		return;
	}
	add_values(w, run, i, SIGN_OTHER);
	add_values(w, run, i, SIGN_NEGATIVE);
}

/* The rest of the profile. */

static void add_type_numbers(struct pprof_writer *w, uint32_t number, uint32_t type, uint32_t unit)
{
	struct pprof_plain message = { .len = 0 };
	pprof_writer_put(&message, PPROF_TYPE_TYPE, type);
	pprof_writer_put(&message, PPROF_TYPE_UNIT, unit);
	pprof_writer_add(w, &w->table[number], number, &message);
}

static void add_type(struct pprof_writer *w, uint32_t number, struct value_kind kind)
{
	add_type_numbers(w, number, pprof_writer_string(w, kind.type),
			 pprof_writer_string(w, kind.unit));
}

static bool kind_is(const struct profiles *p, struct value_kind kind, const char *type,
		    const char *unit)
{
	return string_is(p, kind.type, type) && string_is(p, kind.unit, unit);
}

static bool wants_cpu_time(const struct profiles *p, const struct profile *profile)
{
	for (uint32_t i = 0; i < profile->attributes.count; i++)
		if (string_is(p, attribute_in(p, profile->attributes, i)->key, PPROF_CPU_TIME))
			return true;
	return false;
}

/* The factor from samples to nanoseconds of CPU; 0: none is to be added, or it would not fit. */
static uint64_t cpu_period(const struct pprof_writer *w, const struct pprof_run *run)
{
	const struct profiles *p = w->p;
	const struct profile *f = run->profiles;
	if (run->count != 1 || f->period <= 0 || !kind_is(p, f->sample_type, "samples", "count") ||
	    !kind_is(p, f->period_type, "cpu", "nanoseconds") || !wants_cpu_time(p, f))
		return 0;
	for (uint32_t i = 0; i < f->samples.count; i++) {
		int64_t product;
		if (__builtin_mul_overflow(
			    (int64_t)encode_pprof_value(p, &p->samples.at[f->samples.first + i]),
			    f->period, &product))
			return 0;
	}
	return (uint64_t)f->period;
}

static void add_number(struct pprof_writer *w, uint32_t number, uint64_t value)
{
	if (value)
		w->full |= !wire_add_varint(&w->table[number], number, value);
}

static void add_comment(struct pprof_writer *w, const struct attribute *a)
{
	if (a->type == VALUE_STRING)
		w->full |= !wire_add_varint(&w->table[PPROF_COMMENT], PPROF_COMMENT,
					    pprof_writer_string(w, a->string));
	for (uint32_t i = 0; a->type == VALUE_ARRAY && i < a->children.count; i++) {
		const struct attribute *child = &w->p->attributes.at[a->children.first + i];
		if (child->type == VALUE_STRING)
			add_comment(w, child);
	}
}

static void add_profile_attributes(struct pprof_writer *w, const struct profile *profile)
{
	static const uint8_t fields[PPROF_KEY_COUNT] = {
		[PPROF_KEY_DROP_FRAMES] = PPROF_DROP_FRAMES,
		[PPROF_KEY_KEEP_FRAMES] = PPROF_KEEP_FRAMES,
		[PPROF_KEY_DOC_URL] = PPROF_DOC_URL,
	};
	for (uint32_t i = 0; i < profile->attributes.count; i++) {
		const struct attribute *a = attribute_in(w->p, profile->attributes, i);
		enum pprof_key key = pprof_key_of(string_view(w->p, a->key));
		if (key == PPROF_KEY_COMMENT)
			add_comment(w, a);
		else if (key < PPROF_KEY_COUNT && fields[key] && a->type == VALUE_STRING)
			add_number(w, fields[key], pprof_writer_string(w, a->string));
	}
}

static void write_run(struct pprof_writer *w, const struct pprof_run *run,
		      const struct pprof_run_hints *hints)
{
	const struct profile *first = run->profiles;
	for (uint32_t i = 0; i < run->count; i++)
		add_type(w, PPROF_SAMPLE_TYPE, run->profiles[run->place[i]].sample_type);
	w->cpu_period = cpu_period(w, run);
	if (w->cpu_period)
		add_type_numbers(w, PPROF_SAMPLE_TYPE, pprof_writer_text(w, view_of("cpu")),
				 pprof_writer_text(w, view_of("nanoseconds")));
	pprof_tables_number_main_first(w, first->samples);
	for (uint32_t i = 0; i < first->samples.count && !w->full; i++)
		add_sample(w, run, i);
	pprof_tables_add_mappings(w);
	add_profile_attributes(w, first);
	add_number(w, PPROF_TIME, first->time);
	add_number(w, PPROF_DURATION, first->duration);
	add_number(w, PPROF_PERIOD, (uint64_t)first->period);
	if (first->has_period_type)
		add_type(w, PPROF_PERIOD_TYPE, first->period_type);
	add_number(w, PPROF_DEFAULT_SAMPLE_TYPE, pprof_writer_string(w, hints->default_type));
}

struct emitter {
	bool (*emit)(const struct pprof_out *out, void *context);
	void *context;
	struct error *err;
};

static bool encode_scope(struct pprof_writer *w, uint32_t resource, uint32_t scope,
			 const struct emitter *emitter)
{
	const struct profiles *p = w->p;
	const struct scope *from = &p->scopes.at[scope];
	struct pprof_run_hints hints = pprof_run_hints(p, from);
	struct pprof_run run;
	for (uint32_t i = 0; i < from->profiles.count; i += run.count) {
		pprof_run_find(p, from, hints.order, i, &run);
		pprof_writer_begin(w);
		write_run(w, &run, &hints);
		if (!pprof_writer_join(w))
			return error_set(emitter->err, ERROR_TOO_LARGE,
					 "profile %u of scope %u exceeds %zu bytes as pprof", i,
					 scope, w->table[0].max);
		struct pprof_out out = {
			.bytes = bytes_view(&w->table[0]),
			.first = run.profiles,
			.resource = resource,
			.scope = scope,
			.samples = (uint64_t)run.profiles->samples.count * run.count,
		};
		if (!emitter->emit(&out, emitter->context))
			return false;
	}
	return true;
}

static bool encode_all(struct pprof_writer *w, const struct emitter *emitter)
{
	const struct profiles *p = w->p;
	for (uint32_t i = 0; i < p->resources.count; i++) {
		struct list scopes = p->resources.at[i].scopes;
		for (uint32_t k = 0; k < scopes.count; k++)
			if (!encode_scope(w, i, scopes.first + k, emitter))
				return false;
	}
	return true;
}

bool encode_pprof(const struct profiles *p, bool signs_apart,
		  bool (*emit)(const struct pprof_out *out, void *context), void *context,
		  struct error *err)
{
	struct pprof_writer w;
	pprof_writer_init(&w, p, signs_apart);
	pprof_tables_find_main(&w);
	bool ok = encode_all(&w, &(struct emitter){ emit, context, err });
	pprof_writer_fini(&w);
	return ok;
}
