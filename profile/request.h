/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_REQUEST_H
#define PROFILE_REQUEST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The origin of a request. Its receiver fills it before the request is submitted. All strings
 * belong to the receiver's request object, which lives until the reply has been sent.
 */
struct metadatum {
	const char *name; /* lower case */
	const char *value;
};

enum transport {
	TRANSPORT_GRPC,
	TRANSPORT_HTTP,
	TRANSPORT_FILE,
	TRANSPORT_SCRAPE,
	TRANSPORT_KAFKA,
	TRANSPORT_COUNT
};

/* "grpc", "http", "file", "scrape", "kafka": for metrics. */
extern const char *const transport_names[TRANSPORT_COUNT];

struct request {
	const char *receiver; /* component ID; lives as long as the graph */
	enum transport transport;
	const char *peer; /* client.address, without the port; may be NULL */
	/* what is known of its sender for sure (net/tls/tls.h); as metadata; may be NULL */
	const struct metadatum *auth;
	/* only with include_metadata; ends with name == NULL; may be NULL */
	const struct metadatum *metadata;
	const char *tenant; /* resolved at admission (pipeline/intake/tenant.h); NULL: none */
	uint64_t arrival;   /* clock_now */
	struct ack *ack;    /* held by everything that must finish before the reply is sent */
	/* what routes have refused of the document (pipeline/intake/pipeline.h); may be NULL */
	struct refused **refused;
	/* some pipeline has accepted data of it, and another one has refused data of it; found by
	 * the thread that runs it */
	bool incomplete;
};

/* A metadata key that begins with this is an attribute of the sender's identity (`auth`). */
#define REQUEST_AUTH_PREFIX "auth."

/* The first value of a metadata key, NULL if there is none. Its case does not matter. */
const char *request_metadata(const struct request *request, const char *name);

enum ack_outcome {
	ACK_TAKEN,
	ACK_REFUSED, /* permanent: a retry would not succeed */
	ACK_FAILED   /* for now */
};

/* What a sender waits for (the key `ack` of receivers). */
enum ack_mode {
	ACK_ENQUEUE,   /* the data is in the queues */
	ACK_DURABLE,   /* every required destination has it in its queue on disk */
	ACK_DELIVERED, /* every required destination has accepted or rejected it */
	ACK_MODES
};

/* Sets of modes. */
#define ACK_MODE(mode) (1u << (mode))
#define ACK_MODE_ANY (ACK_MODE(ACK_MODES) - 1)

/*
 * Held by everything that must finish before the reply may be sent. It starts with one hold, the
 * pipeline's. The last release calls done once, on the releasing thread, with the outcome that
 * comes last in the enum among all releases.
 */
struct ack {
	_Atomic uint32_t holds;
	_Atomic bool refused, failed;
	enum ack_mode mode;
	void (*done)(struct ack *ack, enum ack_outcome outcome);
};

void ack_init(struct ack *ack, enum ack_mode mode,
	      void (*done)(struct ack *ack, enum ack_outcome outcome));
void ack_hold(struct ack *ack);
void ack_release(struct ack *ack, enum ack_outcome outcome);
/* Adds to the outcome of an ack that the caller holds, and continues to hold. */
void ack_note(struct ack *ack, enum ack_outcome outcome);

#endif
