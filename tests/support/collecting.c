/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/collecting.h"

const struct collect_limits collecting_wide = { .max_bytes = 8 << 20, .hard_bytes = 16 << 20 };

int collecting_setup(void **state)
{
	struct fixture *f = memory_new(sizeof *f);
	f->c = collect_new(&collecting_wide);
	open_begin(&f->p, NULL);
	*state = f;
	return 0;
}

int collecting_teardown(void **state)
{
	struct fixture *f = *state;
	profiles_fini(&f->p);
	collect_unref(&f->c);
	memory_free(f);
	return 0;
}

void collecting_limit(struct fixture *f, struct collect_limits limits)
{
	collect_unref(&f->c);
	f->c = collect_new(&limits);
}

enum collect_result collecting_add(struct fixture *f)
{
	return collect_add(f->c, &f->p, false, &f->added, &f->err);
}

void assert_leaves(struct fixture *f, const char *expected)
{
	size_t bytes = collect_bytes(f->c);
	struct packet *packet = collect_seal(f->c);
	assert_int_equal(packet->otlp.len, bytes);
	const char *breach = oracle_breach(bytes_view(&packet->otlp));
	if (breach)
		fail_msg("%s", breach);
	char *text = oracle_text(bytes_view(&packet->otlp));
	assert_string_equal(text, expected);
	memory_free(text);
	packet_unref(&packet);
}

void assert_collects(struct fixture *f, const char *expected)
{
	assert_int_equal(collecting_add(f), COLLECT_ADDED);
	assert_leaves(f, expected);
}

void collecting_profile(struct fixture *f)
{
	open_resource(&f->p, NONE);
	open_scope(&f->p, "");
	open_profile(&f->p, "cpu", "ns");
}

void collecting_changed_profile(struct fixture *f)
{
	collecting_profile(f);
	f->p.profiles.at[0].changed = 1;
}
