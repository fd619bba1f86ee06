/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_DELTA_H
#define PROFILE_DELTA_H

#include "profile/profiles.h"

/*
 * Turns a cumulative profile, whose values count from the start of the process, into what was added
 * since the profile before it. The heap, mutex and block profiles of Go are cumulative. The values
 * of sample types that begin with "inuse_" are levels, not sums: they stay as they are.
 *
 * The open tables hold one document as decode_pprof leaves it: its Profiles have the same samples
 * in the same order, with one value each. A sample is identified by the content of its frames
 * (addresses, functions, lines), its attributes and its link. Samples that are identified alike are
 * added up. A sample without any value is removed afterwards. The Profiles then begin at the time
 * of the profile before them, and last until their own, as Go's own delta profiles do.
 *
 * If a sum has decreased or disappeared, the process has restarted. Its profile is then a new
 * beginning, like the first profile of a target: nothing can be said of the time in between.
 *
 * The state is about 8 bytes for each sample and 8 for each of its sums. It contains keyed hashes
 * and numbers, nothing that the profile names.
 */
struct delta;

enum delta_result {
	DELTA_DIFFERENCE, /* the tables hold what was added */
	DELTA_NOTHING,    /* nothing was added, and there is no level */
	DELTA_FIRST,      /* there was no state */
	DELTA_RESET       /* the process has restarted */
};

/*
 * Reads the tables into a new state, which the caller frees. NULL: the tables are not as described
 * above (ERROR_INVALID), or exceed their cap (ERROR_TOO_LARGE). `before` is the state of the last
 * profile, NULL: there is none. With DELTA_DIFFERENCE the tables have been changed; with the other
 * results they are unchanged and of no use.
 */
struct delta *delta_apply(struct profiles *p, const struct delta *before, enum delta_result *result,
			  struct error *err);
/* Bytes of memory that the state takes. */
size_t delta_bytes(const struct delta *delta);
void delta_unref(struct delta **delta);

#endif
