/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATEWAY_LOSSES_H
#define GATEWAY_LOSSES_H

#include "pipeline/ledger.h"

/* The samples that a shutdown loses, by exporter. Initialised with zeros. [loop thread] */
struct losses {
	struct losses_entry {
		char *exporter;
		int64_t samples;
	} * at;
	size_t count;
};

/* Adds to the samples of the exporter. */
void losses_add(struct losses *losses, const char *exporter, int64_t samples);
/* Takes what a shutdown has dropped so far as 0: what counts is dropped after that. */
void losses_begin(struct losses *losses, struct ledger *ledger);
/* Adds what it has dropped. */
void losses_end(struct losses *losses, struct ledger *ledger);
int64_t losses_total(const struct losses *losses);
/* One line with the number of each exporter; none if nothing is lost. */
void losses_log(const struct losses *losses, const struct log *log);
void losses_fini(struct losses *losses);

#endif
