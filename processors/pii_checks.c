/* SPDX-License-Identifier: Apache-2.0 */
#include "processors/pii_checks.h"

#include <arpa/inet.h>
#include <ctype.h>

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

bool pii_check_prefix(struct view text, struct regex_span *span)
{
	return !isalnum(before(text, span));
}

bool pii_check_alone(struct view text, struct regex_span *span)
{
	return !isalnum(before(text, span)) && !isalnum(behind(text, span->end));
}

bool pii_check_to_end(struct view text, struct regex_span *span)
{
	span->end = text.len;
	return true;
}

static bool is_local_part(uint8_t c)
{
	return isalnum(c) || c >= 0x80 || (c && strchr("._%+'-", c));
}

/* "v1.2", "1.2-rc": what stands behind the @ of a module or a package. */
static bool is_version(struct view domain)
{
	size_t i = domain.at[0] == 'v' ? 1 : 0, digits = 0;
	for (; i < domain.len && isdigit(domain.at[i]); i++)
		digits++;
	return digits && i + 1 < domain.len && domain.at[i] == '.' && isdigit(domain.at[i + 1]);
}

/* "user@1000.service" is a unit of systemd. */
static bool is_unit(struct view domain)
{
	static const char *const suffixes[] = { ".service", ".socket", ".slice", ".scope", ".timer",
						".mount", ".target", ".device", ".automount" };
	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		size_t len = strlen(suffixes[i]);
		if (domain.len >= len &&
		    memcmp(domain.at + domain.len - len, suffixes[i], len) == 0)
			return true;
	}
	return false;
}

bool pii_check_email(struct view text, struct regex_span *span)
{
	struct view domain = { text.at + span->start + 1, span->end - span->start - 1 };
	if (is_version(domain) || is_unit(domain))
		return false;
	size_t at = span->start;
	while (span->start && at - span->start < 64 && is_local_part(text.at[span->start - 1]))
		span->start--;
	return span->start < at;
}

/* Four numbers up to 255, and not part of a longer dotted number. */
bool pii_check_ipv4(struct view text, struct regex_span *span)
{
	unsigned number = 0;
	uint8_t front = before(text, span), back = behind(text, span->end);
	for (size_t i = span->start; i < span->end; i++) {
		number = text.at[i] == '.' ? 0 : number * 10 + (text.at[i] - '0');
		if (number > 255)
			return false;
	}
	if (isalnum(front) || front == '.' || isalnum(back))
		return false;
	return !(back == '.' && isdigit(behind(text, span->end + 1)));
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
 * "c10::ff" and "be::ad" are names of C++ too: a shortened address counts only if it begins as those do that
 * hosts have (2000::/3, fc00::/7, fe80::/10), with four digits.
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

bool pii_check_ipv6(struct view text, struct regex_span *span)
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
			return true;
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
bool pii_check_jwt(struct view text, struct regex_span *span)
{
	while (span->start && is_base64url(text.at[span->start - 1]))
		span->start--;
	while (span->end < text.len &&
	       (is_base64url(text.at[span->end]) || text.at[span->end] == '.'))
		span->end++;
	return true;
}

bool pii_check_aws(struct view text, struct regex_span *span)
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

/* Issuer ranges by their first four digits (ISO/IEC 7812), with the lengths that are given there. */
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
		if (four >= ranges[i].from && four <= ranges[i].to &&
		    count >= ranges[i].shortest && count <= ranges[i].longest)
			return true;
	return false;
}

/* A number may follow the card's, so shorter fronts are tried too. */
bool pii_check_card(struct view text, struct regex_span *span)
{
	uint8_t digits[19], front = before(text, span);
	if (isalnum(front) ||
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

/* Area 000, 666, 9xx, group 00 and serial 0000 are never given (SSA, since 2011). */
bool pii_check_ssn(struct view text, struct regex_span *span)
{
	uint8_t d[9], front = before(text, span), back = behind(text, span->end);
	digits_of(text, span, d, sizeof d);
	unsigned area = d[0] * 100u + d[1] * 10u + d[2];
	if (!area || area == 666 || area >= 900 || !(d[3] | d[4]) || !(d[5] | d[6] | d[7] | d[8]))
		return false;
	return pii_check_alone(text, span) && front != '-' && back != '-';
}

/* 8 to 15 digits (E.164), not part of a longer number, version or identifier. */
bool pii_check_phone(struct view text, struct regex_span *span)
{
	uint8_t digits[16], front = before(text, span), back = behind(text, span->end);
	size_t count = digits_of(text, span, digits, sizeof digits);
	if (count < 8 || count > 15 || !pii_check_alone(text, span))
		return false;
	if (front == '+' || front == '-' || (front == '.' && text.at[span->start] != '+'))
		return false;
	return !((back == '.' || back == '-') && isdigit(behind(text, span->end + 1)));
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

bool pii_check_aadhaar(struct view text, struct regex_span *span)
{
	uint8_t digits[12], front = before(text, span);
	digits_of(text, span, digits, sizeof digits);
	if (!pii_check_alone(text, span) || front == '-' || behind(text, span->end) == '-' ||
	    (front == '.' && span->start > 1 && isdigit(text.at[span->start - 2])))
		return false;
	return verhoeff(digits, sizeof digits);
}

/* "bearer authentication" is prose: a token is long or has a digit. */
bool pii_check_bearer(struct view text, struct regex_span *span)
{
	bool digit = false;
	for (size_t i = span->start; i < span->end; i++)
		digit |= isdigit(text.at[i]) != 0;
	return digit || span->end - span->start >= 16;
}
