/* SPDX-License-Identifier: Apache-2.0 */
#include "base/secret_name.h"

#include <stddef.h>
#include <string.h>

bool secret_name_is(const char *name)
{
	static const char *const words[] = { "authorization", "cookie",  "token", "secret",
					     "password",      "api-key", "apikey" };
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strcasestr(name, words[i]))
			return true;
	return false;
}
