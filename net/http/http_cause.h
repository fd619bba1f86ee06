/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_HTTP_HTTP_CAUSE_H
#define NET_HTTP_HTTP_CAUSE_H

#include <curl/curl.h>

#include "net/cause.h"

/* The word for it in struct http_result. */
const char *http_cause_failure(CURL *curl, CURLcode code);

/* Why a transfer has failed: from libcurl's code, errno, times and result of the verification; for
 * a handshake, also from its text, which is compared and not repeated. */
struct cause http_cause_of(CURL *curl, CURLcode code, const char *text);

#endif
