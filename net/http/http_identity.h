/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_HTTP_HTTP_IDENTITY_H
#define NET_HTTP_HTTP_IDENTITY_H

#include <stdatomic.h>

#include "net/tls/tls.h"

/* libcurl with GnuTLS accepts certificates only as files. The contents that were read and checked
 * are kept in memory files. The requests that began with them share these files. */
struct http_identity {
	_Atomic uint32_t refs;
	struct tls_material material;
	int files[3]; /* -1: not present */
	char *paths[3];
};
enum { HTTP_CA, HTTP_CERTIFICATE, HTTP_KEY };

/* tls: NULL: none. Returns a reference, or NULL. */
struct http_identity *http_identity_new(const struct tls_client_config *tls, struct error *err);
void http_identity_unref(struct http_identity **identity);

#endif
