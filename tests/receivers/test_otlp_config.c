/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bytes.h"
#include "config/load.h"
#include "receivers/otlp_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct otlp_config config;
static struct error err;
static struct node *node;

static bool bind(const char *yaml)
{
	config_release(&otlp_config_table, &config);
	memset(&config, 0, sizeof config);
	node_unref(&node);
	error_clear(&err);
	node = config_parse("test", yaml, strlen(yaml), &err);
	assert_non_null(node);
	return config_bind(&otlp_config_table, node, "receivers::otlp", &config, &err);
}

static int release(void **state)
{
	(void)state;
	config_release(&otlp_config_table, &config);
	memset(&config, 0, sizeof config);
	node_unref(&node);
	return 0;
}

static void null_grpc_is_enabled_with_the_defaults(void **state)
{
	(void)state;
	assert_true(bind("protocols: {grpc: }"));
	const struct rpc_server_config *grpc = &config.protocols.grpc;
	assert_true(grpc->present.enabled);
	assert_string_equal(grpc->endpoint, "localhost:4317");
	assert_string_equal(rpc_server_transports[grpc->transport.index], "tcp");
	assert_int_equal(grpc->max_recv_msg_size_mib, 0);
	assert_false(grpc->tls.present.enabled);
	assert_true(grpc->keepalive.server.present.enabled);
}

static void the_keys_of_the_collector_are_read(void **state)
{
	(void)state;
	assert_true(bind("protocols:\n"
			 "  grpc:\n"
			 "    endpoint: /run/otlp.sock\n"
			 "    transport: unix\n"
			 "    dialer: {timeout: 1s}\n"
			 "    max_recv_msg_size_mib: 64\n"
			 "    max_concurrent_streams: 16\n"
			 "    read_buffer_size: 1024\n"
			 "    write_buffer_size: 1024\n"
			 "    include_metadata: true\n"
			 "    middlewares: []\n"
			 "    auth:\n"
			 "    tls: {cert_file: a, key_file: b, client_ca_file: c, min_version: "
			 "'1.2',\n"
			 "          client_ca_file_reload: true, reload_interval: 1h}\n"
			 "    keepalive:\n"
			 "      server_parameters: {max_connection_idle: 1m, "
			 "max_connection_age: 2m,\n"
			 "        max_connection_age_grace: 3m, time: 4m, timeout: 5m}\n"
			 "      enforcement_policy: {min_time: 6m, permit_without_stream: "
			 "true}\n"));
	const struct rpc_server_config *grpc = &config.protocols.grpc;
	assert_string_equal(rpc_server_transports[grpc->transport.index], "unix");
	assert_int_equal(grpc->max_recv_msg_size_mib, 64);
	assert_true(grpc->tls.present.enabled && grpc->tls.client_ca_file_reload);
	assert_true(grpc->keepalive.server.max_connection_age_grace.ns == INT64_C(180000000000));
	assert_true(grpc->keepalive.enforcement.min_time.ns == INT64_C(360000000000));
	assert_true(grpc->include_metadata);
}

static void null_http_is_enabled_with_the_defaults(void **state)
{
	(void)state;
	static const char *const codings[] = { "",       "gzip",    "zstd", "zlib",
					       "snappy", "deflate", "lz4",  "x-snappy-framed" };
	assert_true(bind("protocols: {http: }"));
	const struct http_server_config *http = &config.protocols.http.server;
	assert_true(http->present.enabled && !config.protocols.grpc.present.enabled);
	assert_string_equal(http->endpoint, "localhost:4318");
	assert_int_equal(http_server_body_limit(http).max, 20 << 20);
	assert_true(http->keep_alives_enabled && !http->include_metadata);
	assert_int_equal(config.protocols.http.profiles_url_paths.count, 1);
	assert_string_equal(config.protocols.http.profiles_url_paths.at[0],
			    "/v1development/profiles");
	assert_int_equal(http->compression_algorithms.count, sizeof codings / sizeof *codings);
	for (size_t i = 0; i < http->compression_algorithms.count; i++)
		assert_string_equal(http->compression_algorithms.at[i], codings[i]);
}

static void the_http_keys_of_the_collector_are_read(void **state)
{
	(void)state;
	assert_true(bind("protocols:\n"
			 "  grpc:\n"
			 "  http:\n"
			 "    endpoint: 0.0.0.0:4318\n"
			 "    transport: tcp4\n"
			 "    tls: {cert_file: a, key_file: b, client_ca_file: c}\n"
			 "    cors: {allowed_origins: ['https://*.example.com'], max_age: 7200}\n"
			 "    auth:\n"
			 "    max_request_body_size: 1000\n"
			 "    include_metadata: true\n"
			 "    response_headers: {X-A: b}\n"
			 "    compression_algorithms: ['', gzip]\n"
			 "    read_timeout: 1s\n"
			 "    read_header_timeout: 2s\n"
			 "    write_timeout: 3s\n"
			 "    idle_timeout: 4s\n"
			 "    keep_alives_enabled: false\n"
			 "    middlewares: []\n"
			 "    traces_url_path: /t\n"
			 "    metrics_url_path: /m\n"
			 "    logs_url_path: /l\n"
			 "    profiles_url_paths: [/v1development/profiles, /v1/profiles]\n"));
	const struct otlp_http_config *http = &config.protocols.http;
	assert_true(config.protocols.grpc.present.enabled && http->server.present.enabled);
	assert_int_equal(http->server.max_request_body_size, 1000);
	assert_true(http->server.include_metadata && !http->server.keep_alives_enabled);
	assert_true(http->server.idle_timeout.ns == INT64_C(4000000000));
	assert_string_equal(http->profiles_url_paths.at[1], "/v1/profiles");
}

static void told_inert(void *context, const char *path, const struct config_row *row)
{
	struct bytes *told = context;
	assert_true(row->inert);
	assert_true(bytes_format(told, "%s ", path));
}

static void keys_without_effect_are_listed(void **state)
{
	(void)state;
	struct bytes told;
	bytes_init(&told, 1000);
	assert_true(bind("protocols: {grpc: {read_buffer_size: 1, dialer: {timeout: 1s}, "
			 "endpoint: 'a:1'}}"));
	config_each_inert(&otlp_config_table, node, "receivers::otlp", told_inert, &told);
	assert_string_equal((char *)told.at, "receivers::otlp::protocols::grpc::dialer::timeout ");
	bytes_fini(&told);
}

static void what_cannot_be_kept_is_an_error(void **state)
{
	(void)state;
	static const struct {
		const char *yaml, *text;
	} rows[] = {
		{ "protocols: {}",
		  "must specify at least one protocol when using the OTLP receiver" },
		{ "", "must specify at least one protocol when using the OTLP receiver" },
		{ "protocols: {grpc: {enabled: false}}", "must specify at least one protocol" },
		{ "protocols: {http: {enabled: false}}", "must specify at least one protocol" },
		{ "protocols: {http: {endpoint: ''}}", "endpoint: must not be empty" },
		{ "protocols: {http: {profiles_url_path: /v1/profiles}}", "has invalid keys" },
		{ "protocols: {http: {profiles_url_paths: []}}",
		  "profiles_url_paths: must have 1 to 16" },
		{ "protocols: {http: {profiles_url_paths: [/a, v1/profiles]}}",
		  "profiles_url_paths[1]: must begin with /" },
		{ "protocols: {http: {profiles_url_paths: [/a, /b, /a]}}",
		  "profiles_url_paths[2]: is listed twice" },
		{ "protocols: {http: {profiles_url_paths: [/v1/traces]}}",
		  "profiles_url_paths[0]: is the path of another signal" },
		{ "protocols: {http: {middlewares: [{id: x}]}}", "middlewares: " },
		{ "protocols: {http: {compression_algorithms: [br]}}",
		  "compression_algorithms[0]" },
		{ "protocols: {http: {tls: {}}}", "must include both certificate and key" },
		{ "protocols: {htttp: }", "protocols' has invalid keys: htttp" },
		{ "protocols: {grpc: {auth: {authenticator: ''}}}",
		  "authenticator must be the ID of an extension" },
		{ "protocols: {grpc: {middlewares: [{id: x}]}}", "middlewares: " },
		{ "protocols: {grpc: {max_recv_msg_size_mib: -1}}", "max_recv_msg_size_mib" },
		{ "protocols: {grpc: {transport: udp}}", "transport" },
		{ "protocols: {grpc: {tls: {}}}", "must include both certificate and key" },
		{ "protocols: {grpc: {tls: {cert_file: a, key_file: b, min_version: '1.1'}}}",
		  "min_version" },
		{ "protocols: {grpc: {tls: {cert_file: a, key_file: b, cipher_suites: [X]}}}",
		  "cipher_suites" },
		{ "protocols: {grpc: {tls: {cert_file: a, key_file: b, tpm: {enabled: true}}}}",
		  "tpm" },
		{ "protocols: {grpc: {tls: {cert_file: a, key_file: b, curve_preferences: "
		  "[P224]}}}",
		  "curve" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_false(bind(rows[i].yaml));
		if (!strstr(err.text, rows[i].text))
			fail_msg("%s: %s", rows[i].yaml, err.text);
	}
}

static void a_disabled_section_asks_for_nothing(void **state)
{
	(void)state;
	assert_true(bind("protocols: {grpc: {auth: {enabled: false}, tls: {enabled: false}}, "
			 "http: {enabled: false}}"));
	assert_false(config.protocols.grpc.tls.present.enabled);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(null_grpc_is_enabled_with_the_defaults),
		cmocka_unit_test(the_keys_of_the_collector_are_read),
		cmocka_unit_test(null_http_is_enabled_with_the_defaults),
		cmocka_unit_test(the_http_keys_of_the_collector_are_read),
		cmocka_unit_test(keys_without_effect_are_listed),
		cmocka_unit_test(what_cannot_be_kept_is_an_error),
		cmocka_unit_test(a_disabled_section_asks_for_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, release);
}
