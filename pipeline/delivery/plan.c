/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/delivery/plan.h"

#include "base/clock.h"
#include "profile/collect/split.h"

#include <string.h>

#define LEARNED_MIN 16384 /* bytes: smaller ones would cost many times what they carry */
#define STATED_FOR_NS (UINT64_C(600) * 1000000000)
#define GUESSED_FOR_NS (UINT64_C(60) * 1000000000)
#define FUTILE_MAX 4
/* Times the packet: what its open tables take, the part that is being made, and the tables and
 * writer of its request. */
#define PLAN_MEMORY 20
/* times the packet: what stays of that until the destination has taken the parts */
#define PARTS_MEMORY 3
#define ENCODE_SMALL_MAX (256 << 10) /* a few milliseconds of gzip */

const struct metric plan_learned_bytes = {
	"otelcol_exporter_learned_max_bytes", METRIC_GAUGE, "By",
	"The maximum request size learned from the destination's rejections; 0: none."
};
const struct metric plan_learned_samples = {
	"otelcol_exporter_learned_max_samples", METRIC_GAUGE, "{samples}",
	"The maximum number of samples of a request learned from the destination's rejections; 0: "
	"none."
};

const struct metric plan_refused = {
	"otelcol_exporter_oversized_requests", METRIC_COUNTER, "{requests}",
	"Requests that the destination rejected as too large. They are split and sent again if "
	"possible."
};

#define COUNT_ROW(name, text) \
	CONFIG_ROW(struct limits_config, name, .key = #name, .def = "0", .limited = true, \
		   .min = 0, .max = INT64_MAX, .help = text)

static const struct config_row limits_rows[] = {
	COUNT_ROW(max_bytes, "Maximum uncompressed size of a request in bytes, as the "
			     "destination counts them."),
	COUNT_ROW(max_samples, "Maximum number of samples in a request."),
	COUNT_ROW(max_profiles,
		  "Maximum number of Profiles in a request. Each part of a split Profile "
		  "counts in its request."),
	COUNT_ROW(max_resources, "Maximum number of resources in a request."),
	COUNT_ROW(max_series, "Maximum number of series in a request: distinct scopes, sample "
			      "types and Profile attributes."),
	CONFIG_ROW(struct limits_config, max_age, .key = "max_age", .def = "0s",
		   .help = "Profiles older than this when they are sent are dropped (reason "
			   "`too_old`)."),
	CONFIG_ROW(struct limits_config, max_ahead, .key = "max_ahead", .def = "0s",
		   .help = "Profiles further ahead of the gateway's clock than this are dropped "
			   "(reason `too_new`)."),
	{ 0 }
};

static void check_limits(const void *config, struct faults *faults)
{
	const struct limits_config *c = config;
	if (c->max_age.ns < 0)
		faults_add(faults, "`max_age` must be non-negative");
	if (c->max_ahead.ns < 0)
		faults_add(faults, "`max_ahead` must be non-negative");
}

const struct config_table limits_table = { .size = sizeof(struct limits_config),
					   .rows = limits_rows,
					   .check = check_limits };

void plan_init(struct plan *plan, const struct plan_options *options)
{
	const struct metric_label labels[] = { { "exporter", options->id }, { 0 } };
	*plan = (struct plan){
		.options = *options,
		.bytes_gauge = metrics_series(options->metrics, &plan_learned_bytes, labels),
		.refused = metrics_series(options->metrics, &plan_refused, labels),
		.samples_gauge = metrics_series(options->metrics, &plan_learned_samples, labels),
	};
	pthread_mutex_init(&plan->lock, NULL);
}

void plan_fini(struct plan *plan)
{
	pthread_mutex_destroy(&plan->lock);
}

static void take(uint64_t *limit, int64_t configured)
{
	if (configured)
		*limit = (uint64_t)configured;
}

static void bound(uint64_t *limit, uint64_t max)
{
	if (max && (!*limit || max < *limit))
		*limit = max;
}

static uint64_t minus(uint64_t time, uint64_t by)
{
	return time > by ? time - by : 0;
}

static struct limits configured(const struct plan *plan)
{
	const struct limits_config *c = plan->options.limits;
	struct limits limits = { 0 };
	if (plan->options.ops->preset)
		plan->options.ops->preset(plan->options.exporter, &limits);
	take(&limits.bytes, c->max_bytes);
	take(&limits.samples, c->max_samples);
	take(&limits.profiles, c->max_profiles);
	take(&limits.resources, c->max_resources);
	take(&limits.series, c->max_series);
	bound(&limits.bytes, plan->options.batch_bytes);
	bound(&limits.samples, plan->options.batch_samples);
	if (c->max_age.ns)
		limits.oldest = minus(clock_wall(), (uint64_t)c->max_age.ns);
	if (c->max_ahead.ns)
		limits.newest = clock_wall() + (uint64_t)c->max_ahead.ns;
	return limits;
}

static bool is_less(uint64_t learned, uint64_t limit)
{
	return learned && (!limit || learned < limit);
}

/* Under the lock. What was learned is for some time: a guess may be too small, and destinations
 * change. */
static void keep(struct plan *plan)
{
	bool any = plan->bytes || plan->samples;
	plan->until = any ? clock_now() + (plan->guessed ? GUESSED_FOR_NS : STATED_FOR_NS) : 0;
	metric_set(plan->bytes_gauge, (int64_t)plan->bytes);
	metric_set(plan->samples_gauge, (int64_t)plan->samples);
}

/* Under the lock. */
static void forget(struct plan *plan)
{
	plan->bytes = plan->samples = 0;
	plan->guessed = false;
	keep(plan);
}

static struct limits limits_now(struct plan *plan)
{
	struct limits limits = configured(plan);
	pthread_mutex_lock(&plan->lock);
	if (plan->until && clock_now() >= plan->until)
		forget(plan);
	if (is_less(plan->bytes, limits.bytes)) {
		limits.bytes = plan->bytes;
		limits.guessed = plan->guessed;
	}
	if (is_less(plan->samples, limits.samples))
		limits.samples = plan->samples;
	pthread_mutex_unlock(&plan->lock);
	return limits;
}

bool plan_is_own(const struct plan *plan)
{
	const struct exporter_ops *ops = plan->options.ops;
	return ops->plan && (!ops->plans || ops->plans(plan->options.exporter));
}

bool plan_is_plain(struct plan *plan, const struct packet *packet)
{
	if (plan_is_own(plan))
		return false;
	struct limits limits = limits_now(plan);
	return split_is_whole(packet, &limits);
}

bool plan_is_prompt(const struct plan *plan, const struct packet *packet)
{
	return plan->options.ops->prompt &&
	       plan->options.ops->prompt(plan->options.exporter, packet);
}

void plan_encode_small(struct plan *plan, struct packet *packet)
{
	if (plan->options.ops->encode && packet->otlp.len <= ENCODE_SMALL_MAX &&
	    plan_is_plain(plan, packet))
		plan->options.ops->encode(plan->options.exporter, packet);
}

int64_t plan_expected(struct plan *plan, const struct packet *packet)
{
	return plan_is_plain(plan, packet) ? 0 : (int64_t)packet->otlp.len * PARTS_MEMORY;
}

/* Appends the parts of `whole`. */
static bool plan_part(struct plan *plan, const struct part *whole, const struct limits *limits,
		      struct parts *parts, struct error *err)
{
	const struct plan_options *o = &plan->options;
	struct packet *packet = whole->packet;
	bool own = plan_is_own(plan);
	if (!own && split_is_whole(packet, limits))
		return split_packet(packet, limits, NULL, parts, err);
	int64_t needed = (int64_t)packet->otlp.len * PLAN_MEMORY;
	uint32_t first = parts->count;
	packet_claim(packet, needed);
	bool ok = own ? o->ops->plan(o->exporter, whole, limits, parts, err)
		      : split_packet(packet, limits, NULL, parts, err);
	packet_claim(packet, -needed);
	for (uint32_t i = first; i < parts->count; i++) {
		parts->at[i].planned = own;
		if (parts->at[i].packet != packet)
			packet_derive_id(parts->at[i].packet, packet, i - first);
	}
	return ok;
}

bool plan_packet(struct plan *plan, struct packet *packet, uint32_t group, const uint32_t *avoided,
		 struct parts *parts, struct error *err)
{
	const struct part whole = { .packet = packet,
				    .samples = packet->samples,
				    .planned = packet->planned,
				    .group = group };
	struct limits limits = limits_now(plan);
	limits.avoided = avoided;
	return plan_part(plan, &whole, &limits, parts, err);
}

/* Empty parts with the same account. */
static struct parts parts_like(const struct parts *parts)
{
	return (struct parts){ .charge = parts->charge,
			       .charge_context = parts->charge_context,
			       .keeps = parts->keeps };
}

bool plan_rest(struct plan *plan, const uint32_t *avoided, struct parts *parts, uint32_t from,
	       struct error *err)
{
	struct parts fresh = parts_like(parts);
	struct limits limits = limits_now(plan);
	bool ok = true;
	limits.avoided = avoided;
	for (uint32_t i = from; i < parts->count && ok; i++) {
		struct part whole = parts->at[i];
		whole.group = 0;
		ok = plan_part(plan, &whole, &limits, &fresh, err);
	}
	if (!ok) {
		parts_fini(&fresh);
		return false;
	}
	parts_fini(parts);
	*parts = fresh;
	return true;
}

static uint64_t bytes_of(const struct part *part)
{
	return part->bytes ? part->bytes : part->packet->otlp.len;
}

/* The limit that the destination named, by the arithmetic of the part. */
static uint64_t stated_bytes(uint64_t was, const struct send_result *result)
{
	if (!result->seen_bytes || result->seen_bytes == was)
		return result->stated_bytes;
	return (uint64_t)((double)result->stated_bytes *
			  ((double)was / (double)result->seen_bytes));
}

static uint64_t half_of(const struct part *part)
{
	uint64_t half = bytes_of(part) / 2;
	return half > LEARNED_MIN ? half : LEARNED_MIN;
}

/* Under the lock. What a destination names counts only if it explains the refusal. What it named
 * for another request, which may be compressed better, does not become larger. */
static void lower(struct plan *plan, const struct part *refused, const struct send_result *result)
{
	uint64_t was = bytes_of(refused), stated = stated_bytes(was, result);
	uint64_t half = half_of(refused);
	if (result->stated_samples && result->stated_samples < refused->samples) {
		plan->samples = result->stated_samples;
	} else if (stated >= LEARNED_MIN && stated < was) {
		if (plan->guessed || is_less(stated, plan->bytes))
			plan->bytes = stated;
		plan->guessed = false;
	} else if (is_less(half, plan->bytes)) {
		plan->bytes = half;
		plan->guessed = true;
	}
	keep(plan);
}

/* Not even this was taken. When it happens again and again, size is not what is wrong. */
static void give_up(struct plan *plan)
{
	if (plan->futile >= FUTILE_MAX || ++plan->futile < FUTILE_MAX)
		return;
	pthread_mutex_lock(&plan->lock);
	forget(plan);
	pthread_mutex_unlock(&plan->lock);
}

bool plan_learn(struct plan *plan, const struct part *refused, const struct send_result *result)
{
	metric_add(plan->refused, 1);
	if (refused->samples <= 1 || bytes_of(refused) <= LEARNED_MIN ||
	    plan->futile >= FUTILE_MAX) {
		give_up(plan);
		return false;
	}
	pthread_mutex_lock(&plan->lock);
	lower(plan, refused, result);
	uint64_t bytes = plan->bytes, samples = plan->samples;
	bool news = bytes + samples != plan->logged;
	plan->logged = bytes + samples;
	pthread_mutex_unlock(&plan->lock);
	if (news)
		log_info(plan->options.log,
			 "The destination rejects requests of this size. Splitting requests.",
			 log_number("max_bytes", bytes), log_number("max_samples", samples));
	return true;
}

void plan_taken(struct plan *plan)
{
	if (plan->futile)
		plan->futile = 0;
}

static uint64_t accounted(const struct parts *parts, uint32_t from)
{
	uint64_t samples = 0;
	for (uint32_t i = from; i < parts->count; i++)
		samples += parts->at[i].samples;
	for (unsigned r = 0; r < PART_DROPPED; r++)
		samples += parts->dropped[r];
	return samples;
}

/* Appends what the part becomes by the limits; false, and nothing, if that is nothing smaller. */
static bool split_again(struct plan *plan, const struct part *part, const struct limits *limits,
			struct parts *into)
{
	const struct parts before = *into;
	struct error err;
	error_clear(&err);
	uint64_t known = accounted(into, before.count);
	bool ok = plan_part(plan, part, limits, into, &err);
	struct part *first = &into->at[before.count];
	if (!ok || (into->count == before.count + 1 && bytes_of(first) >= bytes_of(part))) {
		while (into->count > before.count)
			packet_unref(&into->at[--into->count].packet);
		parts_forget_left(into, before.left.count);
		memcpy(into->dropped, before.dropped, sizeof into->dropped);
		return false;
	}
	/* Identical samples may have been merged in the part: it accounts for more than it has. */
	uint64_t found = accounted(into, before.count) - known;
	if (into->count > before.count && found < part->samples)
		first->samples += part->samples - found;
	return true;
}

static bool is_over(const struct part *part, const struct limits *limits)
{
	return is_less(limits->bytes, bytes_of(part)) || is_less(limits->samples, part->samples);
}

/* The limits by which a part is split that was refused: others may have learned something else
 * since, by which it would not be too large. */
static struct limits limits_below(const struct part *part, const struct limits *limits)
{
	struct limits below = *limits;
	if (!is_over(part, limits)) {
		below.bytes = half_of(part);
		below.guessed = true;
	}
	return below;
}

static void keep_part(struct parts *parts, const struct part *part)
{
	parts_add(parts, part->packet, part->samples, part->bytes);
	parts->at[parts->count - 1].planned = part->planned;
	parts->at[parts->count - 1].group = part->group;
}

static void leave_part(struct parts *parts, const struct part *part)
{
	parts->dropped[PART_TOO_LARGE] += part->samples;
	if (parts->keeps)
		parts_leave(parts, packet_ref(part->packet), part->samples, PART_TOO_LARGE);
}

void plan_again(struct plan *plan, struct parts *parts, uint32_t refused)
{
	const struct limits limits = limits_now(plan);
	const struct limits below = limits_below(&parts->at[refused], &limits);
	struct parts fresh = parts_like(parts);
	for (uint32_t i = 0; i < parts->count; i++) {
		struct part *part = &parts->at[i];
		bool due = i == refused || (i > refused && is_over(part, &limits));
		if (due && split_again(plan, part, i == refused ? &below : &limits, &fresh))
			packet_unref(&part->packet);
		else if (i != refused)
			keep_part(&fresh, part);
		else
			leave_part(&fresh, part);
	}
	packet_unref(&parts->at[refused].packet);
	parts->count = 0;
	parts_fini(parts);
	*parts = fresh;
}
