/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_DELIVERY_RECORD_H
#define PIPELINE_DELIVERY_RECORD_H

#include "base/hash.h"
#include "profile/packet.h"

/*
 * A packet as it is stored: a head with what the packet must remember, then its OTLP bytes. Other
 * processes and versions read it, so numbers are little-endian, and the head begins with a format
 * number. What is stored is what left the policy: the OTLP bytes are canonical, and the head has
 * only IDs of components, the tenant and the metadata of the batch.
 *
 * The head has a checksum, and so have the OTLP bytes (XXH3-128).
 *
 *   0   "PCQR"                        56  samples (8)
 *   4   format (4), 2                 64  resources (4), profiles (4)
 *   8   length of the head (4)        72  oldest, newest time, ns since the epoch (8, 8)
 *   12  number of origin's data (4)   88  offset of each table in the OTLP bytes (8 each)
 *   16  length of the OTLP bytes (8)  144 number of contributions (4)
 *                                     148 enum record_account (4)
 *   24  their checksum (16)           152 packet_id (16)
 *   40  arrival, ns since epoch (8)   168 strings: pipeline, batch key, tenant, name and value of
 *   48  checksum of all other             each metadatum; contributions; see record.c
 *       bytes of the head (8)
 *
 * Format 1 had no packet_id: its strings begin at 152. Such a packet gets an ID that depends on the
 * bytes of its head alone. Versions that did not know record_account wrote 0 there.
 */
enum record_fault {
	RECORD_SOUND,
	RECORD_FOREIGN, /* no record of ours, or of an unknown format */
	RECORD_TORN,    /* shorter or longer than it says */
	RECORD_CORRUPT, /* a checksum or a value is wrong */
	RECORD_FAULTS
};
extern const char *const record_faults[RECORD_FAULTS]; /* words for logs and metrics */

/* Where the queue counts the record (pipeline/delivery/book.h). */
enum record_account {
	RECORD_ACCOUNT_UNKNOWN,
	RECORD_ACCOUNT_OWN,   /* in that of its pipeline and tenant */
	RECORD_ACCOUNT_SHARED /* in that of its pipeline for tenants without an account */
};

/* Of which the reader learns before it has the packet. Views of the record's bytes. */
struct record {
	struct view pipeline, tenant; /* ID; tenant: empty: none */
	enum record_account account;
	uint64_t samples;
	struct hash128 content; /* checksum of the body */
	struct hash128 id;      /* packet_id */
	uint64_t arrival;       /* wall clock, ns */
	struct view head, body;
};

/* Appends the head of the packet's record; its body is packet->otlp. origin: the packet's, or what
 * is to be stored of it. False: some string is longer than a record can have. */
bool record_encode(struct packet *packet, const struct origin *origin, const char *pipeline,
		   enum record_account account, struct bytes *head);

/* Checks the whole record, also its content. The views are those of `data`. After RECORD_CORRUPT
 * because of the body, pipeline, tenant and samples are set; otherwise they are empty. */
enum record_fault record_check(struct view data, struct record *record);
/* When it arrived (clock_now), from the head alone; 0: the head is not sound. */
uint64_t record_arrival(struct view data);
/* The packet of a sound record: one reference. Contributions have no acks. */
struct packet *record_packet(const struct record *record);

#endif
