/* SPDX-License-Identifier: Apache-2.0 */
#include "processors/structural.h"
#include "processors/value.h"

#include <ctype.h>

#define FRAME_HELP "a frame type of the convention, `unknown` or `abort-marker`"

const struct structural structurals[] = {
	{ "process.executable.build_id.gnu", SITE_MAPPING, STRUCTURAL_GNU_BUILD_ID,
	  "8, 16, 20 or 32 bytes in hex, the lengths that linkers produce" },
	{ "process.executable.build_id.htlhash", SITE_MAPPING, STRUCTURAL_HTLHASH,
	  "16 bytes in hex" },
	{ "process.executable.build_id.go", SITE_MAPPING, STRUCTURAL_GO_BUILD_ID,
	  "two or four parts of 20 base64url characters, joined by `/`" },
	{ "pprof.mapping.has_functions", SITE_MAPPING, STRUCTURAL_BOOL, "boolean" },
	{ "pprof.mapping.has_filenames", SITE_MAPPING, STRUCTURAL_BOOL, "boolean" },
	{ "pprof.mapping.has_line_numbers", SITE_MAPPING, STRUCTURAL_BOOL, "boolean" },
	{ "pprof.mapping.has_inline_frames", SITE_MAPPING, STRUCTURAL_BOOL, "boolean" },
	{ "pprof.mapping.is_main", SITE_MAPPING, STRUCTURAL_BOOL, "boolean" },
	{ "profile.frame.type", SITE_LOCATION, STRUCTURAL_FRAME_TYPE, FRAME_HELP },
	{ "pprof.location.is_folded", SITE_LOCATION, STRUCTURAL_BOOL, "boolean" },
	{ "pprof.scope.sample_type_order", SITE_SCOPE, STRUCTURAL_TYPE_ORDER,
	  "distinct integers, each less than the number of Profiles in the scope" },
	{ "pprof.scope.default_sample_type", SITE_SCOPE, STRUCTURAL_SAMPLE_TYPE,
	  "equal to the sample type of an accepted Profile of the scope" },
	{ 0 }
};

static bool is_hex(struct view text, size_t bytes)
{
	if (text.len != 2 * bytes)
		return false;
	for (size_t i = 0; i < text.len; i++)
		if (!isxdigit(text.at[i]))
			return false;
	return true;
}

static bool is_decimal(struct view text)
{
	for (size_t i = 0; i < text.len; i++)
		if (!isdigit(text.at[i]))
			return false;
	return true;
}

static bool is_gnu_build_id(struct view text)
{
	return is_hex(text, 8) || is_hex(text, 16) || is_hex(text, 20) || is_hex(text, 32);
}

#define GO_PART 20 /* characters of a part of Go's build ids; a "/" stands between two */

static bool is_go_part(const uint8_t *at)
{
	static const bool base64url[256] = { ['0' ... '9'] = true,
					     ['A' ... 'Z'] = true,
					     ['a' ... 'z'] = true,
					     ['-'] = true,
					     ['_'] = true };
	for (int i = 0; i < GO_PART; i++)
		if (!base64url[at[i]])
			return false;
	return true;
}

static bool is_go_build_id(struct view text)
{
	size_t parts = (text.len + 1) / (GO_PART + 1);
	if ((text.len + 1) % (GO_PART + 1) || (parts != 2 && parts != 4))
		return false;
	for (size_t i = 0; i < parts; i++) {
		const uint8_t *at = text.at + i * (GO_PART + 1);
		if (!is_go_part(at) || (i + 1 < parts && at[GO_PART] != '/'))
			return false;
	}
	return true;
}

static bool is_frame_type(struct view text)
{
	static const char *const words[] = { "dotnet", "jvm",     "kernel",      "native",
					     "perl",   "php",     "cpython",     "ruby",
					     "v8js",   "beam",    "go",          "rust",
					     "luajit", "unknown", "abort-marker" };
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (view_is(text, words[i]))
			return true;
	return false;
}

static bool is_type_order(const struct profiles *p, const struct attribute *a,
			  const struct scope *scope)
{
	bool seen[STRUCTURAL_MAX] = { false };
	if (!scope || a->type != VALUE_ARRAY || a->children.count > STRUCTURAL_MAX)
		return false;
	for (uint32_t i = 0; i < a->children.count; i++) {
		const struct attribute *element = &p->attributes.at[a->children.first + i];
		int64_t place = attribute_integer(element);
		if (element->type != VALUE_INT || place < 0 || place >= STRUCTURAL_MAX ||
		    place >= scope->profiles.count || seen[place])
			return false;
		seen[place] = true;
	}
	return true;
}

/* Of a Profile that leaves: the word of one that does not must not leave either. */
static bool is_sample_type(const struct profiles *p, struct view text, const struct scope *scope)
{
	for (uint32_t i = 0; scope && i < scope->profiles.count; i++) {
		const struct profile *profile = &p->profiles.at[scope->profiles.first + i];
		if (!profile->fault && !profile->dropped &&
		    view_equal(text, string_view(p, profile->sample_type.type)))
			return true;
	}
	return false;
}

static bool fits(const struct profiles *p, const struct attribute *a,
		 enum structural_grammar grammar, const struct scope *scope)
{
	if (grammar == STRUCTURAL_BOOL)
		return a->type == VALUE_BOOL;
	if (grammar == STRUCTURAL_TYPE_ORDER)
		return is_type_order(p, a, scope);
	if (a->type != VALUE_STRING)
		return false;
	struct view text = string_view(p, a->string);
	if (!text.len || text.len > STRUCTURAL_MAX)
		return false;
	switch (grammar) {
	case STRUCTURAL_GNU_BUILD_ID:
		return is_gnu_build_id(text);
	case STRUCTURAL_HTLHASH:
		return is_hex(text, 16);
	case STRUCTURAL_GO_BUILD_ID:
		return is_go_build_id(text);
	case STRUCTURAL_FRAME_TYPE:
		return is_frame_type(text);
	default:
		return is_sample_type(p, text, scope);
	}
}

bool structural_passes(const struct profiles *p, enum site site, const struct attribute *a,
		       const struct scope *scope)
{
	if (string_view(p, a->unit).len)
		return false; /* a unit could say anything */
	for (const struct structural *s = structurals; s->key; s++)
		if (s->site == site && string_is(p, a->key, s->key))
			return fits(p, a, s->grammar, scope);
	return false;
}

bool structural_is_id(const struct profiles *p, enum site site, const struct attribute *a)
{
	if (a->type != VALUE_STRING || is_decimal(string_view(p, a->string)))
		return false;
	if (string_is(p, a->key, "trace_id"))
		return is_hex(string_view(p, a->string), 16);
	if (string_is(p, a->key, "span_id"))
		return is_hex(string_view(p, a->string), 8);
	for (const struct structural *s = structurals; s->key; s++)
		if (s->site == site && s->grammar <= STRUCTURAL_GO_BUILD_ID &&
		    string_is(p, a->key, s->key))
			return fits(p, a, s->grammar, NULL);
	return false;
}
