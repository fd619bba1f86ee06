/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_STORES_WRITE_RAW_H
#define PROFILE_STORES_WRITE_RAW_H

#include "profile/packet.h"
#include "profile/stores/series.h"

/*
 * Converts a packet to Parca's WriteRawRequest (parca.profilestore.v1alpha1), in two steps.
 * write_raw_prepare changes open tables so that each resource is one series: its attributes are the
 * labels, and its one scope has Profiles that differ only in their types. write_raw_encode converts
 * a packet that was sealed from these tables into the request, without further rules.
 *
 * Data that crashes Parca, or breaks it for all users, cannot be sent: each series has labels, each
 * Profile has a period type, and no type or unit is empty or contains a character that no query can
 * express.
 */
struct write_raw_rules {
	struct series_rules series;
	/* __name__ of all series; NULL: what the sender named (series_sent_name), else derived
	 * from the types, as Parca's own scraper does */
	const char *name;
	/* keys of sample attributes that become labels; NULL-terminated, or NULL */
	const char *const *lift;
	uint64_t arrival; /* ns since the epoch: the time of Profiles that have none */
};

enum write_raw_loss { /* continues enum series_loss */
		      /* Parca does not store them: removed */
		      WRITE_RAW_SAMPLE_LABEL = SERIES_LOSSES,
		      WRITE_RAW_LOSSES
};

const char *write_raw_loss(int loss); /* the value of the metric's label */

/* Removes samples with a negative sum, which Parca reads back as huge numbers. Other losses are
 * added to `lost`, by reason. False with ERROR_TOO_LARGE if the tables would exceed their cap. */
bool write_raw_prepare(struct profiles *p, const struct write_raw_rules *rules,
		       uint64_t lost[WRITE_RAW_LOSSES], struct error *err);

/* Appends the request. normalized: addresses are already relative to the executable, and the start
 * of the mapping must not be subtracted. False with ERROR_TOO_LARGE if it does not fit. */
bool write_raw_encode(const struct packet *packet, bool normalized, struct bytes *out,
		      struct error *err);

#endif
