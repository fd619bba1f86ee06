/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_STORES_SERIES_H
#define PROFILE_STORES_SERIES_H

#include "profile/memo.h"
#include "profile/profiles.h"

/*
 * Labels of a time series made from attributes, for stores that know series: names in a form that
 * the store takes, values as text, each name once. What cannot be kept is counted by reason, so
 * that no request is refused for it.
 *
 *	series_open(s, p);                        once for the tables of a packet series_begin(s);
 *	once for each set of labels series_put(s, "__name__", view);          what must be there;
 *	nothing pushes it out series_take(s, resource->attributes);     by falling precedence: of
 *	equal names the first stays series_take(s, profile->attributes); series_end(s);
 *	now s->labels is the set, sorted by name series_clean_sample(s, sample);           sample
 *	attributes by the same rules, below these labels
 *
 * Names and values are strings of the tables, equal texts are one string: two sets are equal when
 * their labels are. Attributes whose key begins with "__" are no labels (but __session_id__), nor
 * those that pprof has fields for ("pprof."), nor empty ones. One thread; a growth past the tables'
 * cap sets p->over_cap, which is looked at at the end.
 */
enum series_loss {
	SERIES_COLLISION, /* another attribute has the name in the form that the store takes */
	SERIES_TOO_MANY,  /* of lowest precedence, over names_max */
	SERIES_LONG_NAME,
	SERIES_RESERVED, /* the key is the store's own */
	SERIES_NUMBER,   /* on a sample, where the store drops numbers */
	SERIES_CUT,      /* the value was shortened to value_max; the label stays */
	SERIES_LOSSES
};

extern const char *const series_losses[SERIES_LOSSES]; /* a metric label's values */

/* of one set, whatever names_max says; and the attributes that are looked at in one list */
enum { SERIES_LABELS_MAX = 256 };

struct series_rules {
	/* names stay as they are; else they become [A-Za-z_][A-Za-z0-9_]* */
	bool utf8;
	bool numbers;                 /* numbers on samples become texts; else they are dropped */
	uint32_t names_max;           /* of a set with its sample's; 0: SERIES_LABELS_MAX */
	uint32_t name_max, value_max; /* bytes; 0: none */
};

struct label {
	uint32_t name, value; /* strings of the tables */
};

struct series_known { /* what an attribute becomes */
	struct label label;
	uint32_t clean; /* the attribute as a sample may have it; 0: not made yet */
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
	uint32_t fixed;             /* labels made by series_put */
	struct memo texts;          /* first: string */
	struct series_known *known; /* by attribute */
	uint32_t known_room;
	uint32_t *stamps; /* by string: the set, or the sample, in which it is a name */
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

/* Gives the sample texts with clean names that are not among s->labels, as many as there is room
 * for. True when something changed: the caller says so in the Profile. The names trace_id and
 * span_id of a link count. */
bool series_clean_sample(struct series_labels *s, struct sample *sample);

/* The string of a text in the plain form of a name, whatever the rules say of labels. 0: it cannot
 * be one. */
uint32_t series_plain_name(struct series_labels *s, struct view key);

/* A string for a text, which is not one of the tables'; equal texts get the same. */
uint32_t series_text(struct series_labels *s, struct view text);

/* The labels as attributes (text) of the tables, in their order: a list for a resource of its own.
 */
struct list series_attributes(struct series_labels *s);

#endif
