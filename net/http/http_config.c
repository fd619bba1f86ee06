/* SPDX-License-Identifier: Apache-2.0 */
#include <strings.h>

#include "base/memory.h"
#include "net/http/http_internal.h"
#include "net/tls/tls_choice.h"

/* Gives HTTP_SERVER_ROWS a member name. The offsets are those of the config itself. */
struct section {
	struct http_server_config http;
};

static bool check_section(const void *config, struct error *err)
{
	return http_server_check(config, err);
}

static const struct config_row section_rows[] = {
	HTTP_SERVER_ROWS(struct section, http, NULL, "4096", "1024"), { 0 }
};

const struct config_table http_server_table = {
	.size = sizeof(struct http_server_config),
	.rows = section_rows,
	.check = check_section,
	.optional = true,
};

static bool check_transport(const char *transport, struct error *err)
{
	static const char *const known[] = { "tcp", "tcp4", "tcp6", "unix" };
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (!strcmp(transport, known[i]))
			return true;
	return error_set(err, ERROR_CONFIG, "transport: must be one of tcp, tcp4, tcp6, unix");
}

static bool check_compression(const struct strings *names, struct error *err)
{
	for (size_t i = 0; i < names->count; i++) {
		if (compress_named(names->at[i]) == CODING_UNKNOWN)
			return error_set(err, ERROR_CONFIG,
					 "compression_algorithms[%zu]: unknown; supported are "
					 "\"\", gzip, zstd, zlib, snappy, deflate, lz4 and "
					 "x-snappy-framed",
					 i);
	}
	return true;
}

static bool check_headers(const struct pairs *headers, struct error *err)
{
	for (size_t i = 0; i < headers->count; i++) {
		const struct pair *pair = &headers->at[i];
		const char *value = pair->value.text ? pair->value.text : "";
		if (!http_is_token(pair->name) || strpbrk(value, "\r\n"))
			return error_set(err, ERROR_CONFIG,
					 "response_headers[%zu]: invalid header name, or line "
					 "break in the value",
					 i);
		if (!strcasecmp(pair->name, "content-length") ||
		    !strcasecmp(pair->name, "transfer-encoding") ||
		    !strcasecmp(pair->name, "connection"))
			return error_set(err, ERROR_CONFIG,
					 "response_headers[%zu]: reserved for the server", i);
	}
	return true;
}

static bool check_names(const char *key, const struct strings *names, struct error *err)
{
	for (size_t i = 0; i < names->count; i++)
		if (!http_is_token(names->at[i]))
			return error_set(err, ERROR_CONFIG, "%s[%zu]: invalid header name", key, i);
	return true;
}

static bool check_tls(const struct tls_server_config *tls, struct error *err)
{
	char *priorities = tls->present.enabled ? tls_choice_gnutls(tls, err) : NULL;
	bool ok = priorities || !tls->present.enabled;
	memory_free(priorities);
	return ok || error_prefix(err, "tls");
}

static bool named(const struct node *node)
{
	return node && node->kind != NODE_NULL && (node->kind == NODE_SCALAR || node->count);
}

bool http_server_check(const struct http_server_config *config, struct error *err)
{
	struct http_endpoint endpoint;
	if (!check_transport(config->transport, err))
		return false;
	if (config->endpoint &&
	    !http_endpoint_parse(config->transport, config->endpoint, &endpoint, err))
		return false;
	if (named(config->middlewares))
		return error_set(err, ERROR_CONFIG,
				 "middlewares: this build has no middleware extension");
	return check_tls(&config->tls, err) &&
	       check_compression(&config->compression_algorithms, err) &&
	       check_headers(&config->response_headers, err) &&
	       check_names("cors::allowed_headers", &config->cors.allowed_headers, err) &&
	       check_names("cors::exposed_headers", &config->cors.exposed_headers, err);
}

struct size_limit http_server_body_limit(const struct http_server_config *config)
{
	int64_t max = config->max_request_body_size > 0 ? config->max_request_body_size : 20 << 20;
	return (struct size_limit){ (size_t)max, "max_request_body_size", max };
}
