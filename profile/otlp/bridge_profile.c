/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles of 1.3 to 1.7. One with several sample types becomes one for each, with the default type
 * first, as profile/pprof has it.
 */
#include "profile/otlp/bridge_old.h"

static bool add_attribute(struct old *o, uint32_t index)
{
	struct bytes *list = &o->buffer[OLD_ATTRIBUTES];
	if (!bytes_reserve(list, 10))
		return false;
	list->len = (size_t)(wire_put_varint(list->at + list->len, index) - list->at);
	return true;
}

static bool add_type(struct old *o, struct view view, struct old_type *type)
{
	struct old_reader r = old_read(view, &old_value_type);
	*type = (struct old_type){ 0 };
	while (old_next(&r)) {
		if (r.role == OLD_TYPE)
			type->type = old_move_string(o, r.field.value);
		else if (r.role == OLD_UNIT_OF_TYPE)
			type->unit = old_move_string(o, r.field.value);
		else
			type->temporality = r.field.value;
	}
	return old_done(o, &r);
}

static bool add_text(struct old *o, enum pprof_key key, uint64_t string)
{
	uint32_t index;
	return !string || (bridge_text_attribute(o->b, key, old_move_string(o, string), &index) &&
			   add_attribute(o, index));
}

/* Fields that a Profile and its container have. */
static bool shared_field(struct old *o, const struct old_reader *r)
{
	struct old_type type;
	uint32_t index;
	switch (r->role) {
	case OLD_TIME:
	case OLD_START:
		o->time = r->field.value ? r->field.value : o->time;
		return true;
	case OLD_DURATION:
		o->duration = r->field.value;
		return true;
	case OLD_PERIOD:
		o->period = r->field.value;
		return true;
	case OLD_DROPPED:
		o->dropped = r->field.value;
		return true;
	case OLD_ID:
		o->id = r->field.view;
		return true;
	case OLD_PERIOD_TYPE:
		o->has_period_type = true;
		if (!add_type(o, r->field.view, &type))
			return false;
		o->period_type = type.type;
		o->period_unit = type.unit;
		return true;
	case OLD_INLINE_ATTRIBUTE:
		return old_inline_attribute(o, r->field.view, &index) && add_attribute(o, index);
	case OLD_ATTRIBUTE_INDICES:
		return old_move_list(o, &r->field, BRIDGE_ATTRIBUTE, &o->buffer[OLD_ATTRIBUTES]);
	case OLD_DROP_FRAMES:
		return add_text(o, PPROF_KEY_DROP_FRAMES, r->field.value);
	case OLD_KEEP_FRAMES:
		return add_text(o, PPROF_KEY_KEEP_FRAMES, r->field.value);
	default:
		return true;
	}
}

/* What is known when all fields have been read. */
struct more {
	uint64_t default_index, default_string;
};

static bool profile_field(struct old *o, const struct old_reader *r, struct more *more)
{
	struct old_type type;
	switch (r->role) {
	case OLD_SAMPLE_TYPE:
		return add_type(o, r->field.view, &type) &&
		       bytes_add(&o->buffer[OLD_TYPES], &type, sizeof type);
	case OLD_LOCATION_INDICES:
		return old_ranges_add(o, &r->field);
	case OLD_COMMENT:
		return old_move_list(o, &r->field, BRIDGE_STRING, &o->buffer[OLD_LIST]);
	case OLD_DEFAULT_INDEX:
		more->default_index = r->field.value;
		return true;
	case OLD_DEFAULT_STRING:
		more->default_string = old_move_string(o, r->field.value);
		return true;
	default:
		return shared_field(o, r);
	}
}

static void find_default(struct old *o, const struct more *more)
{
	const struct old_type *types = (const struct old_type *)o->buffer[OLD_TYPES].at;
	size_t count = o->buffer[OLD_TYPES].len / sizeof *types;
	o->default_type = 0;
	o->default_string = (uint32_t)more->default_string;
	if (more->default_index && more->default_index < count) {
		o->default_type = (uint32_t)more->default_index;
		o->default_string = types[o->default_type].type;
	}
	for (uint32_t i = 0; i < count && more->default_string; i++)
		if (types[i].type == more->default_string) {
			o->default_type = i;
			return;
		}
}

static void pass_samples(struct old *o, struct old_reader *r)
{
	if (!o->samples.from)
		o->samples.from = r->from;
	old_skip_more(r);
	o->samples.to = r->w.at;
}

static bool read_fields(struct old *o, struct view message)
{
	struct old_reader r = old_read(message, &o->layout->profile);
	struct bytes *comments = &o->buffer[OLD_LIST];
	struct more more = { 0 };
	uint32_t index;
	comments->len = 0;
	o->buffer[OLD_TYPES].len = 0;
	o->samples = (struct old_extent){ NULL, NULL };
	old_ranges_begin(o);
	while (old_next(&r)) {
		if (r.role == OLD_SAMPLE)
			pass_samples(o, &r);
		else if (!profile_field(o, &r, &more))
			return false;
	}
	find_default(o, &more);
	return old_done(o, &r) && old_ranges_end(o) &&
	       (!comments->len ||
		(bridge_texts_attribute(o->b, PPROF_KEY_COMMENT, bytes_view(comments), &index) &&
		 add_attribute(o, index)));
}

/* The Profiles that are made. */

/* The values that a sample has, by its timestamps. */
struct shares {
	uint32_t count; /* 0: none is written */
	int64_t first, each;
};

/* A total for all timestamps; as many as there are is what none means. */
static struct shares share(int64_t total, uint32_t times)
{
	if (!times)
		return (struct shares){ 1, total, 0 };
	if (total == times)
		return (struct shares){ 0 };
	int64_t each = total / (int64_t)times;
	return (struct shares){ times, total - each * ((int64_t)times - 1), each };
}

static size_t shares_len(struct shares s)
{
	return s.count ? wire_varint_len((uint64_t)s.first) +
				 (s.count - 1) * wire_varint_len((uint64_t)s.each)
		       : 0;
}

WIRE_HOT uint8_t *put_list(uint8_t *at, uint32_t number, const uint8_t *from, size_t len)
{
	if (!len)
		return at;
	at = wire_put_varint(wire_put_tag(at, number, WIRE_LEN), len);
	return bridge_copy(at, from, len);
}

static uint8_t *put_shares(uint8_t *at, struct shares s, size_t len)
{
	if (!s.count)
		return at;
	at = wire_put_varint(wire_put_tag(at, 4, WIRE_LEN), len);
	at = wire_put_varint(at, (uint64_t)s.first);
	for (uint32_t i = 1; i < s.count; i++)
		at = wire_put_varint(at, (uint64_t)s.each);
	return at;
}

/* values: of an aligned sample, as they are; otherwise NULL */
static bool put_sample(struct old *o, const struct old_record *record, struct view values,
		       struct shares shares)
{
	struct bytes *out = o->b->out;
	const uint8_t *parts = o->buffer[OLD_PARTS].at;
	size_t share_len = shares_len(shares);
	size_t need = (size_t)record->attributes_len + values.len + share_len + record->times_len;
	if (!bytes_reserve(out, need + 80))
		return false;
	uint8_t *start = wire_put_tag(out->at + out->len, 2, WIRE_LEN) + 1, *at = start;
	if (record->stack)
		at = wire_put_varint(wire_put_tag(at, 1, WIRE_VARINT), record->stack);
	at = put_list(at, 2, parts + record->attributes, record->attributes_len);
	if (record->link)
		at = wire_put_varint(wire_put_tag(at, 3, WIRE_VARINT), record->link);
	at = put_list(at, 4, values.at, values.len);
	at = put_shares(at, shares, share_len);
	at = put_list(at, 5, parts + record->times, record->times_len);
	out->len = (size_t)(bridge_wrap(start, at) - out->at);
	return true;
}

/* The value of the type at a position among those that remain. */
static int64_t value_at(const struct old *o, const struct old_record *record, uint32_t position,
			uint32_t *len)
{
	const uint8_t *at = o->buffer[OLD_PARTS].at + record->values;
	struct wire w = wire_of((struct view){ at, record->values_len });
	uint64_t value = 0;
	for (uint32_t i = 0; i <= position && wire_more(&w); i++)
		value = wire_varint(&w);
	*len = (uint32_t)(w.at - at);
	return (int64_t)value;
}

/* position: of the type of the Profile among the remaining values, of which `len` bytes are up to
 * the end of its value */
static bool put_record(struct old *o, const struct old_record *record, uint32_t position,
		       uint32_t *len)
{
	struct shares shares = { 0 };
	struct view values = { NULL, 0 };
	*len = 0;
	if (record->aligned)
		values = (struct view){ o->buffer[OLD_PARTS].at + record->values,
					record->values_len };
	else if (record->values_len)
		shares = share(value_at(o, record, position, len), record->times_len / 8);
	return put_sample(o, record, values, shares);
}

/* The samples of a Profile. The value at position 0 is then taken away; that of a default type
 * further behind is passed later. */
static bool put_records(struct old *o, uint32_t position)
{
	struct old_record *records = (struct old_record *)o->buffer[OLD_RECORDS].at;
	size_t count = o->buffer[OLD_RECORDS].len / sizeof *records;
	for (size_t i = 0; i < count; i++) {
		uint32_t len;
		if (!put_record(o, &records[i], position, &len))
			return false;
		if (!position) {
			records[i].values += len;
			records[i].values_len -= len;
		}
	}
	return true;
}

/* The value of the default type was written first. */
static void pass_values(struct old *o)
{
	struct old_record *records = (struct old_record *)o->buffer[OLD_RECORDS].at;
	size_t count = o->buffer[OLD_RECORDS].len / sizeof *records;
	for (size_t i = 0; i < count; i++) {
		uint32_t len;
		value_at(o, &records[i], 0, &len);
		records[i].values += len;
		records[i].values_len -= len;
	}
}

static bool put_type(struct bytes *out, uint32_t number, uint32_t type, uint32_t unit)
{
	size_t start;
	if (!bridge_open(out, number, &start) || (type && !wire_add_varint(out, 1, type)) ||
	    (unit && !wire_add_varint(out, 2, unit)))
		return false;
	bridge_close(out, start);
	return true;
}

/* All of a Profile but its sample type and samples. */
static bool put_fields(struct old *o, uint32_t temporality)
{
	struct bytes *out = o->b->out;
	struct view attributes = bytes_view(&o->buffer[OLD_ATTRIBUTES]);
	return wire_add_fixed64(out, 3, o->time) && wire_add_varint(out, 4, o->duration) &&
	       (!o->has_period_type || put_type(out, 5, o->period_type, o->period_unit)) &&
	       wire_add_varint(out, 6, o->period) && (!o->id.len || wire_add_len(out, 7, o->id)) &&
	       (!o->dropped || wire_add_varint(out, 8, o->dropped)) &&
	       (!attributes.len || wire_add_len(out, 11, attributes)) &&
	       (!temporality || wire_add_varint(out, 11, temporality));
}

/* One Profile, between what opens it and what closes it. */
static bool open_profile(struct old *o, const struct old_type *type, uint32_t *temporality,
			 size_t *start)
{
	struct bytes *out = o->b->out;
	*temporality = 0;
	return bridge_open(out, 2, start) &&
	       (!type || (put_type(out, 1, type->type, type->unit) &&
			  bridge_temporality(o->b, type->temporality, temporality)));
}

static bool close_profile(struct old *o, uint32_t temporality, size_t start)
{
	if (!put_fields(o, temporality))
		return false;
	bridge_close(o->b->out, start);
	return true;
}

/* With one type or none, each sample is written as soon as it is read. */
static bool take_only(struct old *o, const struct old_record *record)
{
	uint32_t len;
	if (!put_record(o, record, 0, &len))
		return false;
	o->buffer[OLD_PARTS].len = 0;
	return true;
}

static bool put_only(struct old *o, const struct old_type *type, struct view message)
{
	uint32_t temporality;
	size_t start;
	return open_profile(o, type, &temporality, &start) && old_samples(o, message, take_only) &&
	       close_profile(o, temporality, start);
}

/* With several, a Profile is made for each. */
static bool take_record(struct old *o, const struct old_record *record)
{
	return bytes_add(&o->buffer[OLD_RECORDS], record, sizeof *record);
}

static bool put_profile(struct old *o, const struct old_type *type, uint32_t position)
{
	uint32_t temporality;
	size_t start;
	return open_profile(o, type, &temporality, &start) && put_records(o, position) &&
	       close_profile(o, temporality, start);
}

static bool put_profiles(struct old *o, struct view message)
{
	const struct old_type *types = (const struct old_type *)o->buffer[OLD_TYPES].at;
	uint32_t count = (uint32_t)(o->buffer[OLD_TYPES].len / sizeof *types);
	uint32_t first = o->default_type;
	if (count <= 1)
		return put_only(o, count ? types : NULL, message);
	o->buffer[OLD_RECORDS].len = 0;
	if (!old_samples(o, message, take_record) ||
	    (first && !put_profile(o, &types[first], first)))
		return false;
	for (uint32_t i = 0; i < count; i++) {
		if (first && i == first)
			pass_values(o);
		else if (!put_profile(o, &types[i], 0))
			return false;
	}
	return true;
}

/* The order that the types had: where the type of each Profile stood. */
static bool put_order(struct old *o, struct bytes *out)
{
	uint32_t count = (uint32_t)(o->buffer[OLD_TYPES].len / sizeof(struct old_type));
	size_t attribute, value, array;
	if (!bridge_open(out, 3, &attribute) ||
	    !wire_add_len(out, 1, view_of(pprof_keys[PPROF_KEY_SAMPLE_TYPE_ORDER])) ||
	    !bridge_open(out, 2, &value) || !bridge_open(out, 5, &array))
		return false;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t place = i == 0 ? o->default_type : i <= o->default_type ? i - 1 : i;
		size_t element;
		if (!bridge_open(out, 1, &element) || !wire_add_varint(out, 3, place))
			return false;
		bridge_close(out, element);
	}
	bridge_close(out, array);
	bridge_close(out, value);
	bridge_close(out, attribute);
	return true;
}

/* A Profile with a default type has a scope of its own, with attributes that say so. They are a
 * second InstrumentationScope, which protobuf merges with the first one. */
static bool put_default(struct old *o)
{
	struct bytes *out = o->b->out;
	size_t scope, attribute, value;
	if (!bridge_new_scope(o->b) || !bridge_open(out, 1, &scope) ||
	    !bridge_open(out, 3, &attribute) ||
	    !wire_add_len(out, 1, view_of(pprof_keys[PPROF_KEY_DEFAULT_SAMPLE_TYPE])) ||
	    !bridge_open(out, 2, &value) || !wire_add_varint(out, 8, o->default_string))
		return false;
	bridge_close(out, value);
	bridge_close(out, attribute);
	if (o->default_type && !put_order(o, out))
		return false;
	bridge_close(out, scope);
	return true;
}

static bool move_profile(struct old *o, struct view message)
{
	if (!read_fields(o, message) ||
	    !(o->default_string ? put_default(o) : bridge_scope(o->b)) || !put_profiles(o, message))
		return false;
	if (o->default_string)
		bridge_end_scope(o->b);
	return true;
}

/* 1.3: the container's fields, and the Profile in it. */
static bool read_container(struct old *o, struct view message, struct view *profile)
{
	struct old_reader r = old_read(message, &o->layout->container);
	uint64_t end = 0;
	bool found = false;
	while (old_next(&r)) {
		if (r.role == OLD_PROFILE && found)
			return bridge_malformed(o->b, "ProfileContainer",
						"contains several Profiles");
		if (r.role == OLD_PROFILE) {
			*profile = r.field.view;
			found = true;
		} else if (r.role == OLD_END) {
			end = r.field.value;
		}
	}
	if (!old_done(o, &r) || !old_tables(o, *profile))
		return false;
	r = old_read(message, &o->layout->container);
	while (old_next(&r))
		if (!shared_field(o, &r))
			return false;
	o->duration = o->time && end > o->time ? end - o->time : 0;
	return true;
}

bool old_profile(struct old *o, struct view message)
{
	struct view profile = message;
	o->time = o->duration = o->period = o->dropped = 0;
	o->period_type = o->period_unit = 0;
	o->has_period_type = false;
	o->id = (struct view){ NULL, 0 };
	o->buffer[OLD_ATTRIBUTES].len = 0;
	if (!o->layout->container.count)
		return (!o->layout->per_profile || old_tables(o, message)) &&
		       move_profile(o, profile);
	profile.len = 0; /* it may have no Profile */
	return read_container(o, message, &profile) && move_profile(o, profile);
}
