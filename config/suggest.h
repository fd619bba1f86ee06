/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFIG_SUGGEST_H
#define CONFIG_SUGGEST_H

#include <stdbool.h>
#include <stddef.h>

/* A name that is unknown here, but that operators write: it has another place or another name, or
 * something else is used instead. */
struct config_hint {
	const char *name; /* NULL ends a list */
	/* The name that takes its place, as a path from here: "profiles::topic"; NULL: there is
	 * none. */
	const char *use;
	const char *text; /* what to do, as "use `resource`"; NULL: `use` says it */
};

enum { SUGGEST_TEXT = 200, SUGGEST_PLACE = 100 };

/* The known name that an unknown one was probably meant to be: `suggest_hint` with the names that
 * have a hint, `suggest_try` with each known name, then `suggest_text`. */
struct suggest {
	const char *name; /* the unknown one; NULL: it must not be shown, so nothing is suggested */
	const char *best; /* NULL: nothing is close */
	size_t distance;  /* of best */
	/* Where a name is known that is exactly the same, as a path from here, or as several with
	 * "` or `" between them; "": nowhere. Takes precedence over best. */
	char place[SUGGEST_PLACE];
	const struct config_hint *hint; /* takes precedence over both; NULL: there is none */
};

/* hints: may be NULL; borrowed until suggest_text. */
void suggest_hint(struct suggest *suggest, const struct config_hint *hints);
/* Is that the known name, or the first step to it? */
bool suggest_is(const struct suggest *suggest, const char *known);

/* known: borrowed until suggest_text. */
void suggest_try(struct suggest *suggest, const char *known);
/* " (did you mean `x`?)", " (put it under `x`)", the hint, or "". Returns out. */
const char *suggest_text(const struct suggest *suggest, char out[SUGGEST_TEXT]);

#endif
