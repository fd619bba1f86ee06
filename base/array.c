/* SPDX-License-Identifier: Apache-2.0 */
#include "base/array.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

void array_grow(void *at_member, uint32_t *room, uint64_t need, size_t size)
{
	uint64_t want = *room ? *room : 16;
	while (want < need)
		want *= 2;
	if (want > UINT32_MAX)
		abort();
	void *at;
	memcpy(&at, at_member, sizeof at);
	at = memory_resize(at, want * size);
	memcpy(at_member, &at, sizeof at);
	*room = (uint32_t)want;
}
