/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/intake/documents.h"

#include "pipeline/intake/inflate.h"

static enum inbound_next find(struct documents *d, const struct document_format *format,
			      struct inbound *in, struct view *document, struct error *err)
{
	uint32_t index = d->found++;
	if (format->next)
		return format->next(in, index, d->body, document, err);
	*document = d->body;
	return index == 0 ? INBOUND_DOCUMENT : INBOUND_END;
}

/* What fails may have been inflated up to the maximum. */
static bool inflate(struct documents *d, struct inbound *in, enum coding coding,
		    struct view document, struct bytes *out, struct error *err)
{
	size_t held = d->held;
	if (d->inflated / DOCUMENTS_INFLATED_MAX >= d->max)
		return error_set(err, ERROR_TOO_LARGE,
				 "the documents of one request decompress to more than %d times "
				 "%zu bytes",
				 DOCUMENTS_INFLATED_MAX, d->max);
	bool ok = inbound_inflate(in, coding, document, d->max, &held, out, err);
	d->inflated += ok ? out->len : d->max;
	return ok;
}

enum inbound_next documents_next(struct documents *d, const struct document_format *format,
				 struct inbound *in, struct body *buffers, struct view *document,
				 struct error *err)
{
	enum inbound_next next = find(d, format, in, document, err);
	if (next != INBOUND_DOCUMENT || !format->packed)
		return next;
	enum coding coding = compress_sniff(*document);
	if (coding != CODING_GZIP && coding != CODING_ZSTD)
		return next;
	if (!inflate(d, in, coding, *document, &buffers->inflated, err))
		return INBOUND_REJECTED;
	*document = bytes_view(&buffers->inflated);
	return next;
}
