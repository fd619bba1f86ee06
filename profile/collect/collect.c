/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/collect/collect.h"
#include "base/memory.h"
#include "profile/collect/samples.h"

#include <assert.h>

/*
 * Resources and scopes are interned like dictionary entries, by their canonical bytes, so all
 * requests of one service become one resource with one scope. Profiles are appended to `body`; a
 * chunk states which of them belong to which scope. Sealing sorts the chunks by scope and keeps
 * their order, so that one request's Profiles stay together. A rollback only shortens arrays.
 */
/* A range of the bytes of a table or of `body`. */
struct part {
	uint32_t at, len;
};

struct out_resource {
	struct part own, schema_url; /* fields of ResourceProfiles, in resources.wire */
	size_t len;                  /* of the message */
	uint32_t first_scope;        /* while sealing */
};

struct out_scope {
	uint32_t resource;
	struct part own, schema_url; /* fields of ScopeProfiles, in scopes.wire */
	size_t len;
	uint32_t next, first_chunk; /* while sealing */
};

struct chunk {
	uint32_t scope;
	struct part profiles; /* in body */
	uint32_t next;        /* while sealing */
};

/* The state that a rollback restores. */
struct counts {
	size_t body, message; /* message: the size of all fields resource_profiles */
	uint32_t chunks, profiles;
	uint64_t samples;
	uint64_t oldest, newest; /* of the Profiles' times */
};

struct collect {
	struct collect_limits limits;
	struct dictionary dictionary;
	struct intern resource_table, scope_table;
	ARRAY(struct out_resource) resources; /* [0] is unused, as in the tables */
	ARRAY(struct out_scope) scopes;
	ARRAY(struct chunk) chunks;
	ARRAY(struct contribution) contributions;
	struct bytes body;
	struct samples samples;
	struct counts counts, mark;
	uint64_t oldest_arrival;
	/* see collect_allow; and the size of the packet without the request that is being added */
	size_t growth, before;
	bool full; /* the body was full */
};

/* The maximum size of any single table; entries are built in place with some room to spare. */
static size_t table_max(const struct collect_limits *limits)
{
	return limits->hard_bytes < INT32_MAX / 4 ? limits->hard_bytes * 2 + 4096 : INT32_MAX;
}

static void reset(struct collect *c)
{
	dictionary_reset(&c->dictionary);
	intern_reset(&c->resource_table);
	intern_reset(&c->scope_table);
	c->resources.count = c->scopes.count = 1;
	c->chunks.count = 1;
	c->contributions.count = 0;
	c->body.len = 0;
	c->counts = (struct counts){ .chunks = 1, .oldest = UINT64_MAX };
	c->full = false;
}

static void init(struct collect *c, const struct collect_limits *limits)
{
	size_t max = table_max(limits);
	*c = (struct collect){ .limits = *limits, .growth = SIZE_MAX };
	dictionary_init(&c->dictionary, max);
	c->dictionary.same_tables = limits->same_tables;
	intern_init(&c->resource_table, 0, max);
	intern_init(&c->scope_table, 0, max);
	bytes_init(&c->body, max);
	samples_init(&c->samples, max);
	array_reserve(&c->resources, 1);
	array_reserve(&c->scopes, 1);
	array_reserve(&c->chunks, 1);
	reset(c);
}

static void release_acks(struct collect *c)
{
	for (uint32_t i = 0; i < c->contributions.count; i++)
		if (c->contributions.at[i].ack)
			ack_release(c->contributions.at[i].ack, ACK_FAILED);
}

static void fini(struct collect *c)
{
	release_acks(c);
	dictionary_fini(&c->dictionary);
	intern_fini(&c->resource_table);
	intern_fini(&c->scope_table);
	bytes_fini(&c->body);
	samples_fini(&c->samples);
	memory_free(c->resources.at);
	memory_free(c->scopes.at);
	memory_free(c->chunks.at);
	memory_free(c->contributions.at);
}

struct collect *collect_new(const struct collect_limits *limits)
{
	struct collect *c = memory_new(sizeof *c);
	init(c, limits);
	return c;
}

void collect_unref(struct collect **slot)
{
	struct collect *c = *slot;
	*slot = NULL;
	if (c)
		fini(c);
	memory_free(c);
}

static size_t framed(size_t len)
{
	return 1 + wire_varint_len(len) + len;
}

/* More (or fewer) bytes in a message change the length prefix of that message and of those that
 * contain it. */
static void resize_resource(struct collect *c, struct out_resource *r, ptrdiff_t by)
{
	c->counts.message -= framed(r->len);
	r->len += (size_t)by;
	c->counts.message += framed(r->len);
}

static void resize_scope(struct collect *c, struct out_scope *s, ptrdiff_t by)
{
	ptrdiff_t before = (ptrdiff_t)framed(s->len);
	s->len += (size_t)by;
	resize_resource(c, &c->resources.at[s->resource], (ptrdiff_t)framed(s->len) - before);
}

/* The two fields of a new entry that begins with `skip` other bytes. */
static void find_parts(const struct intern *t, const struct canonical *k, size_t skip, size_t split,
		       struct part *own, struct part *schema_url)
{
	uint32_t at = (uint32_t)(t->wire.len - k->out.len);
	*own = (struct part){ at + (uint32_t)skip, (uint32_t)(split - skip) };
	*schema_url = (struct part){ at + (uint32_t)split, (uint32_t)(k->out.len - split) };
}

static uint32_t resource_of(struct collect *c, const struct profiles *p, const struct resource *r)
{
	struct canonical *k = &c->dictionary.canonical;
	size_t split;
	if (!canonical_resource(k, p, r, &split))
		return 0;
	uint32_t index = intern_put(&c->resource_table, k->out.at, k->out.len);
	if (index < c->resources.count)
		return index;
	struct out_resource *fresh = &array_push(&c->resources);
	*fresh = (struct out_resource){ .len = k->out.len };
	find_parts(&c->resource_table, k, 0, split, &fresh->own, &fresh->schema_url);
	c->counts.message += framed(fresh->len);
	return index;
}

static uint32_t scope_of(struct collect *c, const struct profiles *p, const struct scope *s,
			 uint32_t resource)
{
	struct canonical *k = &c->dictionary.canonical;
	size_t split;
	if (!resource || !canonical_scope(k, p, s, resource, &split))
		return 0;
	uint32_t index = intern_put(&c->scope_table, k->out.at, k->out.len);
	if (index < c->scopes.count)
		return index;
	struct out_scope *fresh = &array_push(&c->scopes);
	*fresh = (struct out_scope){ .resource = resource, .len = k->out.len - CANONICAL_OWNER };
	find_parts(&c->scope_table, k, CANONICAL_OWNER, split, &fresh->own, &fresh->schema_url);
	resize_resource(c, &c->resources.at[resource], (ptrdiff_t)framed(fresh->len));
	return index;
}

static uint8_t *put_kind(struct dictionary *d, uint8_t *header, uint8_t tag, struct value_kind kind)
{
	uint8_t *at = header + PUT_HEADER;
	at = put_number(at, PUT_VARINT(1), dictionary_string(d, kind.type));
	at = put_number(at, PUT_VARINT(2), dictionary_string(d, kind.unit));
	return put_close(header, tag, at);
}

static void end_at(struct bytes *out, const uint8_t *end)
{
	out->len = (size_t)(end - out->at);
}

/* The strings of the period type are added before those of the frames: most Profiles name them, and
 * the first entries have the shortest indices. */
static bool put_profile_head(struct collect *c, const struct profile *f)
{
	if (!bytes_reserve(&c->body, 4 * PUT_MAX))
		return false;
	uint8_t *at = c->body.at + c->body.len;
	if (f->has_sample_type)
		at = put_kind(&c->dictionary, at, PUT_LEN(1), f->sample_type);
	if (f->has_period_type) {
		dictionary_string(&c->dictionary, f->period_type.type);
		dictionary_string(&c->dictionary, f->period_type.unit);
	}
	end_at(&c->body, at);
	return true;
}

static bool put_profile_tail(struct collect *c, const struct profiles *p, const struct profile *f)
{
	struct indices *list = &c->samples.attributes;
	list->count = 0;
	dictionary_attributes(&c->dictionary, f->attributes, list);
	if (!bytes_reserve(&c->body, 12 * PUT_MAX + f->profile_id.len + 5 * (size_t)list->count))
		return false;
	uint8_t *at = c->body.at + c->body.len;
	at = put_fixed64(at, PUT_FIXED64(3), f->time);
	at = put_number(at, PUT_VARINT(4), f->duration);
	if (f->has_period_type)
		at = put_kind(&c->dictionary, at, PUT_LEN(5), f->period_type);
	at = put_number(at, PUT_VARINT(6), (uint64_t)f->period);
	at = put_bytes(at, PUT_LEN(7), span_view(p, f->profile_id));
	at = put_number(at, PUT_VARINT(8), f->dropped_attributes);
	at = put_packed(at, PUT_LEN(11), list->at, list->count);
	end_at(&c->body, at);
	return true;
}

/* The length of a Profile is known only at its end: it is written behind a gap for the longest
 * header, and then moved. */
static bool put_profile(struct collect *c, const struct profiles *p, const struct profile *f,
			uint64_t *merged)
{
	size_t header = c->body.len;
	if (!bytes_reserve(&c->body, PUT_MAX))
		return false;
	c->body.len += PUT_MAX;
	if (!put_profile_head(c, f) ||
	    !samples_put(&c->samples, &c->dictionary, f, &c->body, merged) ||
	    !put_profile_tail(c, p, f))
		return false;
	uint8_t *at = c->body.at + header;
	size_t len = c->body.len - header - PUT_MAX;
	uint8_t *start = put_header(at, PUT_LEN(2), len);
	memmove(start, at + PUT_MAX, len);
	end_at(&c->body, start + len);
	return true;
}

static size_t message_size(const struct collect *c)
{
	return c->counts.message + framed(dictionary_size(&c->dictionary));
}

static bool outgrown(const struct collect *c, size_t bytes)
{
	return c->growth != SIZE_MAX && (canonical_spent(&c->dictionary.canonical) ||
					 (bytes > c->before && bytes - c->before > c->growth));
}

static bool over(const struct collect *c, size_t bytes, size_t limit)
{
	return c->full || canonical_spent(&c->dictionary.canonical) || bytes > limit ||
	       outgrown(c, bytes);
}

/* The size that the packet may have after this request: the first request may exceed the soft
 * limits. */
static size_t bytes_allowed(const struct collect *c)
{
	bool first = c->contributions.count == 0;
	return first || c->limits.max_bytes > c->limits.hard_bytes ? c->limits.hard_bytes
								   : c->limits.max_bytes;
}

static bool samples_allowed(const struct collect *c)
{
	return c->contributions.count == 0 || c->limits.max_samples == 0 ||
	       c->counts.samples <= c->limits.max_samples;
}

/* A lower bound of the packet's size, before the exact sizes are known, so that a hopeless request
 * ends early. */
static size_t min_size(const struct collect *c)
{
	return c->body.len + dictionary_size(&c->dictionary);
}

static bool hopeless(const struct collect *c)
{
	return over(c, min_size(c), bytes_allowed(c));
}

static void note_time(struct counts *counts, uint64_t time)
{
	if (time && time < counts->oldest)
		counts->oldest = time;
	if (time > counts->newest)
		counts->newest = time;
}

static bool add_profile(struct collect *c, const struct profiles *p, const struct profile *f,
			struct collect_added *added)
{
	uint64_t merged = 0;
	if (!put_profile(c, p, f, &merged)) {
		c->full = true;
		return false;
	}
	added->profiles++;
	added->samples_in += f->samples.count;
	added->samples_merged += merged;
	c->counts.samples += f->samples.count - merged;
	c->counts.profiles++;
	note_time(&c->counts, f->time);
	return !hopeless(c);
}

/* Whether the Profile is collected; Profiles with a fault were counted by the decoder. */
static bool stays(const struct profile *f, struct collect_added *added)
{
	if (f->fault)
		return false;
	if (f->dropped) {
		added->dropped_profiles++;
		added->samples_dropped += f->samples.count;
	}
	return !f->dropped;
}

static void add_chunk(struct collect *c, uint32_t scope, size_t start)
{
	size_t len = c->body.len - start;
	array_push(&c->chunks) = (struct chunk){
		.scope = scope,
		.profiles = { (uint32_t)start, (uint32_t)len },
	};
	resize_scope(c, &c->scopes.at[scope], (ptrdiff_t)len);
}

/* *resource: 0 until its first Profile. */
static bool add_scope(struct collect *c, const struct profiles *p, const struct resource *r,
		      const struct scope *s, uint32_t *resource, struct collect_added *added)
{
	size_t start = c->body.len;
	uint32_t scope = 0;
	for (uint32_t i = 0; i < s->profiles.count; i++) {
		const struct profile *f = &p->profiles.at[s->profiles.first + i];
		if (!stays(f, added))
			continue;
		if (!*resource)
			*resource = resource_of(c, p, r);
		if (!scope)
			scope = scope_of(c, p, s, *resource);
		if (!scope || !add_profile(c, p, f, added))
			return false;
	}
	if (scope)
		add_chunk(c, scope, start);
	return true;
}

static bool add_resources(struct collect *c, const struct profiles *p, struct collect_added *added)
{
	for (uint32_t i = 0; i < p->resources.count; i++) {
		const struct resource *r = &p->resources.at[i];
		uint32_t out = 0;
		for (uint32_t j = 0; j < r->scopes.count && !r->fault; j++)
			if (!add_scope(c, p, r, &p->scopes.at[r->scopes.first + j], &out, added))
				return false;
	}
	return true;
}

static void begin(struct collect *c, const struct profiles *p)
{
	dictionary_begin(&c->dictionary, p, c->growth);
	c->before = message_size(c);
	intern_mark(&c->resource_table);
	intern_mark(&c->scope_table);
	c->counts.body = c->body.len;
	c->counts.chunks = c->chunks.count;
	c->mark = c->counts;
}

static void rollback(struct collect *c)
{
	for (uint32_t i = c->chunks.count; i-- > c->mark.chunks;)
		resize_scope(c, &c->scopes.at[c->chunks.at[i].scope],
			     -(ptrdiff_t)c->chunks.at[i].profiles.len);
	for (uint32_t i = c->scopes.count; i-- > c->scope_table.mark;)
		resize_resource(c, &c->resources.at[c->scopes.at[i].resource],
				-(ptrdiff_t)framed(c->scopes.at[i].len));
	dictionary_rollback(&c->dictionary);
	intern_rollback(&c->resource_table);
	intern_rollback(&c->scope_table);
	c->resources.count = c->resource_table.count;
	c->scopes.count = c->scope_table.count;
	c->chunks.count = c->mark.chunks;
	c->body.len = c->mark.body;
	c->counts = c->mark;
	c->full = false;
}

static void contribute(struct collect *c, const struct request *request, bool hold_ack,
		       const struct collect_added *added)
{
	struct ack *ack = hold_ack && request ? request->ack : NULL;
	uint64_t arrival = request ? request->arrival : 0;
	if (ack)
		ack_hold(ack);
	if (!c->contributions.count || arrival < c->oldest_arrival)
		c->oldest_arrival = arrival;
	array_push(&c->contributions) = (struct contribution){
		.receiver = request ? request->receiver : NULL,
		.profiles = added->profiles,
		.samples_in = added->samples_in,
		.samples_merged = added->samples_merged,
		.ack = ack,
		.mode = ack ? ack->mode : ACK_ENQUEUE,
	};
}

enum collect_result collect_add(struct collect *c, const struct profiles *p, bool hold_ack,
				struct collect_added *added, struct error *err)
{
	*added = (struct collect_added){ 0 };
	begin(c, p);
	bool fits = add_resources(c, p, added) && samples_allowed(c) &&
		    !over(c, message_size(c), bytes_allowed(c));
	if (fits && added->profiles) {
		contribute(c, p->request, hold_ack, added);
		return COLLECT_ADDED;
	}
	bool more = outgrown(c, message_size(c)) || outgrown(c, min_size(c));
	rollback(c);
	if (fits)
		return COLLECT_NOTHING;
	if (more)
		return COLLECT_OUTGROWN;
	if (c->contributions.count)
		return COLLECT_FULL;
	error_set(err, ERROR_TOO_LARGE, "the outgoing message would exceed %zu bytes",
		  c->limits.hard_bytes);
	return COLLECT_FAILED;
}

void collect_allow(struct collect *c, size_t growth)
{
	c->growth = growth;
}

bool collect_empty(const struct collect *c)
{
	return c->contributions.count == 0;
}

uint64_t collect_samples(const struct collect *c)
{
	return c->counts.samples;
}

size_t collect_bytes(const struct collect *c)
{
	return message_size(c);
}

size_t collect_footprint(const struct collect *c)
{
	return sizeof *c + dictionary_footprint(&c->dictionary) + samples_footprint(&c->samples) +
	       intern_footprint(&c->resource_table) + intern_footprint(&c->scope_table) +
	       c->body.room + c->resources.room * sizeof *c->resources.at +
	       c->scopes.room * sizeof *c->scopes.at + c->chunks.room * sizeof *c->chunks.at +
	       c->contributions.room * sizeof *c->contributions.at;
}

/* Links every scope to its chunks and every resource to its scopes, in order. */
static void sort_chunks(struct collect *c)
{
	for (uint32_t i = c->chunks.count; i-- > 1;) {
		struct out_scope *s = &c->scopes.at[c->chunks.at[i].scope];
		c->chunks.at[i].next = s->first_chunk;
		s->first_chunk = i;
	}
	for (uint32_t i = c->scopes.count; i-- > 1;) {
		struct out_resource *r = &c->resources.at[c->scopes.at[i].resource];
		c->scopes.at[i].next = r->first_scope;
		r->first_scope = i;
	}
}

static uint8_t *put_part(uint8_t *at, const struct bytes *from, struct part part)
{
	return put_copy(at, from->at + part.at, part.len);
}

static uint8_t *put_scope(const struct collect *c, const struct out_scope *s, uint8_t *at)
{
	at = put_header(at, PUT_LEN(2), s->len);
	at = put_part(at, &c->scope_table.wire, s->own);
	for (uint32_t i = s->first_chunk; i; i = c->chunks.at[i].next)
		at = put_part(at, &c->body, c->chunks.at[i].profiles);
	return put_part(at, &c->scope_table.wire, s->schema_url);
}

static uint8_t *put_resource(const struct collect *c, const struct out_resource *r, uint8_t *at)
{
	at = put_header(at, PUT_LEN(1), r->len);
	at = put_part(at, &c->resource_table.wire, r->own);
	for (uint32_t i = r->first_scope; i; i = c->scopes.at[i].next)
		at = put_scope(c, &c->scopes.at[i], at);
	return put_part(at, &c->resource_table.wire, r->schema_url);
}

static void put_message(struct collect *c, struct bytes *out)
{
	uint8_t *at = out->at;
	sort_chunks(c);
	for (uint32_t i = 1; i < c->resources.count; i++)
		at = put_resource(c, &c->resources.at[i], at);
	at = put_header(at, PUT_LEN(2), dictionary_size(&c->dictionary));
	end_at(out, dictionary_put(&c->dictionary, at));
}

static void note_tables(const struct dictionary *d, struct packet *packet)
{
	_Static_assert(PACKET_TABLES == (int)DICTIONARY_TABLES && PACKET_STRINGS == (int)STRINGS,
		       "a place for each");
	size_t at = packet->otlp.len;
	for (unsigned t = DICTIONARY_TABLES; t-- > 0;)
		packet->tables[t] = at -= d->tables[t].wire.len;
}

struct packet *collect_seal(struct collect *c)
{
	size_t size = message_size(c);
	struct packet *packet = packet_new(size, c->contributions.count);
	put_message(c, &packet->otlp);
	assert(packet->otlp.len == size);
	note_tables(&c->dictionary, packet);
	if (!collect_empty(c))
		memcpy(packet->contributions, c->contributions.at,
		       c->contributions.count * sizeof *packet->contributions);
	packet->oldest_arrival = c->oldest_arrival;
	packet->resources = c->resources.count - 1;
	packet->profiles = c->counts.profiles;
	packet->samples = c->counts.samples;
	packet->newest = c->counts.newest;
	packet->oldest = packet->newest ? c->counts.oldest : 0;
	reset(c);
	return packet;
}

struct packet *collect_nothing(void)
{
	struct collect *c = collect_new(&(struct collect_limits){ .hard_bytes = INT32_MAX });
	struct profiles p = { 0 };
	profiles_reset(&p, NULL, (struct view){ 0 }, SIZE_MAX / 2);
	begin(c, &p);
	scope_of(c, &p, &(struct scope){ 0 }, resource_of(c, &p, &(struct resource){ 0 }));
	struct packet *packet = collect_seal(c);
	collect_unref(&c);
	profiles_fini(&p);
	return packet;
}

void collect_discard(struct collect *c)
{
	release_acks(c);
	reset(c);
}

void collect_shrink(struct collect *c, size_t keep)
{
	assert(collect_empty(c));
	if (collect_footprint(c) <= keep)
		return;
	struct collect_limits limits = c->limits;
	fini(c);
	init(c, &limits);
}
