/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/http_internal.h"

/* The headers, then the query parameters that the configuration names. A malformed query has none;
 * the route rejects it later. */
static void add_parameters(struct http_exchange *x, struct fields *out)
{
	const struct strings *names = &x->server->config->auth.request_params;
	const struct metadatum *query;
	for (const struct metadatum *h = http_exchange_headers(x); h->name; h++)
		fields_add(out, view_of(h->name), view_of(h->value), NULL);
	if (!http_exchange_query(x, &query, NULL))
		return;
	for (; query->name; query++)
		if (config_lists(names, query->name))
			fields_add(out, view_of(query->name), view_of(query->value), NULL);
}

/* The certificate's names follow the identity. */
static void add_names(struct fields *identity, const struct metadatum *certificate)
{
	for (; certificate && certificate->name; certificate++)
		fields_add(identity, view_of(certificate->name), view_of(certificate->value), NULL);
}

static bool authenticate(struct http_exchange *x, const struct metadatum *headers,
			 struct error *err)
{
	struct authenticator *a = x->server->authenticator;
	struct auth_request request = { headers, http_exchange_auth(x) };
	struct fields identity;
	fields_init(&identity, &authenticator_identity_limits);
	bool ok = a->ops->authenticate(a, &request, &identity, err);
	if (ok)
		add_names(&identity, request.certificate);
	fields_fini(ok ? &x->auth : &identity);
	if (ok)
		x->auth = identity;
	return ok;
}

bool http_auth_accepts(struct http_exchange *x, struct error *err)
{
	struct fields input;
	error_clear(err);
	if (!x->server->authenticator)
		return true;
	if (!x->server->config->auth.request_params.count)
		return authenticate(x, http_exchange_headers(x), err);
	fields_init(&input, &authenticator_header_limits);
	add_parameters(x, &input);
	bool ok = authenticate(x, fields_list(&input), err);
	fields_fini(&input);
	return ok;
}
