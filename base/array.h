/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <stddef.h>
#include <stdint.h>

/*
 * Growable array of records for our own bookkeeping. It has no maximum: use it only for data whose
 * size is bounded by something already charged. Zeroed memory is an empty array; memory_free(a.at)
 * ends it.
 */
#define ARRAY(type) \
	struct { \
		type *at; \
		uint32_t count, room; \
	}
#define ARRAY_TYPE(name, type) \
	struct name { \
		type *at; \
		uint32_t count, room; \
	}

void array_grow(void *at_member, uint32_t *room, uint64_t need, size_t size);

/* Makes room for `more` entries after count. */
#define array_reserve(array, more) \
	do { \
		uint64_t array_need = (uint64_t)(array)->count + (more); \
		if (array_need > (array)->room) \
			array_grow(&(array)->at, &(array)->room, array_need, sizeof *(array)->at); \
	} while (0)

/* Appends an entry and yields it: array_push(&c->chunks) = (struct chunk){ ... }; */
#define array_push(array) \
	(*({ \
		array_reserve(array, 1); \
		&(array)->at[(array)->count++]; \
	}))

#endif
