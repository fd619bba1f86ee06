/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROCESSORS_VALUE_H
#define PROCESSORS_VALUE_H

#include "profile/profiles.h"

#define VALUE_TEXT_ROOM 40

/*
 * The text of a string, bool, integer or double, as the Collector writes it ("true", "-42", "0.5", "1e+21");
 * false for every other type. The view points into p or into room.
 */
bool value_text(const struct profiles *p, const struct attribute *a, char room[VALUE_TEXT_ROOM],
		struct view *out);

static inline bool value_is_nested(const struct attribute *a)
{
	return a->type == VALUE_ARRAY || a->type == VALUE_KVLIST;
}

#endif
