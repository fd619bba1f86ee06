/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_PACKET_H
#define PROFILE_PACKET_H

#include <stdatomic.h>
#include <pthread.h>

#include "base/bytes.h"
#include "base/error.h"
#include "profile/request.h"

/*
 * struct packet is sealed: the canonical OTLP bytes of one outgoing request. Immutable and refcounted;
 * fan-out is packet_ref. It is born by collect_seal only.
 */
struct contribution { /* of one request */
	const char *receiver; /* component ID; lives as long as the graph */
	uint32_t profiles;
	uint64_t samples_in, samples_merged; /* samples_in - samples_merged left with the packet */
	struct ack *ack; /* NULL, or a hold that the packet's owner releases: see packet_take_acks */
};

enum packet_form { FORM_OTLP, FORM_OTLP_GZIP, FORM_OTLP_ZSTD, FORM_JSON, FORM_COUNT };

struct packet {
	_Atomic uint32_t refs;
	struct bytes otlp;      /* ExportProfilesServiceRequest == ProfilesData on the wire */
	char *tenant;           /* key of its batch; may be NULL */
	uint64_t oldest_arrival; /* clock_now */
	uint32_t resources, profiles;
	uint64_t samples;       /* as they leave */
	struct contribution *contributions;
	uint32_t contribution_count;
	/* Encodings made from it, once each; guarded by the mutex. */
	pthread_mutex_t lock;
	struct bytes *forms[FORM_COUNT];
};

struct packet *packet_ref(struct packet *packet);
void packet_unref(struct packet **packet); /* clears; accepts NULL */

/* All memory that it holds, encodings included: what a queue accounts. */
size_t packet_footprint(struct packet *packet);

/*
 * The bytes in a form, made at the first call and shared by all later ones; valid as long as the packet.
 * May take long (compression): call it on a pool thread. `encode` makes it: it appends to out.
 * FORM_OTLP is the packet's own bytes.
 */
const struct bytes *packet_form(struct packet *packet, enum packet_form form,
				bool (*encode)(const struct packet *packet, struct bytes *out,
					       struct error *err),
				struct error *err);

#endif
