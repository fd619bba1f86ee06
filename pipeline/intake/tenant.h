/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_INTAKE_TENANT_H
#define PIPELINE_INTAKE_TENANT_H

#include "base/metrics.h"
#include "config/table.h"
#include "pipeline/ledger.h"
#include "profile/profiles.h"

/*
 * The tenant of a request: whose data it is. It is resolved once, from the first of these sources
 * that is configured and present: the client certificate, a header, the identity that an
 * authenticator found, a resource attribute. Batches never join two tenants, and packets carry it
 * (profile/origin.h).
 *
 * The attribute is known only after decoding, and may differ between the resources of a request.
 * The other sources are known at admission. Where a tenant is required, a request without one is
 * refused before its body is read, unless an attribute may still name it.
 */
struct tenant_config { /* service::tenant */
	struct optional present;
	bool required;
	char *certificate, *header, *identity, *attribute;
	int64_t metrics_limit;
};

extern const struct config_table tenant_table;

struct tenants;

/* NULL if the section is absent; all functions accept that. */
struct tenants *tenants_new(const struct tenant_config *config, struct metrics *metrics,
			    struct ledger *ledger);
void tenants_unref(struct tenants **tenants);

/* Does tenants_resolve need the request's headers? */
bool tenants_want_headers(const struct tenants *tenants);
/* Sets request->tenant to one of the request's own strings. `headers` ends with name == NULL; it
 * may be NULL. False with ERROR_UNAUTHENTICATED if there must be a tenant, and with ERROR_INVALID
 * if it is not valid or ambiguous. [any thread] */
bool tenants_resolve(struct tenants *tenants, struct request *request,
		     const struct metadatum *headers, struct error *err);
/* Is the tenant of the request known from its headers, if it has one? */
bool tenants_final(const struct tenants *tenants, const struct request *request);
/* Sets the tenant of each resource from its attributes, if the request has none. A resource that
 * must have one and has none rejects its Profiles, as one with a fault. False if no Profile is
 * left. [worker] */
bool tenants_mark(struct tenants *tenants, struct profiles *p, struct error *err);

/* Counts samples. Tenants beyond metrics_limit count as "other". [any thread] */
void tenants_count(struct tenants *tenants, const char *tenant, uint64_t samples);

extern const struct metric *const tenant_metrics[]; /* for the manual; NULL-terminated */

#endif
