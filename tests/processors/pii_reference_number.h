/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_PROCESSORS_PII_REFERENCE_NUMBER_H
#define TESTS_PROCESSORS_PII_REFERENCE_NUMBER_H

#include "tests/processors/pii_reference_text.h"

/* Part of pii_reference.h: what is made of digits and separators. */

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

/* Is the front of a number the end of a word? */
static bool is_glued(struct view text, const struct regex_span *span)
{
	return isalnum(before(text, span)) && !ends_escape(text, span->start);
}

/* A number may follow the card's, so shorter fronts are tried too. */
static bool is_card(struct view text, struct regex_span *span)
{
	uint8_t digits[19], front = before(text, span);
	if (is_glued(text, span) || is_suffix(text, span) ||
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
	if (is_glued(text, span) || isalnum(behind(text, span->end)) ||
	    (front == '.' && span->start > 1 && isdigit(text.at[span->start - 2])))
		return false;
	return !(gap && isdigit(behind(text, span->end + gap))) && is_issued(digits, count) &&
	       luhn(digits, count);
}

/* How many characters the country's numbers have; 0: it has none. */
static size_t iban_characters(const uint8_t *country)
{
	static const char lengths[] =
		"AD24AE23AL28AT20AZ28BA20BE16BG22BH22BR29BY28CH21CR22CY28CZ24DE22DK18DO28EE20EG29"
		"ES24FI18FO18FR27GB22GE22GI23GL18GR27GT28HR21HU28IE22IL23IQ23IS26IT27JO30KW30KZ20"
		"LB28LC32LI21LT20LU20LV21LY25MC27MD24ME22MK19MR27MT31MU30NL18NO15PK24PL28PS29PT25"
		"QA29RO24RS22SA24SC31SE24SI19SK24SM27ST25SV28TL23TN24TR26UA29VA22VG24XK20";
	for (size_t i = 0; lengths[i]; i += 4)
		if (memcmp(country, lengths + i, 2) == 0)
			return (size_t)(lengths[i + 2] - '0') * 10 + (size_t)(lengths[i + 3] - '0');
	return 0;
}

/* Ends the span behind as many characters as the country's numbers have, and copies them. */
static bool cut_iban(struct view text, struct regex_span *span, char characters[40])
{
	size_t want = iban_characters(text.at + span->start), n = 0, i = span->start;
	while (want && n < want && i < span->end) {
		if (isalnum(text.at[i]))
			characters[n++] = (char)text.at[i];
		i += text.at[i] == '%' ? 3 : 1;
	}
	span->end = i;
	return want && n == want;
}

/* The remainder of 97, digit by digit. */
static bool is_iban(struct view text, struct regex_span *span)
{
	char characters[40], digits[80];
	size_t n = 0, len = iban_characters(text.at + span->start);
	unsigned rest = 0;
	if (!cut_iban(text, span, characters))
		return false;
	for (size_t i = 0; i < len; i++) {
		char c = characters[(i + 4) % len];
		n += (size_t)snprintf(digits + n, sizeof digits - n, "%d",
				      isdigit((uint8_t)c) ? c - '0' : c - 'A' + 10);
	}
	for (size_t i = 0; i < n; i++)
		rest = (rest * 10 + (unsigned)(digits[i] - '0')) % 97;
	return rest == 1 && is_free(text, span);
}

/* Area 000, 666, 9xx, group 00 and serial 0000 are never given (SSA, since 2011). */
static bool is_ssn(struct view text, struct regex_span *span)
{
	uint8_t d[9], front = before(text, span), back = behind(text, span->end);
	digits_of(text, span, d, sizeof d);
	unsigned area = d[0] * 100u + d[1] * 10u + d[2];
	if (!area || area == 666 || area >= 900 || !(d[3] | d[4]) || !(d[5] | d[6] | d[7] | d[8]))
		return false;
	return is_free(text, span) && front != '-' && back != '-';
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
	uint8_t front = before(text, span);
	bool escape = text.at[span->start] == '%';
	size_t count = 0;
	for (size_t i = span->start; i < span->end; i += text.at[i] == '%' ? 3 : 1)
		count += isdigit(text.at[i]) != 0;
	if (count < 8 || count > 15)
		return false;
	if (!escape && (is_glued(text, span) || front == '+' || front == '-' ||
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

#endif
