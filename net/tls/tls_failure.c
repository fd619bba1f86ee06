/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls/tls_failure.h"

#include <dlfcn.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static void (*_Atomic watcher)(enum cause_kind kind);

/* OpenSSL's reason is SSL_AD_REASON_OFFSET more than the number. */
enum cause_kind tls_failure_of_alert(int alert)
{
	switch (alert) {
	case SSL_AD_HANDSHAKE_FAILURE:
		return CAUSE_TLS_REJECTED;
	case SSL_AD_PROTOCOL_VERSION:
	case SSL_AD_INSUFFICIENT_SECURITY:
		return CAUSE_TLS_VERSION;
	case SSL_AD_NO_APPLICATION_PROTOCOL:
		return CAUSE_TLS_NO_HTTP2;
	case SSL_AD_BAD_CERTIFICATE:
	case SSL_AD_UNSUPPORTED_CERTIFICATE:
	case SSL_AD_CERTIFICATE_REVOKED:
	case SSL_AD_CERTIFICATE_EXPIRED:
	case SSL_AD_CERTIFICATE_UNKNOWN:
	case SSL_AD_UNKNOWN_CA:
	case SSL_AD_ACCESS_DENIED:
	case SSL_AD_CERTIFICATE_REQUIRED:
		return CAUSE_TLS_CLIENT_CERTIFICATE;
	default:
		return CAUSE_TLS_FAILED;
	}
}

enum cause_kind tls_failure_of_verification(long result)
{
	switch (result) {
	case X509_V_ERR_CERT_HAS_EXPIRED:
		return CAUSE_EXPIRED;
	case X509_V_ERR_CERT_NOT_YET_VALID:
		return CAUSE_NOT_YET_VALID;
	case X509_V_ERR_CERT_REVOKED:
		return CAUSE_REVOKED;
	case X509_V_ERR_HOSTNAME_MISMATCH:
	case X509_V_ERR_IP_ADDRESS_MISMATCH:
		return CAUSE_NAME_MISMATCH;
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
	case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
	case X509_V_ERR_CERT_SIGNATURE_FAILURE: /* by another authority of the same name */
	case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
	case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
	case X509_V_ERR_CERT_UNTRUSTED:
		return CAUSE_UNKNOWN_AUTHORITY;
	default:
		return CAUSE_CERTIFICATE;
	}
}

static enum cause_kind cause_of(const SSL *ssl, unsigned long error)
{
	int reason = ERR_GET_REASON(error);
	if (ERR_GET_LIB(error) != ERR_LIB_SSL)
		return CAUSE_TLS_FAILED;
	if (reason > SSL_AD_REASON_OFFSET)
		return tls_failure_of_alert(reason - SSL_AD_REASON_OFFSET);
	switch (reason) {
	case SSL_R_CERTIFICATE_VERIFY_FAILED:
		return tls_failure_of_verification(SSL_get_verify_result(ssl));
	case SSL_R_WRONG_VERSION_NUMBER:
	case SSL_R_HTTP_REQUEST:
	case SSL_R_BAD_RECORD_TYPE:
	case SSL_R_PACKET_LENGTH_TOO_LONG:
	case SSL_R_RECORD_LENGTH_MISMATCH:
	case SSL_R_UNKNOWN_PROTOCOL:
		return SSL_is_init_finished(ssl) ? CAUSE_TLS_FAILED : CAUSE_NOT_TLS;
	case SSL_R_UNSUPPORTED_PROTOCOL:
		return CAUSE_TLS_VERSION;
	default:
		return CAUSE_TLS_FAILED;
	}
}

static int (*real_get_error)(const SSL *ssl, int result);

static void find_real(void)
{
	*(void **)&real_get_error = dlsym(RTLD_NEXT, "SSL_get_error");
}

__attribute__((visibility("default"))) int SSL_get_error(const SSL *ssl, int result)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, find_real);
	int error = real_get_error(ssl, result);
	void (*failed)(enum cause_kind) = watcher;
	if (error == SSL_ERROR_SSL && failed && !SSL_is_server(ssl))
		failed(cause_of(ssl, ERR_peek_error()));
	return error;
}

void tls_failure_watch(void (*failed)(enum cause_kind kind))
{
	watcher = failed;
}
