/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

/* Nanoseconds. `now` is monotonic, `wall` since the Unix epoch. */
uint64_t clock_now(void);
uint64_t clock_wall(void);

#endif
