/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_STORES_KINDS_H
#define PROFILE_STORES_KINDS_H

#include "profile/profiles.h"

/*
 * Makes the sample and period types of open tables such that stores can name and select them: their
 * texts consist of letters, digits and "_" (each other character becomes one "_"), none is empty or
 * long, and each Profile has a period type: its sample type where it had none. Stores that build a
 * type's name from these texts refuse anything else, take it and can never select it, or fail for
 * everybody.
 *
 * A growth past the tables' cap sets p->over_cap.
 */
/* what becomes of an empty text, and of one that is longer than any type's */
#define KINDS_UNKNOWN "unknown"
enum { KINDS_LONGEST = 1024 }; /* bytes: it may be said of each of many Profiles */

void kinds_guard(struct profiles *p);

#endif
