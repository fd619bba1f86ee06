/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/routes.h"

#include "gateway/service.h"

#include <stddef.h>

static void status(void *context, struct admin_call *call)
{
	struct service *s = context;
	struct bytes json;
	bytes_init(&json, 4096);
	service_status(s, &json);
	admin_reply(call, 200, bytes_view(&json));
	bytes_fini(&json);
}

void routes_of(struct service *service, struct admin_route routes[ADMIN_ROUTES_MAX])
{
	const struct admin_route all[] = {
		{ "/-/status", "GET", status, service },
		{ 0 },
	};
	_Static_assert(sizeof all / sizeof *all <= ADMIN_ROUTES_MAX, "too many routes");
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		routes[i] = all[i];
}
