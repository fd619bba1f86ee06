/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_DELIVERY_H
#define PIPELINE_DELIVERY_H

#include "pipeline/component.h"

/* The Collector's exporterhelper keys (collector-compat §3.4, §3.5), for embedding in an exporter's config. */
struct queue_config {
	struct optional present;
	int64_t num_consumers, queue_size;
	struct choice sizer; /* requests, items, bytes */
	bool wait_for_result, block_on_overflow;
	char *storage;
	const struct node *batch;
};

struct retry_config {
	struct optional present;
	struct duration initial_interval, max_interval, max_elapsed_time;
	double randomization_factor, multiplier;
};

struct delivery_config {
	struct queue_config sending_queue;
	struct retry_config retry_on_failure;
	struct duration timeout;
};

extern const struct config_table queue_table, retry_table;

/* The three rows of every exporter's table: DELIVERY_ROWS(struct file_config, delivery, "5s"). */
#define DELIVERY_ROWS(type, member, default_timeout) \
	CONFIG_SECTION(type, member.sending_queue, queue_table, .key = "sending_queue", .presence = PRESENCE_SOME, \
		       .help = "The exporter's own queue; what does not fit is dropped for this destination alone."), \
	CONFIG_SECTION(type, member.retry_on_failure, retry_table, .key = "retry_on_failure", \
		       .presence = PRESENCE_SOME, .help = "Retries with exponential backoff."), \
	CONFIG_ROW(type, member.timeout, .key = "timeout", .def = default_timeout, \
		   .help = "Of one attempt.")

struct delivery;

struct delivery_options {
	const struct component_factory *factory;
	void *exporter;      /* the instance */
	const struct delivery_config *config;
	const char *id;      /* exporter ID */
	struct log *log;
	struct metrics *metrics;
	struct loop *loop;
	uint64_t max_bytes;  /* its share of memory */
};

struct delivery *delivery_new(const struct delivery_options *options);

/* [any thread] Takes its own reference. Full: dropped for this destination alone and counted; false then. */
bool delivery_enqueue(struct delivery *delivery, struct packet *packet, const char *pipeline);
/* [any thread] Is there room at all; and does block_on_overflow demand refusal? */
bool delivery_has_room(const struct delivery *delivery);
bool delivery_must_block(const struct delivery *delivery);
/* [loop thread] No new retries are begun; drained is called on the loop thread when nothing is queued or in flight, or
 * at the deadline, after which what is left has been dropped and counted (reason shutdown). */
void delivery_drain(struct delivery *delivery, uint64_t deadline, void (*drained)(void *argument), void *argument);
void delivery_unref(struct delivery **delivery);

#endif
