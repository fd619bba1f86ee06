/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SUPPORT_CORPUS_H
#define TESTS_SUPPORT_CORPUS_H

#include "base/bytes.h"

/* Real profiles, beside the checkout or where PORTCULLIS_CORPUS says. Calls `visit` with each file
 * of the folder ("otlp", "pprof", ...) that has at most `most` bytes; false where there is no
 * corpus. */
bool corpus_each(const char *folder, size_t most,
		 void (*visit)(const char *name, struct view file));

/*
 * Calls `visit` with the first len bytes of whole, for each len from 0 to all; of more than
 * CORPUS_CUT_WHOLE bytes for every n-th. They are copies with the slack and not a byte more, so
 * that a sanitizer sees each read behind it.
 */
#define CORPUS_CUT_WHOLE 16384
void corpus_cut(struct view whole, void (*visit)(struct view cut));

#endif
