/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_INTAKE_INFLATE_H
#define PIPELINE_INTAKE_INFLATE_H

#include "base/size_limit.h"
#include "net/compress.h"
#include "pipeline/inbound.h"

/*
 * Decompresses `raw` into a worker's buffer, at most limit->max bytes. The decompressed size is not
 * known in advance, and a size that the data states cannot be trusted. Memory is therefore charged
 * in steps, so that little is decompressed twice and nothing grows without a charge. `*held` is
 * what is already charged for the request; the bytes of `out` are added to it. [worker]
 */
bool inbound_inflate(struct inbound *in, enum coding coding, struct view raw,
		     const struct size_limit *limit, size_t *held, struct bytes *out,
		     struct error *err);

#endif
