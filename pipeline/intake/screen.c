/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/intake/screen.h"

#include "base/memory.h"
#include "profile/thin.h"

#include <assert.h>
#include <stdio.h>

enum { KEEP = 4096 }; /* resources */

/* One document while its resources are decided. */
struct pass {
	const struct screen *screen;
	struct screening *screening;
	struct kill_rules *rules; /* NULL: none about data */
	const struct quota_sender *sender;
	struct profiles *p;
	uint64_t samples, bytes; /* of the document */
	struct error first;      /* why the first resource was rejected */
};

bool screen_request(const struct screen *screen, const struct screen_tenant *tenant,
		    struct error *err)
{
	struct kill_rules *rules = kill_switch_hold(screen->kills);
	if (!rules)
		return true;
	struct view name = tenant->name ? view_of(tenant->name) : (struct view){ 0 };
	const struct kill_rule *rule = kill_rules_request(rules, name, tenant->final);
	if (rule) {
		kill_switch_refuse(screen->kills, rule, err);
		kill_switch_count_request(screen->kills, rule);
	}
	kill_rules_unref(&rules);
	return !rule;
}

bool screen_sheds(const struct screen *screen, const struct quota_sender *sender, struct error *err)
{
	if (!quotas_is_best_effort(screen->quotas, sender) || !budget_sheds(screen->budget))
		return false;
	budget_note_shed(screen->budget);
	return !error_set(err, ERROR_BUSY,
			  "memory is short, and the data is best-effort "
			  "(service::quotas, priority)");
}

/* ---- resources */

static bool is_live(const struct profile *profile)
{
	return !profile->fault && !profile->dropped;
}

/* Calls `each` for the Profiles of a resource that are still to be kept; returns the sum. */
static uint64_t sum_profiles(struct profiles *p, const struct resource *r,
			     uint64_t (*each)(struct profiles *p, struct profile *profile,
					      void *context),
			     void *context)
{
	uint64_t sum = 0;
	for (uint32_t s = 0; s < r->scopes.count; s++) {
		const struct list profiles = p->scopes.at[r->scopes.first + s].profiles;
		for (uint32_t i = 0; i < profiles.count; i++) {
			struct profile *profile = &p->profiles.at[profiles.first + i];
			if (is_live(profile))
				sum += each(p, profile, context);
		}
	}
	return sum;
}

static uint64_t count_samples(struct profiles *p, struct profile *profile, void *context)
{
	(void)p;
	(void)context;
	return profile->samples.count;
}

static uint64_t reject_profile(struct profiles *p, struct profile *profile, void *context)
{
	profiles_reject(p, profile, context);
	return profile->samples.count;
}

static struct view service_of(const struct profiles *p, const struct resource *r)
{
	for (uint32_t i = 0; i < r->attributes.count; i++) {
		uint32_t index = p->indices.at[r->attributes.first + i];
		const struct attribute *a = &p->attributes.at[index];
		if (a->type == VALUE_STRING && string_is(p, a->key, "service.name"))
			return string_view(p, a->string);
	}
	return (struct view){ 0 };
}

static struct view tenant_of(const struct profiles *p, const struct resource *r)
{
	if (r->tenant)
		return string_view(p, r->tenant);
	return p->request->tenant ? view_of(p->request->tenant) : (struct view){ 0 };
}

#define CANNOT_THIN "of a type whose samples cannot be thinned"

struct thinning {
	uint32_t share;
	uint64_t *random;
	uint64_t rejected;
};

/* Returns the number of samples that were sampled away. */
static uint64_t thin(struct profiles *p, struct profile *profile, void *context)
{
	struct thinning *t = context;
	if (thin_applies(p, profile))
		return thin_profile(p, profile, t->share, t->random);
	profiles_reject(p, profile, "over its quota, and " CANNOT_THIN);
	t->rejected += profile->samples.count;
	return 0;
}

/* *rejected becomes the number of samples that could not be thinned. */
static uint64_t thin_resource(struct profiles *p, const struct resource *r, uint32_t share,
			      struct screening *screening, uint64_t *rejected)
{
	struct thinning t = { share, &screening->random, 0 };
	uint64_t removed = share < THIN_ALL ? sum_profiles(p, r, thin, &t) : 0;
	screening->removed += removed;
	*rejected = t.rejected;
	return removed;
}

static void note_rejection(struct pass *pass, enum refusal reason, const struct error *err)
{
	if (pass->screening->refusal)
		return;
	pass->screening->refusal = reason;
	pass->first = *err;
}

static void note_over(struct pass *pass, const struct quota_verdict *v, const struct error *err)
{
	note_rejection(pass, REFUSAL_QUOTA, err);
	pass->screening->over = *v;
}

static bool is_killed(struct pass *pass, const struct resource *r, struct error *err)
{
	const struct kill_rule *rule = pass->rules
					       ? kill_rules_data(pass->rules, tenant_of(pass->p, r),
								 service_of(pass->p, r))
					       : NULL;
	if (!rule)
		return false;
	kill_switch_refuse(pass->screen->kills, rule, err);
	kill_switch_count(pass->screen->kills, rule, sum_profiles(pass->p, r, count_samples, NULL));
	note_rejection(pass, REFUSAL_KILLED, err);
	return true;
}

/* The sender with the names that only the resource gives. */
static struct quota_sender sender_of(const struct pass *pass, const struct resource *r)
{
	struct quota_sender sender = *pass->sender;
	quotas_name(&sender, QUOTA_SERVICE, quotas_hash(service_of(pass->p, r)));
	if (r->tenant)
		quotas_name(&sender, QUOTA_TENANT, quotas_hash(string_view(pass->p, r->tenant)));
	return sender;
}

static bool is_shed(struct pass *pass, const struct resource *r, struct error *err)
{
	struct quota_sender sender = sender_of(pass, r);
	if (!screen_sheds(pass->screen, &sender, err))
		return false;
	note_rejection(pass, REFUSAL_SHED, err);
	return true;
}

/* The share of the document's bytes that belongs to these samples. */
static int64_t bytes_of(const struct pass *pass, uint64_t samples)
{
	if (!pass->samples)
		return 0;
	return (int64_t)((unsigned __int128)pass->bytes * samples / pass->samples);
}

static void note_unthinned(struct pass *pass, struct quota_verdict v, uint64_t samples)
{
	struct error err;
	error_set(&err, ERROR_BUSY, "over a quota of service::quotas, and " CANNOT_THIN);
	err.over_quota = true;
	note_over(pass, &v, &err);
	v.share = 0;
	quotas_count(pass->screen->quotas, &v, samples);
}

/* The share of the resource that is kept; it is thinned already. */
static uint32_t limit(struct pass *pass, const struct resource *r, struct error *err)
{
	struct quotas *q = pass->screen->quotas;
	struct quota_sender sender = sender_of(pass, r);
	uint64_t samples = sum_profiles(pass->p, r, count_samples, NULL), rejected = 0;
	const struct quota_need need = { { bytes_of(pass, samples), (int64_t)samples } };
	struct quota_verdict v = quotas_decide(q, &sender, pass->sender, &need, err);
	if (!v.share) {
		note_over(pass, &v, err);
		quotas_count(q, &v, samples);
		return 0;
	}
	uint64_t removed = thin_resource(pass->p, r, v.share, pass->screening, &rejected);
	if (removed)
		quotas_count(q, &v, removed);
	if (rejected)
		note_unthinned(pass, v, rejected);
	uint64_t left = samples - removed - rejected;
	quotas_take(q, &sender, pass->sender,
		    &(struct quota_need){ { bytes_of(pass, left), (int64_t)left } });
	return v.share;
}

/* ---- documents */

static void decide(struct pass *pass, uint32_t index)
{
	const struct resource *r = &pass->p->resources.at[index];
	uint32_t *share = &pass->screening->shares.at[index];
	struct error err;
	char text[sizeof pass->p->rejection];
	error_clear(&err);
	*share = THIN_ALL;
	if (is_killed(pass, r, &err) || is_shed(pass, r, &err))
		*share = 0;
	else if (pass->screen->quotas)
		*share = limit(pass, r, &err);
	if (*share)
		return;
	snprintf(text, sizeof text, "resource_profiles[%u]: %s", index, err.text);
	sum_profiles(pass->p, r, reject_profile, text);
}

static bool anything_left(const struct profiles *p)
{
	for (uint32_t i = 0; i < p->profiles.count; i++)
		if (is_live(&p->profiles.at[i]))
			return true;
	return false;
}

bool screen_document(const struct screen *screen, struct screening *screening,
		     const struct quota_sender *sender, struct profiles *p, size_t bytes,
		     struct error *err)
{
	struct pass pass = { screen, screening, kill_switch_hold(screen->kills), sender, p, 0,
			     bytes,  { 0 } };
	screening->idle = !pass.rules && !screen->quotas;
	screening->removed = 0;
	screening->refusal = REFUSAL_NONE;
	if (screening->idle)
		return true;
	hash_random(&screening->random, sizeof screening->random);
	uint64_t random = screening->random;
	screening->shares.count = 0;
	array_reserve(&screening->shares, p->resources.count);
	screening->shares.count = p->resources.count;
	for (uint32_t i = 0; i < p->resources.count; i++)
		pass.samples += sum_profiles(p, &p->resources.at[i], count_samples, NULL);
	for (uint32_t i = 0; i < p->resources.count; i++)
		decide(&pass, i);
	screening->random = random;
	kill_rules_unref(&pass.rules);
	if (screening->refusal == REFUSAL_NONE || anything_left(p))
		return true;
	*err = pass.first;
	return false;
}

bool screen_again(struct screening *screening, struct profiles *p, struct error *err)
{
	uint64_t random = screening->random, rejected;
	char text[] = "refused";
	if (screening->idle)
		return true;
	assert(p->resources.count == screening->shares.count);
	screening->removed = 0;
	for (uint32_t i = 0; i < p->resources.count; i++) {
		const struct resource *r = &p->resources.at[i];
		if (screening->shares.at[i])
			thin_resource(p, r, screening->shares.at[i], screening, &rejected);
		else
			sum_profiles(p, r, reject_profile, text);
	}
	screening->random = random;
	return anything_left(p) || !p->profiles.count ||
	       error_set(err, ERROR_INVALID, "nothing is left of the document");
}

void screening_rest(struct screening *screening)
{
	if (screening->shares.room > KEEP)
		screening_fini(screening);
}

void screening_fini(struct screening *screening)
{
	memory_free(screening->shares.at);
	screening->shares.at = NULL;
	screening->shares.room = screening->shares.count = 0;
}
