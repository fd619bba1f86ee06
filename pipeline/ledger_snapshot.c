/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "pipeline/ledger_private.h"

#include <stdio.h>
#include <stdlib.h>

enum { TENANTS_LOGGED = 10 };

/* All rows at one instant. */
struct line {
	struct ledger_row *row;
	int64_t at[LEDGER_COLUMNS];
};

struct snapshot {
	struct line *lines;
	uint32_t count;
};

static const char *const scope_names[LEDGER_SCOPES] = { "receiver", "pipeline", "destination",
							"tenant" };

/* Under the ledger's lock. */
static struct snapshot take(struct ledger *l)
{
	struct snapshot s = { memory_array(l->count + 1, sizeof *s.lines), l->count };
	struct line *line = s.lines;
	for (int i = 0; i < LEDGER_LOCKS; i++)
		pthread_mutex_lock(&l->locks[i].mutex);
	for (struct ledger_row *row = l->rows; row; row = row->next, line++) {
		line->row = row;
		for (int c = 0; c < LEDGER_COLUMNS; c++)
			line->at[c] = ledger_get(row, (enum ledger_column)c);
	}
	for (int i = LEDGER_LOCKS; i-- > 0;)
		pthread_mutex_unlock(&l->locks[i].mutex);
	return s;
}

/* ---- checking */

static bool balances(const struct line *line, bool rest)
{
	int64_t sum = 0;
	for (int c = 0; c < LEDGER_COLUMNS; c++) {
		enum ledger_side side = ledger_columns[c].side;
		bool held = side == LEDGER_HELD && c != LEDGER_QUEUED;
		sum += side == LEDGER_SOURCE ? line->at[c] : -line->at[c];
		if (line->at[c] < 0 || (rest && held && line->at[c]))
			return false;
		if (line->at[c] && !ledger_columns[c].metrics[line->row->scope])
			return false;
	}
	return !sum;
}

static void print(const struct line *line, bool wrong)
{
	const struct ledger_row *row = line->row;
	fprintf(stderr, "%s %s %s%s%s:", wrong ? "WRONG" : "     ", scope_names[row->scope],
		row->name, row->exporter ? " " : "", row->exporter ? row->exporter : "");
	for (int c = 0; c < LEDGER_COLUMNS; c++)
		if (line->at[c])
			fprintf(stderr, " %s=%lld", ledger_columns[c].name, (long long)line->at[c]);
	fprintf(stderr, "\n");
}

static void end_program(const struct snapshot *s, bool rest)
{
	fprintf(stderr, "the ledger does not balance%s:\n", rest ? " at rest" : "");
	for (uint32_t i = 0; i < s->count; i++)
		print(&s->lines[i], !balances(&s->lines[i], rest));
	abort();
}

static void report_wrong(struct ledger_row *row)
{
	const struct log log = { .component_kind = "service" };
	if (!row->logged)
		log_error(&log,
			  "The ledger does not balance. Logged once for each row, always "
			  "counted.",
			  log_text("row", scope_names[row->scope]), log_text("name", row->name),
			  log_text("exporter", row->exporter));
	row->logged = true;
}

/* Under the ledger's lock. */
static uint32_t check(struct ledger *l, const struct snapshot *s, bool rest)
{
	uint32_t wrong = 0;
	for (uint32_t i = 0; i < s->count; i++) {
		if (balances(&s->lines[i], rest))
			continue;
		if (l->aborts)
			end_program(s, rest);
		report_wrong(s->lines[i].row);
		wrong++;
	}
	metric_add(l->imbalances, wrong);
	return wrong;
}

void ledger_fail(struct ledger_row *row)
{
	struct ledger *l = row->ledger;
	pthread_mutex_lock(&l->lock);
	struct snapshot s = take(l);
	for (uint32_t i = 0; i < s.count && l->aborts; i++)
		print(&s.lines[i], s.lines[i].row == row);
	if (l->aborts)
		abort();
	report_wrong(row);
	metric_add(l->imbalances, 1);
	pthread_mutex_unlock(&l->lock);
	memory_free(s.lines);
}

uint32_t ledger_check(struct ledger *l, bool rest)
{
	pthread_mutex_lock(&l->lock);
	struct snapshot s = take(l);
	uint32_t wrong = check(l, &s, rest);
	pthread_mutex_unlock(&l->lock);
	memory_free(s.lines);
	return wrong;
}

/* ---- showing */

void ledger_publish(void *ledger)
{
	struct ledger *l = ledger;
	pthread_mutex_lock(&l->lock);
	struct snapshot s = take(l);
	check(l, &s, false);
	for (uint32_t i = 0; i < s.count; i++) {
		const struct line *line = &s.lines[i];
		for (int c = 0; c < LEDGER_COLUMNS; c++) {
			if (!line->row->series[c] && line->at[c] &&
			    ledger_columns[c].metrics[line->row->scope])
				ledger_show_column(line->row, (enum ledger_column)c);
			if (line->row->series[c])
				metric_set(line->row->series[c], line->at[c]);
		}
	}
	pthread_mutex_unlock(&l->lock);
	memory_free(s.lines);
}

/* The columns that the scope has, without reasons that did not occur. Returns the new count. */
static size_t add_fields(struct log_field *fields, size_t count, enum ledger_scope scope,
			 const int64_t at[LEDGER_COLUMNS])
{
	for (int c = 0; c < LEDGER_COLUMNS; c++)
		if (ledger_columns[c].metrics[scope] && (at[c] || !ledger_columns[c].dropped))
			fields[count++] =
				(struct log_field)log_number(ledger_columns[c].name, at[c]);
	return count;
}

static void log_component(const struct line *line)
{
	struct log_field fields[LEDGER_COLUMNS];
	const struct ledger_row *row = line->row;
	size_t count = add_fields(fields, 0, row->scope, line->at);
	bool receiver = row->scope == LEDGER_RECEIVER;
	const struct log log = {
		.component_kind = receiver        ? "receiver"
				  : row->exporter ? "exporter"
						  : NULL,
		.component_id = receiver ? row->name : row->exporter,
		.pipeline_id = receiver ? NULL : row->name,
		.signal = "profiles",
	};
	if (receiver)
		log_info_fields(&log, "Ledger of a receiver", fields, count);
	else if (row->scope == LEDGER_PIPELINE)
		log_info_fields(&log, "Ledger of a pipeline", fields, count);
	else
		log_info_fields(&log, "Ledger of a destination", fields, count);
}

static int64_t size_of(const struct line *line)
{
	return line->at[LEDGER_IN] + line->at[LEDGER_RESTORED];
}

static int by_scope(const void *left, const void *right)
{
	const struct line *a = left, *b = right;
	if (a->row->scope != b->row->scope)
		return a->row->scope < b->row->scope ? -1 : 1;
	return (size_of(a) < size_of(b)) - (size_of(a) > size_of(b));
}

static void log_tenants(const struct log *log, const struct line *lines, uint32_t count)
{
	struct log_field fields[LEDGER_COLUMNS + 1];
	struct line rest = { 0 };
	uint32_t named = count < TENANTS_LOGGED ? count : TENANTS_LOGGED;
	for (uint32_t i = 0; i < named; i++) {
		fields[0] = (struct log_field)log_text("tenant", lines[i].row->name);
		log_info_fields(log, "Ledger of a tenant", fields,
				add_fields(fields, 1, LEDGER_TENANT, lines[i].at));
	}
	for (uint32_t i = named; i < count; i++)
		for (int c = 0; c < LEDGER_COLUMNS; c++)
			rest.at[c] += lines[i].at[c];
	fields[0] = (struct log_field)log_number("tenants", count - named);
	if (count > named)
		log_info_fields(log, "Ledger of the other tenants", fields,
				add_fields(fields, 1, LEDGER_TENANT, rest.at));
}

void ledger_log(struct ledger *l, const struct log *log)
{
	uint32_t first = 0;
	pthread_mutex_lock(&l->lock);
	struct snapshot s = take(l);
	pthread_mutex_unlock(&l->lock);
	qsort(s.lines, s.count, sizeof *s.lines, by_scope);
	for (; first < s.count && s.lines[first].row->scope != LEDGER_TENANT; first++)
		log_component(&s.lines[first]);
	log_tenants(log, s.lines + first, s.count - first);
	memory_free(s.lines);
}
