/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_HTTP_HTTP_CURL_H
#define NET_HTTP_HTTP_CURL_H

#include <curl/curl.h>
#include <stdint.h>

/* Helpers for libcurl, shared by http_call.c and http_client.c. */

void http_curl_start(void); /* [any thread] Initialises the library once. */

/* Appends "name: value" and returns the list, which curl_slist_free_all frees. NULL is an empty
 * value; libcurl does not send such a header. */
struct curl_slist *http_curl_header(struct curl_slist *list, const char *name, const char *value);

/* Of the reply's Retry-After (RFC 9110 section 10.2.3). -1: there is none that can be read, or its
 * date has passed. */
int64_t http_curl_retry_after_ms(CURL *curl);

#endif
