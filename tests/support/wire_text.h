/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SUPPORT_WIRE_TEXT_H
#define TESTS_SUPPORT_WIRE_TEXT_H

#include "base/bytes.h"

/*
 * Protobuf messages as tests like to write them: fields are a number and a value, blanks separate.
 *
 *	1=5       varint (negative ones too)    3@7      fixed64       3%7     fixed32
 *	2{1=5}    message                       2'text'  text (\xHH)   2#00ff  bytes in hex
 *	4[1 2]    packed varints                5<1 2>   packed fixed64
 *	6!3       nothing but a tag with wire type 3
 *	~0a02     raw bytes, no field
 *
 * Appends to out, which has room enough; a mistake in the text aborts the test.
 */
void wire_text(struct bytes *out, const char *text);

#endif
