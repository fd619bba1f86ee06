/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/http_client.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/memory.h"
#include "config/load.h"
#include "net/http/http_server.h"

/* Our own server on the other side: it echoes, or, where the body says "wait", says nothing. */
enum { POSTS = 50 };

struct scene {
	struct http_server_config config;
	struct metrics *metrics;
	struct http_server *server;
	struct loop *loop;
	struct http_client *client;
	char *url;
	struct error err;
	int wanted, done, good;
	int status;
	char failure[32], body[64];
	struct http_exchange *_Atomic kept;
};

static void accept_body(void *context, struct http_exchange *x)
{
	(void)context;
	http_exchange_accept(x, 1 << 20);
}

static void answer(void *context, struct http_exchange *x, struct view body)
{
	struct scene *s = context;
	const char *coding = http_exchange_header(x, "content-encoding"),
		   *more = http_exchange_header(x, "x-more");
	if (view_is(body, "wait")) {
		s->kept = x;
		return;
	}
	char *text = memory_format("%.*s %s %s", (int)body.len, (const char *)body.at,
				   coding ? coding : "-", more ? more : "-");
	http_exchange_reply(x, &(struct http_reply){ .status = 202, .body = view_of(text) });
	memory_free(text);
}

static void never(void *context, struct http_exchange *x, bool too_large)
{
	(void)context;
	(void)x;
	(void)too_large;
}

static int begin(void **state)
{
	static const char yaml[] = "{endpoint: 127.0.0.1:0}";
	static const struct log log;
	struct scene *s = memory_new(sizeof *s);
	const struct http_route route = { .methods = "POST",
					  .headers = accept_body,
					  .body = answer,
					  .lost = never,
					  .context = s };
	struct node *node = config_parse("test", yaml, sizeof yaml - 1, &s->err);
	s->metrics = metrics_new();
	bool ok = config_bind(&http_server_table, node, "", &s->config, &s->err);
	node_unref(&node);
	s->server = ok ? http_server_start(&(struct http_server_options){ .config = &s->config,
									  .routes = &route,
									  .route_count = 1,
									  .log = &log,
									  .metrics = s->metrics },
					   &s->err)
		       : NULL;
	assert_non_null(s->server);
	s->url = memory_format("http://%s/x", http_server_address(s->server));
	s->loop = loop_new(&s->err);
	s->client = http_client_new(&(struct http_client_options){ .loop = s->loop,
								   .url = s->url,
								   .content_type = "a/b",
								   .user_agent = "test" },
				    &s->err);
	assert_non_null(s->client);
	*state = s;
	return 0;
}

static int end(void **state)
{
	struct scene *s = *state;
	http_client_unref(&s->client);
	loop_unref(&s->loop);
	http_server_stop(&s->server, 0);
	config_release(&http_server_table, &s->config);
	metrics_unref(&s->metrics);
	memory_free(s->url);
	memory_free(s);
	return 0;
}

static void on_done(void *argument, const struct http_result *result)
{
	struct scene *s = argument;
	s->status = result->status;
	snprintf(s->failure, sizeof s->failure, "%s", result->failure ? result->failure : "");
	snprintf(s->body, sizeof s->body, "%.*s", (int)result->body.len,
		 (const char *)result->body.at);
	s->good += result->status == 202 && !result->failure;
	if (++s->done == s->wanted)
		loop_stop(s->loop);
}

static void post(struct scene *s, const struct http_post *p)
{
	s->wanted = 1;
	http_client_post(s->client, p, on_done, s);
	loop_run(s->loop);
}

static void the_answer_is_heard_on_the_loop(void **state)
{
	struct scene *s = *state;
	const struct metadatum more[] = { { "X-More", "yes" }, { 0 } };
	post(s, &(struct http_post){
			.body = view_of("hello"), .content_encoding = "gzip", .headers = more });
	assert_int_equal(s->status, 202);
	assert_string_equal(s->failure, "");
	assert_string_equal(s->body, "hello gzip yes");
}

static void an_empty_body_is_posted_too(void **state)
{
	struct scene *s = *state;
	post(s, &(struct http_post){ .body = { 0 } });
	assert_string_equal(s->body, " - -");
}

static void *post_many(void *argument)
{
	struct scene *s = argument;
	for (int i = 0; i < POSTS; i++)
		http_client_post(s->client, &(struct http_post){ .body = view_of("hello") },
				 on_done, s);
	return NULL;
}

static void any_thread_may_post(void **state)
{
	struct scene *s = *state;
	pthread_t threads[3];
	s->wanted = 3 * POSTS;
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, post_many, s);
	loop_run(s->loop);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(s->good, 3 * POSTS);
}

static void nobody_there_is_no_answer(void **state)
{
	struct scene *s = *state;
	http_server_stop(&s->server, 0);
	post(s, &(struct http_post){ .body = view_of("hello") });
	assert_int_equal(s->status, 0);
	assert_string_equal(s->failure, "unavailable");
}

static void who_is_late_has_no_answer(void **state)
{
	struct scene *s = *state;
	post(s, &(struct http_post){ .body = view_of("wait"), .timeout_ns = 50000000 });
	assert_int_equal(s->status, 0);
	assert_string_equal(s->failure, "deadline_exceeded");
	http_exchange_reply(s->kept, &(struct http_reply){ .status = 200 });
}

static void *end_client(void *argument)
{
	struct scene *s = argument;
	while (!s->kept)
		sched_yield();
	http_client_unref(&s->client);
	return NULL;
}

static void the_end_of_the_client_cancels_what_is_under_way(void **state)
{
	struct scene *s = *state;
	pthread_t thread;
	s->wanted = 1;
	http_client_post(s->client, &(struct http_post){ .body = view_of("wait") }, on_done, s);
	pthread_create(&thread, NULL, end_client, s);
	loop_run(s->loop);
	pthread_join(thread, NULL);
	assert_string_equal(s->failure, "cancelled");
	http_exchange_reply(s->kept, &(struct http_reply){ .status = 200 });
}

static void what_was_posted_before_the_end_is_done_at_the_end(void **state)
{
	struct scene *s = *state;
	s->wanted = 1;
	http_client_post(s->client, &(struct http_post){ .body = view_of("hello") }, on_done, s);
	http_client_unref(&s->client); /* the loop does not run yet */
	loop_run(s->loop);
	assert_string_equal(s->failure, "cancelled");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_answer_is_heard_on_the_loop),
		TEST(an_empty_body_is_posted_too),
		TEST(any_thread_may_post),
		TEST(nobody_there_is_no_answer),
		TEST(who_is_late_has_no_answer),
		TEST(the_end_of_the_client_cancels_what_is_under_way),
		TEST(what_was_posted_before_the_end_is_done_at_the_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
