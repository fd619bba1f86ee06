/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/value_text.h"
#include "base/base64.h"
#include "base/quote.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The shortest of the spellings that read back as the same number. */
static bool add_double(struct bytes *out, double number)
{
	char text[32];
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof text, "%.*g", digits, number);
		if (strtod(text, NULL) == number)
			break;
	}
	return bytes_add_text(out, isnan(number) ? "NaN" : text);
}

static bool add_json(const struct profiles *p, const struct attribute *a, struct bytes *out);

static bool add_json_children(const struct profiles *p, const struct attribute *a, bool keys,
			      struct bytes *out)
{
	bool ok = bytes_add_byte(out, keys ? '{' : '[');
	for (uint32_t i = 0; i < a->children.count && ok; i++) {
		const struct attribute *child = &p->attributes.at[a->children.first + i];
		struct view key = string_view(p, child->key);
		ok = (!i || bytes_add_byte(out, ',')) &&
		     (!keys || (quote_json(out, key.at, key.len) && bytes_add_byte(out, ':'))) &&
		     add_json(p, child, out);
	}
	return ok && bytes_add_byte(out, keys ? '}' : ']');
}

/* Recursion ends at VALUE_DEPTH_MAX: decoders refuse what is deeper. */
static bool add_json(const struct profiles *p, const struct attribute *a, struct bytes *out)
{
	struct view text = a->type == VALUE_STRING ? string_view(p, a->string) : (struct view){ 0 };
	switch ((enum value_type)a->type) {
	case VALUE_STRING:
		return quote_json(out, text.at, text.len);
	case VALUE_BOOL:
		return bytes_add_text(out, a->boolean ? "true" : "false");
	case VALUE_INT:
		return bytes_format(out, "%lld", (long long)attribute_integer(a));
	case VALUE_DOUBLE:
		return isfinite(attribute_number(a)) ? add_double(out, attribute_number(a))
						     : bytes_add_text(out, "null");
	case VALUE_BYTES:
		return bytes_add_byte(out, '"') && base64_add(out, span_view(p, a->bytes), true) &&
		       bytes_add_byte(out, '"');
	case VALUE_ARRAY:
	case VALUE_KVLIST:
		return add_json_children(p, a, a->type == VALUE_KVLIST, out);
	case VALUE_EMPTY:
		break;
	}
	return bytes_add_text(out, "null");
}

bool value_text_add(const struct profiles *p, const struct attribute *a, struct bytes *out)
{
	switch ((enum value_type)a->type) {
	case VALUE_STRING:
		return bytes_add(out, string_view(p, a->string).at, string_view(p, a->string).len);
	case VALUE_DOUBLE:
		return add_double(out, attribute_number(a));
	case VALUE_BYTES:
		return base64_add(out, span_view(p, a->bytes), true);
	case VALUE_EMPTY:
		return true;
	default:
		return add_json(p, a, out);
	}
}
