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
		{ "protocols: {http: }", "OTLP over HTTP is not supported by this build yet" },
		{ "protocols: {grpc: , http: {endpoint: 'a:1', cors: {}}}",
		  "http: OTLP over HTTP is not" },
		{ "protocols: {htttp: }", "protocols' has invalid keys: htttp" },
		{ "protocols: {grpc: {auth: {authenticator: oidc}}}", "auth: " },
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
		cmocka_unit_test(keys_without_effect_are_listed),
		cmocka_unit_test(what_cannot_be_kept_is_an_error),
		cmocka_unit_test(a_disabled_section_asks_for_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, release);
}
