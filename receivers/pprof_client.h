/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RECEIVERS_PPROF_CLIENT_H
#define RECEIVERS_PPROF_CLIENT_H

#include "net/http/http_client_config.h"
#include "pipeline/reopen.h"

/* The HTTP client of the scraper, with its authenticator. Part of struct pprof_scraper; init,
 * start, stop, fini follow its life. [loop thread, except stop] */
struct pprof_client {
	const struct http_client_config *config;
	const struct host *host;
	struct authenticator *authenticator; /* NULL: none */
	struct http_client *client;          /* NULL: not started, or stopped */
	struct reopen reopen;
};

/* Everything is borrowed until fini. */
void pprof_client_init(struct pprof_client *client, const struct http_client_config *config,
		       const struct host *host);
/* ERROR_CONFIG: the TLS files, or an authenticator for senders only. */
bool pprof_client_start(struct pprof_client *client, struct error *err);
/* False: the authenticator has no headers for the request now, or some that cannot be sent; `done`
 * is not called. The headers of `get` are set here. */
bool pprof_client_get(struct pprof_client *client, struct http_get *get,
		      void (*done)(void *argument, const struct http_result *result),
		      void *argument);
/* Certificates are not read again any more. */
void pprof_client_rest(struct pprof_client *client);
/* Ends what is in flight. [pool thread] */
void pprof_client_stop(struct pprof_client *client);
void pprof_client_fini(struct pprof_client *client);

#endif
