/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/pprof/decode_pprof.h"
#include "receivers/parca_private.h"

static struct parca_receiver *receiver_of(const struct parca_request *r)
{
	return r->in.receiver;
}

static void count_unsupported(const struct parca_request *r, enum parca_unsupported what,
			      uint32_t count)
{
	if (count)
		metric_add(receiver_of(r)->unsupported[what], count);
}

static bool is_identifier(struct view name)
{
	for (size_t i = 0; i < name.len; i++) {
		uint8_t c = name.at[i], lower = c | 0x20;
		bool digit = i && c >= '0' && c <= '9';
		if (!digit && c != '_' && (lower < 'a' || lower > 'z'))
			return false;
	}
	return name.len > 0;
}

/* The rule of Prometheus' data model, as Parca up to 0.21 checks it. */
static bool check_names(const struct parca_request *r, struct error *err)
{
	const struct label_set *set = &r->raw.labels;
	if (receiver_of(r)->config->labels.index == PARCA_NAMES_UTF8)
		return true;
	for (uint32_t i = 0; i < set->count; i++)
		if (!is_identifier(set->at[i].name))
			return error_set(err, ERROR_INVALID,
					 "series %u: label %u: its name is not of the form "
					 "[A-Za-z_][A-Za-z0-9_]*, which `labels: legacy` requires",
					 r->raw.series, i + 1);
	return true;
}

/* Before the first profile of a series. */
static bool settle_labels(struct parca_request *r, struct error *err)
{
	const struct label_text *name = label_set_find(&r->raw.labels, view_of("__name__"));
	if (r->settled == r->raw.series)
		return true;
	if (!check_names(r, err))
		return false;
	if (!is_identifier(name->value))
		return error_set(err, ERROR_INVALID,
				 "series %u: the label __name__ is not of the form "
				 "[A-Za-z_][A-Za-z0-9_]*",
				 r->raw.series);
	label_set_name_service(&r->raw.labels);
	r->settled = r->raw.series;
	return true;
}

static bool open_request(struct parca_request *r, struct view body, struct error *err)
{
	r->raw.form = RAW_REQUEST_WRITE_RAW;
	r->raw.limits = &receiver_of(r)->config->limits;
	if (!raw_request_open(&r->raw, body, err))
		return false;
	count_unsupported(r, PARCA_NORMALIZED, r->raw.normalized);
	return true;
}

enum inbound_next parca_documents_next(struct inbound *in, uint32_t index, struct view body,
				       struct view *document, struct error *err)
{
	struct parca_request *r = (struct parca_request *)in;
	if (!index && !open_request(r, body, err))
		return INBOUND_REJECTED;
	switch (raw_request_next(&r->raw, document, err)) {
	case RAW_REQUEST_PROFILE:
		count_unsupported(r, PARCA_EXECUTABLE_INFO, r->raw.executables);
		return settle_labels(r, err) ? INBOUND_DOCUMENT : INBOUND_REJECTED;
	case RAW_REQUEST_REJECTED:
		return INBOUND_REJECTED;
	default:
		return INBOUND_END;
	}
}

/* Parca expects one for each mapping. */
static bool check_executables(const struct parca_request *r, const struct profiles *p,
			      struct error *err)
{
	uint32_t mappings = p->mappings.count - 1;
	return !r->raw.executables || r->raw.executables == mappings ||
	       error_set(err, ERROR_INVALID, "executable_info: %u entries for %u mappings",
			 r->raw.executables, mappings);
}

bool parca_documents_decode(struct inbound *in, struct profiles *p, struct error *err)
{
	struct parca_request *r = (struct parca_request *)in;
	if (!p->input.len)
		return error_set(err, ERROR_INVALID, "series %u: the profile is empty",
				 r->raw.series);
	return decode_pprof(p, p->input, NULL, err) && check_executables(r, p, err) &&
	       label_set_attach(&r->raw.labels, p, &p->resources.at[0], err);
}
