/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_INTAKE_SCREEN_H
#define PIPELINE_INTAKE_SCREEN_H

#include "base/array.h"
#include "pipeline/budget.h"
#include "pipeline/intake/quotas.h"
#include "pipeline/kill_switch.h"
#include "pipeline/refusal.h"
#include "profile/profiles.h"

/*
 * The kill switch and the quotas, applied to a decoded document before its pipelines run: each
 * resource is kept, thinned (profile/thin.h), or its Profiles are rejected. A request is asked
 * first (screen_request), because most of what is refused needs no decoding.
 *
 * A receiver of several pipelines decodes a document once for each. What was decided for the first
 * holds for all: the decisions stay in struct screening, which belongs to the thread that runs the
 * request. Its memory is one word for each resource, whose tables are charged.
 */
struct screen { /* part of a gate; all members may be NULL, the budget if quotas is */
	struct kill_switch *kills;
	struct quotas *quotas;
	struct budget *budget;
};

struct screening {
	ARRAY(uint32_t) shares; /* of each resource that is kept (THIN_ALL: all) */
	uint64_t random;
	bool idle;        /* nothing was decided */
	uint64_t removed; /* samples that the last pass sampled away */
	enum refusal refusal;
	struct quota_verdict over; /* of REFUSAL_QUOTA */
};

/* The tenant of a request, as far as its headers give it. */
struct screen_tenant {
	const char *name; /* NULL: none */
	bool final;       /* no attribute can give another */
};

/* Does the sender, as far as it is known, have to give way because memory is short? True: err has
 * the reason. [any thread] */
bool screen_sheds(const struct screen *screen, const struct quota_sender *sender,
		  struct error *err);

/* Is it known from the headers that the kill switch stops the request? False: err has the
 * reason. [any thread] */
bool screen_request(const struct screen *screen, const struct screen_tenant *tenant,
		    struct error *err);

/*
 * Decides for each resource of a document of `bytes` bytes. p->request->tenant, or the tenants of
 * the resources, are set. False: nothing is left, and err has the reason of the first.
 * screening->refusal is that reason, if something was rejected.
 */
bool screen_document(const struct screen *screen, struct screening *screening,
		     const struct quota_sender *sender, struct profiles *p, size_t bytes,
		     struct error *err);
/* Applies the same decisions to the same document, decoded again. */
bool screen_again(struct screening *screening, struct profiles *p, struct error *err);

/* Frees what only a large document needed. */
void screening_rest(struct screening *screening);
void screening_fini(struct screening *screening);

#endif
