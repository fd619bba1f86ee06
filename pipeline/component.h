/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_COMPONENT_H
#define PIPELINE_COMPONENT_H

#include "base/log.h"
#include "base/metrics.h"
#include "config/table.h"
#include "net/authenticator.h"
#include "net/cause.h"
#include "net/io.h"
#include "net/loop.h"
#include "net/sockets.h"
#include "profile/packet.h"
#include "profile/parts.h"
#include "profile/profiles.h"

/*
 * What a component is. Read this first; then read exporters/debug.c, which is a complete one.
 *
 * A component is one file that ends in one exported constant, a struct component_factory. All
 * factories are listed in gateway/components.c. A pipeline is called a path in this code: its
 * processors, its batch, and the exporters behind it.
 *
 * The host (the graph of components, pipeline/graph/graph.h) binds the configuration to the
 * factory's table, allocates `size` zeroed bytes and calls create. It starts exporters first and
 * receivers last. It stops receivers first, then everything else, and then destroys everything.
 *
 * How a request passes through:
 *
 *   receiver    supplies routes, accepted media types, a decoder and the form of the replies to
 *               the intake of its transport (pipeline/intake/http_intake.h, grpc_intake.h). The
 *               intake asks the gate, reads the body and hands it over. A worker then calls
 *               decode for each document, once per path.
 *   processors  are functions on open profiles. They are called in order on the worker's thread
 *               and never wait.
 *   collect     copies what is permitted and reachable into the open batch of the path (without
 *               a `batch` processor, each document is a batch). A closed batch is a sealed packet.
 *   connectors  stand among the exporters of one path and lead the open profiles to others.
 *   exporters   plan and send. Every packet goes to each exporter's delivery
 *               (pipeline/delivery/delivery.h), which queues, retries and counts.
 *
 * Counting happens at these edges (gate_metrics.c, pipeline.c, ledger.c, delivery.c). A component
 * counts only what no one else can see (its own metrics).
 */
enum component_kind {
	COMPONENT_RECEIVER,
	COMPONENT_PROCESSOR,
	COMPONENT_EXPORTER,
	COMPONENT_CONNECTOR,
	COMPONENT_EXTENSION
};

/* The extensions of the component's graph that are authenticators. */
struct authenticators {
	void *context;
	/* Returns a reference to that of an extension, or NULL. If there is none, building the
	 * graph fails; the component only has to end its create without a crash. [loop thread] */
	struct authenticator *(*find)(void *context, const char *id);
};

struct storage;
struct storages;

/* What a component gets from the program. Borrowed; outlives the component. */
struct host {
	const char *id;       /* "otlp_grpc/a" */
	const char *pipeline; /* of a processor: the ID of its pipeline, "profiles"; else NULL */
	struct log log;       /* already carries the component's fields */
	struct metrics *metrics;
	struct loop *loop;
	struct io *io; /* receivers: the I/O threads of their connections; set before start */
	struct entrance *entrance; /* receivers: to the gate for requests (pipeline/inbound.h) */
	struct sockets_access sockets; /* for servers */
	struct storages *storages;     /* extensions: the directories of queues on disk */
	/* for create */
	struct authenticators authenticators;
	const struct service_view *service; /* extensions: the state of the program */
};

/* A reference to the authenticator that a section `auth` names. NULL: the section is absent, or the
 * graph will not be built. [loop thread, in create] */
struct authenticator *host_authenticator(const struct host *host, const struct optional *present,
					 const char *id);

/* What extensions can ask of the program. Functions may be called from any thread. */
struct service_view {
	void *context;
	/* all receivers listen, the program is not stopping, and the kill switch does not stop
	 * everything */
	bool (*ready)(void *context);
	uint64_t (*up_since)(void *context); /* wall clock, ns */
	/* Appends a JSON array of what the operator should know although it does not affect
	 * `ready`: an object for each component that has something to report, or for all */
	void (*details)(void *context, bool all, struct bytes *json);
};

/* How requests are joined: for a path (the processor `batch`), or for one exporter
 * (sending_queue.batch). */
struct batch_settings {
	bool on; /* false: every request becomes a packet of its own */
	struct duration timeout;
	uint64_t size, max_size; /* samples; size 0: flush immediately; max_size 0: no limit */
	/* flushes at this number of bytes, and ignores `size`; 0: by `size` */
	uint64_t bytes;
	uint64_t max_bytes;           /* 0: no limit */
	struct strings metadata_keys; /* in any case; borrowed */
	int64_t metadata_limit;
};

/* Settings of a path that processors contribute instead of (or besides) a function on profiles. The
 * position of such a processor in the list does not matter. One struct per path; each processor's
 * settle may change it. */
struct path_settings {
	struct batch_settings batch;
	/* memory_limiter: bytes; 0: the program's default (80 % of the cgroup's limit) */
	uint64_t memory_limit, memory_spike;
	struct duration memory_check_interval;
};

/* One send in progress. The exporter calls sending_done exactly once, from any thread. */
struct sending;

enum send_outcome {
	SEND_OK,
	SEND_RETRY,     /* try again, after retry_after_ms if >= 0 */
	SEND_PERMANENT, /* will never be accepted: dropped */
	/* exceeds a limit of the destination: split again, by a smaller limit; dropped if nothing
	 * is left to split */
	SEND_TOO_LARGE
};

struct send_result {
	enum send_outcome outcome;
	int64_t retry_after_ms;     /* -1: the destination sent none */
	uint64_t rejected_profiles; /* with SEND_OK: from partial_success */
	/* With SEND_TOO_LARGE; 0: unknown. The limits that the destination named, and the size that
	 * it measured for this request if it counts differently from struct part (compressed
	 * bytes). If all are 0, the next attempt has half the size. */
	uint64_t stated_bytes, stated_samples, seen_bytes;
	/* With SEND_RETRY: nothing was sent, because it is not known where to. It is tried again
	 * even if retry_on_failure is disabled. */
	bool unsent;
	/* one of a few fixed words for metrics and logs: "unavailable", "invalid", ... */
	const char *reason;
	/* of a failure, for the log; 0: none */
	struct cause cause;
	int http_status, grpc_status, kafka_status;
};

void sending_done(struct sending *sending, const struct send_result *result);

/* What senders wait for, in the configuration: by enum ack_mode. A receiver's own choice may also
 * be "service" (ACK_MODES). */
extern const char *const ack_mode_names[ACK_MODES + 1], *const ack_choices[ACK_MODES + 2];

/* The row `ack` of a receiver's table; `member` is a struct choice. */
#define ACK_ROW(type, member) \
	CONFIG_ROW( \
		type, member, .key = "ack", .def = "service", .choices = ack_choices, \
		.help = "When senders get their response: `enqueue` (the data is in the queues), " \
			"`delivered` (every required exporter has accepted or rejected it), or " \
			"`durable` (it is in the queue on disk of every required exporter). " \
			"`service`: as `service::ack` says. Not a key of the Collector.")

/*
 * What only one kind of component does. A factory points to the struct of its kind; the other
 * pointers are NULL. Members that may be NULL say so.
 */
struct receiver_ops {
	/* The paths that senders post to over HTTP, or are likely to, for hints at other ports;
	 * ends with asked == NULL. NULL: none. */
	const struct receiver_path {
		const char *asked, *path; /* path: the one that takes it */
	} * paths;
	/* The section of the HTTP server that takes them, with its usual port. NULL: the receiver's
	 * own. */
	const char *http;
	/* of struct choice ack in the config struct (ACK_ROW); 0: the receiver has no such key, and
	 * the section `service` decides */
	size_t ack_offset;
	/* of struct duplicates_config in the config struct (pipeline/intake/duplicates.h); 0: the
	 * receiver has no such key, because it has no senders */
	size_t deduplicate_offset;
	/* Starts to listen. host->io is set. [loop thread] */
	bool (*start)(void *self, struct error *err);
	/* On return all requests are answered, and no thread or timer of the receiver is left. May
	 * wait, also for the loop. [pool thread] */
	void (*stop)(void *self);
	/* The same while another graph listens on the same addresses: requests that still arrive on
	 * open connections are not refused. NULL: stop is called instead. [pool thread] */
	void (*retire)(void *self);
};

struct processor_ops {
	/* bytes of scratch memory that each worker has for this instance, zeroed; 0: none */
	size_t scratch_size;
	/* a pipeline may contain only one of this type: two would contradict each other */
	bool once;
	/* Changes the open profiles; scratch belongs to (worker, instance). False: the request is
	 * refused. May be NULL. [worker or I/O thread, several at the same time] */
	bool (*process)(void *self, void *scratch, struct profiles *profiles, struct error *err);
	/* Before the scratch is freed. May be NULL. [any thread] */
	void (*scratch_fini)(void *self, void *scratch);
	/* Contributes to the settings of its path, after create. May be NULL. [loop thread] */
	void (*settle)(void *self, struct path_settings *settings);
	/* Part of the configuration. Would an attribute of a resource with this key pass? key NULL:
	 * one that the configuration does not name. NULL: all pass. [loop thread, without an
	 * instance] */
	bool (*keeps)(const void *config, const char *key);
	/* Part of the configuration. The key of the attribute that its rule of this number inserts
	 * into resources; "": that rule inserts none; NULL: there is no such rule. NULL: it inserts
	 * none. [loop thread, without an instance] */
	const char *(*sets)(const void *config, size_t number);
};

/*
 * Of an exporter with several members, which are destinations of their own: while one does not
 * answer, the others get what is theirs (pipeline/delivery/lanes.h). A number stands for a member;
 * it is never 0, and not used again. Its plan sets `group` of each part to the number of the member
 * that is to get it, or to 0 if there is none now. A whole with a group is such a part.
 */
struct member_ops {
	/* The number of lanes. Members whose numbers have the same remainder share one: their times
	 * must not overlap. The answer never changes. [any thread] */
	uint32_t (*lanes)(void *self);
	/* How many members there are. [any thread] */
	uint32_t (*count)(void *self);
	/* Is this still a member? What waits for one that is not is planned again. [any thread] */
	bool (*serves)(void *self, uint32_t member);
	/* The number of the member at this index; 0: there are fewer now. [loop thread] */
	uint32_t (*number)(void *self, uint32_t index);
	/* Calls changed(context) after each change of the members, on the loop thread, until the
	 * exporter's stop has returned. What waits for a member that has left, or for the first
	 * one, then waits no longer. [loop thread, once, before start] */
	void (*watch)(void *self, void (*changed)(void *context), void *context);
	/* The member as the log names it; the caller frees it. NULL: it is none any more. [any
	 * thread] */
	char *(*endpoint)(void *self, uint32_t member);
};

struct exporter_ops {
	size_t delivery_offset; /* of struct delivery_config in the config struct */
	/* The maximum number of sends at the same time (0: the queue's num_consumers). An exporter
	 * whose sends may hang, as writes do, sets it and has no prompt: the pool gets that many
	 * additional threads. */
	uint32_t max_in_flight;
	/* May be NULL. [loop thread] */
	bool (*start)(void *self, struct error *err);
	/* On return nothing is in flight, and no thread or timer uses the exporter any more. May
	 * wait, also for the loop. May be NULL. [pool thread] */
	void (*stop)(void *self);
	/* The file or directory that this configuration writes to. Two exporters with the same one
	 * are an error. NULL: none. [loop thread] */
	const char *(*owned_path)(const void *config);
	/* The limits that the destination is known to have, for those that the configuration does
	 * not set. NULL: none. [any thread] */
	void (*preset)(void *self, struct limits *limits);
	/*
	 * Creates the requests (parts) that the destination gets for one packet. Pure: the same
	 * packet and limits result in the same parts in the same order. Appends to `parts`, and
	 * records there what it drops. Returns false only if it cannot plan at all.
	 *
	 * It is called again, with smaller limits, for a part that was rejected as too large.
	 * `planned` is set in such a part, so plan must be able to split its own parts. NULL:
	 * split_packet (profile/collect/split.h) splits by the limits, in bytes of OTLP. [pool
	 * thread]
	 */
	bool (*plan)(void *self, const struct part *whole, const struct limits *limits,
		     struct parts *parts, struct error *err);
	/* NULL: there is one destination. With it, `plan` is required. */
	const struct member_ops *members;
	/* Does this instance need `plan`? If not, it is as if that were NULL. The answer never
	 * changes. NULL: yes. [any thread] */
	bool (*plans)(void *self);
	/* The destination, for the labels server_address and server_port; strings of the instance.
	 * NULL: not on a network. [loop thread] */
	void (*destination)(void *self, const char **address, const char **port);
	/* The same for the log: as configured, without user and password; a string of the instance.
	 * NULL: there is none. [loop thread] */
	const char *(*endpoint)(void *self);
	/* Would send only hand this packet to another thread, which reports the result later? Then
	 * send may run on any thread. NULL: no. [any thread] */
	bool (*prompt)(void *self, const struct packet *packet);
	/* The metadata of senders that its requests need: batches keep it. Ends with NULL; of the
	 * instance. NULL: none. [loop thread] */
	const char *const *(*context_keys)(void *self);
	/* The encoding of a shared packet that send asks for and does not use after sending_done. A
	 * large one is dropped when the last destination that reads it is done. NULL: none, or it
	 * is kept as long as the packet. [any thread] */
	struct packet_form (*reads)(void *self);
	/* Creates what send would otherwise have to create first, so that the packet becomes
	 * prompt; only for small packets. NULL: nothing can be created in advance. [worker or I/O
	 * thread that brings the packet] */
	void (*encode)(void *self, struct packet *packet);
	/* Sends a part and reports the result through sending_done. May compress and write to
	 * files, but must not wait for a peer. May also be called after stop, if a shutdown has
	 * exceeded its deadline. [pool thread; any thread if prompt] */
	void (*send)(void *self, const struct part *part, uint64_t timeout_ns,
		     struct sending *sending);
	/*
	 * For `validate --connect`: asks the destination, or the member part->group, with a request
	 * that stores nothing, over the same connections and with the same credentials as send. The
	 * packet of the part is valid and has no samples, so it is `send` where a destination
	 * accepts such a request. The result is SEND_OK if the destination would take data. NULL:
	 * there is none on a network. [loop thread]
	 */
	void (*probe)(void *self, const struct part *part, uint64_t timeout_ns,
		      struct sending *sending);
	/* Puts the key that names the destination, or this member (0: all of them), before the text
	 * of an error. NULL: the key is `endpoint`. [loop thread] */
	void (*blame)(void *self, uint32_t member, struct error *err);
};

/* The route of a Profile that no pipeline gets: it is dropped and counted. */
#define CONNECTOR_NONE UINT32_MAX

/*
 * A connector is an exporter of some pipelines and a receiver of others. It decides for each
 * Profile which of the pipelines behind it get it, and changes none. It has no threads, no queue
 * and no state (pipeline/intake/connection.h carries the tables). Each graph has an instance of its
 * own.
 */
struct connector_ops {
	/* Its routes are numbered from 0. Returns the IDs of the pipelines of one; empty: all that
	 * have the connector among their receivers. NULL: there is no route of that number. Part of
	 * the configuration. [loop thread, without an instance] */
	const struct strings *(*route)(const void *config, uint32_t number);
	/* Sets chosen[i] to the route of profiles->profiles.at[i], or to CONNECTOR_NONE. NULL: all
	 * take route 0. [worker or I/O thread, several at the same time] */
	void (*choose)(void *self, const struct profiles *profiles, uint32_t *chosen);
};

struct extension_ops {
	/* What servers and clients get that name the extension in `auth.authenticator`; borrowed.
	 * NULL: it is no authenticator. [loop thread] */
	struct authenticator *(*authenticator)(void *self);
	/* Where exporters keep their queues that name the extension in `sending_queue.storage`;
	 * borrowed. NULL: it is no storage. [loop thread] */
	struct storage *(*storage)(void *self);
	/* [loop thread] */
	bool (*start)(void *self, struct error *err);
	/* On return no thread or timer of the extension is left. [loop thread] */
	void (*stop)(void *self);
};

/* What all kinds have in common. */
struct component_factory {
	const char *type;  /* the key in the YAML */
	const char *alias; /* a deprecated type name, or NULL */
	/* types of its kind that this program does not have, and that operators write where this
	 * one is meant; may be NULL */
	const struct config_hint *hints;
	const char *help;   /* one sentence */
	const char *manual; /* more text for docs/manual/reference.md, in Markdown; may be NULL */
	enum component_kind kind;
	/* set for its own kind only */
	const struct receiver_ops *receiver;
	const struct processor_ops *processor;
	const struct exporter_ops *exporter;
	const struct connector_ops *connector;
	const struct extension_ops *extension;
	size_t size; /* of the instance; zeroed by the host */
	const struct config_table *config;
	/* its own metrics, for the manual; NULL-terminated; may be NULL */
	const struct metric *const *metrics;

	/* config: bound by the host; lives as long as the instance. destroy is called even if
	 * create failed. [loop thread] */
	bool (*create)(void *self, const void *config, const struct host *host, struct error *err);
	void (*destroy)(void *self); /* may be NULL [loop thread] */
	/* SIGHUP: reads certificates and opens files again. If something is invalid, the current
	 * one stays in use, and err gives the reason. May be NULL. [loop thread] */
	bool (*reopen)(void *self, struct error *err);
	/* Prints what does not fit into the manual's tables (`portcullis components TYPE`); may be
	 * NULL. [main thread, without an instance] */
	void (*describe)(struct bytes *out);
	/* Prints a page of its own (`portcullis manual TYPE`), in Markdown; may be NULL. [main
	 * thread, without an instance] */
	void (*page)(struct bytes *out);
};

#endif
