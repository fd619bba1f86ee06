/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls/tls.h"

#include "base/bytes.h"
#include "base/memory.h"
#include "net/tls/tls_choice.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <string.h>

#define PEM_MAX (4 << 20) /* the system's CA bundle has 220 KB */
#define SYSTEM_CA "/etc/ssl/certs/ca-certificates.crt"

static bool tpm_wanted(const struct node *tpm)
{
	if (!tpm || tpm->kind == NODE_NULL)
		return false;
	const struct node *enabled = node_get(tpm, "enabled");
	return !enabled || enabled->kind != NODE_SCALAR || strcmp(enabled->text, "false") != 0;
}

static void check_tpm(const struct node *tpm, struct faults *faults)
{
	if (tpm_wanted(tpm))
		faults_add(faults, "tpm: keys in a TPM are not supported");
}

static void check_client_choice(const struct tls_client_config *c, struct faults *faults)
{
	static const char text[] = "not supported for clients: their libraries choose it";
	bool tls_1_2, tls_1_3;
	tls_choice_versions(c->min_version, c->max_version, &tls_1_2, &tls_1_3, faults);
	if (c->cipher_suites.count)
		faults_add(faults, "cipher_suites: %s", text);
	if (c->curve_preferences.count)
		faults_add(faults, "curve_preferences: %s", text);
}

bool tls_client_check_any_version(const struct tls_client_config *c, struct error *err)
{
	struct problems problems = { 0 };
	struct faults faults = { .path = "", .problems = &problems };
	bool tls_1_2, tls_1_3;
	if (tls_choice_versions(c->min_version, c->max_version, &tls_1_2, &tls_1_3, &faults) &&
	    !(tls_1_2 && tls_1_3))
		faults_add(&faults, "%s: the library of this client always offers TLS 1.2 and 1.3",
			   tls_1_2 ? "max_version" : "min_version");
	return problems_end(&problems, err);
}

static bool given(const char *file, const struct secret *pem)
{
	return (file && *file) || (pem && pem->text && *pem->text);
}

static void check_one_source(const char *what, const char *file, const struct secret *pem,
			     struct faults *faults)
{
	if (file && *file && pem->text && *pem->text)
		faults_add(faults, "provide either %s_file or %s_pem, but not both", what, what);
}

static void check_server(const void *config, struct faults *faults)
{
	const struct tls_server_config *c = config;
	tls_choice_check(c, faults);
	check_tpm(c->tpm, faults);
	check_one_source("cert", c->cert_file, &c->cert_pem, faults);
	check_one_source("key", c->key_file, &c->key_pem, faults);
	if (!given(c->cert_file, &c->cert_pem) || !given(c->key_file, &c->key_pem))
		faults_relate(faults, "cert_file cert_pem key_file key_pem",
			      "TLS configuration must include both certificate and key for server "
			      "connections");
}

static void check_client(const void *config, struct faults *faults)
{
	const struct tls_client_config *c = config;
	check_client_choice(c, faults);
	check_tpm(c->tpm, faults);
	check_one_source("ca", c->ca_file, &c->ca_pem, faults);
	check_one_source("cert", c->cert_file, &c->cert_pem, faults);
	check_one_source("key", c->key_file, &c->key_pem, faults);
	if (given(c->cert_file, &c->cert_pem) != given(c->key_file, &c->key_pem))
		faults_relate(faults, "cert_file cert_pem key_file key_pem",
			      "for auth via TLS, provide both certificate and key, or neither");
}

static void check_client_of_any_version(const void *config, struct faults *faults)
{
	struct error why;
	check_client(config, faults);
	if (!tls_client_check_any_version(config, &why))
		faults_take(faults, &why);
}

#define COMMON_ROWS(type) \
	CONFIG_ROW(type, include_insecure_cipher_suites, .key = "include_insecure_cipher_suites", \
		   .inert = true, .help = "Insecure suites are never offered."), \
		CONFIG_ROW(type, tpm, .key = "tpm", \
			   .help = "Not supported: enabling it is an error.")

/* clang-format off */
#define OWN_CERTIFICATE_ROWS(type, whose) \
	CONFIG_ROW(type, cert_file, .key = "cert_file", \
		   .help = "PEM file of the " whose "'s certificate chain."), \
	CONFIG_ROW(type, cert_pem, .key = "cert_pem", .help = "The same, as inline PEM text."), \
	CONFIG_ROW(type, key_file, .key = "key_file", .help = "PEM file of the certificate's " \
							      "private key."), \
	CONFIG_ROW(type, key_pem, .key = "key_pem", .help = "The same, as inline PEM text.")
/* clang-format on */

static const struct config_row server_rows[] = {
	OWN_CERTIFICATE_ROWS(struct tls_server_config, "server"),
	CONFIG_ROW(struct tls_server_config, client_ca_file, .key = "client_ca_file",
		   .help = "PEM file of CA certificates. Clients must present a certificate "
			   "that one of these CAs signed."),
	CONFIG_ROW(struct tls_server_config, client_ca_file_reload, .key = "client_ca_file_reload",
		   .help = "Reloads all files of this section when one of them changes."),
	CONFIG_ROW(struct tls_server_config, reload_interval, .key = "reload_interval", .def = "0s",
		   .help = "How often the files are reloaded; 0: only on SIGHUP. If a file is "
			   "invalid, the error is logged and the current certificate stays in "
			   "use."),
	CONFIG_ROW(struct tls_server_config, ca_file, .key = "ca_file", .inert = true,
		   .help = "Servers do not use it, here or in the Collector. See "
			   "`client_ca_file`."),
	CONFIG_ROW(struct tls_server_config, ca_pem, .key = "ca_pem", .inert = true,
		   .help = "Servers do not use it."),
	CONFIG_ROW(struct tls_server_config, include_system_ca_certs_pool,
		   .key = "include_system_ca_certs_pool", .inert = true,
		   .help = "Servers do not use it."),
	CONFIG_ROW(struct tls_server_config, min_version, .key = "min_version", .def = "\"1.2\"",
		   .help = "1.2 or 1.3. TLS 1.0 and 1.1 are errors because the security level "
			   "of the TLS libraries excludes them."),
	CONFIG_ROW(struct tls_server_config, max_version, .key = "max_version",
		   .help = "1.2 or 1.3; empty: 1.3."),
	CONFIG_ROW(struct tls_server_config, cipher_suites, .key = "cipher_suites",
		   .help = "TLS names of the suites, in order of preference. Supported are "
			   "ECDHE suites with AES-GCM, ChaCha20-Poly1305 or AES-CBC with SHA, "
			   "and the TLS 1.3 suites. Empty: all except CBC. If no TLS 1.3 suite "
			   "is listed, all of them stay enabled. If only TLS 1.3 suites are "
			   "listed, TLS 1.2 is disabled. HTTP/1.1 servers use GnuTLS and "
			   "differ: an empty list means GnuTLS's defaults, the list must "
			   "contain every combination of its ciphers and key exchanges, and "
			   "without a TLS 1.3 suite in the list, TLS 1.3 is limited to the "
			   "ciphers of the list."),
	CONFIG_ROW(struct tls_server_config, curve_preferences, .key = "curve_preferences",
		   .help = "Key exchange curves in order of preference: X25519, P256, P384, "
			   "P521. Empty: all four (HTTP/1.1 servers: GnuTLS's defaults)."),
	COMMON_ROWS(struct tls_server_config),
	{ 0 }
};

/* What other programs call the keys. */
static const struct config_hint server_hints[] = { { "cert", .use = "cert_file" },
						   { "key", .use = "key_file" },
						   { "ca", .use = "client_ca_file" },
						   { "client_ca", .use = "client_ca_file" },
						   { 0 } };
static const struct config_hint client_hints[] = { { "cert", .use = "cert_file" },
						   { "key", .use = "key_file" },
						   { "ca", .use = "ca_file" },
						   { 0 } };

const struct config_table tls_server_table = { sizeof(struct tls_server_config), server_rows,
					       check_server, .optional = true,
					       .hints = server_hints };

static const struct config_row client_rows[] = {
	CONFIG_ROW(struct tls_client_config, insecure, .key = "insecure", .def = "false",
		   .help = "Plaintext instead of TLS."),
	CONFIG_ROW(struct tls_client_config, insecure_skip_verify, .key = "insecure_skip_verify",
		   .def = "false",
		   .help = "Disables verification of the server's certificate. For tests only: "
			   "over gRPC, a server with a malformed certificate can crash the "
			   "program."),
	CONFIG_ROW(struct tls_client_config, server_name_override, .key = "server_name_override",
		   .help = "The name that the server's certificate must be valid for."),
	CONFIG_ROW(struct tls_client_config, ca_file, .key = "ca_file",
		   .help = "PEM file of the CA certificates to trust instead of the system's."),
	CONFIG_ROW(struct tls_client_config, ca_pem, .key = "ca_pem",
		   .help = "The same, as "
			   "inline PEM text."),
	CONFIG_ROW(struct tls_client_config, include_system_ca_certs_pool,
		   .key = "include_system_ca_certs_pool", .def = "false",
		   .help = "Trusts the system's CAs in addition to those of `ca_file`."),
	OWN_CERTIFICATE_ROWS(struct tls_client_config, "client"),
	CONFIG_ROW(struct tls_client_config, reload_interval, .key = "reload_interval", .def = "0s",
		   .help = "How often the files are reloaded; 0: only on SIGHUP."),
	CONFIG_ROW(struct tls_client_config, min_version, .key = "min_version", .def = "\"1.2\"",
		   .help = "1.2 or 1.3. Clients of gRPC and Kafka: must be 1.2 or empty."),
	CONFIG_ROW(struct tls_client_config, max_version, .key = "max_version",
		   .help = "1.2 or 1.3; empty: 1.3. Clients of gRPC and Kafka: must be 1.3 or "
			   "empty."),
	CONFIG_ROW(struct tls_client_config, cipher_suites, .key = "cipher_suites",
		   .help = "Not supported for clients: setting it is an error."),
	CONFIG_ROW(struct tls_client_config, curve_preferences, .key = "curve_preferences",
		   .help = "Not supported for clients: setting it is an error."),
	COMMON_ROWS(struct tls_client_config),
	{ 0 }
};

const struct config_table tls_client_table = { sizeof(struct tls_client_config), client_rows,
					       check_client, .hints = client_hints };
const struct config_table tls_client_optional_table = { sizeof(struct tls_client_config),
							client_rows, check_client_of_any_version,
							.optional = true, .hints = client_hints };

static bool read_whole(FILE *file, struct bytes *out)
{
	char part[4096];
	size_t got;
	while ((got = fread(part, 1, sizeof part, file)) > 0)
		if (!bytes_add(out, part, got))
			return false;
	return !ferror(file) && (!out->len || !memchr(out->at, 0, out->len));
}

/* Appends the contents of the file to *pem (NULL: nothing yet). */
static bool add_file(const char *path, char **pem, struct error *err)
{
	FILE *file = fopen(path, "re");
	if (!file)
		return error_set(err, ERROR_CONFIG, "cannot read %s: %s", path, strerror(errno));
	struct bytes text;
	bytes_init(&text, PEM_MAX);
	bool ok = read_whole(file, &text);
	fclose(file);
	if (ok) {
		char *joined = memory_format("%s%.*s", *pem ? *pem : "", (int)text.len,
					     text.at ? (char *)text.at : "");
		memory_free(*pem);
		*pem = joined;
	}
	if (text.at)
		OPENSSL_cleanse(text.at, text.len);
	bytes_fini(&text);
	return ok || error_set(err, ERROR_CONFIG, "cannot read %s: not a PEM file", path);
}

/* *pem stays NULL if neither is configured. */
static bool load(const char *key, const char *file, const struct secret *text, char **pem,
		 struct error *err)
{
	if (file && *file)
		return add_file(file, pem, err) || error_prefix(err, "%s", key);
	if (text && text->text && *text->text)
		*pem = memory_text(text->text);
	return true;
}

static int no_passphrase(char *into, int size, int writing, void *context)
{
	(void)into, (void)size, (void)writing, (void)context;
	return 0; /* instead of asking on the terminal */
}

static X509 *first_certificate(const char *pem)
{
	BIO *bio = BIO_new_mem_buf(pem, -1);
	X509 *found = bio ? PEM_read_bio_X509(bio, NULL, no_passphrase, NULL) : NULL;
	BIO_free(bio);
	return found;
}

/* Contains at least one certificate, and no malformed one after it. */
static bool is_chain(const char *pem)
{
	BIO *bio = BIO_new_mem_buf(pem, -1);
	size_t count = 0;
	X509 *next;
	while (bio && (next = PEM_read_bio_X509(bio, NULL, no_passphrase, NULL))) {
		X509_free(next);
		count++;
	}
	bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
	BIO_free(bio);
	ERR_clear_error();
	return count && at_end;
}

static EVP_PKEY *private_key(const char *pem)
{
	BIO *bio = BIO_new_mem_buf(pem, -1);
	EVP_PKEY *found = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL) : NULL;
	BIO_free(bio);
	return found;
}

static bool check_pair(const char *cert_pem, const char *key_pem, struct error *err)
{
	X509 *cert = first_certificate(cert_pem);
	EVP_PKEY *key = private_key(key_pem);
	bool ok = cert && key && X509_check_private_key(cert, key) == 1;
	if (!key)
		error_set(err, ERROR_CONFIG, "the key is not an unencrypted PEM private key");
	else if (!ok)
		error_set(err, ERROR_CONFIG, "the key does not match the certificate");
	EVP_PKEY_free(key);
	X509_free(cert);
	ERR_clear_error();
	return ok;
}

/* The keys of the configuration that the parts come from. */
struct origin {
	const char *ca, *cert, *key;
};

static const char *origin_of(const char *file, const char *file_key, const char *pem_key)
{
	return file && *file ? file_key : pem_key;
}

static bool check_material(const struct tls_material *m, const struct origin *from,
			   struct error *err)
{
	if (m->cert && !is_chain(m->cert))
		return error_set(err, ERROR_CONFIG,
				 "%s: the certificate chain is not in PEM format", from->cert);
	if (m->ca && !is_chain(m->ca))
		return error_set(err, ERROR_CONFIG, "%s: the CA file is not a PEM certificate",
				 from->ca);
	return !m->cert || !m->key || check_pair(m->cert, m->key, err) ||
	       error_prefix(err, "%s", from->key);
}

static bool keep_or_release(bool ok, struct tls_material *out)
{
	if (!ok)
		tls_release(out);
	return ok;
}

bool tls_load_server(const struct tls_server_config *config, struct tls_material *out,
		     struct error *err)
{
	const struct origin from = { "client_ca_file",
				     origin_of(config->cert_file, "cert_file", "cert_pem"),
				     origin_of(config->key_file, "key_file", "key_pem") };
	*out = (struct tls_material){ 0 };
	bool ok = load(from.cert, config->cert_file, &config->cert_pem, &out->cert, err) &&
		  load(from.key, config->key_file, &config->key_pem, &out->key, err) &&
		  load(from.ca, config->client_ca_file, NULL, &out->ca, err) &&
		  check_material(out, &from, err);
	return keep_or_release(ok, out);
}

bool tls_load_client(const struct tls_client_config *config, struct tls_material *out,
		     struct error *err)
{
	const struct origin from = { origin_of(config->ca_file, "ca_file", "ca_pem"),
				     origin_of(config->cert_file, "cert_file", "cert_pem"),
				     origin_of(config->key_file, "key_file", "key_pem") };
	*out = (struct tls_material){ 0 };
	bool ok = load(from.ca, config->ca_file, &config->ca_pem, &out->ca, err) &&
		  load(from.cert, config->cert_file, &config->cert_pem, &out->cert, err) &&
		  load(from.key, config->key_file, &config->key_pem, &out->key, err);
	if (ok && out->ca && config->include_system_ca_certs_pool)
		ok = add_file(SYSTEM_CA, &out->ca, err);
	return keep_or_release(ok && check_material(out, &from, err), out);
}

static bool is_in_time(const X509 *cert, const char *key, struct error *err)
{
	char day[sizeof "2026-01-01"];
	struct tm end = { 0 };
	if (X509_cmp_current_time(X509_get0_notBefore(cert)) > 0)
		return error_set(err, ERROR_CONFIG, "%s: the certificate is not valid yet", key);
	if (X509_cmp_current_time(X509_get0_notAfter(cert)) > 0)
		return true;
	ASN1_TIME_to_tm(X509_get0_notAfter(cert), &end);
	strftime(day, sizeof day, "%Y-%m-%d", &end);
	return error_set(err, ERROR_CONFIG, "%s: the certificate expired on %s", key, day);
}

/* Every certificate of the PEM, which may be NULL. */
static bool are_in_time(const char *pem, const char *key, struct error *err)
{
	BIO *bio = pem ? BIO_new_mem_buf(pem, -1) : NULL;
	bool ok = true;
	X509 *cert;
	while (ok && bio && (cert = PEM_read_bio_X509(bio, NULL, no_passphrase, NULL))) {
		ok = is_in_time(cert, key, err);
		X509_free(cert);
	}
	BIO_free(bio);
	ERR_clear_error();
	return ok;
}

bool tls_check_server(const struct tls_server_config *config, struct error *err)
{
	struct tls_material m;
	bool ok = tls_load_server(config, &m, err) &&
		  are_in_time(m.cert, origin_of(config->cert_file, "cert_file", "cert_pem"), err) &&
		  are_in_time(m.ca, "client_ca_file", err);
	tls_release(&m);
	return ok;
}

/* Of the CAs only those that the configuration brings: the system's may hold an old one. */
bool tls_check_client(const struct tls_client_config *config, struct error *err)
{
	struct tls_material m;
	const char *ca = origin_of(config->ca_file, "ca_file", "ca_pem");
	bool ok = tls_load_client(config, &m, err) &&
		  are_in_time(m.cert, origin_of(config->cert_file, "cert_file", "cert_pem"), err) &&
		  (config->include_system_ca_certs_pool || are_in_time(m.ca, ca, err));
	tls_release(&m);
	return ok;
}

static bool same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

bool tls_equal(const struct tls_material *a, const struct tls_material *b)
{
	return same(a->ca, b->ca) && same(a->cert, b->cert) && same(a->key, b->key);
}

void tls_release(struct tls_material *material)
{
	if (material->key)
		OPENSSL_cleanse(material->key, strlen(material->key));
	memory_free(material->ca);
	memory_free(material->cert);
	memory_free(material->key);
	*material = (struct tls_material){ 0 };
}
