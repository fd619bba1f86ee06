/* SPDX-License-Identifier: Apache-2.0 */
#include "net/grpc/grpc_client.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#include "base/memory.h"
#include "net/compress.h"
#include "tests/support/grpc_call.h"
#include "tests/support/grpc_peer.h"

static struct grpc_peer peer;
static char *certificates;

static struct grpc_client *client_of(const char *endpoint)
{
	return client_with(
		(struct grpc_client_options){ .endpoint = endpoint ? endpoint : peer.endpoint });
}

static void pause_briefly(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
}

static int start_peer(void **state)
{
	(void)state;
	certificates = certificates_make();
	grpc_peer_run(&peer);
	return 0;
}

static int stop_peer(void **state)
{
	(void)state;
	grpc_peer_kill(&peer);
	certificates_remove(&certificates);
	return 0;
}

static void a_call_is_answered(void **state)
{
	(void)state;
	struct answer a;
	struct grpc_client *client = client_of(NULL);
	ask(client, "echo", &a);
	assert_int_equal(a.status, 0);
	assert_int_equal(a.retry_delay_ms, -1);
	assert_true(answer_has(&a, "length=4\n"));
	grpc_client_unref(&client);
	assert_null(client);
	assert_int_equal(a.released, 1);
}

static void every_status_arrives(void **state)
{
	(void)state;
	struct answer a;
	struct grpc_client *client = client_of(NULL);
	for (int code = 1; code <= 16; code++) {
		char script[40], text[20];
		snprintf(text, sizeof text, "said %d", code);
		snprintf(script, sizeof script, "status %d %s", code, text);
		ask(client, script, &a);
		assert_int_equal(a.status, code);
		assert_string_equal(a.message, text);
		assert_int_equal(a.retry_delay_ms, -1);
		assert_int_equal(a.length, 0);
	}
	grpc_client_unref(&client);
}

static void retry_info_is_read(void **state)
{
	(void)state;
	struct answer a;
	struct grpc_client *client = client_of(NULL);
	ask(client, "status 8 retry 1500 later", &a);
	assert_int_equal(a.status, 8);
	assert_int_equal(a.retry_delay_ms, 1500);
	ask(client, "status 14 retry 0 now", &a);
	assert_int_equal(a.retry_delay_ms, 0);
	grpc_client_unref(&client);
}

static void a_deadline_ends_the_call(void **state)
{
	(void)state;
	struct answer a;
	struct grpc_client *client = client_of(NULL);
	ask_within(client, "hang", SECOND / 5, &a);
	assert_int_equal(a.status, 4);
	grpc_client_unref(&client);
}

static void unref_cancels_calls_in_flight(void **state)
{
	(void)state;
	struct answer a[20];
	struct grpc_client *client = client_of(NULL), *other = client_of(NULL);
	for (int i = 0; i < 20; i++)
		answer_begin(&a[i], client, view_of("hang"), CODING_IDENTITY, 0);
	grpc_client_unref(&client);
	for (int i = 0; i < 20; i++) {
		assert_true(a[i].done);
		assert_int_equal(a[i].status, 1);
	}
	ask(other, "echo", &a[0]);
	assert_int_equal(a[0].status, 0);
	grpc_client_unref(&other);
}

static void headers_are_sent_in_lower_case(void **state)
{
	(void)state;
	struct pair rows[] = { { (char *)"X-Scope-OrgID", { (char *)"team-a" } },
			       { (char *)"x-raw-bin", { (char *)"\x01\xff" } } };
	struct pairs headers = { rows, 2 };
	struct answer a;
	struct grpc_client *client = client_with((struct grpc_client_options){
		.endpoint = peer.endpoint, .headers = &headers, .user_agent = "portcullis/test" });
	ask(client, "echo", &a);
	assert_true(answer_has(&a, "x-scope-orgid=team-a\n"));
	assert_true(answer_has(&a, "x-raw-bin=b'\\x01\\xff'\n"));
	assert_true(answer_has(&a, "user-agent=portcullis/test grpc-c/"));
	grpc_client_unref(&client);
}

static void a_call_has_metadata_of_its_own_beside_the_clients(void **state)
{
	(void)state;
	struct pair row = { (char *)"x-client", { (char *)"one" } };
	struct pairs headers = { &row, 1 };
	const struct metadatum own[] = { { "X-Call", "two" }, { "x-other", "three" }, { 0 } };
	struct answer a;
	struct grpc_client *client = client_with((struct grpc_client_options){
		.endpoint = peer.endpoint, .headers = &headers, .user_agent = "portcullis/test" });
	ask_with(client, "echo", CODING_IDENTITY, own, &a);
	assert_true(answer_has(&a, "x-client=one\n"));
	assert_true(answer_has(&a, "x-call=two\n"));
	assert_true(answer_has(&a, "x-other=three\n"));
	ask(client, "echo", &a); /* the next call, with the same structures, must not see it */
	assert_true(answer_has(&a, "x-client=one\n"));
	assert_false(answer_has(&a, "x-call="));
	grpc_client_unref(&client);
}

static void metadata_is_bounded_and_checked(void **state)
{
	(void)state;
	static const struct metadatum bad[][2] = { { { "grpc-timeout", "1S" } },
						   { { ":path", "/" } },
						   { { "a b", "c" } },
						   { { "x", "a\nb" } },
						   { { "Host", "b" } } };
	struct metadatum many[GRPC_METADATA_MAX + 2] = { 0 };
	struct error err = { 0 };
	char *large = memory_new(GRPC_METADATA_BYTES + 1);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(grpc_client_check_metadata(bad[i], &err));
	for (int i = 0; i < GRPC_METADATA_MAX; i++)
		many[i] = (struct metadatum){ "x", "y" };
	assert_true(grpc_client_check_metadata(NULL, &err));
	assert_true(grpc_client_check_metadata(many, &err));
	many[GRPC_METADATA_MAX] = many[0];
	assert_false(grpc_client_check_metadata(many, &err));
	memset(large, 'v', GRPC_METADATA_BYTES);
	const struct metadatum long_value[] = { { "x", large }, { 0 } };
	assert_false(grpc_client_check_metadata(long_value, &err));
	large[GRPC_METADATA_BYTES - 1] = 0;
	assert_true(grpc_client_check_metadata(long_value, &err));
	memory_free(large);
}

static void headers_that_cannot_be_sent_are_refused(void **state)
{
	(void)state;
	static const struct {
		const char *name, *value;
	} bad[] = {
		{ "grpc-timeout", "1S" }, { ":path", "/" },
		{ "a b", "c" },           { "", "c" },
		{ "x", "a\nb" },          { "Content-Type", "text/plain" },
		{ "user-agent", "me" },
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct pair row = { (char *)bad[i].name, { (char *)bad[i].value } };
		struct pairs headers = { &row, 1 };
		struct error err = { 0 };
		assert_false(grpc_client_check_headers(&headers, &err));
		assert_int_equal(err.kind, ERROR_CONFIG);
		assert_null(strstr(err.text, "a\nb"));
	}
}

static void gzip_is_on_the_wire_and_declared(void **state)
{
	(void)state;
	struct grpc_peer raw;
	struct error err;
	struct bytes packed;
	struct answer a;
	bytes_init(&packed, 4096);
	assert_true(compress_deflate(CODING_GZIP, 0, view_of("echo"), &packed, &err));

	grpc_peer_run(&raw, "--raw");
	struct grpc_client *client = client_of(raw.endpoint);
	answer_begin(&a, client, bytes_view(&packed), CODING_GZIP, 20 * SECOND);
	answer_wait(&a);
	assert_true(answer_has(&a, "packed=True"));
	grpc_client_unref(&client);
	grpc_peer_kill(&raw);

	client = client_of(NULL);
	answer_begin(&a, client, bytes_view(&packed), CODING_GZIP, 20 * SECOND);
	answer_wait(&a);
	assert_int_equal(a.status, 0);
	assert_true(answer_has(&a, "packed=False"));
	assert_true(answer_has(&a, "length=4\n"));
	grpc_client_unref(&client);
	bytes_fini(&packed);
}

static void long_answers_are_not_kept(void **state)
{
	(void)state;
	struct answer a;
	struct grpc_client *client = client_of(NULL);
	ask(client, "large 16384", &a);
	assert_int_equal(a.length, 16384);
	ask(client, "large 16385", &a);
	assert_int_equal(a.status, 0);
	assert_int_equal(a.length, 0);
	ask(client, "zip 5000", &a);
	assert_int_equal(a.status, 0);
	assert_int_equal(a.length, 5000);
	ask(client, "zip 3000000", &a);
	assert_int_equal(a.status, 0);
	assert_int_equal(a.length, 0);
	grpc_client_unref(&client);
}

static void http_status_without_grpc_status_becomes_a_code(void **state)
{
	(void)state;
	static const struct {
		const char *http;
		int code;
	} rows[] = { { "401", 16 }, { "403", 7 }, { "503", 14 } };
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct grpc_peer proxy;
		struct answer a;
		grpc_peer_run(&proxy, "--http-status", rows[i].http);
		struct grpc_client *client = client_of(proxy.endpoint);
		ask(client, "echo", &a);
		assert_int_equal(a.status, rows[i].code);
		grpc_client_unref(&client);
		grpc_peer_kill(&proxy);
	}
}

static void a_dead_server_is_unavailable_and_a_restarted_one_is_found_again(void **state)
{
	(void)state;
	struct grpc_peer mortal;
	struct answer a;
	char port[12];
	grpc_peer_run(&mortal);
	struct grpc_client *client = client_of(mortal.endpoint);
	ask(client, "echo", &a);
	assert_int_equal(a.status, 0);
	snprintf(port, sizeof port, "%d", mortal.port);
	answer_begin(&a, client, view_of("hang"), CODING_IDENTITY, 0);
	grpc_peer_kill(&mortal);
	answer_wait(&a);
	assert_int_equal(a.status, 14);
	ask(client, "echo", &a);
	assert_int_equal(a.status, 14);

	grpc_peer_run(&mortal, "--port", port);
	for (int i = 0; i < 3000 && a.status; i++) {
		pause_briefly();
		ask(client, "echo", &a);
	}
	assert_int_equal(a.status, 0);
	grpc_client_unref(&client);
	grpc_peer_kill(&mortal);
}

static void what_no_connection_took_is_known_to_be_unsent(void **state)
{
	(void)state;
	struct grpc_peer mortal;
	struct answer a;
	grpc_peer_run(&mortal);
	struct grpc_client *client = client_of(mortal.endpoint);
	ask(client, "status 14 here is an answer", &a);
	assert_int_equal(a.status, 14);
	assert_false(a.unsent);
	ask_within(client, "hang", SECOND / 5, &a);
	assert_int_equal(a.status, 4);
	assert_false(a.unsent);
	answer_begin(&a, client, view_of("hang"), CODING_IDENTITY, 0);
	pause_briefly();
	grpc_peer_kill(&mortal);
	answer_wait(&a);
	assert_int_equal(a.status, 14);
	assert_false(a.unsent);
	for (int i = 0; i < 3000 && !a.unsent; i++) {
		pause_briefly();
		ask(client, "echo", &a);
		assert_int_equal(a.status, 14);
	}
	assert_true(a.unsent);
	grpc_client_unref(&client);
}

static void what_no_balancer_could_place_is_unsent(void **state)
{
	(void)state;
	static const char *const balancers[] = { "pick_first", "round_robin" };
	struct answer a;
	for (size_t i = 0; i < sizeof balancers / sizeof *balancers; i++) {
		struct grpc_client *client = client_with((struct grpc_client_options){
			.endpoint = "127.0.0.1:1", .balancer = balancers[i] });
		ask(client, "echo", &a);
		assert_int_equal(a.status, 14);
		assert_true(a.unsent);
		grpc_client_unref(&client);
	}
	struct grpc_client *client = client_of("name.invalid:1");
	ask(client, "echo", &a);
	assert_int_equal(a.status, 14);
	assert_true(a.unsent);
	grpc_client_unref(&client);
}

/* More bytes than a socket buffer holds, sent to a server that does not read any more: core cannot
 * finish the write. */
static struct bytes send_to_frozen(struct grpc_peer *frozen, struct grpc_client *client,
				   struct answer *a)
{
	struct bytes big;
	ask(client, "echo", a);
	kill(frozen->pid, SIGSTOP);
	bytes_init(&big, 64 << 20);
	bytes_reserve(&big, big.max);
	big.len = big.max;
	answer_begin(a, client, bytes_view(&big), CODING_IDENTITY, SECOND / 5);
	answer_wait_done(a);
	assert_int_equal(a->status, 4);
	return big;
}

static void a_server_that_stops_reading_runs_into_the_deadline(void **state)
{
	(void)state;
	struct grpc_peer frozen;
	struct answer a;
	grpc_peer_run(&frozen);
	struct grpc_client *client = client_of(frozen.endpoint);
	struct bytes big = send_to_frozen(&frozen, client, &a);
	assert_int_equal(a.released, 0);
	grpc_peer_kill(&frozen);
	grpc_client_unref(&client);
	assert_int_equal(a.released, 1);
	bytes_fini(&big);
}

static void a_server_that_stops_reading_cannot_hold_up_unref_for_ever(void **state)
{
	(void)state;
	struct grpc_peer frozen;
	struct answer a;
	grpc_peer_run(&frozen);
	struct grpc_client *client = client_with(
		(struct grpc_client_options){ .endpoint = frozen.endpoint,
					      .keepalive = true,
					      .keepalive_time.ns = 3600 * (int64_t)SECOND,
					      .keepalive_timeout.ns = (int64_t)SECOND });
	struct bytes big = send_to_frozen(&frozen, client, &a);
	grpc_client_unref(&client);
	assert_int_equal(a.released, 1);
	grpc_peer_kill(&frozen);
	bytes_fini(&big);
}

static void wait_for_ready_waits_until_the_server_is_there(void **state)
{
	(void)state;
	struct grpc_peer late;
	struct answer a;
	char port[12], endpoint[32];
	grpc_peer_run(&late);
	snprintf(port, sizeof port, "%d", late.port);
	snprintf(endpoint, sizeof endpoint, "127.0.0.1:%d", late.port);
	grpc_peer_kill(&late);
	struct grpc_client *client = client_with(
		(struct grpc_client_options){ .endpoint = endpoint, .wait_for_ready = true });
	answer_begin(&a, client, view_of("echo"), CODING_IDENTITY, 60 * SECOND);
	grpc_peer_run(&late, "--port", port);
	answer_wait(&a);
	assert_int_equal(a.status, 0);
	grpc_client_unref(&client);
	grpc_peer_kill(&late);
}

static void round_robin_uses_both_servers(void **state)
{
	(void)state;
	struct grpc_peer one, two;
	char endpoint[80];
	int seen[2] = { 0 };
	grpc_peer_run(&one, "--name", "one");
	grpc_peer_run(&two, "--name", "two");
	snprintf(endpoint, sizeof endpoint, "ipv4:%s,%s", one.endpoint, two.endpoint);
	struct grpc_client *client = client_with(
		(struct grpc_client_options){ .endpoint = endpoint, .balancer = "round_robin" });
	for (int i = 0; i < 2000 && !(seen[0] > 5 && seen[1] > 5); i++) {
		struct answer a;
		ask(client, "echo", &a);
		seen[answer_has(&a, "name=two")]++;
	}
	assert_true(seen[0] > 5);
	assert_true(seen[1] > 5);
	grpc_client_unref(&client);
	grpc_peer_kill(&one);
	grpc_peer_kill(&two);
}

static void a_unix_socket_is_dialled(void **state)
{
	(void)state;
	struct grpc_peer local;
	struct answer a;
	char *path = memory_format("unix:%s/socket", certificates);
	grpc_peer_run(&local, "--unix", path);
	struct grpc_client *client = client_of(path);
	ask(client, "echo", &a);
	assert_int_equal(a.status, 0);
	grpc_client_unref(&client);
	grpc_peer_kill(&local);
	memory_free(path);
}

static void endpoints_are_understood(void **state)
{
	(void)state;
	static const struct {
		const char *text, *target, *host, *port;
		bool tls;
	} rows[] = {
		{ "localhost:4317", "ipv6:[::1]:4317,[::ffff:127.0.0.1]:4317", "localhost", "4317",
		  false },
		{ "http://a.test:1", "dns:///a.test:1", "a.test", "1", false },
		{ "https://a.test:65535", "dns:///a.test:65535", "a.test", "65535", true },
		{ "dns:///a.test:1", "dns:///a.test:1", "a.test", "1", false },
		{ "passthrough:///10.0.0.1:1", "dns:///10.0.0.1:1", "10.0.0.1", "1", false },
		{ "[::1]:4317", "dns:///[::1]:4317", "::1", "4317", false },
		{ ":4317", "ipv6:[::1]:4317,[::ffff:127.0.0.1]:4317", "localhost", "4317", false },
		{ "unix:///run/a", "unix:///run/a", "", "", false },
		{ "unix://run/a", "unix:run/a", "", "", false },
		{ "unix:run/a", "unix:run/a", "", "", false },
		{ "ipv4:1.2.3.4:5,6.7.8.9:10", "ipv4:1.2.3.4:5,6.7.8.9:10", "", "", false },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct grpc_endpoint e;
		struct error err;
		assert_true(grpc_endpoint_parse(rows[i].text, &e, &err));
		assert_string_equal(e.target, rows[i].target);
		assert_string_equal(e.host, rows[i].host);
		assert_string_equal(e.port, rows[i].port);
		assert_int_equal(e.tls, rows[i].tls);
		grpc_endpoint_fini(&e);
	}
}

static void bad_endpoints_are_refused(void **state)
{
	(void)state;
	static const struct {
		const char *text, *error;
	} rows[] = {
		{ NULL, "endpoint: must not be empty" },
		{ "", "endpoint: must not be empty" },
		{ "localhost", "the port is missing" },
		{ "4317", "must be host:port; the host is missing, as in localhost:4317" },
		{ "localhost:", "the port must be a number from 1 to 65535" },
		{ "localhost:x", "the port must be a number from 1 to 65535" },
		{ "localhost:65536", "the port must be a number from 1 to 65535" },
		{ "localhost:0", "the port must be a number from 1 to 65535" },
		{ "localhost:-1", "the port must be a number from 1 to 65535" },
		{ "::1:4317", "must be host:port" },
		{ "ftp://a:1", "must be host:port" },
		{ "http://a.test:4317/v1", "without a path" },
		{ "unix:", "the address after \"unix:\" is missing" },
		{ "a:99999999999999999999", "the port must be a number from 1 to 65535" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct grpc_endpoint e;
		struct error err = { 0 };
		assert_false(grpc_endpoint_parse(rows[i].text, &e, &err));
		assert_int_equal(err.kind, ERROR_CONFIG);
		assert_non_null(strstr(err.text, rows[i].error));
		grpc_endpoint_fini(&e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_is_answered),
		cmocka_unit_test(every_status_arrives),
		cmocka_unit_test(retry_info_is_read),
		cmocka_unit_test(a_deadline_ends_the_call),
		cmocka_unit_test(unref_cancels_calls_in_flight),
		cmocka_unit_test(headers_are_sent_in_lower_case),
		cmocka_unit_test(a_call_has_metadata_of_its_own_beside_the_clients),
		cmocka_unit_test(metadata_is_bounded_and_checked),
		cmocka_unit_test(headers_that_cannot_be_sent_are_refused),
		cmocka_unit_test(gzip_is_on_the_wire_and_declared),
		cmocka_unit_test(long_answers_are_not_kept),
		cmocka_unit_test(http_status_without_grpc_status_becomes_a_code),
		cmocka_unit_test(a_dead_server_is_unavailable_and_a_restarted_one_is_found_again),
		cmocka_unit_test(what_no_connection_took_is_known_to_be_unsent),
		cmocka_unit_test(what_no_balancer_could_place_is_unsent),
		cmocka_unit_test(a_server_that_stops_reading_runs_into_the_deadline),
		cmocka_unit_test(a_server_that_stops_reading_cannot_hold_up_unref_for_ever),
		cmocka_unit_test(wait_for_ready_waits_until_the_server_is_there),
		cmocka_unit_test(round_robin_uses_both_servers),
		cmocka_unit_test(a_unix_socket_is_dialled),
		cmocka_unit_test(endpoints_are_understood),
		cmocka_unit_test(bad_endpoints_are_refused),
	};
	return cmocka_run_group_tests(tests, start_peer, stop_peer);
}
