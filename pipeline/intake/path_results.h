/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_INTAKE_PATH_RESULTS_H
#define PIPELINE_INTAKE_PATH_RESULTS_H

#include "base/error.h"
#include "profile/request.h"

/* The results of several paths that got the same data. It is accepted if any of them accepted it
 * that counts. The first error is reported if none did, or to a sender that waits for all. If they
 * differ, the request is incomplete. Initialised with zeros. */
struct path_results {
	bool taken;
	struct error first; /* of those that count */
};

static inline void path_results_note(struct path_results *r, bool taken, bool counts,
				     const struct error *err)
{
	r->taken = r->taken || (taken && counts);
	if (!taken && counts && r->first.kind == ERROR_NONE)
		r->first = *err;
}

/* False: it was not accepted; err is the first error. */
static inline bool path_results_end(const struct path_results *r, struct request *request,
				    struct error *err)
{
	struct ack *ack = request ? request->ack : NULL;
	if (request)
		request->incomplete |= r->taken && r->first.kind != ERROR_NONE;
	if (r->taken && r->first.kind != ERROR_NONE && ack && ack->mode != ACK_ENQUEUE)
		ack_note(ack, r->first.kind == ERROR_BUSY ? ACK_FAILED : ACK_REFUSED);
	if (!r->taken)
		*err = r->first;
	return r->taken;
}

#endif
