/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/memory.h"
#include "pipeline/batcher.h"
#include "tests/support/open.h"

/* A batcher of one shard whose packets are kept. */
struct fixture {
	struct loop *loop;
	struct metrics *metrics;
	struct budget budget;
	int64_t batched; /* samples */
	struct batch_settings settings;
	struct batcher *batcher;
	struct packet *packets[16];
	bool own[16]; /* has the request that was being added */
	uint32_t count, stop_at;
	size_t idle_bytes;
	bool full; /* no destination has room */
	struct profiles p;
};

static bool keep(void *context, struct packet *packet, struct request *request)
{
	struct fixture *f = context;
	f->own[f->count] = request != NULL;
	f->packets[f->count++] = packet;
	f->batched -= (int64_t)packet->samples;
	if (f->count == f->stop_at)
		loop_stop(f->loop);
	return !f->full;
}

static void count(void *context, const struct collect_added *added)
{
	((struct fixture *)context)->batched +=
		(int64_t)(added->samples_in - added->samples_merged);
}

static int setup(void **state)
{
	struct fixture *f = memory_new(sizeof *f);
	f->loop = loop_new(NULL);
	f->metrics = metrics_new();
	budget_init(&f->budget, INT64_C(1) << 40, 0);
	f->idle_bytes = 1 << 30;
	f->settings = (struct batch_settings){ .on = true,
					       .timeout = { INT64_C(3600000000000) },
					       .size = 1000000 };
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	batcher_unref(&f->batcher);
	for (uint32_t i = 0; i < f->count; i++)
		packet_unref(&f->packets[i]);
	assert_int_equal(f->budget.charged, 0);
	profiles_fini(&f->p);
	loop_unref(&f->loop);
	metrics_unref(&f->metrics);
	memory_free(f);
	return 0;
}

static void begin(struct fixture *f)
{
	f->batcher = batcher_new(&(struct batcher_options){
		.settings = &f->settings,
		.shards = 1,
		.loop = f->loop,
		.budget = &f->budget,
		.collected = count,
		.idle_bytes = f->idle_bytes,
		.emit = keep,
		.context = f,
	});
}

/* A request with this number of different samples. */
static enum batcher_result add_as(struct fixture *f, uint32_t samples,
				  const struct metadatum *metadata)
{
	struct request request = { .receiver = "otlp", .arrival = 1, .metadata = metadata };
	struct collect_added added = { 0 };
	struct error err;
	open_begin(&f->p, &request);
	uint32_t stack = open_frame(&f->p, "main");
	open_resource(&f->p, (struct list){ 0 });
	open_scope(&f->p, "");
	open_profile(&f->p, "cpu", "ns");
	for (uint32_t i = 0; i < samples; i++)
		open_value(&f->p, stack, (struct list){ 0 }, i + 1);
	return batcher_add(f->batcher, &f->p, &added, &err);
}

static void add(struct fixture *f, uint32_t samples, const struct metadatum *metadata)
{
	assert_int_equal(add_as(f, samples, metadata), BATCHER_TAKEN);
}

static void without_batching_every_request_leaves_at_once(void **state)
{
	struct fixture *f = *state;
	f->settings.on = false;
	begin(f);
	add(f, 2, NULL);
	add(f, 3, NULL);
	assert_int_equal(f->count, 2);
	assert_int_equal(f->packets[1]->samples, 3);
	assert_true(f->own[0] && f->own[1]);
}

static void a_batch_closes_when_it_has_send_batch_size_samples(void **state)
{
	struct fixture *f = *state;
	f->settings.size = 5;
	begin(f);
	add(f, 4, NULL);
	assert_int_equal(f->count, 0);
	assert_int_equal(f->batched, 4);
	add(f, 4, NULL);
	assert_int_equal(f->count, 1);
	assert_int_equal(f->packets[0]->samples, 8);
	assert_int_equal(f->packets[0]->contribution_count, 2);
	assert_int_equal(f->batched, 0);
}

/* Many requests of one size. Each batch that is sent is smaller than the limit. */
static void where_memory_is_short_batches_are_smaller_than_the_settings_allow(void **state)
{
	struct fixture *f = *state;
	f->settings.max_bytes = 1 << 20;
	begin(f);
	batcher_bound(f->batcher, 4096);
	for (int i = 0; i < 20; i++)
		add(f, 100, NULL);
	assert_true(f->count >= 3);
	for (uint32_t i = 0; i < f->count; i++)
		assert_in_range(f->packets[i]->otlp.len, 1024, 4096);
}

static void a_batch_closes_before_it_passes_the_maximum(void **state)
{
	struct fixture *f = *state;
	f->settings.max_size = 5;
	begin(f);
	add(f, 4, NULL);
	add(f, 2, NULL);
	assert_int_equal(f->count, 1);
	assert_int_equal(f->packets[0]->samples, 4);
	add(f, 9, NULL); /* larger than the maximum: sent alone */
	assert_int_equal(f->count, 2);
	assert_int_equal(f->packets[1]->samples, 2);
	for (int i = 0; i < 2; i++)
		assert_false(f->own[i]); /* it has earlier requests only */
}

static void a_batch_closes_before_its_bytes_pass_the_maximum(void **state)
{
	struct fixture *f = *state;
	begin(f);
	add(f, 100, NULL);
	batcher_flush(f->batcher);
	size_t one = f->packets[0]->otlp.len;
	batcher_unref(&f->batcher);
	f->settings.max_bytes = one + 10;
	begin(f);
	add(f, 100, NULL);
	add(f, 100, NULL);
	assert_int_equal(f->count, 2);
	assert_true(f->packets[1]->otlp.len <= one + 10);
}

static void an_old_batch_closes_by_itself(void **state)
{
	struct fixture *f = *state;
	f->settings.timeout.ns = 1000000;
	f->stop_at = 1;
	begin(f);
	add(f, 1, NULL);
	loop_run(f->loop);
	assert_int_equal(f->count, 1);
}

static void a_batch_closes_when_it_has_so_many_bytes(void **state)
{
	struct fixture *f = *state;
	f->settings.size = 1; /* has no effect in this case */
	begin(f);
	add(f, 100, NULL);
	uint64_t one = f->packets[0]->otlp.len;
	batcher_unref(&f->batcher);
	f->settings.bytes = one * 2;
	begin(f);
	for (int i = 0; i < 8 && f->count < 2; i++)
		add(f, 100, NULL);
	assert_int_equal(f->count, 2);
	assert_true(f->packets[1]->otlp.len >= one * 2);
	assert_true(f->packets[1]->otlp.len < one * 4);
}

static void requests_with_different_batch_keys_never_share_a_batch(void **state)
{
	struct fixture *f = *state;
	char *keys[] = { (char *)"X-Tenant" };
	const struct metadatum a[] = { { "x-tenant", "a" }, { 0 } },
			       b[] = { { "x-tenant", "b" }, { 0 } };
	f->settings.metadata_keys = (struct strings){ keys, 1 };
	f->settings.metadata_limit = 10;
	begin(f);
	add(f, 1, a);
	add(f, 2, b);
	add(f, 4, a);
	add(f, 8, NULL);
	batcher_flush(f->batcher);
	assert_int_equal(f->count, 3);
	uint64_t sizes = 0;
	for (uint32_t i = 0; i < 3; i++)
		sizes |= UINT64_C(1) << f->packets[i]->samples;
	assert_int_equal(sizes, 1 << 5 | 1 << 2 | 1 << 8);
}

static void empty_batches_of_many_keys_keep_no_more_than_their_share(void **state)
{
	struct fixture *f = *state;
	char *keys[] = { (char *)"x-tenant" };
	f->settings.metadata_keys = (struct strings){ keys, 1 };
	f->settings.metadata_limit = 1000;
	f->settings.size = 2;
	f->idle_bytes = 1000 * 100; /* too little for an empty batch */
	begin(f);
	for (char name[2] = "a"; name[0] <= 'n'; name[0]++)
		add(f, name[0] % 2 + 1, (const struct metadatum[]){ { "x-tenant", name }, { 0 } });
	assert_int_equal(f->count, 7); /* large enough */
	assert_true(f->budget.charged > 0);
	batcher_flush(f->batcher);
	assert_int_equal(f->count, 14);
	assert_int_equal(f->budget.charged, 0);
}

static void beyond_the_limit_of_batch_keys_the_oldest_batch_closes(void **state)
{
	struct fixture *f = *state;
	char *keys[] = { (char *)"x-tenant" };
	f->settings.metadata_keys = (struct strings){ keys, 1 };
	f->settings.metadata_limit = 2;
	begin(f);
	for (char name[2] = "a"; name[0] <= 'd'; name[0]++)
		add(f, (uint32_t)(name[0] - 'a' + 1),
		    (const struct metadatum[]){ { "x-tenant", name }, { 0 } });
	assert_int_equal(f->count, 2);
	assert_int_equal(f->packets[0]->samples, 1);
	assert_int_equal(f->packets[1]->samples, 2);
}

static void after_a_flush_nothing_stays_open(void **state)
{
	struct fixture *f = *state;
	begin(f);
	add(f, 1, NULL);
	batcher_flush(f->batcher);
	assert_int_equal(f->count, 1);
	add(f, 2, NULL);
	assert_int_equal(f->count, 2);
}

static void without_a_timeout_every_request_leaves_at_once(void **state)
{
	struct fixture *f = *state;
	f->settings.timeout.ns = 0;
	begin(f);
	add(f, 2, NULL);
	assert_int_equal(f->count, 1);
}

static void without_a_size_every_request_leaves_at_once(void **state)
{
	struct fixture *f = *state;
	f->settings.size = 0;
	begin(f);
	add(f, 2, NULL);
	assert_int_equal(f->count, 1);
}

static void a_request_that_no_destination_takes_is_told_so(void **state)
{
	struct fixture *f = *state;
	f->settings.on = false;
	f->full = true;
	begin(f);
	assert_int_equal(add_as(f, 2, NULL), BATCHER_LOST);
	assert_int_equal(f->count, 1);
}

/* With a budget smaller than the capacity that empty batches keep, everything would be refused
 * forever. */
static void empty_batches_keep_no_more_than_their_share(void **state)
{
	struct fixture *f = *state;
	char *keys[] = { (char *)"x-tenant" };
	f->settings.metadata_keys = (struct strings){ keys, 1 };
	f->settings.metadata_limit = 20;
	f->idle_bytes = 100 << 10;
	begin(f);
	for (char name[2] = "a"; name[0] < 'a' + 10; name[0]++)
		add(f, 10000, (const struct metadatum[]){ { "x-tenant", name }, { 0 } });
	assert_true(f->budget.charged > 1 << 20);
	batcher_flush(f->batcher);
	assert_int_equal(f->count, 10);
	assert_true(f->budget.charged < 200 << 10);
}

/* Many times the size that the body suggests, for example because of references or processors. It
 * is charged first, and released later. */
static void what_outgrows_its_charge_is_charged_first(void **state)
{
	struct fixture *f = *state;
	begin(f);
	f->budget.limit = f->budget.soft = 1 << 20;
	assert_int_equal(add_as(f, 100000, NULL), BATCHER_FAILED);
	assert_true(f->budget.charged < 9 << 18); /* the capacity that an empty batch may keep */
	add(f, 100, NULL);
	assert_int_equal(add_as(f, 100000, NULL), BATCHER_FAILED);
	f->budget.limit = f->budget.soft = 300 << 20;
	add(f, 100000, NULL);
	batcher_flush(f->batcher);
	assert_int_equal(f->count, 1);
	assert_int_equal(f->packets[0]->samples, 100100);
}

static void want_of_memory_is_told_as_such(void **state)
{
	struct error err;
	struct budget budget;
	(void)state;
	budget_init(&budget, 1 << 20, 0);
	assert_false(budget_refuse(&budget, 1 << 19, &err));
	assert_int_equal(err.kind, ERROR_BUSY);
	assert_true(err.short_of_memory);
	assert_false(budget_refuse(&budget, 1 << 21, &err));
	assert_int_equal(err.kind, ERROR_TOO_LARGE);
	assert_false(err.short_of_memory);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_batching_every_request_leaves_at_once),
		TEST(a_batch_closes_when_it_has_send_batch_size_samples),
		TEST(where_memory_is_short_batches_are_smaller_than_the_settings_allow),
		TEST(a_batch_closes_before_it_passes_the_maximum),
		TEST(a_batch_closes_before_its_bytes_pass_the_maximum),
		TEST(an_old_batch_closes_by_itself),
		TEST(a_batch_closes_when_it_has_so_many_bytes),
		TEST(requests_with_different_batch_keys_never_share_a_batch),
		TEST(empty_batches_of_many_keys_keep_no_more_than_their_share),
		TEST(beyond_the_limit_of_batch_keys_the_oldest_batch_closes),
		TEST(after_a_flush_nothing_stays_open),
		TEST(without_a_timeout_every_request_leaves_at_once),
		TEST(without_a_size_every_request_leaves_at_once),
		TEST(a_request_that_no_destination_takes_is_told_so),
		TEST(empty_batches_keep_no_more_than_their_share),
		TEST(what_outgrows_its_charge_is_charged_first),
		TEST(want_of_memory_is_told_as_such),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
