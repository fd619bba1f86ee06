/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls/tls.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>

const struct fields_limits tls_owner_limits = {
	.count = 32, .name = 16, .value = 1023, .total = 16384
};

static void add(struct fields *auth, const char *name, const void *value, size_t len)
{
	if (len)
		fields_add(auth, view_of(name), (struct view){ value, len }, NULL);
}

static void add_subject(struct fields *auth, const X509_NAME *subject)
{
	BIO *text = BIO_new(BIO_s_mem());
	char *at = NULL;
	if (text &&
	    X509_NAME_print_ex(text, subject, 0, XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB) > 0) {
		long len = BIO_get_mem_data(text, &at);
		add(auth, "subject", at, (size_t)len);
	}
	BIO_free(text);
}

static void add_common_name(struct fields *auth, const X509_NAME *subject)
{
	unsigned char *text = NULL;
	X509_NAME_ENTRY *first =
		X509_NAME_get_entry(subject,
				    X509_NAME_get_index_by_NID(subject, NID_commonName, -1));
	int len = first ? ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(first)) : -1;
	if (len > 0)
		add(auth, "common_name", text, (size_t)len);
	OPENSSL_free(text);
}

static void add_names(struct fields *auth, const GENERAL_NAMES *names, int wanted, const char *as)
{
	for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
		int kind;
		const ASN1_STRING *value =
			GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, i), &kind);
		if (kind == wanted)
			add(auth, as, ASN1_STRING_get0_data(value),
			    (size_t)ASN1_STRING_length(value));
	}
}

static void add_alternative_names(struct fields *auth, const X509 *certificate)
{
	GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
	if (!names)
		return;
	add_names(auth, names, GEN_URI, "uri");
	add_names(auth, names, GEN_EMAIL, "email");
	add_names(auth, names, GEN_DNS, "dns");
	GENERAL_NAMES_free(names);
}

void tls_owner_read(struct fields *auth, struct view der)
{
	const unsigned char *at = der.at;
	X509 *certificate = d2i_X509(NULL, &at, (long)der.len);
	if (certificate) {
		add_subject(auth, X509_get_subject_name(certificate));
		add_common_name(auth, X509_get_subject_name(certificate));
		add_alternative_names(auth, certificate);
	}
	X509_free(certificate);
	ERR_clear_error();
}
