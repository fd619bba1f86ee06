/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_PROCESSORS_PII_REFERENCE_H
#define TESTS_PROCESSORS_PII_REFERENCE_H

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "processors/pii_detectors.h"
#include "processors/pii_scan.h"
#include "processors/regex.h"
#include "profile/wire.h"

/*
 * The detectors once more, as regular expressions and functions that confirm what they match:
 * slower, and written independently of processors/pii_find_*.c. Both must find the same in every
 * text.
 */

/* The byte before or behind a span; 0 at the ends of the text. */
static uint8_t before(struct view text, const struct regex_span *span)
{
	return span->start ? text.at[span->start - 1] : 0;
}

static uint8_t behind(struct view text, size_t end)
{
	return end < text.len ? text.at[end] : 0;
}

static struct view cut(struct view text, const struct regex_span *span)
{
	return (struct view){ text.at + span->start, span->end - span->start };
}

static bool is_prefix(struct view text, struct regex_span *span)
{
	return !isalnum(before(text, span));
}

static bool is_alone(struct view text, struct regex_span *span)
{
	return !isalnum(before(text, span)) && !isalnum(behind(text, span->end));
}

static bool is_to_end(struct view text, struct regex_span *span)
{
	span->end = text.len;
	return true;
}

static bool is_local_part(uint8_t c)
{
	return isalnum(c) || c >= 0x80 || (c && strchr("._%+'-", c));
}

/* "v1.2", "1.2-rc", "2x.png", "0x12.b": what stands behind an @ in names of other things. */
static bool is_version(struct view domain)
{
	size_t i = domain.at[0] == 'v' ? 1 : 0, digits = 0;
	for (; i < domain.len && isdigit(domain.at[i]); i++)
		digits++;
	if (!digits || i + 1 >= domain.len)
		return false;
	if (domain.at[i] == '.')
		return isdigit(domain.at[i + 1]);
	if (i != 1 || domain.at[0] == 'v' || domain.at[1] != 'x')
		return false;
	for (i = 2; i < domain.len && isxdigit(domain.at[i]); i++)
		;
	return i < domain.len && domain.at[i] == '.';
}

/* "user@1000.service" is a unit of systemd. */
static bool is_unit(struct view domain)
{
	static const char *const suffixes[] = { ".service", ".socket", ".slice",
						".scope",   ".timer",  ".mount",
						".target",  ".device", ".automount" };
	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		size_t len = strlen(suffixes[i]);
		if (domain.len >= len &&
		    memcmp(domain.at + domain.len - len, suffixes[i], len) == 0)
			return true;
	}
	return false;
}

/* "com.acme.Session@6d06d69c.close": a class in a package, its hash with a digit and a letter. */
static bool is_object(struct view local, struct view domain)
{
	const uint8_t *dot = memchr(domain.at, '.', domain.len);
	const uint8_t *class = memrchr(local.at, '.', local.len);
	size_t hash = dot ? (size_t)(dot - domain.at) : 0, digits = 0;
	for (size_t i = 0; i < hash; i++) {
		if (!isxdigit(domain.at[i]) || isupper(domain.at[i]))
			return false;
		digits += isdigit(domain.at[i]) != 0;
	}
	if (!dot || hash < 5 || hash > 8 || !digits || digits == hash || !class ||
	    memchr(dot + 1, '.', domain.len - hash - 1))
		return false;
	size_t len = (size_t)(local.at + local.len - class) - 1;
	for (size_t i = 1; i <= len; i++)
		if (!isalnum(class[i]) && class[i] != '_')
			return false;
	return len && isupper(class[1]) && islower(local.at[0]);
}

/* "Base.@node.inner" */
static bool is_macro(struct view local, struct view domain)
{
	return isupper(local.at[0]) && local.at[local.len - 1] == '.' &&
	       memchr(domain.at, '.', domain.len) &&
	       memchr(domain.at, '.', domain.len) == memrchr(domain.at, '.', domain.len);
}

/* Is there "://" in front, and a colon between? */
static bool ends_userinfo(struct view text, size_t at)
{
	size_t n = 0;
	bool colon = false;
	while (n < 129 && n < at && !isspace(text.at[at - n - 1]) &&
	       !memchr("?\"'<>/\\#@", text.at[at - n - 1], 9)) {
		colon |= n && text.at[at - n - 1] == ':';
		n++;
	}
	return colon && n <= 128 && at - n >= 3 && memcmp(text.at + at - n - 3, "://", 3) == 0;
}

static bool is_email_of(struct view text, struct regex_span *span, size_t separator)
{
	struct view domain = { text.at + span->start + separator,
			       span->end - span->start - separator };
	if (is_version(domain) || is_unit(domain))
		return false;
	size_t at = span->start;
	while (span->start && at - span->start < 64 && is_local_part(text.at[span->start - 1]))
		span->start--;
	struct view local = { text.at + span->start, at - span->start };
	return local.len && !is_object(local, domain) && !is_macro(local, domain) &&
	       !(separator == 1 && ends_userinfo(text, at));
}

static bool is_email(struct view text, struct regex_span *span)
{
	return is_email_of(text, span, 1);
}

/* With a full-width dot. */
static bool is_email_wide(struct view text, struct regex_span *span)
{
	size_t start = span->start + 4;
	return span->end > start &&
	       memmem(text.at + start, span->end - start - 1, "\xef\xbc\x8e", 3) &&
	       is_email_of(text, span, 3);
}

static bool is_email_percent(struct view text, struct regex_span *span)
{
	return is_email_of(text, span, 3);
}

static bool is_email_html(struct view text, struct regex_span *span)
{
	return is_email_of(text, span, 5);
}

static bool is_email_escaped(struct view text, struct regex_span *span)
{
	return is_email_of(text, span, 6);
}

static bool is_email_named(struct view text, struct regex_span *span)
{
	return is_email_of(text, span, 8);
}

static bool is_word_at(struct view text, size_t at, const char *word)
{
	return at <= text.len && text.len - at >= strlen(word) &&
	       memcmp(text.at + at, word, strlen(word)) == 0;
}

/* A version between a name and the rest of it. */
static bool is_named_version(struct view text, const struct regex_span *span)
{
	static const char *const files[] = { ".so",  ".dylib", ".dll", ".jar", ".whl",
					     ".egg", ".deb",   ".rpm", ".gem", ".tar",
					     ".tgz", ".zip",   ".exe" };
	uint8_t front = before(text, span), back = behind(text, span->end);
	if (span->start < 2 || (front != '-' && front != '_') ||
	    (!isalnum(text.at[span->start - 2]) && text.at[span->start - 2] != '+'))
		return false;
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		if (is_word_at(text, span->end, files[i]) &&
		    !isalnum(behind(text, span->end + strlen(files[i]))))
			return true;
	return back == '/' || back == '-' || back == '_';
}

static bool is_word_before(struct view text, size_t end, const char *word)
{
	return end >= strlen(word) && is_word_at(text, end - strlen(word), word);
}

static bool is_labelled_version(struct view text, const struct regex_span *span)
{
	static const char *const labels[] = { "ersion=", "Chrome/", "Chromium/", " Edg/", " OPR/" };
	for (size_t i = 0; i < sizeof labels / sizeof *labels; i++)
		if (is_word_before(text, span->start, labels[i]))
			return true;
	return false;
}

/* Below a name in "Program Files". */
static bool is_installed_version(struct view text, const struct regex_span *span)
{
	static const char ends[] = "/\\ \t\n\v\f\r:;,\"'<>|*?()[]{}";
	size_t n = 0, at = span->start;
	if (before(text, span) != '\\' || behind(text, span->end) != '\\')
		return false;
	while (n < 64 && n + 1 < at && !(text.at[at - n - 2] && strchr(ends, text.at[at - n - 2])))
		n++;
	return n && (is_word_before(text, at - 1 - n, "\\Program Files\\") ||
		     is_word_before(text, at - 1 - n, "\\Program Files (x86)\\"));
}

/* Four numbers up to 255, and not part of a longer dotted number. */
static bool is_ipv4(struct view text, struct regex_span *span)
{
	unsigned number = 0;
	uint8_t front = before(text, span), back = behind(text, span->end);
	for (size_t i = span->start; i < span->end; i++) {
		number = text.at[i] == '.' ? 0 : number * 10 + (text.at[i] - '0');
		if (number > 255)
			return false;
	}
	if (isalnum(front) || front == '.' || isalnum(back) || is_named_version(text, span) ||
	    is_labelled_version(text, span) || is_installed_version(text, span))
		return false;
	return !(back == '.' && isdigit(behind(text, span->end + 1)));
}

/* ip-10-1-2-3: the numbers. */
static bool is_ipv4_host(struct view text, struct regex_span *span)
{
	uint8_t back = behind(text, span->end);
	unsigned number = 0;
	for (size_t i = span->start; i < span->end; i++) {
		number = text.at[i] == '-' ? 0 : number * 10 + (text.at[i] - '0');
		if (number > 255)
			return false;
	}
	return !isalnum(back) &&
	       !((back == '.' || back == '-') && isdigit(behind(text, span->end + 1)));
}

static bool is_loopback(struct view text, struct regex_span *span)
{
	uint8_t back = behind(text, span->end);
	if (span->start && !(before(text, span) && strchr(" \t[(=,;\"'/@", before(text, span))))
		return false;
	return !isalnum(back) && back != '_' && back != ':' &&
	       !(back == '.' && isalnum(behind(text, span->end + 1)));
}

static bool is_mac(struct view text, struct regex_span *span)
{
	static const unsigned highest[] = { 99, 12, 31, 23, 59, 59 };
	uint8_t gap = text.at[span->start + 2], back = behind(text, span->end);
	bool decimal = true, time = gap == '-';
	unsigned zeros = 0, ones = 0;
	for (size_t i = 0; i < 6; i++) {
		char two[] = { (char)text.at[span->start + 3 * i],
			       (char)text.at[span->start + 3 * i + 1], 0 };
		unsigned value = (unsigned)strtoul(two, NULL, 16);
		zeros += value == 0;
		ones += value == 255;
		decimal = decimal && isdigit((uint8_t)two[0]) && isdigit((uint8_t)two[1]);
		time = time && decimal && strtoul(two, NULL, 10) <= highest[i];
	}
	if (zeros == 6 || ones == 6 || time || isalnum(back) || back == '_' ||
	    isalnum(before(text, span)))
		return false;
	return !(back == gap && isxdigit(behind(text, span->end + 1)) &&
		 isxdigit(behind(text, span->end + 2)));
}

static bool is_mac_dotted(struct view text, struct regex_span *span)
{
	bool digit = false, letter = false;
	uint8_t back = behind(text, span->end), front = before(text, span);
	for (size_t i = span->start; i < span->end; i++) {
		digit |= isdigit(text.at[i]) != 0;
		letter |= isalpha(text.at[i]) != 0;
	}
	return digit && letter && !isalnum(back) && back != '.' && back != '_' && !isalnum(front) &&
	       front != '.' && front != '_';
}

/* The system's parser decides. */
static bool parses_as_ipv6(struct view address)
{
	char copy[INET6_ADDRSTRLEN];
	uint8_t parsed[16];
	if (address.len >= sizeof copy)
		return false;
	memcpy(copy, address.at, address.len);
	copy[address.len] = '\0';
	return inet_pton(AF_INET6, copy, parsed) == 1;
}

/*
 * "c10::ff" and "be::ad" are names of C++ too: a shortened address counts only if it begins as
 * those do that hosts have (2000::/3, fc00::/7, fe80::/10), with four digits.
 */
static bool looks_assigned(struct view address)
{
	uint8_t first = (uint8_t)tolower(address.at[0]), second = (uint8_t)tolower(address.at[1]);
	const uint8_t *colon = memchr(address.at, ':', address.len);
	if (colon - address.at != 4)
		return false;
	return first == '2' || first == '3' ||
	       (first == 'f' && (second == 'c' || second == 'd' || second == 'e'));
}

/* "%5B": what is behind it begins anew. */
static bool ends_in_escape(struct view text)
{
	return text.len >= 3 && text.at[text.len - 3] == '%' && isxdigit(text.at[text.len - 2]) &&
	       isxdigit(text.at[text.len - 1]);
}

/* One colon is a separator ("peer:2001:db8::1"), two are an address's own or a name's. */
static bool may_begin_ipv6(struct view front)
{
	uint8_t last = front.len ? front.at[front.len - 1] : 0;
	if (last == ':')
		return front.len < 2 || front.at[front.len - 2] != ':';
	return ends_in_escape(front) || !(isalnum(last) || last == '_');
}

static bool is_pair_at(struct view text, size_t at)
{
	return isxdigit(behind(text, at)) && isxdigit(behind(text, at + 1)) &&
	       !isalnum(behind(text, at + 2));
}

/* Eight pairs, and one more on either side. */
static bool is_fingerprint(struct view text, const struct regex_span *span)
{
	if (span->end - span->start != 23)
		return false;
	for (size_t i = 0; i < 8; i++)
		if (!is_pair_at(text, span->start + 3 * i))
			return false;
	return (behind(text, span->end) == ':' && is_pair_at(text, span->end + 1)) ||
	       (span->start >= 3 && before(text, span) == ':' &&
		is_pair_at(text, span->start - 3) &&
		(span->start == 3 || !isalnum(text.at[span->start - 4])));
}

static bool is_ipv6(struct view text, struct regex_span *span)
{
	if (!may_begin_ipv6((struct view){ text.at, span->start }))
		return false;
	/* A name or a port may have been taken for the last group: give groups back. */
	for (;;) {
		struct view address = cut(text, span);
		bool shortened = memmem(address.at, address.len, "::", 2);
		uint8_t back = behind(text, span->end);
		if (!isalnum(back) && back != '_' && parses_as_ipv6(address) &&
		    (!shortened || looks_assigned(address)))
			return !is_fingerprint(text, span);
		do
			span->end--;
		while (span->end > span->start && text.at[span->end] != ':');
		if (!shortened || span->end < span->start + 4)
			return false;
	}
}

static bool is_base64url(uint8_t c)
{
	return isalnum(c) || c == '-' || c == '_';
}

/* What is glued to the front of the header goes with it; so do the parts that follow. */
static bool is_jwt(struct view text, struct regex_span *span)
{
	while (span->start && is_base64url(text.at[span->start - 1]))
		span->start--;
	while (span->end < text.len &&
	       (is_base64url(text.at[span->end]) || text.at[span->end] == '.'))
		span->end++;
	return true;
}

static bool is_aws(struct view text, struct regex_span *span)
{
	uint8_t front = before(text, span), back = behind(text, span->end);
	return !isupper(front) && !isdigit(front) && !isupper(back) && !isdigit(back);
}

/* Copies the digits of a span; their number. */
static size_t digits_of(struct view text, const struct regex_span *span, uint8_t *out, size_t max)
{
	size_t count = 0;
	for (size_t i = span->start; i < span->end && count < max; i++)
		if (isdigit(text.at[i]))
			out[count++] = text.at[i] - '0';
	return count;
}

static bool luhn(const uint8_t *digits, size_t count)
{
	unsigned sum = 0;
	for (size_t i = 0; i < count; i++) {
		unsigned d = digits[count - 1 - i];
		if (i % 2)
			d = d > 4 ? 2 * d - 9 : 2 * d;
		sum += d;
	}
	return sum % 10 == 0;
}

/* Issuer ranges by their first four digits (ISO/IEC 7812), with the lengths that are given there.
 */
static bool is_issued(const uint8_t *d, size_t count)
{
	static const struct {
		unsigned from, to;
		size_t shortest, longest;
	} ranges[] = {
		{ 2221, 2720, 16, 16 }, { 3000, 3059, 14, 19 }, { 3400, 3499, 15, 15 },
		{ 3528, 3589, 16, 19 }, { 3600, 3699, 14, 19 }, { 3700, 3799, 15, 15 },
		{ 3800, 3899, 14, 19 }, { 4000, 4999, 13, 13 }, { 4000, 4999, 16, 16 },
		{ 4000, 4999, 19, 19 }, { 5000, 5099, 16, 19 }, { 5100, 5599, 16, 16 },
		{ 5600, 6999, 16, 19 }, { 8100, 8171, 16, 19 },
	};
	unsigned four = d[0] * 1000u + d[1] * 100u + d[2] * 10u + d[3];
	for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
		if (four >= ranges[i].from && four <= ranges[i].to && count >= ranges[i].shortest &&
		    count <= ranges[i].longest)
			return true;
	return false;
}

/* Of a symbol, by the compiler. */
static bool is_suffix(struct view text, const struct regex_span *span)
{
	return span->start >= 6 && is_word_at(text, span->start - 6, ".llvm.");
}

/* A number may follow the card's, so shorter fronts are tried too. */
static bool is_card(struct view text, struct regex_span *span)
{
	uint8_t digits[19], front = before(text, span);
	if (isalnum(front) || is_suffix(text, span) ||
	    (front == '.' && span->start > 1 && isdigit(text.at[span->start - 2])))
		return false;
	for (; span->end > span->start; span->end--) {
		if (!isdigit(text.at[span->end - 1]) || isalnum(behind(text, span->end)))
			continue;
		size_t count = digits_of(text, span, digits, sizeof digits);
		if (count < 13)
			return false;
		if (is_issued(digits, count) && luhn(digits, count))
			return true;
	}
	return false;
}

static bool is_card_groups(struct view text, struct regex_span *span)
{
	uint8_t digits[19], front = before(text, span);
	size_t count = 0, gap = is_word_at(text, span->end, "%20") ? 3
				: behind(text, span->end) && strchr("._+", behind(text, span->end))
					? 1
					: 0;
	for (size_t i = span->start; i < span->end; i++)
		if (text.at[i] == '%')
			i += 2;
		else if (isdigit(text.at[i]))
			digits[count++] = text.at[i] - '0';
	if (isalnum(front) || isalnum(behind(text, span->end)) ||
	    (front == '.' && span->start > 1 && isdigit(text.at[span->start - 2])))
		return false;
	return !(gap && isdigit(behind(text, span->end + gap))) && is_issued(digits, count) &&
	       luhn(digits, count);
}

/* Ends the span behind as many characters as the country's numbers have. */
static bool cut_iban(struct view text, struct regex_span *span)
{
	static const char lengths[] =
		"AD24AE23AL28AT20AZ28BA20BE16BG22BH22BR29BY28CH21CR22CY28CZ24DE22DK18DO28EE20EG29"
		"ES24FI18FO18FR27GB22GE22GI23GL18GR27GT28HR21HU28IE22IL23IQ23IS26IT27JO30KW30KZ20"
		"LB28LC32LI21LT20LU20LV21LY25MC27MD24ME22MK19MR27MT31MU30NL18NO15PK24PL28PS29PT25"
		"QA29RO24RS22SA24SC31SE24SI19SK24SM27ST25SV28TL23TN24TR26UA29VA22VG24XK20";
	for (size_t i = 0; lengths[i]; i += 4) {
		size_t want = (size_t)(lengths[i + 2] - '0') * 10 + (size_t)(lengths[i + 3] - '0');
		if (memcmp(text.at + span->start, lengths + i, 2) != 0)
			continue;
		want += text.at[span->start + 4] == ' ' ? (want - 1) / 4 : 0;
		bool enough = span->end - span->start >= want;
		span->end = span->start + want;
		return enough;
	}
	return false;
}

/* The remainder of 97, digit by digit. */
static bool is_iban(struct view text, struct regex_span *span)
{
	char digits[80];
	size_t n = 0;
	unsigned rest = 0;
	if (!cut_iban(text, span))
		return false;
	for (int round = 0; round < 2; round++)
		for (size_t i = span->start, seen = 0; i < span->end; i++)
			if (text.at[i] != ' ' && (seen++ < 4) == round)
				n += (size_t)snprintf(digits + n, sizeof digits - n, "%d",
						      isdigit(text.at[i]) ? text.at[i] - '0'
									  : text.at[i] - 'A' + 10);
	for (size_t i = 0; i < n; i++)
		rest = (rest * 10 + (unsigned)(digits[i] - '0')) % 97;
	return rest == 1 && is_alone(text, span);
}

/* Area 000, 666, 9xx, group 00 and serial 0000 are never given (SSA, since 2011). */
static bool is_ssn(struct view text, struct regex_span *span)
{
	uint8_t d[9], front = before(text, span), back = behind(text, span->end);
	digits_of(text, span, d, sizeof d);
	unsigned area = d[0] * 100u + d[1] * 10u + d[2];
	if (!area || area == 666 || area >= 900 || !(d[3] | d[4]) || !(d[5] | d[6] | d[7] | d[8]))
		return false;
	return is_alone(text, span) && front != '-' && back != '-';
}

/* The extension, and nothing that makes the number another. */
static bool ends_phone(struct view text, struct regex_span *span)
{
	size_t digits = 0;
	if (behind(text, span->end) == 'x')
		while (digits < 6 && isdigit(behind(text, span->end + 1 + digits)))
			digits++;
	span->end += digits ? 1 + digits : 0;
	uint8_t back = behind(text, span->end);
	return !isalnum(back) &&
	       !((back == '.' || back == '-') && isdigit(behind(text, span->end + 1)));
}

/* 8 to 15 digits (E.164), not part of a longer number, version or identifier. */
static bool is_phone(struct view text, struct regex_span *span)
{
	uint8_t digits[20], front = before(text, span);
	size_t escape = text.at[span->start] == '%' ? 1 : 0;
	size_t count = digits_of(text, span, digits, sizeof digits) - escape;
	if (count < 8 || count > 15)
		return false;
	if (!escape && (isalnum(front) || front == '+' || front == '-' ||
			(front == '.' && text.at[span->start] != '+')))
		return false;
	return ends_phone(text, span);
}

/* The check digit of Aadhaar numbers (Verhoeff): tables of the dihedral group D5. */
static bool verhoeff(const uint8_t *digits, size_t count)
{
	static const uint8_t turn[8][10] = {
		{ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 }, { 1, 5, 7, 6, 2, 8, 3, 0, 9, 4 },
		{ 5, 8, 0, 3, 7, 9, 6, 1, 4, 2 }, { 8, 9, 1, 6, 0, 4, 3, 5, 2, 7 },
		{ 9, 4, 5, 3, 1, 2, 6, 8, 7, 0 }, { 4, 2, 8, 6, 5, 7, 3, 9, 0, 1 },
		{ 2, 7, 9, 3, 8, 0, 6, 4, 1, 5 }, { 7, 0, 4, 6, 9, 1, 3, 2, 5, 8 },
	};
	unsigned check = 0;
	for (size_t i = 0; i < count; i++) {
		unsigned d = turn[i % 8][digits[count - 1 - i]];
		/* Multiplication in D5: rotations 0-4, reflections 5-9. */
		if (check < 5)
			check = d < 5 ? (check + d) % 5 : 5 + (check + d) % 5;
		else
			check = d < 5 ? 5 + (check - d) % 5 : (check - d + 5) % 5;
	}
	return check == 0;
}

static bool is_aadhaar(struct view text, struct regex_span *span)
{
	uint8_t digits[12], front = before(text, span);
	digits_of(text, span, digits, sizeof digits);
	if (!is_alone(text, span) || front == '-' || behind(text, span->end) == '-' ||
	    is_suffix(text, span) ||
	    (front == '.' && span->start > 1 && isdigit(text.at[span->start - 2])))
		return false;
	return verhoeff(digits, sizeof digits);
}

/* "bearer authentication" is prose: a token is long or has a digit. */
static bool is_bearer(struct view text, struct regex_span *span)
{
	bool digit = false;
	for (size_t i = span->start; i < span->end; i++)
		digit |= isdigit(text.at[i]) != 0;
	return digit || span->end - span->start >= 16;
}

static bool is_basic(struct view text, struct regex_span *span)
{
	static const char alphabet[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint8_t plain[4096];
	size_t n = 0, len = span->end - span->start, pads = 0;
	while (len && text.at[span->start + len - 1] == '=' && pads < 3)
		len--, pads++;
	if (len % 4 == 1 || (pads && (len + pads) % 4))
		return false;
	uint32_t bits = 0;
	bool colon = false;
	for (size_t i = 0; i < len; i++) {
		bits = bits << 6 |
		       (uint32_t)(strchr(alphabet, text.at[span->start + i]) - alphabet);
		if (i % 4 && n < sizeof plain)
			plain[n++] = (uint8_t)(bits >> (6 - 2 * (i % 4)));
	}
	for (size_t i = 0; i < n; i++) {
		colon |= plain[i] == ':';
		if (plain[i] < 0x20 || plain[i] == 0x7f)
			return false;
	}
	return colon && wire_utf8_slow(plain, n);
}

/* There is a colon, and something behind it. */
static bool is_userinfo(struct view text, struct regex_span *span)
{
	const uint8_t *colon = memchr(text.at + span->start, ':', span->end - span->start);
	return colon && colon + 1 < text.at + span->end;
}

/* Where the name of a value ends: in front of the blanks. */
static size_t blanks_start(struct view text, size_t value)
{
	while (text.at[value - 1] != ' ')
		value--;
	while (value && text.at[value - 1] == ' ')
		value--;
	return value;
}

static size_t name_start(struct view text, size_t end)
{
	size_t n = 0;
	while (n < 64 && n < end &&
	       (is_base64url(text.at[end - n - 1]) || text.at[end - n - 1] == '.'))
		n++;
	return end - n;
}

static bool is_option(struct view text, struct regex_span *span)
{
	size_t name = name_start(text, blanks_start(text, span->start));
	return text.at[name] == '-' && (!name || text.at[name - 1] == ' ');
}

static bool is_header(struct view text, struct regex_span *span)
{
	size_t colon = blanks_start(text, span->start) - 1, name = name_start(text, colon);
	return memchr(text.at + name, '-', colon - name);
}

/* A value in a path that begins with a slash ends with its segment. */
static bool is_assigned(struct view text, struct regex_span *span)
{
	size_t name = name_start(text, span->start - 1), start = name;
	if (text.at[span->start - 1] != '=' || !name || text.at[name - 1] != ';')
		return true;
	while (start && name - start < 256 && text.at[start - 1] != ' ')
		start--;
	if ((start && (text.at[start - 1] != ' ' || name - start == 256)) ||
	    text.at[start] != '/' || behind(text, start + 1) == '/')
		return true;
	for (size_t i = span->start; i < span->end; i++)
		if (memchr("/?#", text.at[i], 3))
			span->end = i;
	return span->end > span->start;
}

/* Not the digest of a bundle's file. */
static bool is_url(struct view text, struct regex_span *span)
{
	static const char *const files[] = { ".js",  ".mjs", ".cjs", ".jsx",   ".ts",
					     ".tsx", ".css", ".vue", ".svelte" };
	size_t query = span->start - 1;
	bool digest = span->end - span->start <= 32, file = false;
	for (size_t i = span->start; i < span->end; i++)
		digest = digest && isalnum(text.at[i]);
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		file |= query >= strlen(files[i]) &&
			is_word_at(text, query - strlen(files[i]), files[i]);
	return !(digest && file);
}

static bool is_name_end(struct view text, size_t at)
{
	static const char ends[] = "/\\ \t\n\v\f\r:;,\"'<>|*?()[]{}";
	return at >= text.len || (text.at[at] && strchr(ends, text.at[at]));
}

static size_t name_length(struct view text, size_t at)
{
	size_t n = 0;
	while (n < 256 && !is_name_end(text, at + n))
		n++;
	return n;
}

static bool is_dots(struct view text, size_t at, size_t len)
{
	return (len == 1 && text.at[at] == '.') || (len == 2 && is_word_at(text, at, ".."));
}

/* "First Last" */
static void add_words(struct view text, struct regex_span *span)
{
	size_t at = span->end;
	bool capitals = true;
	for (int words = 0; words < 3 && behind(text, at) == ' '; words++) {
		size_t n = name_length(text, at + 1);
		n = n > 64 ? 64 : n;
		if (!n)
			return;
		capitals &= isupper(text.at[at + 1]) != 0;
		at += 1 + n;
		if (behind(text, at) == '/' || behind(text, at) == '\\' ||
		    (at == text.len && capitals)) {
			span->end = at;
			return;
		}
	}
}

/* A route begins with its method. */
static bool is_home(struct view text, struct regex_span *span)
{
	if (is_dots(text, span->start, span->end - span->start))
		return false;
	while (is_word_at(text, span->end, "/../")) {
		size_t n = name_length(text, span->end + 4);
		if (!n || is_dots(text, span->end + 4, n))
			break;
		span->end += 4 + n;
	}
	return true;
}

static bool is_users(struct view text, struct regex_span *span)
{
	if (is_dots(text, span->start, span->end - span->start))
		return false;
	add_words(text, span);
	return is_home(text, span);
}

/* A name without a slash behind it. */
static bool is_windows(struct view text, struct regex_span *span)
{
	uint8_t back = behind(text, span->end);
	if (back != '/' && back != '\\')
		add_words(text, span);
	return true;
}

/* A user's directory: below the root, or below a mount, container root or export; "/app/home" is a
 * program's own. */
#define HOME_ROOTS \
	"root|rootfs|host|hostfs|hostroot|merged|diff|upper|snapshot|[dD]ata|export|var|usr|mnt|nfs|net" \
	"|private|srv|media|opt|gpfs|lustre|(?:data|disk|vol|nas|fs)[0-9]{1,3}|[a-zA-Z]" \
	"|(?:Volumes|mnt|media|net|nfs|gpfs|lustre|wsl\\$|wsl\\.localhost)\\/[^\\/]{0,63}[A-Za-z0-9_-]"
#define FILE_HOST \
	"(?:(?<![a-z+-])(?:file|ssh|sftp|scp|nfs|smb|vscode-remote)|(?<![a-z])git\\+ssh)" \
	":\\/\\/[^\\/]{0,63}[A-Za-z0-9_-]"
#define NO_ROUTE(method) "(?<!(?<![A-Za-z0-9_-])" method " )"
#define ROUTES \
	NO_ROUTE("GET") \
	NO_ROUTE("POST") \
	NO_ROUTE("PUT") \
	NO_ROUTE("PATCH") \
	NO_ROUTE("DELETE") \
	NO_ROUTE("HEAD") \
	NO_ROUTE("OPTIONS") \
	NO_ROUTE("TRACE")
#define HOME_FRONT \
	"(?:^|[^A-Za-z0-9_-]" ROUTES "|(?<![A-Za-z0-9_-])-[A-Za-z]|\\/(?:" HOME_ROOTS \
	")|" FILE_HOST ")"
#define NAME_BYTE "[^\\/\\\\\\s:;,\"'<>|*?()\\[\\]{}]"
#define NAME NAME_BYTE "{1,256}"
#define SEGMENT "[^\\/\\\\\\s*]{1,256}"
/* The rest of a header, which is read once, and the next part. */
#define JWT_PARTS "[A-Za-z0-9_-]*+(*SKIP)\\.(?:[A-Za-z0-9_-]*+\\.|eyJ[A-Za-z0-9_-]*+)"
/* two levels: group and project, or a name twice */
#define PROJECT "(" SEGMENT "\\/" SEGMENT ")\\/"
#define SHARE(two, one, last) \
	"(?<![\\/\\\\])[\\/\\\\]{" two "}(?:" NAME_BYTE "{1,63}[\\/\\\\]{" one "}){0,2}" NAME_BYTE \
	"{1,63}" last
#define WINDOWS_USERS(more) \
	"(?i)(?:" more "(?:" SHARE("2", "1", "\\\\") "|" SHARE( \
		"4", "2", \
		"[\\/\\\\]\\\\") "|[a-z]:[\\\\\\/]{1,4}|(?<!" NAME_BYTE \
				 ")(?-i:HarddiskVolume" NAME_BYTE "{0,18}|%SystemDrive%" NAME_BYTE \
				 "{0,19})\\\\)" \
				 "(?:users|documents and settings))[\\\\\\/]{1,4}" \
				 "(?|([^\\\\\\/:*?\"<>|\\r\\n]{1,64})[\\\\\\/]|([^\\\\\\/\\s:*?\"<>|]{1,256}))"
#define SHARED_HOME "(?:" SHARE("2", "1", "\\\\") "|" SHARE("4", "2", "[\\/\\\\]\\\\") ")home|"
#define ESCAPED_SLASH "%(?:2[Ff]|5[Cc])"
/* Behind a name whose value is secret. */
#define SECRET \
	"(?i)(?<=password|passwd|passphrase|secret|(?<!publickey)token|apikey|api[_-]key|accesskey|access[_-]key" \
	"|secretkey|secret[_-]key|privatekey|private[_-]key|credential|credentials|sessionid" \
	"|session[_-]id|signature|(?<![a-z0-9])pass|(?<![a-z0-9])pwd|(?<![a-z0-9])auth|(?<![a-z0-9])sig)"
#define QUOTED \
	"\"((?:[^\"\\\\]|\\\\.|\\\\\\z)+)|'((?:[^'\\\\]|\\\\.|\\\\\\z)+)" \
	"|\\\\\"((?:(?!\\\\\").)+)|\\\\'((?:(?!\\\\').)+)"
#define VALUE "(?|" QUOTED "|(?!\\\\?[\"'])([^\\s\"'<>&;]+))"
#define DOMAIN_NAME \
	"(?:[A-Za-z0-9\\x80-\\xff][A-Za-z0-9\\x80-\\xff-]{0,62}\\.){1,8}[A-Za-z\\x80-\\xff]{2,24}"
#define WIDE_AT "\\xef\\xbc\\xa0"
#define NARROW "(?!" WIDE_AT ")"
#define CARD_GROUPS(gap) \
	"[2-8][0-9]{3}" gap "(?:[0-9]{4}" gap "[0-9]{4}" gap "[0-9]{1,4}(?:(?<=[0-9]{4})" gap \
	"[0-9]{1,3})?|[0-9]{6}" gap "[0-9]{1,5})"
#define PAIR "[0-9A-Fa-f]{2}"
#define MAC(gap) "(?<![A-Za-z0-9])(?<!(?<![A-Za-z0-9])" PAIR gap ")" PAIR "(?:" gap PAIR "){5}"

/* clang-format off */
static const struct reference_rule {
	enum pii_detector detector;
	const char *pattern; /* group 1, if there is one, is the part that is masked */
	bool (*confirm)(struct view text, struct regex_span *span);
} reference_rules[] = {
	{ PII_EMAIL, "@" DOMAIN_NAME, is_email },
	{ PII_EMAIL, "%40" DOMAIN_NAME, is_email_percent },
	{ PII_EMAIL, "&#64;" DOMAIN_NAME, is_email_html },
	{ PII_EMAIL, "&#x40;" DOMAIN_NAME, is_email_escaped },
	{ PII_EMAIL, "&commat;" DOMAIN_NAME, is_email_named },
	{ PII_EMAIL, "%2540" DOMAIN_NAME, is_email_html },
	{ PII_EMAIL, "\\\\u0040" DOMAIN_NAME, is_email_escaped },
	{ PII_EMAIL, WIDE_AT "(?:" NARROW "[A-Za-z0-9\\x80-\\xff](?:" NARROW "[A-Za-z0-9\\x80-\\xff-]){0,62}\\.){1,8}"
		     "(?:" NARROW "[A-Za-z\\x80-\\xff]){2,24}", is_email_percent },
	{ PII_EMAIL, WIDE_AT "(?:" NARROW "[A-Za-z0-9.\\x80-\\xff-])+", is_email_wide },
	{ PII_IPV4, "[0-9]{1,3}(?:\\.[0-9]{1,3}){3}", is_ipv4 },
	{ PII_IPV4, "(?<![A-Za-z0-9])(?:ip|ec2)-([0-9]{1,3}(?:-[0-9]{1,3}){3})", is_ipv4_host },
	{ PII_IPV6, "::1", is_loopback },
	{ PII_MAC, MAC(":"), is_mac },
	{ PII_MAC, MAC("-"), is_mac },
	{ PII_MAC, "[0-9A-Fa-f]{4}\\.[0-9A-Fa-f]{4}\\.[0-9A-Fa-f]{4}", is_mac_dotted },
	{ PII_IPV6, "[0-9A-Fa-f]{1,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?:(?:\\.[0-9]{1,3}){3})?", is_ipv6 },
	{ PII_JWT, "ImFsZyI" JWT_PARTS, is_jwt },
	{ PII_JWT, "JhbGci" JWT_PARTS, is_jwt },
	{ PII_JWT, "iYWxnI" JWT_PARTS, is_jwt },
	{ PII_ACCESS_KEY, "(?:AKIA|ASIA|AGPA|AIDA|AROA|AIPA|ANPA|ANVA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16}", is_aws },
	{ PII_ACCESS_KEY, "AIza[A-Za-z0-9_-]{35,}" },
	{ PII_ACCESS_KEY, "gh[opsur]_[A-Za-z0-9]{36,}", is_prefix },
	{ PII_ACCESS_KEY, "github_pat_[A-Za-z0-9_]{60,}", is_prefix },
	{ PII_ACCESS_KEY, "npm_[A-Za-z0-9]{36,}", is_prefix },
	{ PII_ACCESS_KEY, "[rs]k_(?:live|test)_[A-Za-z0-9]{20,}", is_prefix },
	{ PII_ACCESS_KEY, "xox[abeoprs]-[A-Za-z0-9-]{10,}", is_prefix },
	{ PII_ACCESS_KEY, "glpat-[A-Za-z0-9_-]{20,}", is_prefix },
	{ PII_ACCESS_KEY, "sk-(?:ant|proj|svcacct|admin)-[A-Za-z0-9_-]{20,}", is_prefix },
	{ PII_ACCESS_KEY, "sk-[A-Za-z0-9]{48}", is_alone },
	{ PII_ACCESS_KEY, "GOCSPX-[A-Za-z0-9_-]{28,}", is_prefix },
	{ PII_ACCESS_KEY, "ya29\\.[A-Za-z0-9_-]{20,}", is_prefix },
	{ PII_ACCESS_KEY, "SG\\.[A-Za-z0-9_-]{22}\\.[A-Za-z0-9_-]{43}", is_prefix },
	{ PII_ACCESS_KEY, "(?:Account|Access)Key=([A-Za-z0-9+\\/]{32,}={0,2})" },
	{ PII_ACCESS_KEY, "[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}" },
	{ PII_ACCESS_KEY, "-----BEGIN [A-Z ]{0,32}PRIVATE KEY", is_to_end },
	{ PII_ACCESS_KEY, "xapp-[A-Za-z0-9-]{20,}", is_prefix },
	{ PII_ACCESS_KEY, "hooks\\.slack\\.com\\/[A-Za-z0-9+\\/]{20,}", is_prefix },
	{ PII_ACCESS_KEY, "whsec_[A-Za-z0-9+\\/]{24,}", is_prefix },
	{ PII_ACCESS_KEY, "glsa_[A-Za-z0-9_]{41,}", is_prefix },
	{ PII_ACCESS_KEY, "glc_[A-Za-z0-9+\\/]{32,}", is_prefix },
	{ PII_ACCESS_KEY, "eyJrIjoi[A-Za-z0-9+\\/]{40,}", is_prefix },
	{ PII_ACCESS_KEY, "hf_[A-Za-z0-9]{34,}", is_prefix },
	{ PII_ACCESS_KEY, "do[opr]_v1_[0-9A-Fa-f]{64,}", is_prefix },
	{ PII_ACCESS_KEY, "pypi-AgE[A-Za-z0-9_-]{50,}", is_prefix },
	{ PII_ACCESS_KEY, "dckr_[A-Za-z0-9_-]{31,}", is_prefix },
	{ PII_ACCESS_KEY, "hv[sbr]\\.[A-Za-z0-9_-]{24,}", is_prefix },
	{ PII_ACCESS_KEY, "shp(?:at|ca|pa|ss)_[0-9A-Fa-f]{32,}", is_prefix },
	{ PII_ACCESS_KEY, "dapi[0-9A-Fa-f]{32}(?![A-Za-z0-9])(?:-[0-9])?", is_prefix },
	{ PII_ACCESS_KEY, "(?:SK|AC)[0-9A-Fa-f]{32}", is_alone },
	{ PII_ACCESS_KEY, "AT[AC]TT3[A-Za-z0-9_-]{40,}(?:=[0-9A-Fa-f]{8}(?![A-Za-z0-9]))?", is_prefix },
	{ PII_ACCESS_KEY, "ATBB[A-Za-z0-9]{28,}", is_prefix },
	{ PII_ACCESS_KEY, "lin_api_[A-Za-z0-9]{40,}", is_prefix },
	{ PII_ACCESS_KEY, "lin_oauth_[0-9A-Fa-f]{64,}", is_prefix },
	{ PII_CARD, CARD_GROUPS("\\."), is_card_groups },
	{ PII_CARD, CARD_GROUPS("_"), is_card_groups },
	{ PII_CARD, CARD_GROUPS("\\+"), is_card_groups },
	{ PII_CARD, CARD_GROUPS("%20"), is_card_groups },
	{ PII_IBAN, "[A-Z]{2}[0-9]{2}(?:[A-Z0-9]{11,28}|(?: [A-Z0-9]{4}){2,7}(?: [A-Z0-9]{1,3})?)", is_iban },
	{ PII_CARD, "(?:3[0-9]{3}[ -]?[0-9]{6}[ -]?[0-9]{4,5}(?![A-Za-z0-9])|[2-8][0-9]{3}(?:[ "
		    "-]?[0-9]{4}){2}[ -]?[0-9]{1,4}(?:[ -]?[0-9]{1,3})?)", is_card },
	{ PII_SSN, "[0-9]{3}-[0-9]{2}-[0-9]{4}", is_ssn },
	{ PII_PHONE, "\\+[1-9][0-9]{0,2}(?:[ .()-]{0,2}[0-9]){6,14}", is_phone },
	{ PII_PHONE, "(?:\\([2-9][0-9]{2}\\) ?|[2-9][0-9]{2}[-. ])[2-9][0-9]{2}[-. "
		     "][0-9]{4}", is_phone },
	{ PII_PHONE, "%2[Bb][1-9][0-9]{0,2}(?:[ .()-]{0,2}[0-9]){6,14}", is_phone },
	{ PII_PHONE, "(?<![+-])1-(?:\\([2-9][0-9]{2}\\) ?|[2-9][0-9]{2}[-. ])[2-9][0-9]{2}[-. ][0-9]{4}", is_phone },
	{ PII_PAN, "[A-Z]{3}[ABCFGHJLPT][A-Z][0-9]{4}[A-Z]", is_alone },
	{ PII_AADHAAR, "[2-9][0-9]{3}(?:[0-9]{8}| [0-9]{4} "
		       "[0-9]{4}|-[0-9]{4}-[0-9]{4})", is_aadhaar },
	{ PII_UUID, "[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}", is_alone },
	{ PII_BEARER, "(?i)bearer(?:[ \\t=+]|:(?!:)|%20){1,8}([A-Za-z0-9._~+\\/=-]{8,})", is_bearer },
	{ PII_BASIC, "(?i)basic(?:[ \\t]|%20){1,8}([A-Za-z0-9+\\/]{8,4096}={0,2})", is_basic },
	{ PII_CREDENTIAL, "(?s)" SECRET "(?<!(?<![_-])pwd(?==[.\\/\\\\]))=(?![=(~])" VALUE, is_assigned },
	{ PII_CREDENTIAL, SECRET "%3D((?:(?!%26)[^\\s\"'<>&;])+)" },
	{ PII_CREDENTIAL, "(?s)" SECRET "\\\\?[\"']: {0,4}(?|" QUOTED ")" },
	{ PII_CREDENTIAL, "(?s)" SECRET " {1,4}(?![ -])" VALUE, is_option },
	{ PII_CREDENTIAL, "(?s)" SECRET ": {1,4}(?! )" VALUE, is_header },
	{ PII_CREDENTIAL, "(?i)(?<=password|passwd|passphrase): {1,4}((?-i:(?=[a-z0-9]))(?=[^\\s\"'<>&;]*[0-9])[^\\s\"'<>&;]{8,})" },
	{ PII_URL_CREDENTIALS, ":\\/\\/([^\\s?\"'<>\\/\\\\#]+)@(?=[^\\s?\"'<>\\/\\\\#])", is_userinfo },
	{ PII_HOME_DIRECTORY, HOME_FRONT "\\/home\\/(?:\\/|\\.\\/)*+(" NAME ")", is_home },
	{ PII_HOME_DIRECTORY, HOME_FRONT "\\/Users\\/(?:\\/|\\.\\/)*+(" NAME ")", is_users },
	{ PII_HOME_DIRECTORY, HOME_FRONT "\\\\\\/home\\\\\\/(?:\\/|\\.\\/)*+(" NAME ")", is_home },
	{ PII_HOME_DIRECTORY, HOME_FRONT "\\\\\\/Users\\\\\\/(?:\\/|\\.\\/)*+(" NAME ")", is_home },
	{ PII_HOME_DIRECTORY, WINDOWS_USERS(SHARED_HOME), is_windows },
	{ PII_HOME_DIRECTORY, WINDOWS_USERS(""), is_windows },
	{ PII_HOME_DIRECTORY, "(?:(?<![A-Za-z0-9_.-])|(?<=%" PAIR "))" ESCAPED_SLASH "(?:home|[Uu]sers)" ESCAPED_SLASH
	  "((?:[A-Za-z0-9_.~\\x80-\\xff-]|%20|%[89A-Fa-f][0-9A-Fa-f]){1,64})" },
	{ PII_URL_QUERY, "\\?([A-Za-z0-9_.\\[\\]%-]{1,64}=[^\\s\"'<>#]+)" },
	{ PII_URL_QUERY, "(?:(?<=webpack)|(?<=webpack-internal)):\\/\\/[^\\s?\"'<>]++(*SKIP)(*F)"
			 "|:\\/\\/[^\\s?\"'<>]++(*SKIP)\\?([^\\s\"'<>#]+)", is_url },
	{ PII_WORKSPACE, "(?:^|[^A-Za-z0-9_.-])\\/builds\\/" PROJECT },
	{ PII_WORKSPACE, "\\/_work\\/" PROJECT },
	{ PII_WORKSPACE, "\\/__w\\/" PROJECT },
	{ PII_WORKSPACE, "\\/home\\/(?:(?:runner|vsts)\\/" "work|travis\\/build|gitlab-runner\\/builds)\\/" PROJECT },
	{ PII_WORKSPACE, "\\/Users\\/(?:(?:runner|vsts)\\/" "work|travis\\/build|gitlab-runner\\/builds)\\/" PROJECT },
	{ PII_WORKSPACE, "\\/buildkite-agent\\/builds\\/" PROJECT },
	{ PII_WORKSPACE, "(?:jenkins[A-Za-z0-9_-]{0,32}|\\/agent)\\/workspace\\/(" SEGMENT ")\\/" },
	{ PII_WORKSPACE, "\\/(?:buildAgent|agent)\\/work\\/(" SEGMENT ")\\/" },
	{ PII_WORKSPACE, "\\/_bazel_(" SEGMENT "(?:\\/[0-9a-f]{32})?)" },
	{ PII_WORKSPACE, "\\/go-build([0-9]{4,20})" },
	{ PII_WORKSPACE, "[A-Za-z]:[\\\\\\/]a[\\\\\\/](" SEGMENT "[\\\\\\/]" SEGMENT ")[\\\\\\/]" },
};
/* clang-format on */

#define REFERENCE_RULES (sizeof reference_rules / sizeof *reference_rules)
#define REFERENCE_PARTS 512

struct reference {
	struct regex *patterns[REFERENCE_RULES];
	struct regex_memory *memory;
	size_t count, added;
	bool overflowed; /* more hits than REFERENCE_PARTS, or the engine gave up */
	struct reference_part {
		size_t start, end;
		bool name;
	} parts[REFERENCE_PARTS];
};

static bool reference_open(struct reference *r)
{
	r->memory = regex_memory_new();
	for (size_t i = 0; i < REFERENCE_RULES; i++) {
		r->patterns[i] = regex_new(reference_rules[i].pattern, REGEX_BYTES, NULL);
		if (!r->patterns[i])
			return false;
	}
	return true;
}

static inline void reference_close(struct reference *r)
{
	for (size_t i = 0; i < REFERENCE_RULES; i++)
		regex_unref(&r->patterns[i]);
	regex_memory_unref(&r->memory);
}

/* Whole characters, and joined with what overlaps. */
static void reference_add(struct reference *r, struct view text, struct reference_part part)
{
	while (part.start && (text.at[part.start] & 0xc0) == 0x80)
		part.start--;
	while (part.end < text.len && (text.at[part.end] & 0xc0) == 0x80)
		part.end++;
	for (size_t i = 0; i < r->count; i++) {
		struct reference_part other = r->parts[i];
		if (part.start < other.end && other.start < part.end) {
			part.start = part.start < other.start ? part.start : other.start;
			part.end = part.end > other.end ? part.end : other.end;
			part.name &= other.name;
			r->parts[i] = r->parts[--r->count];
			i = (size_t)-1;
		}
	}
	r->overflowed |= ++r->added > REFERENCE_PARTS;
	if (!r->overflowed)
		r->parts[r->count++] = part;
}

static bool reference_run(struct reference *r, size_t index, struct view text)
{
	const struct reference_rule *rule = &reference_rules[index];
	bool found = false;
	for (size_t from = 0; from < text.len;) {
		enum regex_result result = regex_find(r->patterns[index], r->memory, text, from);
		r->overflowed |= result == REGEX_ERROR;
		if (result != REGEX_YES)
			break;
		struct regex_span whole = regex_group(r->memory, 0), span = whole;
		if (regex_group(r->memory, 1).set)
			span = regex_group(r->memory, 1);
		bool hit = span.end > span.start && (!rule->confirm || rule->confirm(text, &span));
		if (hit)
			reference_add(r, text,
				      (struct reference_part){
					      span.start, span.end,
					      rule->detector == PII_HOME_DIRECTORY ||
						      rule->detector == PII_WORKSPACE });
		found |= hit;
		/* What was no hit may hide one that begins a little later. */
		size_t next = hit ? span.end : whole.start + 1;
		from = next > from ? next : from + 1;
	}
	return found;
}

/*
 * What becomes of a text under `mask`: the detectors that hit, and the masked text in out, which is
 * empty without a hit. Worth nothing if r->overflowed.
 */
static uint64_t reference_mask(struct reference *r, const uint8_t *actions, struct view text,
			       struct bytes *out)
{
	uint64_t hits = 0;
	size_t at = 0;
	r->count = r->added = 0;
	r->overflowed = false;
	out->len = 0;
	for (size_t i = 0; i < REFERENCE_RULES; i++)
		if (actions[reference_rules[i].detector] != PII_LEAVE && reference_run(r, i, text))
			hits |= 1ull << reference_rules[i].detector;
	while (r->count) {
		size_t first = 0;
		for (size_t i = 1; i < r->count; i++)
			first = r->parts[i].start < r->parts[first].start ? i : first;
		bytes_add(out, text.at + at, r->parts[first].start - at);
		bytes_add_text(out, r->parts[first].name ? PII_NAME_MASK : PII_MASK_TEXT);
		at = r->parts[first].end;
		r->parts[first] = r->parts[--r->count];
	}
	if (hits)
		bytes_add(out, text.at + at, text.len - at);
	return hits;
}

#endif
