/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls/tls_server.h"

#include "base/memory.h"
#include "tests/support/shell.h"
#include "tests/support/tls_ends.h"

#include <openssl/err.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define T(text) ((char *)(text)) /* config structs own their strings; these are never freed */

static uint8_t *pattern(size_t len)
{
	uint8_t *at = memory_new(len);
	for (size_t i = 0; i < len; i++)
		at[i] = (uint8_t)(i * 31 + i / 251);
	return at;
}

static void client_gets(struct tls_ends *p, const uint8_t *wanted, size_t len)
{
	uint8_t *all = memory_new(len);
	size_t have = 0;
	int got;
	tls_ends_pump(p);
	while (have < len && (got = SSL_read(p->client, all + have, (int)(len - have))) > 0)
		have += (size_t)got;
	assert_int_equal(have, len);
	assert_memory_equal(all, wanted, len);
	memory_free(all);
}

static void echo(struct tls_ends *p, size_t len)
{
	uint8_t *data = pattern(len);
	bytes_fini(&p->got);
	assert_int_equal(SSL_write(p->client, data, (int)len), len);
	tls_ends_pump(p);
	assert_true(p->alive);
	assert_int_equal(p->got.len, len);
	assert_memory_equal(p->got.at, data, len);
	assert_true(tls_session_send(p->session, bytes_view(&p->got)));
	client_gets(p, data, len);
	memory_free(data);
}

static void bytes_pass_in_both_versions_however_they_are_cut(void **state)
{
	(void)state;
	static const size_t steps[] = { 0, 1, 7, 20000 };
	struct tls_server_config config = tls_ends_config("server");
	struct tls_server *server = tls_ends_server(&config);
	for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++)
		for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
			struct tls_ends p;
			tls_ends_connect(&p, server,
					 &(struct tls_ends_client){ .min_version = version,
								    .max_version = version });
			p.step = steps[i];
			assert_false(tls_session_send(p.session, view_of("early")));
			assert_true(tls_ends_shaken(&p));
			assert_int_equal(SSL_version(p.client), version);
			echo(&p, 1);
			echo(&p, 300000);
			assert_int_equal(tls_session_output(p.session).len, 0);
			assert_null(tls_session_output(p.session).at); /* idle: no buffer */
			tls_ends_free(&p);
		}
	tls_server_unref(&server);
}

static void a_client_must_offer_the_protocol(void **state)
{
	(void)state;
	struct tls_server_config config = tls_ends_config("server");
	struct tls_server *server = tls_ends_server(&config);
	static const struct {
		const char *offer;
		bool ok;
	} rows[] = {
		{ "\2h2", true }, { "\10grpc-exp\2h2", true }, { "\10http/1.1", false },
		{ "\1h", false }, { "\3h2c", false },          { "", false },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct tls_ends p;
		tls_ends_connect(&p, server, &(struct tls_ends_client){ .alpn = rows[i].offer });
		assert_int_equal(tls_ends_shaken(&p), rows[i].ok);
		if (!rows[i].ok) {
			assert_int_equal(p.reason, SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL);
			assert_non_null(strstr(tls_session_failure(p.session), "ALPN"));
			assert_false(tls_session_ready(p.session));
		}
		tls_ends_free(&p);
	}
	tls_server_unref(&server);
}

static void what_openssl_refuses_is_an_error_with_its_role(void **state)
{
	(void)state;
	struct error err = { 0 };
	struct tls_server_config config = tls_ends_config("weak");
	assert_null(tls_server_new(&config, "h2", &err));
	assert_int_equal(err.kind, ERROR_CONFIG);
	assert_non_null(strstr(err.text, "certificate: ee key too small"));
	config = tls_ends_config("absent");
	assert_null(tls_server_new(&config, "h2", &err));
	assert_non_null(strstr(err.text, "absent.pem"));
	assert_int_equal(ERR_peek_error(), 0);
}

static struct tls_server_config mutual(const char *ca)
{
	struct tls_server_config config = tls_ends_config("server");
	config.client_ca_file = T(ca);
	return config;
}

static void only_clients_of_the_ca_are_taken(void **state)
{
	(void)state;
	static const struct {
		const char *certificate, *ca;
		bool ok;
	} rows[] = {
		{ "client", "ca.pem", true },    { NULL, "ca.pem", false },
		{ "stranger", "ca.pem", false }, { "notclient", "ca.pem", false },
		{ "oddip", "ca.pem", true },     { "below", "ca.pem", false },
		{ "below", "sub.pem", true },    { "client", "other.pem", false },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct tls_server_config config = mutual(rows[i].ca);
		for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
			struct tls_ends_client client = { .certificate = rows[i].certificate,
							  .max_version = version };
			if (tls_ends_config_connects(&config, &client) != rows[i].ok)
				fail_msg("%s with %s, "
					 "version %x",
					 rows[i].certificate, rows[i].ca, version);
		}
	}
}

/* What the session reports about its client: "name=value\n"... */
static void shows_owner(const struct tls_server_config *config, const char *certificate,
			const char *wanted)
{
	struct tls_server *server = tls_ends_server(config);
	struct tls_ends p;
	struct fields auth;
	struct bytes text;
	bytes_init(&text, 65536);
	fields_init(&auth, &tls_owner_limits);
	tls_ends_connect(&p, server, &(struct tls_ends_client){ .certificate = certificate });
	assert_false(tls_session_owner(p.session, &auth));
	assert_true(tls_ends_shaken(&p));
	assert_int_equal(tls_session_owner(p.session, &auth), *wanted != 0);
	for (const struct metadatum *m = fields_list(&auth); m->name; m++)
		bytes_format(&text, "%s=%s\n", m->name, m->value);
	assert_string_equal(text.at ? (char *)text.at : "", wanted);
	fields_fini(&auth);
	bytes_fini(&text);
	tls_ends_free(&p);
	tls_server_unref(&server);
}

static void a_verified_certificate_names_its_owner(void **state)
{
	(void)state;
	struct tls_server_config config = mutual("ca.pem"), open = tls_ends_config("server");
	shows_owner(&config, "client",
		    "subject=CN=agent-7\\, #1,O=Fleet\\, Inc.\ncommon_name=agent-7, #1\n"
		    "uri=spiffe://fleet.example/agent-7\nemail=ops@fleet.example\n"
		    "dns=localhost\ndns=b.fleet.example\n");
	shows_owner(&config, "utf8", "subject=emailAddress=a@b,O=M\303\274ller\n");
	shows_owner(&config, "oddip", "subject=CN=odd\ncommon_name=odd\ndns=d.x\n");
	shows_owner(&open, "client", "");
}

static const char *shown(struct tls_server *server)
{
	static char name[64];
	struct tls_ends p;
	tls_ends_connect(&p, server, &(struct tls_ends_client){ 0 });
	assert_true(tls_ends_shaken(&p));
	X509_NAME_get_text_by_NID(X509_get_subject_name(SSL_get0_peer_certificate(p.client)),
				  NID_commonName, name, sizeof name);
	tls_ends_free(&p);
	return name;
}

static void reopening_concerns_later_sessions(void **state)
{
	(void)state;
	struct error err = { 0 };
	bool changed = true;
	assert_int_equal(shell("cp server.pem own.pem; cp server.key own.key"), 0);
	struct tls_server_config config = tls_ends_config("own");
	struct tls_server *server = tls_ends_server(&config);
	struct tls_ends old, begun;
	tls_ends_connect(&old, server, &(struct tls_ends_client){ 0 });
	assert_true(tls_ends_shaken(&old));
	tls_ends_connect(&begun, server, &(struct tls_ends_client){ 0 });
	assert_true(tls_server_reopen(server, &changed, &err));
	assert_false(changed);
	assert_int_equal(shell("cp renewed.pem own.pem; cp renewed.key own.key"), 0);
	assert_string_equal(shown(server), "localhost");
	assert_true(tls_server_reopen(server, &changed, &err));
	assert_true(changed);
	assert_string_equal(shown(server), "renewed");
	tls_server_unref(&server);
	echo(&old, 40000);
	assert_true(tls_ends_shaken(&begun));
	echo(&begun, 100);
	tls_ends_free(&old);
	tls_ends_free(&begun);
}

static void a_broken_file_keeps_the_old(void **state)
{
	(void)state;
	static const struct {
		const char *command, *error;
	} rows[] = {
		{ "echo x > own.pem", "certificate chain" },
		{ "echo x > own.key", "key" },
		{ "cp renewed.key own.key", "does not match" },
		{ "echo x > own-ca.pem", "CA file" },
		{ "cp weak.pem own.pem; cp weak.key own.key", "certificate" },
		{ "rm own.pem", "own.pem" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct error err = { 0 };
		bool changed = true;
		assert_int_equal(shell("cp server.pem own.pem; cp server.key own.key; cp "
				       "ca.pem own-ca.pem"),
				 0);
		struct tls_server_config config = tls_ends_config("own");
		config.client_ca_file = T("own-ca.pem");
		struct tls_server *server = tls_ends_server(&config);
		assert_int_equal(shell("%s", rows[i].command), 0);
		assert_false(tls_server_reopen(server, &changed, &err));
		assert_false(changed);
		if (!strstr(err.text, rows[i].error))
			fail_msg("%s: %s", rows[i].command, err.text);
		assert_true(tls_ends_connects(server, &(struct tls_ends_client){
							      .certificate = "client" }));
		assert_int_equal(shell("cp renewed.pem own.pem; cp renewed.key own.key; cp "
				       "other.pem own-ca.pem"),
				 0);
		assert_true(tls_server_reopen(server, &changed, &err) && changed);
		assert_true(tls_ends_connects(server, &(struct tls_ends_client){
							      .certificate = "stranger" }));
		assert_false(tls_ends_connects(server, &(struct tls_ends_client){
							       .certificate = "client" }));
		tls_server_unref(&server);
	}
}

struct reloading {
	struct tls_server *server;
	_Atomic bool done;
	int changes, failures;
};

/* renewed.* and server.* alternate as own.*. Each file is replaced atomically, but not both at
 * once: some attempts to reopen fail. */
static void *reopen_often(void *argument)
{
	struct reloading *r = argument;
	for (int i = 0; !atomic_load(&r->done) || r->changes < 2; i++) {
		const char *from = i % 2 ? "server" : "renewed";
		char *cert = memory_format("%s.pem", from), *key = memory_format("%s.key", from);
		bool changed;
		unlink("own.pem");
		r->failures += !tls_server_reopen(r->server, &changed, NULL);
		if (link(cert, "own.pem") != 0)
			abort();
		unlink("own.key");
		if (link(key, "own.key") != 0)
			abort();
		tls_server_reopen(r->server, &changed, NULL);
		r->changes += changed;
		memory_free(cert);
		memory_free(key);
	}
	return NULL;
}

static void sessions_begin_while_another_thread_reloads(void **state)
{
	(void)state;
	assert_int_equal(shell("cp server.pem own.pem; cp server.key own.key"), 0);
	struct tls_server_config config = tls_ends_config("own");
	struct reloading r = { .server = tls_ends_server(&config) };
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, reopen_often, &r), 0);
	for (int i = 0; i < 50; i++)
		assert_true(tls_ends_connects(r.server, &(struct tls_ends_client){ 0 }));
	atomic_store(&r.done, true);
	pthread_join(thread, NULL);
	assert_true(r.changes >= 2 && r.failures >= 2);
	tls_server_unref(&r.server);
}

static int tickets;

static int count_ticket(SSL *ssl, SSL_SESSION *session)
{
	(void)ssl, (void)session;
	tickets++;
	return 0;
}

static void nothing_is_resumed(void **state)
{
	(void)state;
	struct tls_server_config config = tls_ends_config("server");
	struct tls_server *server = tls_ends_server(&config);
	for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
		struct tls_ends p, again;
		struct tls_ends_client client = { .max_version = version };
		tls_ends_connect(&p, server, &client);
		SSL_CTX_set_session_cache_mode(p.context, SSL_SESS_CACHE_CLIENT);
		SSL_CTX_sess_set_new_cb(p.context, count_ticket);
		tickets = 0;
		assert_true(tls_ends_shaken(&p));
		echo(&p, 10);
		SSL_SESSION *session = SSL_get1_session(p.client);
		assert_false(SSL_SESSION_has_ticket(session));
		assert_true(version == TLS1_2_VERSION || tickets == 0);
		tls_ends_connect(&again, server, &client);
		SSL_set_session(again.client, session);
		assert_true(tls_ends_shaken(&again));
		assert_false(SSL_session_reused(again.client));
		SSL_SESSION_free(session);
		tls_ends_free(&p);
		tls_ends_free(&again);
	}
	tls_server_unref(&server);
}

static void both_sides_can_close(void **state)
{
	(void)state;
	struct tls_server_config config = tls_ends_config("server");
	struct tls_server *server = tls_ends_server(&config);
	struct tls_ends p;
	char byte;
	tls_ends_connect(&p, server, &(struct tls_ends_client){ 0 });
	assert_true(tls_ends_shaken(&p));
	assert_true(tls_session_send(p.session, view_of("bye")));
	tls_session_close(p.session);
	tls_session_close(p.session);
	assert_false(tls_session_send(p.session, view_of("more")));
	client_gets(&p, (const uint8_t *)"bye", 3);
	assert_int_equal(SSL_get_error(p.client, SSL_read(p.client, &byte, 1)),
			 SSL_ERROR_ZERO_RETURN);
	assert_int_equal(SSL_write(p.client, "late", 4), 4);
	SSL_shutdown(p.client);
	tls_ends_pump(&p);
	assert_true(view_is(bytes_view(&p.got), "late"));
	assert_false(p.alive);
	assert_null(tls_session_failure(p.session));
	tls_ends_free(&p);

	tls_ends_connect(&p, server, &(struct tls_ends_client){ 0 });
	tls_session_close(p.session); /* before the handshake there is nothing to send */
	assert_int_equal(tls_session_output(p.session).len, 0);
	tls_ends_free(&p);
	tls_server_unref(&server);
}

static void who_takes_the_bytes_may_stop(void **state)
{
	(void)state;
	struct tls_server_config config = tls_ends_config("server");
	struct tls_server *server = tls_ends_server(&config);
	struct tls_ends p;
	tls_ends_connect(&p, server, &(struct tls_ends_client){ 0 });
	assert_true(tls_ends_shaken(&p));
	p.stop = true;
	SSL_write(p.client, "one", 3);
	SSL_write(p.client, "two", 3);
	tls_ends_pump(&p);
	assert_false(p.alive);
	assert_true(view_is(bytes_view(&p.got), "one"));
	p.alive = true;
	tls_ends_give(&p, view_of("x"));
	assert_false(p.alive);
	assert_true(tls_session_send(p.session, view_of("why")));
	client_gets(&p, (const uint8_t *)"why", 3);
	assert_null(tls_session_failure(p.session));
	tls_ends_free(&p);
	tls_server_unref(&server);
}

static void garbage_fails_with_an_alert(void **state)
{
	(void)state;
	struct tls_server_config config = tls_ends_config("server");
	struct tls_server *server = tls_ends_server(&config);
	struct tls_ends p;
	tls_ends_connect(&p, server, &(struct tls_ends_client){ 0 });
	tls_ends_give(&p, view_of("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
	assert_false(p.alive);
	assert_non_null(tls_session_failure(p.session));
	tls_ends_free(&p);

	tls_ends_connect(&p, server, &(struct tls_ends_client){ 0 });
	assert_true(tls_ends_shaken(&p));
	SSL_write(p.client, "hello", 5);
	char *at;
	long len = BIO_get_mem_data(SSL_get_wbio(p.client), &at);
	at[len - 1] ^= 1;
	tls_ends_flush(&p);
	assert_false(p.alive);
	assert_non_null(tls_session_failure(p.session));
	assert_true(tls_session_output(p.session).len > 0);
	assert_false(tls_session_send(p.session, view_of("x")));
	assert_int_equal(p.got.len, 0);
	tls_ends_free(&p);
	tls_server_unref(&server);
}

static void what_waits_for_the_socket_is_bounded(void **state)
{
	(void)state;
	struct tls_server_config config = tls_ends_config("server");
	struct tls_server *server = tls_ends_server(&config);
	struct tls_ends p;
	size_t sent = 0, part = 100000;
	uint8_t *data = pattern(part);
	tls_ends_connect(&p, server, &(struct tls_ends_client){ 0 });
	assert_true(tls_ends_shaken(&p));
	while (tls_session_send(p.session, (struct view){ data, part }))
		sent++;
	assert_int_equal(sent, 10);
	assert_true(tls_session_output(p.session).len <= TLS_OUTPUT_MAX);
	assert_null(tls_session_failure(p.session));
	for (size_t i = 0; i < sent; i++)
		client_gets(&p, data, part);
	echo(&p, 1000);
	memory_free(data);
	tls_ends_free(&p);
	tls_server_unref(&server);
}

/* Unencrypted records of handshake messages, divided so that each record has at most `part` bytes
 * of them. */
static void give_hello(struct tls_ends *p, const uint8_t *message, size_t len, size_t part)
{
	for (size_t done = 0; done < len; done += part) {
		size_t now = part < len - done ? part : len - done;
		uint8_t header[] = { 22, 3, 1, (uint8_t)(now >> 8), (uint8_t)now };
		tls_ends_give(p, (struct view){ header, sizeof header });
		tls_ends_give(p, (struct view){ message + done, now });
	}
}

static void a_hello_that_announces_too_much_ends_at_its_header(void **state)
{
	(void)state;
	static const uint8_t large[] = { 1, 1, 255, 0, 3, 3 }, just[] = { 1, 0, 64, 1, 3, 3 },
			     fits[] = { 1, 0, 64, 0, 3, 3 };
	static const struct {
		const uint8_t *hello;
		bool ok;
	} rows[] = { { large, false }, { just, false }, { fits, true } };
	struct tls_server_config config = tls_ends_config("server");
	struct tls_server *server = tls_ends_server(&config);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		for (size_t part = 1; part <= 6; part++) {
			struct tls_ends p;
			tls_ends_connect(&p, server, &(struct tls_ends_client){ 0 });
			p.step = part / 2;
			give_hello(&p, rows[i].hello, 6, part);
			assert_int_equal(p.alive, rows[i].ok);
			if (!p.alive)
				assert_string_equal(tls_session_failure(p.session), "the "
										    "ClientHello "
										    "is too large");
			tls_ends_free(&p);
		}
	tls_server_unref(&server);
}

/* The first key share is not acceptable for the server, which requests another one:
 * HelloRetryRequest. */
static void the_second_hello_is_watched_too(void **state)
{
	(void)state;
	static const uint8_t large[] = { 1, 1, 255, 0, 3, 3 }, nothing[] = { 20, 3, 3, 0, 1, 1 };
	struct tls_ends_client client = { .groups = "ffdhe2048:P-256" };
	struct tls_server_config config = tls_ends_config("server");
	struct tls_server *server = tls_ends_server(&config);
	struct tls_ends p;
	tls_ends_connect(&p, server, &client);
	SSL_do_handshake(p.client);
	tls_ends_flush(&p);
	assert_true(p.alive && tls_session_output(p.session).len > 0);
	tls_ends_give(&p, (struct view){ nothing, sizeof nothing });
	give_hello(&p, large, sizeof large, sizeof large);
	assert_string_equal(tls_session_failure(p.session), "the ClientHello is too large");
	tls_ends_free(&p);
	assert_true(tls_ends_connects(server, &client));
	tls_server_unref(&server);
}

/* Sends `count` updates, in groups of `batch`, and reads nothing. True: the session survives. */
static bool survives_updates(struct tls_server *server, int count, int batch)
{
	struct tls_ends p;
	tls_ends_connect(&p, server, &(struct tls_ends_client){ 0 });
	assert_true(tls_ends_shaken(&p));
	for (int i = 1; i <= count && p.alive; i++) {
		assert_int_equal(SSL_key_update(p.client, SSL_KEY_UPDATE_REQUESTED), 1);
		SSL_do_handshake(p.client);
		if (i % batch == 0)
			tls_ends_flush(&p);
	}
	/* of its own updates, 27 bytes each */
	assert_true(tls_session_output(p.session).len < 2000);
	bool alive = p.alive;
	if (alive)
		echo(&p, 5000);
	else
		assert_non_null(strstr(tls_session_failure(p.session), "key updates"));
	tls_ends_free(&p);
	return alive;
}

static void keys_may_be_updated_but_not_without_end(void **state)
{
	(void)state;
	struct tls_server_config config = tls_ends_config("server");
	struct tls_server *server = tls_ends_server(&config);
	assert_true(survives_updates(server, 30, 1));
	assert_false(survives_updates(server, 40, 1));
	assert_false(survives_updates(server, 2000, 2000));
	tls_server_unref(&server);
}

static void renegotiation_is_declined(void **state)
{
	(void)state;
	struct tls_server_config config = tls_ends_config("server");
	struct tls_server *server = tls_ends_server(&config);
	struct tls_ends p;
	tls_ends_connect(&p, server, &(struct tls_ends_client){ .max_version = TLS1_2_VERSION });
	assert_true(tls_ends_shaken(&p));
	SSL_renegotiate(p.client);
	assert_false(tls_ends_pump(&p));
	assert_int_equal(p.reason, SSL_R_NO_RENEGOTIATION);
	tls_ends_free(&p);
	tls_server_unref(&server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_pass_in_both_versions_however_they_are_cut),
		cmocka_unit_test(a_client_must_offer_the_protocol),
		cmocka_unit_test(what_openssl_refuses_is_an_error_with_its_role),
		cmocka_unit_test(only_clients_of_the_ca_are_taken),
		cmocka_unit_test(a_verified_certificate_names_its_owner),
		cmocka_unit_test(reopening_concerns_later_sessions),
		cmocka_unit_test(a_broken_file_keeps_the_old),
		cmocka_unit_test(sessions_begin_while_another_thread_reloads),
		cmocka_unit_test(nothing_is_resumed),
		cmocka_unit_test(both_sides_can_close),
		cmocka_unit_test(who_takes_the_bytes_may_stop),
		cmocka_unit_test(garbage_fails_with_an_alert),
		cmocka_unit_test(a_hello_that_announces_too_much_ends_at_its_header),
		cmocka_unit_test(the_second_hello_is_watched_too),
		cmocka_unit_test(what_waits_for_the_socket_is_bounded),
		cmocka_unit_test(keys_may_be_updated_but_not_without_end),
		cmocka_unit_test(renegotiation_is_declined),
	};
	return cmocka_run_group_tests(tests, tls_ends_make_files, tls_ends_remove_files);
}
