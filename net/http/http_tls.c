/* SPDX-License-Identifier: Apache-2.0 */
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "net/http/http_internal.h"
#include "net/tls/tls.h"

/* With GNUTLS_DEBUG_LEVEL in the environment, the library would write to stderr what peers sent:
 * names, certificates. */
void http_tls_silence(void)
{
	gnutls_global_set_log_level(0);
}

/* Called before the handshake. The handshake then fails for a client without a certificate, or with
 * one that the daemon's trust list does not accept for clients, so it cannot send a request. */
void http_tls_require(void *session)
{
	static gnutls_typed_vdata_st purpose = {
		.type = GNUTLS_DT_KEY_PURPOSE_OID,
		.data = (unsigned char *)GNUTLS_KP_TLS_WWW_CLIENT,
	};
	gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUIRE);
	gnutls_session_set_verify_cert2(session, &purpose, 1, 0);
}

/* The client's Finished is the last message that a server waits for. */
static int after_finished(gnutls_session_t session, unsigned type, unsigned when, unsigned incoming,
			  const gnutls_datum_t *message)
{
	(void)type;
	(void)when;
	(void)message;
	struct http_connection *c = gnutls_db_get_ptr(session);
	if (incoming && !c->secured) {
		http_deadline_enter(&c->loop->daemon->server->deadlines, &c->deadline,
				    HTTP_PHASE_HEADER);
		c->secured = true;
	}
	return 0;
}

/* The certificate's key signs next, which is nearly all that a handshake costs. Also called for the
 * second hello that a client sends after a HelloRetryRequest. */
static int after_hello(gnutls_session_t session)
{
	struct http_connection *c = gnutls_db_get_ptr(session);
	return c->may_shake_hands(c) ? 0 : GNUTLS_E_INTERRUPTED;
}

/* The session's own pointer is used by libmicrohttpd. The pointer for session storage is free,
 * because there is none. */
void http_tls_watch(void *session, struct http_connection *connection)
{
	gnutls_db_set_ptr(session, connection);
	gnutls_handshake_set_hook_function(session, GNUTLS_HANDSHAKE_FINISHED, GNUTLS_HOOK_POST,
					   after_finished);
	gnutls_handshake_set_post_client_hello_function(session, after_hello);
}

void http_tls_owner(void *session, struct http_exchange *x)
{
	unsigned count = 0;
	struct fields owner;
	const gnutls_datum_t *chain = gnutls_certificate_get_peers(session, &count);
	if (!chain || !count || gnutls_session_get_verify_cert_status(session) != 0)
		return;
	fields_init(&owner, &tls_owner_limits);
	tls_owner_read(&owner, (struct view){ chain[0].data, chain[0].size });
	fields_list(&owner);
	http_exchange_add_owner(x, &owner);
	fields_fini(&owner);
}

/* The socket does not block. What it does not accept immediately is lost; the connection is closed
 * anyway. */
void http_tls_send(void *session, const void *data, size_t len)
{
	gnutls_record_send(session, data, len);
}

bool http_tls_has_unread(void *session)
{
	return gnutls_record_check_pending(session) > 0;
}
