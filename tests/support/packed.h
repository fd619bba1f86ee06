/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SUPPORT_PACKED_H
#define TESTS_SUPPORT_PACKED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "net/compress.h"

/* Shared by the tests of net/compress: bodies, and the results of their compression. The caller
 * frees all struct bytes. */
uint64_t next_noise(uint64_t *noise); /* *noise: not 0 */

/* Half text, half noise: takes several steps to inflate, and is not one run. */
struct bytes sample(size_t len);
struct bytes zeros(size_t len);

/* Compressed at the default level. */
struct bytes deflated(enum coding coding, const struct bytes *in);

bool inflates(enum coding coding, struct view in, size_t max, struct bytes *out,
	      enum error_kind *kind);
void check_inflates_to(enum coding coding, struct view in, const struct bytes *want, size_t max);

#endif
