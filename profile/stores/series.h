/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_STORES_SERIES_H
#define PROFILE_STORES_SERIES_H

#include "profile/memo.h"
#include "profile/profiles.h"

/*
 * Creates the labels of a time series from attributes, for stores that organise data by series:
 * names in a form that the store accepts, values as strings, each name once. Labels that the store
 * does not support are counted by reason, so that no request is rejected for them.
 *
 *   series_open(s, p);                     once for the tables of a packet
 *   series_begin(s);                       once for each set of labels
 *   series_put(s, "__name__", view);       mandatory labels, which no other label displaces
 *   series_take(s, resource->attributes);  in descending precedence: of equal names the first
 *   series_take(s, profile->attributes);   is kept
 *   series_end(s);                         now s->labels is the set, sorted by name
 *   series_clean_sample(s, sample);        sample attributes by the same rules, with lower
 *                                          precedence than these labels
 *
 * Names and values are strings of the tables, and equal strings have one index, so two sets are
 * equal if their labels are. Attributes that do not become labels: those whose key begins with "__"
 * (except __session_id__), those that pprof has fields for ("pprof."), and empty ones. The caller
 * sets __name__ and __delta__, so they are counted as lost only on samples. One thread.
 * If the tables' cap would be exceeded, p->over_cap is set, which the caller checks at the end.
 */
enum series_loss {
	/* another attribute has the same name in the form that the store accepts */
	SERIES_COLLISION,
	SERIES_TOO_MANY, /* more than names_max; those of lowest precedence */
	SERIES_LONG_NAME,
	SERIES_RESERVED, /* the key is reserved by the store */
	SERIES_NUMBER,   /* a number on a sample, if the store drops numbers */
	SERIES_CUT,      /* the value was truncated to value_max; the label is kept */
	SERIES_LOSSES
};

extern const char *const series_losses[SERIES_LOSSES]; /* the values of a metric's label */

/* the maximum of one set, regardless of names_max; and the number of attributes of one list that
 * are examined */
enum { SERIES_LABELS_MAX = 256 };

struct series_rules {
	/* true: names are not changed; else they become [A-Za-z_][A-Za-z0-9_]* */
	bool utf8;
	/* true: numbers on samples become strings; else they are dropped */
	bool numbers;
	/* true: the attribute service.name is named service_name, also with utf8 */
	bool service_name;
	uint32_t names_max;           /* of a set, including its sample's; 0: SERIES_LABELS_MAX */
	uint32_t name_max, value_max; /* bytes; 0: no limit */
};

struct label {
	uint32_t name, value; /* strings of the tables */
};

struct series_known { /* what an attribute becomes */
	struct label label;
	uint32_t clean; /* the attribute in the form for a sample; 0: not created yet */
	uint8_t state;  /* enum in series.c */
	bool cut;
};

struct series_labels {
	const struct series_rules *rules;
	struct profiles *p;
	struct label labels[SERIES_LABELS_MAX];
	uint32_t count;
	uint64_t lost[SERIES_LOSSES]; /* since series_init */
	/* own */
	uint32_t fixed;             /* the number of labels from series_put */
	struct memo texts;          /* first: string */
	struct series_known *known; /* by attribute */
	uint32_t known_room;
	uint32_t *stamps; /* by string: the stamp of the last set or sample in which it is a name */
	uint32_t stamp_room, stamp, set;
	struct bytes text;
};

void series_init(struct series_labels *s, const struct series_rules *rules);
void series_fini(struct series_labels *s);

void series_open(struct series_labels *s, struct profiles *p);
void series_begin(struct series_labels *s);
void series_put(struct series_labels *s, const char *name, struct view value);
void series_take(struct series_labels *s, struct list attributes);
void series_end(struct series_labels *s);

/* Replaces the sample's attributes by strings with valid names that are not among s->labels, as
 * many as there is room for. True if something changed: the caller must mark the Profile as
 * changed. The names trace_id and span_id of a link count. */
bool series_clean_sample(struct series_labels *s, struct sample *sample);

/* The string attribute of that key that takes precedence in a list; empty: there is none. */
struct view series_text_in(const struct profiles *p, struct list attributes, const char *key);
/* The name that the sender gave the series: the resource attribute __name__, if the store accepts
 * it; else empty. Stores accept identifiers ([A-Za-z_][A-Za-z0-9_]*). With utf8, they accept all
 * characters but ":", with which queries would fail. */
struct view series_sent_name(const struct profiles *p, struct list resource, bool utf8);

/* The string for a key in the plain form of a name, regardless of the rules for labels. 0: it
 * cannot be a name. */
uint32_t series_plain_name(struct series_labels *s, struct view key);

/* The string for a view that does not point into the tables; equal contents get the same string. */
uint32_t series_text(struct series_labels *s, struct view text);

/* Adds the labels as string attributes to the tables, in order: a list for a resource. */
struct list series_attributes(struct series_labels *s);

#endif
