/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_LIMIT_REPORT_H
#define NET_LIMIT_REPORT_H

#include "base/log.h"
#include "base/metrics.h"
#include "config/table.h"

/*
 * A line in the log for each limit that the connections of a server have exceeded, at most one a
 * minute for each: the setting, its value, and the number of connections. The metrics have the
 * numbers at any time. All calls are made by one thread.
 */
enum { LIMIT_REPORT_MAX = 20 };

struct limit_report {
	struct limit_report_row {
		struct metric_series *series; /* of the connections that exceeded it */
		char setting[64], value[32];
		int64_t reported;
	} at[LIMIT_REPORT_MAX];
	size_t count;
	uint64_t next; /* the earliest time of the next lines */
};

/* The setting is "<section><key>"; `section` may be "". */
void limit_report_number(struct limit_report *report, struct metric_series *series,
			 const char *section, const char *key, int64_t value, const char *unit);
void limit_report_time(struct limit_report *report, struct metric_series *series,
		       const char *section, const char *key, struct duration value);
void limit_report_pass(struct limit_report *report, const struct log *log, uint64_t now);

#endif
