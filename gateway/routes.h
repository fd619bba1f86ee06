/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATEWAY_ROUTES_H
#define GATEWAY_ROUTES_H

#include "gateway/admin.h"

struct service;

/* The routes of the admin endpoint; this is the only place that lists them. The manual describes
 * them in "Operating it". The last entry has no path. */
void routes_of(struct service *service, struct admin_route routes[ADMIN_ROUTES_MAX]);

#endif
