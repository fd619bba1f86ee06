/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls/tls_failure.h"

#include <dlfcn.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <pthread.h>
#include <stddef.h>

/* The clients of this thread. */
static _Thread_local struct {
	void (*failed)(void *context, enum cause_kind kind);
	void *context;
} watcher;

/* OpenSSL's reason is SSL_AD_REASON_OFFSET more than the number. Before TLS 1.3 a client without a
 * certificate also gets handshake_failure, for which servers have no other alert there. */
enum cause_kind tls_failure_of_alert(int alert, bool asked)
{
	switch (alert) {
	case SSL_AD_HANDSHAKE_FAILURE:
		return asked ? CAUSE_TLS_CLIENT_CERTIFICATE : CAUSE_TLS_VERSION;
	case SSL_AD_DECRYPT_ERROR: /* also of a signature in the client's certificate */
		return asked ? CAUSE_TLS_CLIENT_CERTIFICATE : CAUSE_TLS_REJECTED;
	case SSL_AD_PROTOCOL_VERSION:
	case SSL_AD_INSUFFICIENT_SECURITY:
		return CAUSE_TLS_VERSION;
	case SSL_AD_UNRECOGNIZED_NAME:
		return CAUSE_TLS_NAME;
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
		return CAUSE_TLS_REJECTED;
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

/* A request for a certificate has a list of authorities, which may be empty. TLS 1.3 may leave the
 * list out, but has alerts of its own. */
static bool has_asked(const SSL *ssl)
{
	return SSL_get0_peer_CA_list(ssl) != NULL;
}

static enum cause_kind cause_of(const SSL *ssl, unsigned long error)
{
	int reason = ERR_GET_REASON(error);
	if (ERR_GET_LIB(error) != ERR_LIB_SSL)
		return CAUSE_TLS_FAILED;
	if (reason > SSL_AD_REASON_OFFSET)
		return tls_failure_of_alert(reason - SSL_AD_REASON_OFFSET, has_asked(ssl));
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

static bool is_alert(unsigned long error)
{
	return ERR_GET_LIB(error) == ERR_LIB_SSL && ERR_GET_REASON(error) > SSL_AD_REASON_OFFSET;
}

/* In TLS 1.3 the client's part of the handshake is complete before the server rejects it. If the
 * server then closes the connection, the alert is still to be read after a write has failed. */
static bool find_alert(SSL *ssl)
{
	enum { READS_MAX = 64 };
	char data[1024];
	int error = errno;
	if (SSL_want(ssl) != SSL_WRITING || !SSL_is_init_finished(ssl))
		return false;
	for (int i = 0; i < READS_MAX && SSL_read(ssl, data, sizeof data) > 0;)
		i++;
	bool found = is_alert(ERR_peek_error());
	if (!found)
		ERR_clear_error();
	errno = error;
	return found;
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
	if (!watcher.failed || SSL_is_server(ssl))
		return error;
	if (error == SSL_ERROR_SSL || (error == SSL_ERROR_SYSCALL && find_alert((SSL *)ssl)))
		watcher.failed(watcher.context, cause_of(ssl, ERR_peek_error()));
	return error;
}

void tls_failure_watch(void (*failed)(void *context, enum cause_kind kind), void *context)
{
	watcher.failed = failed;
	watcher.context = context;
}
