/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "config/load.h"
#include "tests/support/grpc_peer.h"
#include "tests/support/hand_over.h"
#include "tests/support/shell.h"

#define SAID "a-text-of-the-peer"

extern const struct component_factory otlp_grpc_exporter;

/* The exporter with a real delivery, created from YAML. It sends to a peer that follows a
 * script. */
struct fixture {
	struct loop *loop;
	struct host host;
	struct ledger *ledger;
	struct node *tree;
	void *config, *self;
	struct delivery *delivery;
	struct loop_timer *timer;
};

static struct grpc_peer peer;
static char *certificates;
static char log_path[] = "/tmp/portcullis-log-XXXXXX";

static int start_peer(void **state)
{
	(void)state;
	struct error err;
	close(mkstemp(log_path));
	const char *const paths[] = { log_path, NULL };
	const struct log_config config = { .level = LOG_DEBUG, .output_paths = paths };
	certificates = certificates_make();
	grpc_peer_run(&peer);
	return log_configure(&config, &err) ? 0 : -1;
}

static int stop_peer(void **state)
{
	(void)state;
	grpc_peer_kill(&peer);
	certificates_remove(&certificates);
	log_close();
	return remove(log_path);
}

static bool configure(struct fixture *f, const char *yaml, struct error *err)
{
	*f = (struct fixture){ .loop = loop_new(NULL), .host = { .id = "otlp_grpc/a" } };
	f->host.loop = f->loop;
	f->host.metrics = metrics_new();
	f->ledger = ledger_new(f->host.metrics);
	f->config = memory_new(otlp_grpc_exporter.config->size);
	f->self = memory_new(otlp_grpc_exporter.size);
	f->tree = config_parse("test", yaml, strlen(yaml), err);
	assert_non_null(f->tree);
	return config_bind(otlp_grpc_exporter.config, f->tree, "exporters::otlp_grpc", f->config,
			   err);
}

static void begin(struct fixture *f, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void begin(struct fixture *f, const char *format, ...)
{
	char yaml[600];
	struct error err = { 0 };
	va_list args;
	va_start(args, format);
	vsnprintf(yaml, sizeof yaml, format, args);
	va_end(args);
	if (!configure(f, yaml, &err) ||
	    !otlp_grpc_exporter.create(f->self, f->config, &f->host, &err))
		fail_msg("%s", err.text);
	f->delivery = delivery_new(&(struct delivery_options){
		.ops = otlp_grpc_exporter.exporter,
		.exporter = f->self,
		.id = f->host.id,
		.log = &f->host.log,
		.config =
			(void *)((char *)f->config + otlp_grpc_exporter.exporter->delivery_offset),
		.metrics = f->host.metrics,
		.ledger = f->ledger,
		.loop = f->loop,
	});
	if (!otlp_grpc_exporter.exporter->start(f->self, &err))
		fail_msg("%s", err.text);
}

static void release(struct fixture *f)
{
	config_release(otlp_grpc_exporter.config, f->config);
	node_unref(&f->tree);
	ledger_unref(&f->ledger);
	metrics_unref(&f->host.metrics);
	loop_unref(&f->loop);
	memory_free(f->config);
	memory_free(f->self);
}

static void drained(void *argument)
{
	struct fixture *f = argument;
	delivery_unref(&f->delivery);
	loop_stop(f->loop);
}

static void end(struct fixture *f)
{
	otlp_grpc_exporter.exporter->stop(f->self);
	delivery_drain(f->delivery, drained, f);
	loop_run(f->loop);
	otlp_grpc_exporter.destroy(f->self);
	release(f);
}

static int64_t metric(struct fixture *f, const char *name, const char *label)
{
	struct bytes text;
	int64_t value = 0;
	bytes_init(&text, 1 << 20);
	metrics_write(f->host.metrics, &text);
	bytes_add_byte(&text, 0);
	char *rest = (char *)text.at;
	for (char *line; (line = strsep(&rest, "\n"));)
		if (!strncmp(line, name, strlen(name)) && strstr(line, label))
			value += strtoll(strrchr(line, ' '), NULL, 10);
	bytes_fini(&text);
	return value;
}

static int64_t dropped(struct fixture *f, const char *reason)
{
	char label[40];
	snprintf(label, sizeof label, "reason=\"%s\"", reason);
	return metric(f, "otelcol_ledger_dropped_samples", label);
}

static void stop_when_idle(void *argument)
{
	struct fixture *f = argument;
	if (metric(f, "otelcol_exporter_queue_size", "") == 0)
		loop_stop(f->loop);
	else
		loop_timer_start(f->timer, 1000000);
}

/* Sends a packet of 5 samples in 3 profiles and waits until it is no longer queued. */
static void deliver(struct fixture *f, const char *body)
{
	struct packet *packet = packet_new(strlen(body), 0);
	bytes_add_text(&packet->otlp, body);
	packet->samples = 5;
	packet->profiles = 3;
	assert_true(hand_over(f->ledger, f->delivery, packet, ENTRY_IF_FITS));
	packet_unref(&packet);
	f->timer = loop_timer_new(f->loop, stop_when_idle, f);
	loop_timer_start(f->timer, 1000000);
	loop_run(f->loop);
	loop_timer_unref(&f->timer);
}

static bool log_has(const char *text)
{
	static char all[1 << 20];
	FILE *file = fopen(log_path, "r");
	all[fread(all, 1, sizeof all - 1, file)] = '\0';
	fclose(file);
	return strstr(all, text) != NULL;
}

#define BASE "endpoint: %s\ntls: {insecure: true}\nretry_on_failure: {enabled: false}\n"

static void what_the_server_takes_is_sent(void **state)
{
	(void)state;
	struct fixture f;
	char address[64];
	begin(&f, BASE "headers: {x-script: large 0}\n", peer.endpoint);
	deliver(&f, "body");
	assert_int_equal(metric(&f, "otelcol_ledger_out_samples", ""), 5);
	snprintf(address, sizeof address, "server_address=\"127.0.0.1\",server_port=\"%d\"",
		 peer.port);
	assert_int_equal(metric(&f, "otelcol_exporter_sent_profile_samples", address), 5);
	end(&f);
}

static void each_status_is_classified(void **state)
{
	(void)state;
	static const struct {
		const char *script, *reason;
	} rows[] = {
		{ "status 1 " SAID, "no_retry" },
		{ "status 2 " SAID, "permanent" },
		{ "status 3 " SAID, "permanent" },
		{ "status 4 " SAID, "no_retry" },
		{ "status 5 " SAID, "permanent" },
		{ "status 6 " SAID, "permanent" },
		{ "status 7 " SAID, "permanent" },
		{ "status 8 " SAID, "permanent" },
		{ "status 9 " SAID, "permanent" },
		{ "status 10 " SAID, "no_retry" },
		{ "status 11 " SAID, "no_retry" },
		{ "status 12 " SAID, "permanent" },
		{ "status 13 " SAID, "permanent" },
		{ "status 14 " SAID, "no_retry" },
		{ "status 15 " SAID, "no_retry" },
		{ "status 16 " SAID, "permanent" },
		{ "status 8 retry 1500 " SAID, "no_retry" },
		{ "status 8 retry 0 " SAID, "no_retry" },
		{ "status 3 retry 10 " SAID, "permanent" },
		{ "status 8 grpc: received message larger than max (5 vs. 4)", "too_large" },
		{ "status 8 gRPC message exceeds maximum size 4: 5", "too_large" },
		{ "status 11 Error, decoded message length too large: found 5 bytes, the limit "
		  "is: 4 bytes",
		  "too_large" },
		{ "status 8 retry 10 larger than max", "no_retry" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct fixture f;
		begin(&f, BASE "headers: {x-script: '%s'}\n", peer.endpoint, rows[i].script);
		deliver(&f, "body");
		if (dropped(&f, rows[i].reason) != 5)
			fail_msg("%s is not %s", rows[i].script, rows[i].reason);
		end(&f);
	}
	assert_false(log_has(SAID));
	assert_true(log_has("out_of_range"));
}

static void what_a_proxy_refuses_is_not_tried_again(void **state)
{
	(void)state;
	struct grpc_peer proxy;
	struct fixture f;
	grpc_peer_run(&proxy, "--http-status", "401");
	begin(&f, BASE, proxy.endpoint);
	deliver(&f, "body");
	assert_int_equal(dropped(&f, "permanent"), 5);
	end(&f);
	grpc_peer_kill(&proxy);
}

static void a_dead_server_is_tried_again(void **state)
{
	(void)state;
	struct grpc_peer mortal;
	struct fixture f;
	grpc_peer_run(&mortal);
	char endpoint[64];
	snprintf(endpoint, sizeof endpoint, "%s", mortal.endpoint);
	grpc_peer_kill(&mortal);
	begin(&f,
	      "endpoint: %s\ntls: {insecure: true}\nretry_on_failure: "
	      "{initial_interval: 10ms, max_interval: 20ms, max_elapsed_time: "
	      "100ms}\n",
	      endpoint);
	deliver(&f, "body");
	assert_true(metric(&f, "otelcol_exporter_retries", "") > 0);
	assert_int_equal(dropped(&f, "retries_exhausted"), 5);
	end(&f);
}

static void a_hanging_server_runs_into_the_timeout(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, BASE "headers: {x-script: hang}\ntimeout: 100ms\n", peer.endpoint);
	deliver(&f, "body");
	assert_int_equal(dropped(&f, "no_retry"), 5);
	assert_true(log_has("deadline_exceeded"));
	end(&f);
}

/* Here the body is the script: the peer can follow it only if the bytes on the wire inflate to
 * it. */
static void partial_success_is_counted_and_its_text_withheld(void **state)
{
	(void)state;
	static const char *const compressions[] = { "", "compression: none\n",
						    "compression: gzip\n" };
	for (size_t i = 0; i < sizeof compressions / sizeof *compressions; i++) {
		struct fixture f;
		begin(&f, BASE "%s", peer.endpoint, compressions[i]);
		deliver(&f, "partial 2 " SAID);
		assert_int_equal(metric(&f, "otelcol_exporter_rejected_profiles", ""), 2);
		assert_int_equal(metric(&f, "otelcol_ledger_out_samples", ""), 5);
		deliver(&f, "partial 1000000 " SAID);
		assert_int_equal(metric(&f, "otelcol_exporter_rejected_profiles", ""), 5);
		end(&f);
	}
	assert_true(log_has("Partial success response"));
	assert_false(log_has(SAID));
}

static void bodies_are_gzip_unless_told_otherwise(void **state)
{
	(void)state;
	struct grpc_peer raw;
	struct fixture f;
	grpc_peer_run(&raw, "--raw");
	begin(&f, BASE, raw.endpoint);
	deliver(&f, "require-gzip 1");
	assert_int_equal(metric(&f, "otelcol_exporter_sent_profile_samples", ""), 5);
	end(&f);
	begin(&f, BASE "compression: none\n", raw.endpoint);
	deliver(&f, "require-gzip 0");
	assert_int_equal(metric(&f, "otelcol_exporter_sent_profile_samples", ""), 5);
	end(&f);
	grpc_peer_kill(&raw);
}

static void an_answer_that_cannot_be_read_is_still_ok(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, BASE "headers: {x-script: echo}\n", peer.endpoint);
	deliver(&f, "body");
	assert_int_equal(metric(&f, "otelcol_exporter_sent_profile_samples", ""), 5);
	end(&f);
}

static void stop_exporter(void *argument)
{
	struct fixture *f = argument;
	otlp_grpc_exporter.exporter->stop(f->self);
}

static void stop_when_in_flight(void *argument)
{
	struct fixture *f = argument;
	if (metric(f, "otelcol_exporter_in_flight_requests", ""))
		loop_work(f->loop, stop_exporter, NULL, f);
	else
		loop_timer_start(f->timer, 1000000);
}

static void stop_cancels_what_is_in_flight_and_refuses_what_comes_late(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, BASE "headers: {x-script: hang}\ntimeout: 1h\n", peer.endpoint);
	struct loop_timer *look = f.timer = loop_timer_new(f.loop, stop_when_in_flight, &f);
	loop_timer_start(look, 1000000);
	deliver(&f, "body");
	assert_int_equal(dropped(&f, "no_retry"), 5);
	deliver(&f, "body");
	assert_int_equal(dropped(&f, "no_retry"), 10);
	loop_timer_unref(&look);
	end(&f);
}

static void reopening_takes_the_new_ca(void **state)
{
	(void)state;
	struct grpc_peer secure;
	struct fixture f;
	struct error err = { 0 };
	char *cert = memory_format("%s/server.pem", certificates),
	     *key = memory_format("%s/server.key", certificates);
	grpc_peer_run(&secure, "--tls", cert, key);
	assert_int_equal(shell("cd %s && cp other-ca.pem current.pem", certificates), 0);
	begin(&f,
	      "endpoint: %s\ntls: {ca_file: "
	      "%s/current.pem}\nretry_on_failure: {enabled: "
	      "false}\n"
	      "headers: {x-script: large 0}\n",
	      secure.endpoint, certificates);
	deliver(&f, "body");
	assert_int_equal(dropped(&f, "no_retry"), 5);
	assert_int_equal(shell("cd %s && cp ca.pem current.pem", certificates), 0);
	assert_true(otlp_grpc_exporter.reopen(f.self, &err));
	deliver(&f, "body");
	assert_int_equal(metric(&f, "otelcol_exporter_sent_profile_samples", ""), 5);
	end(&f);
	grpc_peer_kill(&secure);
	memory_free(cert);
	memory_free(key);
}

static void certificates_are_read_again_at_the_interval(void **state)
{
	(void)state;
	struct fixture f;
	assert_int_equal(shell("cd %s && cp ca.pem timed.pem", certificates), 0);
	begin(&f,
	      "endpoint: %s\ntls: {ca_file: %s/timed.pem, reload_interval: "
	      "1ms}\nretry_on_failure: {enabled: false}\n",
	      peer.endpoint, certificates);
	assert_false(log_has("Failed to reload certificates; keeping the current ones"));
	assert_int_equal(shell(": > %s/timed.pem", certificates), 0);
	for (int i = 0;
	     i < 1000 && !log_has("Failed to reload certificates; keeping the current ones"); i++)
		deliver(&f, "body");
	assert_true(log_has("Failed to reload certificates; keeping the current ones"));
	end(&f);
}

static void bad_configurations_are_refused(void **state)
{
	(void)state;
	static const struct {
		const char *yaml, *error;
	} rows[] = {
		{ "{}", "endpoint: must not be empty" },
		{ "endpoint: localhost:x",
		  "endpoint: must be host:port; the port must be a number from 1 to 65535" },
		{ "{endpoint: 'a:1', compression: lz4}",
		  "compression: unsupported type; use gzip, zstd, snappy or none" },
		{ "{endpoint: 'a:1', compression: deflate}", "compression: unsupported type" },
		{ "{endpoint: 'a:1', compression: x-snappy-framed}",
		  "compression: unsupported type" },
		{ "{endpoint: 'a:1', balancer_name: x}", "invalid balancer_name: neither" },
		{ "{endpoint: 'a:1', auth: {authenticator: ''}}",
		  "authenticator must be the ID of an extension" },
		{ "{endpoint: 'a:1', middlewares: [{id: x}]}", "no middleware" },
		{ "{endpoint: 'a:1', headers: {grpc-encoding: x}}",
		  "headers::grpc-encoding: cannot be sent" },
		{ "{endpoint: 'a:1', tls: {min_version: '1.3'}}",
		  "min_version: the library of this client always offers" },
		{ "{endpoint: 'a:1', endpoints: x}", "has invalid keys: endpoints" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct fixture f;
		struct error err = { 0 };
		assert_false(configure(&f, rows[i].yaml, &err));
		if (!strstr(err.text, rows[i].error))
			fail_msg("%s: %s", rows[i].yaml, err.text);
		release(&f);
	}
}

static void all_keys_of_the_collector_are_taken(void **state)
{
	(void)state;
	struct fixture f;
	struct error err = { 0 };
	const char *yaml =
		"endpoint: https://store.test:4317\ncompression: ''\ntimeout: "
		"3s\nread_buffer_size: 1\nwrite_buffer_size: 2\n"
		"keepalive: {time: 20s, timeout: 5s, permit_without_stream: "
		"true}\nwait_for_ready: true\n"
		"headers: {X-Scope-OrgID: a}\nuser_agent: me\nbalancer_name: "
		"pick_first\nauthority: a.test\nauth:\n"
		"middlewares: []\nsending_queue: {num_consumers: 2}\nretry_on_failure: {enabled: "
		"false}\n"
		"tls: {insecure_skip_verify: true, server_name_override: b.test}\n";
	if (!configure(&f, yaml, &err))
		fail_msg("%s", err.text);
	release(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_server_takes_is_sent),
		cmocka_unit_test(each_status_is_classified),
		cmocka_unit_test(what_a_proxy_refuses_is_not_tried_again),
		cmocka_unit_test(a_dead_server_is_tried_again),
		cmocka_unit_test(a_hanging_server_runs_into_the_timeout),
		cmocka_unit_test(partial_success_is_counted_and_its_text_withheld),
		cmocka_unit_test(bodies_are_gzip_unless_told_otherwise),
		cmocka_unit_test(an_answer_that_cannot_be_read_is_still_ok),
		cmocka_unit_test(stop_cancels_what_is_in_flight_and_refuses_what_comes_late),
		cmocka_unit_test(reopening_takes_the_new_ca),
		cmocka_unit_test(certificates_are_read_again_at_the_interval),
		cmocka_unit_test(bad_configurations_are_refused),
		cmocka_unit_test(all_keys_of_the_collector_are_taken),
	};
	return cmocka_run_group_tests(tests, start_peer, stop_peer);
}
