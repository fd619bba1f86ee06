/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_OTLP_OTLP_JSON_TABLES_H
#define PROFILE_OTLP_OTLP_JSON_TABLES_H

#include "profile/json_wire.h"
#include "profile/otlp/bridge.h"

/*
 * Shared by the tables of OTLP/JSON: otlp_json.c (the current layout), otlp_json_old.c (the older
 * ones). Besides, only tests include this.
 *
 * A name that belongs to another generation is a mark with that generation: if it is older, the
 * document is translated with the table of that one; if it is newer, the document mixes names of
 * two generations.
 */
extern const struct json_wire_message otlp_json_resource, otlp_json_scope, otlp_json_key_value,
	otlp_json_any_value, otlp_json_function, otlp_json_line, otlp_json_link,
	otlp_json_key_value_and_unit, otlp_json_stack, otlp_json_value_type;

/* Of OTLP_1_3 to OTLP_1_8; NULL: 1.9 has the names of the current layout. */
extern const struct json_wire_message *const otlp_json_old[OTLP_CURRENT];

/* The first half of otlp_json_translate: writes the document in the numbers of its generation. */
bool otlp_json_own(struct view json, struct bytes *out, enum otlp_generation *generation,
		   struct error *err);

#define OTLP_JSON_MARK(name_, generation_) JSON_WIRE_FIELD(generation_, name_, MARK)

/* As JSON_WIRE_TABLE, not static. */
#define OTLP_JSON_SHARED(name_, ...) \
	static const struct json_wire_field name_##_fields[] = { __VA_ARGS__ }; \
	const struct json_wire_message otlp_json_##name_ = { \
		sizeof name_##_fields / sizeof *name_##_fields, name_##_fields \
	}

#endif
