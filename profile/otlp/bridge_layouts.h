/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_OTLP_BRIDGE_LAYOUTS_H
#define PROFILE_OTLP_BRIDGE_LAYOUTS_H

#include "base/bytes.h"
#include "profile/wire.h"

/*
 * The messages of OTLP 1.3 to 1.7: for each field number what it is (an enum below; 0: nothing that
 * is translated) and the wire types that it may have. Numbers: opentelemetry-proto v1.3.2
 * (profiles/v1experimental/pprofextended.proto, profiles.proto), v1.4.0, v1.5.0, v1.6.0 and v1.7.0
 * (profiles/v1development/profiles.proto).
 */

/* Tables, in the message that has them: Profile, ProfilesData or ProfilesDictionary. The first ones
 * are an enum bridge_table. */
enum { OLD_UNIT = 8 /* attribute_units */ };

enum old_profile {
	OLD_SAMPLE_TYPE = 1,
	OLD_SAMPLE,
	OLD_LOCATION_INDICES,
	OLD_TIME,
	OLD_DURATION,
	OLD_PERIOD_TYPE,
	OLD_PERIOD,
	OLD_COMMENT,
	OLD_DEFAULT_STRING, /* its type, a string */
	OLD_DEFAULT_INDEX,  /* its position */
	OLD_ID,
	OLD_DROPPED,
	OLD_ATTRIBUTE_INDICES,
	OLD_INLINE_ATTRIBUTE, /* KeyValue */
	OLD_DROP_FRAMES,
	OLD_KEEP_FRAMES,
	OLD_START, /* of a ProfileContainer */
	OLD_END,
	OLD_PROFILE
};

enum old_sample {
	OLD_RANGE_START = 1,
	OLD_RANGE_LENGTH,
	OLD_LOCATIONS, /* a list in place of the range */
	OLD_VALUES,
	OLD_SAMPLE_ATTRIBUTES,
	OLD_SAMPLE_LINK,
	OLD_TIMESTAMPS,
	OLD_LABEL,
	OLD_SAMPLE_FIELDS
};

enum old_mapping {
	OLD_MEMORY_START = 1,
	OLD_MEMORY_LIMIT,
	OLD_FILE_OFFSET,
	OLD_FILENAME,
	OLD_MAPPING_ATTRIBUTES,
	OLD_BUILD_ID,
	OLD_BUILD_ID_KIND,
	OLD_HAS_FUNCTIONS, /* the four flags in the order of PPROF_KEY_HAS_FUNCTIONS ... */
	OLD_HAS_FILENAMES,
	OLD_HAS_LINE_NUMBERS,
	OLD_HAS_INLINE_FRAMES
};

enum old_location {
	OLD_MAPPING = 1,
	OLD_ADDRESS,
	OLD_LINE,
	OLD_LOCATION_ATTRIBUTES,
	OLD_FOLDED,
	OLD_FRAME_TYPE
};

/* Those of Function, Line, Link, ValueType, AttributeUnit, Label and KeyValue are the field numbers
 * of the current layout, or of the only one. */
enum { OLD_NAME = 1, OLD_SYSTEM_NAME, OLD_FUNCTION_FILENAME, OLD_START_LINE };
enum { OLD_LINE_FUNCTION = 1, OLD_LINE_LINE, OLD_LINE_COLUMN };
enum { OLD_TYPE = 1, OLD_UNIT_OF_TYPE, OLD_TEMPORALITY };
enum { OLD_UNIT_KEY = 1, OLD_UNIT_UNIT };
enum { OLD_LABEL_KEY = 1, OLD_LABEL_STR, OLD_LABEL_NUM, OLD_LABEL_UNIT };
enum { OLD_KEY = 1, OLD_VALUE };

struct old_field {
	uint8_t role;
	uint8_t types; /* 1 << enum wire_type */
};

struct old_message {
	const char *name;
	uint32_t count; /* of the fields, including number 0 */
	const struct old_field *fields;
};

struct old_layout {
	struct old_message container; /* count 0: there is none */
	struct old_message tables, profile, sample, mapping, location, function;
	bool per_profile; /* every Profile has the tables */
	bool dictionary;  /* the tables are in field 2 of the request */
	/* a location without mapping_index has the mapping 0 */
	bool always_mapping;
	/* 1: functions and locations begin with an ID, so that the numbers of their other fields
	 * are one higher; otherwise 0 */
	uint8_t shift;
};

extern const struct old_layout old_layout_1_3, old_layout_1_4, old_layout_1_6, old_layout_1_7;
extern const struct old_message old_line, old_link, old_value_type, old_attribute_unit, old_label,
	old_key_value;

/* Reads the fields that have a role. */
struct old_reader {
	struct wire w;
	const struct old_message *message;
	struct wire_field field; /* value or view, by its type; number is not set */
	uint32_t role, tag;
	const uint8_t *from; /* where the field begins */
};

static inline struct old_reader old_read(struct view view, const struct old_message *message)
{
	return (struct old_reader){ .w = wire_of(view), .message = message };
}

/* False at the end, or when the message is malformed: old_done returns which. */
static inline bool old_next(struct old_reader *r)
{
	while (wire_more(&r->w)) {
		r->from = r->w.at;
		uint32_t tag = wire_tag(&r->w), number = tag >> 3, type = tag & 7;
		const struct old_field *f =
			&r->message->fields[number < r->message->count ? number : 0];
		if (!(f->types >> type & 1)) {
			if (f->role)
				wire_fail(&r->w, WIRE_MISMATCH);
			else
				wire_skip_run(&r->w, tag);
			continue;
		}
		r->role = f->role;
		r->tag = tag;
		r->field.type = type;
		if (type == WIRE_LEN)
			r->field.view = wire_len(&r->w);
		else
			r->field.value =
				type == WIRE_VARINT ? wire_varint(&r->w) : wire_fixed64(&r->w);
		return r->w.at <= r->w.end;
	}
	return false;
}

/* After a field of type LEN: skips those with the same tag that follow. */
static inline void old_skip_more(struct old_reader *r)
{
	while (wire_is_again(&r->w, r->tag))
		wire_len(&r->w);
}

/* After a field of type LEN: is the next one of the same kind? Then it is read. */
static inline bool old_again(struct old_reader *r)
{
	if (!wire_is_again(&r->w, r->tag))
		return false;
	r->field.view = wire_len(&r->w);
	return r->w.at <= r->w.end;
}

#endif
