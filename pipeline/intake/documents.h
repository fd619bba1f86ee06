/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_INTAKE_DOCUMENTS_H
#define PIPELINE_INTAKE_DOCUMENTS_H

#include "pipeline/inbound.h"

/* The format of a receiver's bodies, independent of the transport: which documents a body contains,
 * and how each becomes open tables. Constant. `in` is the first member of the transport's request,
 * which is the first member of the receiver's own struct (request_size in the route). */
struct document_format {
	/* Finds document number `index` (from 0, in order) in the decompressed body. NULL: the body
	 * is the only document. INBOUND_REJECTED affects this document only; if the body is so
	 * broken that no further document can be found, INBOUND_END follows. [worker] */
	enum inbound_next (*next)(struct inbound *in, uint32_t index, struct view body,
				  struct view *document, struct error *err);
	/* Decodes profiles->input, the document, into tables that were reset; once per path.
	 * [worker] */
	bool (*decode)(struct inbound *in, struct profiles *profiles, struct error *err);
	/* Documents may be compressed individually (gzip or zstd, recognised by their first
	 * bytes). */
	bool packed;
	uint32_t tables_factor; /* as in struct inbound_ops */
};

/* Iterates over the documents of one body, for both intakes. */
struct documents {
	struct view body; /* decompressed */
	size_t held;      /* bytes charged for the body */
	size_t max;       /* maximum of a decompressed document */
	size_t inflated;  /* bytes of the documents that were compressed, so far */
	uint32_t found;
};

/* The compressed documents of one body may together have this many times `max`. Without this limit,
 * a body of a few KiB could keep a worker busy for minutes. */
enum { DOCUMENTS_INFLATED_MAX = 16 };

/* The next document; if it is compressed, it is decompressed into buffers->inflated. */
enum inbound_next documents_next(struct documents *d, const struct document_format *format,
				 struct inbound *in, struct body *buffers, struct view *document,
				 struct error *err);

#endif
