/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/http_client.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "config/load.h"
#include "net/http/http_server.h"

/* The peer is our own server. It echoes a POST, or never replies if the body is "wait". A GET of
 * /document returns the number of bytes in the query. /wait never replies. */
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
	size_t length; /* of the body */
	struct bytes document;
	uint64_t timeout_ns; /* of get */
	struct http_exchange *_Atomic kept;
};

/* What libuv asks of the kernel on this thread, which runs the loop. */
static _Thread_local int changes, waits;

__attribute__((visibility("default"))) int epoll_ctl(int epoll, int what, int fd,
						     struct epoll_event *event)
{
	changes++;
	return (int)syscall(SYS_epoll_ctl, epoll, what, fd, event);
}

__attribute__((visibility("default"))) int epoll_pwait(int epoll, struct epoll_event *events,
						       int max, int ms, const sigset_t *signals)
{
	waits++;
	return (int)syscall(SYS_epoll_pwait, epoll, events, max, ms, signals, 8);
}

__attribute__((visibility("default"))) int epoll_wait(int epoll, struct epoll_event *events,
						      int max, int ms)
{
	return epoll_pwait(epoll, events, max, ms, NULL);
}

static _Atomic int inits; /* any thread may post */

__attribute__((visibility("default"))) CURL *curl_easy_init(void)
{
	CURL *(*real)(void);
	*(void **)&real = dlsym(RTLD_NEXT, "curl_easy_init");
	inits++;
	return real();
}

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

static void get_document(void *context, struct http_exchange *x)
{
	const struct metadatum *query;
	const char *more = http_exchange_header(x, "x-more");
	(void)context;
	assert_true(http_exchange_query(x, &query, NULL));
	size_t length = query && query->name ? strtoul(query->value, NULL, 10) : 0;
	uint8_t *body = memory_new(length + 1);
	snprintf((char *)body, length, "%s", more ? more : "-");
	http_exchange_reply(x, &(struct http_reply){ .status = 200, .body = { body, length } });
	memory_free(body);
}

static void keep_waiting(void *context, struct http_exchange *x, struct view body)
{
	struct scene *s = context;
	(void)body;
	s->kept = x;
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
	const struct http_route routes[] = {
		{ .path = "/x",
		  .methods = "POST",
		  .headers = accept_body,
		  .body = answer,
		  .lost = never,
		  .context = s },
		{ .path = "/document", .methods = "GET", .headers = get_document },
		{ .path = "/wait",
		  .methods = "GET",
		  .headers = accept_body,
		  .body = keep_waiting,
		  .lost = never,
		  .context = s },
	};
	struct node *node = config_parse("test", yaml, sizeof yaml - 1, &s->err);
	s->metrics = metrics_new();
	bool ok = config_bind(&http_server_table, node, "", &s->config, &s->err);
	node_unref(&node);
	s->server = ok ? http_server_start(&(struct http_server_options){ .config = &s->config,
									  .routes = routes,
									  .route_count = 3,
									  .log = &log,
									  .metrics = s->metrics },
					   &s->err)
		       : NULL;
	assert_non_null(s->server);
	s->url = memory_format("http://%s/x", http_server_address(s->server));
	s->loop = loop_new(&s->err);
	s->timeout_ns = UINT64_C(10000000000);
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
	bytes_fini(&s->document);
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
	s->length = result->body.len;
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

static void a_header_without_a_value_is_not_sent(void **state)
{
	struct scene *s = *state;
	const struct metadatum more[] = { { "X-More", NULL }, { 0 } };
	assert_true(http_client_check_headers(more, &s->err));
	post(s, &(struct http_post){ .body = view_of("hello"), .headers = more });
	assert_string_equal(s->body, "hello - -");
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

static void requests_share_a_handle_and_no_header(void **state)
{
	struct scene *s = *state;
	const struct metadatum more[] = { { "X-More", "yes" }, { 0 } };
	inits = 0;
	for (int i = 0; i < POSTS; i++) {
		struct http_post p = { .body = view_of(i % 3 ? "hello" : "") };
		p.content_encoding = i % 2 ? "gzip" : NULL;
		p.headers = i % 5 ? NULL : more;
		s->done = 0;
		post(s, &p);
		char *expected = memory_format("%s %s %s", i % 3 ? "hello" : "",
					       i % 2 ? "gzip" : "-", i % 5 ? "-" : "yes");
		assert_string_equal(s->body, expected);
		memory_free(expected);
	}
	assert_int_equal(inits, 2); /* the first one has opened the connection */
}

static void a_connection_is_watched_until_it_is_closed(void **state)
{
	struct scene *s = *state;
	post(s, &(struct http_post){ .body = view_of("hello") });
	changes = 0;
	for (int i = 0; i < POSTS; i++) {
		s->done = 0;
		post(s, &(struct http_post){ .body = view_of("hello") });
		assert_int_equal(s->status, 202);
	}
	assert_int_equal(changes, 0);
}

static void stop_loop(void *argument)
{
	loop_stop(argument);
}

static void the_end_of_an_idle_connection_wakes_the_loop_once(void **state)
{
	struct scene *s = *state;
	struct loop_timer *timer = loop_timer_new(s->loop, stop_loop, s->loop);
	post(s, &(struct http_post){ .body = view_of("hello") });
	http_server_stop(&s->server, 0);
	waits = 0;
	loop_timer_start(timer, 100000000);
	loop_run(s->loop);
	assert_in_range(waits, 1, 5);
	loop_timer_unref(&timer);
	s->done = 0;
	post(s, &(struct http_post){ .body = view_of("hello") });
	assert_string_equal(s->failure, "unavailable");
}

static void who_is_late_has_no_answer(void **state)
{
	struct scene *s = *state;
	post(s, &(struct http_post){ .body = view_of("wait"), .timeout_ns = 500000000 });
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

/* Of our server, unless the target is a URL. */
static uint64_t get(struct scene *s, const char *target, size_t max_bytes)
{
	const struct metadatum more[] = { { "X-More", "yes" }, { 0 } };
	char *url = *target == '/'
			    ? memory_format("http://%s%s", http_server_address(s->server), target)
			    : memory_text(target);
	s->wanted = 1;
	bytes_fini(&s->document);
	bytes_init(&s->document, max_bytes);
	uint64_t number = http_client_get(s->client,
					  &(struct http_get){ .url = url,
							      .headers = more,
							      .timeout_ns = s->timeout_ns,
							      .body = &s->document },
					  on_done, s);
	memory_free(url);
	return number;
}

static void a_document_comes_whole(void **state)
{
	struct scene *s = *state;
	assert_int_not_equal(get(s, "/document?length=300000", 300000), 0);
	loop_run(s->loop);
	assert_int_equal(s->status, 200);
	assert_string_equal(s->failure, "");
	assert_int_equal(s->length, 300000);
	assert_string_equal(s->body, "yes");
}

static void a_document_that_does_not_fit_is_a_failure(void **state)
{
	struct scene *s = *state;
	get(s, "/document?length=300001", 300000);
	loop_run(s->loop);
	assert_int_equal(s->status, 200);
	assert_string_equal(s->failure, "too_large");
}

static void what_is_no_url_is_a_failure(void **state)
{
	static const char *const urls[] = { "http://", "x:y:z", "file:///etc/passwd", "" };
	struct scene *s = *state;
	for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
		s->done = 0;
		get(s, urls[i], 1000);
		loop_run(s->loop);
		assert_string_not_equal(s->failure, "");
		assert_int_equal(s->status, 0);
		assert_int_equal(s->length, 0);
	}
}

/* libcurl closes such a socket without a callback. */
static void a_connection_that_is_not_made_is_not_watched(void **state)
{
	struct scene *s = *state;
	struct sockaddr_in own = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof own;
	int full = socket(AF_INET, SOCK_STREAM, 0), only = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(full, (struct sockaddr *)&own, len) | listen(full, 0), 0);
	assert_int_equal(getsockname(full, (struct sockaddr *)&own, &len), 0);
	assert_int_equal(connect(only, (struct sockaddr *)&own, len), 0);
	char *url = memory_format("http://127.0.0.1:%d/document", ntohs(own.sin_port));
	s->timeout_ns = 300000000;
	for (int i = 0; i < 3; i++) {
		s->done = 0;
		get(s, url, 1000);
		loop_run(s->loop);
		assert_string_equal(s->failure, "deadline_exceeded");
	}
	close(only);
	close(full);
	memory_free(url);
}

/* One client, and a connection to each of two servers. */
static void one_client_gets_from_many_servers(void **state)
{
	struct scene *s = *state, *other;
	assert_int_equal(begin((void **)&other), 0);
	char *url =
		memory_format("http://%s/document?length=70", http_server_address(other->server));
	get(s, url, 1000);
	loop_run(s->loop);
	assert_int_equal(s->length, 70);
	s->done = 0;
	get(s, "/document?length=80", 1000);
	loop_run(s->loop);
	assert_int_equal(s->length, 80);
	memory_free(url);
	assert_int_equal(end((void **)&other), 0);
}

static void the_answer_to_get_has_its_status(void **state)
{
	struct scene *s = *state;
	get(s, "/nowhere", 1000);
	loop_run(s->loop);
	assert_int_equal(s->status, 404);
	assert_string_equal(s->failure, "");
}

struct canceller {
	struct scene *scene;
	uint64_t number;
};

static void *cancel_soon(void *argument)
{
	struct canceller *c = argument;
	while (!c->scene->kept)
		sched_yield();
	http_client_cancel(c->scene->client, c->number + 1); /* an unknown request */
	http_client_cancel(c->scene->client, c->number);
	http_client_cancel(c->scene->client, c->number); /* and again */
	return NULL;
}

static void a_get_can_be_cancelled_by_its_number(void **state)
{
	struct scene *s = *state;
	pthread_t thread;
	struct canceller c = { s, get(s, "/wait", 1000) };
	pthread_create(&thread, NULL, cancel_soon, &c);
	loop_run(s->loop);
	pthread_join(thread, NULL);
	assert_int_equal(s->done, 1);
	assert_string_equal(s->failure, "cancelled");
	http_exchange_reply(s->kept, &(struct http_reply){ .status = 200 });
}

static void a_get_ends_at_its_timeout(void **state)
{
	struct scene *s = *state;
	s->timeout_ns = 500000000;
	get(s, "/wait", 1000);
	loop_run(s->loop);
	assert_string_equal(s->failure, "deadline_exceeded");
	http_exchange_reply(s->kept, &(struct http_reply){ .status = 200 });
}

static void headers_of_a_request_are_bounded_and_checked(void **state)
{
	struct scene *s = *state;
	struct metadatum many[HTTP_HEADERS_MAX + 2] = { 0 };
	const struct metadatum good[] = { { "X-More", "a b\tc" }, { 0 } },
			       split[] = { { "X-More", "a\r\nX-Other: b" }, { 0 } },
			       name[] = { { "X More", "a" }, { 0 } },
			       ours[] = { { "Content-Length", "1" }, { 0 } };
	assert_true(http_client_check_headers(NULL, &s->err));
	assert_true(http_client_check_headers(good, &s->err));
	assert_false(http_client_check_headers(split, &s->err));
	assert_false(http_client_check_headers(name, &s->err));
	assert_false(http_client_check_headers(ours, &s->err));
	for (int i = 0; i < HTTP_HEADERS_MAX; i++)
		many[i] = good[0];
	assert_true(http_client_check_headers(many, &s->err));
	many[HTTP_HEADERS_MAX] = good[0];
	assert_false(http_client_check_headers(many, &s->err));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_answer_is_heard_on_the_loop),
		TEST(a_header_without_a_value_is_not_sent),
		TEST(an_empty_body_is_posted_too),
		TEST(any_thread_may_post),
		TEST(nobody_there_is_no_answer),
		TEST(requests_share_a_handle_and_no_header),
		TEST(a_connection_is_watched_until_it_is_closed),
		TEST(the_end_of_an_idle_connection_wakes_the_loop_once),
		TEST(who_is_late_has_no_answer),
		TEST(the_end_of_the_client_cancels_what_is_under_way),
		TEST(what_was_posted_before_the_end_is_done_at_the_end),
		TEST(a_document_comes_whole),
		TEST(a_document_that_does_not_fit_is_a_failure),
		TEST(what_is_no_url_is_a_failure),
		TEST(a_connection_that_is_not_made_is_not_watched),
		TEST(one_client_gets_from_many_servers),
		TEST(the_answer_to_get_has_its_status),
		TEST(a_get_can_be_cancelled_by_its_number),
		TEST(a_get_ends_at_its_timeout),
		TEST(headers_of_a_request_are_bounded_and_checked),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
