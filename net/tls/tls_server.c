/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls/tls_private.h"

#include "base/memory.h"
#include "net/tls/tls_choice.h"

#include <assert.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <pthread.h>

/* The size of a client's certificates. The longest chains in practice have a tenth of it. */
#define CERTIFICATES_MAX (64 << 10)

struct tls_server {
	const struct tls_server_config *config;
	const char *alpn;
	pthread_mutex_t mutex; /* guards what follows */
	SSL_CTX *context;
	struct tls_material material; /* the material from which the context was created */
};

static bool refused(const char *what, struct error *err)
{
	error_set(err, ERROR_CONFIG, "OpenSSL rejected the %s: %s", what, tls_session_reason());
	ERR_clear_error();
	return false;
}

/* Calls `add` for each certificate of the PEM string, in order. `add` takes ownership. */
static bool each_certificate(const char *pem, bool (*add)(SSL_CTX *context, X509 *certificate),
			     SSL_CTX *context)
{
	BIO *bio = BIO_new_mem_buf(pem, -1);
	X509 *next;
	bool ok = bio;
	while (ok && (next = PEM_read_bio_X509(bio, NULL, NULL, (void *)"")))
		ok = add(context, next);
	BIO_free(bio);
	return ok;
}

static bool add_own(SSL_CTX *context, X509 *certificate)
{
	if (SSL_CTX_get0_certificate(context))
		return SSL_CTX_add0_chain_cert(context, certificate) == 1;
	bool ok = SSL_CTX_use_certificate(context, certificate) == 1;
	X509_free(certificate);
	return ok;
}

static bool add_client_ca(SSL_CTX *context, X509 *certificate)
{
	bool ok = X509_STORE_add_cert(SSL_CTX_get_cert_store(context), certificate) == 1 &&
		  SSL_CTX_add_client_CA(context, certificate) == 1;
	X509_free(certificate);
	return ok;
}

static bool use_key(SSL_CTX *context, const char *pem)
{
	BIO *bio = BIO_new_mem_buf(pem, -1);
	EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, NULL, (void *)"") : NULL;
	bool ok = key && SSL_CTX_use_PrivateKey(context, key) == 1;
	EVP_PKEY_free(key);
	BIO_free(bio);
	return ok;
}

/* Each certificate of the file is trusted, regardless of whether it is self-signed, as in the
 * Collector. */
static bool demand_client(SSL_CTX *context, const char *ca)
{
	X509_STORE_set_flags(SSL_CTX_get_cert_store(context), X509_V_FLAG_PARTIAL_CHAIN);
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	SSL_CTX_set_max_cert_list(context, CERTIFICATES_MAX);
	return each_certificate(ca, add_client_ca, context);
}

static bool use_material(SSL_CTX *context, const struct tls_material *m, struct error *err)
{
	if (!each_certificate(m->cert, add_own, context))
		return refused("certificate", err);
	if (!use_key(context, m->key))
		return refused("key", err);
	return !m->ca || demand_client(context, m->ca) || refused("client CA", err);
}

static bool use_choice(SSL_CTX *context, const struct tls_choice *c, struct error *err)
{
	if (c->ordered)
		SSL_CTX_set_options(context, SSL_OP_CIPHER_SERVER_PREFERENCE);
	return (SSL_CTX_set_min_proto_version(context, c->min_version) == 1 &&
		SSL_CTX_set_max_proto_version(context, c->max_version) == 1 &&
		(!*c->ciphers || SSL_CTX_set_cipher_list(context, c->ciphers) == 1) &&
		(!*c->suites || SSL_CTX_set_ciphersuites(context, c->suites) == 1) &&
		SSL_CTX_set1_groups_list(context, c->groups) == 1) ||
	       refused("versions, cipher_suites or curve_preferences", err);
}

static void set_modes(SSL_CTX *context, const char *alpn)
{
	SSL_CTX_set_options(context,
			    SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
	SSL_CTX_set_num_tickets(context, 0);
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	tls_session_watch(context, alpn);
}

static SSL_CTX *context_new(const struct tls_server *server, const struct tls_material *material,
			    struct error *err)
{
	struct tls_choice choice;
	if (!tls_choice_openssl(server->config, &choice, err))
		return NULL;
	ERR_clear_error();
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());
	assert(context);
	set_modes(context, server->alpn);
	if (!use_choice(context, &choice, err) || !use_material(context, material, err)) {
		SSL_CTX_free(context);
		context = NULL;
	}
	ERR_clear_error();
	return context;
}

static bool is_current(struct tls_server *server, const struct tls_material *material)
{
	pthread_mutex_lock(&server->mutex);
	bool same = server->context && tls_equal(material, &server->material);
	pthread_mutex_unlock(&server->mutex);
	return same;
}

bool tls_server_reopen(struct tls_server *server, bool *changed, struct error *err)
{
	struct tls_material fresh;
	*changed = false;
	if (!tls_load_server(server->config, &fresh, err))
		return false;
	if (is_current(server, &fresh)) {
		tls_release(&fresh);
		return true;
	}
	SSL_CTX *context = context_new(server, &fresh, err);
	if (!context) {
		tls_release(&fresh);
		return false;
	}
	pthread_mutex_lock(&server->mutex);
	SSL_CTX *old_context = server->context;
	struct tls_material old = server->material;
	server->context = context;
	server->material = fresh;
	pthread_mutex_unlock(&server->mutex);
	SSL_CTX_free(old_context);
	tls_release(&old);
	*changed = true;
	return true;
}

struct tls_server *tls_server_new(const struct tls_server_config *config, const char *alpn,
				  struct error *err)
{
	struct tls_server *server = memory_new(sizeof *server);
	bool changed;
	server->config = config;
	server->alpn = alpn;
	pthread_mutex_init(&server->mutex, NULL);
	if (!tls_server_reopen(server, &changed, err))
		tls_server_unref(&server);
	return server;
}

void tls_server_unref(struct tls_server **server)
{
	struct tls_server *s = *server;
	if (!s)
		return;
	*server = NULL;
	SSL_CTX_free(s->context);
	tls_release(&s->material);
	pthread_mutex_destroy(&s->mutex);
	memory_free(s);
}

SSL *tls_server_connect(struct tls_server *server)
{
	pthread_mutex_lock(&server->mutex);
	SSL *ssl = SSL_new(server->context); /* holds a reference to the context */
	pthread_mutex_unlock(&server->mutex);
	assert(ssl);
	return ssl;
}
