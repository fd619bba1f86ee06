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
	const struct size_limit *limit;
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
				 "the request has more than %zu bytes when it is translated to the "
				 "current version of its protocol; the maximum is %d times %s, "
				 "which is %ld",
				 t->cap, DOCUMENTS_TRANSLATED_MAX, t->limit->setting,
				 t->limit->value);
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
	struct translation t = { { raise_translation }, in, d->held, 0, d->cap, &d->limit, { 0 } };
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
static bool inflate_within(struct inbound *in, enum coding coding, struct view sent,
			   const struct size_limit *limit, size_t *held, struct bytes *out,
			   struct error *err)
{
	const struct request_limiter *limiter = gate_limiter(in->gate);
	if (!inbound_inflate(in, coding, sent, limit, held, out, err))
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
		    struct body *buffers, enum coding coding, struct view sent,
		    const struct size_limit *limit, size_t here_max, struct error *err)
{
	struct size_limit now = *limit;
	now.max = in->here && here_max < limit->max ? here_max : limit->max;
	*d = (struct documents){ .sent = sent, .body = sent, .held = sent.len, .limit = *limit };
	if (coding != CODING_IDENTITY) {
		if (!inflate_within(in, coding, sent, &now, &d->held, &buffers->raw, err))
			return move(in, sent, err);
		d->body = bytes_view(&buffers->raw);
	}
	d->cap = in->here ? now.max : now.max * DOCUMENTS_TRANSLATED_MAX;
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
	if (d->inflated / DOCUMENTS_INFLATED_MAX >= d->limit.max)
		return error_set(err, ERROR_TOO_LARGE,
				 "the documents of one request decompress to %lu bytes, and more "
				 "follow; the maximum is %d times %s, which is %ld",
				 d->inflated, DOCUMENTS_INFLATED_MAX, d->limit.setting,
				 d->limit.value);
	bool ok = inflate_within(in, coding, document, &d->limit, &held, out, err);
	d->inflated += ok ? out->len : d->limit.max;
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
