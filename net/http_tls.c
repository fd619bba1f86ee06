/* SPDX-License-Identifier: Apache-2.0 */
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <gnutls/x509-ext.h>
#include <string.h>

#include "net/http_internal.h"
#include "net/tls.h"

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

static void add_subject(struct fields *auth, gnutls_x509_crt_t certificate)
{
	gnutls_datum_t dn = { 0 };
	if (gnutls_x509_crt_get_dn3(certificate, &dn, 0) < 0)
		return;
	tls_owner_add(auth, "subject", dn.data, dn.size);
	gnutls_free(dn.data);
}

/* Of a DirectoryString, those that are UTF-8 (X.680: UTF8String, PrintableString, IA5String). */
static bool is_text(unsigned long tag)
{
	return tag == 12 || tag == 19 || tag == 22;
}

/* The first one, as it is: the function that gives it by its OID escapes it. */
static void add_common_name(struct fields *auth, gnutls_x509_crt_t certificate)
{
	gnutls_x509_dn_t dn;
	gnutls_x509_ava_st part;
	if (gnutls_x509_crt_get_subject(certificate, &dn) < 0)
		return;
	for (int i = 0; gnutls_x509_dn_get_rdn_ava(dn, i, 0, &part) >= 0; i++)
		if (part.oid.size >= strlen(GNUTLS_OID_X520_COMMON_NAME) && is_text(part.value_tag) &&
		    !strncmp((const char *)part.oid.data, GNUTLS_OID_X520_COMMON_NAME, part.oid.size)) {
			tls_owner_add(auth, "common_name", part.value.data, part.value.size);
			return;
		}
}

static void add_names(struct fields *auth, gnutls_subject_alt_names_t names, unsigned wanted, const char *as)
{
	gnutls_datum_t name;
	unsigned kind;
	for (unsigned i = 0; gnutls_subject_alt_names_get(names, i, &kind, &name, NULL) >= 0; i++)
		if (kind == wanted)
			tls_owner_add(auth, as, name.data, name.size);
}

/* Decoded once: the function that gives them one by one decodes all of them each time, and there may be thousands. */
static void add_alternative_names(struct fields *auth, gnutls_x509_crt_t certificate)
{
	gnutls_datum_t extension = { 0 };
	gnutls_subject_alt_names_t names;
	if (gnutls_x509_crt_get_extension_by_oid2(certificate, GNUTLS_X509EXT_OID_SAN, 0, &extension, NULL) < 0)
		return;
	if (gnutls_subject_alt_names_init(&names) >= 0) {
		if (gnutls_x509_ext_import_subject_alt_names(&extension, names, 0) >= 0) {
			add_names(auth, names, GNUTLS_SAN_URI, "uri");
			add_names(auth, names, GNUTLS_SAN_RFC822NAME, "email");
			add_names(auth, names, GNUTLS_SAN_DNSNAME, "dns");
		}
		gnutls_subject_alt_names_deinit(names);
	}
	gnutls_free(extension.data);
}

void http_tls_owner(void *session, struct fields *auth)
{
	unsigned count = 0;
	const gnutls_datum_t *chain = gnutls_certificate_get_peers(session, &count);
	gnutls_x509_crt_t certificate;
	if (!chain || !count || gnutls_session_get_verify_cert_status(session) != 0 ||
	    gnutls_x509_crt_init(&certificate) < 0)
		return;
	if (gnutls_x509_crt_import(certificate, &chain[0], GNUTLS_X509_FMT_DER) >= 0) {
		add_subject(auth, certificate);
		add_common_name(auth, certificate);
		add_alternative_names(auth, certificate);
	}
	gnutls_x509_crt_deinit(certificate);
}

/* The socket does not block; what it does not take at once is lost, and the connection is closed anyhow. */
void http_tls_send(void *session, const void *data, size_t len)
{
	gnutls_record_send(session, data, len);
}
