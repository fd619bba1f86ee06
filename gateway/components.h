/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATEWAY_COMPONENTS_H
#define GATEWAY_COMPONENTS_H

#include "pipeline/component.h"

/* Everything that a configuration can name; NULL-terminated. A new component is its file and one
 * line here. */
extern const struct component_factory *const components[];

/* The receiver for a path over HTTP, whether it is configured or not; for places_know. */
struct place;
bool components_find_place(const char *asked, struct place *place);

#endif
