/* SPDX-License-Identifier: Apache-2.0 */
#include "exporters/load_balancing_members.h"
#include "tests/pipeline/delivery/delivery_fixture.h"

/* What the exporter load_balancing says of its members; nothing is sent. */
static const struct grpc_method method = { "/test.Service/Method", NULL };

static void list(struct load_balancing_members *members, const uint32_t *avoided)
{
	struct load_balancing_candidate candidates[LOAD_BALANCING_MEMBERS_MAX];
	size_t count = load_balancing_members_list(members, avoided, candidates);
	assert_int_equal(count, 1);
	assert_int_equal(candidates[0].avoided, avoided != NULL);
}

static char endpoint[] = "127.0.0.1:4317";

/* One member, with this endpoint. */
static void open_members(struct load_balancing_members *members, const struct host *host)
{
	static const struct grpc_sender_config config = { .tls = { .insecure = true } };
	char *endpoints[] = { endpoint };
	load_balancing_members_init(members, &(struct load_balancing_members_options){
						     .host = host,
						     .config = &config,
						     .method = &method,
						     .resolver = "static" });
	assert_true(load_balancing_members_set(members, endpoints, 1, NULL));
}

static void a_member_that_is_avoided_again_and_again_gets_two_lines(void **state)
{
	struct fixture *f = *state;
	struct load_balancing_members members = { 0 };
	const struct host host = { .id = "load_balancing", .metrics = f->metrics, .loop = f->loop };
	const uint32_t avoided[] = { 1, 0 };
	log_to_file();
	open_members(&members, &host);
	for (int i = 0; i < 10; i++) {
		list(&members, avoided);
		list(&members, NULL);
	}
	load_balancing_members_stop(&members);
	load_balancing_members_fini(&members);
	assert_int_equal(logged(endpoint), 2);
}

static _Atomic bool stopped;

static void *stop(void *members)
{
	load_balancing_members_stop(members);
	load_balancing_members_fini(members);
	stopped = true;
	return NULL;
}

/* The call of a thread may end, and with it the exporter, before the thread is done with it. */
static void a_member_is_not_freed_while_a_thread_uses_it(void **state)
{
	struct fixture *f = *state;
	struct load_balancing_members members = { 0 };
	const struct host host = { .id = "load_balancing", .metrics = f->metrics, .loop = f->loop };
	pthread_t thread;
	open_members(&members, &host);
	struct load_balancing_member *member = load_balancing_members_use(&members, 1);
	assert_non_null(member);
	assert_int_equal(pthread_create(&thread, NULL, stop, &members), 0);
	for (int i = 0; i < 200 && !stopped; i++)
		usleep(1000);
	assert_false(stopped);
	load_balancing_members_used(member);
	pthread_join(thread, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_member_that_is_avoided_again_and_again_gets_two_lines),
		TEST(a_member_is_not_freed_while_a_thread_uses_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
