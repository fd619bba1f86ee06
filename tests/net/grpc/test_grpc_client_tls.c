/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/memory.h"
#include "tests/support/grpc_call.h"
#include "tests/support/grpc_peer.h"
#include "tests/support/shell.h"

static char *certificates;

static int make_certificates(void **state)
{
	(void)state;
	certificates = certificates_make();
	return 0;
}

static int remove_certificates(void **state)
{
	(void)state;
	certificates_remove(&certificates);
	return 0;
}

static char *in_directory(const char *file)
{
	return memory_format("%s/%s", certificates, file);
}

struct secure {
	struct grpc_peer peer;
	char *ca, *other_ca, *cert, *key, *client_cert, *client_key;
};

static void secure_begin(struct secure *s, bool mutual)
{
	*s = (struct secure){ .ca = in_directory("ca.pem"),
			      .other_ca = in_directory("other-ca.pem"),
			      .cert = in_directory("server.pem"),
			      .key = in_directory("server.key"),
			      .client_cert = in_directory("client.pem"),
			      .client_key = in_directory("client.key") };
	if (mutual)
		grpc_peer_run(&s->peer, "--tls", s->cert, s->key, "--client-ca", s->ca);
	else
		grpc_peer_run(&s->peer, "--tls", s->cert, s->key);
}

static void secure_end(struct secure *s)
{
	grpc_peer_kill(&s->peer);
	char *paths[] = { s->ca, s->other_ca, s->cert, s->key, s->client_cert, s->client_key };
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
		memory_free(paths[i]);
}

static int status_over_tls(const struct secure *s, const struct tls_client_config *tls,
			   struct answer *a)
{
	struct grpc_client *client = client_with(
		(struct grpc_client_options){ .endpoint = s->peer.endpoint, .tls = tls });
	ask(client, "echo", a);
	grpc_client_unref(&client);
	return a->status;
}

static void tls_believes_the_configured_ca_only(void **state)
{
	(void)state;
	struct secure s;
	struct answer a;
	secure_begin(&s, false);
	assert_int_equal(status_over_tls(&s, &(struct tls_client_config){ .ca_file = s.ca }, &a),
			 0);
	assert_int_equal(status_over_tls(&s,
					 &(struct tls_client_config){ .ca_file = s.ca,
								      .insecure = true },
					 &a),
			 0);
	assert_int_equal(status_over_tls(&s, &(struct tls_client_config){ .ca_file = s.other_ca },
					 &a),
			 14);
	assert_int_equal(status_over_tls(&s, &(struct tls_client_config){ 0 }, &a), 14);
	assert_int_equal(status_over_tls(&s, &(struct tls_client_config){ .insecure = true }, &a),
			 14);
	secure_end(&s);
}

static void tls_checks_the_name(void **state)
{
	(void)state;
	struct secure s;
	struct answer a;
	secure_begin(&s, false);
	struct tls_client_config tls = { .ca_file = s.ca,
					 .server_name_override = (char *)"elsewhere.test" };
	assert_int_equal(status_over_tls(&s, &tls, &a), 14);
	tls.server_name_override = (char *)"localhost";
	assert_int_equal(status_over_tls(&s, &tls, &a), 0);
	secure_end(&s);
}

static void insecure_skip_verify_takes_any_certificate(void **state)
{
	(void)state;
	struct secure s;
	struct answer a;
	secure_begin(&s, false);
	struct tls_client_config tls = { .insecure_skip_verify = true,
					 .server_name_override = (char *)"elsewhere.test" };
	assert_int_equal(status_over_tls(&s, &tls, &a), 0);
	secure_end(&s);
}

static void https_forces_tls(void **state)
{
	(void)state;
	struct secure s;
	struct answer a;
	char endpoint[80];
	secure_begin(&s, false);
	snprintf(endpoint, sizeof endpoint, "https://%s", s.peer.endpoint);
	struct tls_client_config tls = { .insecure = true, .insecure_skip_verify = true };
	struct grpc_client *client =
		client_with((struct grpc_client_options){ .endpoint = endpoint, .tls = &tls });
	ask(client, "echo", &a);
	assert_int_equal(a.status, 0);
	grpc_client_unref(&client);
	secure_end(&s);
}

static void mutual_tls_shows_the_clients_certificate(void **state)
{
	(void)state;
	struct secure s;
	struct answer a;
	secure_begin(&s, true);
	struct tls_client_config tls = { .ca_file = s.ca };
	assert_int_equal(status_over_tls(&s, &tls, &a), 14);
	tls.cert_file = s.client_cert;
	tls.key_file = s.client_key;
	assert_int_equal(status_over_tls(&s, &tls, &a), 0);
	assert_true(answer_has(&a, "x509_common_name=sensor"));
	tls.insecure_skip_verify = true;
	tls.ca_file = NULL;
	assert_int_equal(status_over_tls(&s, &tls, &a), 0);
	assert_true(answer_has(&a, "x509_common_name=sensor"));
	secure_end(&s);
}

static void copy_file(const char *from, const char *to)
{
	assert_int_equal(shell("cp '%s' '%s'", from, to), 0);
}

static void reopening_takes_a_new_ca_and_keeps_the_old_one_when_the_new_is_broken(void **state)
{
	(void)state;
	struct secure s;
	struct answer a, slow;
	struct error err = { 0 };
	bool changed;
	secure_begin(&s, false);
	char *file = in_directory("current-ca.pem");
	struct tls_client_config tls = { .ca_file = file };
	copy_file(s.ca, file);
	struct grpc_client *client = client_with(
		(struct grpc_client_options){ .endpoint = s.peer.endpoint, .tls = &tls });
	ask(client, "echo", &a);
	assert_int_equal(a.status, 0);
	answer_begin(&slow, client, view_of("hang"), CODING_IDENTITY, 2 * SECOND);

	copy_file("/dev/null", file);
	assert_false(grpc_client_reopen(client, &changed, &err));
	ask(client, "echo", &a);
	assert_int_equal(a.status, 0);

	copy_file(s.ca, file);
	assert_true(grpc_client_reopen(client, &changed, &err));
	assert_false(changed);
	copy_file(s.other_ca, file);
	assert_true(grpc_client_reopen(client, &changed, &err));
	assert_true(changed);
	ask(client, "echo", &a);
	assert_int_equal(a.status, 14);

	answer_wait(&slow);
	assert_int_equal(slow.status, 4); /* not interrupted by the reopening */
	grpc_client_unref(&client);
	memory_free(file);
	secure_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tls_believes_the_configured_ca_only),
		cmocka_unit_test(tls_checks_the_name),
		cmocka_unit_test(insecure_skip_verify_takes_any_certificate),
		cmocka_unit_test(https_forces_tls),
		cmocka_unit_test(mutual_tls_shows_the_clients_certificate),
		cmocka_unit_test(
			reopening_takes_a_new_ca_and_keeps_the_old_one_when_the_new_is_broken),
	};
	return cmocka_run_group_tests(tests, make_certificates, remove_certificates);
}
