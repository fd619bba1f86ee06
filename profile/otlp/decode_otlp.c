/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests. The dictionary is decoded first, regardless of its position. Resources, scopes,
 * Profiles and samples follow in wire order. If a sub-message that may occur once (Resource,
 * InstrumentationScope, ValueType) occurs twice, the two merge as in protobuf: lists are
 * concatenated, and the last scalar is used.
 */
#include "profile/otlp/decode_otlp.h"
#include "profile/otlp/decode_layout.h"
#include "profile/otlp/decoder.h"

#include <stdio.h>

MESSAGE(request, "resource_profiles", "dictionary");
MESSAGE(resource_profiles, "resource", "scope_profiles", "schema_url");
MESSAGE(resource, "attributes", "dropped_attributes_count", "entity_refs");
MESSAGE(entity_ref, "schema_url", "type", "id_keys", "description_keys");
MESSAGE(scope_profiles, "scope", "profiles", "schema_url");
MESSAGE(scope, "name", "version", "attributes", "dropped_attributes_count");
MESSAGE(value_kind, "type_strindex", "unit_strindex");
MESSAGE(profile, "sample_type", "samples", "time_unix_nano", "duration_nano", "period_type",
	"period", "profile_id", "dropped_attributes_count", "original_payload_format",
	"original_payload", "attribute_indices");

static bool decode_value_kind(struct decoder *d, const char *const fields[2], struct view v,
			      struct value_kind *kind, uint8_t *fault)
{
	struct wire w = wire_of(v);
	uint32_t tag = 0;
	while (wire_more(&w)) {
		tag = wire_tag(&w);
		if (tag == WIRE_TAG(1, WIRE_VARINT))
			kind->type =
				decoder_index(d, fields[0], TABLE_STRING, wire_varint(&w), fault);
		else if (tag == WIRE_TAG(2, WIRE_VARINT))
			kind->unit =
				decoder_index(d, fields[1], TABLE_STRING, wire_varint(&w), fault);
		else
			decoder_other(&w, tag, &value_kind);
	}
	return decoder_end(d, &w, tag, &value_kind);
}

static void decode_profile_id(struct decoder *d, struct view v, struct profile *f)
{
	f->profile_id = decoder_span(d, v);
	if (v.len && v.len != 16)
		f->fault = decoder_fault(d, FAULT_ID, "profile_id", "has the wrong length");
}

/* Decodes all fields of a Profile except its samples, which it counts. */
static bool decode_profile_fields(struct decoder *d, struct wire w, struct profile *f,
				  uint32_t *samples)
{
	static const char *const sample_type[] = { "sample_type.type_strindex",
						   "sample_type.unit_strindex" };
	static const char *const period_type[] = { "period_type.type_strindex",
						   "period_type.unit_strindex" };
	uint32_t tag = 0;
	while (wire_more(&w)) {
		tag = wire_tag(&w);
		switch (tag) {
		case WIRE_TAG(1, WIRE_LEN):
			f->has_sample_type = 1;
			if (!decode_value_kind(d, sample_type, wire_len(&w), &f->sample_type,
					       &f->fault))
				return false;
			break;
		case WIRE_TAG(2, WIRE_LEN):
			do {
				wire_len(&w);
				++*samples;
			} while (wire_is(&w, WIRE_TAG(2, WIRE_LEN)));
			break;
		case WIRE_TAG(3, WIRE_FIXED64):
			f->time = wire_fixed64(&w);
			break;
		case WIRE_TAG(4, WIRE_VARINT):
			f->duration = wire_varint(&w);
			break;
		case WIRE_TAG(5, WIRE_LEN):
			f->has_period_type = 1;
			if (!decode_value_kind(d, period_type, wire_len(&w), &f->period_type,
					       &f->fault))
				return false;
			break;
		case WIRE_TAG(6, WIRE_VARINT):
			f->period = (int64_t)wire_varint(&w);
			break;
		case WIRE_TAG(7, WIRE_LEN):
			decode_profile_id(d, wire_len(&w), f);
			break;
		case WIRE_TAG(8, WIRE_VARINT):
			f->dropped_attributes = (uint32_t)wire_varint(&w);
			break;
		/* original_payload_format and original_payload: not read */
		case WIRE_TAG(9, WIRE_LEN):
		case WIRE_TAG(10, WIRE_LEN):
			wire_len(&w);
			break;
		case WIRE_TAG(11, WIRE_LEN):
			if (!decoder_indices(d, "attribute_indices", TABLE_ATTRIBUTE, wire_len(&w),
					     &f->fault))
				return false;
			break;
		case WIRE_TAG(11, WIRE_VARINT):
			if (!decoder_one_index(d, "attribute_indices", TABLE_ATTRIBUTE,
					       wire_varint(&w), &f->fault))
				return false;
			break;
		default:
			decoder_other(&w, tag, &profile);
		}
	}
	return decoder_end(d, &w, tag, &profile);
}

/* inherited: enum fault of the resource or scope. */
static bool decode_profile(struct decoder *d, struct view v, void *inherited)
{
	struct profiles *p = d->p;
	struct profile f = { .fault = *(uint8_t *)inherited, .attributes.first = p->indices.count };
	uint32_t samples = 0;
	d->level = LEVEL_PROFILE;
	f.samples.first = p->samples.count;
	if (!decode_profile_fields(d, wire_of(v), &f, &samples))
		return false;
	f.attributes.count = p->indices.count - f.attributes.first;
	if (!decode_samples(d, v, samples, &f.fault))
		return false;
	if (!profiles_room(p, &p->profiles, 1))
		return decoder_full(d);
	f.samples.count = p->samples.count - f.samples.first;
	if (f.fault) {
		p->rejected_profiles++;
		p->rejected_samples += f.samples.count;
	}
	p->profiles.at[p->profiles.count++] = f;
	d->profile++;
	return true;
}

/* Decodes one attribute of a resource or scope into a new record. Appends its index to
 * `indices`. */
static bool decode_attribute(struct decoder *d, struct view v, uint8_t *fault)
{
	struct profiles *p = d->p;
	if (!profiles_room(p, &p->attributes, 1) || !profiles_room(p, &p->indices, 1))
		return decoder_full(d);
	uint32_t slot = p->attributes.count++;
	p->indices.at[p->indices.count++] = slot;
	if (!decode_value_key_value(d, v, slot, 0))
		return false;
	if (!*fault)
		*fault = p->attributes.at[slot].fault;
	return true;
}

static bool decode_scope(struct decoder *d, struct view v, struct scope *s, uint8_t *fault)
{
	struct wire w = wire_of(v);
	uint32_t tag = 0;
	while (wire_more(&w)) {
		tag = wire_tag(&w);
		switch (tag) {
		case WIRE_TAG(1, WIRE_LEN):
			if (!decoder_text(d, wire_len(&w), &s->name))
				return false;
			break;
		case WIRE_TAG(2, WIRE_LEN):
			if (!decoder_text(d, wire_len(&w), &s->version))
				return false;
			break;
		case WIRE_TAG(3, WIRE_LEN):
			if (!decode_attribute(d, wire_len(&w), fault))
				return false;
			break;
		case WIRE_TAG(4, WIRE_VARINT):
			s->dropped_attributes = (uint32_t)wire_varint(&w);
			break;
		default:
			decoder_other(&w, tag, &scope);
		}
	}
	return decoder_end(d, &w, tag, &scope);
}

/* inherited: enum fault of the resource. */
static bool decode_scope_profiles(struct decoder *d, struct view v, void *inherited)
{
	struct profiles *p = d->p;
	uint8_t fault = *(uint8_t *)inherited;
	struct scope s = { .attributes.first = p->indices.count,
			   .profiles.first = p->profiles.count };
	struct wire w = wire_of(v);
	uint32_t tag = 0;
	d->level = LEVEL_SCOPE;
	while (wire_more(&w)) {
		tag = wire_tag(&w);
		switch (tag) {
		case WIRE_TAG(1, WIRE_LEN):
			if (!decode_scope(d, wire_len(&w), &s, &fault))
				return false;
			break;
		case WIRE_TAG(2, WIRE_LEN):
			wire_len(&w);
			break;
		case WIRE_TAG(3, WIRE_LEN):
			if (!decoder_text(d, wire_len(&w), &s.schema_url))
				return false;
			break;
		default:
			decoder_other(&w, tag, &scope_profiles);
		}
	}
	s.attributes.count = p->indices.count - s.attributes.first;
	d->profile = 0;
	if (!decoder_end(d, &w, tag, &scope_profiles) ||
	    !decoder_each(d, v, 2, decode_profile, &fault))
		return false;
	s.profiles.count = p->profiles.count - s.profiles.first;
	if (!profiles_room(p, &p->scopes, 1))
		return decoder_full(d);
	p->scopes.at[p->scopes.count++] = s;
	d->scope++;
	return true;
}

/* Appends a string index to `indices`, which extends the list at its end. */
static bool decode_key(struct decoder *d, struct view v, void *list)
{
	struct profiles *p = d->p;
	if (!profiles_room(p, &p->indices, 1))
		return decoder_full(d);
	((struct list *)list)->count++;
	return decoder_text(d, v, &p->indices.at[p->indices.count++]);
}

static bool decode_entity(struct decoder *d, struct view v, void *unused)
{
	(void)unused;
	struct profiles *p = d->p;
	struct entity e = { 0 };
	struct wire w = wire_of(v);
	uint32_t tag = 0;
	while (wire_more(&w)) {
		tag = wire_tag(&w);
		switch (tag) {
		case WIRE_TAG(1, WIRE_LEN):
			if (!decoder_text(d, wire_len(&w), &e.schema_url))
				return false;
			break;
		case WIRE_TAG(2, WIRE_LEN):
			if (!decoder_text(d, wire_len(&w), &e.type))
				return false;
			break;
		case WIRE_TAG(3, WIRE_LEN):
		case WIRE_TAG(4, WIRE_LEN):
			wire_len(&w);
			break;
		default:
			decoder_other(&w, tag, &entity_ref);
		}
	}
	e.id_keys.first = p->indices.count;
	if (!decoder_end(d, &w, tag, &entity_ref) || !decoder_each(d, v, 3, decode_key, &e.id_keys))
		return false;
	e.description_keys.first = p->indices.count;
	if (!decoder_each(d, v, 4, decode_key, &e.description_keys))
		return false;
	if (!profiles_room(p, &p->entities, 1))
		return decoder_full(d);
	p->entities.at[p->entities.count++] = e;
	return true;
}

static bool decode_resource(struct decoder *d, struct view v, struct resource *r)
{
	struct wire w = wire_of(v);
	uint32_t tag = 0;
	while (wire_more(&w)) {
		tag = wire_tag(&w);
		switch (tag) {
		case WIRE_TAG(1, WIRE_LEN):
			if (!decode_attribute(d, wire_len(&w), &r->fault))
				return false;
			break;
		case WIRE_TAG(2, WIRE_VARINT):
			r->dropped_attributes = (uint32_t)wire_varint(&w);
			break;
		case WIRE_TAG(3, WIRE_LEN):
			wire_len(&w);
			break;
		default:
			decoder_other(&w, tag, &resource);
		}
	}
	return decoder_end(d, &w, tag, &resource);
}

/* Decodes the entity references of a resource, after all of its attributes are contiguous. */
static bool decode_entities(struct decoder *d, struct view v, void *unused)
{
	return decoder_each(d, v, 3, decode_entity, unused);
}

static bool decode_resource_fields(struct decoder *d, struct wire w, struct resource *r)
{
	uint32_t tag = 0;
	while (wire_more(&w)) {
		tag = wire_tag(&w);
		switch (tag) {
		case WIRE_TAG(1, WIRE_LEN):
			if (!decode_resource(d, wire_len(&w), r))
				return false;
			break;
		case WIRE_TAG(2, WIRE_LEN):
			wire_len(&w);
			break;
		case WIRE_TAG(3, WIRE_LEN):
			if (!decoder_text(d, wire_len(&w), &r->schema_url))
				return false;
			break;
		default:
			decoder_other(&w, tag, &resource_profiles);
		}
	}
	return decoder_end(d, &w, tag, &resource_profiles);
}

static bool decode_resource_profiles(struct decoder *d, struct view v, void *unused)
{
	struct profiles *p = d->p;
	struct resource r = { .attributes.first = p->indices.count,
			      .entities.first = p->entities.count,
			      .scopes.first = p->scopes.count };
	d->level = LEVEL_RESOURCE;
	if (!decode_resource_fields(d, wire_of(v), &r))
		return false;
	r.attributes.count = p->indices.count - r.attributes.first;
	d->scope = 0;
	if (!decoder_each(d, v, 1, decode_entities, unused) ||
	    !decoder_each(d, v, 2, decode_scope_profiles, &r.fault))
		return false;
	r.entities.count = p->entities.count - r.entities.first;
	r.scopes.count = p->scopes.count - r.scopes.first;
	if (!profiles_room(p, &p->resources, 1))
		return decoder_full(d);
	p->resources.at[p->resources.count++] = r;
	d->resource++;
	return true;
}

static bool find_dictionaries(struct decoder *d, struct view *dictionaries, uint32_t *count)
{
	struct wire w = wire_of(d->p->input);
	uint32_t tag = 0;
	while (wire_more(&w)) {
		tag = wire_tag(&w);
		if (tag == WIRE_TAG(1, WIRE_LEN)) {
			wire_len(&w);
		} else if (tag == WIRE_TAG(2, WIRE_LEN)) {
			if (*count == DICTIONARIES_MAX)
				return decoder_malformed(d, "dictionary", "occurs too often");
			dictionaries[(*count)++] = wire_len(&w);
		} else {
			decoder_other(&w, tag, &request);
		}
	}
	return decoder_end(d, &w, tag, &request);
}

static bool decode_request(struct decoder *d)
{
	struct view dictionaries[DICTIONARIES_MAX];
	uint32_t count = 0;
	return find_dictionaries(d, dictionaries, &count) &&
	       decode_dictionary(d, dictionaries, count) &&
	       decoder_each(d, d->p->input, 1, decode_resource_profiles, NULL);
}

/* Another layout than the current one is not an error yet. */
static bool judge(const struct decoder *d, bool decoded, struct otlp_layout *layout)
{
	struct layout_verdict verdict = decode_layout_judge(d->evidence);
	if (!decoded || !decode_layout_is(verdict, OTLP_CURRENT))
		verdict = decode_layout_judge(d->evidence | decode_layout_gather(d->p->input));
	layout->candidates = verdict.candidates;
	layout->shown = decoded && verdict.shown;
	return decode_layout_is(verdict, OTLP_CURRENT);
}

static bool finish(struct decoder *d)
{
	struct profiles *p = d->p;
	if (!profiles_within_cap(p))
		return decoder_full(d);
	if (p->profiles.count && p->rejected_profiles == p->profiles.count)
		return error_set(d->err, ERROR_INVALID, "%s", d->reason);
	snprintf(p->rejection, sizeof p->rejection, "%s", d->reason);
	return true;
}

bool decode_otlp_any(struct profiles *p, struct otlp_layout *layout, struct error *err)
{
	struct error mine;
	error_clear(&mine);
	struct decoder d = { .p = p, .err = &mine, .ascii = p->input.at };
	bool decoded = decode_request(&d);
	bool current = layout->known == OTLP_CURRENT || judge(&d, decoded, layout);
	if (!current)
		return false;
	decoded = decoded && finish(&d);
	if (!decoded && err)
		*err = mine;
	return decoded;
}

bool decode_otlp_refuse(uint32_t candidates, struct error *err)
{
	return decode_layout_refuse((struct layout_verdict){ .candidates = candidates }, err);
}

bool decode_otlp(struct profiles *p, struct error *err)
{
	struct otlp_layout layout = { 0 };
	bool decoded = decode_otlp_any(p, &layout, err);
	if (!decoded && layout.candidates && layout.candidates != UINT32_C(1) << OTLP_CURRENT)
		return decode_otlp_refuse(layout.candidates, err);
	return decoded;
}
