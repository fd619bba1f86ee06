/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_STORES_PIECES_H
#define PROFILE_STORES_PIECES_H

#include "profile/parts.h"
#include "profile/stores/regroup.h"

/*
 * Assigns times to the pieces of Profiles that were regrouped and then cut, each piece alone in its
 * part, from part `first` on: the store counts Profiles with equal times only once. The first piece
 * keeps the Profile's own time. The others get the next free milliseconds of their series, which
 * all types of one pprof share, and are sealed again. False: a part could not be read; the others
 * are valid.
 */
bool pieces_move(struct regroup *r, struct parts *parts, uint32_t first, struct error *err);

#endif
