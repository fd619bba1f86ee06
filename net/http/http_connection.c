/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/http_connection.h"

#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "net/proxy.h"

#define RESOLVE_AGAIN_S 5L /* a resolved name is kept for this time */

/* Rounded up: libcurl has whole seconds, of which 0 is its default. */
static long seconds_of(uint64_t ns)
{
	uint64_t seconds = ns / 1000000000 + (ns % 1000000000 != 0);
	return (long)(seconds < INT32_MAX ? seconds : INT32_MAX);
}

/* All URLs of proxies were checked when the client was made. */
static void find_proxy(const char *configured, const char *url, struct proxy *proxy)
{
	char *host, *port;
	bool secure = !strncasecmp(url, "https:", 6);
	if (configured)
		proxy_parse(configured, proxy, NULL);
	if (configured || !proxy_is_in_environment(secure))
		return;
	http_client_place(url, &host, &port);
	proxy_of_environment(secure, host, port, proxy, NULL);
	memory_free(host);
	memory_free(port);
}

/* Nothing is left to libcurl's own reading of the environment. The headers of a request are not
 * sent to a proxy that forwards the connection (CONNECT). */
void http_connection_set_proxy(CURL *curl, const char *configured, const char *url)
{
	struct proxy proxy = { 0 };
	find_proxy(configured, url, &proxy);
	char *place = proxy.host ? proxy_place(proxy.host, proxy.port) : NULL;
	char *address = place ? memory_format("%s://%s", proxy.scheme, place) : memory_text("");
	curl_easy_setopt(curl, CURLOPT_PROXY, address);
	curl_easy_setopt(curl, CURLOPT_NOPROXY, "");
	curl_easy_setopt(curl, CURLOPT_HEADEROPT, (long)CURLHEADER_SEPARATE);
	curl_easy_setopt(curl, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	curl_easy_setopt(curl, CURLOPT_PROXYUSERNAME, proxy.user);
	curl_easy_setopt(curl, CURLOPT_PROXYPASSWORD, proxy.password);
	memory_free(address);
	memory_free(place);
	proxy_fini(&proxy);
}

static bool is(const char *text, const char *word)
{
	return text && !strcmp(text, word);
}

static long versions_of(const struct tls_client_config *tls)
{
	long min = tls && is(tls->min_version, "1.3") ? CURL_SSLVERSION_TLSv1_3
						      : CURL_SSLVERSION_TLSv1_2;
	return min | (tls && is(tls->max_version, "1.2") ? CURL_SSLVERSION_MAX_TLSv1_2
							 : CURL_SSLVERSION_MAX_DEFAULT);
}

/* Also for the connection to a proxy with the scheme https. */
static void set_tls(CURL *curl, const struct tls_client_config *tls,
		    const struct http_identity *identity)
{
	bool trusting = tls && tls->insecure_skip_verify;
	curl_easy_setopt(curl, CURLOPT_SSLVERSION, versions_of(tls));
	curl_easy_setopt(curl, CURLOPT_PROXY_SSLVERSION, versions_of(tls));
	curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, trusting ? 0L : 1L);
	curl_easy_setopt(curl, CURLOPT_PROXY_SSL_VERIFYPEER, trusting ? 0L : 1L);
	curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, trusting ? 0L : 2L);
	curl_easy_setopt(curl, CURLOPT_PROXY_SSL_VERIFYHOST, trusting ? 0L : 2L);
	if (identity->paths[HTTP_CA]) {
		curl_easy_setopt(curl, CURLOPT_CAINFO, identity->paths[HTTP_CA]);
		curl_easy_setopt(curl, CURLOPT_PROXY_CAINFO, identity->paths[HTTP_CA]);
	}
	if (identity->paths[HTTP_CERTIFICATE]) {
		curl_easy_setopt(curl, CURLOPT_SSLCERT, identity->paths[HTTP_CERTIFICATE]);
		curl_easy_setopt(curl, CURLOPT_SSLKEY, identity->paths[HTTP_KEY]);
	}
}

void http_connection_set(CURL *curl, const struct http_client_options *o, const char *url,
			 const struct http_identity *identity)
{
	if (o->idle_ns)
		curl_easy_setopt(curl, CURLOPT_MAXAGE_CONN, seconds_of(o->idle_ns));
	if (o->max_age_ns)
		curl_easy_setopt(curl, CURLOPT_MAXLIFETIME_CONN, seconds_of(o->max_age_ns));
	curl_easy_setopt(curl, CURLOPT_DNS_CACHE_TIMEOUT, RESOLVE_AGAIN_S);
	curl_easy_setopt(curl, CURLOPT_FRESH_CONNECT, (long)o->one_request);
	curl_easy_setopt(curl, CURLOPT_FORBID_REUSE, (long)o->one_request);
	http_connection_set_proxy(curl, o->proxy, url);
	set_tls(curl, o->tls, identity);
}
