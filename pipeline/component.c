/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/component.h"

const char *const ack_mode_names[ACK_MODES + 1] = {
	[ACK_ENQUEUE] = "enqueue", [ACK_DURABLE] = "durable", [ACK_DELIVERED] = "delivered"
};
const char *const ack_choices[ACK_MODES + 2] = { [ACK_ENQUEUE] = "enqueue",
						 [ACK_DURABLE] = "durable",
						 [ACK_DELIVERED] = "delivered",
						 [ACK_MODES] = "service" };

struct authenticator *host_authenticator(const struct host *host, const struct optional *present,
					 const char *id)
{
	const struct authenticators *all = &host->authenticators;
	return present->enabled && all->find ? all->find(all->context, id) : NULL;
}
