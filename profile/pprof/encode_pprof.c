/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/pprof/encode_pprof.h"
#include "base/memory.h"
#include "profile/pprof/pprof_writer.h"
#include "profile/wire.h"

/* What the attributes of a scope say about its runs. */
struct scope_says {
	uint32_t default_type; /* string */
	struct list order;     /* in attributes: ints */
};

void pprof_put(struct pprof_plain *message, uint32_t number, uint64_t value)
{
	if (!value)
		return;
	uint8_t *end = wire_put_tag(message->at + message->len, number, WIRE_VARINT);
	message->len = (size_t)(wire_put_varint(end, value) - message->at);
}

static void add_plain(struct pprof_writer *w, struct bytes *out, uint32_t number,
		      const struct pprof_plain *message)
{
	w->full |= !wire_add_len(out, number, (struct view){ message->at, message->len });
}

/* Strings. */

uint32_t pprof_text(struct pprof_writer *w, struct view text)
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

uint32_t pprof_string(struct pprof_writer *w, uint32_t string)
{
	struct pprof_number *known = &w->strings[string];
	if (known->run != w->run)
		*known = (struct pprof_number){ w->run, pprof_text(w, string_view(w->p, string)) };
	return known->number;
}

/* Attributes that say what pprof has a field for. */

static enum pprof_key key_of(const struct profiles *p, const struct attribute *a)
{
	return pprof_key_of(string_view(p, a->key));
}

static const struct attribute *attribute_in(const struct profiles *p, struct list list, uint32_t i)
{
	return &p->attributes.at[p->indices.at[list.first + i]];
}

static bool has_true(const struct profiles *p, struct list attributes, enum pprof_key key)
{
	for (uint32_t i = 0; i < attributes.count; i++) {
		const struct attribute *a = attribute_in(p, attributes, i);
		if (a->type == VALUE_BOOL && a->boolean && key_of(p, a) == key)
			return true;
	}
	return false;
}

/* Mappings, functions, locations. */

static void add_mapping(struct pprof_writer *w, uint32_t number)
{
	const struct profiles *p = w->p;
	const struct mapping *mapping = &p->mappings.at[w->used_mappings[number - 1]];
	uint8_t said = 0, flags = 0;
	uint32_t build_id[PPROF_KEY_COUNT] = { 0 };
	for (uint32_t i = 0; i < mapping->attributes.count; i++) {
		const struct attribute *a = attribute_in(p, mapping->attributes, i);
		enum pprof_key key = key_of(p, a);
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
	pprof_put(&message, PPROF_MAPPING_ID, number);
	pprof_put(&message, PPROF_MAPPING_START, mapping->start);
	pprof_put(&message, PPROF_MAPPING_LIMIT, mapping->limit);
	pprof_put(&message, PPROF_MAPPING_OFFSET, mapping->offset);
	pprof_put(&message, PPROF_MAPPING_FILENAME, pprof_string(w, mapping->filename));
	pprof_put(&message, PPROF_MAPPING_BUILD_ID, pprof_string(w, id));
	for (uint32_t i = 0; i < PPROF_FLAG_COUNT; i++)
		pprof_put(&message, PPROF_MAPPING_HAS_FUNCTIONS + i, flags >> i & 1);
	add_plain(w, &w->table[PPROF_MAPPING], PPROF_MAPPING, &message);
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
static void number_main_first(struct pprof_writer *w, struct list samples)
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

static void find_main_mappings(struct pprof_writer *w)
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
	pprof_put(&message, PPROF_FUNCTION_ID, known->number);
	pprof_put(&message, PPROF_FUNCTION_NAME, pprof_string(w, f->name));
	pprof_put(&message, PPROF_FUNCTION_SYSTEM_NAME, pprof_string(w, f->system_name));
	pprof_put(&message, PPROF_FUNCTION_FILENAME, pprof_string(w, f->filename));
	pprof_put(&message, PPROF_FUNCTION_START_LINE, (uint64_t)f->start_line);
	add_plain(w, &w->table[PPROF_FUNCTION], PPROF_FUNCTION, &message);
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
		pprof_put(&message, PPROF_LINE_FUNCTION, number_function(w, line->function));
		pprof_put(&message, PPROF_LINE_LINE, (uint64_t)line->line);
		pprof_put(&message, PPROF_LINE_COLUMN, (uint64_t)line->column);
		add_plain(w, &w->packed, PPROF_LOCATION_LINE, &message);
		flags |= (line->function != 0) << PPROF_KEY_HAS_FUNCTIONS;
		flags |= (p->functions.at[line->function].filename != 0) << PPROF_KEY_HAS_FILENAMES;
		flags |= (line->line != 0) << PPROF_KEY_HAS_LINE_NUMBERS;
	}
	return flags;
}

static uint32_t number_location(struct pprof_writer *w, uint32_t location)
{
	struct pprof_number *known = &w->locations[location];
	if (known->run == w->run)
		return known->number;
	*known = (struct pprof_number){ w->run, ++w->location_count };
	const struct location *l = &w->p->locations.at[location];
	struct pprof_plain head = { .len = 0 }, tail = { .len = 0 };
	uint32_t mapping = number_mapping(w, l->mapping);
	pprof_put(&head, PPROF_LOCATION_ID, known->number);
	pprof_put(&head, PPROF_LOCATION_MAPPING, mapping);
	pprof_put(&head, PPROF_LOCATION_ADDRESS, l->address);
	pprof_put(&tail, PPROF_LOCATION_FOLDED, has_true(w->p, l->attributes, PPROF_KEY_IS_FOLDED));
	w->packed.len = 0;
	w->full |= !bytes_add(&w->packed, head.at, head.len);
	uint8_t flags = add_lines(w, l->lines);
	w->full |= !bytes_add(&w->packed, tail.at, tail.len) ||
		   !wire_add_len(&w->table[PPROF_LOCATION], PPROF_LOCATION, bytes_view(&w->packed));
	if (mapping)
		w->mapping_flags[mapping - 1] |= flags;
	return known->number;
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
	/* Numbering writes locations, which use the same scratch: first number, then pack. */
	for (uint32_t k = 0; k < locations.count; k++)
		number_location(w, p->indices.at[locations.first + k]);
	w->part.len = w->packed.len = 0;
	for (uint32_t k = 0; k < locations.count; k++)
		pack(w, number_location(w, p->indices.at[locations.first + k]));
	if (locations.count)
		w->full |= !wire_add_len(&w->part, PPROF_SAMPLE_LOCATIONS, bytes_view(&w->packed));
	w->packed.len = 0;
	for (uint32_t k = 0; k < run->count; k++)
		pack(w, value_of(w, run, k, i, sign));
	if (w->cpu_period)
		pack(w, encode_pprof_value(p, sample) * w->cpu_period);
	w->full |= !wire_add_len(&w->part, PPROF_SAMPLE_VALUES, bytes_view(&w->packed));
	pprof_add_labels(w, sample);
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
	pprof_put(&message, PPROF_TYPE_TYPE, type);
	pprof_put(&message, PPROF_TYPE_UNIT, unit);
	add_plain(w, &w->table[number], number, &message);
}

static void add_type(struct pprof_writer *w, uint32_t number, struct value_kind kind)
{
	add_type_numbers(w, number, pprof_string(w, kind.type), pprof_string(w, kind.unit));
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
					    pprof_string(w, a->string));
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
		enum pprof_key key = key_of(w->p, a);
		if (key == PPROF_KEY_COMMENT)
			add_comment(w, a);
		else if (key < PPROF_KEY_COUNT && fields[key] && a->type == VALUE_STRING)
			add_number(w, fields[key], pprof_string(w, a->string));
	}
}

static void write_run(struct pprof_writer *w, const struct pprof_run *run,
		      const struct scope_says *says)
{
	const struct profile *first = run->profiles;
	for (uint32_t i = 0; i < run->count; i++)
		add_type(w, PPROF_SAMPLE_TYPE, run->profiles[run->place[i]].sample_type);
	w->cpu_period = cpu_period(w, run);
	if (w->cpu_period)
		add_type_numbers(w, PPROF_SAMPLE_TYPE, pprof_text(w, view_of("cpu")),
				 pprof_text(w, view_of("nanoseconds")));
	number_main_first(w, first->samples);
	for (uint32_t i = 0; i < first->samples.count && !w->full; i++)
		add_sample(w, run, i);
	for (uint32_t i = 1; i <= w->mapping_count; i++)
		add_mapping(w, i);
	add_profile_attributes(w, first);
	add_number(w, PPROF_TIME, first->time);
	add_number(w, PPROF_DURATION, first->duration);
	add_number(w, PPROF_PERIOD, (uint64_t)first->period);
	if (first->has_period_type)
		add_type(w, PPROF_PERIOD_TYPE, first->period_type);
	add_number(w, PPROF_DEFAULT_SAMPLE_TYPE, pprof_string(w, says->default_type));
}

/* One allocation of the right size: growing would need up to twice as much. */
static bool join_tables(struct pprof_writer *w)
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

static void begin_run(struct pprof_writer *w)
{
	for (int i = 0; i < PPROF_PROFILE_FIELDS; i++)
		w->table[i].len = 0;
	w->run++;
	w->string_count = w->function_count = w->mapping_count = w->location_count = w->blank = 0;
	w->full = !wire_add_len(&w->table[PPROF_STRING], PPROF_STRING, (struct view){ NULL, 0 });
}

/* Runs. */

static bool same_list(const struct profiles *p, struct list a, struct list b)
{
	return a.count == b.count && (!a.count || a.first == b.first ||
				      memcmp(&p->indices.at[a.first], &p->indices.at[b.first],
					     a.count * sizeof *p->indices.at) == 0);
}

static bool same_kind(const struct profiles *p, struct value_kind a, struct value_kind b)
{
	return view_equal(string_view(p, a.type), string_view(p, b.type)) &&
	       view_equal(string_view(p, a.unit), string_view(p, b.unit));
}

static bool goes_with(const struct profiles *p, const struct profile *a, const struct profile *b)
{
	if (a->time != b->time || a->duration != b->duration || a->period != b->period ||
	    a->has_period_type != b->has_period_type ||
	    !same_kind(p, a->period_type, b->period_type) ||
	    !same_list(p, a->attributes, b->attributes) || a->samples.count != b->samples.count)
		return false;
	for (uint32_t i = 0; i < a->samples.count; i++) {
		const struct sample *x = &p->samples.at[a->samples.first + i];
		const struct sample *y = &p->samples.at[b->samples.first + i];
		if (x->stack != y->stack || x->link != y->link ||
		    !same_list(p, x->attributes, y->attributes))
			return false;
	}
	return true;
}

static bool repeats_type(const struct profiles *p, const struct pprof_run *run)
{
	for (uint32_t i = 0; i < run->count; i++)
		if (same_kind(p, run->profiles[i].sample_type,
			      run->profiles[run->count].sample_type))
			return true;
	return false;
}

static struct scope_says read_scope(const struct profiles *p, const struct scope *scope)
{
	struct scope_says says = { 0 };
	for (uint32_t i = 0; i < scope->attributes.count; i++) {
		const struct attribute *a = attribute_in(p, scope->attributes, i);
		enum pprof_key key = key_of(p, a);
		if (key == PPROF_KEY_DEFAULT_SAMPLE_TYPE && a->type == VALUE_STRING)
			says.default_type = a->string;
		else if (key == PPROF_KEY_SAMPLE_TYPE_ORDER && a->type == VALUE_ARRAY &&
			 a->children.count <= PPROF_TYPES_MAX)
			says.order = a->children;
	}
	return says;
}

/* The order tells where each Profile's type stood; it counts when it is a permutation of the run.
 */
static void settle_order(const struct profiles *p, struct pprof_run *run, struct list order)
{
	bool taken[PPROF_TYPES_MAX] = { false };
	bool good = order.count == run->count;
	for (uint32_t i = 0; i < order.count && good; i++) {
		const struct attribute *a = &p->attributes.at[order.first + i];
		uint64_t place = a->type == VALUE_INT ? (uint64_t)attribute_integer(a) : UINT64_MAX;
		good = place < run->count && !taken[place];
		if (good) {
			taken[place] = true;
			run->place[place] = (uint16_t)i;
		}
	}
	for (uint32_t i = 0; i < run->count && !good; i++)
		run->place[i] = (uint16_t)i;
}

static void find_run(const struct profiles *p, struct list profiles, uint32_t start,
		     struct list order, struct pprof_run *run)
{
	uint32_t most = order.count ? order.count : PPROF_TYPES_MAX;
	run->profiles = &p->profiles.at[profiles.first + start];
	for (run->count = 1; run->count < most && start + run->count < profiles.count; run->count++)
		if (!goes_with(p, run->profiles, run->profiles + run->count) ||
		    (!order.count && repeats_type(p, run)))
			break;
	settle_order(p, run, order);
}

struct list encode_pprof_order(const struct profiles *p, const struct scope *scope)
{
	return read_scope(p, scope).order;
}

void encode_pprof_run(const struct profiles *p, const struct scope *scope, struct list order,
		      uint32_t start, struct pprof_run *run)
{
	find_run(p, scope->profiles, start, order, run);
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
	struct list profiles = p->scopes.at[scope].profiles;
	struct scope_says says = read_scope(p, &p->scopes.at[scope]);
	struct pprof_run run;
	for (uint32_t i = 0; i < profiles.count; i += run.count) {
		find_run(p, profiles, i, says.order, &run);
		begin_run(w);
		write_run(w, &run, &says);
		if (!join_tables(w))
			return error_set(
				emitter->err, ERROR_TOO_LARGE,
				"profile %u of scope %u needs more than %zu bytes as pprof", i,
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

/* One attribute may stand for many labels on many samples, so what a packet can become is bounded.
 */
static size_t most_bytes(const struct profiles *p)
{
	size_t most = (size_t)1 << 20;
	most += 32 * p->input.len;
	return most < PROFILES_INPUT_MAX ? most : PROFILES_INPUT_MAX;
}

bool encode_pprof(const struct profiles *p, bool signs_apart,
		  bool (*emit)(const struct pprof_out *out, void *context), void *context,
		  struct error *err)
{
	struct pprof_writer w = { .p = p,
				  .signs_apart = signs_apart,
				  .texts.max_bytes = most_bytes(p) };
	for (int i = 0; i < PPROF_PROFILE_FIELDS; i++)
		bytes_init(&w.table[i], most_bytes(p));
	bytes_init(&w.part, most_bytes(p));
	bytes_init(&w.packed, most_bytes(p));
	bytes_init(&w.text, most_bytes(p));
	w.strings = memory_array(p->strings.count, sizeof *w.strings);
	w.functions = memory_array(p->functions.count, sizeof *w.functions);
	w.mappings = memory_array(p->mappings.count, sizeof *w.mappings);
	w.locations = memory_array(p->locations.count, sizeof *w.locations);
	w.used_mappings = memory_array(p->mappings.count, sizeof *w.used_mappings);
	w.mapping_flags = memory_array(p->mappings.count, sizeof *w.mapping_flags);
	find_main_mappings(&w);
	bool ok = encode_all(&w, &(struct emitter){ emit, context, err });
	for (int i = 0; i < PPROF_PROFILE_FIELDS; i++)
		bytes_fini(&w.table[i]);
	bytes_fini(&w.part);
	bytes_fini(&w.packed);
	bytes_fini(&w.text);
	memo_fini(&w.texts);
	memory_free(w.strings);
	memory_free(w.functions);
	memory_free(w.mappings);
	memory_free(w.locations);
	memory_free(w.used_mappings);
	memory_free(w.mapping_flags);
	memory_free(w.main_mappings);
	return ok;
}
