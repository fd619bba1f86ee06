/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/http_client_config.h"

#include <string.h>
#include <strings.h>

#include "base/version.h"

static const char *given(const char *text)
{
	return text && *text ? text : NULL;
}

static void check_authorization(const struct http_client_config *c, struct faults *faults)
{
	bool basic = given(c->basic_auth.username), bearer = given(c->bearer_token.text);
	if (c->auth.present.enabled && (basic || bearer))
		faults_add(
			faults,
			"auth: provide either auth or basic_auth and bearer_token, but not both");
	else if (basic && bearer)
		faults_add(faults, "bearer_token: provide either basic_auth or bearer_token, but "
				   "not both");
	for (size_t i = 0; (basic || bearer) && i < c->headers.count; i++)
		if (!strcasecmp(c->headers.at[i].name, "authorization"))
			faults_add(faults,
				   "headers[%zu]: Authorization must not be set together with "
				   "basic_auth or bearer_token",
				   i);
}

void http_client_config_check(const struct http_client_config *c, const char *key, const char *url,
			      struct faults *faults)
{
	struct error why;
	http_client_check(key, url, &c->headers, faults);
	if (!http_client_check_proxy(c->proxy_url.text, &why))
		faults_take(faults, &why);
	check_authorization(c, faults);
}

bool http_client_configure(struct http_client_options *o, const struct http_client_config *c,
			   const struct authenticator *authenticator, struct error *err)
{
	if (!authenticator_check_client(authenticator, c->auth.authenticator, err))
		return false;
	o->tls = &c->tls;
	o->headers = authenticator ? NULL : &c->headers;
	o->user_agent = "Portcullis/" PORTCULLIS_VERSION;
	o->username = given(c->basic_auth.username);
	o->password = c->basic_auth.password.text;
	o->bearer = given(c->bearer_token.text);
	o->proxy = given(c->proxy_url.text);
	o->idle_max = (uint32_t)c->max_idle;
	o->server_max = (uint32_t)c->max_per_host;
	o->idle_ns = c->idle_timeout.ns ? (uint64_t)c->idle_timeout.ns : UINT64_MAX / 2;
	o->max_age_ns = (uint64_t)c->max_connection_age.ns;
	o->one_request = c->disable_keep_alives;
	o->cookies = c->cookies.present.enabled;
	return true;
}

static const struct config_row basic_rows[] = {
	CONFIG_ROW(struct http_basic_config, username, .key = "username",
		   .help = "User name. For Grafana Cloud: the numeric user ID."),
	CONFIG_ROW(struct http_basic_config, password, .key = "password",
		   .help = "Password or token."),
	{ 0 }
};

static const struct config_row cookies_rows[] = { { 0 } };

const struct config_table http_cookies_table = { sizeof(struct http_cookies_config), cookies_rows,
						 .optional = true };

const struct config_table http_basic_table = { sizeof(struct http_basic_config), basic_rows };
