/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_COMPONENT_H
#define PIPELINE_COMPONENT_H

#include "base/log.h"
#include "base/metrics.h"
#include "config/table.h"
#include "net/io.h"
#include "net/loop.h"
#include "net/sockets.h"
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
 *   receiver: gives the intake of its transport (pipeline/intake/http_intake.h, grpc_intake.h) its
 *	routes, what it accepts, its decode and the form of its replies. The intake asks the gate,
 *	reads the body and hands it over; a worker then calls decode, for each document once per
 *	path.
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
	struct gate *gate; /* receivers: the way in (pipeline/inbound.h) */
	struct sockets_access sockets;      /* for servers */
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
	/* The same, while another graph listens on the same addresses: refuses nothing that still
	 * comes on open connections. NULL: stop. [pool thread] */
	void (*retire)(void *self);
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

#endif
