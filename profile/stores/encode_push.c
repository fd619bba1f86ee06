/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/stores/encode_push.h"

#include "profile/otlp/decode_otlp.h"
#include "profile/pprof/encode_pprof.h"
#include "profile/pprof/pprof.h"
#include "profile/wire.h"

enum push { PUSH_SERIES = 1 };
enum raw_series { SERIES_LABEL = 1, SERIES_SAMPLE };
enum label_pair { LABEL_NAME = 1, LABEL_VALUE };
enum raw_sample { SAMPLE_PROFILE = 1 };

/* Each pprof repeats what a packet contains once. Without this limit, a packet of one megabyte
 * could become gigabytes. */
#define MAX_BASE ((size_t)8 << 20)
#define MAX_TIMES 4

struct request_writer {
	const struct profiles *p;
	struct bytes series, scratch;
	struct error *err;
};

static bool add_label(struct request_writer *w, const struct attribute *a)
{
	w->scratch.len = 0;
	return wire_add_len(&w->scratch, LABEL_NAME, string_view(w->p, a->key)) &&
	       wire_add_len(&w->scratch, LABEL_VALUE, string_view(w->p, a->string)) &&
	       wire_add_len(&w->series, SERIES_LABEL, bytes_view(&w->scratch));
}

static bool add_labels(struct request_writer *w, const struct resource *resource)
{
	const struct profiles *p = w->p;
	for (uint32_t i = 0; i < resource->attributes.count; i++)
		if (!add_label(w, &p->attributes.at[p->indices.at[resource->attributes.first + i]]))
			return error_set(w->err, ERROR_TOO_LARGE,
					 "the labels of the series are too large");
	return true;
}

static bool add_profile(const struct pprof_out *out, void *context)
{
	struct request_writer *w = context;
	w->scratch.len = 0;
	return (wire_add_len(&w->scratch, SAMPLE_PROFILE, out->bytes) &&
		wire_add_len(&w->series, SERIES_SAMPLE, bytes_view(&w->scratch))) ||
	       error_set(w->err, ERROR_TOO_LARGE, "the pprofs of the series are too large");
}

static bool write_series(const struct profiles *p, struct bytes *out, struct error *err)
{
	struct request_writer w = { .p = p, .err = err };
	bytes_init(&w.series, out->max);
	bytes_init(&w.scratch, out->max);
	bool ok = add_labels(&w, p->resources.at) && encode_pprof(p, true, add_profile, &w, err) &&
		  (wire_add_len(out, PUSH_SERIES, bytes_view(&w.series)) ||
		   error_set(err, ERROR_TOO_LARGE, "the series is too large"));
	bytes_fini(&w.series);
	bytes_fini(&w.scratch);
	return ok;
}

static bool write_request(const struct profiles *p, struct bytes *out, struct error *err)
{
	return !p->profiles.count || (p->resources.count == 1 && write_series(p, out, err));
}

size_t encode_push_max(const struct packet *packet)
{
	size_t max = MAX_BASE + MAX_TIMES * packet->otlp.len;
	return max < PROFILES_INPUT_MAX ? max : PROFILES_INPUT_MAX;
}

bool encode_push(const struct packet *packet, struct bytes *out, struct error *err)
{
	struct profiles p = { 0 };
	out->max = encode_push_max(packet);
	bool ok = profiles_reset(&p, NULL, bytes_view(&packet->otlp), SIZE_MAX / 2) &&
		  decode_otlp(&p, err) && write_request(&p, out, err);
	profiles_fini(&p);
	return ok;
}

/* The first field with this number. */
static struct view field(struct view message, uint32_t number)
{
	struct wire w = wire_of(message);
	struct wire_field f;
	while (wire_next(&w, &f))
		if (f.number == number && f.type == WIRE_LEN)
			return f.view;
	return (struct view){ 0 };
}

static uint64_t count_fields(struct view message, uint32_t number)
{
	struct wire w = wire_of(message);
	struct wire_field f;
	uint64_t count = 0;
	while (wire_next(&w, &f))
		count += f.number == number;
	return count;
}

uint64_t encode_push_samples(struct view request)
{
	struct wire w = wire_of(field(request, PUSH_SERIES));
	struct wire_field f;
	uint64_t max = 0;
	while (wire_next(&w, &f)) {
		uint64_t count = f.number == SERIES_SAMPLE
					 ? count_fields(field(f.view, SAMPLE_PROFILE), PPROF_SAMPLE)
					 : 0;
		max = count > max ? count : max;
	}
	return max;
}

struct view encode_push_labels(struct view request)
{
	struct view series = field(request, PUSH_SERIES);
	struct wire w = wire_of(series);
	struct wire_field f;
	series.len = 0;
	while (wire_next(&w, &f) && f.number == SERIES_LABEL)
		series.len = (size_t)(w.at - series.at);
	return series;
}
