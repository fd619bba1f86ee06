/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/http_cause.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <stddef.h>
#include <string.h>

#include "net/tls/tls_failure.h"

/* ---- what libcurl knows ---- */

/* Has a proxy refused to forward the connection? */
static bool refused_by_proxy(CURL *curl)
{
	long status = 0;
	curl_easy_getinfo(curl, CURLINFO_HTTP_CONNECTCODE, &status);
	return status >= 300;
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

/* Has the server ended TLS by an alert, before it has sent a response? After the handshake, a name
 * was at most the subject of a warning. */
static bool has_alert(const struct http_attempt *a, CURLcode code)
{
	if (!a->alert || code == CURLE_SSL_CONNECT_ERROR)
		return a->alert != 0;
	return (code == CURLE_RECV_ERROR || code == CURLE_SEND_ERROR) &&
	       a->alert != GNUTLS_A_UNRECOGNIZED_NAME &&
	       !has_passed(a->curl, CURLINFO_STARTTRANSFER_TIME_T);
}

/* Has the server of an address ended the connection before libcurl had noticed that there was one?
 * Otherwise that is an error of the handshake, or of the request. */
static bool was_reset_at_once(const struct http_attempt *a, CURLcode code)
{
	return a->reset && !is_connected(a->curl) &&
	       (code == CURLE_COULDNT_CONNECT || code == CURLE_OPERATION_TIMEDOUT);
}

/* ---- the word ---- */

const char *http_cause_failure(const struct http_attempt *attempt, CURLcode code)
{
	if (refused_by_proxy(attempt->curl))
		return "proxy";
	if (was_reset_at_once(attempt, code))
		return attempt->secure ? "tls" : "cut";
	if (has_alert(attempt, code))
		return "tls";
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
	case CURLE_SEND_ERROR:
	case CURLE_RECV_ERROR:
		return "cut";
	case CURLE_URL_MALFORMAT:
		return "url";
	default:
		return "unavailable";
	}
}

/* ---- the cause ---- */

static struct cause of_kind(enum cause_kind kind)
{
	return (struct cause){ kind, 0 };
}

static bool is_of_transfer(const struct http_attempt *a, long number)
{
	return number == ECONNRESET || number == EPIPE || strstr(a->text, "Recv failure: ") ||
	       strstr(a->text, "Send failure: ");
}

/* libcurl keeps the errno of a failed transfer; if that has none, then that of an address to which
 * it could not connect. */
static struct cause of_errno(const struct http_attempt *a, CURLcode code, enum cause_kind otherwise)
{
	long number = 0;
	curl_easy_getinfo(a->curl, CURLINFO_OS_ERRNO, &number);
	if (code != CURLE_COULDNT_CONNECT && !is_of_transfer(a, number))
		number = 0;
	return cause_of_errno((int)number, otherwise);
}

/* The client of HTTP offers HTTP/1.1 alone. */
static enum cause_kind cause_of_alert(const struct http_attempt *a)
{
	enum cause_kind kind = tls_failure_of_alert(a->alert, a->asked);
	return kind == CAUSE_TLS_NO_HTTP2 ? CAUSE_TLS_NO_HTTP1 : kind;
}

/* Errors of GnuTLS in a handshake, whose words libcurl repeats. */
static const struct {
	int error;
	enum cause_kind kind;
} handshakes[] = {
	{ GNUTLS_E_UNEXPECTED_PACKET, CAUSE_NOT_TLS },
	{ GNUTLS_E_UNEXPECTED_PACKET_LENGTH, CAUSE_NOT_TLS },
	{ GNUTLS_E_RECORD_OVERFLOW, CAUSE_NOT_TLS },
	{ GNUTLS_E_UNSUPPORTED_VERSION_PACKET, CAUSE_TLS_VERSION },
	{ GNUTLS_E_PREMATURE_TERMINATION, CAUSE_TLS_CLOSED },
	{ GNUTLS_E_NO_CIPHER_SUITES, CAUSE_TLS_VERSION },
	{ GNUTLS_E_UNKNOWN_CIPHER_SUITE, CAUSE_TLS_VERSION },
	{ GNUTLS_E_INSUFFICIENT_SECURITY, CAUSE_TLS_VERSION },
};

static struct cause cause_of_handshake(const struct http_attempt *a, CURLcode code)
{
	struct cause cause = of_errno(a, code, CAUSE_TLS_FAILED);
	if (has_alert(a, code))
		return of_kind(cause_of_alert(a));
	for (size_t i = 0; i < sizeof handshakes / sizeof *handshakes; i++)
		if (strstr(a->text, gnutls_strerror(handshakes[i].error)))
			return of_kind(handshakes[i].kind);
	if (cause.kind == CAUSE_RESET)
		cause.kind = CAUSE_TLS_CLOSED;
	return cause;
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

static enum cause_kind cause_of_timeout(const struct http_attempt *a)
{
	if (!has_passed(a->curl, CURLINFO_NAMELOOKUP_TIME_T))
		return CAUSE_UNRESOLVED;
	if (!is_connected(a->curl))
		return CAUSE_CONNECT_TIMEOUT;
	if (a->secure && !has_passed(a->curl, CURLINFO_APPCONNECT_TIME_T))
		return CAUSE_TLS_TIMEOUT;
	return CAUSE_NO_RESPONSE;
}

struct cause http_cause_of(const struct http_attempt *a, CURLcode code)
{
	if (refused_by_proxy(a->curl))
		return of_kind(CAUSE_PROXY);
	if (was_reset_at_once(a, code))
		return (struct cause){ a->secure ? CAUSE_TLS_CLOSED : CAUSE_RESET, a->reset };
	switch (code) {
	case CURLE_COULDNT_RESOLVE_HOST:
		return of_kind(CAUSE_UNRESOLVED);
	case CURLE_COULDNT_RESOLVE_PROXY:
	case CURLE_PROXY:
		return of_kind(CAUSE_PROXY);
	case CURLE_COULDNT_CONNECT:
		return of_errno(a, code, CAUSE_NO_CONNECTION);
	case CURLE_OPERATION_TIMEDOUT:
		return of_kind(cause_of_timeout(a));
	case CURLE_PEER_FAILED_VERIFICATION:
		return of_kind(cause_of_verification(a->curl));
	case CURLE_SSL_CONNECT_ERROR:
		return cause_of_handshake(a, code);
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
		return has_alert(a, code) ? of_kind(cause_of_alert(a))
					  : of_errno(a, code, CAUSE_CLOSED);
	default:
		return of_kind(CAUSE_NONE);
	}
}
