/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_TLS_TLS_PRIVATE_H
#define NET_TLS_TLS_PRIVATE_H

#include "net/tls/tls_server.h"

#include <openssl/ssl.h>

/* Shared by net/tls/tls_server.c, the contexts, and net/tls/tls_session.c. */

/* A connection with the current certificates. [any thread] */
SSL *tls_server_connect(struct tls_server *server);
/* Makes sessions of the context call back: they require ALPN and watch the handshake. */
void tls_session_watch(SSL_CTX *context, const char *alpn);
/* OpenSSL's reason for the first error in the thread's queue, a constant string. */
const char *tls_session_reason(void);

#endif
