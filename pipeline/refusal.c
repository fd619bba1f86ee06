/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/refusal.h"

const char *const refusal_names[REFUSAL_COUNT] = {
	[REFUSAL_NONE] = "none",
	[REFUSAL_STOPPING] = "stopping",
	[REFUSAL_QUEUE_FULL] = "queue_full",
	[REFUSAL_WORKERS_BUSY] = "workers_busy",
	[REFUSAL_MEMORY] = "memory",
	[REFUSAL_SHED] = "shed",
	[REFUSAL_PEER_MEMORY] = "peer_memory",
	[REFUSAL_PEER_QUEUE] = "peer_queue",
	[REFUSAL_DELIVERY] = "delivery",
	[REFUSAL_INVALID] = "invalid",
	[REFUSAL_TOO_LARGE] = "too_large",
	[REFUSAL_UNSUPPORTED] = "unsupported",
	[REFUSAL_UNAUTHENTICATED] = "unauthenticated",
	[REFUSAL_IN_PROGRESS] = "in_progress",
	[REFUSAL_QUOTA] = "quota",
	[REFUSAL_KILLED] = "killed",
	[REFUSAL_CANCELLED] = "cancelled",
	[REFUSAL_OTHER] = "refused",
	[REFUSAL_INTERNAL] = "internal",
};

enum refusal refusal_of(const struct error *err)
{
	switch (err->kind) {
	case ERROR_INVALID:
		return REFUSAL_INVALID;
	case ERROR_TOO_LARGE:
		return REFUSAL_TOO_LARGE;
	case ERROR_UNSUPPORTED:
		return REFUSAL_UNSUPPORTED;
	case ERROR_UNAUTHENTICATED:
		return REFUSAL_UNAUTHENTICATED;
	case ERROR_FORBIDDEN:
		return REFUSAL_KILLED;
	case ERROR_BUSY:
		if (err->over_quota)
			return REFUSAL_QUOTA;
		return err->short_of_memory ? REFUSAL_MEMORY : REFUSAL_QUEUE_FULL;
	case ERROR_INTERNAL:
		return REFUSAL_INTERNAL;
	default:
		return REFUSAL_OTHER;
	}
}
