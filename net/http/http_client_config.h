/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_HTTP_HTTP_CLIENT_CONFIG_H
#define NET_HTTP_HTTP_CLIENT_CONFIG_H

#include "net/authenticator.h"
#include "net/http/http_client.h"

/*
 * The Collector's keys of HTTP clients (confighttp), for all of ours: exporters and the scraper.
 * `endpoint`, `timeout` and `compression` are rows of the component, which knows what they mean for
 * it.
 */
struct http_basic_config {
	char *username;
	struct secret password;
};

struct http_cookies_config {
	struct optional present;
};

struct http_client_config {
	struct auth_config auth;
	struct http_cookies_config cookies;
	struct secret proxy_url; /* it may contain a password */
	struct http_basic_config basic_auth;
	struct secret bearer_token;
	struct pairs headers;
	struct tls_client_config tls;
	int64_t max_idle, max_per_host;
	struct duration idle_timeout, max_connection_age;
	bool disable_keep_alives;
};

extern const struct config_table http_basic_table;
extern const struct config_table http_cookies_table;

/* The rows of a component's table, HTTP_CLIENT_ROWS(struct pyroscope_config, client). */
/* clang-format off */
#define HTTP_CLIENT_ROWS(type, member) \
	CONFIG_SECTION(type, member.basic_auth, http_basic_table, .key = "basic_auth", \
		       .help = "Basic authentication."), \
	CONFIG_ROW(type, member.bearer_token, .key = "bearer_token", .help = "Sent as `Authorization: Bearer`."), \
	CONFIG_ROW(type, member.headers, .key = "headers", .help = "Sent with each request."), \
	CONFIG_SECTION(type, member.auth, auth_table, .key = "auth", .presence = PRESENCE_NONE, \
		       .help = "An extension adds the credentials to each request."), \
	CONFIG_SECTION(type, member.tls, tls_client_table, .key = "tls", .help = "For `https://` URLs."), \
	CONFIG_ROW(type, member.max_idle, .key = "max_idle_conns", .def = "100", .limited = true, \
		   .min = 0, .max = 100000, .help = "The number of idle connections that are kept; 0: any number."), \
	CONFIG_ROW(type, member.max_per_host, .key = "max_conns_per_host", .def = "0", .limited = true, \
		   .min = 0, .max = 65535, \
		   .help = "The number of connections to one host. Further requests wait, at most for their `timeout`. " \
			   "0: any number."), \
	CONFIG_ROW(type, member.idle_timeout, .key = "idle_conn_timeout", .def = "90s", \
		   .help = "A connection that was idle for this time is not used again; 0: it is."), \
	CONFIG_ROW(type, member.max_connection_age, .key = "max_connection_age", .def = "0s", \
		   .help = "A connection that was opened this time ago (10 % more or less, at random) is not used again. " \
			   "Names are resolved again after 5 s at the latest, for new connections. 0: no limit. Not a key " \
			   "of the Collector."), \
	CONFIG_ROW(type, member.disable_keep_alives, .key = "disable_keep_alives", .def = "false", \
		   .help = "Each request has a connection of its own."), \
	CONFIG_SECTION(type, member.cookies, http_cookies_table, .key = "cookies", .presence = PRESENCE_NONE, \
		       .help = "Cookies that servers set are sent with later requests, as load balancers need them that keep a " \
			       "client at one backend. They are kept in memory; after 256, all are forgotten."), \
	CONFIG_ROW(type, member.proxy_url, .key = "proxy_url", \
		   .help = "URL of a proxy for all requests: `http`, `https` or `socks5`. Default: the environment variables " \
			   "`HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`.")
/* clang-format on */

/* Reports what is wrong with the configuration, and with the URL, which the key `key` has (NULL:
 * there is none). */
void http_client_config_check(const struct http_client_config *config, const char *key,
			      const char *url, struct faults *faults);
/* The options that the configuration contains; it outlives the client. With an authenticator, the
 * headers of each request are those of net/decorated.h. ERROR_CONFIG: it is for servers only. */
bool http_client_configure(struct http_client_options *options,
			   const struct http_client_config *config,
			   const struct authenticator *authenticator, struct error *err);

#endif
