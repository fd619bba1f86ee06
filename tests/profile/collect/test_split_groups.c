/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "profile/collect/split.h"
#include "tests/support/collecting.h"

/* Resources in groups 1, 1, 2, 1, with 2 Profiles of 3 samples each: what a part holds, as
 * resources/samples. */
static void assert_groups(struct fixture *f, struct limits limits, const char *expected)
{
	static const uint32_t groups[] = { 1, 1, 2, 1 };
	struct parts parts = { 0 };
	char shape[200] = "";
	struct packet whole = { .otlp.len = 1 << 20 };
	limits.groups = groups;
	if (!split_profiles(&f->p, &whole, &limits, NULL, &parts, &f->err))
		fail_msg("%s", f->err.text);
	for (uint32_t i = 0; i < parts.count; i++) {
		const struct packet *part = parts.at[i].packet;
		const char *breach = oracle_breach(bytes_view(&part->otlp));
		size_t len = strlen(shape);
		if (breach)
			fail_msg("%s", breach);
		snprintf(shape + len, sizeof shape - len, "%s%u/%u", i ? " " : "", part->resources,
			 (unsigned)part->samples);
	}
	assert_string_equal(shape, expected);
	parts_fini(&parts);
}

static void a_part_has_resources_of_one_group(void **state)
{
	struct fixture *f = *state;
	for (int r = 0; r < 4; r++) {
		open_resource(&f->p, LIST(open_integer(&f->p, "pid", r, "")));
		open_scope(&f->p, "");
		for (int i = 0; i < 6; i++) {
			if (i % 3 == 0)
				open_profile(&f->p, "cpu", "ns");
			open_value(&f->p, open_frame(&f->p, "main"), NONE, i);
		}
	}
	assert_groups(f, (struct limits){ 0 }, "2/12 1/6 1/6");
	assert_groups(f, (struct limits){ .samples = 9 }, "2/9 1/3 1/6 1/6");
	assert_groups(f, (struct limits){ .resources = 1 }, "1/6 1/6 1/6 1/6");
	assert_groups(f, (struct limits){ .profiles = 3 }, "2/9 1/3 1/6 1/6");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_part_has_resources_of_one_group),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
