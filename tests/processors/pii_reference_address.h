/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_PROCESSORS_PII_REFERENCE_ADDRESS_H
#define TESTS_PROCESSORS_PII_REFERENCE_ADDRESS_H

#include "tests/processors/pii_reference_text.h"

/* Part of pii_reference.h: addresses of people and of machines. */

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

/* Is the last label of the domain one of those that most mail hosts have? */
static bool is_common_end(const uint8_t *label, size_t len)
{
	static const char ends[] = " com org net edu gov info biz ";
	char word[8];
	if (len == 2 || len > 4)
		return len == 2;
	snprintf(word, sizeof word, " %.*s ", (int)len, label);
	return strstr(ends, word);
}

/* "com.acme.Session@6d06d69c.close": a class in a package, and its hash. In another class the
 * package is not needed, nor for a hash that cannot be a word or a number. */
static bool is_object(struct view text, size_t start, struct view local, struct view domain)
{
	const uint8_t *dot = memchr(domain.at, '.', domain.len);
	const uint8_t *class = memrchr(local.at, '.', local.len);
	size_t hash = dot ? (size_t)(dot - domain.at) : 0, digits = 0;
	for (size_t i = 0; i < hash; i++) {
		if (!isxdigit(domain.at[i]) || isupper(domain.at[i]))
			return false;
		digits += isdigit(domain.at[i]) != 0;
	}
	if (!dot || hash < 5 || hash > 8 || memchr(dot + 1, '.', domain.len - hash - 1) ||
	    is_common_end(dot + 1, domain.len - hash - 1))
		return false;
	size_t first = class ? (size_t)(class - local.at) + 1 : 0;
	for (size_t i = first; i < local.len; i++)
		if (!isalnum(local.at[i]) && local.at[i] != '_')
			return false;
	if (first == local.len || !isupper(local.at[first]))
		return false;
	if (class)
		return islower(local.at[0]);
	return (start && text.at[start - 1] == '$') || (hash >= 7 && digits && digits < hash);
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
	return colon && n <= 128 &&
	       (is_word_before(text, at - n, "://") || is_word_before(text, at - n, ":\\/\\/"));
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
	return local.len && !is_object(text, span->start, local, domain) &&
	       !is_macro(local, domain) && !(separator == 1 && ends_userinfo(text, at));
}

static bool is_email(struct view text, struct regex_span *span)
{
	return is_email_of(text, span, 1);
}

static bool is_email_narrow(struct view text, struct regex_span *span)
{
	return is_email_of(text, span, 3);
}

/* With a full-width dot. */
static bool is_email_wide(struct view text, struct regex_span *span)
{
	size_t start = span->start + 4;
	return span->end > start &&
	       memmem(text.at + start, span->end - start - 1, "\xef\xbc\x8e", 3) &&
	       is_email_of(text, span, 3);
}

/* The separator ends with the first "40", and with a bracket behind it. */
static size_t escaped_length(struct view text, size_t start)
{
	const uint8_t *end = memmem(text.at + start, text.len - start, "40", 2);
	return (size_t)(end + 2 - text.at) - start + (end[2] == '}');
}

static bool is_email_percent(struct view text, struct regex_span *span)
{
	return is_email_of(text, span, escaped_length(text, span->start));
}

/* With up to seven more backslashes in front. */
static bool is_email_literal(struct view text, struct regex_span *span)
{
	size_t separator = escaped_length(text, span->start), more = 0;
	while (more < 7 && before(text, span) == '\\')
		span->start--, more++;
	return is_email_of(text, span, separator + more);
}

static bool is_email_html(struct view text, struct regex_span *span)
{
	size_t end = span->start;
	while (text.at[end] != ';')
		end++;
	return is_email_of(text, span, end + 1 - span->start);
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
	if ((isalnum(front) && !ends_escape(text, span->start)) || front == '.' || isalnum(back) ||
	    is_named_version(text, span) || is_labelled_version(text, span) ||
	    is_installed_version(text, span))
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
	size_t pairs = (span->end - span->start + 1) / 3;
	bool decimal = true, time = gap == '-' && pairs == 6;
	unsigned zeros = 0, ones = 0;
	for (size_t i = 0; i < pairs; i++) {
		char two[] = { (char)text.at[span->start + 3 * i],
			       (char)text.at[span->start + 3 * i + 1], 0 };
		unsigned value = (unsigned)strtoul(two, NULL, 16);
		zeros += value == 0;
		ones += value == 255;
		decimal = decimal && isdigit((uint8_t)two[0]) && isdigit((uint8_t)two[1]);
		time = time && decimal && strtoul(two, NULL, 10) <= highest[i];
	}
	if (zeros == pairs || ones == pairs || time || isalnum(back) || back == '_')
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
	return digit && letter && !isalnum(back) &&
	       !(back == '.' && isalnum(behind(text, span->end + 1))) && back != '_' &&
	       !isalnum(front) && front != '.' && front != '_';
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
		bool name = shortened && !memchr(address.at, '.', address.len) &&
			    is_word_at(text, span->end, "::");
		if (!isalnum(back) && back != '_' && !name && parses_as_ipv6(address) &&
		    (!shortened || looks_assigned(address)))
			return !is_fingerprint(text, span);
		do
			span->end--;
		while (span->end > span->start && text.at[span->end] != ':');
		if (!shortened || span->end < span->start + 4)
			return false;
	}
}

#endif
