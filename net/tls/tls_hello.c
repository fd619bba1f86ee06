/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls/tls_hello.h"

#include <assert.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>

enum { LIST_HEAD = 2, PROTOCOL_MAX = 16 };

static SSL_CTX *looker;

struct look {
	const char *protocol;
	enum tls_hello result;
};

/* RFC 7301 §3.1: the extension is the length of a list in two bytes, and the list. */
static bool offers(SSL *ssl, const char *protocol)
{
	const unsigned char *offer;
	size_t len, wanted_len = strlen(protocol);
	unsigned char wanted[1 + PROTOCOL_MAX] = { (unsigned char)wanted_len };
	unsigned char *chosen, chosen_len;
	assert(wanted_len <= PROTOCOL_MAX);
	if (!SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation,
				       &offer, &len) ||
	    len <= LIST_HEAD)
		return false;
	memcpy(wanted + 1, protocol, wanted_len);
	return SSL_select_next_proto(&chosen, &chosen_len, wanted, (unsigned)wanted_len + 1,
				     offer + LIST_HEAD,
				     (unsigned)(len - LIST_HEAD)) == OPENSSL_NPN_NEGOTIATED;
}

/* The ClientHello is complete. The handshake ends here. */
static int on_hello(SSL *ssl, int *alert, void *context)
{
	struct look *look = SSL_get_app_data(ssl);
	(void)alert, (void)context;
	look->result = offers(ssl, look->protocol) ? TLS_HELLO_OFFERS : TLS_HELLO_OTHER;
	return SSL_CLIENT_HELLO_RETRY;
}

static void make_looker(void)
{
	looker = SSL_CTX_new(TLS_server_method());
	assert(looker);
	SSL_CTX_set_client_hello_cb(looker, on_hello, NULL);
}

enum tls_hello tls_hello_look(struct view wire, const char *protocol)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct look look = { protocol, TLS_HELLO_OTHER };
	if (!wire.len)
		return TLS_HELLO_PARTIAL;
	pthread_once(&once, make_looker);
	SSL *ssl = SSL_new(looker);
	BIO *in = BIO_new_mem_buf(wire.at, (int)wire.len), *out = BIO_new(BIO_s_null());
	assert(ssl && in && out);
	BIO_set_mem_eof_return(in, -1);
	SSL_set_bio(ssl, in, out);
	SSL_set_app_data(ssl, &look);
	ERR_clear_error();
	int code = SSL_accept(ssl);
	if (SSL_get_error(ssl, code) == SSL_ERROR_WANT_READ)
		look.result = wire.len < TLS_HELLO_MAX ? TLS_HELLO_PARTIAL : TLS_HELLO_OTHER;
	SSL_free(ssl);
	ERR_clear_error();
	return look.result;
}
