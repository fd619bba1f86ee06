/* SPDX-License-Identifier: Apache-2.0 */
#include <strings.h>

#include "base/memory.h"
#include "net/http/http_internal.h"
#include "net/tls/tls_choice.h"

/* Gives HTTP_SERVER_ROWS a member name. The offsets are those of the config itself. */
struct section {
	struct http_server_config http;
};

static void check_section(const void *config, struct faults *faults)
{
	http_server_check(config, faults);
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

static bool is_transport(const char *transport)
{
	static const char *const known[] = { "tcp", "tcp4", "tcp6", "unix" };
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (!strcmp(transport, known[i]))
			return true;
	return false;
}

bool http_server_check_endpoint(const char *transport, const char *endpoint, struct error *err)
{
	struct http_endpoint parsed;
	return http_endpoint_parse(transport, endpoint, &parsed, err);
}

static void check_address(const struct http_server_config *config, struct faults *faults)
{
	struct error why;
	if (!is_transport(config->transport))
		faults_add(faults, "transport: must be one of tcp, tcp4, tcp6, unix");
	else if (config->endpoint &&
		 !http_server_check_endpoint(config->transport, config->endpoint, &why))
		faults_relate(faults, "transport", "%s", why.text);
}

static void check_compression(const struct strings *names, struct faults *faults)
{
	for (size_t i = 0; i < names->count; i++) {
		if (compress_named(names->at[i]) == CODING_UNKNOWN)
			faults_add(faults,
				   "compression_algorithms[%zu]: unknown; supported are "
				   "\"\", gzip, zstd, zlib, snappy, deflate, lz4 and "
				   "x-snappy-framed",
				   i);
	}
}

static void check_headers(const struct pairs *headers, struct faults *faults)
{
	for (size_t i = 0; i < headers->count; i++) {
		const struct pair *pair = &headers->at[i];
		const char *value = pair->value.text ? pair->value.text : "";
		if (!http_is_token(pair->name) || strpbrk(value, "\r\n"))
			faults_add(faults,
				   "response_headers[%zu]: invalid header name, or line "
				   "break in the value",
				   i);
		if (!strcasecmp(pair->name, "content-length") ||
		    !strcasecmp(pair->name, "transfer-encoding") ||
		    !strcasecmp(pair->name, "connection"))
			faults_add(faults, "response_headers[%zu]: reserved for the server", i);
	}
}

static void check_names(const char *key, const struct strings *names, struct faults *faults)
{
	for (size_t i = 0; i < names->count; i++)
		if (!http_is_token(names->at[i]))
			faults_add(faults, "%s[%zu]: invalid header name", key, i);
}

static void check_tls(const struct tls_server_config *tls, struct faults *faults)
{
	struct error why;
	if (!tls->present.enabled)
		return;
	char *priorities = tls_choice_gnutls(tls, &why);
	if (!priorities) {
		error_prefix(&why, "tls");
		faults_take(faults, &why);
	}
	memory_free(priorities);
}

static bool named(const struct node *node)
{
	return node && node->kind != NODE_NULL && (node->kind == NODE_SCALAR || node->count);
}

void http_server_check(const struct http_server_config *config, struct faults *faults)
{
	check_address(config, faults);
	if (named(config->middlewares))
		faults_add(faults, "middlewares: this build has no middleware extension");
	check_tls(&config->tls, faults);
	check_compression(&config->compression_algorithms, faults);
	check_headers(&config->response_headers, faults);
	check_names("cors::allowed_headers", &config->cors.allowed_headers, faults);
	check_names("cors::exposed_headers", &config->cors.exposed_headers, faults);
}

struct size_limit http_server_body_limit(const struct http_server_config *config)
{
	int64_t max = config->max_request_body_size > 0 ? config->max_request_body_size : 20 << 20;
	return (struct size_limit){ (size_t)max, "max_request_body_size", max };
}
