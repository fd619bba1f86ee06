/* SPDX-License-Identifier: Apache-2.0 */
#include "receivers/pprof_client.h"

#include "net/decorated.h"

static bool read_certificates(void *context, bool *changed, struct error *err)
{
	struct pprof_client *c = context;
	return !c->client || http_client_reopen(c->client, changed, err);
}

void pprof_client_init(struct pprof_client *c, const struct http_client_config *config,
		       const struct host *host)
{
	const struct auth_config *auth = &config->auth;
	*c = (struct pprof_client){
		.config = config,
		.host = host,
		.authenticator = host_authenticator(host, &auth->present, auth->authenticator),
		.reopen = { .host = host,
			    .read = read_certificates,
			    .sender = c,
			    .interval_ns = config->tls.reload_interval.ns },
	};
}

bool pprof_client_start(struct pprof_client *c, struct error *err)
{
	struct http_client_options options = { .loop = c->host->loop };
	if (!http_client_configure(&options, c->config, c->authenticator, err))
		return false;
	c->client = http_client_new(&options, err);
	if (c->client)
		reopen_start(&c->reopen);
	return c->client != NULL;
}

bool pprof_client_get(struct pprof_client *c, struct http_get *get,
		      void (*done)(void *argument, const struct http_result *result),
		      void *argument)
{
	struct decorated d;
	bool ok = decorated_init(&d, c->authenticator, &c->config->headers, NULL, NULL) &&
		  http_client_check_headers(d.headers, NULL);
	get->headers = d.headers;
	if (ok)
		http_client_get(c->client, get, done, argument);
	decorated_fini(&d);
	return ok;
}

void pprof_client_rest(struct pprof_client *c)
{
	reopen_fini(&c->reopen);
}

void pprof_client_stop(struct pprof_client *c)
{
	http_client_unref(&c->client);
}

void pprof_client_fini(struct pprof_client *c)
{
	authenticator_unref(&c->authenticator);
}
