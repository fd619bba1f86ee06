/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/otlp/each_profile.h"
#include "profile/wire.h"

/* The field with the next level, by level. */
static const uint32_t fields[] = { 1, 2, 2 };
enum { LEVELS = sizeof fields / sizeof *fields };

static void descend(struct view message, unsigned level, visit_profile *visit, void *context)
{
	struct wire w = wire_of(message);
	if (level == LEVELS) {
		visit(context, message);
		return;
	}
	while (wire_more(&w)) {
		uint32_t tag = wire_tag(&w);
		if (tag == WIRE_TAG(fields[level], WIRE_LEN))
			descend(wire_len(&w), level + 1, visit, context);
		else
			wire_skip(&w, tag);
	}
}

void each_profile(struct view request, visit_profile *visit, void *context)
{
	descend(request, 0, visit, context);
}
