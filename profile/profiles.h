/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_PROFILES_H
#define PROFILE_PROFILES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/error.h"
#include "profile/request.h"

/*
 * struct profiles is the open form of one request: flat tables of fixed-size records with 32-bit
 * offsets into the input. Decoding copies nothing. The structure is that of OTLP
 * (opentelemetry-proto 1.11, profiles/v1development/profiles.proto); pprof is decoded into the same
 * tables.
 *
 * Sequence: profiles_reset; a decoder fills the tables (profile/otlp/decode_otlp.h,
 * profile/pprof/decode_pprof.h); processors change them; profile/collect/collect.h copies what is
 * permitted and reachable into a packet; the next request reuses the capacity. A struct profiles
 * belongs to one thread. It has no lock and no reference count. The input bytes are borrowed until
 * the next reset, and must be followed by BYTES_SLACK readable bytes.
 *
 * Each string is an index into `strings`. Dictionary strings come first with their own indices, so
 * that a reference on the wire is the index. Inline strings (resource attributes, names, schema
 * URLs) and strings that processors create are appended. String 0 is always "", regardless of what
 * was sent. Keys and values sent by reference (key_strindex, string_value_strindex) are resolved
 * while decoding: the encoding is invisible to rules, and cannot be used to evade them.
 *
 * Entry 0 of attributes, functions, mappings, locations, stacks and links is the zero value and
 * means "none". What a sender put there is ignored.
 *
 * How processors change the tables:
 *  - A string: call profiles_text_new and store the new index in the record that refers to it. The
 *    string record itself is never changed, because it may be used in another role elsewhere.
 *  - An attribute: attribute records are shared (dictionary), so create a new one
 *    (profiles_attribute_new) and store its index in the list. A list is shrunk in place; to extend
 *    one, call profiles_list_copy first.
 *  - A processor that changes or removes something in a record sets its `changed`, so that collect
 *    knows in which Profiles samples may have become identical. Setting it in a shared record
 *    (function, location ...) is sufficient: collect finds the Profiles that refer to it.
 */

/* The location of bytes: in the input, or, with SPAN_ADDED set in `at`, in profiles->added. */
#define SPAN_ADDED 0x80000000u
struct span {
	uint32_t at, len;
};

/* Consecutive entries of a table. */
struct list {
	uint32_t first, count;
};

struct string {
	struct span text;
	uint32_t repaired; /* 1: it was invalid UTF-8, and contains U+FFFD instead */
	/* the lower half of hash_bytes_128(string).low, stored by its creator; 0: unknown */
	uint32_t hash;
};

enum value_type {
	VALUE_EMPTY,
	VALUE_STRING,
	VALUE_BOOL,
	VALUE_INT,
	VALUE_DOUBLE,
	VALUE_BYTES,
	VALUE_ARRAY, /* children: attributes without key */
	VALUE_KVLIST /* children: attributes */
};

/* Maximum nesting of arrays and kvlists; deeper values are an error. */
#define VALUE_DEPTH_MAX 16

/* A faulty entry rejects exactly the Profiles that refer to it. */
enum fault {
	FAULT_NONE,
	FAULT_INDEX, /* an index is out of range, or refers to a faulty entry */
	FAULT_ID,    /* trace, span or profile ID of the wrong length */
	FAULT_VALUE  /* numbers are malformed or missing */
};

/* One key with its value (KeyValue, KeyValueAndUnit), and the elements of arrays. 24 bytes. */
struct attribute {
	uint32_t key;  /* string; 0 in arrays */
	uint32_t unit; /* string; 0 outside the dictionary */
	uint8_t type;  /* enum value_type */
	uint8_t fault; /* enum fault */
	uint8_t changed;
	uint8_t bad_key; /* 1: the key was invalid UTF-8; the allow-list denies it */
	union {
		uint32_t string;
		uint32_t boolean;
		struct span bytes;
		struct list children; /* in attributes, contiguous */
		struct {
			uint32_t low, high; /* use attribute_integer / attribute_number */
		} bits;
	};
};

struct function {
	uint32_t name, system_name, filename; /* strings */
	uint8_t fault, changed;
	int64_t start_line;
};

struct mapping {
	uint64_t start, limit, offset;
	uint32_t filename;      /* string */
	struct list attributes; /* in indices */
	uint8_t fault, changed;
};

struct line {
	uint32_t function;
	uint32_t spare;
	int64_t line, column;
};

struct location {
	uint64_t address;
	uint32_t mapping;
	struct list lines;      /* in lines; innermost (inlined) first, as in OTLP and pprof */
	struct list attributes; /* in indices */
	uint8_t fault, changed;
};

struct stack {
	struct list locations; /* in indices; leaf first */
	uint8_t fault, changed;
};

struct link {
	uint8_t trace_id[16], span_id[8];
	uint8_t fault, changed;
};

struct sample {
	uint32_t stack, link;
	struct list attributes; /* in indices */
	struct span values;     /* packed varints (int64), well-formed */
	struct span timestamps; /* packed fixed64, a multiple of 8 bytes */
	uint8_t fault, changed;
};

struct value_kind {          /* OTLP ValueType */
	uint32_t type, unit; /* strings */
};

/* A processor removed it; or a route leaves it out while it collects the others. */
enum profile_dropped { PROFILE_KEPT, PROFILE_DROPPED, PROFILE_HIDDEN };

struct profile {
	struct value_kind sample_type, period_type;
	uint64_t time, duration; /* ns since the epoch; ns */
	int64_t period;
	struct span profile_id; /* 0 or 16 bytes */
	struct list attributes; /* in indices */
	struct list samples;    /* in samples */
	uint32_t dropped_attributes;
	/* no defaults are added: an absent type stays absent */
	uint8_t has_sample_type, has_period_type;
	uint8_t fault; /* enum fault: not collected, counted as rejected */
	/* enum profile_dropped: not collected, counted as dropped */
	uint8_t dropped;
	uint8_t changed; /* something of this Profile's own was changed or removed */
};

struct scope {
	uint32_t name, version, schema_url; /* strings; schema_url is ScopeProfiles' */
	struct list attributes;             /* in indices */
	struct list profiles;               /* in profiles */
	uint32_t dropped_attributes;
	uint8_t changed;
};

/* opentelemetry.proto.common.v1.EntityRef: names the resource attributes that identify an
 * entity. */
struct entity {
	uint32_t schema_url, type;             /* strings */
	struct list id_keys, description_keys; /* in indices, holding strings */
};

struct resource {
	uint32_t schema_url;    /* of ResourceProfiles */
	struct list attributes; /* in indices */
	struct list entities;   /* in entities */
	struct list scopes;     /* in scopes */
	uint32_t dropped_attributes;
	uint32_t tenant; /* string; 0: the request's (pipeline/intake/tenant.h) */
	uint8_t fault;   /* rejects all its Profiles */
	uint8_t changed;
};

#define PROFILES_TABLE(type) \
	struct { \
		type *at; \
		uint32_t count, room; \
	}

/* The entry of a processor's configuration that decided. */
struct audit_rule {
	const char *row;  /* the key of the configuration; NULL: the processor as a whole */
	const char *name; /* of the entry of a map; NULL: the row is none */
	size_t number;    /* of the entry of a list, from 1; 0: the row is none */
};

/* Reports the decisions of a policy, for portcullis explain; unused in the daemon. The key is that
 * of an attribute; "" at sites without keys. */
enum site;
struct audit {
	/* A value was removed or changed; what: "denied", "hashed", ... */
	void (*note)(struct audit *audit, enum site site, const char *what, struct view key,
		     struct audit_rule rule);
	/* An allow-list permits the key at the site. */
	void (*permit)(struct audit *audit, enum site site, struct view key,
		       struct audit_rule rule);
	const char *processor; /* the ID of the one that runs */
};

struct profiles {
	/* The origin of the request. Borrowed; outlives the way of the request through the
	 * pipeline. */
	struct request *request;
	struct audit *audit; /* usually NULL */

	struct view input; /* borrowed; at most PROFILES_INPUT_MAX bytes */
	struct bytes added;

	PROFILES_TABLE(struct string) strings;
	PROFILES_TABLE(struct attribute) attributes;
	PROFILES_TABLE(uint32_t) indices; /* of attribute lists, stacks and entity keys */
	PROFILES_TABLE(struct function) functions;
	PROFILES_TABLE(struct mapping) mappings;
	PROFILES_TABLE(struct line) lines;
	PROFILES_TABLE(struct location) locations;
	PROFILES_TABLE(struct stack) stacks;
	PROFILES_TABLE(struct link) links;
	PROFILES_TABLE(struct sample) samples;
	PROFILES_TABLE(struct profile) profiles;
	PROFILES_TABLE(struct scope) scopes;
	PROFILES_TABLE(struct entity) entities;
	PROFILES_TABLE(struct resource) resources;

	/* Only OTLP: attributes[0, dictionary_attributes) is the attribute_table on the wire. The
	 * same holds for strings. */
	uint32_t dictionary_attributes, dictionary_strings;

	/* Set by the decoder: */
	uint32_t rejected_profiles, rejected_samples; /* those with a fault */
	uint32_t repaired_strings;
	char rejection[160]; /* describes the first fault by field and index, never by content */

	size_t table_bytes_max; /* the cap on profiles_used */
	bool over_cap;          /* a growth was refused: the request is too large */
};

#define PROFILES_INPUT_MAX 0x7fffff00u

/* Zeroed memory is a valid empty struct profiles; fini frees its memory. */
void profiles_fini(struct profiles *p);

/*
 * Clears the last request, keeps the capacity, and creates the zero entries. table_bytes_max bounds
 * the memory of this request's tables and of added; growth beyond it fails and sets over_cap.
 */
bool profiles_reset(struct profiles *p, struct request *request, struct view input,
		    size_t table_bytes_max);

/* Copies all tables into `to`, which is zeroed; the input is shared. The cap and the request are
 * those of `from`. profiles_fini frees the copy. */
void profiles_copy(struct profiles *to, const struct profiles *from);

/* The memory that the request uses in all tables and `added`. Growth past the cap is refused at
 * once. Growth within the capacity that earlier requests left is not, so decoders call
 * profiles_within_cap at the end. */
size_t profiles_used(const struct profiles *p);

/*
 * Is this within the cap, together with the length of all strings that attributes refer to, counted
 * once per reference? If so, the cap also bounds the inline output of the request and the data that
 * processors scan.
 */
bool profiles_within_cap(const struct profiles *p);

/* A decoder that fails removes the entries that it has appended: everything since the mark is
 * removed, and over_cap is restored. Entries from before the mark must be unchanged. */
enum { PROFILES_TABLES = 14 };
struct profiles_mark {
	uint32_t count[PROFILES_TABLES], repaired_strings;
	size_t added;
	bool over_cap;
};
struct profiles_mark profiles_mark(const struct profiles *p);
void profiles_rewind(struct profiles *p, const struct profiles_mark *mark);

/* Memory held, used or not. */
size_t profiles_capacity(const struct profiles *p);

/* Frees capacity above `keep` bytes; for an idle worker. */
void profiles_shrink(struct profiles *p, size_t keep);

bool profiles_grow(struct profiles *p, void *at_member, uint32_t count, uint32_t *room,
		   uint32_t more, size_t size);

/* Makes room for `more` entries: profiles_room(p, &p->samples, n). False: over the cap. */
#define profiles_room(p, table, more) \
	((uint32_t)(more) <= (table)->room - (table)->count || \
	 profiles_grow((p), &(table)->at, (table)->count, &(table)->room, (more), \
		       sizeof *(table)->at))

static inline const uint8_t *span_at(const struct profiles *p, struct span s)
{
	return (s.at & SPAN_ADDED) ? p->added.at + (s.at & ~SPAN_ADDED) : p->input.at + s.at;
}

static inline struct view span_view(const struct profiles *p, struct span s)
{
	return (struct view){ s.len ? span_at(p, s) : (const uint8_t *)"", s.len };
}

static inline struct view string_view(const struct profiles *p, uint32_t string)
{
	return span_view(p, p->strings.at[string].text);
}

static inline bool string_is(const struct profiles *p, uint32_t string, const char *text)
{
	return view_is(string_view(p, string), text);
}

static inline int64_t attribute_integer(const struct attribute *a)
{
	return (int64_t)((uint64_t)a->bits.high << 32 | a->bits.low);
}

static inline void attribute_set_integer(struct attribute *a, int64_t value)
{
	a->bits.low = (uint32_t)(uint64_t)value;
	a->bits.high = (uint32_t)((uint64_t)value >> 32);
}

double attribute_number(const struct attribute *a);
void attribute_set_number(struct attribute *a, double value);

/* The functions below append an entry and return its index (a span for bytes). On failure (over the
 * cap) they return 0 (an empty span) and set over_cap, which must be checked once at the end of a
 * pass. profiles_text_new requires valid UTF-8. */
struct span profiles_bytes_new(struct profiles *p, const void *data, size_t len);
uint32_t profiles_text_new(struct profiles *p, const void *text, size_t len);
uint32_t profiles_attribute_new(struct profiles *p, struct attribute attribute);
/* Copies a list of indices to the end of `indices`, followed by room for `more` entries
 * (zeroed). */
struct list profiles_list_copy(struct profiles *p, struct list list, uint32_t more);

/* Rejects a Profile that has no fault yet, as if it had one. The text of the first rejection is
 * kept in p->rejection. */
void profiles_reject(struct profiles *p, struct profile *profile, const char *text);

/* The error message for a request that exceeded the cap (ERROR_TOO_LARGE). */
bool profiles_over_cap(const struct profiles *p, struct error *err);

#endif
