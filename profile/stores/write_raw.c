/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/stores/write_raw.h"
#include "profile/otlp/decode_otlp.h"
#include "profile/pprof/encode_pprof.h"
#include "profile/wire.h"

enum { REQUEST_SERIES = 2, REQUEST_NORMALIZED = 3 };
enum { SERIES_LABELSET = 1, SERIES_SAMPLES = 2 };
enum { LABELSET_LABELS = 1, LABEL_NAME = 1, LABEL_VALUE = 2, SAMPLE_RAW_PROFILE = 1 };

struct writing {
	const struct profiles *p;
	struct bytes labels; /* scratch: a LabelSet */
	struct bytes *out;
};

/* Begins a field whose payload of `len` bytes follows. */
static bool add_header(struct bytes *out, uint32_t number, size_t len)
{
	if (!bytes_reserve(out, 20))
		return false;
	uint8_t *end = wire_put_varint(wire_put_tag(out->at + out->len, number, WIRE_LEN), len);
	out->len = (size_t)(end - out->at);
	return true;
}

static bool add_label(struct bytes *out, struct view name, struct view value)
{
	size_t len = wire_len_len(LABEL_NAME, name.len) + wire_len_len(LABEL_VALUE, value.len);
	return add_header(out, LABELSET_LABELS, len) && wire_add_len(out, LABEL_NAME, name) &&
	       wire_add_len(out, LABEL_VALUE, value);
}

static bool add_labels(struct writing *w, const struct resource *resource)
{
	const struct profiles *p = w->p;
	bool ok = true;
	w->labels.len = 0;
	for (uint32_t i = 0; i < resource->attributes.count && ok; i++) {
		const struct attribute *a =
			&p->attributes.at[p->indices.at[resource->attributes.first + i]];
		ok = add_label(&w->labels, string_view(p, a->key), string_view(p, a->string));
	}
	return ok;
}

/* The LabelSet is always written: Parca crashes without it. */
static bool add_series(const struct pprof_out *pprof, void *context)
{
	struct writing *w = context;
	if (!add_labels(w, &w->p->resources.at[pprof->resource]))
		return false;
	size_t sample = wire_len_len(SAMPLE_RAW_PROFILE, pprof->bytes.len);
	size_t series =
		wire_len_len(SERIES_LABELSET, w->labels.len) + wire_len_len(SERIES_SAMPLES, sample);
	return add_header(w->out, REQUEST_SERIES, series) &&
	       wire_add_len(w->out, SERIES_LABELSET, bytes_view(&w->labels)) &&
	       add_header(w->out, SERIES_SAMPLES, sample) &&
	       wire_add_len(w->out, SAMPLE_RAW_PROFILE, pprof->bytes);
}

bool write_raw_encode(const struct packet *packet, bool normalized, struct bytes *out,
		      struct error *err)
{
	struct profiles p = { 0 };
	struct writing w = { .p = &p, .out = out };
	bytes_init(&w.labels, out->max);
	bool ok = profiles_reset(&p, NULL, bytes_view(&packet->otlp), PROFILES_INPUT_MAX) &&
		  decode_otlp(&p, err);
	if (ok && !(encode_pprof(&p, false, add_series, &w, err) &&
		    (!normalized || wire_add_varint(out, REQUEST_NORMALIZED, 1))))
		ok = error_set(err, ERROR_TOO_LARGE, "the request would exceed %zu bytes",
			       out->max);
	bytes_fini(&w.labels);
	profiles_fini(&p);
	return ok;
}
