/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_INTAKE_DOCUMENTS_H
#define PIPELINE_INTAKE_DOCUMENTS_H

#include "base/size_limit.h"
#include "net/compress.h"
#include "pipeline/inbound.h"

/* The format of a receiver's bodies, independent of the transport: which documents a body contains,
 * and how each becomes open tables. Constant. `in` is the first member of the transport's request,
 * which is the first member of the receiver's own struct (request_size in the route). */
struct document_format {
	/*
	 * Translates a decompressed body into the form that `next` and `decode` read: appends to
	 * `out` and sets *body to it, or leaves *body as it is if there is nothing to translate.
	 * `out` is charged as it grows; if it cannot grow, translate returns false without setting
	 * err. Other buffers that it needs meanwhile may have the meter of `out` and a maximum of
	 * 0. NULL: never. [worker or I/O thread]
	 *
	 * Called before the first document is read. If the body is the only document (no `next`),
	 * it is called again when decode has set in->again, with the in->dialect that decode has
	 * found.
	 */
	bool (*translate)(struct inbound *in, struct view *body, struct bytes *out,
			  struct error *err);
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
	struct view sent;        /* as it arrived */
	struct view body;        /* decompressed */
	size_t held;             /* bytes charged for the body */
	struct size_limit limit; /* of a decompressed document */
	size_t cap;              /* maximum of a translation */
	size_t inflated;         /* bytes of the documents that were compressed, so far */
	uint32_t found;
	bool over; /* there are more than max_documents; the rest is not looked at */
};

/* A translation may be this many times larger than the maximum of a body. */
enum { DOCUMENTS_TRANSLATED_MAX = 4 };

/* The compressed documents of one body may together have this many times the limit. Otherwise a
 * body of a few KiB could keep a worker busy for minutes. */
enum { DOCUMENTS_INFLATED_MAX = 16 };

/*
 * Prepares the documents of a body that was sent with `coding`: decompresses it within
 * `limit`, and translates it. `sent` is charged. If in->here is set, a body of which more than
 * `here_max` bytes would have to be processed sets in->moves.
 */
bool documents_load(struct documents *d, const struct document_format *format, struct inbound *in,
		    struct body *buffers, enum coding coding, struct view sent,
		    const struct size_limit *limit, size_t here_max, struct error *err);

/* Translates the document again, because decode has set in->again. A body that is too large for the
 * thread sets in->moves, as above. */
bool documents_translate(struct documents *d, const struct document_format *format,
			 struct inbound *in, struct body *buffers, struct view *document,
			 struct error *err);

/* The next document; if it is compressed, it is decompressed into buffers->inflated. */
enum inbound_next documents_next(struct documents *d, const struct document_format *format,
				 struct inbound *in, struct body *buffers, struct view *document,
				 struct error *err);

#endif
