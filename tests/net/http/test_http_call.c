/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/http_call.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "base/memory.h"
#include "config/load.h"
#include "net/http/http_server.h"

/* The peer is our own server. */
struct scene {
	struct http_server_config config;
	struct metrics *metrics;
	struct http_server *server;
	char *url;
	struct bytes out;
	struct error err;
	int status;
};

static void accept_body(void *context, struct http_exchange *x)
{
	(void)context;
	http_exchange_accept(x, 1 << 20);
}

static void echo(void *context, struct http_exchange *x, struct view body)
{
	(void)context;
	const char *type = http_exchange_header(x, "content-type"),
		   *more = http_exchange_header(x, "x-more");
	char *text = memory_format("%s %s %s %.*s", http_exchange_method(x), type ? type : "-",
				   more ? more : "-", (int)body.len, (const char *)body.at);
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
	static const struct http_route route = {
		.methods = "GET,POST", .headers = accept_body, .body = echo, .lost = never
	};
	static const char yaml[] = "{endpoint: 127.0.0.1:0}";
	static const struct log log;
	struct scene *s = memory_new(sizeof *s);
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
	bytes_init(&s->out, 1000);
	*state = s;
	return 0;
}

static int end(void **state)
{
	struct scene *s = *state;
	http_server_stop(&s->server, 0);
	config_release(&http_server_table, &s->config);
	metrics_unref(&s->metrics);
	bytes_fini(&s->out);
	memory_free(s->url);
	memory_free(s);
	return 0;
}

static void a_body_is_posted_with_type_and_headers(void **state)
{
	struct scene *s = *state;
	const struct metadatum more[] = { { "X-More", "yes" }, { NULL, NULL } };
	const struct http_call call = {
		.url = s->url, .content_type = "a/b", .headers = more, .body = view_of("hello")
	};
	assert_true(http_call(&call, &s->status, &s->out, &s->err));
	assert_int_equal(s->status, 202);
	assert_true(view_is(bytes_view(&s->out), "POST a/b yes hello"));
}

static void without_a_body_it_gets(void **state)
{
	struct scene *s = *state;
	assert_true(http_call(&(struct http_call){ .url = s->url }, &s->status, &s->out, &s->err));
	assert_true(view_is(bytes_view(&s->out), "GET - - "));
}

static void a_reply_is_bounded(void **state)
{
	struct scene *s = *state;
	s->out.max = 3;
	assert_false(http_call(&(struct http_call){ .url = s->url }, &s->status, &s->out, &s->err));
	assert_int_equal(s->err.kind, ERROR_TOO_LARGE);
}

static void what_is_no_web_address_is_an_error(void **state)
{
	struct scene *s = *state;
	assert_false(http_call(&(struct http_call){ .url = "file:///etc/passwd" }, &s->status,
			       &s->out, &s->err));
	assert_int_equal(s->err.kind, ERROR_CONFIG);
	assert_false(
		http_call(&(struct http_call){ .url = "http://" }, &s->status, &s->out, &s->err));
	assert_int_equal(s->err.kind, ERROR_CONFIG);
}

static void nobody_there_is_an_error(void **state)
{
	struct scene *s = *state;
	http_server_stop(&s->server, 0);
	assert_false(http_call(&(struct http_call){ .url = s->url }, &s->status, &s->out, &s->err));
	assert_int_equal(s->err.kind, ERROR_BUSY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_body_is_posted_with_type_and_headers, begin, end),
		cmocka_unit_test_setup_teardown(without_a_body_it_gets, begin, end),
		cmocka_unit_test_setup_teardown(a_reply_is_bounded, begin, end),
		cmocka_unit_test_setup_teardown(what_is_no_web_address_is_an_error, begin, end),
		cmocka_unit_test_setup_teardown(nobody_there_is_an_error, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
