/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_TLS_TLS_HELLO_H
#define NET_TLS_TLS_HELLO_H

#include "base/bytes.h"

/* Looks at the beginning of a TLS connection without consuming it. OpenSSL parses the ClientHello;
 * nothing is negotiated and nothing is kept. */
enum tls_hello {
	TLS_HELLO_PARTIAL, /* more bytes are needed */
	TLS_HELLO_OFFERS,
	TLS_HELLO_OTHER /* it does not offer the protocol, or is not a ClientHello */
};

/* A ClientHello that is longer than this is not looked at: TLS_HELLO_OTHER. */
enum { TLS_HELLO_MAX = 16384 };

/* Does the ClientHello with which `wire` begins offer the protocol by ALPN (RFC 7301)? [any
 * thread] */
enum tls_hello tls_hello_look(struct view wire, const char *protocol);

#endif
