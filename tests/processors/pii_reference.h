/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_PROCESSORS_PII_REFERENCE_H
#define TESTS_PROCESSORS_PII_REFERENCE_H

#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "processors/pii_detectors.h"
#include "processors/pii_scan.h"
#include "processors/regex.h"

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

static bool is_email(struct view text, struct regex_span *span)
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
static bool is_ipv4(struct view text, struct regex_span *span)
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

/* A number may follow the card's, so shorter fronts are tried too. */
static bool is_card(struct view text, struct regex_span *span)
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
static bool is_ssn(struct view text, struct regex_span *span)
{
	uint8_t d[9], front = before(text, span), back = behind(text, span->end);
	digits_of(text, span, d, sizeof d);
	unsigned area = d[0] * 100u + d[1] * 10u + d[2];
	if (!area || area == 666 || area >= 900 || !(d[3] | d[4]) || !(d[5] | d[6] | d[7] | d[8]))
		return false;
	return is_alone(text, span) && front != '-' && back != '-';
}

/* 8 to 15 digits (E.164), not part of a longer number, version or identifier. */
static bool is_phone(struct view text, struct regex_span *span)
{
	uint8_t digits[16], front = before(text, span), back = behind(text, span->end);
	size_t count = digits_of(text, span, digits, sizeof digits);
	if (count < 8 || count > 15 || !is_alone(text, span))
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

static bool is_aadhaar(struct view text, struct regex_span *span)
{
	uint8_t digits[12], front = before(text, span);
	digits_of(text, span, digits, sizeof digits);
	if (!is_alone(text, span) || front == '-' || behind(text, span->end) == '-' ||
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

/* A user's directory: below the root, or below a mount, container root or export; "/app/home" is a
 * program's own. */
#define HOME_ROOTS \
	"root|rootfs|host|hostfs|hostroot|merged|diff|upper|snapshot|[dD]ata|export|var|usr|mnt|nfs|net" \
	"|private|srv|media|opt|gpfs|lustre|(?:data|disk|vol|nas|fs)[0-9]{1,3}|[a-zA-Z]" \
	"|(?:Volumes|mnt|media|net|nfs|gpfs|lustre)\\/[^\\/]{1,64}"
#define HOME_FRONT "(?:^|[^A-Za-z0-9_-]|\\/(?:" HOME_ROOTS "))"
#define NAME "[^\\/\\\\\\s:;,\"'<>|*?()\\[\\]{}]{1,256}"
#define SEGMENT "[^\\/\\\\\\s*]{1,256}"
/* The rest of a header, which is read once, and the next part. */
#define JWT_PARTS "[A-Za-z0-9_-]*+(*SKIP)\\.[A-Za-z0-9_-]*+\\."
/* two levels: group and project, or a name twice */
#define PROJECT "(" SEGMENT "\\/" SEGMENT ")\\/"
#define WINDOWS_HOME \
	"(?i)(?:\\\\{1,4}|[a-z]:[\\\\\\/]{1,4})(?:users|documents and settings)[\\\\\\/]{1,4}" \
	"(?|([^\\\\\\/:*?\"<>|\\r\\n]{1,64})[\\\\\\/]|([^\\\\\\/\\s:*?\"<>|]{1,256}))"

/* clang-format off */
static const struct reference_rule {
	enum pii_detector detector;
	const char *pattern; /* group 1, if there is one, is the part that is masked */
	bool (*confirm)(struct view text, struct regex_span *span);
} reference_rules[] = {
	{ PII_EMAIL, "@(?:[A-Za-z0-9\\x80-\\xff][A-Za-z0-9\\x80-\\xff-]{0,62}\\.){1,8}[A-Za-z\\x80-\\xff]{2,24}", is_email },
	{ PII_IPV4, "[0-9]{1,3}(?:\\.[0-9]{1,3}){3}", is_ipv4 },
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
	{ PII_CARD, "(?:3[0-9]{3}[ -]?[0-9]{6}[ -]?[0-9]{4,5}|[2-8][0-9]{3}(?:[ "
		    "-]?[0-9]{4}){2}[ -]?[0-9]{1,4}(?:[ -]?[0-9]{1,3})?)", is_card },
	{ PII_SSN, "[0-9]{3}-[0-9]{2}-[0-9]{4}", is_ssn },
	{ PII_PHONE, "\\+[1-9][0-9]{0,2}(?:[ .()-]{0,2}[0-9]){6,14}", is_phone },
	{ PII_PHONE, "(?:\\([2-9][0-9]{2}\\) ?|[2-9][0-9]{2}[-. ])[2-9][0-9]{2}[-. "
		     "][0-9]{4}", is_phone },
	{ PII_PAN, "[A-Z]{3}[ABCFGHJLPT][A-Z][0-9]{4}[A-Z]", is_alone },
	{ PII_AADHAAR, "[2-9][0-9]{3}(?:[0-9]{8}| [0-9]{4} "
		       "[0-9]{4}|-[0-9]{4}-[0-9]{4})", is_aadhaar },
	{ PII_UUID, "[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}", is_alone },
	{ PII_BEARER, "(?i)bearer(?:[ \\t:=+]|%20){1,8}([A-Za-z0-9._~+\\/=-]{8,})", is_bearer },
	{ PII_HOME_DIRECTORY, HOME_FRONT "\\/home\\/++(" NAME ")" },
	{ PII_HOME_DIRECTORY, HOME_FRONT "\\/Users\\/++(" NAME ")" },
	{ PII_HOME_DIRECTORY, WINDOWS_HOME },
	{ PII_HOME_DIRECTORY, WINDOWS_HOME },
	{ PII_URL_QUERY, "\\?([A-Za-z0-9_.\\[\\]%-]{1,64}=[^\\s\"'<>]+)" },
	{ PII_URL_QUERY, ":\\/\\/[^\\s?\"'<>]++(*SKIP)\\?([^\\s\"'<>]+)" },
	{ PII_WORKSPACE, "(?:^|[^A-Za-z0-9_.-])\\/builds\\/" PROJECT },
	{ PII_WORKSPACE, "\\/_work\\/" PROJECT },
	{ PII_WORKSPACE, "\\/__w\\/" PROJECT },
	{ PII_WORKSPACE, "\\/home\\/" SEGMENT "\\/(?:work|build|builds)\\/" PROJECT },
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
