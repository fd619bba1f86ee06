/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_PIPELINE_DELIVERY_DURABLE_FIXTURE_H
#define TESTS_PIPELINE_DELIVERY_DURABLE_FIXTURE_H

#include "pipeline/delivery/delivery_private.h"
#include "pipeline/storage/storage.h"
#include "tests/pipeline/delivery/delivery_fixture.h"
#include "tests/support/shell.h"

/* A delivery with a queue on disk. Nothing is sent before the loop runs. A restart is another
 * delivery, with another storage of the same directory. */
static char directory[64];
static struct storages *all;
static struct storage *storage;

static inline void open_storage(struct fixture *f, enum storage_on_error on_error,
				uint64_t max_bytes)
{
	struct error err;
	error_clear(&err);
	all = storages_new(f->metrics);
	storage = storages_get(all, &(struct storage_options){ .id = "file_storage",
							       .directory = directory,
							       .directory_mode = 0700,
							       .on_error = on_error,
							       .max_bytes = max_bytes });
	if (!storage_open(storage, &err))
		fail_msg("%s", err.text);
}

static inline void start(struct fixture *f)
{
	static struct fixture *self;
	struct error err;
	self = f;
	error_clear(&err);
	f->config.required = true;
	f->sends = 0;
	f->delivery = delivery_new(&(struct delivery_options){
		.ops = &f->ops,
		.exporter = &self,
		.config = &f->config,
		.id = "fake",
		.log = &f->log,
		.metrics = f->metrics,
		.ledger = f->ledger,
		.loop = f->loop,
		.max_bytes = (int64_t)f->max_bytes,
		.storage = storage,
	});
	assert_true(delivery_start(f->delivery, &err));
}

static inline int setup_durable(void **state)
{
	snprintf(directory, sizeof directory, "/tmp/portcullis-durable-XXXXXX");
	assert_non_null(mkdtemp(directory));
	setup(state);
	struct fixture *f = *state;
	f->config.sending_queue.queue_size = 1000;
	f->config.required = true;
	open_storage(f, STORAGE_REFUSE, 64 << 20);
	return 0;
}

static inline void close_storage(void)
{
	storage_unref(&storage);
	storages_unref(&all);
}

/* A test that has failed may still use all of it. */
static inline int teardown_durable(void **state)
{
	if (((struct fixture *)*state)->delivery)
		return 0;
	close_storage();
	teardown(state);
	return shell("rm -rf %s", directory);
}

static inline void restart_with(struct fixture *f, int64_t tenants)
{
	ledger_unref(&f->ledger);
	metrics_unref(&f->metrics);
	f->metrics = metrics_new();
	f->ledger = ledger_new(f->metrics);
	ledger_limit_tenants(f->ledger, tenants);
	open_storage(f, STORAGE_REFUSE, 64 << 20);
	start(f);
}

static inline void restart(struct fixture *f)
{
	close_storage();
	restart_with(f, 0);
}

#define RESTORED "otelcol_ledger_restored_samples{exporter=\"fake\",pipeline=\"profiles\"} "
#define DEAD_LETTERS "otelcol_ledger_dead_letter_samples{exporter=\"fake\",pipeline=\"profiles\"} "
#define UNSTORED "otelcol_exporter_queue_unstored_requests{exporter=\"fake\"} "
#define USED "otelcol_storage_used_bytes{storage=\"file_storage\"} "

static inline void fail_all(struct fixture *f)
{
	for (int i = 0; i < 16; i++)
		f->script[i] = (struct send_result){ .outcome = SEND_RETRY,
						     .retry_after_ms = -1,
						     .reason = "unavailable" };
}

static inline void succeed(struct fixture *f)
{
	memset(f->script, 0, sizeof f->script);
}

#define DURABLE(name) cmocka_unit_test_setup_teardown(name, setup_durable, teardown_durable)

#endif
