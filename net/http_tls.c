/* SPDX-License-Identifier: Apache-2.0 */
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "base/memory.h"
#include "net/http_internal.h"

/* With GNUTLS_DEBUG_LEVEL in the environment the library writes to stderr what peers sent: names, certificates. */
void http_tls_silence(void)
{
	gnutls_global_set_log_level(0);
}

/*
 * Called before the handshake: a client without a certificate, or with one that the daemon's trust list does not
 * vouch for as a client's, then fails in the handshake and never gets to send a request.
 */
void http_tls_require(void *session)
{
	static gnutls_typed_vdata_st purpose = {
		.type = GNUTLS_DT_KEY_PURPOSE_OID,
		.data = (unsigned char *)GNUTLS_KP_TLS_WWW_CLIENT,
	};
	gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUIRE);
	gnutls_session_set_verify_cert2(session, &purpose, 1, 0);
}

static char *subject_of(gnutls_x509_crt_t certificate)
{
	gnutls_datum_t dn = { 0 };
	if (gnutls_x509_crt_get_dn3(certificate, &dn, 0) < 0)
		return NULL;
	char *text = memory_text_of(dn.data, dn.size);
	gnutls_free(dn.data);
	return text;
}

char *http_tls_identity(void *session)
{
	unsigned count = 0;
	const gnutls_datum_t *chain = gnutls_certificate_get_peers(session, &count);
	gnutls_x509_crt_t certificate;
	if (!chain || !count || gnutls_session_get_verify_cert_status(session) != 0 ||
	    gnutls_x509_crt_init(&certificate) < 0)
		return NULL;
	char *text = NULL;
	if (gnutls_x509_crt_import(certificate, &chain[0], GNUTLS_X509_FMT_DER) >= 0)
		text = subject_of(certificate);
	gnutls_x509_crt_deinit(certificate);
	return text;
}

/* The socket does not block; what it does not take at once is lost, and the connection is closed anyhow. */
void http_tls_send(void *session, const void *data, size_t len)
{
	gnutls_record_send(session, data, len);
}
