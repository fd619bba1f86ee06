/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_REFUSAL_H
#define PIPELINE_REFUSAL_H

#include "base/error.h"

/* Why a request was refused or failed: the label `reason` of otelcol_receiver_refused_requests. */
enum refusal {
	REFUSAL_NONE,
	REFUSAL_STOPPING,     /* the program is shutting down */
	REFUSAL_QUEUE_FULL,   /* no destination has room */
	REFUSAL_WORKERS_BUSY, /* too many requests wait for a worker */
	REFUSAL_MEMORY,
	REFUSAL_SHED,        /* memory is short, and the sender is best-effort */
	REFUSAL_PEER_MEMORY, /* the sender holds its share of the memory */
	REFUSAL_PEER_QUEUE,  /* the sender has its share of the requests that wait */
	REFUSAL_DELIVERY,    /* a destination that the sender waits for did not take it */
	REFUSAL_INVALID,
	REFUSAL_TOO_LARGE,
	REFUSAL_UNSUPPORTED,
	REFUSAL_UNAUTHENTICATED, /* no tenant */
	REFUSAL_IN_PROGRESS,     /* the request that it repeats is being processed */
	REFUSAL_QUOTA,           /* service::quotas */
	REFUSAL_KILLED,          /* service::kill_switch */
	REFUSAL_CANCELLED,       /* by the sender, or too slow */
	REFUSAL_OTHER,
	REFUSAL_INTERNAL,
	REFUSAL_COUNT
};

/* The values of the label. */
extern const char *const refusal_names[REFUSAL_COUNT];

/* The refusal of a request that failed with this error. */
enum refusal refusal_of(const struct error *err);

#endif
