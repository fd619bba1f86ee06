/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bytes.h"
#include "base/memory.h"

#include <stdarg.h>
#include <stdio.h>

void bytes_fini(struct bytes *b)
{
	memory_free(b->at);
	*b = (struct bytes){ .max = b->max };
}

bool bytes_enlarge(struct bytes *b, size_t more)
{
	if (more > b->max || b->len > b->max - more)
		return false;
	size_t need = b->len + more;
	size_t room = b->room ? b->room : b->max < 64 ? b->max : 64;
	while (room < need)
		room = room > b->max / 2 ? b->max : room * 2;
	b->at = memory_resize(b->at, room + BYTES_SLACK);
	memset(b->at + b->len, 0, room + BYTES_SLACK - b->len);
	b->room = room;
	return true;
}

void bytes_trim(struct bytes *b)
{
	if (b->room == b->len)
		return;
	b->at = memory_resize(b->at, b->len + BYTES_SLACK);
	b->room = b->len;
	memset(b->at + b->len, 0, BYTES_SLACK);
}

bool bytes_format(struct bytes *b, const char *format, ...)
{
	va_list args, again;
	va_start(args, format);
	va_copy(again, args);
	int len = vsnprintf(NULL, 0, format, args);
	va_end(args);
	bool ok = len >= 0 && bytes_reserve(b, (size_t)len + 1);
	if (ok) {
		vsnprintf((char *)b->at + b->len, (size_t)len + 1, format, again);
		b->len += (size_t)len;
	}
	va_end(again);
	return ok;
}
