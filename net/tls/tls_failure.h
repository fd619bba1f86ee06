/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_TLS_TLS_FAILURE_H
#define NET_TLS_TLS_FAILURE_H

#include "net/cause.h"

/*
 * Why a TLS client of OpenSSL has failed, also if a library owns the client and does not report
 * more than that. The program defines its own SSL_get_error, which every such library calls after a
 * failure. It only looks: what it returns is OpenSSL's.
 */

/* Of an alert that a server has sent (RFC 8446, section 6), by its number. */
enum cause_kind tls_failure_of_alert(int alert);
/* Of a result of OpenSSL's verification (X509_V_ERR_...). */
enum cause_kind tls_failure_of_verification(long result);

/* `failed` is called for each failure from then on, on the thread of the client. Before the first
 * client. */
void tls_failure_watch(void (*failed)(enum cause_kind kind));

#endif
