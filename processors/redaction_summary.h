/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROCESSORS_REDACTION_SUMMARY_H
#define PROCESSORS_REDACTION_SUMMARY_H

#include "profile/sites.h"

/*
 * The attributes with which `redaction` says what it did: counts, and no names. Resources, scopes
 * and Profiles get them; what was done to attributes of samples counts at their Profile. One
 * request and thread.
 *
 * For each list: enter, count for each attribute, leave. close at the end of each site.
 */
enum redaction_kind {
	REDACTION_KIND_REMOVED,
	REDACTION_KIND_MASKED,
	REDACTION_KIND_ALLOWED,
	REDACTION_KIND_IGNORED,
	REDACTION_KINDS,
	REDACTION_KIND_NONE = REDACTION_KINDS
};

struct redaction_summary {
	struct profiles *p;
	int64_t counts[REDACTION_KINDS + 1];
	uint32_t keys[REDACTION_KINDS]; /* strings; 0: not made yet */
	uint32_t profile;               /* of the samples that are counted */
};

void redaction_summary_init(struct redaction_summary *summary, struct profiles *p);
/* Is it a count that an earlier processor made at this site? */
bool redaction_summary_owns(const struct profiles *p, enum site site, const struct attribute *a);

void redaction_summary_enter(struct redaction_summary *summary, enum site site,
			     const struct list *list);
static inline void redaction_summary_count(struct redaction_summary *summary,
					   enum redaction_kind kind)
{
	summary->counts[kind]++;
}
void redaction_summary_leave(struct redaction_summary *summary, enum site site, struct list *list,
			     uint8_t *changed);
void redaction_summary_close(struct redaction_summary *summary, enum site site);

#endif
