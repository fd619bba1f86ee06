/* SPDX-License-Identifier: Apache-2.0 */
#include "base/ordinal.h"

#include <stdio.h>

static const char *suffix(size_t number)
{
	static const char *const suffixes[] = { "th", "st", "nd", "rd" };
	size_t last = number % 10;
	return last > 3 || number / 10 % 10 == 1 ? "th" : suffixes[last];
}

const char *ordinal_text(size_t index, char out[ORDINAL_TEXT])
{
	static const char *const words[] = { "first", "second",  "third",  "fourth", "fifth",
					     "sixth", "seventh", "eighth", "ninth",  "tenth" };
	if (index < sizeof words / sizeof *words)
		snprintf(out, ORDINAL_TEXT, "%s", words[index]);
	else
		snprintf(out, ORDINAL_TEXT, "%zu%s", index + 1, suffix(index + 1));
	return out;
}
