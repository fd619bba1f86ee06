/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_QUOTA_SENDER_H
#define PIPELINE_QUOTA_SENDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"

enum quota_kind { QUOTA_TENANT, QUOTA_SERVICE, QUOTA_PEER, QUOTA_KINDS };

enum quota_unit { QUOTA_BYTES, QUOTA_SAMPLES, QUOTA_UNITS };

/* Who sends a request, and what quotas took for it (pipeline/intake/quotas.h). */
struct quota_sender {
	struct hash128 names[QUOTA_KINDS];
	bool known[QUOTA_KINDS];
	int64_t bytes; /* taken from the buckets in mode reject */
	/* the quota that the request exceeded, if it was refused for that */
	enum quota_kind kind;
	enum quota_unit unit;
};

#endif
