/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_PIPELINE_DELIVERY_DELIVERY_FIXTURE_H
#define TESTS_PIPELINE_DELIVERY_DELIVERY_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "net/loop.h"
#include "tests/support/hand_over.h"

/* A delivery with an exporter that follows a script, with one result for each send. The loop runs
 * until the delivery has drained; every sample must then be in the ledger. */
struct fixture {
	struct loop *loop;
	struct metrics *metrics;
	struct log log;
	struct ledger *ledger;
	struct delivery_config config;
	uint64_t max_bytes;
	struct exporter_ops ops;
	struct delivery *delivery;
	struct send_result script[16];
	_Atomic int sends;
	struct sending *_Atomic held; /* the send for which the exporter reports no result */
	bool hold;
};

static inline void send_by_script(void *self, const struct part *part, uint64_t timeout_ns,
				  struct sending *sending)
{
	struct fixture *f = *(struct fixture **)self;
	(void)part;
	(void)timeout_ns;
	int n = f->sends++;
	if (f->hold)
		f->held = sending;
	else
		sending_done(sending, &f->script[n < 15 ? n : 15]);
}

static inline bool plan_three(void *self, const struct part *whole, const struct limits *limits,
			      struct parts *parts, struct error *err)
{
	(void)self;
	(void)limits;
	(void)err;
	for (uint32_t i = 0; i < 3; i++)
		parts_add(parts, packet_ref(whole->packet), whole->samples / 3, 0);
	return true;
}

static inline int setup(void **state)
{
	struct fixture *f = memory_new(sizeof *f);
	f->loop = loop_new(NULL);
	f->metrics = metrics_new();
	f->ledger = ledger_new(f->metrics);
	f->config = (struct delivery_config){
		.required = true,
		.sending_queue = { .present = { true }, .num_consumers = 2, .queue_size = 3 },
		.retry_on_failure = { .present = { true },
				      .initial_interval = { 1000000 },
				      .max_interval = { 2000000 },
				      .multiplier = 1.5 },
		.timeout = { 1000000000 },
	};
	f->ops = (struct exporter_ops){ .send = send_by_script };
	*state = f;
	return 0;
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;
	loop_unref(&f->loop);
	assert_int_equal(ledger_check(f->ledger, false), 0);
	ledger_unref(&f->ledger);
	metrics_unref(&f->metrics);
	memory_free(f);
	return 0;
}

static inline void begin(struct fixture *f)
{
	static struct fixture *self;
	self = f;
	f->delivery = delivery_new(&(struct delivery_options){
		.ops = &f->ops,
		.exporter = &self,
		.config = &f->config,
		.id = "fake",
		.log = &f->log,
		.metrics = f->metrics,
		.ledger = f->ledger,
		.loop = f->loop,
		.max_bytes = f->max_bytes,
	});
}

static inline bool enqueue(struct fixture *f, uint64_t samples)
{
	struct packet *packet = packet_new(10, 0);
	packet->samples = samples;
	bool taken = hand_over(f->ledger, f->delivery, packet, ENTRY_IF_FITS);
	packet_unref(&packet);
	return taken;
}

static inline void drained(void *argument)
{
	struct fixture *f = argument;
	delivery_unref(&f->delivery);
	loop_stop(f->loop);
}

static inline void drain(void *argument)
{
	struct fixture *f = argument;
	delivery_drain(f->delivery, drained, f);
}

/* Drains after `sends` attempts were made and the metric, if there is one, is no longer zero. */
struct wait {
	struct fixture *f;
	int sends;
	const char *metric;
	struct loop_timer *timer;
};

static inline int64_t read_metric(struct fixture *f, const char *line);

static inline void look(void *argument)
{
	struct wait *wait = argument;
	if (wait->f->sends >= wait->sends && (!wait->metric || read_metric(wait->f, wait->metric)))
		drain(wait->f);
	else
		loop_timer_start(wait->timer, 100000);
}

static inline void run_until(struct fixture *f, int sends, const char *metric)
{
	struct wait wait = { f, sends, metric, NULL };
	wait.timer = loop_timer_new(f->loop, look, &wait);
	loop_timer_start(wait.timer, 100000);
	loop_run(f->loop);
	loop_timer_unref(&wait.timer);
}

static inline void run_until_sends(struct fixture *f, int sends)
{
	run_until(f, sends, NULL);
}

static inline int64_t read_metric(struct fixture *f, const char *line)
{
	struct bytes text;
	int64_t value = 0;
	bytes_init(&text, 1 << 20);
	metrics_write(f->metrics, &text);
	bytes_add_byte(&text, 0);
	const char *at = strstr((char *)text.at, line);
	if (at)
		value = strtoll(at + strlen(line), NULL, 10);
	bytes_fini(&text);
	return value;
}

#define OUT "otelcol_ledger_out_samples{exporter=\"fake\",pipeline=\"profiles\"} "
#define HELD "otelcol_exporter_queue_memory_bytes{data_type=\"profiles\",exporter=\"fake\"} "
#define QUEUED "otelcol_ledger_queued_samples{exporter=\"fake\",pipeline=\"profiles\"} "
#define DROPPED(reason) \
	"otelcol_ledger_dropped_samples{exporter=\"fake\",pipeline=\"profiles\",reason=\"" reason \
	"\"} "

static char log_path[] = "/tmp/portcullis-log-XXXXXX";

static inline void log_to_file(void)
{
	static const char *const paths[] = { log_path, NULL };
	snprintf(log_path, sizeof log_path, "/tmp/portcullis-log-XXXXXX");
	close(mkstemp(log_path));
	assert_true(log_configure(&(struct log_config){ .level = LOG_INFO, .output_paths = paths },
				  NULL));
}

/* The number of lines with this text since log_to_file. */
static inline int logged(const char *text)
{
	char line[1024];
	int count = 0;
	log_close();
	FILE *file = fopen(log_path, "re");
	while (fgets(line, sizeof line, file))
		count += strstr(line, text) != NULL;
	fclose(file);
	unlink(log_path);
	return count;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
