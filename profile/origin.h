/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_ORIGIN_H
#define PROFILE_ORIGIN_H

#include "profile/request.h"

/*
 * What a batch keeps of the requests that it joins: their tenant, and the metadata that the batch
 * is split by. All requests of a batch have the same origin, so it survives batching, queues and
 * splitting. Immutable and refcounted; any thread may use it.
 */
struct origin {
	_Atomic uint32_t refs;
	const char *tenant;               /* NULL: none */
	const struct metadatum *metadata; /* of the batch's keys; ends with name == NULL */
	const char *key;                  /* equal for equal origins only */
};

/* One reference, the caller's. The strings are copied; metadata may be NULL. */
struct origin *origin_new(const char *key, const char *tenant, const struct metadatum *metadata);
struct origin *origin_ref(struct origin *origin); /* accepts NULL */
void origin_unref(struct origin **origin);        /* clears; accepts NULL */

#endif
