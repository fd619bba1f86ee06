/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_ORDINAL_H
#define BASE_ORDINAL_H

#include <stddef.h>

enum { ORDINAL_TEXT = 32 };

/* "first" for index 0, up to "tenth", then "11th", "22nd" and so on. Returns out. */
const char *ordinal_text(size_t index, char out[ORDINAL_TEXT]);

#endif
