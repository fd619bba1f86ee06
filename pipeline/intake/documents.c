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
	size_t held = d->held;
	if (!inbound_inflate(in, coding, *document, d->max, &held, &buffers->inflated, err))
		return INBOUND_REJECTED;
	*document = bytes_view(&buffers->inflated);
	return next;
}
