/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_INTAKE_DOCUMENTS_H
#define PIPELINE_INTAKE_DOCUMENTS_H

#include "pipeline/inbound.h"

/*
 * What a receiver knows of its bodies, whatever the transport: which documents are in one, and how
 * each becomes open tables. Constant; `in` is the first member of the transport's request, which is
 * the first member of the receiver's own struct (request_size in the route).
 */
struct document_format {
	/*
	 * Finds document number `index` (from 0, in order) in the inflated body. NULL: the body is
	 * the only document. INBOUND_REJECTED costs this document only; where the body is broken so
	 * that no further one can be found, INBOUND_END follows. [worker]
	 */
	enum inbound_next (*next)(struct inbound *in, uint32_t index, struct view body,
				  struct view *document, struct error *err);
	/* Decodes profiles->input, the document, into reset tables; once per pipeline. [worker] */
	bool (*decode)(struct inbound *in, struct profiles *profiles, struct error *err);
	/* Documents may be gzip or zstd by themselves, recognised by their first bytes. */
	bool packed;
	uint32_t tables_factor; /* as in struct inbound_ops */
};

/* The documents of one body, for the two intakes. */
struct documents {
	struct view body; /* inflated */
	size_t held;      /* bytes that are charged while there is the body */
	size_t max;       /* bytes of an inflated document */
	size_t inflated;  /* bytes of those that were compressed, so far */
	uint32_t found;
};

/* Compressed documents of one body may have this many times `max` together. Without it, a body of a
 * few KiB could keep a worker busy for minutes. */
enum { DOCUMENTS_INFLATED_MAX = 16 };

/* The next one, inflated into buffers->inflated if it is compressed. */
enum inbound_next documents_next(struct documents *d, const struct document_format *format,
				 struct inbound *in, struct body *buffers, struct view *document,
				 struct error *err);

#endif
