/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/inbound.h"

enum { STEP = 16384 };

static size_t double_to(size_t room, size_t need, size_t limit)
{
	room = room > STEP / 2 ? room : STEP / 2;
	do
		room = room > limit / 2 ? limit : 2 * room;
	while (room < need && room < limit);
	return room;
}

bool gate_grow(struct gate *gate, struct inbound *in, size_t need, size_t limit, size_t *room,
	       struct error *err)
{
	size_t rounded = (need + STEP - 1) / STEP * STEP, step = double_to(*room, need, limit);
	if (need <= *room)
		return true;
	if (!gate_charge(gate, in, step, err)) {
		step = rounded < limit ? rounded : limit;
		if (!gate_charge(gate, in, step, err))
			return false;
	}
	*room = step;
	return true;
}
