/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_VALUE_TEXT_H
#define PROFILE_VALUE_TEXT_H

#include "profile/profiles.h"

/*
 * Values as strings, in the spelling of the Collector's pcommon.Value.AsString: strings as they
 * are, integers in decimal, doubles in the fewest digits that read back as the same number, plain
 * between 1e-6 and 1e21 and with an exponent outside ("1000000000000000", "1e+21", "1e-7", "-0",
 * "NaN", "Infinity"), bytes in base64, arrays and maps as JSON, nothing for an empty value.
 *
 * Two differences: a number that JSON does not have stands in an array or map as a string, as in
 * OTLP/JSON, where AsString returns nothing for the whole; and the entries of a map keep their
 * order, where AsString sorts them.
 */
#define VALUE_TEXT_ROOM 32

/* False when out is full. */
bool value_text_add(const struct profiles *p, const struct attribute *a, struct bytes *out);

/* The same of a string, bool, integer or double, without a copy of strings; false for every other
 * type. The view points into p or into room. */
bool value_text_scalar(const struct profiles *p, const struct attribute *a,
		       char room[VALUE_TEXT_ROOM], struct view *out);

/* The view is valid as long as room is. */
struct view value_text_double(double number, char room[VALUE_TEXT_ROOM]);

/* Appends valid UTF-8 as a JSON string (RFC 8259, section 7) with its quotes; false when out is
 * full. */
bool value_text_quote(struct bytes *out, struct view text);

#endif
