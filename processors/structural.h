/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROCESSORS_STRUCTURAL_H
#define PROCESSORS_STRUCTURAL_H

#include "profile/profiles.h"
#include "profile/sites.h"

/*
 * The attributes without which a store cannot use a profile (OpenTelemetry semantic conventions,
 * profiles and pprof): build ids, frame types, what the conversion back to pprof needs. Each is
 * valid only at its site, with at most STRUCTURAL_MAX bytes and a value of its grammar, so nothing
 * else can pass under its name.
 */
#define STRUCTURAL_MAX 128

enum structural_grammar {
	/* hex of 8, 16, 20 or 32 bytes: what linkers produce for fast, md5 and uuid, sha1,
	 * sha256 */
	STRUCTURAL_GNU_BUILD_ID,
	STRUCTURAL_HTLHASH,     /* hex of 16 bytes */
	STRUCTURAL_GO_BUILD_ID, /* two or four parts of 20 base64url characters, joined by "/" */
	STRUCTURAL_FRAME_TYPE,  /* a word of the convention, "unknown", "abort-marker" */
	STRUCTURAL_BOOL,
	STRUCTURAL_TYPE_ORDER, /* different integers below the number of the scope's Profiles */
	STRUCTURAL_SAMPLE_TYPE /* equal to the sample type of a Profile of the scope */
};

struct structural {
	const char *key;
	enum site site;
	enum structural_grammar grammar;
	const char *help; /* the grammar, for the manual */
};

extern const struct structural structurals[]; /* key == NULL ends */

/* Is it one, at this site? scope is that of SITE_SCOPE, else NULL. */
bool structural_passes(const struct profiles *p, enum site site, const struct attribute *a,
		       const struct scope *scope);

/*
 * Is it an ID, by key and value, that no detector needs to scan: a build ID at its site, or an
 * attribute trace_id or span_id? A value of decimal digits only is not an ID, because a card number
 * also has 16 digits.
 */
bool structural_is_id(const struct profiles *p, enum site site, const struct attribute *a);

#endif
