/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_OTLP_EACH_PROFILE_H
#define PROFILE_OTLP_EACH_PROFILE_H

#include "base/bytes.h"

/*
 * Calls visit for each Profile of an ExportProfilesServiceRequest, in the order of the bytes:
 * fields 1 (resource_profiles), 2 (scope_profiles) and 2 (profiles) of opentelemetry-proto since
 * 1.4. What is malformed is left to the decoder.
 */
typedef void visit_profile(void *context, struct view profile);
void each_profile(struct view request, visit_profile *visit, void *context);

#endif
