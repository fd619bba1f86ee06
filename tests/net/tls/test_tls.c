/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls/tls.h"

#include "base/memory.h"

#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define T(text) ((char *)(text)) /* config structs own their strings; these are never freed */

static int shell(const char *script)
{
	char *const arguments[] = { T("sh"), T("-c"), T(script), NULL };
	pid_t child;
	int status = -1;
	if (posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ) != 0)
		return -1;
	waitpid(child, &status, 0);
	return status;
}

/* Creates two unrelated pairs, a.pem/a.key and b.pem/b.key, in a new directory. */
static int make_files(void **state)
{
	char *directory = memory_text("/tmp/portcullis-tls-XXXXXX");
	if (!mkdtemp(directory) || chdir(directory) != 0)
		return -1;
	*state = directory;
	return shell("for n in a b; do openssl req -x509 -newkey ec -pkeyopt "
		     "ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=$n -keyout $n.key -out "
		     "$n.pem 2>/dev/null || exit 1; done; head -c 300 a.pem > broken.pem; cat "
		     "a.pem broken.pem > half.pem");
}

static int remove_files(void **state)
{
	char *command = memory_format("rm -rf '%s'", (char *)*state);
	int result = shell(command);
	memory_free(command);
	memory_free(*state);
	return result;
}

static void load_refuses(const char *cert, const char *key, const char *ca, const char *text)
{
	struct tls_server_config config = { .cert_file = (char *)cert,
					    .key_file = (char *)key,
					    .client_ca_file = (char *)ca };
	struct tls_material material;
	struct error err = { 0 };
	assert_false(tls_load_server(&config, &material, &err));
	assert_int_equal(err.kind, ERROR_CONFIG);
	assert_non_null(strstr(err.text, text));
	assert_null(material.key);
}

static void server_loads_pair_and_client_ca(void **state)
{
	(void)state;
	struct tls_server_config config = { .cert_file = T("a.pem"),
					    .key_file = T("a.key"),
					    .client_ca_file = T("b.pem") };
	struct tls_material one, two;
	struct error err = { 0 };
	assert_true(tls_load_server(&config, &one, &err));
	assert_true(tls_load_server(&config, &two, &err));
	assert_true(tls_equal(&one, &two));
	tls_release(&two);
	config.client_ca_file = T("a.pem");
	assert_true(tls_load_server(&config, &two, &err));
	assert_false(tls_equal(&one, &two));
	tls_release(&one);
	tls_release(&two);
}

static void server_refuses_what_does_not_fit(void **state)
{
	(void)state;
	load_refuses("a.pem", "b.key", NULL, "does not match");
	load_refuses("a.pem", "a.pem", NULL, "private key");
	load_refuses("broken.pem", "a.key", NULL, "chain");
	load_refuses("half.pem", "a.key", NULL, "chain");
	load_refuses("a.pem", "a.key", "a.key", "CA file");
	load_refuses("absent.pem", "a.key", NULL, "absent.pem");
	load_refuses("/dev/zero", "a.key", NULL, "/dev/zero");
}

static void client_without_files_uses_the_system(void **state)
{
	(void)state;
	struct tls_client_config config = { .include_system_ca_certs_pool = true };
	struct tls_material material;
	struct error err = { 0 };
	assert_true(tls_load_client(&config, &material, &err));
	assert_null(material.ca);
	assert_null(material.cert);
}

static void pem_texts_replace_files(void **state)
{
	(void)state;
	struct tls_client_config files = { .cert_file = T("a.pem"),
					   .key_file = T("a.key"),
					   .ca_file = T("b.pem") };
	struct tls_material from_files, from_texts;
	struct error err = { 0 };
	assert_true(tls_load_client(&files, &from_files, &err));
	struct tls_client_config texts = { .cert_pem = { from_files.cert },
					   .key_pem = { from_files.key },
					   .ca_pem = { from_files.ca } };
	assert_true(tls_load_client(&texts, &from_texts, &err));
	assert_true(tls_equal(&from_files, &from_texts));
	tls_release(&from_files);
	tls_release(&from_texts);
}

static bool check(const struct config_table *table, const void *config, struct error *err)
{
	struct problems problems = { 0 };
	struct faults faults = { .path = "", .problems = &problems };
	table->check(config, &faults);
	return problems_end(&problems, err);
}

static bool server_check(struct tls_server_config config, struct error *err)
{
	config.cert_file = T("a.pem");
	config.key_file = config.key_file ? config.key_file : T("a.key");
	return check(&tls_server_table, &config, err);
}

static void what_a_client_cannot_choose_is_an_error(void **state)
{
	(void)state;
	char *one[] = { T("P256") };
	struct strings list = { one, 1 };
	struct node enabled = { .kind = NODE_MAP };
	const struct {
		struct tls_client_config config;
		const char *error;
	} rows[] = {
		{ { .min_version = T("1.2"), .max_version = T("1.3") }, NULL },
		{ { .min_version = T("1.3") }, NULL },
		{ { .max_version = T("1.2") }, NULL },
		{ { .min_version = T("1.3"), .max_version = T("1.2") }, "min_version" },
		{ { .min_version = T("1.0") }, "min_version: TLS 1.0 is not supported" },
		{ { .max_version = T("1.1") }, "max_version: TLS 1.1 is not supported" },
		{ { .max_version = T("1.4") }, "max_version" },
		{ { .cipher_suites = list }, "cipher_suites" },
		{ { .curve_preferences = list }, "curve_preferences" },
		{ { .tpm = &enabled }, "tpm" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct error err = { 0 };
		assert_int_equal(check(&tls_client_table, &rows[i].config, &err), !rows[i].error);
		assert_true(!rows[i].error || strstr(err.text, rows[i].error));
	}
}

static void a_library_without_versions_takes_none_that_excludes_one(void **state)
{
	(void)state;
	static const struct {
		const char *min, *max, *error;
	} rows[] = {
		{ NULL, NULL, NULL },
		{ "", "", NULL },
		{ "1.2", "1.3", NULL },
		{ "1.3", NULL, "min_version: the library of this client" },
		{ NULL, "1.2", "max_version: the library of this client" },
		{ "1.1", NULL, "min_version: TLS 1.1 is not supported" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct tls_client_config config = { .min_version = T(rows[i].min),
						    .max_version = T(rows[i].max) };
		struct error err = { 0 };
		assert_int_equal(tls_client_check_any_version(&config, &err), !rows[i].error);
		assert_int_equal(check(&tls_client_optional_table, &config, &err), !rows[i].error);
		assert_true(!rows[i].error || strstr(err.text, rows[i].error));
	}
}

static void what_a_server_cannot_honour_is_an_error(void **state)
{
	(void)state;
	struct error err = { 0 };
	char *one[] = { T("X") };
	struct strings list = { one, 1 };
	struct node enabled = { .kind = NODE_MAP };
	assert_true(server_check((struct tls_server_config){ .min_version = T("1.3"),
							     .max_version = T("1.3") },
				 &err));
	assert_false(server_check((struct tls_server_config){ .min_version = T("1.1") }, &err));
	assert_non_null(strstr(err.text, "min_version"));
	assert_false(server_check((struct tls_server_config){ .cipher_suites = list }, &err));
	assert_false(server_check((struct tls_server_config){ .curve_preferences = list }, &err));
	assert_false(server_check((struct tls_server_config){ .tpm = &enabled }, &err));
	assert_non_null(strstr(err.text, "tpm"));
}

static void server_needs_certificate_and_key_once(void **state)
{
	(void)state;
	struct error err = { 0 };
	struct tls_server_config none = { 0 };
	assert_false(check(&tls_server_table, &none, &err));
	assert_string_equal(err.text, "TLS configuration must include both certificate and key for "
				      "server connections");
	struct tls_server_config twice = { .key_file = T("a.key"), .key_pem = { T("x") } };
	assert_false(server_check(twice, &err));
	assert_non_null(strstr(err.text, "not both"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(server_loads_pair_and_client_ca),
		cmocka_unit_test(server_refuses_what_does_not_fit),
		cmocka_unit_test(client_without_files_uses_the_system),
		cmocka_unit_test(pem_texts_replace_files),
		cmocka_unit_test(what_a_client_cannot_choose_is_an_error),
		cmocka_unit_test(a_library_without_versions_takes_none_that_excludes_one),
		cmocka_unit_test(what_a_server_cannot_honour_is_an_error),
		cmocka_unit_test(server_needs_certificate_and_key_once),
	};
	return cmocka_run_group_tests(tests, make_files, remove_files);
}
