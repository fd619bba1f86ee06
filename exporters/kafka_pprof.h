/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTERS_KAFKA_PPROF_H
#define EXPORTERS_KAFKA_PPROF_H

#include "pipeline/delivery/unsupported.h"
#include "profile/collect/split.h"

/*
 * The encoding `pprof`: each message is one pprof, compressed with gzip, as the profile's sender
 * made it. The attributes of its resource are headers, because pprof has no place for them.
 *
 * The request (FORM_REQUEST) of a part has both: the length of the headers in four bytes, big
 * endian; for each header its name and its value, each with a NUL byte behind it; the pprof.
 */
struct kafka_content {
	struct view value;
	const uint8_t *headers, *headers_end;
};

/* What cannot be carried is counted here. */
void kafka_pprof_init(struct unsupported *unsupported, struct metrics *metrics,
		      const char *exporter);
/* Splits into parts of one pprof each, within the limits. */
bool kafka_pprof_plan(const struct packet *packet, const struct limits *wanted,
		      const struct split_measure *measure, const struct unsupported *unsupported,
		      struct parts *parts, struct error *err);
/* Of a packet that kafka_pprof_plan made: valid as long as the packet. */
bool kafka_pprof_read(struct packet *packet, struct kafka_content *out, struct error *err);
/* The next header, borrowed from the packet. False: there are no more. */
bool kafka_pprof_header(struct kafka_content *content, struct metadatum *header);

#endif
