/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_STORES_WRITE_RAW_H
#define PROFILE_STORES_WRITE_RAW_H

#include "profile/packet.h"
#include "profile/stores/series.h"

/*
 * A packet as Parca's WriteRawRequest (parca.profilestore.v1alpha1), in two steps.
 * write_raw_prepare changes open tables such that each resource is one series: its attributes are
 * the labels, its one scope has Profiles that differ in their types alone. What was sealed from
 * these tables write_raw_encode turns into the request, and it needs no rules for that.
 *
 * What Parca does not survive, or spoils for everybody, cannot leave: each series has labels, each
 * Profile a period type, no type or unit is empty or has a character that no query can name.
 */
struct write_raw_rules {
	struct series_rules series;
	/* of all series; NULL: after the types, as Parca's own scraper names them */
	const char *name;
	/* keys of sample attributes that become labels; NULL-terminated, or NULL */
	const char *const *lift;
	uint64_t arrival; /* ns since the epoch: the time of Profiles that have none */
};

enum write_raw_loss {                                         /* behind those of enum series_loss */
		      WRITE_RAW_SAMPLE_LABEL = SERIES_LOSSES, /* Parca stores none: taken off */
		      WRITE_RAW_LOSSES
};

const char *write_raw_loss(int loss); /* its word, for metrics */

/*
 * Samples with a negative sum are taken out: Parca reads them back as huge numbers. What else is
 * lost is added to `lost`, by reason. False with ERROR_TOO_LARGE when the tables would pass their
 * cap.
 */
bool write_raw_prepare(struct profiles *p, const struct write_raw_rules *rules,
		       uint64_t lost[WRITE_RAW_LOSSES], struct error *err);

/*
 * Appends the request. normalized: addresses are the executable's own already, and no mapping's
 * start is to be taken off. False with ERROR_TOO_LARGE when it does not fit.
 */
bool write_raw_encode(const struct packet *packet, bool normalized, struct bytes *out,
		      struct error *err);

#endif
