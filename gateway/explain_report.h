/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATEWAY_EXPLAIN_REPORT_H
#define GATEWAY_EXPLAIN_REPORT_H

#include "base/bytes.h"
#include "config/node.h"
#include "gateway/explain_verdicts.h"
#include "profile/profiles.h"

/*
 * What one configuration does to the profiles of a file, for `portcullis explain`: for each way of
 * the graph, verdicts by site and key. One thread.
 */
struct explain_way {
	char *name;
	struct explain_verdicts verdicts, permits;
	size_t bytes_out;
	uint64_t profiles_out, samples_out, samples_merged;
};

struct explain_report {
	struct audit audit;
	const struct node *processors; /* of the configuration, while it is open */
	struct explain_way *ways;
	size_t count;
	bool more; /* the graph has further ways, which are left out */
	/* of the input */
	const char *format;
	size_t documents, bytes;
	uint64_t profiles, samples;
};

void explain_report_init(struct explain_report *report);
void explain_report_fini(struct explain_report *report);

/* The way that the next decisions belong to. Takes the name. */
struct explain_way *explain_report_begin(struct explain_report *report, char *name);
/* What leaves at the end of the way: the decoded packet. */
void explain_report_leaves(struct explain_report *report, struct profiles *packet);

void explain_report_print(const struct explain_report *report, bool json, struct bytes *out);
/* The places where `second` decides otherwise. */
void explain_report_compare(const struct explain_report *first, const struct explain_report *second,
			    bool json, struct bytes *out);

#endif
