/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_PROXY_H
#define NET_PROXY_H

#include "base/error.h"

/*
 * The proxy of a destination: from a URL, or from the environment by the rules of Go, which the
 * Collector has. HTTP_PROXY is for http, HTTPS_PROXY for https and gRPC. NO_PROXY lists the
 * destinations without a proxy. Each name is also known in lower case; the one in upper case takes
 * precedence. `localhost` and loopback addresses have no proxy. [any thread]
 */
struct proxy {
	const char *scheme;    /* "http", "https" or "socks5h" (names are resolved by the proxy) */
	char *host;            /* NULL: there is no proxy */
	char *port;            /* that of the scheme if the URL has none */
	char *user, *password; /* NULL: none */
};

/* err says what a URL of a proxy must have, and never contains a part of this one. */
bool proxy_parse(const char *url, struct proxy *out, struct error *err);
/* Are all URLs in the environment valid? err names the variable. */
bool proxy_check_environment(struct error *err);
/* Does the environment name a proxy, for whatever destination? */
bool proxy_is_in_environment(bool secure);
/* That of a destination, for https or gRPC if `secure`. False: the URL is invalid. An IPv6 address
 * may have brackets. */
bool proxy_of_environment(bool secure, const char *host, const char *port, struct proxy *out,
			  struct error *err);
/* "host:port", with brackets around an IPv6 address; the caller frees it. */
char *proxy_place(const char *host, const char *port);
void proxy_fini(struct proxy *proxy);

#endif
