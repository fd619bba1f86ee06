/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_VALUE_TEXT_H
#define PROFILE_VALUE_TEXT_H

#include "profile/profiles.h"

/* Appends any value as text, as the Collector's AsString would have it: texts as they are, numbers
 * in decimal, bytes in base64, lists as JSON, nothing for an empty one. False when out is full. */
bool value_text_add(const struct profiles *p, const struct attribute *a, struct bytes *out);

#endif
