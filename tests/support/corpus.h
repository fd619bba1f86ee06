/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SUPPORT_CORPUS_H
#define TESTS_SUPPORT_CORPUS_H

#include "base/bytes.h"

/* Real profiles, in a directory beside the checkout or in PORTCULLIS_CORPUS. Calls `visit` for each
 * file of the folder ("otlp", "pprof", ...) with at most `most` bytes. False: there is no
 * corpus. */
bool corpus_each(const char *folder, size_t most,
		 void (*visit)(const char *name, struct view file));

/* Calls `visit` with the first len bytes of `whole`, for each len from 0 to its length. If it has
 * more than CORPUS_CUT_WHOLE bytes, only every Nth len is used. Each call gets a copy with exactly
 * the slack after it, so that a sanitizer finds each read past it. */
#define CORPUS_CUT_WHOLE 16384
void corpus_cut(struct view whole, void (*visit)(struct view cut));

#endif
