/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include "base/bytes.h"

/* RFC 4648, section 4. False: out is full. */
bool base64_add(struct bytes *out, struct view data, bool padded);
/* With complete padding or without any. False: not base64, or out is full. */
bool base64_decode(struct bytes *out, struct view text);

#endif
