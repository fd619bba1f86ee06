/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stddef.h>

/*
 * The only door to the allocator (make lint refuses malloc elsewhere). Sizes that a peer can choose
 * are bounded before they come here; running out of memory for what is left ends the process.
 */
void *memory_new(size_t size);                      /* zeroed */
void *memory_array(size_t count, size_t size);      /* zeroed; aborts on overflow */
void *memory_resize(void *old, size_t size);        /* like realloc */
char *memory_text(const char *text);                /* a copy; NULL stays NULL */
char *memory_text_of(const void *data, size_t len); /* a NUL-terminated copy */
char *memory_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
void memory_free(void *old); /* accepts NULL */

#endif
