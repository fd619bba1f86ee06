/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "profile/pprof/decode_pprof.h"
#include "profile/stores/ingest_kind.h"
#include "profile/stores/ingest_time.h"
#include "profile/stores/raw_request.h"
#include "profile/stores/series_name.h"

#include <stdlib.h>

/* What clients of Pyroscope and Parca send: names of series, times, sample_type_config, and
 * requests of series, whose profiles are decoded with the labels of their series. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { CAP = 16 << 20 };

static const struct label_limits limits = {
	.max_profiles = 64, .max_labels = 8, .max_name_length = 32, .max_value_length = 32
};

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void check_set(const struct label_set *set)
{
	must(set->count <= LABEL_SET_MAX);
	for (uint32_t i = 0; i < set->count; i++)
		for (uint32_t k = 0; k < i; k++)
			must(!view_equal(set->at[i].name, set->at[k].name));
}

static void name(struct view input)
{
	struct label_set set;
	struct view service;
	struct error err = { 0 };
	if (!series_name_parse(input, &limits, &service, &set, &err)) {
		must(err.kind == ERROR_INVALID && err.text[0]);
		return;
	}
	must(service.len && set.count <= limits.max_labels);
	label_set_drop_reserved(&set);
	label_set_name_service(&set);
	check_set(&set);
}

static void decode(struct profiles *p, struct view profile, struct label_set *set)
{
	struct error err = { 0 };
	struct ingest_displays none = { 0 };
	label_set_put(set, (struct label_text){ view_of("__delta__"), view_of("true") });
	label_set_name_service(set);
	check_set(set);
	if (!profiles_reset(p, NULL, profile, CAP) || !decode_pprof(p, profile, NULL, &err))
		return;
	struct resource *resource = &p->resources.at[0];
	ingest_kind_name(p, &p->scopes.at[resource->scopes.first], &none);
	must(label_set_attach(set, p, resource, &err));
	must(resource->attributes.count <= set->count);
}

static void push(enum raw_request_form form, struct view body)
{
	static struct profiles p;
	static struct raw_request r;
	struct error err = { 0 };
	struct view profile;
	enum raw_request_more more;
	uint32_t found = 0;
	r.form = form;
	r.limits = &limits;
	bool ok = raw_request_open(&r, body, &err);
	while ((more = raw_request_next(&r, &profile, &err)) != RAW_REQUEST_END) {
		must(++found <= limits.max_profiles);
		if (more == RAW_REQUEST_PROFILE)
			decode(&p, profile, &r.labels);
		else
			must(err.kind == ERROR_INVALID && err.text[0]);
	}
	must(ok || !found);
}

static void displays(struct view json)
{
	struct ingest_displays d = { 0 };
	struct error err = { 0 };
	if (ingest_displays_parse(json, &d, &err))
		must(d.count <= INGEST_KIND_DISPLAYS && d.used <= sizeof d.text);
	else
		must(err.kind == ERROR_INVALID);
}

/* The first byte chooses the parser. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (!len)
		return 0;
	uint8_t *input = memory_new(len + BYTES_SLACK);
	memcpy(input, data + 1, len - 1);
	struct view view = { input, len - 1 };
	switch (data[0] % 4) {
	case 0:
		name(view);
		break;
	case 1:
		ingest_time(view, UINT64_C(1700000000000000000));
		break;
	case 2:
		displays(view);
		break;
	default:
		push(data[0] & 4 ? RAW_REQUEST_WRITE_RAW : RAW_REQUEST_PUSH, view);
	}
	memory_free(input);
	return 0;
}
