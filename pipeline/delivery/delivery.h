/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_DELIVERY_DELIVERY_H
#define PIPELINE_DELIVERY_DELIVERY_H

#include "pipeline/component.h"
#include "pipeline/delivery/book.h"
#include "pipeline/delivery/plan.h"
#include "pipeline/retry.h"
#include "pipeline/sample_types.h"

/*
 * Between the pipelines and one exporter: a bounded queue, retries, and an account of every sample.
 * Exporters only plan and send (pipeline/component.h). A dead destination fills its own queue and
 * affects no other.
 *
 * At most num_consumers packets are being delivered at once; one that waits for its retry keeps its
 * place, as in the Collector. A packet that finds a consumer idle is sent at once: by the thread
 * that brought it when the exporter's send is prompt, else by a pool thread. The thread that
 * learns of a success sends the next packet; failures and waiting belong to the loop thread.
 */

/* The keys of the Collector's exporterhelper, for embedding in an exporter's config. */
struct queue_partition_config {
	struct strings metadata_keys;
};

struct queue_batch_config {
	struct optional present;
	struct duration flush_timeout;
	int64_t min_size, max_size;
	struct choice sizer; /* enum batch_sizer */
	struct queue_partition_config partition;
};

struct queue_config {
	struct optional present;
	int64_t num_consumers, queue_size;
	struct choice sizer; /* enum queue_sizer */
	struct choice order; /* enum queue_order */
	struct duration max_age;
	bool wait_for_result, block_on_overflow;
	char *storage;
	struct queue_batch_config batch;
};

enum queue_order { ORDER_OLDEST, ORDER_NEWEST };
enum queue_sizer { SIZER_REQUESTS, SIZER_ITEMS, SIZER_BYTES };
enum batch_sizer { BATCH_SIZER_OF_QUEUE, BATCH_SIZER_ITEMS, BATCH_SIZER_BYTES };

/* How requests are batched for the exporter; `on` is false if its pipelines do that. */
struct batch_settings queue_batching(const struct queue_config *config);

/* A bounded directory for what is dropped (pipeline/delivery/dead_letters.h). */
struct dead_letter_config {
	struct optional present;
	char *directory;
	int64_t max_size_mib, max_letters;
};

struct delivery_config {
	bool required; /* false: best effort, it neither delays nor refuses senders */
	struct queue_config sending_queue;
	struct retry_config retry_on_failure;
	struct limits_config limits;
	struct dead_letter_config dead_letter;
	/* of the route that leads to it (pipeline/intake/pipeline.h) */
	struct sample_types_config sample_types;
	struct duration timeout;
};

extern const struct config_table queue_table, dead_letter_table;

extern const struct metric *const delivery_metrics[]; /* for the manual; NULL-terminated */

/* Rules that concern several of these. */
void delivery_config_check(const struct delivery_config *config, struct faults *faults);
/* Does its queue survive a restart? Receivers with `ack: durable` need that. */
bool delivery_config_is_durable(const struct delivery_config *config);

/* The rows of every exporter's table: DELIVERY_ROWS(struct parca_config, delivery, "5s").
 * _UNTIMED is for exporters whose attempts cannot be cancelled. */
#define DELIVERY_ROWS(type, member, default_timeout) \
	DELIVERY_ROWS_BUT_TIMEOUT(type, member), \
		CONFIG_ROW(type, member.timeout, .key = "timeout", .def = default_timeout, \
			   .help = "Timeout of one attempt.")
#define DELIVERY_ROWS_UNTIMED(type, member) \
	DELIVERY_ROWS_BUT_TIMEOUT(type, member), \
		CONFIG_ROW(type, member.timeout, .key = "timeout", .def = "5s", .inert = true, \
			   .help = "A write ends only when the kernel completes it.")
/* clang-format off */
#define DELIVERY_ROWS_BUT_TIMEOUT(type, member) \
	CONFIG_ROW(type, member.required, .key = "required", .def = "true", \
		   .help = "With `false`, the destination is best-effort: it never delays or refuses a sender. Data " \
			   "that does not fit into its queue is dropped for it, as is what waits there when memory is short. Not a " \
			   "key of the Collector."), \
	CONFIG_SECTION(type, member.sending_queue, queue_table, .key = "sending_queue", .presence = PRESENCE_SOME, \
		       .help = "The exporter's own queue. Data that does not fit is dropped for this destination " \
			   "only."), \
	CONFIG_SECTION(type, member.retry_on_failure, retry_table, .key = "retry_on_failure", \
		       .presence = PRESENCE_SOME, .help = "Retries with exponential backoff."), \
	CONFIG_SECTION(type, member.limits, limits_table, .key = "limits", \
		       .help = "The largest request that the destination accepts. Larger ones are split, inside a " \
			   "Profile where necessary. Not a key of the Collector."), \
	CONFIG_SECTION(type, member.sample_types, sample_types_table, .key = "sample_types", \
		       .help = "The sample types that this destination gets. What is not selected is dropped for it alone, before " \
			   "it is batched. Not a key of the Collector."), \
	CONFIG_SECTION(type, member.dead_letter, dead_letter_table, .key = "dead_letter", .presence = PRESENCE_NONE, \
		       .help = "A directory for the data that this destination does not get. Without it, " \
			   "the data is dropped. Not a key of the Collector.")
/* clang-format on */

struct delivery;
struct budget;
struct storage;
struct loss;

struct delivery_options {
	const struct exporter_ops *ops;
	void *exporter; /* the instance */
	const struct delivery_config *config;
	const char *id;   /* exporter ID */
	const char *type; /* of the exporter */
	struct log *log;
	struct metrics *metrics;
	struct ledger *ledger;
	struct loop *loop;
	struct budget *budget;
	int64_t max_bytes; /* until delivery_set_share; 0: any */
	/* of sending_queue.storage; the delivery takes a reference; NULL: none */
	struct storage *storage;
	/* The metadata that its authenticator needs, also of a dead letter; ends with NULL;
	 * borrowed for the delivery's life. NULL: none. */
	const char *const *auth_keys;
	/* Gets each loss (pipeline/delivery/dead_letters.h) instead of a directory, and with
	 * `rejected_profiles` each request that the destination accepted in part; NULL: none.
	 * [any thread; one at a time] */
	void (*lost)(void *context, const struct loss *loss, uint64_t rejected_profiles);
	void *lost_context;
};

struct delivery *delivery_new(const struct delivery_options *options);

/* What the kill switch does with the destination. */
enum delivery_kill {
	DELIVERY_ALIVE,
	/* nothing is sent; the queue keeps what it has room for, unless senders wait for the
	 * destination: they get an error, and can retry */
	DELIVERY_HOLDS,
	DELIVERY_DISCARDS /* nothing is sent; the queue drops what it has and what comes */
};

/* [loop thread] From now on. A send that is in progress ends. */
void delivery_set_kill(struct delivery *delivery, enum delivery_kill kill);

/* Opens the directory of dead letters and the queue on disk, if there are any, and begins to
 * deliver what is in the queue. Before the first packet is enqueued; the storage is open. [loop
 * thread] */
bool delivery_start(struct delivery *delivery, struct error *err);

/* Whether the destination may be asked (pipeline/delivery/circuit.h). [any thread] */
enum circuit_state { CIRCUIT_CLOSED, CIRCUIT_HALF_OPEN, CIRCUIT_OPEN };
enum circuit_state delivery_circuit(const struct delivery *delivery);
/* As outage_is_failing (pipeline/delivery/outage.h). [any thread] */
bool delivery_is_failing(struct delivery *delivery, struct send_result *why);

/* [any thread] Bytes that packets, encodings and parts may take; 0: any. */
void delivery_set_share(struct delivery *delivery, int64_t bytes);

enum queue_entry {
	/* it does not enter, and is only counted as dropped: its sender gets an error */
	ENTRY_REFUSED,
	ENTRY_IF_FITS,
	/* if there is any room by the queue's sizer: its senders have their answers already */
	ENTRY_PROMISED,
	ENTRY_ALWAYS /* also when the queue is full, because no other queue would keep it */
};

/*
 * [loop thread] Asks the destination, or a member of it (0: there are none), with a request that
 * stores nothing (exporter_ops.probe), past the queue and without retries. timeout_ns 0: that of
 * the configuration. done runs on the loop thread; its result is valid during the call. The
 * exporter has started, and stops only afterwards.
 */
void delivery_probe(struct delivery *delivery, uint32_t member, uint64_t timeout_ns,
		    void (*done)(void *context, const struct send_result *result), void *context);
/* Would the destination take data? If not, err has the reason in the words of the log (struct
 * outage), and no byte of the destination. */
bool delivery_probe_judge(const struct send_result *result, struct error *err);

/* [any thread] Where the samples of a pipeline, by ID, and of a tenant (NULL: none) count. Valid as
 * long as the delivery. */
struct book *delivery_book(struct delivery *delivery, const char *pipeline, const char *tenant);
/* [any thread] Takes its own reference. The caller has counted the packet's samples as received
 * (book_receive). False: dropped for this destination alone, and counted. */
bool delivery_enqueue(struct delivery *delivery, struct packet *packet, struct book *book,
		      enum queue_entry entry);
/* [any thread] Drops samples that were counted as received, of a request that no batch could hold:
 * too large, or (queue_full) no memory for now. */
void delivery_drop(struct delivery *delivery, uint64_t samples, struct book *book,
		   enum ledger_column reason);
enum delivery_room {
	ROOM_NONE, /* it would be dropped */
	ROOM_SOME,
	ROOM_SOON /* none, and it must not be dropped: senders have to retry */
};

/* [any thread] Is there room for this packet, or (NULL) for one more? After something was dropped
 * there is none until half of the queue is empty. ROOM_SOON: with `block_on_overflow` or
 * `wait_for_result`, and for a moment when the destination works and only its share of memory is
 * used up (pipeline/delivery/backlog.h). Never of a best-effort destination. */
enum delivery_room delivery_room(struct delivery *delivery, struct packet *packet);
/* [any thread] How full the queue is, in thousandths; above 1000 when it was stretched. */
int64_t delivery_load(const struct delivery *delivery);
bool delivery_waits(const struct delivery *delivery); /* wait_for_result, or no queue */

/* [loop thread] Senders of some graph wait for it (ack: delivered). */
void delivery_expect_senders(struct delivery *delivery);
/* May a sender be waiting for it? */
bool delivery_is_awaited(const struct delivery *delivery);

/*
 * [loop thread]
 * delivery_stop_retrying: from now on each packet gets one more attempt and no retry.
 * delivery_resume: retries again as configured; only before delivery_drain.
 * delivery_release_senders: senders that wait for the result are answered with a failure, and the
 * packets stay. Senders that repeat their requests cause duplicates.
 * delivery_drain: stops retrying, and nothing may be enqueued any more; `drained` runs when nothing
 * is left.
 * delivery_wait_empty: the same, but packets are retried as configured.
 * With a queue on disk, these and delivery_abandon leave there what is stored; the rest is treated
 * as without one. The queue is closed as soon as nothing in memory has a record, so that the next
 * delivery of this ID can open it.
 * delivery_keep_waiting: if it drains and has a directory of dead letters, what still waits in
 * memory becomes letters; what is in flight goes on.
 * delivery_abandon: stops retrying, and drops what still waits (reason shutdown); what is in flight
 * ends when the exporter's stop cancels it.
 * delivery_unref: only after drained ran, or if nothing was ever enqueued.
 * delivery_log_stuck: the program ends now; logs the samples that are lost, and those that stay on
 * disk. Returns the latter. *waiting: those that have not been dropped yet, and are lost.
 */
void delivery_stop_retrying(struct delivery *delivery);
void delivery_resume(struct delivery *delivery);
void delivery_release_senders(struct delivery *delivery);
void delivery_drain(struct delivery *delivery, void (*drained)(void *argument), void *argument);
void delivery_wait_empty(struct delivery *delivery, void (*drained)(void *argument),
			 void *argument);
void delivery_keep_waiting(struct delivery *delivery);
void delivery_abandon(struct delivery *delivery);
int64_t delivery_log_stuck(struct delivery *delivery, int64_t *waiting);
void delivery_unref(struct delivery **delivery);

#endif
