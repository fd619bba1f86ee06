/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/stores/kinds.h"
#include "base/memory.h"

#include <ctype.h>

struct guard {
	struct profiles *p;
	uint32_t *made; /* by string: the string that replaces it; 0: not created yet */
	uint32_t strings, unknown;
};

static bool is_plain(uint8_t c)
{
	return c < 0x80 && (isalnum(c) || c == '_');
}

static uint32_t make_plain(struct profiles *p, uint32_t string)
{
	struct bytes text;
	struct view from = string_view(p, string);
	bytes_init(&text, from.len);
	for (size_t i = 0; i < from.len; i++)
		if ((from.at[i] & 0xc0) != 0x80)
			bytes_add_byte(&text, is_plain(from.at[i]) ? from.at[i] : '_');
	uint32_t made = profiles_text_new(p, text.at, text.len);
	bytes_fini(&text);
	return made;
}

static bool is_fit(struct view text)
{
	for (size_t i = 0; i < text.len; i++)
		if (!is_plain(text.at[i]))
			return false;
	return true;
}

static void fit(struct guard *g, uint32_t *string)
{
	size_t len = string_view(g->p, *string).len;
	if (!len || len > KINDS_LONGEST) {
		if (!g->unknown)
			g->unknown = profiles_text_new(g->p, KINDS_UNKNOWN, strlen(KINDS_UNKNOWN));
		*string = g->unknown;
	} else if (*string < g->strings) { /* later strings were created here */
		uint32_t *made = &g->made[*string];
		if (!*made)
			*made = is_fit(string_view(g->p, *string)) ? *string
								   : make_plain(g->p, *string);
		*string = *made;
	}
}

void kinds_guard(struct profiles *p)
{
	struct guard g = { .p = p, .strings = p->strings.count };
	g.made = memory_array(g.strings, sizeof *g.made);
	for (uint32_t i = 0; i < p->profiles.count; i++) {
		struct profile *profile = &p->profiles.at[i];
		if (!profile->has_period_type)
			profile->period_type = profile->sample_type;
		fit(&g, &profile->sample_type.type);
		fit(&g, &profile->sample_type.unit);
		fit(&g, &profile->period_type.type);
		fit(&g, &profile->period_type.unit);
		profile->has_sample_type = profile->has_period_type = true;
	}
	memory_free(g.made);
}
