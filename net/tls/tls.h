/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_TLS_TLS_H
#define NET_TLS_TLS_H

#include "config/table.h"
#include "net/fields.h"

/* The Collector's TLS sections (configtls), and the loading of the files that they name. Servers
 * support min_version, max_version, cipher_suites and curve_preferences (net/tls/tls_choice.h),
 * clients the versions, if they are of HTTP; other settings of clients fail validation. A tpm fails
 * validation for both. */
struct tls_server_config {
	struct optional present;
	char *ca_file, *cert_file, *key_file, *client_ca_file;
	struct secret ca_pem, cert_pem, key_pem;
	char *min_version, *max_version;
	struct strings cipher_suites, curve_preferences;
	bool include_system_ca_certs_pool, include_insecure_cipher_suites, client_ca_file_reload;
	struct duration reload_interval;
	const struct node *tpm;
};

struct tls_client_config {
	struct optional present; /* of tls_client_optional_table only */
	bool insecure, insecure_skip_verify;
	char *server_name_override;
	char *ca_file, *cert_file, *key_file;
	struct secret ca_pem, cert_pem, key_pem;
	char *min_version, *max_version;
	struct strings cipher_suites, curve_preferences;
	bool include_system_ca_certs_pool, include_insecure_cipher_suites;
	struct duration reload_interval;
	const struct node *tpm;
};

extern const struct config_table tls_server_table;
extern const struct config_table tls_client_table;
/* For protocols without TLS by default: the section turns it on. Its check contains
 * tls_client_check_any_version. */
extern const struct config_table tls_client_optional_table;
/* For clients whose library has no setting for versions: is none excluded? */
bool tls_client_check_any_version(const struct tls_client_config *config, struct error *err);

/*
 * PEM strings that were read and checked against each other: a key that does not match its
 * certificate is an error. The holder of the struct owns them and frees them with tls_release. A
 * server's ca is the CA of its clients. A client's NULL ca means the system's CAs.
 */
struct tls_material {
	char *ca, *cert, *key; /* NULL where not configured */
};

bool tls_load_server(const struct tls_server_config *config, struct tls_material *out,
		     struct error *err);
bool tls_load_client(const struct tls_client_config *config, struct tls_material *out,
		     struct error *err);
/* Loads them and throws them away: false also if one of the certificates has expired or is not
 * valid yet. The error begins with the key. */
bool tls_check_server(const struct tls_server_config *config, struct error *err);
bool tls_check_client(const struct tls_client_config *config, struct error *err);
/* Are the contents equal? If the files are read again with equal contents, nothing changes. */
bool tls_equal(const struct tls_material *a, const struct tls_material *b);
void tls_release(struct tls_material *material);

/*
 * The owner named by a verified client certificate, for the Collector's `auth.<attr>`: `subject`
 * (RFC 4514, in UTF-8), `common_name` (the first one) and, from the subject alternative names,
 * `uri`, `email` and `dns`. Several names of a kind become several entries. A value that is empty,
 * exceeds these limits or contains a NUL byte is omitted.
 */
extern const struct fields_limits tls_owner_limits;
/* Adds all of them from the certificate in DER; nothing if it cannot be parsed. */
void tls_owner_read(struct fields *auth, struct view der);

#endif
