/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_STORES_KINDS_H
#define PROFILE_STORES_KINDS_H

#include "profile/profiles.h"

/*
 * Changes the sample and period types of open tables so that stores can name and select them. Their
 * strings consist of letters, digits and "_" (each other character becomes one "_"), none is empty
 * or too long, and each Profile has a period type: its sample type if it had none. Stores build the
 * name of a type from these strings. They reject other strings, or accept them and can never select
 * them, or fail for all queries.
 *
 * If this would exceed the tables' cap, it sets p->over_cap.
 */
/* replaces an empty string, and one that is longer than KINDS_LONGEST */
#define KINDS_UNKNOWN "unknown"
enum { KINDS_LONGEST = 1024 }; /* bytes: the string may be repeated for each of many Profiles */

void kinds_guard(struct profiles *p);

#endif
