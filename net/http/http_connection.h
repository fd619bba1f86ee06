/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_HTTP_HTTP_CONNECTION_H
#define NET_HTTP_HTTP_CONNECTION_H

#include <curl/curl.h>

#include "net/http/http_client.h"
#include "net/http/http_identity.h"

/* Which connection a request of http_client uses: an existing one or a new one, through which
 * proxy, and with which TLS. */
void http_connection_set(CURL *curl, const struct http_client_options *options, const char *url,
			 const struct http_identity *identity);
/* The proxy alone: `proxy`, or if that is NULL, that of the environment for this URL. */
void http_connection_set_proxy(CURL *curl, const char *proxy, const char *url);

#endif
