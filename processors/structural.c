/* SPDX-License-Identifier: Apache-2.0 */
#include "processors/structural.h"
#include "processors/value.h"

#include <ctype.h>

#define FRAME_HELP "a frame type of the convention, `unknown` or `abort-marker`"

const struct structural structurals[] = {
	{ "process.executable.build_id.gnu", SITE_MAPPING, STRUCTURAL_HEX, "hex" },
	{ "process.executable.build_id.htlhash", SITE_MAPPING, STRUCTURAL_HEX, "hex" },
	{ "process.executable.build_id.go", SITE_MAPPING, STRUCTURAL_GO_BUILD_ID,
	  "two or more base64url parts joined by `/`" },
	{ "pprof.mapping.has_functions", SITE_MAPPING, STRUCTURAL_BOOL, "boolean" },
	{ "pprof.mapping.has_filenames", SITE_MAPPING, STRUCTURAL_BOOL, "boolean" },
	{ "pprof.mapping.has_line_numbers", SITE_MAPPING, STRUCTURAL_BOOL, "boolean" },
	{ "pprof.mapping.has_inline_frames", SITE_MAPPING, STRUCTURAL_BOOL, "boolean" },
	{ "pprof.mapping.is_main", SITE_MAPPING, STRUCTURAL_BOOL, "boolean" },
	{ "profile.frame.type", SITE_LOCATION, STRUCTURAL_FRAME_TYPE, FRAME_HELP },
	{ "pprof.location.is_folded", SITE_LOCATION, STRUCTURAL_BOOL, "boolean" },
	{ "pprof.scope.sample_type_order", SITE_SCOPE, STRUCTURAL_TYPE_ORDER,
	  "different integers, each below the number of the scope's Profiles" },
	{ "pprof.scope.default_sample_type", SITE_SCOPE, STRUCTURAL_SAMPLE_TYPE,
	  "equal to the sample type of a Profile of the scope that is not rejected" },
	{ 0 }
};

static bool all_of(struct view text, const char *more)
{
	for (size_t i = 0; i < text.len; i++)
		if (!isalnum(text.at[i]) && !(text.at[i] && strchr(more, text.at[i])))
			return false;
	return text.len > 0;
}

static bool is_hex(struct view text)
{
	for (size_t i = 0; i < text.len; i++)
		if (!isxdigit(text.at[i]))
			return false;
	return text.len > 0;
}

/*
 * Go's have two parts or four; one word could be anything. Parts must not be empty: "a//b" and "/a" are paths,
 * not build ids.
 */
static bool is_go_build_id(struct view text)
{
	bool slash = true, parted = false;
	for (size_t i = 0; i < text.len; i++) {
		if (text.at[i] == '/' && slash)
			return false;
		slash = text.at[i] == '/';
		parted |= slash;
	}
	return parted && !slash && all_of(text, "-_/");
}

static bool is_frame_type(struct view text)
{
	static const char *const words[] = { "dotnet", "jvm", "kernel", "native", "perl", "php",
					     "cpython", "ruby", "v8js", "beam", "go", "rust",
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
	case STRUCTURAL_HEX:
		return is_hex(text);
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

static bool is_id_of(const struct profiles *p, const struct attribute *a, const char *key,
		     size_t len)
{
	struct view text = string_view(p, a->string);
	return string_is(p, a->key, key) && text.len == len && is_hex(text);
}

bool structural_is_id(const struct profiles *p, const struct attribute *a)
{
	if (a->type != VALUE_STRING)
		return false;
	for (const struct structural *s = structurals; s->key; s++)
		if (s->grammar <= STRUCTURAL_GO_BUILD_ID && string_is(p, a->key, s->key))
			return fits(p, a, s->grammar, NULL);
	return is_id_of(p, a, "trace_id", 32) || is_id_of(p, a, "span_id", 16);
}
