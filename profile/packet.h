/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_PACKET_H
#define PROFILE_PACKET_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/bytes.h"
#include "base/coding.h"
#include "base/error.h"
#include "base/hash.h"
#include "profile/origin.h"

/*
 * struct packet is sealed: the canonical OTLP bytes of one outgoing request. Immutable and
 * refcounted; fan-out is packet_ref. Any thread may use it. collect_seal creates it.
 */
/* Of one request. */
struct contribution {
	const char *receiver; /* component ID; lives as long as the graph */
	uint32_t profiles;
	uint64_t samples_in, samples_merged; /* samples_in - samples_merged left with the packet */
	/*
	 * NULL, or a hold on the request's ack (collect_add with hold_ack). The caller that seals
	 * owns these holds, and releases them with packet_release_acks once the packet has been
	 * handed to every destination. A destination that the sender must wait for takes its own
	 * holds before that, and uses the acks only while it has them. NULL also means that the
	 * sender does not wait for the packet.
	 */
	struct ack *ack;
	enum ack_mode mode; /* of the ack; valid also when the request is gone */
};

/* A sealed packet is OTLP; what else its bytes become. */
enum packet_encoding {
	PACKET_OTLP,
	PACKET_JSON,
	/* The request body that an exporter creates from a packet of its own plan: encoded once, no
	 * matter how often it is measured and sent. Never of a packet that other exporters share.
	 */
	PACKET_REQUEST,
	/* the same as OTLP and JSON, with the keys of attributes as references, for data at rest
	 * (profile/otlp/encode_references.h) */
	PACKET_REFERENCES,
	PACKET_REFERENCES_JSON,
	/* the layouts of earlier releases of OTLP (profile/otlp/encode_older.h); JSON of 1.9 is the
	 * same as today's */
	PACKET_OTLP_1_8,
	PACKET_OTLP_1_9,
	PACKET_JSON_1_8,
	PACKET_ENCODINGS
};

/* An encoding, compressed or not. Destinations with equal forms share the bytes. */
struct packet_form {
	enum packet_encoding encoding;
	enum coding coding;
	int level; /* of the coding; 0 without one */
};
#define FORM_OTLP ((struct packet_form){ PACKET_OTLP, CODING_IDENTITY, 0 })
#define FORM_JSON ((struct packet_form){ PACKET_JSON, CODING_IDENTITY, 0 })
#define FORM_REQUEST ((struct packet_form){ PACKET_REQUEST, CODING_IDENTITY, 0 })

/* Bytes that are there (negative: that are gone) or, with `claim`, will be in a moment, which may
 * wait for room, until the same thread gives as many back. */
typedef void packet_charge(void *context, int64_t bytes, bool claim);

/*
 * Who keeps the packet for a while, and counts what it holds: *bytes has the packet's footprint in
 * it from packet_attach to packet_detach, however that changes meanwhile. `reads`: the form that it
 * will ask for. Uncompressed JSON is dropped with the last holder that reads it: it is large, and
 * of no use to those who still wait.
 */
struct packet_holder {
	struct packet_holder *next;
	_Atomic int64_t *bytes;
	struct packet_form reads;
};

/* One form of a packet. It is made under its own lock and published once; then it never changes,
 * and goes with the packet, or when those who read it are gone (struct packet_holder). */
struct packet_made {
	struct packet_made *next;
	struct packet_form form;
	pthread_mutex_t lock;
	struct bytes *_Atomic bytes;
};

enum { PACKET_TABLES = 7, PACKET_STRINGS = 4 /* its place among them */ };

struct packet {
	_Atomic uint32_t refs;
	struct bytes otlp; /* ExportProfilesServiceRequest == ProfilesData on the wire */
	/* where in otlp each table of the dictionary begins, in the order of its fields */
	size_t tables[PACKET_TABLES];
	/* of its requests; NULL: they have none. Set by the caller that seals, before sharing; the
	 * packet owns a reference. */
	struct origin *origin;
	uint64_t oldest_arrival; /* clock_now */
	/* It is a part that an exporter's plan made (struct part), on its way to an exporter of
	 * that type again. */
	bool planned;
	uint32_t resources, profiles;
	uint64_t samples;        /* as they leave */
	uint64_t oldest, newest; /* of its Profiles' times, ns since the epoch; 0: none has one */
	struct contribution *contributions;
	uint32_t contribution_count;
	packet_charge *charge;
	void *charge_context;
	pthread_mutex_t
		lock; /* guards the holders, changes of `encoded`, and the drawing of `id` */
	struct packet_holder *holders;
	struct hash128 id; /* packet_id; valid when has_id is set */
	_Atomic bool has_id;
	_Atomic size_t encoded;           /* bytes of all forms */
	struct packet_made *_Atomic made; /* grows under the lock; read without it */
};

/* A packet with one reference, room for the bytes (otlp.len is 0) and zeroed contributions. */
struct packet *packet_new(size_t bytes, uint32_t contributions);

/*
 * The packet's ID: 128 bits, the same for all destinations, attempts and encodings, and after a
 * restart (pipeline/delivery/record.h). Receivers recognise repeated requests by it.
 *
 * It is drawn at random when it is first asked for. It is not a hash of the bytes: two packets with
 * the same bytes may both have been acknowledged, such as those of two replicas whose permitted
 * attributes are equal, and neither may be taken for a repetition of the other. A sender cannot
 * choose or guess an ID, and it says nothing about the content. [any thread]
 */
struct hash128 packet_id(struct packet *packet);
/* Gives it the ID that it had before. Before it is shared, and before packet_id. */
void packet_set_id(struct packet *packet, struct hash128 id);
/* Gives a packet that was made of `whole` an ID that depends on its bytes, its number among those
 * that were made, and the ID of `whole`: if the same packet is made again, it has the same ID.
 * Before it is shared. */
void packet_derive_id(struct packet *part, struct packet *whole, uint32_t number);

struct packet *packet_ref(struct packet *packet);
void packet_unref(struct packet **packet); /* clears; accepts NULL */

/* Each contribution's ack, where there is one and its mode is among `modes`: another hold, or the
 * end of one. */
void packet_hold_acks(struct packet *packet, unsigned modes);
bool packet_has_acks(const struct packet *packet, unsigned modes); /* is there one? */
void packet_release_acks(struct packet *packet, unsigned modes, enum ack_outcome outcome);

/*
 * From now on `charge` hears of every change of the footprint, and at the last packet_unref of its
 * end (negative). Called once, before the packet is shared.
 */
void packet_charge_to(struct packet *packet, packet_charge *charge, void *context);
/* What working on the packet needs for a while, until the same thread gives it back as a negative
 * number. [pool thread] */
void packet_claim(struct packet *packet, int64_t bytes);

/* All memory that it holds, including encodings. */
size_t packet_footprint(struct packet *packet);

/* The holder stays where it is until packet_detach; the reference is the caller's. [any thread] */
void packet_attach(struct packet *packet, struct packet_holder *holder);
void packet_detach(struct packet *packet, struct packet_holder *holder);

/*
 * Appends the packet's encoding to `out`. The context is the caller's of packet_form; it must not
 * change what is written for a form that several destinations share.
 */
typedef bool packet_encode(const void *context, const struct packet *packet, struct bytes *out,
			   struct error *err);

/*
 * The packet's bytes in a form: encoded by the first call and shared by all later ones. They are
 * valid as long as the packet; uncompressed JSON is valid as long as a holder reads it. Encoding
 * may take long (compression): call this on a pool thread. Two threads that ask for the same form
 * encode it once; calls for different forms do not block each other. If `encode` fails, so does
 * this call, with its error, and the next call tries again. FORM_OTLP is the packet's own bytes and
 * needs no encode.
 */
const struct bytes *packet_form(struct packet *packet, struct packet_form form,
				packet_encode *encode, const void *context, struct error *err);

/* Does this form exist already? */
bool packet_has(const struct packet *packet, struct packet_form form);
/* The longest that any form of the packet can be. */
size_t packet_form_max(const struct packet *packet);

/* The number of times that a packet was encoded in this way in this process. FORM_OTLP is never
 * encoded. */
uint64_t packet_encodings(enum packet_encoding encoding, enum coding coding);
extern const char *const packet_encoding_names[PACKET_ENCODINGS]; /* for metrics */

#endif
