/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SUPPORT_TLS_ENDS_H
#define TESTS_SUPPORT_TLS_ENDS_H

#include <openssl/ssl.h>

#include "net/tls/tls_server.h"

/* A session of net/tls/tls_server.h and a client made with OpenSSL, connected only through
 * memory. */

/*
 * Group setup and teardown: creates certificates in a new directory, which becomes the working
 * directory. ca signed server (P-256), renewed, server-rsa, weak (RSA 1024), client, utf8,
 * notclient, oddip (with a malformed address among its names) and the CA sub, which signed below.
 * other signed stranger.
 */
int tls_ends_make_files(void **state);
int tls_ends_remove_files(void **state);

struct tls_ends_client {
	const char *alpn; /* as on the wire; NULL: "\2h2", "": none */
	const char *certificate;
	const char *ciphers, *suites, *groups;
	int max_version, min_version;
};

struct tls_ends {
	struct tls_server *server;
	struct tls_session *session;
	SSL_CTX *context;
	SSL *client;
	size_t step;      /* bytes given to the session at once; 0: all */
	struct bytes got; /* received by the session */
	bool stop, alive;
	int reason; /* the reason of the client's last error; 0: none */
};

/* NAME.pem and NAME.key; valid until the call after the next one. */
struct tls_server_config tls_ends_config(const char *name);
/* Fails the test on an error. */
struct tls_server *tls_ends_server(const struct tls_server_config *config);

void tls_ends_connect(struct tls_ends *p, struct tls_server *server,
		      const struct tls_ends_client *client);
void tls_ends_free(struct tls_ends *p);
/* Gives bytes to the session, in steps. */
void tls_ends_give(struct tls_ends *p, struct view wire);
/* Passes to the session what the client has written; false: nothing. */
bool tls_ends_flush(struct tls_ends *p);
/* Until neither side has output; false: the client failed. */
bool tls_ends_pump(struct tls_ends *p);
/* Pumps the handshake; true: both sides are ready. */
bool tls_ends_shaken(struct tls_ends *p);
/* The same for a new client, and for a new server. */
bool tls_ends_connects(struct tls_server *server, const struct tls_ends_client *client);
bool tls_ends_config_connects(const struct tls_server_config *config,
			      const struct tls_ends_client *client);

#endif
