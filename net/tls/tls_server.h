/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_TLS_TLS_SERVER_H
#define NET_TLS_TLS_SERVER_H

#include "base/bytes.h"
#include "net/tls/tls.h"

/*
 * TLS for a server that does its own socket I/O, on OpenSSL: bytes from the socket go in, plaintext
 * comes out, and the reverse. No call waits, and none touches a socket.
 *
 *   tls_session_receive(s, wire, plain, context)   bytes from the socket; decrypted ones to plain()
 *   tls_session_send(s, plain)                     bytes to be encrypted
 *   tls_session_output(s)                          what the socket must send, after each of these
 *   tls_session_sent(s, n)                         the socket has sent n bytes of it
 *
 * TLS 1.2 and 1.3, as configured. A client must agree on the one protocol by ALPN (RFC 7301). A
 * client that offers others, or does not offer ALPN at all, gets the alert no_application_protocol
 * (as from grpc-go since 1.67; HTTP/2 over TLS requires it, RFC 9113 section 3.2). There is no
 * resumption (tickets would cost memory, and connections are few and long), no renegotiation, no
 * compression and no early data.
 */
struct tls_server;

/* A server's context, from the configuration and the files that it names. config and alpn are
 * borrowed: config until the last unref, alpn ("h2") also until the last session is freed. NULL
 * with ERROR_CONFIG, which names the file's role, if something is invalid. */
struct tls_server *tls_server_new(const struct tls_server_config *config, const char *alpn,
				  struct error *err);
/* Reads the files again. Later sessions use the new files; existing sessions do not change. False:
 * the new files are invalid, and the old ones stay in use. [any thread] */
bool tls_server_reopen(struct tls_server *server, bool *changed, struct error *err);
/* Accepts NULL; sessions may outlive their server. */
void tls_server_unref(struct tls_server **server);

/*
 * The TLS session of one connection. [one thread at a time] Measured with OpenSSL 3.0: 9 KB when
 * new, about 75 KB from the first byte to the end of the handshake, and 14 KB while idle (with
 * mTLS, plus the client's certificates, at most 64 KB on the wire). A handshake takes 0.25 ms of
 * CPU with a P-256 certificate, 0.55 ms with RSA 2048. The caller must bound the number and
 * duration of handshakes.
 */
struct tls_session;

/* The maximum number of bytes that may wait for the socket. It stops a peer that makes us reply and
 * does not read. */
#define TLS_OUTPUT_MAX (1 << 20)

struct tls_session *tls_session_new(struct tls_server *server); /* [any thread] */
void tls_session_free(struct tls_session **session);            /* accepts NULL */

/*
 * Takes all of `wire`, also during the handshake. plain() is called for each chunk of decrypted
 * bytes (at most 16 KiB, valid during the call). It may call tls_session_send, and returns false to
 * stop.
 *
 * False: the connection must be closed, because plain() stopped, the peer closed its side
 * (close_notify), or the session failed. The output must still be sent, because it may end in an
 * alert. Nothing more is received then. More may be sent until the session has failed.
 */
bool tls_session_receive(struct tls_session *s, struct view wire,
			 bool (*plain)(void *context, struct view data), void *context);
/* The handshake is complete, the protocol agreed and the client verified. */
bool tls_session_ready(const struct tls_session *s);
/* Why the session failed: a constant string of ours or OpenSSL's that contains nothing of the
 * peer's. NULL: it has not failed. */
const char *tls_session_failure(const struct tls_session *s);

/* Encrypts all of it, or nothing. False if more than TLS_OUTPUT_MAX would wait (the caller may try
 * again), or if the session is not ready, closed or has failed. */
bool tls_session_send(struct tls_session *s, struct view plain);
/* What the socket must send; valid until the next call for this session. */
struct view tls_session_output(const struct tls_session *s);
/* The socket has sent the first `len` bytes of the output. */
void tls_session_sent(struct tls_session *s, size_t len);
/* Adds close_notify to the output, once. Nothing can be sent afterwards; more may be received. */
void tls_session_close(struct tls_session *s);

/* Adds the names in the verified client certificate (net/tls/tls.h). False: there is none. */
bool tls_session_owner(const struct tls_session *s, struct fields *auth);

#endif
