/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/memory.h"
#include "profile/collect/collect.h"
#include "profile/stores/encode_push.h"
#include "tests/support/open.h"

/* One series of `count` Profiles, whose one function has a name of `name_len` bytes. */
static struct packet *series_of(uint32_t count, size_t name_len)
{
	struct profiles p = { 0 };
	struct collect_added added;
	struct error err = { 0 };
	char *name = memory_new(name_len + 1);
	memset(name, 'x', name_len);
	open_begin(&p, NULL);
	open_resource(&p, open_list(&p, open_attribute(&p, "service_name", "shop"), OPEN_END));
	open_scope(&p, "");
	uint32_t stack = open_frame(&p, name);
	for (uint32_t i = 0; i < count; i++) {
		open_profile(&p, "cpu", "nanoseconds")->time = 1000000000 * (uint64_t)(i + 1);
		open_value(&p, stack, (struct list){ 0 }, 1);
	}
	struct collect *collect = collect_new(&(struct collect_limits){ .hard_bytes = INT32_MAX });
	assert_int_equal(collect_add(collect, &p, false, &added, &err), COLLECT_ADDED);
	struct packet *packet = collect_seal(collect);
	collect_unref(&collect);
	profiles_fini(&p);
	memory_free(name);
	return packet;
}

static bool encode(uint32_t count, size_t name_len, struct bytes *out, struct error *err)
{
	struct packet *packet = series_of(count, name_len);
	bool ok = encode_push(packet, out, err);
	packet_unref(&packet);
	return ok;
}

static void a_series_is_encoded(void **state)
{
	(void)state;
	struct bytes out = { 0 };
	struct error err = { 0 };
	assert_true(encode(3, 100, &out, &err));
	assert_int_equal(encode_push_samples(bytes_view(&out)), 1);
	bytes_fini(&out);
}

/* Each pprof repeats the name. */
static void a_small_packet_cannot_become_a_huge_request(void **state)
{
	(void)state;
	struct bytes out = { 0 };
	struct error err = { 0 };
	assert_false(encode(200, 100000, &out, &err));
	assert_int_equal(err.kind, ERROR_TOO_LARGE);
	assert_true(out.room < 10 << 20);
	bytes_fini(&out);
}

static void without_data_it_is_a_request_without_series(void **state)
{
	(void)state;
	struct bytes out = { 0 };
	struct error err = { 0 };
	struct packet *packet = collect_nothing();
	assert_true(encode_push(packet, &out, &err));
	assert_int_equal(out.len, 0);
	bytes_fini(&out);
	packet_unref(&packet);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_series_is_encoded),
		cmocka_unit_test(a_small_packet_cannot_become_a_huge_request),
		cmocka_unit_test(without_data_it_is_a_request_without_series),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
