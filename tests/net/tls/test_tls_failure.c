/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls/tls_failure.h"

#include "tests/support/tls_ends.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* RFC 8446, section 6; what servers send in TLS 1.2 and 1.3 is in tests/harness/failures.py. */
static void an_alert_has_a_cause(void **state)
{
	static const struct {
		int alert;
		enum cause_kind kind, asked;
	} rows[] = {
		{ 40, CAUSE_TLS_VERSION, CAUSE_TLS_CLIENT_CERTIFICATE },
		{ 42, CAUSE_TLS_CLIENT_CERTIFICATE, CAUSE_TLS_CLIENT_CERTIFICATE },
		{ 43, CAUSE_TLS_CLIENT_CERTIFICATE, CAUSE_TLS_CLIENT_CERTIFICATE },
		{ 44, CAUSE_TLS_CLIENT_CERTIFICATE, CAUSE_TLS_CLIENT_CERTIFICATE },
		{ 45, CAUSE_TLS_CLIENT_CERTIFICATE, CAUSE_TLS_CLIENT_CERTIFICATE },
		{ 46, CAUSE_TLS_CLIENT_CERTIFICATE, CAUSE_TLS_CLIENT_CERTIFICATE },
		{ 48, CAUSE_TLS_CLIENT_CERTIFICATE, CAUSE_TLS_CLIENT_CERTIFICATE },
		{ 49, CAUSE_TLS_CLIENT_CERTIFICATE, CAUSE_TLS_CLIENT_CERTIFICATE },
		{ 51, CAUSE_TLS_REJECTED, CAUSE_TLS_CLIENT_CERTIFICATE },
		{ 70, CAUSE_TLS_VERSION, CAUSE_TLS_VERSION },
		{ 71, CAUSE_TLS_VERSION, CAUSE_TLS_VERSION },
		{ 80, CAUSE_TLS_REJECTED, CAUSE_TLS_REJECTED },
		{ 112, CAUSE_TLS_NAME, CAUSE_TLS_NAME },
		{ 116, CAUSE_TLS_CLIENT_CERTIFICATE, CAUSE_TLS_CLIENT_CERTIFICATE },
		{ 120, CAUSE_TLS_NO_HTTP2, CAUSE_TLS_NO_HTTP2 },
		{ 255, CAUSE_TLS_REJECTED, CAUSE_TLS_REJECTED },
	};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(tls_failure_of_alert(rows[i].alert, false), rows[i].kind);
		assert_int_equal(tls_failure_of_alert(rows[i].alert, true), rows[i].asked);
	}
}

/* ---- a client and a server of OpenSSL, over loopback ---- */

struct ends {
	SSL_CTX *contexts[2];
	SSL *client, *server;
	int fds[2]; /* of the client, of the server */
};

static void connect_ends(int fds[2])
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof at;
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &size), 0);
	assert_int_equal(connect(fds[0], (struct sockaddr *)&at, sizeof at), 0);
	fds[1] = accept(listener, NULL, NULL);
	close(listener);
	for (int i = 0; i < 2; i++)
		fcntl(fds[i], F_SETFL, O_NONBLOCK);
}

static SSL *ssl_new(SSL_CTX *context, int version, int fd)
{
	SSL *ssl = SSL_new(context);
	SSL_set_min_proto_version(ssl, version);
	SSL_set_max_proto_version(ssl, version);
	SSL_set_fd(ssl, fd);
	return ssl;
}

/* ciphers: of the server, in TLS 1.2; NULL: OpenSSL's default. asks: for a certificate. */
static void ends_init(struct ends *e, int version, const char *ciphers, bool asks)
{
	SSL_CTX *client = SSL_CTX_new(TLS_client_method()),
		*server = SSL_CTX_new(TLS_server_method());
	connect_ends(e->fds);
	assert_int_equal(SSL_CTX_use_certificate_chain_file(server, "server.pem"), 1);
	assert_int_equal(SSL_CTX_use_PrivateKey_file(server, "server.key", SSL_FILETYPE_PEM), 1);
	if (asks)
		SSL_CTX_set_verify(server, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	if (ciphers)
		assert_int_equal(SSL_CTX_set_cipher_list(server, ciphers), 1);
	e->contexts[0] = client;
	e->contexts[1] = server;
	e->client = ssl_new(client, version, e->fds[0]);
	e->server = ssl_new(server, version, e->fds[1]);
	SSL_set_connect_state(e->client);
	SSL_set_accept_state(e->server);
}

static void ends_fini(struct ends *e)
{
	SSL_free(e->client);
	SSL_CTX_free(e->contexts[0]);
	SSL_CTX_free(e->contexts[1]);
	close(e->fds[0]);
	ERR_clear_error();
}

static bool waits(SSL *ssl, int result)
{
	int error = result == 1 ? SSL_ERROR_NONE : SSL_get_error(ssl, result);
	return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
}

/* Until the server has rejected the client, which it then resets. */
static void reject(struct ends *e)
{
	bool waiting = true;
	while (waiting) {
		if (!SSL_is_init_finished(e->client))
			SSL_do_handshake(e->client);
		waiting = waits(e->server, SSL_do_handshake(e->server));
		ERR_clear_error();
	}
	SSL_free(e->server);
	setsockopt(e->fds[1], SOL_SOCKET, SO_LINGER, &(struct linger){ 1, 0 },
		   sizeof(struct linger));
	close(e->fds[1]);
	poll(&(struct pollfd){ .fd = e->fds[0] }, 1, -1); /* the reset has arrived */
}

static void note(void *context, enum cause_kind kind)
{
	*(enum cause_kind *)context = kind;
}

static enum cause_kind rejected(int version, const char *ciphers, bool asks)
{
	struct ends e;
	enum cause_kind noted = CAUSE_NONE;
	ends_init(&e, version, ciphers, asks);
	reject(&e);
	tls_failure_watch(note, &noted);
	bool done = SSL_is_init_finished(e.client);
	int result = done ? SSL_write(e.client, "data", 4) : SSL_do_handshake(e.client);
	assert_int_equal(result, -1);
	int error = SSL_get_error(e.client, result);
	assert_int_equal(error, done ? SSL_ERROR_SYSCALL : SSL_ERROR_SSL);
	if (done)
		assert_int_equal(errno, ECONNRESET);
	tls_failure_watch(NULL, NULL);
	ends_fini(&e);
	return noted;
}

static void a_server_that_has_asked_for_a_certificate_rejects_that(void **state)
{
	(void)state;
	assert_int_equal(rejected(TLS1_2_VERSION, NULL, true), CAUSE_TLS_CLIENT_CERTIFICATE);
	assert_int_equal(rejected(TLS1_2_VERSION, "ECDHE-ECDSA-NULL-SHA:@SECLEVEL=0", true),
			 CAUSE_TLS_VERSION);
}

/* In TLS 1.3 the client's handshake is complete before; its first write fails. */
static void an_alert_is_found_after_a_failed_write(void **state)
{
	(void)state;
	assert_int_equal(rejected(TLS1_3_VERSION, NULL, true), CAUSE_TLS_CLIENT_CERTIFICATE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_alert_has_a_cause),
		cmocka_unit_test(a_server_that_has_asked_for_a_certificate_rejects_that),
		cmocka_unit_test(an_alert_is_found_after_a_failed_write),
	};
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, tls_ends_make_files, tls_ends_remove_files);
}
