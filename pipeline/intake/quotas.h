/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_INTAKE_QUOTAS_H
#define PIPELINE_INTAKE_QUOTAS_H

#include "base/error.h"
#include "base/metrics.h"
#include "config/table.h"
#include "pipeline/intake/quota_table.h"

/*
 * service::quotas: how many bytes and samples a tenant, a service (resource attribute service.name)
 * and a peer (authenticated identity, else address) may send. Bytes are those of decompressed
 * documents; while a body arrives, those of the body as it is sent.
 *
 * A bucket that is not empty accepts what comes next as a whole, and may then be in debt: a request
 * larger than the burst is not refused for ever. What quota and mode (`on_exceeded`) mean:
 *
 *   kind                     reject                             sample
 *   peer, tenant of headers  the request is refused: from its   it is refused when the debt is
 *                            headers, while its body arrives,   as large as the burst; else its
 *                            or before it is decoded            resources are thinned
 *   service, tenant of an    the resource is rejected; if all   the resource is rejected when the
 *   attribute                are, the request is refused        debt is as large; else thinned
 *
 * A refusal is ERROR_BUSY with over_quota, and a hint of when the bucket has something again.
 * Bytes of a request that the sender has to repeat are given back.
 *
 * The decisions are made by names; the tables (quota_table.h) belong to the runtime.
 */
struct quota_limits_config {
	int64_t bytes_per_second, bytes_burst, samples_per_second, samples_burst;
	struct choice on_exceeded; /* enum quota_mode */
	struct choice priority;    /* enum quota_priority */
};

struct quota_kind_config {
	struct quota_limits_config limits;
	struct config_items overrides; /* struct quota_limits_config, by name */
};

struct quotas_config {
	struct quota_kind_config tenant, service, peer;
};

extern const struct config_table quotas_table;

enum quota_mode { QUOTA_REJECT, QUOTA_SAMPLE };
enum quota_priority { QUOTA_REQUIRED, QUOTA_BEST_EFFORT };

/* Belongs to the runtime. Zeroed: no table yet. */
struct quota_tables {
	struct quota_table *of[QUOTA_KINDS];
};

void quota_tables_fini(struct quota_tables *tables);

struct quotas;

/* NULL if nothing has a limit or a priority; all functions accept that. Creates the tables that it
 * needs. [loop thread] */
struct quotas *quotas_new(const struct quotas_config *config, struct quota_tables *tables,
			  struct metrics *metrics);
void quotas_unref(struct quotas **quotas);

void quotas_name(struct quota_sender *sender, enum quota_kind kind, struct hash128 name);
struct hash128 quotas_hash(struct view name);

/* Does the sender's data give way first when memory is short? By the names that are known, each of
 * which may say so. [any thread] */
bool quotas_is_best_effort(const struct quotas *quotas, const struct quota_sender *sender);

/* May the request be read (bytes 0), may its body have this many bytes, may it be decoded? False:
 * not now; err has the reason and the hint. [any thread] */
bool quotas_allow(struct quotas *quotas, struct quota_sender *sender, int64_t bytes,
		  struct error *err);
/* Its documents have this many bytes so far. */
void quotas_set_bytes(struct quotas *quotas, struct quota_sender *sender, int64_t bytes);
/* Counts a request that was refused because of a quota. */
void quotas_count_refusal(struct quotas *quotas, const struct quota_sender *sender);
/* The request was refused, and the sender repeats it. */
void quotas_return(struct quotas *quotas, struct quota_sender *sender);

/* What a resource needs. */
struct quota_need {
	int64_t of[QUOTA_UNITS];
};

/* Why a resource is not kept as it is. */
struct quota_verdict {
	uint32_t share; /* of its samples that is kept: 0 to THIN_ALL (profile/thin.h) */
	enum quota_kind kind;
	enum quota_unit unit;
};

/* `sender` is of the resource: it has the names that its attributes gave, too. `from_headers`: of
 * the request. err is set if nothing may be kept. */
struct quota_verdict quotas_decide(struct quotas *quotas, const struct quota_sender *sender,
				   const struct quota_sender *from_headers,
				   const struct quota_need *need, struct error *err);
/* Takes what was kept. */
void quotas_take(struct quotas *quotas, const struct quota_sender *sender,
		 const struct quota_sender *from_headers, const struct quota_need *kept);
/* Counts samples of a resource that were rejected or sampled away by that verdict. */
void quotas_count(struct quotas *quotas, const struct quota_verdict *verdict, uint64_t samples);

extern const struct metric *const quotas_metrics[]; /* for the manual; NULL-terminated */

#endif
