/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/intake/quotas.h"

#include "base/clock.h"
#include "base/memory.h"
#include "net/peer_key.h"
#include "profile/thin.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* a burst without a number; profilers send every five to sixty seconds */
enum { BURST_S = 10, BURST_MAX_S = 3600 };

static const struct metric refused_requests = {
	"otelcol_quota_refused_requests", METRIC_COUNTER, "{requests}",
	"Requests that were refused as a whole because a bucket of service::quotas is empty."
};
static const struct metric rejected_samples = {
	"otelcol_quota_rejected_samples", METRIC_COUNTER, "{samples}",
	"Decoded samples that were rejected because a bucket of service::quotas is empty."
};
static const struct metric sampled_samples = {
	"otelcol_quota_sampled_samples", METRIC_COUNTER, "{samples}",
	"Samples that `on_exceeded: sample` of service::quotas removed, once for each request; "
	"the values of the others were raised."
};
static const struct metric buckets = {
	"otelcol_quota_buckets", METRIC_GAUGE, "{buckets}",
	"Buckets of service::quotas, without those of overrides. Bounded."
};
static const struct metric shared = {
	"otelcol_quota_shared_bucket_uses", METRIC_COUNTER, "{uses}",
	"The number of times that a new name had to share a bucket because none was free."
};

const struct metric *const quotas_metrics[] = { &refused_requests, &rejected_samples,
						&sampled_samples,  &buckets,
						&shared,           NULL };

static const char *const kinds[QUOTA_KINDS] = { "tenant", "service", "peer" };

struct limits { /* of one name, or of all that have none of their own */
	struct hash128 name;
	struct quota_rates rates;
	enum quota_mode mode;
	bool any; /* is there a limit? */
	bool own; /* of an override */
	bool best_effort;
};

struct kind {
	struct limits all, *overrides; /* sorted by name */
	size_t count;
	struct quota_table *table; /* NULL: no limit */
	struct metric_series *refused[QUOTA_UNITS], *rejected[QUOTA_UNITS], *sampled[QUOTA_UNITS];
	struct metric_series *buckets, *shared;
};

struct quotas {
	struct kind kinds[QUOTA_KINDS];
	bool best_effort; /* some name is */
	struct metrics *metrics;
};

void quota_tables_fini(struct quota_tables *tables)
{
	for (int i = 0; i < QUOTA_KINDS; i++)
		quota_table_unref(&tables->of[i]);
}

/* ---- limits by name */

static struct limits limits_of(const struct quota_limits_config *c)
{
	struct limits l = { .mode = (enum quota_mode)c->on_exceeded.index,
			    .best_effort = c->priority.index == QUOTA_BEST_EFFORT };
	const struct {
		int64_t per_second, burst;
	} units[QUOTA_UNITS] = { { c->bytes_per_second, c->bytes_burst },
				 { c->samples_per_second, c->samples_burst } };
	for (int i = 0; i < QUOTA_UNITS; i++) {
		int64_t burst = units[i].burst ? units[i].burst : units[i].per_second * BURST_S;
		l.rates.of[i] =
			(struct quota_rate){ (uint64_t)units[i].per_second, (uint64_t)burst };
		l.any = l.any || units[i].per_second;
	}
	return l;
}

static int compare_names(const void *left, const void *right)
{
	const struct hash128 *a = left, *b = right;
	if (a->high != b->high)
		return a->high < b->high ? -1 : 1;
	return (a->low > b->low) - (a->low < b->low);
}

static const struct limits *find(const struct kind *k, struct hash128 name)
{
	const struct limits *own = k->count ? bsearch(&name, k->overrides, k->count,
						      sizeof *k->overrides, compare_names)
					    : NULL;
	return own ? own : &k->all;
}

static bool is_address(const char *text)
{
	unsigned char out[sizeof(struct in6_addr)];
	return inet_pton(AF_INET, text, out) == 1 || inet_pton(AF_INET6, text, out) == 1;
}

struct hash128 quotas_hash(struct view name)
{
	return hash_bytes_128(name.at, name.len);
}

/* As peers_hold names a peer. */
static struct hash128 name_of(enum quota_kind kind, const char *text)
{
	if (kind != QUOTA_PEER)
		return quotas_hash(view_of(text));
	return is_address(text) ? peer_key_of_address(text) : peer_key_of_identity(text);
}

static void add_overrides(struct kind *k, enum quota_kind kind, const struct config_items *items)
{
	const struct quota_limits_config *at = items->at;
	k->overrides = memory_array(items->count + 1, sizeof *k->overrides);
	k->count = items->count;
	for (size_t i = 0; i < items->count; i++) {
		k->overrides[i] = limits_of(&at[i]);
		k->overrides[i].name = name_of(kind, items->names[i]);
		k->overrides[i].own = true;
	}
	qsort(k->overrides, k->count, sizeof *k->overrides, compare_names);
}

static bool has_best_effort(const struct kind *k)
{
	bool any = k->all.best_effort;
	for (size_t i = 0; i < k->count; i++)
		any = any || k->overrides[i].best_effort;
	return any;
}

static bool has_limits(const struct kind *k)
{
	bool any = k->all.any;
	for (size_t i = 0; i < k->count; i++)
		any = any || k->overrides[i].any;
	return any;
}

static void make_series(struct kind *k, enum quota_kind kind, struct metrics *metrics)
{
	struct metric_label labels[] = { { "quota", kinds[kind] }, { 0 }, { 0 } };
	k->buckets = metrics_series(metrics, &buckets, labels);
	k->shared = metrics_series(metrics, &shared, labels);
	for (int i = 0; i < QUOTA_UNITS; i++) {
		labels[1] = (struct metric_label){ "unit", quota_units[i] };
		k->refused[i] = metrics_series(metrics, &refused_requests, labels);
		k->rejected[i] = metrics_series(metrics, &rejected_samples, labels);
		k->sampled[i] = metrics_series(metrics, &sampled_samples, labels);
	}
}

static void open_kind(struct quotas *q, enum quota_kind kind,
		      const struct quota_kind_config *config, struct quota_tables *tables)
{
	struct kind *k = &q->kinds[kind];
	k->all = limits_of(&config->limits);
	add_overrides(k, kind, &config->overrides);
	q->best_effort = q->best_effort || has_best_effort(k);
	if (!has_limits(k))
		return;
	if (!tables->of[kind])
		tables->of[kind] = quota_table_new(QUOTA_TABLE_MAX);
	k->table = tables->of[kind];
	for (size_t i = 0; i < k->count; i++)
		quota_table_pin(k->table, k->overrides[i].name);
	make_series(k, kind, q->metrics);
}

static void refresh(void *context)
{
	struct quotas *q = context;
	for (int i = 0; i < QUOTA_KINDS; i++) {
		struct kind *k = &q->kinds[i];
		if (!k->table)
			continue;
		metric_set(k->buckets, quota_table_count(k->table));
		metric_set(k->shared, (int64_t)quota_table_shared(k->table));
	}
}

struct quotas *quotas_new(const struct quotas_config *config, struct quota_tables *tables,
			  struct metrics *metrics)
{
	struct quotas *q = memory_new(sizeof *q);
	bool any = false;
	q->metrics = metrics;
	open_kind(q, QUOTA_TENANT, &config->tenant, tables);
	open_kind(q, QUOTA_SERVICE, &config->service, tables);
	open_kind(q, QUOTA_PEER, &config->peer, tables);
	for (int i = 0; i < QUOTA_KINDS; i++)
		any = any || q->kinds[i].table;
	metrics_on_scrape(metrics, refresh, q);
	if (!any && !q->best_effort)
		quotas_unref(&q);
	return q;
}

void quotas_unref(struct quotas **slot)
{
	struct quotas *q = *slot;
	*slot = NULL;
	if (!q)
		return;
	metrics_off_scrape(q->metrics, q);
	for (int i = 0; i < QUOTA_KINDS; i++)
		memory_free(q->kinds[i].overrides);
	memory_free(q);
}

/* ---- decisions */

void quotas_name(struct quota_sender *sender, enum quota_kind kind, struct hash128 name)
{
	sender->names[kind] = name;
	sender->known[kind] = true;
}

bool quotas_is_best_effort(const struct quotas *q, const struct quota_sender *s)
{
	for (int kind = 0; q && q->best_effort && kind < QUOTA_KINDS; kind++)
		if (s->known[kind] && find(&q->kinds[kind], s->names[kind])->best_effort)
			return true;
	return false;
}

/* The limits of the sender's name of this kind; NULL: there are none. */
static const struct limits *limits_for(const struct quotas *q, const struct quota_sender *s,
				       enum quota_kind kind)
{
	const struct kind *k = &q->kinds[kind];
	if (!k->table || !s->known[kind])
		return NULL;
	const struct limits *l = find(k, s->names[kind]);
	return l->any ? l : NULL;
}

static struct quota_left look(const struct quotas *q, const struct quota_sender *s,
			      enum quota_kind kind, const struct limits *l)
{
	static const int64_t nothing[QUOTA_UNITS];
	return quota_table_take(q->kinds[kind].table, s->names[kind], &l->rates, nothing,
				clock_now());
}

/* The level at which nothing is accepted any more. */
static int64_t bottom(const struct limits *l, int unit)
{
	return l->mode == QUOTA_SAMPLE ? -(int64_t)l->rates.of[unit].burst : 0;
}

static bool over(const struct limits *l, enum quota_kind kind, int unit, int64_t left,
		 struct error *err)
{
	const struct quota_rate *rate = &l->rates.of[unit];
	error_set(err, ERROR_BUSY,
		  "quota used up: service::quotas::%s::%s%s_per_second is %lu, with a burst of "
		  "%lu; %ld are used",
		  kinds[kind], l->own ? "overrides::" : "", quota_units[unit], rate->per_second,
		  rate->burst, (int64_t)rate->burst - left);
	err->over_quota = true;
	err->retry_after_ms = quota_table_wait_ms(rate, left - bottom(l, unit));
	return false;
}

static void take_bytes(struct quotas *q, struct quota_sender *s, int64_t bytes)
{
	const int64_t amounts[QUOTA_UNITS] = { [QUOTA_BYTES] = bytes - s->bytes };
	if (!amounts[QUOTA_BYTES])
		return;
	for (int kind = 0; kind < QUOTA_KINDS; kind++) {
		const struct limits *l = limits_for(q, s, kind);
		if (l && l->mode == QUOTA_REJECT && l->rates.of[QUOTA_BYTES].per_second)
			quota_table_take(q->kinds[kind].table, s->names[kind], &l->rates, amounts,
					 clock_now());
	}
	s->bytes = bytes;
}

/* Its own bytes do not count against a request: one of any size may use a bucket alone. */
static bool kind_allows(struct quotas *q, struct quota_sender *s, enum quota_kind kind,
			struct error *err)
{
	const struct limits *l = limits_for(q, s, kind);
	if (!l)
		return true;
	struct quota_left left = look(q, s, kind, l);
	if (l->mode == QUOTA_REJECT && left.of[QUOTA_BYTES] != INT64_MAX)
		left.of[QUOTA_BYTES] += s->bytes;
	for (int unit = 0; unit < QUOTA_UNITS; unit++)
		if (left.of[unit] <= bottom(l, unit)) {
			s->kind = kind;
			s->unit = unit;
			return over(l, kind, unit, left.of[unit], err);
		}
	return true;
}

bool quotas_allow(struct quotas *q, struct quota_sender *s, int64_t bytes, struct error *err)
{
	if (!q)
		return true;
	for (int kind = 0; kind < QUOTA_KINDS; kind++)
		if (!kind_allows(q, s, kind, err))
			return false;
	take_bytes(q, s, bytes);
	return true;
}

void quotas_set_bytes(struct quotas *q, struct quota_sender *s, int64_t bytes)
{
	if (q)
		take_bytes(q, s, bytes);
}

void quotas_return(struct quotas *q, struct quota_sender *s)
{
	quotas_set_bytes(q, s, 0);
}

void quotas_count_refusal(struct quotas *q, const struct quota_sender *s)
{
	if (q)
		metric_add(q->kinds[s->kind].refused[s->unit], 1);
}

/* Was the unit already settled for the whole request? */
static bool is_settled(const struct limits *l, const struct quota_sender *from_headers,
		       enum quota_kind kind, int unit)
{
	return l->mode == QUOTA_REJECT && from_headers->known[kind] && unit == QUOTA_BYTES;
}

static uint32_t share_of(int64_t left, int64_t need)
{
	if (left >= need)
		return THIN_ALL;
	/* at least a trace: one sample of each Profile is kept in any case */
	double share = left > 0 ? (double)left / (double)need * THIN_ALL : 0;
	return share >= 1 ? (uint32_t)share : 1;
}

/* False: nothing may be kept. */
static bool decide_kind(struct quotas *q, const struct quota_sender *s,
			const struct quota_sender *from_headers, const struct quota_need *need,
			enum quota_kind kind, struct quota_verdict *v, struct error *err)
{
	const struct limits *l = limits_for(q, s, kind);
	if (!l || (l->mode == QUOTA_REJECT && from_headers->known[kind]))
		return true;
	struct quota_left left = look(q, s, kind, l);
	for (int unit = 0; unit < QUOTA_UNITS; unit++) {
		uint32_t share = THIN_ALL;
		if (left.of[unit] <= bottom(l, unit)) {
			*v = (struct quota_verdict){ 0, kind, unit };
			return over(l, kind, unit, left.of[unit], err);
		}
		if (l->mode == QUOTA_SAMPLE)
			share = share_of(left.of[unit], need->of[unit]);
		if (share < v->share)
			*v = (struct quota_verdict){ share, kind, unit };
	}
	return true;
}

struct quota_verdict quotas_decide(struct quotas *q, const struct quota_sender *s,
				   const struct quota_sender *from_headers,
				   const struct quota_need *need, struct error *err)
{
	struct quota_verdict v = { .share = THIN_ALL };
	bool kept = true;
	for (int kind = 0; q && kept && kind < QUOTA_KINDS; kind++)
		kept = decide_kind(q, s, from_headers, need, kind, &v, err);
	return v;
}

void quotas_take(struct quotas *q, const struct quota_sender *s,
		 const struct quota_sender *from_headers, const struct quota_need *kept)
{
	for (int kind = 0; q && kind < QUOTA_KINDS; kind++) {
		const struct limits *l = limits_for(q, s, kind);
		if (!l)
			continue;
		int64_t amounts[QUOTA_UNITS];
		for (int unit = 0; unit < QUOTA_UNITS; unit++)
			amounts[unit] =
				is_settled(l, from_headers, kind, unit) ? 0 : kept->of[unit];
		quota_table_take(q->kinds[kind].table, s->names[kind], &l->rates, amounts,
				 clock_now());
	}
}

void quotas_count(struct quotas *q, const struct quota_verdict *v, uint64_t samples)
{
	struct kind *k = &q->kinds[v->kind];
	metric_add(v->share ? k->sampled[v->unit] : k->rejected[v->unit], (int64_t)samples);
}

/* ---- configuration */

static void check_burst(int64_t per_second, int64_t burst, const char *unit, struct faults *faults)
{
	char rate[32];
	snprintf(rate, sizeof rate, "%s_per_second", unit);
	if (burst && !per_second)
		faults_relate(faults, rate, "%s_burst requires %s", unit, rate);
	else if (burst > per_second * BURST_MAX_S)
		faults_relate(faults, rate, "%s_burst must not exceed the amount of one hour at %s",
			      unit, rate);
}

static void check_limits(const void *config, struct faults *faults)
{
	const struct quota_limits_config *c = config;
	check_burst(c->bytes_per_second, c->bytes_burst, "bytes", faults);
	check_burst(c->samples_per_second, c->samples_burst, "samples", faults);
}

static void check_kind(const void *config, struct faults *faults)
{
	check_limits(&((const struct quota_kind_config *)config)->limits, faults);
}

#define RATE_MAX INT64_C(1000000000000)
#define QUOTA_ROW(type, member, ...) \
	CONFIG_ROW(type, member, .def = "0", .limited = true, .min = 0, .max = RATE_MAX, \
		   __VA_ARGS__)
#define QUOTA_ROWS(type, prefix) \
	QUOTA_ROW(type, prefix bytes_per_second, .key = "bytes_per_second", .unit = "By", \
		  .help = "Bytes of decompressed documents per second. 0: no limit."), \
		QUOTA_ROW(type, prefix bytes_burst, .key = "bytes_burst", .unit = "By", \
			  .help = "Bytes that may come at once after a pause. 0: those of ten " \
				  "seconds."), \
		QUOTA_ROW(type, prefix samples_per_second, .key = "samples_per_second", \
			  .help = "Samples per second. 0: no limit."), \
		QUOTA_ROW(type, prefix samples_burst, .key = "samples_burst", \
			  .help = "Samples that may come at once after a pause. 0: those of " \
				  "ten seconds."), \
		CONFIG_ROW(type, prefix on_exceeded, .key = "on_exceeded", .def = "reject", \
			   .choices = modes, \
			   .help = "`reject`: refused with 429 or RESOURCE_EXHAUSTED, and the " \
				   "time after which to retry; of a request with several " \
				   "services, only what is over its quota is rejected. " \
				   "`sample`: samples are removed and the values of the others " \
				   "raised, so that the totals stay as they were; beyond twice " \
				   "the burst, rejected."), \
		CONFIG_ROW(type, prefix priority, .key = "priority", .def = "required", \
			   .choices = priorities, \
			   .help = "`best_effort`: refused first when memory is short, with a " \
				   "retry hint, before anything else is refused.")

static const char *const modes[] = { "reject", "sample", NULL };
static const char *const priorities[] = { "required", "best_effort", NULL };

static const struct config_row limits_rows[] = { QUOTA_ROWS(struct quota_limits_config, ), { 0 } };
static const struct config_table limits_table = { sizeof(struct quota_limits_config), limits_rows,
						  check_limits };

static const struct config_row kind_rows[] = {
	QUOTA_ROWS(struct quota_kind_config, limits.),
	CONFIG_ITEMS(
		struct quota_kind_config, overrides, CONFIG_MAP, limits_table, .key = "overrides",
		.help = "Limits of single names, instead of those above. Of peers: an address, "
			"or the subject of a client certificate."),
	{ 0 }
};
static const struct config_table kind_table = { sizeof(struct quota_kind_config), kind_rows,
						check_kind };

static const struct config_row rows[] = {
	CONFIG_SECTION(struct quotas_config, tenant, kind_table, .key = "tenant",
		       .help = "For each tenant (service::tenant)."),
	CONFIG_SECTION(struct quotas_config, service, kind_table, .key = "service",
		       .help = "For each service, by the resource attribute service.name as it "
			       "was sent. Resources without it are one service with an empty "
			       "name."),
	CONFIG_SECTION(struct quotas_config, peer, kind_table, .key = "peer",
		       .help = "For each peer: the subject of its client certificate, else its "
			       "address, of IPv6 the first 64 bits."),
	{ 0 }
};

const struct config_table quotas_table = { sizeof(struct quotas_config), rows };
