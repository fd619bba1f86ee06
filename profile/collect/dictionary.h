/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_COLLECT_DICTIONARY_H
#define PROFILE_COLLECT_DICTIONARY_H

#include "base/array.h"
#include "profile/collect/canonical.h"
#include "profile/collect/intern.h"
#include "profile/profiles.h"

/*
 * The ProfilesDictionary of a growing packet. An entry is copied when it is first referenced, and
 * remembered for the rest of the request. Entries that nothing references are never read.
 *
 * Use: dictionary_begin, then the functions below with the indices of that request, then either the
 * next dictionary_begin or dictionary_rollback. If something does not fit, dictionary_size reports
 * it.
 */
/* In the order of ProfilesDictionary's fields, from 1. */
enum dictionary_table {
	MAPPINGS,
	LOCATIONS,
	FUNCTIONS,
	LINKS,
	STRINGS,
	ATTRIBUTES,
	STACKS,
	DICTIONARY_TABLES
};

/* Set in a returned index if the entry, or something that it refers to, was changed by a
 * processor. */
#define DICTIONARY_CHANGED 0x80000000u
#define DICTIONARY_INDEX(i) ((i) & ~DICTIONARY_CHANGED)

ARRAY_TYPE(indices, uint32_t);

struct dictionary {
	struct intern tables[DICTIONARY_TABLES];
	struct canonical canonical;
	const struct profiles *p;
	/* Maps the request's index to ours, with DICTIONARY_CHANGED; 0: not seen yet. Located in
	 * `block`. */
	uint32_t *maps[DICTIONARY_TABLES];
	struct indices block;
	/* set by the owner: every dictionary_begin after the first has the same tables */
	bool same_tables;
	/* with same_tables: what was written to `block` since the last begin */
	struct indices touched;
	struct indices list; /* indices of the record that is being copied */
	/* the request's last stack, if nothing in it was changed; empty: none */
	struct list last_stack;
	uint32_t last_stack_ours;
	/* by the request's attributes: our key strings, once the attribute is known; located in
	 * `block` */
	uint32_t *keys;
	/* For each of our strings: the stamp of the last list in which it was a key. A key occurs
	 * in a list once. */
	struct indices stamps;
	uint32_t stamp;
};

void dictionary_init(struct dictionary *d, size_t max);
void dictionary_fini(struct dictionary *d);
void dictionary_reset(struct dictionary *d);

/* inline_max: the maximum number of inline bytes of all its attributes, resources and scopes. */
void dictionary_begin(struct dictionary *d, const struct profiles *p, size_t inline_max);
void dictionary_rollback(struct dictionary *d);

uint32_t dictionary_string_new(struct dictionary *d, uint32_t string);
uint32_t dictionary_attribute_new(struct dictionary *d, uint32_t attribute);
uint32_t dictionary_stack_new(struct dictionary *d, uint32_t stack);
uint32_t dictionary_link_new(struct dictionary *d, uint32_t link);

static inline uint32_t dictionary_string(struct dictionary *d, uint32_t string)
{
	uint32_t known = d->maps[STRINGS][string];
	return known ? known : dictionary_string_new(d, string);
}

/* Never 0: a sender's stack 0, and an empty stack, become our own empty stack. */
static inline uint32_t dictionary_stack(struct dictionary *d, uint32_t stack)
{
	uint32_t known = d->maps[STACKS][stack];
	return known ? known : dictionary_stack_new(d, stack);
}

/* 0 for a link without IDs. */
static inline uint32_t dictionary_link(struct dictionary *d, uint32_t link)
{
	if (!link)
		return 0;
	uint32_t known = d->maps[LINKS][link];
	return known ? known : dictionary_link_new(d, link);
}

uint32_t dictionary_attributes_new(struct dictionary *d, struct list list, struct indices *out);

/* Appends our indices of a list of attributes to `out`, each key once. Returns DICTIONARY_CHANGED
 * if one of them was changed, else 0. */
static inline uint32_t dictionary_attributes(struct dictionary *d, struct list list,
					     struct indices *out)
{
	uint32_t known = list.count == 1 ? d->maps[ATTRIBUTES][d->p->indices.at[list.first]] : 0;
	if (!known || out->count == out->room)
		return list.count ? dictionary_attributes_new(d, list, out) : 0;
	out->at[out->count++] = DICTIONARY_INDEX(known);
	return known & DICTIONARY_CHANGED;
}

/* The size of the content of the field `dictionary`; DICTIONARY_FULL if something did not fit. */
#define DICTIONARY_FULL ((size_t)1 << 40)
size_t dictionary_size(const struct dictionary *d);
uint8_t *dictionary_put(const struct dictionary *d, uint8_t *at);

size_t dictionary_footprint(const struct dictionary *d);

#endif
