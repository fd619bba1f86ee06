/* SPDX-License-Identifier: Apache-2.0 */
#include "net/schedule.h"

#include "base/clock.h"
#include "base/memory.h"

struct schedule {
	void (*fire)(void *context, struct schedule_entry *entry);
	void *context;
	struct loop_timer *timer;
	uint64_t armed; /* for when; 0: not */
	struct schedule_entry **heap;
	size_t count, room; /* heap[1] is due first; heap[0] is unused */
};

static void put(struct schedule *s, struct schedule_entry *entry, size_t place)
{
	s->heap[place] = entry;
	entry->place = place;
}

static void rise(struct schedule *s, struct schedule_entry *entry)
{
	size_t place = entry->place;
	for (; place > 1 && s->heap[place / 2]->due > entry->due; place /= 2)
		put(s, s->heap[place / 2], place);
	put(s, entry, place);
}

static void sink(struct schedule *s, struct schedule_entry *entry)
{
	size_t place = entry->place;
	for (size_t child; (child = place * 2) <= s->count; place = child) {
		if (child < s->count && s->heap[child + 1]->due < s->heap[child]->due)
			child++;
		if (s->heap[child]->due >= entry->due)
			break;
		put(s, s->heap[child], place);
	}
	put(s, entry, place);
}

static void take_out(struct schedule *s, struct schedule_entry *entry)
{
	struct schedule_entry *last = s->heap[s->count--];
	size_t place = entry->place;
	entry->place = 0;
	if (last == entry)
		return;
	put(s, last, place);
	rise(s, last);
	sink(s, last);
}

static void arm(struct schedule *s)
{
	uint64_t now = clock_now(), due = s->count ? s->heap[1]->due : 0;
	if (!due || due == s->armed)
		return;
	s->armed = due;
	loop_timer_start(s->timer, due > now ? due - now : 0);
}

static void on_timer(void *context)
{
	struct schedule *s = context;
	uint64_t now = clock_now();
	s->armed = 0;
	while (s->count && s->heap[1]->due <= now) {
		struct schedule_entry *entry = s->heap[1];
		take_out(s, entry);
		s->fire(s->context, entry);
	}
	arm(s);
}

struct schedule *schedule_new(struct loop *loop,
			      void (*fire)(void *context, struct schedule_entry *entry),
			      void *context)
{
	struct schedule *s = memory_new(sizeof *s);
	s->fire = fire;
	s->context = context;
	s->timer = loop_timer_new(loop, on_timer, s);
	return s;
}

void schedule_unref(struct schedule **slot)
{
	struct schedule *s = *slot;
	*slot = NULL;
	if (!s)
		return;
	loop_timer_unref(&s->timer);
	memory_free(s->heap);
	memory_free(s);
}

void schedule_add(struct schedule *s, struct schedule_entry *entry, uint64_t due)
{
	if (entry->place)
		take_out(s, entry);
	if (s->count + 1 >= s->room) {
		s->room = s->room ? s->room * 2 : 64;
		s->heap = memory_resize(s->heap, s->room * sizeof(struct schedule_entry *));
	}
	entry->due = due;
	put(s, entry, ++s->count);
	rise(s, entry);
	arm(s);
}

void schedule_remove(struct schedule *s, struct schedule_entry *entry)
{
	if (entry->place)
		take_out(s, entry);
}
