/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include "base/bytes.h"

/* RFC 4648, section 4. False: out is full. */
bool base64_add(struct bytes *out, struct view data, bool padded);
/* With complete padding or without any, in the alphabet of section 4 or of section 5. False: not
 * base64, or out is full; nothing was appended. */
bool base64_decode(struct bytes *out, struct view text);

/* The same into memory that has room for BASE64_SIZE of the text's length. Returns the number of
 * bytes, 0 if it is not base64. */
#define BASE64_SIZE(len) ((len) / 4 * 3 + 2)
size_t base64_decode_at(uint8_t *to, struct view text);

#endif
