/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_TLS_TLS_CHOICE_H
#define NET_TLS_TLS_CHOICE_H

#include "net/tls/tls.h"

/*
 * The keys min_version, max_version, cipher_suites and curve_preferences of a server (the
 * Collector's configtls), in the notation of the two TLS libraries. Suites have the names of RFC
 * 8446 B.4 and of RFC 5289, 7905 and 4492, as in the Collector; curves have its short names.
 *
 * As in the Collector, TLS 1.3 keeps all its suites if none of them is named. If only suites of TLS
 * 1.3 are named, TLS 1.2 is off. Lists are in order of preference.
 */
struct tls_choice {
	/* as on the wire, RFC 8446 §4.2.1: 0x0303 is TLS 1.2, 0x0304 is TLS 1.3 */
	int min_version, max_version;
	char ciphers[320]; /* of TLS 1.2; "": TLS 1.2 is off */
	char suites[96];   /* of TLS 1.3; "": the library's */
	char groups[32];
	bool ordered; /* the operator wrote a list: the server's order decides */
};

/* Reports each name and version that is unknown or not supported; the message lists those that are
 * supported. */
void tls_choice_check(const struct tls_server_config *config, struct faults *faults);
/* False with ERROR_CONFIG: a name or version is unknown or not supported. */
bool tls_choice_openssl(const struct tls_server_config *config, struct tls_choice *out,
			struct error *err);

/* Which versions min_version and max_version (NULL or "": the default) leave of 1.2 and 1.3. False:
 * an error is reported. */
bool tls_choice_versions(const char *min_version, const char *max_version, bool *tls_1_2,
			 bool *tls_1_3, struct faults *faults);

/*
 * A GnuTLS priority string, to be freed with memory_free. GnuTLS selects ciphers and key exchanges
 * rather than suites. A list that does not contain every suite that its ciphers and key exchanges
 * form is therefore an ERROR_CONFIG. If no suite of TLS 1.3 is named, TLS 1.3 has the suites with
 * the named ciphers. NULL on failure.
 */
char *tls_choice_gnutls(const struct tls_server_config *config, struct error *err);

#endif
