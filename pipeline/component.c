/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/component.h"

struct authenticator *host_authenticator(const struct host *host, const struct optional *present,
					 const char *id)
{
	const struct authenticators *all = &host->authenticators;
	return present->enabled && all->find ? all->find(all->context, id) : NULL;
}
