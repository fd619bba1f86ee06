/* SPDX-License-Identifier: Apache-2.0 */
#include "net/rpc_private.h"
#include "net/tls_choice.h"

/* gRPC core has no setter for any of them. */
static bool check_choice(const struct tls_server_config *config, struct error *err)
{
	struct tls_choice choice;
	if (!tls_choice_openssl(config, &choice, err))
		return false;
	if (choice.ordered || choice.min_version != 0x0303 || choice.max_version != 0x0304)
		return error_set(err, ERROR_CONFIG, "min_version, max_version, cipher_suites and curve_preferences cannot be "
				 "set for the gRPC server of this build");
	return true;
}

bool rpc_tls_init(struct rpc_tls *tls, const struct tls_server_config *config, struct error *err)
{
	*tls = (struct rpc_tls){ .config = config };
	pthread_mutex_init(&tls->mutex, NULL);
	bool changed;
	return !config || (check_choice(config, err) && rpc_tls_reload(tls, &changed, err));
}

void rpc_tls_fini(struct rpc_tls *tls)
{
	tls_release(&tls->material);
	pthread_mutex_destroy(&tls->mutex);
}

bool rpc_tls_reload(struct rpc_tls *tls, bool *changed, struct error *err)
{
	struct tls_material fresh;
	*changed = false;
	if (!tls_load_server(tls->config, &fresh, err))
		return false;
	pthread_mutex_lock(&tls->mutex);
	if (!tls->generation || !tls_equal(&fresh, &tls->material)) {
		struct tls_material old = tls->material;
		tls->material = fresh;
		tls->generation++;
		fresh = old;
		*changed = true;
	}
	pthread_mutex_unlock(&tls->mutex);
	tls_release(&fresh);
	return true;
}

/* Core asks at every handshake. If it cannot use what it gets, it keeps the previous certificate. */
static grpc_ssl_certificate_config_reload_status fetch(void *user,
						       grpc_ssl_server_certificate_config **config)
{
	struct rpc_tls_view *view = user;
	struct rpc_tls *tls = view->tls;
	grpc_ssl_certificate_config_reload_status status = GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
	pthread_mutex_lock(&tls->mutex);
	if (view->seen != tls->generation) {
		const struct tls_material *m = &tls->material;
		grpc_ssl_pem_key_cert_pair pair = { m->key, m->cert };
		/* Without any CA a reload aborts in core, even when no client certificate is asked for. */
		*config = grpc_ssl_server_certificate_config_create(m->ca ? m->ca : m->cert, &pair, 1);
		view->seen = tls->generation;
		status = GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
	}
	pthread_mutex_unlock(&tls->mutex);
	return status;
}

grpc_server_credentials *rpc_tls_credentials(struct rpc_tls_view *view)
{
	if (!view->tls)
		return grpc_insecure_server_credentials_create();
	const char *ca = view->tls->config->client_ca_file;
	grpc_ssl_client_certificate_request_type ask =
		ca && *ca ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY :
			    GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE;
	return grpc_ssl_server_credentials_create_with_options(
		grpc_ssl_server_credentials_create_options_using_config_fetcher(ask, fetch, view));
}
