/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_STORES_INGEST_KIND_H
#define PROFILE_STORES_INGEST_KIND_H

#include "profile/profiles.h"

/*
 * What Pyroscope's /ingest calls a pprof: the label __name__, by the names of its sample types. A
 * sample type may have a display name, from the form's part sample_type_config:
 *
 *	{"contentions": {"display-name": "block_count", "units": "lock_samples", ...}, ...}
 *
 * The display name counts instead of the type here, and nowhere else; the other members are not
 * used. Without that part, the types of Go's and Node's clients have the display names of `known`
 * in ingest_kind.c.
 */
enum { INGEST_KIND_DISPLAYS = 32, INGEST_DISPLAYS_BYTES = 8192 };

struct ingest_display {
	struct view type, name; /* of `text` */
};

/* Zeroed: without that part. */
struct ingest_displays {
	bool given; /* there is that part, even if it is empty */
	uint32_t count;
	struct ingest_display at[INGEST_KIND_DISPLAYS];
	size_t used;
	uint8_t text[2048];
};

/* Reads a sample_type_config of at most INGEST_DISPLAYS_BYTES bytes. ERROR_INVALID if it is not
 * such an object. */
bool ingest_displays_parse(struct view json, struct ingest_displays *displays, struct error *err);

/* The name of the pprof that the scope's first Profiles make up. A view of a constant, of
 * `displays` or of the tables, valid until these change. Empty: the pprof has no sample type. */
struct view ingest_kind_name(const struct profiles *p, const struct scope *scope,
			     const struct ingest_displays *displays);

#endif
