/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"
#include "profile/otlp/decode_otlp.h"
#include "tests/support/collecting.h"

/* Stacks in the order in which a tree is walked: most frames of each stack are in the one before
 * it, and are not written again (put_common of profile/collect/dictionary.c). The output must equal
 * the input, frame by frame. */
enum { STACKS = 400, DEEPEST = 150 };

struct walk {
	uint32_t depth, frames[DEEPEST]; /* root first */
	/* addresses of each stack, root first */
	uint32_t seen[STACKS][DEEPEST + 1], depths[STACKS];
	uint64_t random;
};

static uint32_t draw(struct walk *w, uint32_t below)
{
	w->random = hash_bytes(&w->random, sizeof w->random);
	return (uint32_t)(w->random % below);
}

static uint32_t location(struct profiles *p, uint32_t address, bool changed)
{
	uint32_t made = open_location(p, 0, address, 0, NONE);
	p->locations.at[made].changed = changed;
	return made;
}

/* Goes up and down by some frames. Each sample has its own leaf, so that samples do not merge. */
static void step(struct fixture *f, struct walk *w, uint32_t i, uint32_t first, uint32_t locations)
{
	uint32_t up = draw(w, draw(w, 4) ? 6 : DEEPEST), down = draw(w, 12);
	w->depth = up < w->depth ? w->depth - up : 0;
	while (down-- && w->depth < DEEPEST)
		w->frames[w->depth++] = first + draw(w, locations);
	struct list list = { f->p.indices.count, w->depth + 1 };
	assert_true(profiles_room(&f->p, &f->p.indices, list.count));
	f->p.indices.at[f->p.indices.count++] = location(&f->p, 1000000 + i, false);
	w->depths[i] = w->depth + 1;
	w->seen[i][w->depth] = 1000000 + i;
	for (uint32_t k = 0; k < w->depth; k++) {
		w->seen[i][k] = (uint32_t)f->p.locations.at[w->frames[k]].address;
		f->p.indices.at[list.first + list.count - 1 - k] = w->frames[k];
	}
	f->p.indices.count = list.first + list.count;
	open_value(&f->p, open_stack(&f->p, list), NONE, i + 1);
}

/* One of `changed` locations is changed by a processor; 0: none is changed. */
static void add_walk(struct fixture *f, struct walk *w, uint32_t locations, uint32_t changed)
{
	open_begin(&f->p, NULL);
	collecting_profile(f);
	uint32_t first = f->p.locations.count;
	for (uint32_t i = 0; i < locations; i++)
		location(&f->p, 1 + i, changed && !draw(w, changed));
	w->depth = 0;
	for (uint32_t i = 0; i < STACKS; i++)
		step(f, w, i, first, locations);
	assert_int_equal(collecting_add(f), COLLECT_ADDED);
}

static void check_stack(const struct profiles *p, const struct sample *s, const struct walk *w)
{
	struct list list = p->stacks.at[s->stack].locations;
	uint32_t i = *span_at(p, s->values);
	i = i & 0x80 ? (i & 0x7f) | (uint32_t)span_at(p, s->values)[1] << 7 : i;
	assert_int_equal(list.count, w->depths[--i]);
	for (uint32_t k = 0; k < list.count; k++)
		assert_int_equal(
			p->locations.at[p->indices.at[list.first + list.count - 1 - k]].address,
			w->seen[i][k]);
}

static void check_packet(struct fixture *f, const struct walk *walks, uint32_t count)
{
	struct packet *packet = collect_seal(f->c);
	struct profiles p = { 0 };
	assert_true(profiles_reset(&p, NULL, bytes_view(&packet->otlp), PROFILES_INPUT_MAX));
	assert_true(decode_otlp(&p, &f->err));
	assert_int_equal(p.samples.count, count * STACKS);
	for (uint32_t i = 0; i < p.samples.count; i++)
		check_stack(&p, &p.samples.at[i], &walks[i / STACKS]);
	profiles_fini(&p);
	packet_unref(&packet);
}

static void stacks_that_share_frames_arrive_as_they_were(void **state)
{
	struct fixture *f = *state;
	static const uint32_t locations[] = { 3, 100, 300, 17000 }, changed[] = { 0, 1, 50 };
	struct walk *walks = memory_array(2, sizeof *walks);
	for (uint32_t n = 0; n < 4; n++)
		for (uint32_t c = 0; c < 3; c++) {
			for (uint32_t r = 0; r < 2; r++) {
				walks[r].random = n * 10 + c * 2 + r;
				add_walk(f, &walks[r], locations[n], changed[c]);
			}
			check_packet(f, walks, 2);
		}
	memory_free(walks);
}

static uint32_t stack_of(struct profiles *p, const uint32_t *frames, uint32_t count)
{
	struct list list = { p->indices.count, count };
	assert_true(profiles_room(p, &p->indices, count));
	memcpy(&p->indices.at[list.first], frames, count * sizeof *frames);
	p->indices.count += count;
	return open_stack(p, list);
}

/* If a processor changed something, samples that became identical are merged, also in a Profile
 * whose stacks share the changed frame with one of another Profile. */
static void a_changed_frame_in_common_counts_for_every_profile(void **state)
{
	struct fixture *f = *state;
	collecting_profile(f);
	uint32_t frames[13];
	for (uint32_t i = 0; i < 13; i++)
		frames[i] = location(&f->p, 1 + i, i == 12);
	open_value(&f->p, stack_of(&f->p, frames + 1, 12), NONE, 1);
	open_profile(&f->p, "cpu", "ns");
	for (uint32_t i = 0; i < 2; i++)
		open_value(&f->p, stack_of(&f->p, frames, 13), NONE, 1);
	assert_int_equal(collecting_add(f), COLLECT_ADDED);
	assert_int_equal(f->added.samples_merged, 1);
}

/* In the next request, the same indices are other frames. */
static void requests_have_no_stacks_in_common(void **state)
{
	struct fixture *f = *state;
	uint32_t frames[10];
	for (uint32_t r = 0; r < 2; r++) {
		open_begin(&f->p, NULL);
		collecting_profile(f);
		for (uint32_t i = 0; i < 10; i++)
			frames[i] = location(&f->p, 1 + i + 16 * r, false);
		open_value(&f->p, stack_of(&f->p, frames, 10), NONE, 1);
		assert_int_equal(collecting_add(f), COLLECT_ADDED);
	}
	assert_leaves(f, HEAD "   1;2;3;4;5;6;7;8;9;a 1\n  profile type=cpu/ns\n   "
			      "11;12;13;14;15;16;17;18;19;1a 1\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, collecting_setup, collecting_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(stacks_that_share_frames_arrive_as_they_were),
		TEST(a_changed_frame_in_common_counts_for_every_profile),
		TEST(requests_have_no_stacks_in_common),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
