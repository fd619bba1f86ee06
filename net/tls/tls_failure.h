/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_TLS_TLS_FAILURE_H
#define NET_TLS_TLS_FAILURE_H

#include <stdbool.h>

#include "net/cause.h"

/*
 * Why a TLS client of OpenSSL has failed, also if a library owns the client and does not report
 * more than that. The program defines its own SSL_get_error, which every such library calls after a
 * failure. What it returns is OpenSSL's. After a write that failed because the server had closed
 * the connection, it also reads what the server had sent before.
 */

/* Of a fatal alert that a server has sent (RFC 8446, section 6), by its number. asked: the server
 * has asked for a certificate of the client before. */
enum cause_kind tls_failure_of_alert(int alert, bool asked);
/* Of a result of OpenSSL's verification (X509_V_ERR_...). */
enum cause_kind tls_failure_of_verification(long result);

/* `failed` is called for each failure of a client on this thread from then on. NULL: nobody is
 * interested. */
void tls_failure_watch(void (*failed)(void *context, enum cause_kind kind), void *context);

#endif
