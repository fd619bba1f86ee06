/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_COLLECT_CANONICAL_H
#define PROFILE_COLLECT_CANONICAL_H

#include "profile/collect/intern.h"
#include "profile/profiles.h"

/*
 * The one spelling of what may stand inline in OTLP: values, resources, scopes. Strings are inline,
 * never references (readers refuse or lose those); a KeyValue always has its value; fields stand in
 * the order of their numbers; of attributes with the same key in one list the first stays; an
 * entity without id keys, or with a key that is none of its resource's attributes, is left out.
 * Field numbers: opentelemetry-proto 1.11, common.proto, resource.proto, profiles.proto.
 */
struct canonical {
	struct bytes out;
	size_t max;         /* of out, at most */
	struct intern keys; /* of the list that is being written */
	/*
	 * How many bytes may still be written for this request. References let a few bytes of input
	 * stand for a long text many times over: this bounds the work, deduplicated or not.
	 */
	size_t left;
};

/* The sticky end of a request that asks for more than `left`: everything then returns false. */
static inline bool canonical_spent(const struct canonical *k)
{
	return k->left == 0;
}

void canonical_init(struct canonical *k, size_t max);
void canonical_fini(struct canonical *k);

/* A request begins, of which at most so many bytes are written. */
void canonical_begin(struct canonical *k, size_t max);

/*
 * KeyValueAndUnit of the dictionary, key and unit being indices of the packet's string table. `out`
 * is overwritten, here and below.
 */
bool canonical_attribute(struct canonical *k, const struct profiles *p, const struct attribute *a,
			 uint32_t key, uint32_t unit);

/*
 * What identifies a resource (a scope): the field `resource` (`scope`) of ResourceProfiles
 * (ScopeProfiles), always present, then its field `schema_url`; *split is where the second begins.
 * A scope's bytes begin with CANONICAL_OWNER bytes that identify its resource.
 */
#define CANONICAL_OWNER 4
bool canonical_resource(struct canonical *k, const struct profiles *p, const struct resource *r,
			size_t *split);
bool canonical_scope(struct canonical *k, const struct profiles *p, const struct scope *s,
		     uint32_t resource, size_t *split);

#endif
