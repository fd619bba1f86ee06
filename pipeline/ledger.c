/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/ledger.h"

#include "base/hash.h"
#include "base/memory.h"
#include "pipeline/ledger_private.h"

#include <string.h>

#ifdef RELEASE
enum { ABORTS = false };
#else
enum { ABORTS = true };
#endif

#define SAMPLES(variable, name, kind, text) \
	static const struct metric variable = { name, kind, "{samples}", text }

SAMPLES(receiver_in, "otelcol_ledger_receiver_in_samples", METRIC_COUNTER,
	"Samples in the requests of the receiver, once for each request.");
SAMPLES(receiver_processing, "otelcol_ledger_receiver_processing_samples", METRIC_GAUGE,
	"Samples of requests that were decoded and not answered yet.");
SAMPLES(receiver_accepted, "otelcol_ledger_receiver_accepted_samples", METRIC_COUNTER,
	"Samples of requests that were accepted.");
SAMPLES(receiver_dropped, "otelcol_ledger_receiver_dropped_samples", METRIC_COUNTER,
	"Samples that the receiver did not accept, by reason.");
SAMPLES(pipeline_in, "otelcol_ledger_in_samples", METRIC_COUNTER,
	"Samples that the pipeline received from its receivers.");
SAMPLES(pipeline_processing, "otelcol_ledger_processing_samples", METRIC_GAUGE,
	"Samples that are in the processors of the pipeline.");
SAMPLES(batched, "otelcol_ledger_batched_samples", METRIC_GAUGE,
	"Samples in open batches of the pipeline.");
SAMPLES(merged, "otelcol_ledger_merged_samples", METRIC_COUNTER,
	"Samples that were merged into an identical one (values added or timestamps "
	"concatenated).");
SAMPLES(passed, "otelcol_ledger_passed_samples", METRIC_COUNTER,
	"Samples that the pipeline handed to its destinations, once for all of them.");
SAMPLES(dropped, "otelcol_ledger_dropped_samples", METRIC_COUNTER,
	"Samples dropped by the pipeline (no exporter label) or for one destination, by reason.");
SAMPLES(entered, "otelcol_ledger_entered_samples", METRIC_COUNTER,
	"Samples of the pipeline that were handed to the destination, or added to its own batch.");
SAMPLES(restored, "otelcol_ledger_restored_samples", METRIC_COUNTER,
	"Samples of the pipeline that were in the destination's queue on disk at the start.");
SAMPLES(queued, "otelcol_ledger_queued_samples", METRIC_GAUGE,
	"Samples of the pipeline that are waiting for a destination, in its queue or its own "
	"batches, or are in flight to it.");
SAMPLES(out, "otelcol_ledger_out_samples", METRIC_COUNTER,
	"Samples of the pipeline that a destination accepted.");
SAMPLES(dead_letter, "otelcol_ledger_dead_letter_samples", METRIC_COUNTER,
	"Samples of the pipeline that a destination did not get, and that are kept as dead "
	"letters.");
SAMPLES(tenant_in, "otelcol_ledger_tenant_in_samples", METRIC_COUNTER,
	"Samples of the tenant that were handed to destinations, once for each destination. "
	"Tenants beyond service::tenant::metrics_limit count as `other`.");
SAMPLES(tenant_restored, "otelcol_ledger_tenant_restored_samples", METRIC_COUNTER,
	"Samples of the tenant that were in queues on disk at the start.");
SAMPLES(tenant_queued, "otelcol_ledger_tenant_queued_samples", METRIC_GAUGE,
	"Samples of the tenant that are waiting for destinations, or are in flight to them.");
SAMPLES(tenant_out, "otelcol_ledger_tenant_out_samples", METRIC_COUNTER,
	"Samples of the tenant that destinations accepted.");
SAMPLES(tenant_dead_letter, "otelcol_ledger_tenant_dead_letter_samples", METRIC_COUNTER,
	"Samples of the tenant that destinations did not get, and that are kept as dead letters.");
SAMPLES(tenant_dropped, "otelcol_ledger_tenant_dropped_samples", METRIC_COUNTER,
	"Samples of the tenant that were dropped for a destination, by reason.");

static const struct metric imbalances = {
	"otelcol_ledger_imbalances", METRIC_COUNTER, "{rows}",
	"Rows of the ledger that did not balance when they were read. Always 0, unless the program "
	"has a bug."
};

const struct metric *const ledger_metrics[] = { &receiver_in,
						&receiver_processing,
						&receiver_accepted,
						&receiver_dropped,
						&pipeline_in,
						&pipeline_processing,
						&batched,
						&merged,
						&passed,
						&dropped,
						&entered,
						&restored,
						&queued,
						&out,
						&dead_letter,
						&tenant_in,
						&tenant_restored,
						&tenant_queued,
						&tenant_out,
						&tenant_dead_letter,
						&tenant_dropped,
						&imbalances,
						NULL };

#define OF_RECEIVER(metric) [LEDGER_RECEIVER] = &(metric)
#define OF_PIPELINE(metric) [LEDGER_PIPELINE] = &(metric)
#define OF_DESTINATION(metric) [LEDGER_DESTINATION] = &(metric)
#define OF_TENANT(metric) [LEDGER_TENANT] = &(metric)
/* Dropped by the rows of these scopes; what a destination drops, it drops of a tenant. */
#define BY_RECEIVER OF_RECEIVER(receiver_dropped)
#define BY_PIPELINE OF_PIPELINE(dropped)
#define BY_DESTINATION OF_DESTINATION(dropped), OF_TENANT(tenant_dropped)
#define DROPPED(reason, ...) \
	{ \
		reason, LEDGER_END, { __VA_ARGS__ }, .dropped = true \
	}

/* clang-format off */
const struct ledger_column_info ledger_columns[LEDGER_COLUMNS] = {
	[LEDGER_IN] = { "in", LEDGER_SOURCE, { OF_RECEIVER(receiver_in), OF_PIPELINE(pipeline_in),
					       OF_DESTINATION(entered), OF_TENANT(tenant_in) } },
	[LEDGER_RESTORED] = { "restored", LEDGER_SOURCE,
			      { OF_DESTINATION(restored), OF_TENANT(tenant_restored) } },
	[LEDGER_PROCESSING] = { "processing", LEDGER_HELD,
				{ OF_RECEIVER(receiver_processing), OF_PIPELINE(pipeline_processing) } },
	[LEDGER_BATCHED] = { "batched", LEDGER_HELD, { OF_PIPELINE(batched) } },
	[LEDGER_QUEUED] = { "queued", LEDGER_HELD, { OF_DESTINATION(queued), OF_TENANT(tenant_queued) } },
	[LEDGER_ACCEPTED] = { "accepted", LEDGER_END, { OF_RECEIVER(receiver_accepted) } },
	[LEDGER_MERGED] = { "merged", LEDGER_END, { OF_PIPELINE(merged) } },
	[LEDGER_PASSED] = { "passed", LEDGER_END, { OF_PIPELINE(passed) } },
	[LEDGER_OUT] = { "out", LEDGER_END, { OF_DESTINATION(out), OF_TENANT(tenant_out) } },
	[LEDGER_DEAD_LETTER] = { "dead_letter", LEDGER_END,
				 { OF_DESTINATION(dead_letter), OF_TENANT(tenant_dead_letter) } },
	[LEDGER_REFUSED] = DROPPED("refused", BY_RECEIVER, BY_PIPELINE),
	[LEDGER_FAILED] = DROPPED("failed", BY_RECEIVER),
	[LEDGER_DUPLICATE] = DROPPED("duplicate", BY_RECEIVER),
	[LEDGER_POLICY] = DROPPED("policy", BY_PIPELINE, OF_DESTINATION(dropped)),
	[LEDGER_QUOTA] = DROPPED("quota", BY_PIPELINE),
	[LEDGER_QUEUE_FULL] = DROPPED("queue_full", BY_DESTINATION),
	[LEDGER_PERMANENT] = DROPPED("permanent", BY_DESTINATION),
	[LEDGER_TOO_LARGE] = DROPPED("too_large", BY_DESTINATION),
	[LEDGER_TOO_OLD] = DROPPED("too_old", BY_DESTINATION),
	[LEDGER_TOO_NEW] = DROPPED("too_new", BY_DESTINATION),
	[LEDGER_NO_RETRY] = DROPPED("no_retry", BY_DESTINATION),
	[LEDGER_RETRIES_EXHAUSTED] = DROPPED("retries_exhausted", BY_DESTINATION),
	[LEDGER_EXPIRED] = DROPPED("expired", BY_DESTINATION),
	[LEDGER_SHUTDOWN] = DROPPED("shutdown", BY_DESTINATION),
	[LEDGER_KILLED] = DROPPED("killed", BY_DESTINATION),
	[LEDGER_PLAN] = DROPPED("plan", BY_DESTINATION),
	[LEDGER_CORRUPT] = DROPPED("corrupt", BY_DESTINATION),
	[LEDGER_SHED] = DROPPED("shed", BY_DESTINATION),
	[LEDGER_UNROUTED] = DROPPED("unrouted", OF_DESTINATION(dropped)),
};
/* clang-format on */

const char *ledger_reason(enum ledger_column column)
{
	return ledger_columns[column].name;
}

/* ---- rows */

struct ledger *ledger_new(struct metrics *metrics)
{
	struct ledger *l = memory_new(sizeof *l);
	l->metrics = metrics;
	l->imbalances = metrics_series(metrics, &imbalances, NULL);
	l->aborts = ABORTS;
	l->last = &l->rows;
	pthread_mutex_init(&l->lock, NULL);
	for (int i = 0; i < LEDGER_LOCKS; i++)
		pthread_mutex_init(&l->locks[i].mutex, NULL);
	metrics_on_scrape(metrics, ledger_publish, l);
	return l;
}

static void free_rows(struct ledger_row *row)
{
	while (row) {
		struct ledger_row *next = row->next;
		memory_free(row->name);
		memory_free(row->exporter);
		memory_free(row);
		row = next;
	}
}

void ledger_unref(struct ledger **slot)
{
	struct ledger *l = *slot;
	*slot = NULL;
	if (!l)
		return;
	metrics_off_scrape(l->metrics, l);
	free_rows(l->rows);
	free_rows(l->names);
	for (int i = 0; i < LEDGER_LOCKS; i++)
		pthread_mutex_destroy(&l->locks[i].mutex);
	pthread_mutex_destroy(&l->lock);
	memory_free(l);
}

void ledger_set_abort(struct ledger *l, bool aborts)
{
	l->aborts = aborts;
}

void ledger_limit_tenants(struct ledger *l, int64_t limit)
{
	pthread_mutex_lock(&l->lock);
	l->tenants_max = (uint32_t)(limit < LEDGER_TENANTS_MAX ? limit : LEDGER_TENANTS_MAX);
	pthread_mutex_unlock(&l->lock);
}

void ledger_show_column(struct ledger_row *row, enum ledger_column column)
{
	static const char *const labels_of[LEDGER_SCOPES] = { "receiver", "pipeline", "pipeline",
							      "tenant" };
	const struct ledger_column_info *c = &ledger_columns[column];
	struct metric_label labels[4] = { { labels_of[row->scope], row->name } };
	int n = 1;
	if (row->exporter)
		labels[n++] = (struct metric_label){ "exporter", row->exporter };
	if (c->dropped)
		labels[n++] = (struct metric_label){ "reason", c->name };
	row->series[column] = metrics_series(row->ledger->metrics, c->metrics[row->scope], labels);
}

static bool is_other(const char *tenant)
{
	return !strcmp(tenant, LEDGER_OTHER);
}

/* Under the lock. Tenants may be many: they get the series that they need. */
static struct ledger_row *add_row(struct ledger *l, struct ledger_row **bucket,
				  enum ledger_scope scope, const char *name, const char *exporter)
{
	struct ledger_row *row = memory_new(sizeof *row);
	row->ledger = l;
	row->scope = scope;
	row->name = memory_text(name);
	row->exporter = memory_text(exporter);
	for (int i = 0; i < LEDGER_COLUMNS && scope != LEDGER_TENANT; i++)
		if (ledger_columns[i].metrics[scope])
			ledger_show_column(row, (enum ledger_column)i);
	row->next_in_bucket = *bucket;
	*bucket = row;
	*l->last = row;
	l->last = &row->next;
	l->count++;
	l->tenants += scope == LEDGER_TENANT && !is_other(name);
	return row;
}

static bool is_row(const struct ledger_row *row, enum ledger_scope scope, const char *name,
		   const char *exporter)
{
	return row->scope == scope && !strcmp(row->name, name) &&
	       (row->exporter ? exporter && !strcmp(row->exporter, exporter) : !exporter);
}

static struct ledger_row **bucket_of(struct ledger *l, enum ledger_scope scope, const char *name,
				     const char *exporter)
{
	uint64_t hash = hash_bytes(name, strlen(name)) + (uint64_t)scope;
	if (exporter)
		hash = hash * 31 + hash_bytes(exporter, strlen(exporter));
	return &l->buckets[hash % LEDGER_BUCKETS];
}

/* Under the lock. NULL: there is none, and may_add is false. */
static struct ledger_row *find_row(struct ledger *l, enum ledger_scope scope, const char *name,
				   const char *exporter, bool may_add)
{
	struct ledger_row **bucket = bucket_of(l, scope, name, exporter);
	for (struct ledger_row *row = *bucket; row; row = row->next_in_bucket)
		if (is_row(row, scope, name, exporter))
			return row->counts_as ? row->counts_as : row;
	return may_add ? add_row(l, bucket, scope, name, exporter) : NULL;
}

static struct ledger_row *row_of(struct ledger *l, enum ledger_scope scope, const char *name,
				 const char *exporter)
{
	pthread_mutex_lock(&l->lock);
	struct ledger_row *row = find_row(l, scope, name, exporter, true);
	pthread_mutex_unlock(&l->lock);
	return row;
}

struct ledger_row *ledger_receiver(struct ledger *l, const char *receiver)
{
	return row_of(l, LEDGER_RECEIVER, receiver, NULL);
}

struct ledger_row *ledger_pipeline(struct ledger *l, const char *pipeline)
{
	return row_of(l, LEDGER_PIPELINE, pipeline, NULL);
}

struct ledger_row *ledger_destination(struct ledger *l, const char *pipeline, const char *exporter)
{
	return row_of(l, LEDGER_DESTINATION, pipeline, exporter);
}

/* Under the lock. A name for a row that exists. */
static void add_name(struct ledger *l, const char *tenant, struct ledger_row *row)
{
	struct ledger_row **bucket = bucket_of(l, LEDGER_TENANT, tenant, NULL);
	struct ledger_row *name = memory_new(sizeof *name);
	name->scope = LEDGER_TENANT;
	name->name = memory_text(tenant);
	name->counts_as = row;
	name->next_in_bucket = *bucket;
	*bucket = name;
	name->next = l->names;
	l->names = name;
}

static struct ledger_row *tenant_row(struct ledger *l, const char *tenant, bool was_on_disk)
{
	if (!tenant)
		return NULL;
	pthread_mutex_lock(&l->lock);
	bool room = l->tenants < l->tenants_max || is_other(tenant);
	struct ledger_row *row = find_row(l, LEDGER_TENANT, tenant, NULL, room);
	if (!row) {
		row = find_row(l, LEDGER_TENANT, LEDGER_OTHER, NULL, true);
		if (was_on_disk)
			add_name(l, tenant, row);
	}
	pthread_mutex_unlock(&l->lock);
	return row;
}

struct ledger_row *ledger_tenant(struct ledger *l, const char *tenant)
{
	return tenant_row(l, tenant, false);
}

struct ledger_row *ledger_restored_tenant(struct ledger *l, const char *tenant)
{
	return tenant_row(l, tenant, true);
}

const char *ledger_row_name(const struct ledger_row *row)
{
	return row->name;
}

/* ---- transactions */

static struct ledger_lock *lock_here(struct ledger *l)
{
	static _Atomic unsigned threads;
	static _Thread_local unsigned number; /* from 1 on */
	if (!number)
		number = 1 + atomic_fetch_add(&threads, 1) % LEDGER_LOCKS;
	return &l->locks[number - 1];
}

void ledger_enter(struct ledger *l)
{
	pthread_mutex_lock(&lock_here(l)->mutex);
}

void ledger_leave(struct ledger *l)
{
	pthread_mutex_unlock(&lock_here(l)->mutex);
}

void ledger_add(struct ledger_row *row, enum ledger_column column, int64_t samples)
{
	if (row && samples)
		atomic_fetch_add_explicit(&row->at[column], samples, memory_order_relaxed);
}

void ledger_bring(struct ledger_row *row, enum ledger_column source, enum ledger_column to,
		  uint64_t samples)
{
	ledger_add(row, source, (int64_t)samples);
	ledger_add(row, to, (int64_t)samples);
}

void ledger_move(struct ledger_row *row, enum ledger_column from, enum ledger_column to,
		 uint64_t samples)
{
	ledger_add(row, from, -(int64_t)samples);
	ledger_add(row, to, (int64_t)samples);
}

int64_t ledger_get(const struct ledger_row *row, enum ledger_column column)
{
	return atomic_load_explicit(&row->at[column], memory_order_relaxed);
}

int64_t ledger_sum(struct ledger *l, enum ledger_scope scope, enum ledger_column column)
{
	int64_t sum = 0;
	pthread_mutex_lock(&l->lock);
	for (const struct ledger_row *row = l->rows; row; row = row->next)
		sum += row->scope == scope ? ledger_get(row, column) : 0;
	pthread_mutex_unlock(&l->lock);
	return sum;
}

void ledger_each_destination(struct ledger *l, enum ledger_column column,
			     void (*each)(void *context, const char *exporter, int64_t samples),
			     void *context)
{
	pthread_mutex_lock(&l->lock);
	for (const struct ledger_row *row = l->rows; row; row = row->next)
		if (row->scope == LEDGER_DESTINATION)
			each(context, row->exporter, ledger_get(row, column));
	pthread_mutex_unlock(&l->lock);
}
