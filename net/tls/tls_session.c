/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls/tls_private.h"

#include "base/memory.h"

#include <assert.h>
#include <openssl/err.h>
#include <pthread.h>
#include <string.h>

/* KeyUpdate (RFC 8446 §4.6.3) and attempts to renegotiate cost far more CPU than their bytes
 * suggest. A session may have this many, and one more for each MiB received. */
#define CONTROLS_MAX 32
#define RECORD_PLAIN_MAX SSL3_RT_MAX_PLAIN_LENGTH
#define RECORD_EXTRA 64 /* header, nonce, tag or MAC, padding: at most 62 */

/* OpenSSL allocates the announced size of a ClientHello (128 KiB and a third more) before it has
 * arrived. Up to this size, the memory is allocated anyway. Real ClientHellos have at most 2
 * KiB. */
#define HELLO_MAX (16 << 10)

/* Follows the handshake messages of the client that are not encrypted (RFC 8446 §4 and §5.1, RFC
 * 5246 §6.2.1 and §7.4). */
struct hello_watch {
	uint8_t record[5], message[4]; /* the headers, as far as they have arrived */
	uint8_t record_have, message_have;
	uint32_t record_left, message_left;
	bool done;
};

struct tls_session {
	SSL *ssl;
	struct hello_watch hello;
	struct view wire; /* during tls_session_receive: what OpenSSL has not read yet */
	struct bytes output;
	const char *failure;
	uint64_t received;
	uint32_t controls; /* see CONTROLS_MAX */
	bool ready, over /* nothing more is received */, closed /* nothing more is sent */;
};

static bool session_fail(struct tls_session *s, const char *why)
{
	if (!s->failure)
		s->failure = why;
	return false;
}

const char *tls_session_reason(void)
{
	const char *reason = ERR_reason_error_string(ERR_peek_error());
	return reason ? reason : "unknown error";
}

/* -- the BIO between OpenSSL and a session: reads from the wire and writes to the output, without
 * other copies -- */

static int bio_read(BIO *bio, char *to, int room)
{
	struct tls_session *s = BIO_get_data(bio);
	size_t len = s->wire.len < (size_t)room ? s->wire.len : (size_t)room;
	BIO_clear_retry_flags(bio);
	if (s->failure)
		return -1;
	if (!len) {
		BIO_set_retry_read(bio);
		return -1;
	}
	memcpy(to, s->wire.at, len);
	s->wire = (struct view){ s->wire.at + len, s->wire.len - len };
	return (int)len;
}

static int bio_write(BIO *bio, const char *from, int len)
{
	struct tls_session *s = BIO_get_data(bio);
	BIO_clear_retry_flags(bio);
	if (bytes_add(&s->output, from, (size_t)len))
		return len;
	session_fail(s, "the peer has stopped reading");
	return -1;
}

static long bio_control(BIO *bio, int command, long number, void *pointer)
{
	(void)bio, (void)number, (void)pointer;
	return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *bio_method;

static void make_bio_method(void)
{
	bio_method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "session");
	assert(bio_method);
	BIO_meth_set_read(bio_method, bio_read);
	BIO_meth_set_write(bio_method, bio_write);
	BIO_meth_set_ctrl(bio_method, bio_control);
}

static BIO *bio_new(struct tls_session *s)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, make_bio_method);
	BIO *bio = BIO_new(bio_method);
	assert(bio);
	BIO_set_data(bio, s);
	BIO_set_init(bio, 1);
	return bio;
}

/* -- callbacks of OpenSSL -- */

static void note_progress(const SSL *ssl, int where, int code)
{
	struct tls_session *s = SSL_get_app_data(ssl);
	(void)code;
	if (where & SSL_CB_HANDSHAKE_DONE)
		s->ready = true;
}

/* Counts handshake messages that arrive after the handshake, and the alerts with which OpenSSL
 * declines to renegotiate. */
static void note_message(int sent, int version, int kind, const void *at, size_t len, SSL *ssl,
			 void *context)
{
	struct tls_session *s = SSL_get_app_data(ssl);
	(void)version, (void)at, (void)len, (void)context;
	if (!s->ready || kind != (sent ? SSL3_RT_ALERT : SSL3_RT_HANDSHAKE))
		return;
	if (++s->controls > CONTROLS_MAX + (s->received >> 20))
		session_fail(s, "too many key updates or renegotiation attempts");
}

static int demand_alpn(SSL *ssl, int *alert, void *context)
{
	const unsigned char *offer;
	size_t len;
	(void)context;
	if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation,
				      &offer, &len))
		return SSL_CLIENT_HELLO_SUCCESS;
	session_fail(SSL_get_app_data(ssl), "the client did not offer an application protocol "
					    "(ALPN)");
	*alert = SSL_AD_NO_APPLICATION_PROTOCOL;
	return SSL_CLIENT_HELLO_ERROR;
}

/* RFC 7301 §3.1: a list of strings, each preceded by its length in one byte. OpenSSL has checked
 * the form. */
static int select_alpn(SSL *ssl, const unsigned char **chosen, unsigned char *chosen_len,
		       const unsigned char *offer, unsigned len, void *context)
{
	const char *wanted = context;
	for (unsigned i = 0; i < len; i += 1 + offer[i])
		if (view_is((struct view){ offer + i + 1, offer[i] }, wanted)) {
			*chosen = offer + i + 1;
			*chosen_len = offer[i];
			return SSL_TLSEXT_ERR_OK;
		}
	session_fail(SSL_get_app_data(ssl), "the client did not offer the application protocol "
					    "(ALPN)");
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

void tls_session_watch(SSL_CTX *context, const char *alpn)
{
	SSL_CTX_set_client_hello_cb(context, demand_alpn, NULL);
	SSL_CTX_set_alpn_select_cb(context, select_alpn, (void *)alpn);
	SSL_CTX_set_info_callback(context, note_progress);
	SSL_CTX_set_msg_callback(context, note_message);
}

/* -- the size of a ClientHello -- */

static bool message_fits(struct hello_watch *h, uint8_t byte)
{
	if (h->message_left) {
		h->message_left--;
		return true;
	}
	h->message[h->message_have++] = byte;
	if (h->message_have < sizeof h->message)
		return true;
	h->message_have = 0;
	h->message_left =
		(uint32_t)h->message[1] << 16 | (uint32_t)h->message[2] << 8 | h->message[3];
	return h->message[0] != SSL3_MT_CLIENT_HELLO || h->message_left <= HELLO_MAX;
}

static void begin_record(struct hello_watch *h, uint8_t byte, const SSL *ssl)
{
	h->record[h->record_have++] = byte;
	if (h->record_have < sizeof h->record)
		return;
	h->record_have = 0;
	h->record_left = (uint32_t)h->record[3] << 8 | h->record[4];
	/* In TLS 1.3, ChangeCipherSpec has no meaning, and a second ClientHello may follow it. */
	h->done = h->record[0] == SSL3_RT_CHANGE_CIPHER_SPEC && SSL_version(ssl) < TLS1_3_VERSION;
}

static bool hello_fits(struct hello_watch *h, struct view wire, const SSL *ssl)
{
	bool fits = true;
	for (size_t i = 0; i < wire.len && !h->done && fits; i++) {
		if (!h->record_left) {
			begin_record(h, wire.at[i], ssl);
			continue;
		}
		h->record_left--;
		fits = h->record[0] != SSL3_RT_HANDSHAKE || message_fits(h, wire.at[i]);
	}
	return fits;
}

struct tls_session *tls_session_new(struct tls_server *server)
{
	struct tls_session *s = memory_new(sizeof *s);
	bytes_init(&s->output, TLS_OUTPUT_MAX);
	s->ssl = tls_server_connect(server);
	BIO *bio = bio_new(s);
	SSL_set_bio(s->ssl, bio, bio);
	SSL_set_app_data(s->ssl, s);
	SSL_set_accept_state(s->ssl);
	return s;
}

void tls_session_free(struct tls_session **session)
{
	struct tls_session *s = *session;
	if (!s)
		return;
	*session = NULL;
	SSL_free(s->ssl);
	bytes_fini(&s->output);
	memory_free(s);
}

/* OpenSSL returned nothing. Finds out whether the wire is empty, the peer closed its side, or the
 * session failed. */
static void settle(struct tls_session *s)
{
	int why = SSL_get_error(s->ssl, -1);
	if (!s->failure && why == SSL_ERROR_WANT_READ)
		return;
	s->over = true;
	if (why != SSL_ERROR_ZERO_RETURN)
		session_fail(s, tls_session_reason());
}

bool tls_session_receive(struct tls_session *s, struct view wire,
			 bool (*plain)(void *context, struct view data), void *context)
{
	uint8_t part[RECORD_PLAIN_MAX];
	size_t len = 0;
	s->wire = wire;
	s->received += wire.len;
	if (!s->ready && !hello_fits(&s->hello, wire, s->ssl))
		s->over = !session_fail(s, "the ClientHello is too large");
	while (!s->over) {
		ERR_clear_error();
		if (SSL_read_ex(s->ssl, part, sizeof part, &len) != 1) {
			settle(s);
			break;
		}
		s->over = !plain(context, (struct view){ part, len });
	}
	ERR_clear_error();
	s->wire = (struct view){ 0 };
	return !s->over;
}

bool tls_session_ready(const struct tls_session *s)
{
	return s->ready;
}

const char *tls_session_failure(const struct tls_session *s)
{
	return s->failure;
}

static bool has_room(const struct tls_session *s, size_t len)
{
	size_t room = TLS_OUTPUT_MAX - s->output.len;
	return len <= room && (len / RECORD_PLAIN_MAX + 1) * RECORD_EXTRA <= room - len;
}

bool tls_session_send(struct tls_session *s, struct view plain)
{
	size_t written;
	if (!s->ready || s->closed || s->failure || !has_room(s, plain.len))
		return false;
	ERR_clear_error();
	if (plain.len && SSL_write_ex(s->ssl, plain.at, plain.len, &written) != 1)
		session_fail(s, tls_session_reason());
	ERR_clear_error();
	return !s->failure;
}

struct view tls_session_output(const struct tls_session *s)
{
	return bytes_view(&s->output);
}

/* An empty output keeps no memory, because most connections are idle most of the time. */
void tls_session_sent(struct tls_session *s, size_t len)
{
	struct bytes *out = &s->output;
	assert(len <= out->len);
	out->len -= len;
	if (out->len)
		memmove(out->at, out->at + len, out->len);
	else
		bytes_fini(out);
}

void tls_session_close(struct tls_session *s)
{
	if (s->ready && !s->closed && !s->failure)
		SSL_shutdown(s->ssl);
	s->closed = true;
	ERR_clear_error();
}

bool tls_session_owner(const struct tls_session *s, struct fields *auth)
{
	X509 *certificate = s->ready && SSL_get_verify_result(s->ssl) == X509_V_OK
				    ? SSL_get0_peer_certificate(s->ssl)
				    : NULL;
	unsigned char *der = NULL;
	int len = certificate ? i2d_X509(certificate, &der) : 0;
	if (len > 0)
		tls_owner_read(auth, (struct view){ der, (size_t)len });
	OPENSSL_free(der);
	ERR_clear_error();
	return len > 0;
}
