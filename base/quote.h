/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_QUOTE_H
#define BASE_QUOTE_H

#include <stdbool.h>

#include "base/bytes.h"

/*
 * Text made safe for a line of output. Both functions write all or nothing: when `out` is full they
 * leave it as it was and return false.
 */

/*
 * A JSON string with its quotes, which is a YAML double-quoted scalar too: controls, DEL, C1, line
 * and paragraph separators, BOM and non-characters are escaped, what is not UTF-8 becomes \ufffd.
 */
bool quote_json(struct bytes *out, const void *text, size_t len);

/* The same escapes without the quotes; quotes and backslashes stay as they are. */
bool quote_plain(struct bytes *out, const void *text, size_t len);

/* Is a place, as users write it, a URL and no file? */
bool quote_is_url(const char *place);

/* A place as errors may name it: of a URL without user, password, query and fragment, which may be
 * secret; anything else as it is. Freed by the caller. */
char *quote_place(const char *place);

/* Length of the UTF-8 sequence at the front of len > 0 bytes, 0 if there is none; code gets its
 * number. */
size_t quote_utf8(const void *text, size_t len, uint32_t *code);

/* The longest front of the text that is at most max bytes and cuts no sequence. */
size_t quote_fit(const void *text, size_t len, size_t max);

#endif
