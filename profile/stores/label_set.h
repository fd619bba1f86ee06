/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_STORES_LABEL_SET_H
#define PROFILE_STORES_LABEL_SET_H

#include "profile/profiles.h"

/*
 * The labels of one series, as a sender of Pyroscope's protocols wrote them: views of the request,
 * nothing copied. series_name_parse and push_request_next fill a set, and label_set_attach turns it
 * into attributes of a resource. One thread.
 *
 * Errors name the position of a label and the setting that it exceeds, never its content. Their
 * kind is ERROR_INVALID: the sender must change the labels, and not the size of its request.
 */
enum { LABEL_SET_MAX = 256, LABEL_SET_OWN = 8 };

struct label_limits {
	int64_t max_profiles; /* of one request */
	int64_t max_labels;   /* of a series; at most LABEL_SET_MAX - LABEL_SET_OWN */
	int64_t max_name_length, max_value_length; /* bytes */
};

struct label_text {
	struct view name, value;
};

struct label_set {
	uint32_t count;
	uint32_t seen; /* including those beyond the limit, which are not kept */
	struct label_text at[LABEL_SET_MAX];
};

static inline void label_set_clear(struct label_set *set)
{
	set->count = set->seen = 0;
}

/* NULL: there is none of that name. */
struct label_text *label_set_find(struct label_set *set, struct view name);

/* False: its name is empty, or its name or value is too long or not UTF-8. `number` is its
 * position, from 1. */
bool label_set_fits(const struct label_limits *limits, struct label_text label, uint32_t number,
		    struct error *err);

/* Appends a label with a new name. Counts it even if there are too many, so that label_set_check
 * can report their number. False: label_set_fits is. */
bool label_set_add(struct label_set *set, const struct label_limits *limits,
		   struct label_text label, struct error *err);

/* To be called when all labels were added. False: there are more than max_labels. */
bool label_set_check(const struct label_set *set, const struct label_limits *limits,
		     struct error *err);

/* Sets a label of the receiver's own, which counts towards no limit: a set of max_labels has room
 * for LABEL_SET_OWN more. Replaces one of the same name. */
void label_set_put(struct label_set *set, struct label_text label);

/* Removes labels whose name begins with "__", except __session_id__. Returns their number. */
uint32_t label_set_drop_reserved(struct label_set *set);

/* Renames service_name to service.name. Returns the number of labels that this displaces: 1 if the
 * set had a service.name too. */
uint32_t label_set_name_service(struct label_set *set);

/* Appends the labels to the attributes of the resource, in order, except those with an empty value
 * and those that it has already. False: the tables would exceed their cap. */
bool label_set_attach(const struct label_set *set, struct profiles *p, struct resource *resource,
		      struct error *err);

#endif
