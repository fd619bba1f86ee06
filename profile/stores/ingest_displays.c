/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "profile/stores/ingest_kind.h"

enum { DEPTH_MAX = 8 };

struct displays_reader {
	struct json json;
	struct ingest_displays *displays;
	bool names; /* the last key was display-name */
};

/* Copies it; err is set if the texts are too long together. */
static bool keep(struct displays_reader *r, struct view text, struct view *out)
{
	struct ingest_displays *d = r->displays;
	if (text.len > sizeof d->text - d->used)
		return error_set(r->json.err, ERROR_INVALID, "longer than %zu bytes in all",
				 sizeof d->text);
	*out = (struct view){ d->text + d->used, text.len };
	if (text.len)
		memcpy(d->text + d->used, text.at, text.len);
	d->used += text.len;
	return true;
}

static bool take_type(struct displays_reader *r, struct view type)
{
	struct ingest_displays *d = r->displays;
	if (d->count == INGEST_KIND_DISPLAYS)
		return error_set(r->json.err, ERROR_INVALID, "more than %d sample types",
				 INGEST_KIND_DISPLAYS);
	d->at[d->count].name.len = 0;
	return keep(r, type, &d->at[d->count++].type);
}

/* Objects are at depth 1 (the types) and 2 (what is said of one). */
static bool take(struct displays_reader *r, enum json_token token, struct view text)
{
	const struct json *json = &r->json;
	uint8_t decoded[INGEST_DISPLAYS_BYTES];
	bool names = r->names;
	r->names = false;
	if ((token == JSON_KEY || token == JSON_STRING) && json->escaped)
		text = (struct view){ decoded, json_unescape(text, decoded) };
	if (json->depth == 1 && token == JSON_KEY)
		return take_type(r, text);
	if ((json->depth == 1 && token != JSON_OBJECT && token != JSON_OBJECT_END) ||
	    (json->depth == 2 && token == JSON_ARRAY))
		return error_set(json->err, ERROR_INVALID, "a sample type is not an object");
	if (json->depth == 2 && token == JSON_KEY)
		r->names = view_is(text, "display-name");
	else if (names && token != JSON_STRING && token != JSON_NULL)
		return error_set(json->err, ERROR_INVALID, "display-name is not a string");
	else if (names && token == JSON_STRING)
		return keep(r, text, &r->displays->at[r->displays->count - 1].name);
	return true;
}

static bool read_displays(struct displays_reader *r, struct view document, struct error *err)
{
	enum json_token token;
	struct view text;
	if (!json_begin(&r->json, document, DEPTH_MAX, err))
		return false;
	while ((token = json_next(&r->json, &text)) != JSON_DONE)
		if (token == JSON_FAULT || !take(r, token, text))
			return false;
	return true;
}

bool ingest_displays_parse(struct view json, struct ingest_displays *displays, struct error *err)
{
	struct displays_reader r = { .displays = displays };
	displays->given = true;
	displays->count = displays->used = 0;
	if (json.len > INGEST_DISPLAYS_BYTES)
		return error_set(err, ERROR_INVALID,
				 "sample_type_config: it has %zu bytes, more than %d", json.len,
				 INGEST_DISPLAYS_BYTES);
	return read_displays(&r, json, err) || error_prefix(err, "sample_type_config");
}
