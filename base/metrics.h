/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_METRICS_H
#define BASE_METRICS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

/*
 * Own metrics in Prometheus text. A metric is a const row beside the code that counts; a series is
 * one metric with label values, created once at start and then only added to. Label values are
 * component IDs, transports and fixed words of ours: never a sender's text, so their number is
 * bounded.
 *
 * metrics_series may be called from any thread (mutex inside); metric_add and metric_set are one
 * relaxed atomic operation. A series lives as long as its registry.
 */
enum metric_kind { METRIC_COUNTER, METRIC_GAUGE };

struct metric {
	const char *name; /* with prefix otelcol_, without _total */
	enum metric_kind kind;
	const char *unit; /* for the manual: "{samples}", "By", "s" */
	const char *help;
	/* a series counts in 10^-decimals of the unit, and is written with a decimal point */
	int decimals;
};

struct metric_label {
	const char *name, *value; /* copied */
};

struct metric_series {
	_Atomic int64_t value;
};

struct metrics;

struct metrics *metrics_new(void);
void metrics_unref(struct metrics **metrics);

/* Finds or makes the series; never fails. labels ends with a row whose name is NULL. */
struct metric_series *metrics_series(struct metrics *metrics, const struct metric *metric,
				     const struct metric_label *labels);

/* Gives a series other labels. For a value that is a label. If another series of the metric has
 * them, nothing changes, and that one is returned. */
struct metric_series *metrics_relabel(struct metrics *metrics, const struct metric *metric,
				      struct metric_series *series,
				      const struct metric_label *labels);

/* The sum over all series of the metric whose labels, as they are printed, contain this text. */
int64_t metrics_sum(struct metrics *metrics, const struct metric *metric, const char *labels);

static inline void metric_add(struct metric_series *s, int64_t n)
{
	atomic_fetch_add_explicit(&s->value, n, memory_order_relaxed);
}

static inline void metric_set(struct metric_series *s, int64_t n)
{
	atomic_store_explicit(&s->value, n, memory_order_relaxed);
}

static inline int64_t metric_get(struct metric_series *s)
{
	return atomic_load_explicit(&s->value, memory_order_relaxed);
}

/*
 * Called before each writing, to set gauges that are cheaper to read than to maintain. A callback
 * may make series but may not come back to on_scrape or off_scrape; after off_scrape none is
 * running. Values that only callbacks set are written as one call of each callback has set them,
 * also when several threads write.
 */
void metrics_on_scrape(struct metrics *metrics, void (*refresh)(void *context), void *context);
void metrics_off_scrape(struct metrics *metrics, void *context);

/* What is added to names and labels, as Prometheus exporters of OpenTelemetry do. All false: names
 * and labels are those of the rows. target_info stays as it is. */
struct metrics_style {
	bool units;        /* "_seconds", "_bytes", "_ratio" (of gauges) */
	bool type_suffix;  /* "_total" of counters, after the unit */
	const char *scope; /* labels, `otel_scope_name="x",otel_scope_version="y"`; NULL: none */
};
/* Before the first metrics_write. scope: borrowed. */
void metrics_set_style(struct metrics *metrics, const struct metrics_style *style);

/* Prometheus text format 0.0.4: HELP, TYPE, series sorted by name and labels. Ends early when out
 * is full. */
void metrics_write(struct metrics *metrics, struct bytes *out);

#endif
