/* SPDX-License-Identifier: Apache-2.0 */
#include "net/limit_report.h"

#include <assert.h>
#include <stdio.h>

#define EVERY_NS UINT64_C(60000000000)

static struct limit_report_row *add(struct limit_report *report, struct metric_series *series,
				    const char *section, const char *key)
{
	assert(report->count < LIMIT_REPORT_MAX);
	struct limit_report_row *row = &report->at[report->count++];
	*row = (struct limit_report_row){ .series = series, .reported = metric_get(series) };
	snprintf(row->setting, sizeof row->setting, "%s%s", section, key);
	return row;
}

void limit_report_number(struct limit_report *report, struct metric_series *series,
			 const char *section, const char *key, int64_t value, const char *unit)
{
	struct limit_report_row *row = add(report, series, section, key);
	snprintf(row->value, sizeof row->value, "%lld%s", (long long)value, unit);
}

void limit_report_time(struct limit_report *report, struct metric_series *series,
		       const char *section, const char *key, struct duration value)
{
	struct limit_report_row *row = add(report, series, section, key);
	snprintf(row->value, sizeof row->value, "%g s", (double)value.ns / 1e9);
}

void limit_report_pass(struct limit_report *report, const struct log *log, uint64_t now)
{
	bool any = false;
	if (now < report->next)
		return;
	for (size_t i = 0; i < report->count; i++) {
		struct limit_report_row *row = &report->at[i];
		int64_t count = metric_get(row->series), more = count - row->reported;
		if (!more)
			continue;
		any = true;
		row->reported = count;
		log_warn(log, "Connections exceeded a limit and were closed",
			 log_text("setting", row->setting), log_text("value", row->value),
			 log_number("connections", more));
	}
	if (any)
		report->next = now + EVERY_NS;
}
