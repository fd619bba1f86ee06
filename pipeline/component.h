/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_COMPONENT_H
#define PIPELINE_COMPONENT_H

#include "base/log.h"
#include "base/metrics.h"
#include "config/table.h"
#include "net/budget.h"
#include "net/io.h"
#include "net/loop.h"
#include "profile/packet.h"
#include "profile/parts.h"
#include "profile/profiles.h"

/*
 * What a component is. Read this first; then exporters/debug.c is a whole one.
 *
 * A component is one file that ends in its one exported constant, a struct component_factory; the
 * list of all of them is gateway/components.c. The host binds the configuration (rows of the
 * factory's table), allocates `size` zeroed bytes and calls create; it starts exporters first and
 * receivers last, stops receivers first, then destroys everything.
 *
 * One way through:
 *
 *   receiver: accepts a request up to its headers, asks gate_admit, reads the body, and gives a
 *	struct inbound to gate_submit. A worker then calls its decode, once per path, and its reply,
 *	once.
 *   processors: functions on open profiles, called in order on the worker's thread; they never
 *   wait.
 *   collect: copies what is permitted and reachable into the open batch of the path (batch of one
 * 	without a `batch` processor); a closed batch is a sealed packet.
 *   exporters: every packet goes to each exporter's delivery (pipeline/delivery/delivery.h), which
 *	alone queues, retries and counts, and calls plan and send.
 *
 * Counting happens at these edges (gate_metrics.c, pipeline.c, ledger.c, delivery.c), so components
 * need not count, except what only they can see (their own metrics).
 */
enum component_kind {
	COMPONENT_RECEIVER,
	COMPONENT_PROCESSOR,
	COMPONENT_EXPORTER,
	COMPONENT_EXTENSION
};

/* What a component gets from the program. Borrowed; lives longer than the component. */
struct host {
	const char *id;       /* "otlp_grpc/a" */
	const char *pipeline; /* of a processor: "profiles"; else NULL */
	struct log log;       /* already carries the component's fields */
	struct metrics *metrics;
	struct loop *loop;
	struct io *io;     /* receivers: the threads of their connections; from start on */
	struct gate *gate; /* receivers: the way in */
	const struct service_view *service; /* extensions: what they may ask of the program */
};

/* What the program tells its extensions. Functions may be called from any thread. */
struct service_view {
	void *context;
	bool (*ready)(void *context);        /* all receivers listen, not stopping */
	uint64_t (*up_since)(void *context); /* wall clock, ns */
};

/* How requests are joined: of a path (the processor batch), or of one exporter
 * (sending_queue.batch). */
struct batch_settings {
	bool on; /* false: every request leaves by itself */
	struct duration timeout;
	uint64_t size, max_size; /* samples; 0: at once, and none */
	uint64_t bytes;          /* closes at so many, and `size` does not matter; 0: `size` does */
	uint64_t max_bytes;      /* 0: none */
	struct strings metadata_keys; /* in any case; borrowed */
	int64_t metadata_limit;
};

/*
 * Settings of a path that processors contribute instead of (or besides) a function on profiles:
 * their place in the list does not matter. One struct per path; each processor's settle may change
 * it.
 */
struct path_settings {
	struct batch_settings batch;
	/* memory_limiter: bytes; 0: the program's default (80 % of the cgroup) */
	uint64_t memory_limit, memory_spike;
	struct duration memory_check_interval;
};

/* One send in progress. The exporter calls sending_done exactly once, from any thread. */
struct sending;

enum send_outcome {
	SEND_OK,
	SEND_RETRY,     /* try again, after retry_after_ms if >= 0 */
	SEND_PERMANENT, /* will never be taken: dropped */
	/* over a limit of the destination: split once more, by a smaller limit; dropped if nothing
	 * is left to split */
	SEND_TOO_LARGE
};

struct send_result {
	enum send_outcome outcome;
	int64_t retry_after_ms;     /* -1: none was sent */
	uint64_t rejected_profiles; /* of SEND_OK: partial_success */
	/* Of SEND_TOO_LARGE, 0 where it was not said: the limits that the destination named, and
	 * what it took this request for when it counts otherwise than struct part (compressed
	 * bytes). Without any, half of it is tried. */
	uint64_t stated_bytes, stated_samples, seen_bytes;
	/* one of a few fixed words for metrics and logs: "unavailable", "invalid" ... */
	const char *reason;
};

void sending_done(struct sending *sending, const struct send_result *result);

/*
 * What only one kind of component does. A factory points to the struct of its kind; the others are
 * NULL. Members that may be NULL say so.
 *
 * A connector (an exporter of some pipelines that is a receiver of others) will be a kind of its
 * own: COMPONENT_CONNECTOR, a struct connector_ops here, and its pointer in the factory.
 */
struct receiver_ops {
	/* Listens. host->io is set. [loop thread] */
	bool (*start)(void *self, struct error *err);
	/* On return all its requests are answered, and no thread or timer of it is left. May wait,
	 * also for the loop. [pool thread] */
	void (*stop)(void *self);
};

struct processor_ops {
	size_t scratch_size; /* of a worker's scratch for this instance; zeroed; 0: none */
	bool once; /* a pipeline may have one of the type: two would contradict each other */
	/* Changes the open profiles; scratch belongs to (worker, instance). False: the request is
	 * refused. May be NULL. [worker or I/O thread, several at once] */
	bool (*process)(void *self, void *scratch, struct profiles *profiles, struct error *err);
	/* Before the scratch is freed. May be NULL. [any thread] */
	void (*scratch_fini)(void *self, void *scratch);
	/* Contributes to the settings of its path, after create. May be NULL. [loop thread] */
	void (*settle)(void *self, struct path_settings *settings);
};

struct exporter_ops {
	size_t delivery_offset; /* of struct delivery_config in the config struct */
	/* At most this many sends run at once (0: the queue's num_consumers). Where sends may hang,
	 * as writes do, it is set and prompt is NULL: the pool has as many threads more. */
	uint32_t max_in_flight;
	/* May be NULL. [loop thread] */
	bool (*start)(void *self, struct error *err);
	/* On return nothing is in flight, and no thread or timer of it is left. May wait, also for
	 * the loop. May be NULL. [pool thread] */
	void (*stop)(void *self);
	/* The file or directory of this configuration that no other exporter may write to: two are
	 * an error. NULL: none. [loop thread] */
	const char *(*owned_path)(const void *config);
	/* What is known of the destination, where the configuration says nothing. NULL: nothing
	 * is. [any thread] */
	void (*preset)(void *self, struct limits *limits);
	/*
	 * Pure: the same packet and limits give the same parts in the same order. It appends to
	 * parts and records there what it drops itself; false only when it has no answer at all. It
	 * is called again, with smaller limits, for a part that was refused as too large (`planned`
	 * is then set), so it must be able to split its own parts. NULL: split_packet
	 * (profile/collect/split.h) by the limits, with the arithmetic of OTLP. [pool thread]
	 */
	bool (*plan)(void *self, const struct part *whole, const struct limits *limits,
		     struct parts *parts, struct error *err);
	/* Where it sends, for the labels server_address and server_port; strings of the instance.
	 * NULL: nowhere on a network. [loop thread] */
	void (*destination)(void *self, const char **address, const char **port);
	/* Would send only hand this packet on? Then it may run on any thread, and success comes
	 * later, from another. NULL: no. [any thread] */
	bool (*prompt)(void *self, const struct packet *packet);
	/* The encoding of a shared packet that sends ask for and no longer use once sending_done is
	 * called. One that is large is dropped when the last destination that reads it is done.
	 * NULL: none, or it lives as long as the packet. [any thread] */
	enum packet_form (*reads)(void *self);
	/* Makes what send would have to make first, so that it becomes prompt; only small packets.
	 * NULL: nothing can be made beforehand. [worker or I/O thread that brings the packet] */
	void (*encode)(void *self, struct packet *packet);
	/* May compress and write but not wait for a peer, and reports through sending_done what
	 * happened; also after stop, when a shutdown has passed its deadline. [pool thread; any, if
	 * prompt] */
	void (*send)(void *self, const struct part *part, uint64_t timeout_ns,
		     struct sending *sending);
};

struct extension_ops {
	/* [loop thread] */
	bool (*start)(void *self, struct error *err);
	/* On return no thread or timer of it is left. [loop thread] */
	void (*stop)(void *self);
};

/* What all kinds share. */
struct component_factory {
	const char *type;   /* the key in the YAML */
	const char *alias;  /* a deprecated type name, or NULL */
	const char *help;   /* one sentence */
	const char *manual; /* more for docs/manual/reference.md, in Markdown; may be NULL */
	enum component_kind kind;
	/* the one of its kind */
	const struct receiver_ops *receiver;
	const struct processor_ops *processor;
	const struct exporter_ops *exporter;
	const struct extension_ops *extension;
	size_t size; /* of the instance; zeroed by the host */
	const struct config_table *config;
	/* own metrics for the manual, NULL-terminated; may be NULL */
	const struct metric *const *metrics;

	/* config: bound by the host; lives as long as the instance. destroy follows also a failed
	 * create. [loop thread] */
	bool (*create)(void *self, const void *config, const struct host *host, struct error *err);
	void (*destroy)(void *self); /* may be NULL [loop thread] */
	/* SIGHUP: reads certificates again, opens files again. What is broken stays as it was, and
	 * err gives the reason. May be NULL. [loop thread] */
	bool (*reopen)(void *self, struct error *err);
	/* Prints what the manual's tables cannot hold (`portcullis components TYPE`); may be NULL.
	 * [main thread, without an instance] */
	void (*describe)(struct bytes *out);
};

/*
 * The way in (pipeline/intake/gate.c). A receiver's request is a struct inbound inside a struct of
 * its own.
 */
struct outcome {                    /* what the sender is told */
	const struct error *error;  /* NULL: accepted, perhaps in part */
	uint32_t rejected_profiles; /* undecodable ones, for partial_success */
	const char *rejection;      /* names the first fault; NULL if none */
};

struct body { /* a worker's reusable buffers, to linearise and inflate into */
	struct bytes raw, inflated;
};

struct inbound;
struct inbound_ops {
	/*
	 * Worker thread, once: gives the contiguous, inflated body with BYTES_SLACK readable bytes
	 * behind it. It may use the buffers of `body`, whose maxima are set from the receiver's
	 * limits by load itself. Before growing memory beyond what was charged it calls
	 * gate_charge.
	 */
	bool (*load)(struct inbound *in, struct body *body, struct view *out, struct error *err);
	/* Worker thread, once per path, on reset tables. */
	bool (*decode)(struct inbound *in, struct profiles *profiles, struct error *err);
	/* Any thread, once, last: tells the sender and frees the inbound. */
	void (*reply)(struct inbound *in, const struct outcome *outcome);
	/* How many bytes of tables the densest legitimate body needs for each of its own: this much
	 * is charged before decode, down to a quarter of it where the budget is short. */
	uint32_t tables_factor;
};

struct inbound {
	const struct inbound_ops *ops;
	struct request request;
	/* set before gate_admit: what the receiver holds for the request beside its body and small
	 * structures, such as copies of the headers */
	size_t overhead;
	struct ack ack;    /* initialised by gate_submit */
	struct gate *gate; /* set by gate_submit */
	/* whose share it is charged to; from gate_admit to the reply or gate_forget */
	struct peer *peer;
	/* run by gate_run_here; load finds it too large for that, and a worker takes it */
	bool here, moves;
	bool favoured;        /* being processed, without regard to the peer's share */
	struct inbound *next; /* the workers' queue */
	/* bytes taken from the budget for this request: gate_admit, gate_charge */
	_Atomic int64_t charged;
	struct outcome outcome; /* the pipeline's, kept until the ack is done */
	struct error error;
	uint64_t samples;    /* decoded, of Profiles that are no rejections */
	const char *refusal; /* why the gate refused, until it is counted */
	char rejection[160];
};

/* What a request costs before any of its body has arrived: its structures, in the receiver and
 * here. */
#define GATE_REQUEST_BYTES 4096

/*
 * From the headers, before the body is read: does any destination have room, may the peer have one
 * more request waiting, is the program not stopping? Charges GATE_REQUEST_BYTES and in->overhead,
 * nothing for the body. `announced` is the length of the body that the headers name, 0: they name
 * none; ERROR_TOO_LARGE when it could not fit even if nothing else were charged. All other refusals
 * are ERROR_BUSY with a retry hint. Refused: counted, nothing is held, and gate_forget is not
 * called. [any thread]
 */
bool gate_admit(struct gate *gate, struct inbound *in, size_t announced, struct error *err);
/*
 * The receiver's buffers for this request are about to have `bytes` bytes in all (more or fewer
 * than before): called before they grow, as the body arrives (gate_grow) and by load. ERROR_BUSY
 * with a retry hint when memory is short or the peer has its share: nothing changed, the receiver
 * may stop reading and ask again later, or refuse.
 * ERROR_TOO_LARGE: asking again would be in vain. The refusal is counted when the request ends with
 * gate_forget(NULL) or by its reply. [any thread, one at a time for a request]
 */
bool gate_charge(struct gate *gate, struct inbound *in, size_t bytes, struct error *err);
/*
 * The same for the buffer of a body that is arriving, while it is all that the receiver holds for
 * the request: *room bytes are charged, `need` must fit now, and the buffer will never have more
 * than `limit` bytes (the announced length where there is one), which is at least `need`. The
 * charge is doubled, at least 16 KiB; when that is too much, the next multiple of 16 KiB will do.
 * *room is the new charge.
 */
bool gate_grow(struct gate *gate, struct inbound *in, size_t need, size_t limit, size_t *room,
	       struct error *err);
/* The request will not be submitted: gives the charge back and counts the reason, one of the words
 * of gate_metrics.c; NULL: gate_charge refused it. Also without gate_admit before it. [any thread]
 */
void gate_forget(struct gate *gate, struct inbound *in, const char *transport, const char *reason);
/* Takes the request; a worker runs it to completion. Always ends in ops->reply. [any thread, does
 * not block] */
void gate_submit(struct gate *gate, struct inbound *in);
/*
 * The same for a request that is too small to delay others: runs it at once, with in->here set.
 * Where load finds more than was to be expected, it returns false with in->moves set, and a worker
 * runs the request from the start. [I/O thread of that index]
 */
void gate_run_here(struct gate *gate, struct inbound *in, uint32_t io_thread);

/* Memory that is no request's: what a connection costs. False, and nothing charged, when the budget
 * is short, which it is before requests are refused. [any thread] */
bool gate_hold(struct gate *gate, int64_t bytes);
void gate_release(struct gate *gate, int64_t bytes);
/* How much gate_hold would still take; what the connections of one peer hold is to stay below it,
 * so that one cannot have all. [any thread] */
int64_t gate_spare(const struct gate *gate);
/* Is less than an eighth of the budget left? Then transports close idle connections, oldest first.
 * [any thread, cheap] */
bool gate_is_short(const struct gate *gate);
/* These four for a server in net/. */
struct net_budget gate_net_budget(struct gate *gate);

#endif
