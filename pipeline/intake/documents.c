/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/intake/documents.h"

#include "pipeline/intake/inflate.h"
#include "pipeline/intake/request_limits.h"

#include <assert.h>

/* Charges a translation as it grows, with all buffers that have its meter. */
struct translation {
	struct bytes_meter meter;
	struct inbound *in;
	size_t held; /* charged besides it */
	size_t sum;  /* of the maxima of its buffers */
	size_t cap;
	struct error err; /* why it could not grow */
};

enum { TRANSLATION_STEP = 16384, RATIO_FREE = 1 << 20 };

static bool raise_translation(struct bytes_meter *meter, struct bytes *b, size_t need)
{
	struct translation *t = (struct translation *)meter;
	size_t others = t->sum - b->max;
	size_t max = b->max > t->cap / 2 ? t->cap : b->max * 2;
	if (max < TRANSLATION_STEP)
		max = TRANSLATION_STEP;
	if (max < need)
		max = need;
	if (need > t->cap)
		return error_set(&t->err, ERROR_TOO_LARGE,
				 "the request exceeds %zu bytes when it is translated to the "
				 "current version of its protocol",
				 t->cap);
	if (!gate_charge(t->in->gate, t->in, t->held + others + max, &t->err))
		return false;
	t->sum = others + max;
	b->max = max;
	return true;
}

/* A buffer that earlier requests have enlarged is charged from the start. */
static bool translate(struct documents *d, const struct document_format *format, struct inbound *in,
		      struct bytes *out, struct error *err)
{
	struct translation t = { { raise_translation }, in, d->held, 0, d->cap, { 0 } };
	if (out->room > d->cap)
		bytes_fini(out);
	out->len = out->max = 0;
	out->meter = &t.meter;
	bool ok = (!out->room || raise_translation(&t.meter, out, out->room)) &&
		  format->translate(in, &d->body, out, err);
	out->meter = NULL;
	if (!ok && err->kind == ERROR_NONE)
		*err = t.err;
	if (!ok || d->body.at != out->at)
		return ok;
	d->held += out->len;
	return gate_charge(in->gate, in, d->held, err);
}

/* Decompresses a body or document, unless it grows too much. Small ones may grow by any factor. */
static bool inflate_within(struct inbound *in, enum coding coding, struct view sent, size_t max,
			   size_t *held, struct bytes *out, struct error *err)
{
	const struct request_limiter *limiter = gate_limiter(in->gate);
	if (!inbound_inflate(in, coding, sent, max, held, out, err))
		return false;
	return out->len <= RATIO_FREE || !sent.len ||
	       request_limits_allows(limiter, LIMIT_RATIO, out->len / sent.len, err);
}

/* Too large for the thread that runs it: a worker begins again with what was sent. */
static bool move(struct inbound *in, struct view sent, struct error *err)
{
	in->moves = in->here && err->kind == ERROR_TOO_LARGE &&
		    gate_charge(in->gate, in, sent.len, err);
	return false;
}

bool documents_load(struct documents *d, const struct document_format *format, struct inbound *in,
		    struct body *buffers, enum coding coding, struct view sent, size_t max,
		    size_t here_max, struct error *err)
{
	size_t limit = in->here && here_max < max ? here_max : max;
	*d = (struct documents){ .sent = sent, .body = sent, .held = sent.len, .max = max };
	if (coding != CODING_IDENTITY) {
		if (!inflate_within(in, coding, sent, limit, &d->held, &buffers->raw, err))
			return move(in, sent, err);
		d->body = bytes_view(&buffers->raw);
	}
	d->cap = in->here ? limit : limit * DOCUMENTS_TRANSLATED_MAX;
	return !format->translate || translate(d, format, in, &buffers->translated, err) ||
	       move(in, sent, err);
}

bool documents_translate(struct documents *d, const struct document_format *format,
			 struct inbound *in, struct body *buffers, struct view *document,
			 struct error *err)
{
	assert(!format->next);
	if (!translate(d, format, in, &buffers->translated, err))
		return move(in, d->sent, err);
	*document = d->body;
	return true;
}

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
	bool ok = inflate_within(in, coding, document, d->max, &held, out, err);
	d->inflated += ok ? out->len : d->max;
	return ok;
}

enum inbound_next documents_next(struct documents *d, const struct document_format *format,
				 struct inbound *in, struct body *buffers, struct view *document,
				 struct error *err)
{
	const struct request_limiter *limiter = gate_limiter(in->gate);
	if (d->over)
		return INBOUND_END;
	enum inbound_next next = find(d, format, in, document, err);
	d->over = next != INBOUND_END &&
		  !request_limits_allows(limiter, LIMIT_DOCUMENTS, d->found, err);
	if (d->over)
		return INBOUND_REJECTED;
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
