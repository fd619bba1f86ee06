/* SPDX-License-Identifier: Apache-2.0 */
#include "base/metrics.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { LABELS_MAX = 16, LABELS_BYTES = 64 * 1024 };

struct line { /* one series as it stands in the output */
	struct metric_series series;
	char *labels; /* {a="b",c="d"}, sorted by name, or "" */
};

struct family {
	const struct metric *metric;
	struct line **lines; /* sorted by labels */
	size_t count;
};

struct scrape {
	void (*refresh)(void *context);
	void *context;
};

struct metrics {
	pthread_mutex_t lock;    /* guards families */
	struct family *families; /* sorted by name */
	size_t family_count;
	struct metrics_style style;
	/*
	 * Guards the callbacks and is held while they run, so that after metrics_off_scrape none
	 * does, and while their values are written. Before the other lock. A callback may call
	 * metrics_series, but neither on_scrape nor off_scrape.
	 */
	pthread_mutex_t scraping;
	struct scrape *scrapes;
	size_t scrape_count;
};

struct metrics *metrics_new(void)
{
	struct metrics *metrics = memory_new(sizeof *metrics);
	pthread_mutex_init(&metrics->lock, NULL);
	pthread_mutex_init(&metrics->scraping, NULL);
	return metrics;
}

static void family_fini(struct family *family)
{
	for (size_t i = 0; i < family->count; i++) {
		memory_free(family->lines[i]->labels);
		memory_free(family->lines[i]);
	}
	memory_free(family->lines);
}

void metrics_unref(struct metrics **metrics)
{
	struct metrics *m = *metrics;
	*metrics = NULL;
	if (!m)
		return;
	for (size_t i = 0; i < m->family_count; i++)
		family_fini(&m->families[i]);
	memory_free(m->families);
	memory_free(m->scrapes);
	pthread_mutex_destroy(&m->lock);
	pthread_mutex_destroy(&m->scraping);
	memory_free(m);
}

/* Escapes backslash and newline, and the quote where the text stands in quotes. */
static void add_escaped(struct bytes *out, const char *text, bool quoted)
{
	for (; *text; text++) {
		if (*text == '\n')
			bytes_add_text(out, "\\n");
		else if (*text == '\\' || (quoted && *text == '"'))
			bytes_add(out, (char[]){ '\\', *text }, 2);
		else
			bytes_add_byte(out, (uint8_t)*text);
	}
}

static int by_label_name(const void *a, const void *b)
{
	return strcmp(((const struct metric_label *)a)->name,
		      ((const struct metric_label *)b)->name);
}

static char *render_labels(const struct metric_label *labels)
{
	struct metric_label sorted[LABELS_MAX];
	size_t count = 0;
	for (; labels && labels->name && count < LABELS_MAX; labels++)
		sorted[count++] = *labels;
	qsort(sorted, count, sizeof sorted[0], by_label_name);

	struct bytes text;
	bytes_init(&text, LABELS_BYTES);
	for (size_t i = 0; i < count; i++) {
		bytes_format(&text, "%c%s=\"", i ? ',' : '{', sorted[i].name);
		add_escaped(&text, sorted[i].value ? sorted[i].value : "", true);
		bytes_add_byte(&text, '"');
	}
	if (count)
		bytes_add_byte(&text, '}');
	char *copy = memory_text_of(text.at, text.len);
	bytes_fini(&text);
	return copy;
}

/* Opens a gap at `place` in an array of `count` members. */
static void *insert(void *array, size_t count, size_t place, size_t size)
{
	char *at = memory_resize(array, (count + 1) * size);
	memmove(at + (place + 1) * size, at + place * size, (count - place) * size);
	memset(at + place * size, 0, size);
	return at;
}

static struct family *find_family(struct metrics *metrics, const struct metric *metric)
{
	size_t i = 0;
	int order = -1;
	while (i < metrics->family_count &&
	       (order = strcmp(metrics->families[i].metric->name, metric->name)) < 0)
		i++;
	if (i == metrics->family_count || order != 0) {
		metrics->families = insert(metrics->families, metrics->family_count++, i,
					   sizeof *metrics->families);
		metrics->families[i].metric = metric;
	}
	return &metrics->families[i];
}

/* The place of these labels among the others; *found: they are there. */
static size_t place_of(const struct family *family, const char *labels, bool *found)
{
	size_t i = 0;
	int order = -1;
	while (i < family->count && (order = strcmp(family->lines[i]->labels, labels)) < 0)
		i++;
	*found = i < family->count && order == 0;
	return i;
}

/* Takes labels. */
static struct metric_series *find_line(struct family *family, char *labels)
{
	bool found;
	size_t i = place_of(family, labels, &found);
	if (found) {
		memory_free(labels);
		return &family->lines[i]->series;
	}
	family->lines = insert(family->lines, family->count++, i, sizeof *family->lines);
	family->lines[i] = memory_new(sizeof *family->lines[i]);
	family->lines[i]->labels = labels;
	return &family->lines[i]->series;
}

struct metric_series *metrics_series(struct metrics *metrics, const struct metric *metric,
				     const struct metric_label *labels)
{
	char *text = render_labels(labels);
	pthread_mutex_lock(&metrics->lock);
	struct metric_series *series = find_line(find_family(metrics, metric), text);
	pthread_mutex_unlock(&metrics->lock);
	return series;
}

/* Moves the series to the place of its new labels, which it takes. */
static void move_line(struct family *family, const struct metric_series *series, char *labels,
		      size_t to)
{
	size_t from = 0;
	while (&family->lines[from]->series != series)
		from++;
	struct line *line = family->lines[from];
	to -= to > from;
	memmove(family->lines + from, family->lines + from + 1,
		(family->count - from - 1) * sizeof *family->lines);
	memmove(family->lines + to + 1, family->lines + to,
		(family->count - to - 1) * sizeof *family->lines);
	family->lines[to] = line;
	memory_free(line->labels);
	line->labels = labels;
}

struct metric_series *metrics_relabel(struct metrics *m, const struct metric *metric,
				      struct metric_series *series,
				      const struct metric_label *labels)
{
	char *text = render_labels(labels);
	bool found;
	pthread_mutex_lock(&m->lock);
	struct family *family = find_family(m, metric);
	size_t at = place_of(family, text, &found);
	if (found)
		series = &family->lines[at]->series;
	else
		move_line(family, series, text, at);
	pthread_mutex_unlock(&m->lock);
	if (found)
		memory_free(text);
	return series;
}

int64_t metrics_sum(struct metrics *m, const struct metric *metric, const char *labels)
{
	int64_t sum = 0;
	pthread_mutex_lock(&m->lock);
	const struct family *family = find_family(m, metric);
	for (size_t i = 0; i < family->count; i++)
		if (strstr(family->lines[i]->labels, labels))
			sum += metric_get(&family->lines[i]->series);
	pthread_mutex_unlock(&m->lock);
	return sum;
}

void metrics_on_scrape(struct metrics *metrics, void (*refresh)(void *context), void *context)
{
	pthread_mutex_lock(&metrics->scraping);
	size_t count = metrics->scrape_count++;
	metrics->scrapes = memory_resize(metrics->scrapes, (count + 1) * sizeof *metrics->scrapes);
	metrics->scrapes[count] = (struct scrape){ refresh, context };
	pthread_mutex_unlock(&metrics->scraping);
}

void metrics_off_scrape(struct metrics *metrics, void *context)
{
	pthread_mutex_lock(&metrics->scraping);
	size_t kept = 0;
	for (size_t i = 0; i < metrics->scrape_count; i++)
		if (metrics->scrapes[i].context != context)
			metrics->scrapes[kept++] = metrics->scrapes[i];
	metrics->scrape_count = kept;
	pthread_mutex_unlock(&metrics->scraping);
}

static void run_scrapes(struct metrics *metrics)
{
	for (size_t i = 0; i < metrics->scrape_count; i++)
		metrics->scrapes[i].refresh(metrics->scrapes[i].context);
}

/* The suffix of a unit in UCUM, which the units of the rows are in. */
static const char *unit_suffix(const struct metric *metric)
{
	static const struct {
		const char *unit, *suffix;
	} units[] = { { "s", "_seconds" },       { "ms", "_milliseconds" },
		      { "us", "_microseconds" }, { "ns", "_nanoseconds" },
		      { "By", "_bytes" },        { "KiBy", "_kibibytes" },
		      { "MiBy", "_mebibytes" },  { "%", "_percent" } };
	if (!strcmp(metric->unit, "1"))
		return metric->kind == METRIC_GAUGE ? "_ratio" : "";
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (!strcmp(metric->unit, units[i].unit))
			return units[i].suffix;
	return "";
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);
	return len >= end_len && !strcmp(text + len - end_len, end);
}

static bool is_target_info(const struct metric *metric)
{
	return !strcmp(metric->name, "target_info");
}

enum { NAME_TEXT = 200 };

/* The name of a metric in this style. Returns out. */
static const char *styled_name(const struct metrics_style *style, const struct metric *metric,
			       char out[NAME_TEXT])
{
	const char *unit = style->units && metric->unit ? unit_suffix(metric) : "";
	if (is_target_info(metric) || ends_with(metric->name, unit))
		unit = "";
	bool total = style->type_suffix && metric->kind == METRIC_COUNTER;
	snprintf(out, NAME_TEXT, "%s%s%s", metric->name, unit, total ? "_total" : "");
	return out;
}

/* The labels, "{...}" or "", with those of the scope. */
static bool add_labels(const struct metrics_style *style, const struct metric *metric,
		       const char *labels, struct bytes *out)
{
	if (!style->scope || is_target_info(metric))
		return bytes_add_text(out, labels);
	return bytes_format(out, "{%s%s%s", style->scope, *labels ? "," : "}",
			    *labels ? labels + 1 : "");
}

void metrics_set_style(struct metrics *metrics, const struct metrics_style *style)
{
	metrics->style = *style;
}

/* Whole lines only: false, and nothing of the line, when `out` is full. */
static bool write_head(const struct metric *metric, const char *name, struct bytes *out)
{
	size_t mark = out->len;
	bytes_format(out, "# HELP %s ", name);
	add_escaped(out, metric->help ? metric->help : "", false);
	if (bytes_format(out, "\n# TYPE %s %s\n", name,
			 metric->kind == METRIC_COUNTER ? "counter" : "gauge"))
		return true;
	out->len = mark;
	return false;
}

static bool write_value(struct bytes *out, int64_t value, int decimals)
{
	uint64_t size = value < 0 ? -(uint64_t)value : (uint64_t)value, scale = 1;
	for (int i = 0; i < decimals; i++)
		scale *= 10;
	if (scale == 1)
		return bytes_format(out, "%lld", (long long)value);
	return bytes_format(out, "%s%llu.%0*llu", value < 0 ? "-" : "",
			    (unsigned long long)(size / scale), decimals,
			    (unsigned long long)(size % scale));
}

static bool write_line(const struct metrics_style *style, const struct metric *metric,
		       const char *name, struct line *line, struct bytes *out)
{
	size_t mark = out->len;
	if (bytes_add_text(out, name) && add_labels(style, metric, line->labels, out) &&
	    bytes_add_byte(out, ' ') &&
	    write_value(out, metric_get(&line->series), metric->decimals) &&
	    bytes_add_byte(out, '\n'))
		return true;
	out->len = mark;
	return false;
}

static bool write_family(const struct metrics_style *style, const struct family *family,
			 struct bytes *out)
{
	char room[NAME_TEXT];
	const char *name = styled_name(style, family->metric, room);
	bool ok = write_head(family->metric, name, out);
	for (size_t i = 0; ok && i < family->count; i++)
		ok = write_line(style, family->metric, name, family->lines[i], out);
	return ok;
}

void metrics_write(struct metrics *metrics, struct bytes *out)
{
	pthread_mutex_lock(&metrics->scraping);
	run_scrapes(metrics);
	pthread_mutex_lock(&metrics->lock);
	for (size_t i = 0; i < metrics->family_count; i++)
		if (!write_family(&metrics->style, &metrics->families[i], out))
			break;
	pthread_mutex_unlock(&metrics->lock);
	pthread_mutex_unlock(&metrics->scraping);
}
