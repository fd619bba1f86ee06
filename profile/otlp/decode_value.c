/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes: KeyValue, KeyValueAndUnit and AnyValue. References are resolved, so that no later
 * code depends on how a key or a string was sent. Where protobuf would merge, the last occurrence
 * is used: of the members of the oneof, and of two values of one key (arrays are not joined). A
 * key_strindex other than 0 takes precedence over an inline key (the protocol forbids both; 0 means
 * "not set").
 */
#include "profile/otlp/decoder.h"

MESSAGE(any_value, "string_value", "bool_value", "int_value", "double_value", "array_value",
	"kvlist_value", "bytes_value", "string_value_strindex");
MESSAGE(key_value, "key", "value", "key_strindex");
MESSAGE(key_value_and_unit, "key_strindex", "value", "unit_strindex");
MESSAGE(value_list, "values");

static bool decode_value(struct decoder *d, struct view v, struct attribute *a, unsigned depth);

static bool count_children(struct decoder *d, struct view list, uint32_t *count)
{
	struct wire w = wire_of(list);
	uint32_t tag = 0;
	*count = 0;
	while (wire_more(&w)) {
		tag = wire_tag(&w);
		if (tag == WIRE_TAG(1, WIRE_LEN)) {
			wire_len(&w);
			++*count;
		} else {
			decoder_other(&w, tag, &value_list);
		}
	}
	return decoder_end(d, &w, tag, &value_list);
}

static bool decode_child(struct decoder *d, struct view v, struct attribute *parent, uint32_t slot,
			 unsigned depth)
{
	if (parent->type == VALUE_KVLIST) {
		if (!decode_value_key_value(d, v, slot, depth))
			return false;
	} else {
		struct attribute element = { 0 };
		if (!decode_value(d, v, &element, depth))
			return false;
		d->p->attributes.at[slot] = element;
	}
	if (!parent->fault)
		parent->fault = d->p->attributes.at[slot].fault;
	return true;
}

/* The children get adjacent slots first. Their own children follow after all of them. */
static bool decode_children(struct decoder *d, struct view list, struct attribute *a, uint8_t type,
			    unsigned depth)
{
	struct profiles *p = d->p;
	uint32_t count;
	if (depth == VALUE_DEPTH_MAX)
		return decoder_malformed(d, "value", "is nested too deeply");
	if (!count_children(d, list, &count))
		return false;
	if (!profiles_room(p, &p->attributes, count))
		return decoder_full(d);
	uint32_t slot = p->attributes.count;
	p->attributes.count += count;
	a->type = type;
	a->children = (struct list){ slot, count };
	struct wire w = wire_of(list);
	while (wire_more(&w)) {
		uint32_t tag = wire_tag(&w);
		if (tag != WIRE_TAG(1, WIRE_LEN))
			wire_skip(&w, tag);
		else if (!decode_child(d, wire_len(&w), a, slot++, depth + 1))
			return false;
	}
	return true;
}

static void set_string(struct attribute *a, uint32_t string)
{
	a->type = VALUE_STRING;
	a->string = string;
}

static bool decode_value(struct decoder *d, struct view v, struct attribute *a, unsigned depth)
{
	struct wire w = wire_of(v);
	uint32_t tag = 0, string;
	while (wire_more(&w)) {
		tag = wire_tag(&w);
		switch (tag) {
		case WIRE_TAG(1, WIRE_LEN):
			if (!decoder_text(d, wire_len(&w), &string))
				return false;
			set_string(a, string);
			break;
		case WIRE_TAG(2, WIRE_VARINT):
			a->type = VALUE_BOOL;
			a->boolean = wire_varint(&w) != 0;
			break;
		case WIRE_TAG(3, WIRE_VARINT):
			a->type = VALUE_INT;
			attribute_set_integer(a, (int64_t)wire_varint(&w));
			break;
		case WIRE_TAG(4, WIRE_FIXED64):
			a->type = VALUE_DOUBLE;
			attribute_set_integer(a, (int64_t)wire_fixed64(&w));
			break;
		case WIRE_TAG(5, WIRE_LEN):
			if (!decode_children(d, wire_len(&w), a, VALUE_ARRAY, depth))
				return false;
			break;
		case WIRE_TAG(6, WIRE_LEN):
			if (!decode_children(d, wire_len(&w), a, VALUE_KVLIST, depth))
				return false;
			break;
		case WIRE_TAG(7, WIRE_LEN):
			a->type = VALUE_BYTES;
			a->bytes = decoder_span(d, wire_len(&w));
			break;
		case WIRE_TAG(8, WIRE_VARINT):
			set_string(a, decoder_index(d, "string_value_strindex", TABLE_STRING,
						    wire_varint(&w), &a->fault));
			break;
		default:
			decoder_other(&w, tag, &any_value);
		}
	}
	return decoder_end(d, &w, tag, &any_value);
}

bool decode_value_key_value(struct decoder *d, struct view v, uint32_t slot, unsigned depth)
{
	struct attribute a = { 0 };
	struct wire w = wire_of(v);
	struct view key = { 0 };
	uint32_t tag = 0;
	while (wire_more(&w)) {
		tag = wire_tag(&w);
		switch (tag) {
		case WIRE_TAG(1, WIRE_LEN):
			key = wire_len(&w);
			break;
		case WIRE_TAG(2, WIRE_LEN):
			if (!decode_value(d, wire_len(&w), &a, depth))
				return false;
			break;
		case WIRE_TAG(3, WIRE_VARINT):
			a.key = decoder_index(d, "key_strindex", TABLE_STRING, wire_varint(&w),
					      &a.fault);
			break;
		default:
			decoder_other(&w, tag, &key_value);
		}
	}
	if (!decoder_end(d, &w, tag, &key_value) || (!a.key && !decoder_text(d, key, &a.key)))
		return false;
	a.bad_key = d->p->strings.at[a.key].repaired != 0;
	d->p->attributes.at[slot] = a;
	return true;
}

bool decode_value_table_entry(struct decoder *d, struct view v, uint32_t slot)
{
	struct attribute a = { 0 };
	struct wire w = wire_of(v);
	uint32_t tag = 0;
	while (wire_more(&w)) {
		tag = wire_tag(&w);
		switch (tag) {
		case WIRE_TAG(1, WIRE_VARINT):
			a.key = decoder_index(d, "key_strindex", TABLE_STRING, wire_varint(&w),
					      &a.fault);
			break;
		case WIRE_TAG(2, WIRE_LEN):
			if (!decode_value(d, wire_len(&w), &a, 0))
				return false;
			break;
		case WIRE_TAG(3, WIRE_VARINT):
			a.unit = decoder_index(d, "unit_strindex", TABLE_STRING, wire_varint(&w),
					       &a.fault);
			break;
		default:
			decoder_other(&w, tag, &key_value_and_unit);
		}
	}
	if (!decoder_end(d, &w, tag, &key_value_and_unit))
		return false;
	a.bad_key = d->p->strings.at[a.key].repaired != 0;
	d->p->attributes.at[slot] = a;
	return true;
}
