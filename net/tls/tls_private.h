/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_TLS_TLS_PRIVATE_H
#define NET_TLS_TLS_PRIVATE_H

#include "net/tls/tls_server.h"

#include <openssl/ssl.h>

/* Between net/tls/tls_server.c, the contexts, and net/tls/tls_session.c. */

/* A connection with what the configuration says now. [any thread] */
SSL *tls_server_connect(struct tls_server *server);
/* Has sessions made from the context call back: they insist on ALPN and watch the handshake. */
void tls_session_watch(SSL_CTX *context, const char *alpn);
/* OpenSSL's reason for the first error of the thread's queue, a constant string. */
const char *tls_session_reason(void);

#endif
