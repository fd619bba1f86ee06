/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_SECRET_NAME_H
#define BASE_SECRET_NAME_H

#include <stdbool.h>

/* Do headers or metadata of this name usually hold a credential? Only some do. */
bool secret_name_is(const char *name);

#endif
