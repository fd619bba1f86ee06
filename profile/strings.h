/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_STRINGS_H
#define PROFILE_STRINGS_H

#include "profile/profiles.h"

/*
 * Bytes of a sender as strings of the open tables. Strings that are not UTF-8 are repaired: they
 * are marked, and counted in p->repaired_strings.
 *
 * Functions return false over the cap, with p->over_cap set.
 */

/* Appends a string for bytes that are in the tables already, at `span`. `text` is the same bytes,
 * or a copy of them, with BYTES_SLACK readable bytes behind. */
bool strings_add(struct profiles *p, struct view text, struct span span, uint32_t *string);

/* Copies the bytes, which need no slack; string 0 if there are none. */
bool strings_copy(struct profiles *p, struct view text, uint32_t *string);

/* Appends to a list that ends where p->indices ends, or is empty. */
bool strings_list_add(struct profiles *p, struct list *list, uint32_t index);

/* Resource attributes that a transport supplies (may be NULL), appended to a list as above. Of
 * several with one name the first counts. */
bool strings_attributes(struct profiles *p, const struct metadatum *attributes, struct list *list);

#endif
