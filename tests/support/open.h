/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SUPPORT_OPEN_H
#define TESTS_SUPPORT_OPEN_H

#include "profile/profiles.h"

/* Open tables made by hand, in the order in which a decoder fills them: dictionary entries when
 * they are needed, then a resource, its scope, its Profile, its samples, and so on. Each function
 * returns the new index. */
void open_begin(struct profiles *p, struct request *request);

uint32_t open_text(struct profiles *p, const char *text);
uint32_t open_attribute(struct profiles *p, const char *key, const char *value);
uint32_t open_integer(struct profiles *p, const char *key, int64_t value, const char *unit);
uint32_t open_function(struct profiles *p, const char *name);
uint32_t open_mapping(struct profiles *p, const char *filename, struct list attributes);
/* With one line of the function; function 0: no lines. */
uint32_t open_location(struct profiles *p, uint32_t mapping, uint64_t address, uint32_t function,
		       struct list attributes);
uint32_t open_stack(struct profiles *p, struct list locations);
uint32_t open_link(struct profiles *p, uint8_t trace, uint8_t span); /* IDs of equal bytes */

/* A list of indices that ends with OPEN_END: open_list(&p, a, b, OPEN_END). */
#define OPEN_END UINT32_MAX
struct list open_list(struct profiles *p, ...);

struct resource *open_resource(struct profiles *p, struct list attributes);
struct scope *open_scope(struct profiles *p, const char *name);
struct profile *open_profile(struct profiles *p, const char *type, const char *unit);
/* Both lists end with -1. */
struct sample *open_sample(struct profiles *p, uint32_t stack, struct list attributes,
			   uint32_t link, const int64_t *values, const int64_t *times);
struct sample *open_value(struct profiles *p, uint32_t stack, struct list attributes,
			  int64_t value);

/* A stack with one location of a function with that name: the shortest way to create a sample. */
uint32_t open_frame(struct profiles *p, const char *function);

#endif
