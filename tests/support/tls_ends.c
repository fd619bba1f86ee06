/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/tls_ends.h"

#include "base/memory.h"
#include "tests/support/shell.h"

#include <openssl/err.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char directory[] = "/tmp/portcullis-tls-server-XXXXXX";

/* ca signs server (P-256), server-rsa and clients; other is the CA of a stranger; sub is a CA
 * signed by ca. */
static const char *const script =
	"set -e\n"
	"ca() { openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "
	"/CN=$1 -keyout $1.key -out $1.pem; }\n"
	"leaf() { printf '%b' \"$4\" >ext\n"
	"  openssl req -new -utf8 -nodes -subj \"$3\" -keyout $2.key -out $2.csr $5\n"
	"  openssl x509 -req -in $2.csr -CA $1.pem -CAkey $1.key -CAcreateserial -days 2 -extfile "
	"ext -out $2.pem; }\n"
	"EC='-newkey ec -pkeyopt ec_paramgen_curve:P-256'\n"
	"ca ca; ca other\n"
	"leaf ca server /CN=localhost subjectAltName=DNS:localhost \"$EC\"\n"
	"leaf ca renewed /CN=renewed subjectAltName=DNS:localhost \"$EC\"\n"
	"leaf ca server-rsa /CN=localhost subjectAltName=DNS:localhost '-newkey rsa:2048'\n"
	"leaf ca weak /CN=localhost subjectAltName=DNS:localhost '-newkey rsa:1024'\n"
	"leaf ca client '/O=Fleet, Inc./CN=agent-7, #1' "
	"\"extendedKeyUsage=clientAuth\\nsubjectAltName=DNS:localhost,IP:127.0.0.1,DNS:b.fleet.example,URI:spiffe://fleet.example/agent-7,email:ops@fleet.example\\n\" "
	"\"$EC\"\n"
	"leaf ca utf8 '/O=M\303\274ller/emailAddress=a@b' extendedKeyUsage=clientAuth \"$EC\"\n"
	"leaf ca notclient /CN=web extendedKeyUsage=serverAuth \"$EC\"\n"
	/* 3 bytes instead of an address of 4 or 16, followed by a name: SEQUENCE { [7] 010203, [2]
	 * "d.x" } */
	"leaf ca oddip /CN=odd subjectAltName=DER:300A87030102038203642E78 \"$EC\"\n"
	"leaf other stranger /CN=stranger extendedKeyUsage=clientAuth \"$EC\"\n"
	"leaf ca sub /CN=sub basicConstraints=critical,CA:TRUE \"$EC\"\n"
	"leaf sub below /CN=below extendedKeyUsage=clientAuth \"$EC\"\n";

int tls_ends_make_files(void **state)
{
	(void)state;
	if (!mkdtemp(directory) || chdir(directory) != 0)
		return -1;
	FILE *file = fopen("make.sh", "w");
	fputs(script, file);
	fclose(file);
	return shell("sh make.sh >make.log 2>&1 || { cat make.log; exit 1; }");
}

int tls_ends_remove_files(void **state)
{
	(void)state;
	return shell("rm -rf '%s'", directory);
}

/* -- a server and one client, connected only through memory -- */

struct tls_server_config tls_ends_config(const char *name)
{
	static char cert[2][32], key[2][32];
	static int turn;
	turn = !turn;
	snprintf(cert[turn], sizeof cert[turn], "%s.pem", name);
	snprintf(key[turn], sizeof key[turn], "%s.key", name);
	return (struct tls_server_config){ .cert_file = cert[turn], .key_file = key[turn] };
}

struct tls_server *tls_ends_server(const struct tls_server_config *config)
{
	struct error err = { 0 };
	struct tls_server *server = tls_server_new(config, "h2", &err);
	if (!server)
		fail_msg("%s", err.text);
	return server;
}

static void client_files(SSL_CTX *context, const char *name)
{
	char *cert = memory_format("%s.pem", name), *key = memory_format("%s.key", name);
	assert_int_equal(SSL_CTX_use_certificate_chain_file(context, cert), 1);
	assert_int_equal(SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM), 1);
	memory_free(cert);
	memory_free(key);
}

static SSL_CTX *client_context(const struct tls_ends_client *c)
{
	const char *alpn = c->alpn ? c->alpn : "\2h2";
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());
	assert_int_equal(SSL_CTX_load_verify_file(context, "ca.pem"), 1);
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
	if (*alpn)
		SSL_CTX_set_alpn_protos(context, (const unsigned char *)alpn,
					(unsigned)strlen(alpn));
	if (c->certificate)
		client_files(context, c->certificate);
	assert_int_equal(SSL_CTX_set_min_proto_version(context, c->min_version), 1);
	assert_int_equal(SSL_CTX_set_max_proto_version(context, c->max_version), 1);
	if (c->ciphers)
		assert_int_equal(SSL_CTX_set_cipher_list(context, c->ciphers), 1);
	if (c->suites)
		assert_int_equal(SSL_CTX_set_ciphersuites(context, c->suites), 1);
	if (c->groups)
		assert_int_equal(SSL_CTX_set1_groups_list(context, c->groups), 1);
	return context;
}

void tls_ends_connect(struct tls_ends *p, struct tls_server *server,
		      const struct tls_ends_client *client)
{
	*p = (struct tls_ends){ .server = server,
				.session = tls_session_new(server),
				.alive = true,
				.context = client_context(client) };
	bytes_init(&p->got, 16 << 20);
	p->client = SSL_new(p->context);
	SSL_set_bio(p->client, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
	SSL_set_connect_state(p->client);
}

void tls_ends_free(struct tls_ends *p)
{
	tls_session_free(&p->session);
	SSL_free(p->client);
	SSL_CTX_free(p->context);
	bytes_fini(&p->got);
	ERR_clear_error(); /* of the client */
}

static bool take(void *context, struct view data)
{
	struct tls_ends *p = context;
	assert_true(data.len > 0 && bytes_add(&p->got, data.at, data.len));
	return !p->stop;
}

void tls_ends_give(struct tls_ends *p, struct view wire)
{
	while (wire.len && p->alive) {
		size_t len = p->step && p->step < wire.len ? p->step : wire.len;
		uint8_t *copy = memory_new(len); /* exact size: reads past its end are found */
		memcpy(copy, wire.at, len);
		p->alive = tls_session_receive(p->session, (struct view){ copy, len }, take, p);
		assert_int_equal(ERR_peek_error(), 0);
		memory_free(copy);
		wire = (struct view){ wire.at + len, wire.len - len };
	}
}

bool tls_ends_flush(struct tls_ends *p)
{
	BIO *from = SSL_get_wbio(p->client);
	char *at;
	long len = BIO_get_mem_data(from, &at);
	if (len <= 0 || !p->alive)
		return false;
	tls_ends_give(p, (struct view){ (uint8_t *)at, (size_t)len });
	(void)BIO_reset(from);
	return true;
}

static bool to_client(struct tls_ends *p)
{
	struct view out = tls_session_output(p->session);
	if (!out.len)
		return false;
	size_t part = out.len > 1 ? out.len / 2 : 1;
	assert_int_equal(BIO_write(SSL_get_rbio(p->client), out.at, (int)part), part);
	tls_session_sent(p->session, part);
	return true;
}

/* Until neither side has output; false: the client failed. */
bool tls_ends_pump(struct tls_ends *p)
{
	bool moved = true, ok = true;
	while (moved && ok) {
		ERR_clear_error();
		int code = SSL_do_handshake(p->client);
		ok = code == 1 || SSL_get_error(p->client, code) == SSL_ERROR_WANT_READ;
		p->reason = ERR_GET_REASON(ERR_peek_error());
		moved = tls_ends_flush(p);
		moved |= to_client(p);
	}
	return ok;
}

bool tls_ends_shaken(struct tls_ends *p)
{
	bool ok = tls_ends_pump(p) && tls_session_ready(p->session) &&
		  SSL_is_init_finished(p->client);
	assert_true(!p->alive == !!tls_session_failure(p->session));
	/* With TLS 1.3, the client is ready before the server has verified it. */
	return ok && p->alive;
}

bool tls_ends_connects(struct tls_server *server, const struct tls_ends_client *client)
{
	struct tls_ends p;
	tls_ends_connect(&p, server, client);
	bool ok = tls_ends_shaken(&p);
	tls_ends_free(&p);
	return ok;
}

bool tls_ends_config_connects(const struct tls_server_config *config,
			      const struct tls_ends_client *client)
{
	struct tls_server *server = tls_ends_server(config);
	bool ok = tls_ends_connects(server, client);
	tls_server_unref(&server);
	assert_null(server);
	return ok;
}
