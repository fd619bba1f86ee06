/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/collect/split.h"
#include "base/array.h"
#include "base/memory.h"
#include "profile/collect/collect.h"
#include "profile/collect/intern.h"

/*
 * First, the limits that can be counted cut the sequence, greedily and exactly. Then each range is
 * sealed and measured. A range that exceeds a limit is cut again, in proportion to its excess, into
 * ranges of about equal weight. The weight of a Profile is its number of samples plus one, so that
 * a Profile without samples has a place too.
 *
 * A hostile packet can consist mostly of data that several parts repeat (resources, dictionaries).
 * The work is therefore bounded by a multiple of the packet's size. Each unit of weight contributes
 * its share of that, so a range cannot use up what later ranges need.
 */
#define RATIO_SPARE 1.05 /* for data that the parts repeat */
#define WORK_MAX 32      /* bytes encoded for one byte of the packet */
/* the same before the first part, because larger candidates come first */
#define WORK_AHEAD 16
#define WORK_SPARE (32 << 20) /* plus this many bytes */

struct unit {                              /* a Profile that is collected */
	uint32_t resource, scope, profile; /* in the tables */
	uint64_t before;                   /* the total weight of the units before it */
};

struct place {
	uint32_t unit, sample;
};

struct range {
	struct place from, to;
};

struct tally { /* of the range that grows */
	uint64_t samples, profiles, resources;
	struct place from;
};

struct splitter {
	const struct profiles *p;
	const struct packet *whole;
	const struct limits *limits;
	const struct split_measure *measure;
	struct parts *parts;
	struct error *err;
	ARRAY(struct unit) units; /* and one that ends them */
	struct tally tally;
	struct intern series; /* of the range that grows */
	ARRAY(uint32_t) key;
	struct collect *collect;
	struct profiles cut; /* p, except for resources, scopes and profiles */
	uint64_t spent;      /* bytes of all candidates */
	uint32_t past;       /* the unit after the last one of which a part contains something */
	/* of parts->keeps: Profiles that are out of time, and what is left out by size; empty if
	 * `to` is not behind `from` */
	ARRAY(struct unit) late[PART_DROPPED];
	struct range apart;
};

struct candidate {
	struct packet *packet; /* NULL if it exceeds a limit */
	uint64_t samples, bytes;
	double ratio; /* its size as a multiple of the limit */
};

static uint32_t samples_of(const struct splitter *s, uint32_t unit)
{
	return s->p->profiles.at[s->units.at[unit].profile].samples.count;
}

static uint64_t weight_before(const struct splitter *s, struct place place)
{
	return s->units.at[place.unit].before + place.sample;
}

static uint64_t weight_of(const struct splitter *s, struct range r)
{
	return weight_before(s, r.to) - weight_before(s, r.from);
}

static uint64_t total_weight(const struct splitter *s)
{
	return s->units.at[s->units.count - 1].before;
}

/* The unit after the last one in the range. */
static uint32_t end_of(struct range r)
{
	return r.to.unit + (r.to.sample > 0);
}

static uint64_t samples_between(const struct splitter *s, struct range r)
{
	return weight_of(s, r) - (r.to.unit - r.from.unit);
}

/* ---- the sequence ---- */

static bool is_out_of_time(struct splitter *s, const struct unit *unit)
{
	const struct profile *f = &s->p->profiles.at[unit->profile];
	bool old = f->time && f->time < s->limits->oldest;
	bool new = s->limits->newest && f->time > s->limits->newest;
	enum part_dropped why = old ? PART_TOO_OLD : PART_TOO_NEW;
	if (!old && !new)
		return false;
	s->parts->dropped[why] += f->samples.count;
	if (s->parts->keeps)
		array_push(&s->late[why]) = *unit;
	return true;
}

static void list_scope(struct splitter *s, uint32_t resource, uint32_t scope, uint64_t *weight)
{
	struct list profiles = s->p->scopes.at[scope].profiles;
	for (uint32_t i = profiles.first; i < profiles.first + profiles.count; i++) {
		const struct profile *f = &s->p->profiles.at[i];
		const struct unit unit = { resource, scope, i, *weight };
		if (f->fault || f->dropped || is_out_of_time(s, &unit))
			continue;
		array_push(&s->units) = unit;
		*weight += (uint64_t)f->samples.count + 1;
	}
}

static void list_units(struct splitter *s)
{
	uint64_t weight = 0;
	for (uint32_t i = 0; i < s->p->resources.count; i++) {
		const struct resource *r = &s->p->resources.at[i];
		for (uint32_t j = 0; j < r->scopes.count && !r->fault; j++)
			list_scope(s, i, r->scopes.first + j, &weight);
	}
	array_push(&s->units) = (struct unit){ .before = weight };
}

/* ---- a range as a packet ---- */

static struct list samples_in(const struct splitter *s, struct range r, uint32_t unit)
{
	struct list list = s->p->profiles.at[s->units.at[unit].profile].samples;
	uint32_t first = unit == r.from.unit ? r.from.sample : 0;
	uint32_t end = unit == r.to.unit ? r.to.sample : list.count;
	return (struct list){ list.first + first, end - first };
}

/* Appends the unit's Profile, with these samples, to the cut. */
static void copy_unit(struct splitter *s, uint32_t unit, struct list samples)
{
	struct profiles *cut = &s->cut;
	const struct unit *u = &s->units.at[unit], *last = cut->profiles.count ? u - 1 : NULL;
	bool opens = !last || last->resource != u->resource;
	if (opens) {
		cut->resources.at[cut->resources.count] = s->p->resources.at[u->resource];
		cut->resources.at[cut->resources.count++].scopes =
			(struct list){ cut->scopes.count, 0 };
	}
	if (opens || last->scope != u->scope) {
		cut->scopes.at[cut->scopes.count] = s->p->scopes.at[u->scope];
		cut->scopes.at[cut->scopes.count++].profiles =
			(struct list){ cut->profiles.count, 0 };
		cut->resources.at[cut->resources.count - 1].scopes.count++;
	}
	cut->profiles.at[cut->profiles.count] = s->p->profiles.at[u->profile];
	cut->profiles.at[cut->profiles.count++].samples = samples;
	cut->scopes.at[cut->scopes.count - 1].profiles.count++;
}

static void copy_range(struct splitter *s, struct range r)
{
	s->cut.resources.count = s->cut.scopes.count = s->cut.profiles.count = 0;
	for (uint32_t unit = r.from.unit; unit < end_of(r); unit++)
		copy_unit(s, unit, samples_in(s, r, unit));
}

static struct packet *seal(struct splitter *s)
{
	struct packet *packet = collect_seal(s->collect);
	packet->contribution_count = 0; /* contributions belong to the whole */
	packet->oldest_arrival = s->whole->oldest_arrival;
	packet->origin = origin_ref(s->whole->origin);
	if (s->parts->charge)
		packet_charge_to(packet, s->parts->charge, s->parts->charge_context);
	else if (s->whole->charge)
		packet_charge_to(packet, s->whole->charge, s->whole->charge_context);
	return packet;
}

static double ratio_of(uint64_t is, uint64_t limit)
{
	return limit ? (double)is / (double)limit : 0;
}

static bool weigh(struct splitter *s, struct candidate *c)
{
	struct split_size size = { collect_bytes(s->collect), collect_samples(s->collect) };
	s->spent += size.bytes;
	if (s->measure) {
		c->packet = seal(s);
		if (!s->measure->measure(s->measure->context, c->packet, &size, s->err))
			return false;
	}
	double samples = ratio_of(size.samples, s->limits->samples);
	c->bytes = size.bytes;
	c->ratio = ratio_of(size.bytes, s->limits->bytes);
	c->ratio = c->ratio < samples ? samples : c->ratio;
	return true;
}

/* Seals and measures what was copied. The packet is kept if it is within the limits, or if `anyway`
 * is set. */
static bool make_candidate(struct splitter *s, bool anyway, struct candidate *c)
{
	struct collect_added added;
	*c = (struct candidate){ .ratio = 2 };
	if (collect_add(s->collect, &s->cut, false, &added, s->err) != COLLECT_ADDED) {
		s->spent += s->whole->otlp.len; /* it is larger than any message may be */
		return true;
	}
	c->samples = added.samples_in;
	bool measured = weigh(s, c);
	bool keep = measured && (c->ratio <= 1 || anyway);
	if (keep && !c->packet)
		c->packet = seal(s);
	if (!keep)
		packet_unref(&c->packet);
	collect_discard(s->collect);
	return measured;
}

static void keep(struct splitter *s, struct range r, const struct candidate *c)
{
	const uint32_t *groups = s->limits->groups;
	parts_add(s->parts, c->packet, c->samples, c->bytes);
	struct part *part = &s->parts->at[s->parts->count - 1];
	part->continues = r.from.unit < s->past;
	part->group = groups ? groups[s->units.at[r.from.unit].resource] : 0;
	s->past = end_of(r);
}

/* ---- what is in no part ---- */

/* Seals a range without regard to limits. If even that is too large, it is not kept. */
static void leave_range(struct splitter *s, struct range r, enum part_dropped why)
{
	struct collect_added added;
	struct error err;
	error_clear(&err);
	copy_range(s, r);
	if (collect_add(s->collect, &s->cut, false, &added, &err) == COLLECT_ADDED)
		parts_leave(s->parts, seal(s), added.samples_in, why);
	collect_discard(s->collect);
}

static void end_apart(struct splitter *s)
{
	if (weight_before(s, s->apart.to) > weight_before(s, s->apart.from))
		leave_range(s, s->apart, PART_TOO_LARGE);
	s->apart = (struct range){ { 0, 0 }, { 0, 0 } };
}

/* Neighbours are sealed together. */
static void leave_out(struct splitter *s, struct range r)
{
	s->parts->dropped[PART_TOO_LARGE] += samples_between(s, r);
	if (!s->parts->keeps)
		return;
	if (weight_before(s, s->apart.to) == weight_before(s, r.from) &&
	    weight_before(s, s->apart.to) > weight_before(s, s->apart.from)) {
		s->apart.to = r.to;
		return;
	}
	end_apart(s);
	s->apart = r;
}

static void leave_late(struct splitter *s)
{
	for (unsigned why = 0; why < PART_DROPPED; why++) {
		uint32_t count = s->late[why].count;
		struct unit *units = s->units.at;
		if (!count)
			continue;
		s->units.at = s->late[why].at;
		leave_range(s, (struct range){ { 0, 0 }, { count, 0 } }, why);
		s->units.at = units;
	}
}

/* ---- cutting what is over ---- */

static bool is_one_unit(struct range r)
{
	return end_of(r) == r.from.unit + 1;
}

/* The maximum number of ranges that it could be cut into. */
static uint64_t divisions_of(const struct splitter *s, struct range r)
{
	return is_one_unit(r) ? samples_in(s, r, r.from.unit).count : end_of(r) - r.from.unit;
}

/* The unit that contains a position by weight. */
static uint32_t unit_at(const struct splitter *s, struct range r, uint64_t weight)
{
	uint32_t low = r.from.unit, high = end_of(r);
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (s->units.at[middle].before <= weight)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* A cut near the end of the i-th of `count` equal ranges: between samples if there is only one
 * Profile, else between Profiles; never at an end of the range. */
static struct place border_of(const struct splitter *s, struct range r, uint64_t i, uint64_t count)
{
	if (is_one_unit(r)) {
		uint64_t samples = samples_in(s, r, r.from.unit).count;
		return (struct place){ r.from.unit,
				       r.from.sample + (uint32_t)(samples * i / count) };
	}
	uint64_t share = (uint64_t)((double)weight_of(s, r) * (double)i / (double)count);
	uint64_t weight = weight_before(s, r.from) + share;
	uint32_t unit = unit_at(s, r, weight), min = r.from.unit + 1, max = end_of(r) - 1;
	unit += weight - s->units.at[unit].before > s->units.at[unit + 1].before - weight;
	return (struct place){ unit < min ? min : unit > max ? max : unit, 0 };
}

static bool put_range(struct splitter *s, struct range r);

static bool cut_range(struct splitter *s, struct range r, double ratio)
{
	uint64_t max = divisions_of(s, r);
	double wanted = ratio * RATIO_SPARE + 1;
	uint64_t count = wanted < (double)max ? (uint64_t)wanted : max;
	struct place from = r.from;
	for (uint64_t i = 1; i < count; i++) {
		struct place to = border_of(s, r, i, count);
		if (weight_before(s, to) <= weight_before(s, from))
			continue;
		if (!put_range(s, (struct range){ from, to }))
			return false;
		from = to;
	}
	return put_range(s, (struct range){ from, r.to });
}

/* Does it exceed the limits even without its samples and, if there are several Profiles, without
 * the Profiles? Then cutting would only repeat that part. This can be determined only within one
 * scope. */
static bool is_hopeless(struct splitter *s, struct range r, bool *hopeless)
{
	const struct unit *first = &s->units.at[r.from.unit], *last = &s->units.at[end_of(r) - 1];
	struct candidate c;
	*hopeless = false;
	if (first->resource != last->resource || first->scope != last->scope)
		return true;
	copy_range(s, (struct range){ r.from, { r.from.unit, r.from.sample + 1 } });
	s->cut.profiles.at[0].samples.count = 0;
	if (!is_one_unit(r))
		s->cut.profiles.at[0] = (struct profile){ 0 };
	bool made = make_candidate(s, false, &c);
	*hopeless = made && !c.packet;
	packet_unref(&c.packet);
	return made;
}

/* The range cannot be made smaller. */
static bool put_indivisible(struct splitter *s, struct range r)
{
	struct candidate c = { 0 };
	copy_range(s, r);
	if (s->limits->guessed && !make_candidate(s, true, &c))
		return false;
	if (c.packet)
		keep(s, r, &c);
	else
		leave_out(s, r);
	return true;
}

static bool put_smaller(struct splitter *s, struct range r, double ratio)
{
	bool hopeless = true;
	if (divisions_of(s, r) > 1 && !is_hopeless(s, r, &hopeless))
		return false;
	return hopeless ? put_indivisible(s, r) : cut_range(s, r, ratio);
}

/* An estimate from the packet's own size; 0: none. */
static double expected_ratio(const struct splitter *s, struct range r)
{
	double share = (double)weight_of(s, r) / (double)total_weight(s);
	return s->measure ? 0 : share * ratio_of(s->whole->otlp.len, s->limits->bytes);
}

static bool has_work_left(const struct splitter *s, struct range r)
{
	double share = (double)weight_before(s, r.to) / (double)total_weight(s);
	return (double)s->spent <=
	       (share * WORK_MAX + WORK_AHEAD) * (double)s->whole->otlp.len + WORK_SPARE;
}

static bool put_range(struct splitter *s, struct range r)
{
	struct candidate c;
	double expected = expected_ratio(s, r);
	if (!has_work_left(s, r)) {
		leave_out(s, r);
		return true;
	}
	if (expected > 1 && divisions_of(s, r) > 1)
		return cut_range(s, r, expected);
	copy_range(s, r);
	if (!make_candidate(s, false, &c))
		return false;
	if (!c.packet)
		return put_smaller(s, r, c.ratio);
	keep(s, r, &c);
	return true;
}

/* ---- what can be counted ---- */

/* The number of distinct series in the range that is being extended, including the unit's. */
static uint64_t count_series(struct splitter *s, uint32_t unit)
{
	const struct unit *u = &s->units.at[unit];
	const struct profile *f = &s->p->profiles.at[u->profile];
	struct list attributes = f->attributes;
	s->key.count = 0;
	array_reserve(&s->key, 3 + (uint64_t)attributes.count + BYTES_SLACK / sizeof *s->key.at);
	s->key.at[0] = u->scope;
	s->key.at[1] = f->sample_type.type;
	s->key.at[2] = f->sample_type.unit;
	for (uint32_t i = 0; i < attributes.count; i++)
		s->key.at[3 + i] = s->p->indices.at[attributes.first + i];
	intern_put(&s->series, (const uint8_t *)s->key.at,
		   (3 + (size_t)attributes.count) * sizeof *s->key.at);
	return s->series.count - 1;
}

static bool opens_resource(const struct splitter *s, uint32_t unit)
{
	return !s->tally.profiles || s->units.at[unit].resource != s->units.at[unit - 1].resource;
}

/* If a destination has its own measure of samples, that is used instead. */
static uint64_t counted_samples(const struct splitter *s)
{
	return s->measure ? 0 : s->limits->samples;
}

static bool opens_group(const struct splitter *s, uint32_t unit)
{
	const uint32_t *groups = s->limits->groups, *runs = s->limits->runs;
	const struct unit *u = &s->units.at[unit], *last = u - 1;
	return (groups && groups[u->resource] != groups[last->resource]) ||
	       (runs && runs[u->profile] != runs[last->profile]);
}

/* In a range that has a unit. */
static bool has_place_for(struct splitter *s, uint32_t unit)
{
	const struct limits *limits = s->limits;
	return !opens_group(s, unit) &&
	       limit_allows(s->tally.samples + samples_of(s, unit), counted_samples(s)) &&
	       limit_allows(s->tally.profiles + 1, limits->profiles) &&
	       limit_allows(s->tally.resources + opens_resource(s, unit), limits->resources) &&
	       (!limits->series || count_series(s, unit) <= limits->series);
}

static bool end_range(struct splitter *s, struct place to)
{
	struct range r = { s->tally.from, to };
	s->tally = (struct tally){ .from = to };
	intern_reset(&s->series);
	return put_range(s, r);
}

static bool count_unit(struct splitter *s, uint32_t unit)
{
	uint64_t left = samples_of(s, unit);
	struct place at = { unit, 0 };
	if (s->tally.profiles && !has_place_for(s, unit) && !end_range(s, at))
		return false;
	for (uint64_t max = counted_samples(s); !limit_allows(left, max); left -= max) {
		at.sample += (uint32_t)max;
		if (!end_range(s, at))
			return false;
	}
	if (s->limits->series)
		count_series(s, unit);
	s->tally.samples += left;
	s->tally.resources += opens_resource(s, unit);
	s->tally.profiles++;
	return true;
}

static bool put_all(struct splitter *s)
{
	uint32_t count = s->units.count - 1;
	for (uint32_t unit = 0; unit < count; unit++)
		if (!count_unit(s, unit))
			return false;
	return !count || end_range(s, (struct place){ count, 0 });
}

/* ---- the interface ---- */

static void init(struct splitter *s)
{
	const struct profiles *p = s->p;
	s->cut = *p;
	s->cut.request = NULL;
	s->cut.resources.at = memory_array(p->resources.count, sizeof *p->resources.at);
	s->cut.scopes.at = memory_array(p->scopes.count, sizeof *p->scopes.at);
	s->cut.profiles.at = memory_array(p->profiles.count, sizeof *p->profiles.at);
	s->collect = collect_new(
		&(struct collect_limits){ .hard_bytes = INT32_MAX, .same_tables = true });
	intern_init(&s->series, 0, INT32_MAX);
}

static void fini(struct splitter *s)
{
	memory_free(s->cut.resources.at);
	memory_free(s->cut.scopes.at);
	memory_free(s->cut.profiles.at);
	memory_free(s->units.at);
	for (unsigned why = 0; why < PART_DROPPED; why++)
		memory_free(s->late[why].at);
	memory_free(s->key.at);
	intern_fini(&s->series);
	collect_unref(&s->collect);
}

/* Restores the previous state. */
static void forget_parts(struct parts *parts, const struct parts *before)
{
	while (parts->count > before->count)
		packet_unref(&parts->at[--parts->count].packet);
	parts_forget_left(parts, before->left.count);
	memcpy(parts->dropped, before->dropped, sizeof parts->dropped);
}

bool split_profiles(const struct profiles *p, const struct packet *whole,
		    const struct limits *limits, const struct split_measure *measure,
		    struct parts *parts, struct error *err)
{
	const struct parts before = *parts;
	struct splitter s = { .p = p,
			      .whole = whole,
			      .limits = limits,
			      .measure = measure,
			      .parts = parts,
			      .err = err };
	init(&s);
	list_units(&s);
	bool ok = put_all(&s);
	if (ok && parts->keeps) {
		end_apart(&s);
		leave_late(&s);
	}
	fini(&s);
	if (!ok)
		forget_parts(parts, &before);
	return ok;
}
