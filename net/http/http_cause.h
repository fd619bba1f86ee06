/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_HTTP_HTTP_CAUSE_H
#define NET_HTTP_HTTP_CAUSE_H

#include "net/cause.h"
#include "net/http/http_attempt.h"

/* The word for it in struct http_result. */
const char *http_cause_failure(const struct http_attempt *attempt, CURLcode code);

/* Why a transfer has failed: from libcurl's code, errno, times and result of the verification, and
 * from its text, which is compared and not repeated. */
struct cause http_cause_of(const struct http_attempt *attempt, CURLcode code);

#endif
