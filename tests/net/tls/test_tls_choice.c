/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls/tls_choice.h"

#include "base/memory.h"
#include "tests/support/tls_ends.h"

#include <gnutls/gnutls.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define T(text) ((char *)(text)) /* config structs own their strings; these are never freed */

static void versions_are_honoured(void **state)
{
	(void)state;
	static const struct {
		const char *min, *max;
		bool tls_1_2, tls_1_3;
	} rows[] = {
		{ NULL, NULL, true, true },    { "1.2", "", true, true },
		{ "1.3", "", false, true },    { "1.2", "1.2", true, false },
		{ "1.3", "1.3", false, true }, { "", "1.2", true, false },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct tls_server_config config = tls_ends_config("server");
		config.min_version = T(rows[i].min);
		config.max_version = T(rows[i].max);
		assert_int_equal(tls_ends_config_connects(&config,
							  &(struct tls_ends_client){
								  .max_version = TLS1_2_VERSION }),
				 rows[i].tls_1_2);
		assert_int_equal(tls_ends_config_connects(&config,
							  &(struct tls_ends_client){
								  .min_version = TLS1_3_VERSION }),
				 rows[i].tls_1_3);
		assert_false(tls_ends_config_connects(
			&config, &(struct tls_ends_client){ .min_version = TLS1_1_VERSION,
							    .max_version = TLS1_1_VERSION,
							    .ciphers = "ALL:@SECLEVEL=0" }));
	}
}

/* The standard name of the suite that is agreed with a client that supports all suites; "" for
 * none. */
static const char *agreed(const struct tls_server_config *config,
			  const struct tls_ends_client *client)
{
	struct tls_server *server = tls_ends_server(config);
	struct tls_ends p;
	tls_ends_connect(&p, server, client);
	const char *name = tls_ends_shaken(&p)
				   ? SSL_CIPHER_standard_name(SSL_get_current_cipher(p.client))
				   : "";
	tls_ends_free(&p);
	tls_server_unref(&server);
	return name;
}

static void each_cipher_suite_is_offered_when_named_and_no_other(void **state)
{
	(void)state;
	static const char *const names[] = {
		"TLS_AES_128_GCM_SHA256",
		"TLS_AES_256_GCM_SHA384",
		"TLS_CHACHA20_POLY1305_SHA256",
		"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
		"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
		"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
		"TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
		"TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
		"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
		"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
		"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
		"TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
		"TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
	};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char *list[] = { T(names[i]), T(names[i]) };
		bool old = strstr(names[i], "_WITH_");
		struct tls_server_config config =
			tls_ends_config(strstr(names[i], "RSA_WITH") ? "server-rsa" : "server");
		config.cipher_suites = (struct strings){ list, 2 };
		struct tls_ends_client client = { .max_version = old ? TLS1_2_VERSION : 0 };
		assert_string_equal(agreed(&config, &client), names[i]);
		if (!old) /* TLS 1.2 is off */
			assert_string_equal(agreed(&config,
						   &(struct tls_ends_client){
							   .max_version = TLS1_2_VERSION }),
					    "");
		else /* TLS 1.3 is not affected */
			assert_string_equal(
				agreed(&config,
				       &(struct tls_ends_client){
					       .suites = "TLS_CHACHA20_POLY1305_SHA256" }),
				"TLS_CHACHA20_POLY1305_SHA256");
	}
	struct tls_server_config config = tls_ends_config("server");
	struct tls_ends_client cbc = { .max_version = TLS1_2_VERSION,
				       .ciphers = "ECDHE-ECDSA-AES128-SHA" };
	assert_string_equal(agreed(&config, &cbc), "");
}

static void the_order_of_suites_is_the_servers(void **state)
{
	(void)state;
	char *list[] = { T("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"),
			 T("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256") };
	struct tls_server_config config = tls_ends_config("server");
	struct tls_ends_client client = {
		.max_version = TLS1_2_VERSION,
		.ciphers = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384"
	};
	assert_string_equal(agreed(&config, &client), "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256");
	config.cipher_suites = (struct strings){ list, 2 };
	assert_string_equal(agreed(&config, &client), list[0]);
}

static void each_curve_is_offered_when_named_and_no_other(void **state)
{
	(void)state;
	static const struct {
		const char *name, *openssl;
	} curves[] = {
		{ "X25519", "X25519" },
		{ "P256", "P-256" },
		{ "P384", "P-384" },
		{ "P521", "P-521" },
	};
	for (size_t i = 0; i < 4; i++) {
		char *list[] = { T(curves[i].name), T(curves[i].name) };
		struct tls_server_config config = tls_ends_config("server");
		config.curve_preferences = (struct strings){ list, 2 };
		for (size_t k = 0; k < 4; k++)
			for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
				/* The client's groups must include the curve of the certificate,
				 * because they also apply to signatures. */
				char *groups =
					memory_format("%s%s", curves[k].openssl,
						      k == 1 || version == TLS1_3_VERSION ? ""
						      : i == 1                            ? ""
							       : ":P-256");
				struct tls_ends_client client = { .groups = groups,
								  .min_version = version,
								  .max_version = version };
				assert_int_equal(tls_ends_config_connects(&config, &client),
						 i == k);
				memory_free(groups);
			}
	}
	struct tls_server_config config = tls_ends_config("server");
	assert_false(tls_ends_config_connects(&config,
					      &(struct tls_ends_client){ .groups = "ffdhe2048" }));
	assert_true(tls_ends_config_connects(&config, &(struct tls_ends_client){
							      .groups = "ffdhe2048:P-521" }));
}

struct written {
	const char *min, *max, *suites[8], *curves[4];
};

static struct tls_server_config config_of(const struct written *w)
{
	struct tls_server_config config = { .min_version = T(w->min),
					    .max_version = T(w->max),
					    .cipher_suites.at = (char **)w->suites,
					    .curve_preferences.at = (char **)w->curves };
	while (w->suites[config.cipher_suites.count])
		config.cipher_suites.count++;
	while (w->curves[config.curve_preferences.count])
		config.curve_preferences.count++;
	return config;
}

static void check_error(bool ok, const struct error *err, const char *wanted)
{
	if (ok || err->kind != ERROR_CONFIG || !strstr(err->text, wanted) ||
	    strlen(err->text) + 1 == sizeof err->text)
		fail_msg("wanted \"%s\": %s", wanted, ok ? "accepted" : err->text);
}

static void what_no_server_can_honour_is_an_error(void **state)
{
	(void)state;
	static const struct {
		struct written written;
		const char *error;
	} rows[] = {
		{ { .min = "1.0" }, "min_version: TLS 1.0 is not supported: the security level" },
		{ { .max = "1.1" }, "max_version: TLS 1.1 is not supported: the security level" },
		{ { .min = "1.4" },
		  "min_version: unsupported TLS version; use \"1.2\" or \"1.3\"" },
		{ { .max = "TLS1.2" }, "max_version: unsupported TLS version" },
		{ { .min = "1.3", .max = "1.2" },
		  "min_version cannot be greater than max_version" },
		{ { .suites = { "TLS_RSA_WITH_RC4_128_SHA" } },
		  "cipher_suites[0]: unknown or insecure; supported" },
		{ { .suites = { "TLS_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-SHA" } },
		  "AES_256_CBC_SHA}" },
		{ { .suites = { "" } }, "cipher_suites[0]: unknown" },
		{ { .max = "1.2", .suites = { "TLS_AES_128_GCM_SHA256" } },
		  "none of the suites belongs to TLS 1.2" },
		{ { .curves = { "P256", "X25519MLKEM768" } },
		  "curve_preferences[1]: not supported; use X25519, P256" },
		{ { .curves = { "p256" } }, "curve_preferences" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct tls_server_config config = config_of(&rows[i].written);
		struct tls_choice choice;
		struct error err = { 0 };
		check_error(tls_choice_openssl(&config, &choice, &err), &err, rows[i].error);
		check_error(tls_choice_gnutls(&config, &err), &err, rows[i].error);
	}
}

#define RSA_128 "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"
#define RSA_256 "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"
#define ECDSA_128 "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
#define ECDSA_256 "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
#define RSA_CBC "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA"

static void what_gnutls_alone_cannot_honour_is_an_error_over_http(void **state)
{
	(void)state;
	static const struct {
		struct written written;
		const char *error;
	} rows[] = {
		{ { .suites = { RSA_128, ECDSA_256 } },
		  "these suites would also enable " ECDSA_128 },
		{ { .suites = { "TLS_AES_128_GCM_SHA256", RSA_256 } },
		  "would also enable TLS_AES_256_GCM_SHA384" },
		{ { .suites = { "TLS_AES_256_GCM_SHA384", RSA_CBC, "TLS_AES_128_GCM_SHA256" } },
		  "enable " RSA_128 },
		{ { .suites = { RSA_CBC } }, "set max_version to \"1.2\"" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct tls_server_config config = config_of(&rows[i].written);
		struct tls_choice choice;
		struct error err = { 0 };
		assert_true(tls_choice_openssl(&config, &choice, &err));
		check_error(tls_choice_gnutls(&config, &err), &err, rows[i].error);
	}
}

/* GnuTLS's own names for what the priority string enables, in order. */
static void describe(const char *priority, struct bytes *suites, struct bytes *groups)
{
	gnutls_priority_t all;
	const unsigned *list;
	unsigned index;
	int code;
	suites->len = groups->len = 0;
	assert_int_equal(gnutls_priority_init(&all, priority, NULL), 0);
	for (unsigned i = 0; (code = gnutls_priority_get_cipher_suite_index(all, i, &index)) !=
			     GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE;
	     i++)
		if (code == 0)
			bytes_format(suites,
				     " "
				     "%s",
				     gnutls_cipher_suite_info(index, NULL, NULL, NULL, NULL, NULL) +
					     4);
	int count = gnutls_priority_group_list(all, &list);
	for (int i = 0; i < count; i++)
		bytes_format(groups, " %s", gnutls_group_get_name((gnutls_group_t)list[i]));
	bytes_add_byte(suites, 0);
	bytes_add_byte(groups, 0);
	gnutls_priority_deinit(all);
}

static void gnutls_offers_what_is_named(void **state)
{
	(void)state;
	static const struct {
		struct written written;
		const char *suites, *groups;
	} rows[] = {
		{ { .min = "1.2", .suites = { RSA_256, RSA_128 } },
		  " AES_128_GCM_SHA256 AES_256_GCM_SHA384 ECDHE_RSA_AES_128_GCM_SHA256 "
		  "ECDHE_RSA_AES_256_GCM_SHA384",
		  NULL },
		{ { .max = "1.2", .suites = { RSA_128, ECDSA_128, RSA_128 } },
		  " ECDHE_ECDSA_AES_128_GCM_SHA256 ECDHE_RSA_AES_128_GCM_SHA256",
		  NULL },
		{ { .max = "1.2", .suites = { RSA_CBC } }, " ECDHE_RSA_AES_128_CBC_SHA1", NULL },
		{ { .suites = { "TLS_CHACHA20_POLY1305_SHA256" } },
		  " CHACHA20_POLY1305_SHA256",
		  NULL },
		{ { .min = "1.3", .suites = { RSA_128, ECDSA_256 } },
		  " AES_128_GCM_SHA256 AES_256_GCM_SHA384",
		  NULL },
		{ { .curves = { "P384", "X25519" } }, NULL, " SECP384R1 X25519" },
		{ { .curves = { "P521", "P256" } }, NULL, " SECP521R1 SECP256R1" },
	};
	struct bytes suites, groups;
	bytes_init(&suites, 65536);
	bytes_init(&groups, 65536);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct tls_server_config config = config_of(&rows[i].written);
		struct error err = { 0 };
		char *priority = tls_choice_gnutls(&config, &err);
		if (!priority)
			fail_msg("%s", err.text);
		describe(priority, &suites, &groups);
		if (rows[i].suites)
			assert_string_equal(suites.at, rows[i].suites);
		if (rows[i].groups)
			assert_string_equal(groups.at, rows[i].groups);
		memory_free(priority);
	}
	bytes_fini(&suites);
	bytes_fini(&groups);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions_are_honoured),
		cmocka_unit_test(each_cipher_suite_is_offered_when_named_and_no_other),
		cmocka_unit_test(the_order_of_suites_is_the_servers),
		cmocka_unit_test(each_curve_is_offered_when_named_and_no_other),
		cmocka_unit_test(what_no_server_can_honour_is_an_error),
		cmocka_unit_test(what_gnutls_alone_cannot_honour_is_an_error_over_http),
		cmocka_unit_test(gnutls_offers_what_is_named),
	};
	return cmocka_run_group_tests(tests, tls_ends_make_files, tls_ends_remove_files);
}
