/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_DELIVERY_LETTER_H
#define PIPELINE_DELIVERY_LETTER_H

#include "profile/packet.h"

/*
 * A dead letter: data that a destination did not get, as two files of the same name.
 *
 *   NAME.otlp   the request, an ExportProfilesServiceRequest, as it left the policy
 *   NAME.json   the reason file: a JSON object for operators. Its member `record` is the head of
 *               the packet's record (pipeline/delivery/record.h) in base64: tenant, metadata, and
 *               a checksum of both files' content. A reader needs `format`, `reason`, `made_for`
 *               and `record`; the other members repeat them in words.
 *
 * Neither contains a byte that a destination has sent. Files come from a directory that others may
 * have filled: a reader checks all of it.
 */
enum {
	LETTER_REASON_MAX = 1 << 20,                             /* bytes of a reason file */
	LETTER_BODY_MAX = 256 << 20,                             /* of a request, to be read */
	LETTER_NAME = sizeof "20260102T150405.123456789-000001", /* with its zero byte */
	LETTER_WORD = 64
};

/* The word in place of a ledger's reason: the destination accepted the request, but rejected some
 * of its Profiles. It does not say which. */
#define LETTER_PARTIAL "partial_success"

struct letter {
	struct packet *packet;              /* exactly what is lost */
	const struct origin *origin;        /* what is kept of its origin; NULL: nothing */
	const char *destination, *pipeline; /* IDs */
	const char *reason;                 /* a ledger's, or LETTER_PARTIAL */
	const char *error;    /* a fixed word for the last failure; NULL: it was not attempted */
	const char *made_for; /* type of the exporter whose plan rewrote it; NULL: none did */
	uint64_t samples;     /* of the packet that entered the queue */
	uint64_t rejected_profiles; /* with LETTER_PARTIAL */
	uint32_t attempts;
	uint64_t dropped; /* wall clock */
};

/* Appends the reason file. False: the packet's metadata is too large for one. */
bool letter_encode(const struct letter *letter, struct bytes *out);

/* A name for a letter of now: a time and a counter, nothing of a sender. Names sort by age. */
void letter_name(char name[LETTER_NAME]);
/* Is it the name of such a file, which ends in `suffix`? */
bool letter_name_fits(const char *name, const char *suffix);

/* What a reader gets of a letter. */
struct letter_content {
	char reason[LETTER_WORD], made_for[LETTER_WORD]; /* made_for: empty, if nobody rewrote it */
	struct bytes record; /* head and body; letter_content_fini frees */
	struct packet *packet;
};

/* Reads both files; the request may have at most LETTER_BODY_MAX bytes. The error says what is
 * wrong, without a byte of the files. letter_content_fini in any case. */
bool letter_read(int directory, const char *name, struct letter_content *content,
		 struct error *err);
/* Its steps: the reason file, which leaves the head in `record`; then, when the caller has appended
 * the request, the packet. letter_content_fini in any case. */
bool letter_parse(struct view reason, struct letter_content *content, struct error *err);
bool letter_open(struct letter_content *content, struct error *err);
void letter_content_fini(struct letter_content *content);

#endif
