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

static bool raise_max(struct bytes *b, size_t need)
{
	return b->meter && b->meter->raise(b->meter, b, need);
}

bool bytes_enlarge_raw(struct bytes *b, size_t more)
{
	size_t need = b->len + more;
	if (need < more || (need > b->max && !raise_max(b, need)))
		return false;
	size_t room = b->room ? b->room : b->max < 64 ? b->max : 64;
	while (room < need)
		room = room > b->max / 2 ? b->max : room * 2;
	b->at = memory_resize(b->at, room + BYTES_SLACK);
	memset(b->at + room, 0, BYTES_SLACK);
	b->room = room;
	return true;
}

bool bytes_enlarge(struct bytes *b, size_t more)
{
	if (!bytes_enlarge_raw(b, more))
		return false;
	memset(b->at + b->len, 0, b->room - b->len);
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

static bool raise_share(struct bytes_meter *meter, struct bytes *b, size_t need)
{
	struct bytes_share *share = (struct bytes_share *)meter;
	b->max += share->held;
	bool ok = share->whole->raise(share->whole, b, need + share->held);
	b->max -= share->held;
	return ok;
}

bool bytes_share(struct bytes_share *share, struct bytes *b, size_t held)
{
	size_t need = b->room + held;
	*share = (struct bytes_share){ { raise_share }, b->meter, held };
	if (!b->meter)
		return true;
	if (b->max < need && !b->meter->raise(b->meter, b, need))
		return false;
	b->max -= held;
	b->meter = &share->meter;
	return true;
}

void bytes_unshare(struct bytes_share *share, struct bytes *b)
{
	if (!share->whole)
		return;
	b->max += share->held;
	b->meter = share->whole;
}
