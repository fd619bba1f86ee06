/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATEWAY_EXPLAIN_VERDICTS_H
#define GATEWAY_EXPLAIN_VERDICTS_H

#include "profile/sites.h"

/*
 * What was decided about the fields of a file, for `portcullis explain`. It contains keys, which
 * may come from a sender, and no values. There may be as many keys as the file has bytes, so they
 * are found by a hash.
 */
struct explain_verdict {
	enum site site;
	char *key;  /* "" at sites without keys */
	char *what; /* "passes", "denied", "set", ... */
	/* The rule: the processor's ID and the entry of its configuration ("keys[0]"), both may be
	 * "", and its place; source NULL: it is not in the configuration. */
	char *processor, *entry, *source;
	int line;
	uint64_t count;   /* of table entries that it concerns */
	uint32_t earlier; /* in its bucket: the index + 1 of the one added before; 0: none */
};

/* Zeroed memory is an empty list. */
struct explain_verdicts {
	struct explain_verdict *at; /* in the order in which they were added */
	uint32_t count, room;
	uint32_t *buckets; /* of the last one added: the index + 1; as many as there is room */
};

void explain_verdicts_fini(struct explain_verdicts *verdicts);
/* Adds one; the other members are zeroed. Valid until the next one is added. */
struct explain_verdict *explain_verdicts_add(struct explain_verdicts *verdicts, enum site site,
					     const char *key, const char *what);
/* The last one added about this field; NULL: there is none. */
struct explain_verdict *explain_verdicts_find(const struct explain_verdicts *verdicts,
					      enum site site, const char *key);
/* The one about the same field that was added before. */
struct explain_verdict *explain_verdicts_earlier(const struct explain_verdicts *verdicts,
						 const struct explain_verdict *verdict);

#endif
