/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_TLS_TLS_FAILURE_H
#define NET_TLS_TLS_FAILURE_H

#include "net/cause.h"

/*
 * Why a TLS client of OpenSSL has failed, also if a library owns the client and does not report
 * more than that. The program defines its own SSL_get_error, which every such library calls after a
 * failure. It only looks: what it returns is OpenSSL's.
 */

/* `failed` is called for each failure from then on, on the thread of the client. Before the first
 * client. */
void tls_failure_watch(void (*failed)(enum cause_kind kind));

#endif
