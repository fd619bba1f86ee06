/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_TLS_TLS_SERVER_H
#define NET_TLS_TLS_SERVER_H

#include "base/bytes.h"
#include "net/tls/tls.h"

/*
 * TLS for a server that does its own socket I/O, on OpenSSL: bytes from the socket go in, plaintext
 * comes out, and the reverse. No call waits, none touches a socket.
 *
 *	tls_session_receive(s, wire, plain, context)    from the socket; decrypted bytes to plain()
 *	tls_session_send(s, reply)                      to be encrypted tls_session_output(s),
 *	tls_session_sent(s, n)   what the socket has to send, after each of the other calls
 *
 * TLS 1.2 and 1.3, as the configuration says. A client must agree on the one protocol by ALPN (RFC
 * 7301): one that offers others, or does not offer ALPN at all, gets the alert
 * no_application_protocol (as from grpc-go since 1.67; HTTP/2 over TLS requires it, RFC 9113
 * section 3.2). There is no resumption (tickets would cost memory, and connections are few and
 * long), no renegotiation, no compression and no early data.
 */
struct tls_server;

/*
 * What the configuration says, with the files that it names. config and alpn are borrowed: config
 * until the last unref, alpn ("h2") also until the last session is freed. NULL with ERROR_CONFIG,
 * naming the file's role, if something is wrong.
 */
struct tls_server *tls_server_new(const struct tls_server_config *config, const char *alpn,
				  struct error *err);
/*
 * Reads the files again. Later sessions get what is new; sessions that exist keep what they have.
 * False: something is wrong with the new files, and the old ones stay in use. [any thread]
 */
bool tls_server_reload(struct tls_server *server, bool *changed, struct error *err);
/* Accepts NULL; sessions may outlive their server. */
void tls_server_unref(struct tls_server **server);

/*
 * One connection. [one thread at a time] Measured with OpenSSL 3.0: 9 KB when new, some 75 KB from
 * the first byte to the end of the handshake, and 14 KB while idle (mTLS: and the client's
 * certificates, at most 64 KB on the wire). A handshake takes 0.25 ms of CPU with a P-256
 * certificate, 0.55 ms with RSA 2048; bounding their number and their time is the caller's part.
 */
struct tls_session;

/* Bytes that may wait for the socket. A peer that makes us answer and does not read what we say
 * ends here. */
#define TLS_OUTPUT_MAX (1 << 20)

struct tls_session *tls_session_new(struct tls_server *server); /* [any thread] */
void tls_session_free(struct tls_session **session);            /* accepts NULL */

/*
 * Takes all of `wire`, also during the handshake. plain() is called for each stretch of decrypted
 * bytes (at most 16 KiB, valid during the call); it may call tls_session_send, and returns false to
 * stop.
 * False: the connection is to be closed, because plain() said so, the peer closed its side
 * (close_notify) or the session failed; the output is still to be sent, for it may end in an alert.
 * Nothing more is received then. Until it has failed, more may be sent.
 */
bool tls_session_receive(struct tls_session *s, struct view wire,
			 bool (*plain)(void *context, struct view data), void *context);
/* The handshake is complete, the protocol agreed and the client verified. */
bool tls_session_ready(const struct tls_session *s);
/* Why the session failed: a constant string of ours or OpenSSL's, nothing of the peer's. NULL: it
 * has not. */
const char *tls_session_failure(const struct tls_session *s);

/*
 * Encrypts all of it, or nothing: false if more than TLS_OUTPUT_MAX would wait (then it may be
 * tried again), or the session is not ready, closed or has failed.
 */
bool tls_session_send(struct tls_session *s, struct view plain);
/* What the socket has to send; valid until the next call for this session. */
struct view tls_session_output(const struct tls_session *s);
/* The socket took the first `len` bytes of it. */
void tls_session_sent(struct tls_session *s, size_t len);
/* Adds close_notify to the output, once; nothing is sent afterwards. More may be received. */
void tls_session_close(struct tls_session *s);

/* Adds what the verified client certificate says of its owner (net/tls/tls.h). False: there is
 * none. */
bool tls_session_owner(const struct tls_session *s, struct fields *auth);

#endif
