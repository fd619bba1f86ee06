/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_COLLECT_CANONICAL_H
#define PROFILE_COLLECT_CANONICAL_H

#include "profile/collect/intern.h"
#include "profile/profiles.h"

/*
 * The canonical encoding of everything that is inline in OTLP: values, resources, scopes. Strings
 * are inline, never references, because readers refuse or lose references there. A KeyValue always
 * has its value. Fields are in the order of their numbers. Of attributes with the same key in one
 * list, the first is kept. An entity without ID keys, or with a key that is not an attribute of its
 * resource, is omitted. Field numbers: opentelemetry-proto 1.11, common.proto, resource.proto,
 * profiles.proto.
 */
struct canonical {
	struct bytes out;
	size_t max;         /* maximum size of out */
	struct intern keys; /* keys of the list that is being written */
	/* The number of bytes that may still be written for this request. With references, a few
	 * bytes of input can repeat a long string many times. This limit bounds the work even if
	 * the output is deduplicated. */
	size_t left;
};

/* True if the request needed more than `left`: all later calls then return false. */
static inline bool canonical_spent(const struct canonical *k)
{
	return k->left == 0;
}

void canonical_init(struct canonical *k, size_t max);
void canonical_fini(struct canonical *k);

/* Begins a request, for which at most `max` bytes are written. */
void canonical_begin(struct canonical *k, size_t max);

/* A KeyValueAndUnit of the dictionary; key and unit are indices into the packet's string table.
 * `out` is overwritten, here and below. */
bool canonical_attribute(struct canonical *k, const struct profiles *p, const struct attribute *a,
			 uint32_t key, uint32_t unit);

/* The bytes that identify a resource (a scope): the field `resource` (`scope`) of ResourceProfiles
 * (ScopeProfiles), always present, then the field `schema_url`. *split is the offset of the second
 * field. A scope's bytes begin with CANONICAL_OWNER bytes that identify its resource. */
#define CANONICAL_OWNER 4
bool canonical_resource(struct canonical *k, const struct profiles *p, const struct resource *r,
			size_t *split);
bool canonical_scope(struct canonical *k, const struct profiles *p, const struct scope *s,
		     uint32_t resource, size_t *split);

#endif
