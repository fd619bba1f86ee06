/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_INTAKE_INFLATE_H
#define PIPELINE_INTAKE_INFLATE_H

#include "net/compress.h"
#include "pipeline/inbound.h"

/*
 * Inflates `raw` into a worker's buffer, at most `cap` bytes. What a body inflates to is not known
 * before, and a claim in it is only a claim: room is charged in steps, so that little is inflated
 * twice and nothing grows uncharged. `*held` is what is charged for the request already; what `out`
 * takes is added to it. [worker]
 */
bool inbound_inflate(struct inbound *in, enum coding coding, struct view raw, size_t cap,
		     size_t *held, struct bytes *out, struct error *err);

#endif
