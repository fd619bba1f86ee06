/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFIG_SUGGEST_H
#define CONFIG_SUGGEST_H

#include <stddef.h>

/* The known name that an unknown one was probably meant to be: `suggest_try` with each known name,
 * then `suggest_text`. */
struct suggest {
	const char *name; /* the unknown one; NULL: it must not be shown, so nothing is suggested */
	const char *best; /* NULL: nothing is close */
	size_t distance;  /* of best */
};

enum { SUGGEST_TEXT = 120 };

/* known: borrowed until suggest_text. */
void suggest_try(struct suggest *suggest, const char *known);
/* " (did you mean `x`?)", or "". Returns out. */
const char *suggest_text(const struct suggest *suggest, char out[SUGGEST_TEXT]);

#endif
