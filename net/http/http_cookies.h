/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_HTTP_HTTP_COOKIES_H
#define NET_HTTP_HTTP_COOKIES_H

#include <curl/curl.h>
#include <stdbool.h>

/*
 * The cookies that servers have set, for the later requests of the same client, as long as it
 * lives. A server can make it hold at most HTTP_COOKIES_MAX: then all are forgotten. [loop thread]
 */
#define HTTP_COOKIES_MAX 256

struct http_cookies {
	CURLSH *jar;       /* NULL: the client has none */
	unsigned received; /* since the jar was empty */
};

void http_cookies_init(struct http_cookies *cookies, bool wanted);
/* Before the request begins. */
void http_cookies_use(const struct http_cookies *cookies, CURL *curl);
/* A line of the header of a reply. */
void http_cookies_see(struct http_cookies *cookies, const char *line, size_t len);
/* After the reply. */
void http_cookies_bound(struct http_cookies *cookies, CURL *curl);
/* When no request uses them any more. */
void http_cookies_fini(struct http_cookies *cookies);

#endif
