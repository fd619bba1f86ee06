/* SPDX-License-Identifier: Apache-2.0 */
#include "base/quote.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"

static size_t sequence_length(uint8_t lead)
{
	if (lead < 0x80)
		return 1;
	if (lead >= 0xc2 && lead < 0xe0)
		return 2;
	if (lead >= 0xe0 && lead < 0xf0)
		return 3;
	return lead >= 0xf0 && lead < 0xf5 ? 4 : 0;
}

size_t quote_utf8(const void *text, size_t len, uint32_t *code)
{
	static const uint8_t lead_bits[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const uint8_t *at = text;
	size_t n = sequence_length(at[0]);
	if (!n || n > len)
		return 0;
	uint32_t value = at[0] & lead_bits[n];
	for (size_t i = 1; i < n; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		value = value << 6 | (at[i] & 0x3f);
	}
	if (value < smallest[n] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
		return 0;
	*code = value;
	return n;
}

size_t quote_fit(const void *text, size_t len, size_t max)
{
	const uint8_t *at = text;
	if (len <= max)
		return len;
	while (max && (at[max] & 0xc0) == 0x80)
		max--;
	return max;
}

static bool is_printable(uint32_t code)
{
	if (code < 0x20 || (code >= 0x7f && code < 0xa0))
		return false;
	return code != 0x2028 && code != 0x2029 && code != 0xfeff && (code & 0xfffe) != 0xfffe;
}

static bool add_escape(struct bytes *out, uint32_t code)
{
	static const char short_forms[] = {
		['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'
	};
	if (code < sizeof short_forms && short_forms[code])
		return bytes_add(out, (char[]){ '\\', short_forms[code] }, 2);
	if (code < 0x10000)
		return bytes_format(out, "\\u%04x", code);
	code -= 0x10000;
	return bytes_format(out, "\\u%04x\\u%04x", 0xd800 + (code >> 10), 0xdc00 + (code & 0x3ff));
}

static bool escape(struct bytes *out, const uint8_t *at, size_t len, bool quoted)
{
	while (len) {
		uint32_t code = 0xfffd;
		size_t n = quote_utf8(at, len, &code);
		bool ok;
		if (!n || !is_printable(code))
			ok = add_escape(out, code);
		else if (quoted && (code == '"' || code == '\\'))
			ok = bytes_add(out, (uint8_t[]){ '\\', at[0] }, 2);
		else
			ok = bytes_add(out, at, n);
		if (!ok)
			return false;
		at += n ? n : 1;
		len -= n ? n : 1;
	}
	return true;
}

bool quote_json(struct bytes *out, const void *text, size_t len)
{
	size_t mark = out->len;
	if (bytes_add_byte(out, '"') && escape(out, text, len, true) && bytes_add_byte(out, '"'))
		return true;
	out->len = mark;
	return false;
}

bool quote_plain(struct bytes *out, const void *text, size_t len)
{
	size_t mark = out->len;
	if (escape(out, text, len, false))
		return true;
	out->len = mark;
	return false;
}

/* libcurl takes an http URL with any number of slashes. */
bool quote_is_url(const char *place)
{
	const char *colon = strchr(place, ':'), *slash = strchr(place, '/');
	bool http = strncasecmp(place, "http:", 5) == 0 || strncasecmp(place, "https:", 6) == 0;
	return colon && (!slash || colon < slash) && (http || strstr(place, "://"));
}

char *quote_place(const char *place)
{
	if (!quote_is_url(place))
		return memory_text(place);
	const char *host = strchr(place, ':') + 1;
	host += strspn(host, "/");
	const char *at = memrchr(host, '@', strcspn(host, "/?#"));
	const char *rest = at ? at + 1 : host;
	return memory_format("%.*s%.*s", (int)(host - place), place, (int)strcspn(rest, "?#"),
			     rest);
}
