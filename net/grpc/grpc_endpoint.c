/* SPDX-License-Identifier: Apache-2.0 */
#include "net/grpc/grpc_client.h"

#include <string.h>
#include <strings.h>

#include "base/base64.h"
#include "base/memory.h"
#include "base/quote.h"
#include "net/host_port.h"
#include "net/proxy.h"

/* How each scheme of an endpoint becomes a target of core. */
static const struct scheme {
	const char *prefix;
	/* NULL: dns:///host:port; otherwise the prefix of the rest, which is not checked */
	const char *target;
	bool tls;
} schemes[] = {
	{ "http://", NULL, false },    { "https://", NULL, true },
	{ "dns:///", NULL, false },    { "passthrough:///", NULL, false },
	{ "dns://", "dns://", false }, /* dns://server/host:port */
	{ "unix:", "unix:", false },   { "unix-abstract:", "unix-abstract:", false },
	{ "ipv4:", "ipv4:", false },   { "ipv6:", "ipv6:", false },
	{ "", NULL, false },
};

static const struct scheme *scheme_of(const char *text)
{
	const struct scheme *s = schemes;
	while (strncmp(text, s->prefix, strlen(s->prefix)))
		s++;
	return s;
}

/* Accepts "host:port", "[address]:port" and ":port" (this machine). */
static bool parse_host_port(const char *text, struct grpc_endpoint *out, struct error *err)
{
	struct host_port parts;
	if (!host_port_parse("endpoint", text, 1, &parts, err))
		return false;
	out->host = parts.host_len ? memory_text_of(parts.host, parts.host_len)
				   : memory_text("localhost");
	out->port = memory_text(parts.port);
	out->authority = proxy_place(out->host, out->port);
	/* RFC 6761, section 6.3, without c-ares, which leaks that name each time (1.18) */
	if (!strcasecmp(out->host, "localhost"))
		out->target =
			memory_format("ipv6:[::1]:%s,[::ffff:127.0.0.1]:%s", out->port, out->port);
	else
		out->target = memory_format("dns:///%s", out->authority);
	return true;
}

bool grpc_endpoint_parse(const char *text, struct grpc_endpoint *out, struct error *err)
{
	*out = (struct grpc_endpoint){ 0 };
	if (!text || !*text)
		return error_set(err, ERROR_CONFIG, "endpoint: must not be empty");
	const struct scheme *scheme = scheme_of(text);
	out->shown = quote_place(text);
	const char *rest = text + strlen(scheme->prefix);
	out->tls = scheme->tls;
	if (!scheme->target)
		return parse_host_port(rest, out, err);
	if (!*rest)
		return error_set(err, ERROR_CONFIG, "endpoint: the address after \"%s\" is missing",
				 scheme->prefix);
	/* unix://relative is the notation of grpc-go; core expects unix:relative. */
	if (!strcmp(scheme->prefix, "unix:") && !strncmp(rest, "//", 2) && rest[2] != '/')
		rest += 2;
	out->target = memory_format("%s%s", scheme->target, rest);
	out->host = memory_text("");
	out->port = memory_text("");
	return true;
}

static char *basic_authorization(const struct proxy *proxy)
{
	struct bytes out;
	char *pair = memory_format("%s:%s", proxy->user, proxy->password);
	bytes_init(&out, SIZE_MAX);
	base64_add(&out, view_of(pair), true);
	char *text = memory_format("Basic %.*s", (int)out.len, (const char *)out.at);
	memory_free(pair);
	bytes_fini(&out);
	return text;
}

bool grpc_endpoint_find_proxy(struct grpc_endpoint *e, struct error *err)
{
	struct proxy proxy = { 0 };
	if (*e->host && !proxy_of_environment(true, e->host, e->port, &proxy, err))
		return false;
	if (!proxy.host)
		return true;
	bool http = !strcmp(proxy.scheme, "http");
	if (http) {
		char *place = proxy_place(proxy.host, proxy.port);
		memory_free(e->target);
		e->target = memory_format("dns:///%s", place);
		e->proxied = true;
		e->proxy_authorization = proxy.user ? basic_authorization(&proxy) : NULL;
		memory_free(place);
	}
	proxy_fini(&proxy);
	return http || error_set(err, ERROR_CONFIG,
				 "environment variable HTTPS_PROXY: gRPC clients support only the "
				 "scheme http; if %s needs no proxy, add it to NO_PROXY",
				 e->host);
}

void grpc_endpoint_fini(struct grpc_endpoint *endpoint)
{
	memory_free(endpoint->authority);
	memory_free(endpoint->proxy_authorization);
	memory_free(endpoint->target);
	memory_free(endpoint->host);
	memory_free(endpoint->port);
	memory_free(endpoint->shown);
	*endpoint = (struct grpc_endpoint){ 0 };
}

bool grpc_endpoint_is_plaintext(const struct grpc_endpoint *endpoint,
				const struct tls_client_config *tls)
{
	bool has_ca =
		tls && ((tls->ca_file && *tls->ca_file) || (tls->ca_pem.text && *tls->ca_pem.text));
	return !endpoint->tls && (!tls || (tls->insecure && !has_ca));
}
