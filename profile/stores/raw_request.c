/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/stores/raw_request.h"
#include "profile/wire.h"

enum raw_series { SERIES_LABELS = 1, SERIES_SAMPLE };
enum label_set_fields { LABEL_SET_LABEL = 1 };
enum label_pair { LABEL_NAME = 1, LABEL_VALUE };
enum raw_sample { SAMPLE_PROFILE = 1, SAMPLE_EXECUTABLE };

static const struct form {
	const char *name;
	uint32_t series, normalized; /* fields of the request; normalized 0: there is none */
	bool label_set;              /* labels stand in a message of their own */
	uint32_t sample_known;       /* fields of RawSample that are messages or bytes */
} forms[] = {
	[RAW_REQUEST_PUSH] = { "PushRequest", 1, 0, false, SAMPLE_PROFILE },
	[RAW_REQUEST_WRITE_RAW] = { "WriteRawRequest", 2, 3, true, SAMPLE_EXECUTABLE },
};

/* A known field with the wrong wire type ends the reading. */
static bool next_field(struct wire *w, uint32_t known, struct wire_field *f)
{
	if (!wire_next(w, f))
		return false;
	if (f->number && f->number <= known && f->type != WIRE_LEN)
		wire_fail(w, WIRE_MISMATCH);
	return !w->fault;
}

static bool malformed(const struct wire *w, const char *message, struct error *err)
{
	return error_set(err, ERROR_INVALID, "%s: %s", message, wire_fault_text(w->fault));
}

/* Faults inside a series are found when it is read. */
static uint64_t count_profiles(struct view series)
{
	struct wire w = wire_of(series);
	struct wire_field f;
	uint64_t count = 0;
	while (next_field(&w, SERIES_SAMPLE, &f))
		count += f.number == SERIES_SAMPLE;
	return wire_done(&w) ? count : 1;
}

static bool read_request(struct raw_request *r, struct view body, struct error *err)
{
	const struct form *form = &forms[r->form];
	struct wire w = wire_of(body);
	struct wire_field f;
	while (wire_next(&w, &f)) {
		bool series = f.number == form->series, flag = f.number == form->normalized;
		if ((series && f.type != WIRE_LEN) || (flag && f.type != WIRE_VARINT))
			wire_fail(&w, WIRE_MISMATCH);
		else if (series)
			r->profiles += count_profiles(f.view);
		else if (flag)
			r->normalized = f.value != 0;
	}
	return wire_done(&w) || malformed(&w, form->name, err);
}

bool raw_request_open(struct raw_request *r, struct view body, struct error *err)
{
	r->profiles = 0;
	r->normalized = false;
	r->body = (struct view){ body.at, 0 };
	r->at = r->series = 0;
	r->samples = r->body;
	if (!read_request(r, body, err))
		return false;
	if (r->profiles > (uint64_t)r->limits->max_profiles)
		return error_set(err, ERROR_TOO_LARGE,
				 "the request has %llu profiles, more than "
				 "series_limits.max_profiles (%lld)",
				 (unsigned long long)r->profiles,
				 (long long)r->limits->max_profiles);
	if (r->profiles)
		r->body = body;
	return true;
}

static bool read_label(struct raw_request *r, struct view message, struct error *err)
{
	struct wire w = wire_of(message);
	struct wire_field f;
	struct label_text label = { { message.at, 0 }, { message.at, 0 } };
	while (next_field(&w, LABEL_VALUE, &f)) {
		if (f.number == LABEL_NAME)
			label.name = f.view;
		else if (f.number == LABEL_VALUE)
			label.value = f.view;
	}
	if (!wire_done(&w))
		return malformed(&w, "labels", err);
	if (r->labels.seen == r->labels.count && label_set_find(&r->labels, label.name))
		return error_set(err, ERROR_INVALID, "label %u: its name is repeated",
				 r->labels.seen + 1);
	return label_set_add(&r->labels, r->limits, label, err);
}

/* A LabelSet. */
static bool read_label_set(struct raw_request *r, struct view message, struct error *err)
{
	struct wire w = wire_of(message);
	struct wire_field f;
	while (next_field(&w, LABEL_SET_LABEL, &f))
		if (f.number == LABEL_SET_LABEL && !read_label(r, f.view, err))
			return false;
	return wire_done(&w) || malformed(&w, "labels", err);
}

static bool is_named(struct raw_request *r)
{
	const struct label_text *name = label_set_find(&r->labels, view_of("__name__"));
	return name && name->value.len;
}

static bool examine(struct raw_request *r, struct view series, struct error *err)
{
	bool (*read)(struct raw_request *, struct view, struct error *) =
		forms[r->form].label_set ? read_label_set : read_label;
	struct wire w = wire_of(series);
	struct wire_field f;
	label_set_clear(&r->labels);
	while (next_field(&w, SERIES_SAMPLE, &f))
		if (f.number == SERIES_LABELS && !read(r, f.view, err))
			return false;
	if (!wire_done(&w))
		return malformed(&w, "RawProfileSeries", err);
	return label_set_check(&r->labels, r->limits, err) &&
	       (is_named(r) || error_set(err, ERROR_INVALID, "the label __name__ is missing"));
}

/* The next series of the body, which is well-formed. */
static bool find_series(struct raw_request *r, struct view *series)
{
	struct view rest = r->at ? (struct view){ r->body.at + r->at, r->body.len - r->at }
				 : r->body; /* which may be empty, and have no address */
	struct wire w = wire_of(rest);
	struct wire_field f;
	while (wire_next(&w, &f))
		if (f.number == forms[r->form].series) {
			r->at = (size_t)(w.at - r->body.at);
			r->series++;
			*series = f.view;
			return true;
		}
	r->at = r->body.len;
	return false;
}

/* The next sample of the current series, which is well-formed. */
static bool find_sample(struct raw_request *r, struct view *sample)
{
	struct wire w = wire_of(r->samples);
	struct wire_field f;
	while (wire_next(&w, &f))
		if (f.number == SERIES_SAMPLE) {
			r->samples = (struct view){ w.at, (size_t)(w.end - w.at) };
			*sample = f.view;
			return true;
		}
	r->samples.len = 0;
	return false;
}

static bool read_sample(struct raw_request *r, struct view sample, struct view *profile,
			struct error *err)
{
	uint32_t known = forms[r->form].sample_known;
	struct wire w = wire_of(sample);
	struct wire_field f;
	*profile = (struct view){ sample.at, 0 };
	r->executables = 0;
	while (next_field(&w, known, &f)) {
		if (f.number == SAMPLE_PROFILE)
			*profile = f.view;
		else if (f.number == SAMPLE_EXECUTABLE)
			r->executables++;
	}
	return wire_done(&w) || malformed(&w, "RawSample", err);
}

enum raw_request_more raw_request_next(struct raw_request *r, struct view *profile,
				       struct error *err)
{
	struct view sample, series;
	while (!find_sample(r, &sample)) {
		if (!find_series(r, &series))
			return RAW_REQUEST_END;
		if (!count_profiles(series))
			continue;
		if (!examine(r, series, err)) {
			error_prefix(err, "series %u", r->series);
			return RAW_REQUEST_REJECTED;
		}
		r->samples = series;
	}
	if (read_sample(r, sample, profile, err))
		return RAW_REQUEST_PROFILE;
	error_prefix(err, "series %u", r->series);
	return RAW_REQUEST_REJECTED;
}
