/* SPDX-License-Identifier: Apache-2.0 */
#include "processors/roles.h"

#include <string.h>

bool roles_read(const struct strings *names, uint32_t all, uint32_t *roles, const char *at,
		struct faults *faults)
{
	bool ok = true;
	*roles = names->count ? 0 : all;
	for (size_t i = 0; i < names->count; i++) {
		int role = ROLE_KEY + 1;
		while (role < ROLE_COUNT && strcmp(names->at[i], site_role_names[role]) != 0)
			role++;
		if (role < ROLE_COUNT)
			*roles |= 1u << role;
		else
			ok = faults_add(faults,
					"%sroles[%zu]: unknown role (valid roles: value, unit, "
					"scope, schema, entity, function, file, mapping, type)",
					at, i);
	}
	return ok;
}
