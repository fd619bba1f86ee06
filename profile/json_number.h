/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_JSON_NUMBER_H
#define PROFILE_JSON_NUMBER_H

#include "base/bytes.h"

/*
 * Numbers of JSON (RFC 8259, section 6) as they are written, exact. The string need not come from a
 * number of JSON: it is checked too. Leading zeros are accepted.
 *
 * All functions return NULL, or what is wrong: a part of a sentence ("is not a number").
 */
struct json_number_range {
	uint64_t below, above; /* the largest magnitudes below and above zero */
};

/* An integer, which may be written with a fraction or an exponent (1e3, 2.50e1). Negative numbers
 * are two's complement. */
const char *json_number_integer(struct view text, const struct json_number_range *range,
				uint64_t *value);

/* The nearest double. The byte behind the string must be readable, and no part of a number. */
const char *json_number_double(struct view text, double *value);

#endif
