/* SPDX-License-Identifier: Apache-2.0 */
#include "processors/value.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The fewest digits that read back as the same double; plain between 1e-6 and 1e21, as in JSON. */
static int number_text(double number, char room[VALUE_TEXT_ROOM])
{
	if (!isfinite(number))
		return snprintf(room, VALUE_TEXT_ROOM, "%s",
				isnan(number) ? "NaN" : number > 0 ? "+Inf" : "-Inf");
	int digits = 0;
	do
		snprintf(room, VALUE_TEXT_ROOM, "%.*e", digits, number);
	while (strtod(room, NULL) != number && ++digits < 17);
	char *mark = strchr(room, 'e');
	int exponent = (int)strtol(mark + 1, NULL, 10);
	double size = fabs(number);
	if (size == 0 || (size >= 1e-6 && size < 1e21))
		return snprintf(room, VALUE_TEXT_ROOM, "%.*f",
				digits > exponent ? digits - exponent : 0, number);
	size_t front = (size_t)(mark - room);
	return (int)front + snprintf(mark, VALUE_TEXT_ROOM - front, "e%+d", exponent);
}

bool value_text(const struct profiles *p, const struct attribute *a, char room[VALUE_TEXT_ROOM],
		struct view *out)
{
	int len;
	switch (a->type) {
	case VALUE_STRING:
		*out = string_view(p, a->string);
		return true;
	case VALUE_BOOL:
		*out = view_of(a->boolean ? "true" : "false");
		return true;
	case VALUE_INT:
		len = snprintf(room, VALUE_TEXT_ROOM, "%" PRId64, attribute_integer(a));
		break;
	case VALUE_DOUBLE:
		len = number_text(attribute_number(a), room);
		break;
	default:
		return false;
	}
	*out = (struct view){ (const uint8_t *)room, (size_t)len };
	return true;
}
