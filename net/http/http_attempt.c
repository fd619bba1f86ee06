/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/http_attempt.h"

#include <dlfcn.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <pthread.h>
#include <strings.h>
#include <sys/socket.h>

#include "net/client_socket.h"

/* ---- sockets */

static curl_socket_t open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct http_attempt *a = context;
	int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
	(void)purpose;
	if (fd < 0)
		return CURL_SOCKET_BAD;
	client_socket_watch(fd, CLIENT_SOCKET_DONE);
	a->sockets[a->opened++ % HTTP_ATTEMPT_SOCKETS] = fd;
	return fd;
}

/* libcurl's errno is that of the socket that it closes. */
void http_attempt_closing(struct http_attempt *attempt, int fd)
{
	long number = 0;
	for (int i = 0; i < HTTP_ATTEMPT_SOCKETS; i++) {
		if (attempt->sockets[i] != fd)
			continue;
		attempt->sockets[i] = -1;
		curl_easy_getinfo(attempt->curl, CURLINFO_OS_ERRNO, &number);
		if (number == ECONNRESET || number == EPIPE)
			attempt->reset = (int)number;
	}
}

/* ---- TLS */

/* Of the last handshake of this thread that ended by an alert of the server. */
static _Thread_local struct {
	bool set, asked;
	int alert;
} rejection;

static int (*real_handshake)(gnutls_session_t session);

static void find_real(void)
{
	*(void **)&real_handshake = dlsym(RTLD_NEXT, "gnutls_handshake");
}

/* libcurl has forgotten the session of a failed handshake when it calls back. */
__attribute__((visibility("default"))) int gnutls_handshake(gnutls_session_t session)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, find_real);
	int result = real_handshake(session);
	if (result == GNUTLS_E_FATAL_ALERT_RECEIVED) {
		rejection.set = true;
		rejection.alert = (int)gnutls_alert_get(session);
		rejection.asked = gnutls_certificate_client_get_request_status(session);
	}
	return result;
}

/* libcurl calls this often: also after a handshake has failed, before it works on another request,
 * and for the last time before it leaves the connection. */
static int look_at_tls(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	struct http_attempt *attempt = context;
	struct curl_tlssessioninfo *info;
	(void)a, (void)b, (void)c, (void)d;
	if (rejection.set) {
		attempt->alert = rejection.alert;
		attempt->asked = rejection.asked;
		rejection.set = false;
	} else if (!curl_easy_getinfo(attempt->curl, CURLINFO_TLS_SSL_PTR, &info) &&
		   info->backend == CURLSSLBACKEND_GNUTLS && info->internals) {
		attempt->alert = (int)gnutls_alert_get(info->internals);
		attempt->asked = gnutls_certificate_client_get_request_status(info->internals) != 0;
	}
	return 0;
}

/* ---- options */

void http_attempt_init(struct http_attempt *attempt, CURL *curl, const char *url)
{
	*attempt = (struct http_attempt){ .curl = curl, .secure = !strncasecmp(url, "https:", 6) };
	for (int i = 0; i < HTTP_ATTEMPT_SOCKETS; i++)
		attempt->sockets[i] = -1;
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, attempt->text);
	curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, open_socket);
	curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, attempt);
	if (!attempt->secure)
		return;
	curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, look_at_tls);
	curl_easy_setopt(curl, CURLOPT_XFERINFODATA, attempt);
}
