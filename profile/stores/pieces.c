/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/stores/pieces.h"
#include "base/array.h"
#include "base/memory.h"
#include "profile/collect/split.h"

#define MS UINT64_C(1000000)

struct pieces {                /* of one Profile, and of the other Profiles of its pprof */
	uint64_t series, own;  /* own: the time of the Profile, which the first piece keeps */
	ARRAY(uint64_t) times; /* of the other pieces */
	uint32_t at;           /* the number of pieces that the current Profile has so far */
};

static uint64_t next_time(struct pieces *pieces, struct slots *slots)
{
	uint32_t count = pieces->times.count;
	if (pieces->at == count)
		array_push(&pieces->times) =
			slots_take(slots, pieces->series,
				   (count ? pieces->times.at[count - 1] : pieces->own) + MS);
	return pieces->times.at[pieces->at++];
}

/* `first` is the part in which the Profile begins. */
static void begin(struct pieces *pieces, const struct part *first, uint64_t series)
{
	if (pieces->own != first->packet->newest || pieces->series != series)
		pieces->times.count = 0;
	pieces->own = first->packet->newest;
	pieces->series = series;
	pieces->at = 0;
}

static void set_time(struct regroup *r, struct profiles *p, uint64_t time)
{
	for (uint32_t i = 0; i < p->profiles.count; i++)
		p->profiles.at[i].time = time;
	r->moved++;
}

static bool move(struct regroup *r, struct part *part, struct pieces *pieces, struct error *err)
{
	static const struct limits none;
	struct profiles p = { 0 };
	struct parts fresh = { 0 };
	bool ok = split_open(part->packet, &p, err);
	if (ok) {
		if (!part[-1].continues)
			begin(pieces, part - 1, regroup_key(&p));
		set_time(r, &p, next_time(pieces, r->slots));
		ok = split_profiles(&p, part->packet, &none, NULL, &fresh, err) && fresh.count == 1;
	}
	if (ok) {
		packet_unref(&part->packet);
		part->packet = packet_ref(fresh.at[0].packet);
	}
	parts_fini(&fresh);
	profiles_fini(&p);
	return ok;
}

bool pieces_move(struct regroup *r, struct parts *parts, uint32_t first, struct error *err)
{
	struct pieces pieces = { 0 };
	bool ok = true;
	for (uint32_t i = first; i < parts->count && ok; i++)
		ok = !parts->at[i].continues || move(r, &parts->at[i], &pieces, err);
	memory_free(pieces.times.at);
	return ok;
}
