/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/http_cause.h"

#include <gnutls/gnutls.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

/* Has a proxy refused to forward the connection? */
static bool refused_by_proxy(CURL *curl)
{
	long status = 0;
	curl_easy_getinfo(curl, CURLINFO_HTTP_CONNECTCODE, &status);
	return status >= 300;
}

const char *http_cause_failure(CURL *curl, CURLcode code)
{
	if (refused_by_proxy(curl))
		return "proxy";
	switch (code) {
	case CURLE_COULDNT_RESOLVE_PROXY:
	case CURLE_PROXY:
		return "proxy";
	case CURLE_OPERATION_TIMEDOUT:
		return "deadline_exceeded";
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CACERT_BADFILE:
		return "tls";
	case CURLE_COULDNT_RESOLVE_HOST:
		return "unresolved";
	case CURLE_PARTIAL_FILE:
	case CURLE_GOT_NOTHING:
	case CURLE_RECV_ERROR:
		return "cut";
	case CURLE_URL_MALFORMAT:
		return "url";
	default:
		return "unavailable";
	}
}

/* In the words of GnuTLS, which libcurl repeats. */
static const struct {
	const char *pattern;
	enum cause_kind kind;
} handshakes[] = {
	{ "unexpected TLS packet", CAUSE_NOT_TLS },
	{ "packet with illegal version", CAUSE_NOT_TLS },
	{ "record packet with", CAUSE_NOT_TLS },
	{ "Certificate is required", CAUSE_TLS_CLIENT_CERTIFICATE },
	{ "Certificate is bad", CAUSE_TLS_CLIENT_CERTIFICATE },
	{ "Certificate was revoked", CAUSE_TLS_CLIENT_CERTIFICATE },
	{ "Certificate is expired", CAUSE_TLS_CLIENT_CERTIFICATE },
	{ "Certificate is not supported", CAUSE_TLS_CLIENT_CERTIFICATE },
	{ "Unknown certificate", CAUSE_TLS_CLIENT_CERTIFICATE },
	{ "CA is unknown", CAUSE_TLS_CLIENT_CERTIFICATE },
	{ "Access was denied", CAUSE_TLS_CLIENT_CERTIFICATE },
	{ "Handshake failed", CAUSE_TLS_REJECTED },
	{ "protocol version", CAUSE_TLS_VERSION },
	{ "Insufficient security", CAUSE_TLS_VERSION },
	{ "cipher suite", CAUSE_TLS_VERSION },
};

static enum cause_kind cause_of_handshake(const char *text)
{
	for (size_t i = 0; i < sizeof handshakes / sizeof *handshakes; i++)
		if (strstr(text, handshakes[i].pattern))
			return handshakes[i].kind;
	return CAUSE_TLS_FAILED;
}

/* The result is a set of bits of GnuTLS. Without any, libcurl has compared the name. */
static enum cause_kind cause_of_verification(CURL *curl)
{
	long result = 0;
	curl_easy_getinfo(curl, CURLINFO_SSL_VERIFYRESULT, &result);
	if (!result)
		return CAUSE_NAME_MISMATCH;
	if (result & GNUTLS_CERT_REVOKED)
		return CAUSE_REVOKED;
	if (result & (GNUTLS_CERT_SIGNER_NOT_FOUND | GNUTLS_CERT_SIGNATURE_FAILURE))
		return CAUSE_UNKNOWN_AUTHORITY;
	if (result & GNUTLS_CERT_EXPIRED)
		return CAUSE_EXPIRED;
	if (result & GNUTLS_CERT_NOT_ACTIVATED)
		return CAUSE_NOT_YET_VALID;
	return CAUSE_CERTIFICATE;
}

static bool is_connected(CURL *curl)
{
	long port = 0;
	curl_easy_getinfo(curl, CURLINFO_LOCAL_PORT, &port);
	return port > 0;
}

static bool has_passed(CURL *curl, CURLINFO stage)
{
	curl_off_t at = 0;
	curl_easy_getinfo(curl, stage, &at);
	return at > 0;
}

static bool is_secure(CURL *curl)
{
	char *scheme = NULL;
	curl_easy_getinfo(curl, CURLINFO_SCHEME, &scheme);
	return scheme && !strcasecmp(scheme, "https");
}

static enum cause_kind cause_of_timeout(CURL *curl)
{
	if (!has_passed(curl, CURLINFO_NAMELOOKUP_TIME_T))
		return CAUSE_UNRESOLVED;
	if (!is_connected(curl))
		return CAUSE_CONNECT_TIMEOUT;
	if (is_secure(curl) && !has_passed(curl, CURLINFO_APPCONNECT_TIME_T))
		return CAUSE_TLS_TIMEOUT;
	return CAUSE_NO_RESPONSE;
}

static struct cause of_kind(enum cause_kind kind)
{
	return (struct cause){ kind, 0 };
}

/* libcurl keeps the errno of a failed connect, and of a failed transfer. */
static struct cause of_errno(CURL *curl, enum cause_kind otherwise)
{
	long number = 0;
	curl_easy_getinfo(curl, CURLINFO_OS_ERRNO, &number);
	return cause_of_errno((int)number, otherwise);
}

struct cause http_cause_of(CURL *curl, CURLcode code, const char *text)
{
	if (refused_by_proxy(curl))
		return of_kind(CAUSE_PROXY);
	switch (code) {
	case CURLE_COULDNT_RESOLVE_HOST:
		return of_kind(CAUSE_UNRESOLVED);
	case CURLE_COULDNT_RESOLVE_PROXY:
	case CURLE_PROXY:
		return of_kind(CAUSE_PROXY);
	case CURLE_COULDNT_CONNECT:
		return of_errno(curl, CAUSE_NO_CONNECTION);
	case CURLE_OPERATION_TIMEDOUT:
		return of_kind(cause_of_timeout(curl));
	case CURLE_PEER_FAILED_VERIFICATION:
		return of_kind(cause_of_verification(curl));
	case CURLE_SSL_CONNECT_ERROR:
		return of_kind(cause_of_handshake(text));
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CACERT_BADFILE:
		return of_kind(CAUSE_TLS_FAILED);
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_WEIRD_SERVER_REPLY:
		return of_kind(CAUSE_NOT_HTTP1);
	case CURLE_GOT_NOTHING:
		return of_kind(CAUSE_CLOSED);
	case CURLE_PARTIAL_FILE:
		return of_kind(CAUSE_INCOMPLETE);
	case CURLE_SEND_ERROR:
	case CURLE_RECV_ERROR:
		return of_errno(curl, CAUSE_CLOSED);
	default:
		return of_kind(CAUSE_NONE);
	}
}
