/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/intake/tenant.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "net/authenticator.h"

/* As in Pyroscope and Mimir: at most 150 characters of this alphabet, and no path. */
enum { TENANT_MAX = 150 };
#define ALPHABET "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!-_.*'()"

static const struct metric samples_metric = {
	"otelcol_tenant_samples", METRIC_COUNTER, "{samples}",
	"Samples of a tenant that were passed to the destinations. Tenants beyond "
	"service::tenant::metrics_limit count as `other`."
};

const struct metric *const tenant_metrics[] = { &samples_metric, NULL };

struct counter {
	char *tenant; /* NULL: a free place */
	struct metric_series *samples;
};

struct tenants {
	const struct tenant_config *config;
	struct metrics *metrics;
	pthread_rwlock_t lock; /* of all that follows */
	struct counter *counters;
	uint32_t count, room; /* room is a power of two, more than twice the count */
};

struct tenants *tenants_new(const struct tenant_config *config, struct metrics *metrics,
			    struct ledger *ledger)
{
	if (!config->present.enabled)
		return NULL;
	struct tenants *t = memory_new(sizeof *t);
	t->config = config;
	t->metrics = metrics;
	ledger_limit_tenants(ledger, config->metrics_limit);
	for (t->room = 16; t->room < 2 * (uint64_t)config->metrics_limit + 4;)
		t->room *= 2;
	t->counters = memory_array(t->room, sizeof *t->counters);
	pthread_rwlock_init(&t->lock, NULL);
	return t;
}

void tenants_unref(struct tenants **slot)
{
	struct tenants *t = *slot;
	*slot = NULL;
	if (!t)
		return;
	for (uint32_t i = 0; i < t->room; i++)
		memory_free(t->counters[i].tenant);
	memory_free(t->counters);
	pthread_rwlock_destroy(&t->lock);
	memory_free(t);
}

/* ---- which tenant */

static bool is_given(const char *text)
{
	return text && *text;
}

static bool is_valid(const char *tenant, size_t len)
{
	return len && len <= TENANT_MAX && strspn(tenant, ALPHABET) >= len &&
	       !(len == 1 && *tenant == '.') && !(len == 2 && !memcmp(tenant, "..", 2));
}

/* The only entry of that name; NULL: there is none. Several decide nothing. */
static bool find(const struct metadatum *list, const char *name, const char **tenant,
		 struct error *err)
{
	bool repeated;
	if (!is_given(name))
		return true;
	*tenant = authenticator_header(list, name, &repeated);
	if (repeated)
		return error_set(err, ERROR_INVALID, "tenant: %s is given more than once", name);
	if (*tenant && !is_valid(*tenant, strlen(*tenant)))
		return error_set(err, ERROR_INVALID,
				 "tenant: %s must have 1 to %d letters, digits and !-_.*'()", name,
				 (int)TENANT_MAX);
	return true;
}

bool tenants_want_headers(const struct tenants *t)
{
	return t && is_given(t->config->header);
}

bool tenants_final(const struct tenants *t, const struct request *request)
{
	return !t || request->tenant || !is_given(t->config->attribute);
}

bool tenants_resolve(struct tenants *t, struct request *request, const struct metadatum *headers,
		     struct error *err)
{
	if (!t)
		return true;
	const struct tenant_config *c = t->config;
	const char *found = NULL;
	if (!find(request->auth, c->certificate, &found, err))
		return false;
	if (!found && !find(headers, c->header, &found, err))
		return false;
	if (!found && !find(request->auth, c->identity, &found, err))
		return false;
	request->tenant = found;
	return found || !c->required || is_given(c->attribute) ||
	       error_set(err, ERROR_UNAUTHENTICATED, "the request has no tenant%s%s",
			 is_given(c->header) ? "; set the header " : "",
			 is_given(c->header) ? c->header : "");
}

static uint32_t tenant_of(const struct tenants *t, const struct profiles *p,
			  const struct resource *r)
{
	for (uint32_t i = 0; i < r->attributes.count; i++) {
		const struct attribute *a =
			&p->attributes.at[p->indices.at[r->attributes.first + i]];
		struct view value;
		if (a->type != VALUE_STRING || !string_is(p, a->key, t->config->attribute))
			continue;
		value = string_view(p, a->string);
		char text[TENANT_MAX + 1];
		if (value.len > TENANT_MAX)
			return 0;
		memcpy(text, value.at, value.len);
		text[value.len] = '\0';
		return is_valid(text, value.len) ? a->string : 0;
	}
	return 0;
}

static void reject(struct profiles *p, uint32_t resource)
{
	const struct list scopes = p->resources.at[resource].scopes;
	char text[64];
	snprintf(text, sizeof text, "resource_profiles[%u]: no tenant", resource);
	for (uint32_t s = 0; s < scopes.count; s++) {
		const struct list profiles = p->scopes.at[scopes.first + s].profiles;
		for (uint32_t i = 0; i < profiles.count; i++)
			if (!p->profiles.at[profiles.first + i].fault)
				profiles_reject(p, &p->profiles.at[profiles.first + i], text);
	}
}

bool tenants_mark(struct tenants *t, struct profiles *p, struct error *err)
{
	if (!t || !is_given(t->config->attribute) || p->request->tenant)
		return true;
	for (uint32_t i = 0; i < p->resources.count; i++) {
		struct resource *r = &p->resources.at[i];
		r->tenant = tenant_of(t, p, r);
		if (!r->tenant && t->config->required)
			reject(p, i);
	}
	return !p->rejected_profiles || p->rejected_profiles < p->profiles.count ||
	       error_set(err, ERROR_INVALID, "%s", p->rejection);
}

/* ---- counting */

/* The tenant's counter, or the free place for it. */
static struct counter *place_of(const struct tenants *t, const char *tenant)
{
	uint32_t at = (uint32_t)hash_bytes(tenant, strlen(tenant)) & (t->room - 1);
	while (t->counters[at].tenant && strcmp(t->counters[at].tenant, tenant) != 0)
		at = (at + 1) & (t->room - 1);
	return &t->counters[at];
}

static struct metric_series *series_of(struct tenants *t, const char *tenant)
{
	struct counter *c = place_of(t, tenant);
	if (!c->tenant && t->count >= (uint64_t)t->config->metrics_limit)
		c = place_of(t, tenant = "other");
	if (!c->tenant) {
		const struct metric_label labels[] = { { "tenant", tenant }, { 0 } };
		c->tenant = memory_text(tenant);
		c->samples = metrics_series(t->metrics, &samples_metric, labels);
		t->count++;
	}
	return c->samples;
}

void tenants_count(struct tenants *t, const char *tenant, uint64_t samples)
{
	if (!t || !tenant)
		return;
	pthread_rwlock_rdlock(&t->lock);
	struct metric_series *series = place_of(t, tenant)->samples;
	pthread_rwlock_unlock(&t->lock);
	if (!series) {
		pthread_rwlock_wrlock(&t->lock);
		series = series_of(t, tenant);
		pthread_rwlock_unlock(&t->lock);
	}
	metric_add(series, (int64_t)samples);
}

/* ---- configuration */

static void tenant_check(const void *config, struct faults *faults)
{
	static const char *const names[] = {
		"subject", "common_name", "uri", "email", "dns", NULL
	};
	const struct tenant_config *c = config;
	const char *const *name = names;
	while (is_given(c->certificate) && *name && strcmp(*name, c->certificate) != 0)
		name++;
	if (!*name)
		faults_add(faults, "certificate must be subject, common_name, uri, email or dns");
	if (!is_given(c->certificate) && !is_given(c->header) && !is_given(c->identity) &&
	    !is_given(c->attribute))
		faults_relate(faults, "certificate header identity attribute",
			      "one of certificate, header, identity and attribute must be set");
}

static const struct config_row rows[] = {
	CONFIG_ROW(struct tenant_config, certificate, .key = "certificate",
		   .help = "First source: this name in the client certificate. `subject`, "
			   "`common_name`, `uri`, `email` or `dns`."),
	CONFIG_ROW(struct tenant_config, header, .key = "header", .def = "X-Scope-OrgID",
		   .help = "Second source: this header, or gRPC metadata. Empty: none."),
	CONFIG_ROW(struct tenant_config, identity, .key = "identity",
		   .help = "Third source: this attribute of the identity that an authenticator "
			   "found, such as `username`."),
	CONFIG_ROW(struct tenant_config, attribute, .key = "attribute",
		   .help = "Last source: this resource attribute, as the sender set it. Each "
			   "resource of a request may have another tenant."),
	CONFIG_ROW(struct tenant_config, required, .key = "required", .def = "false",
		   .help = "Requests without a tenant are refused with 401 or UNAUTHENTICATED; "
			   "with `attribute`, Profiles without one are rejected."),
	CONFIG_ROW(struct tenant_config, metrics_limit, .key = "metrics_limit", .def = "100",
		   .limited = true, .min = 0, .max = 100000,
		   .help = "Number of tenants with metrics of their own; all others count as "
			   "`other`."),
	{ 0 }
};

const struct config_table tenant_table = { sizeof(struct tenant_config), rows, tenant_check,
					   .optional = true };
