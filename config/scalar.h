/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONFIG_SCALAR_H
#define CONFIG_SCALAR_H

#include "base/bytes.h"
#include "config/node.h"

/*
 * The type of a plain YAML scalar, by the rules of Go's yaml.v3, which the Collector uses: 0x1f,
 * 0o17, 017 and 0b1 are integers, 1_000 too; yes, no, on and off are strings; so are dates here.
 */
struct scalar {
	enum { SCALAR_STRING, SCALAR_INT, SCALAR_FLOAT, SCALAR_BOOL } kind;
	int64_t integer;
	double number; /* of SCALAR_FLOAT; integers beyond int64_t are floats too */
	bool truth;
};

struct scalar scalar_of(const struct node *node);

/* What the node is, for messages: "a whole number", "a string", "a list" ... */
const char *scalar_type_name(const struct node *node);

/* What to write where a duration is expected, with its unit; the text may be NULL. Returns out. */
enum { DURATION_HINT = 100 };
const char *scalar_duration_hint(const char *text, char out[DURATION_HINT]);

/* Go's time.ParseDuration; false with a text like `must have a unit, got "5"; write 5s`. */
bool scalar_duration(const char *text, int64_t *ns, struct error *err);

/* Go's Duration.String: "1m30s", "200ms". */
void scalar_add_duration(struct bytes *out, int64_t ns);

#endif
