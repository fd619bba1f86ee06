/* SPDX-License-Identifier: Apache-2.0 */
#include "processors/pii_find.h"
#include "processors/pii_text.h"

/* What is made of digits and separators. The anchors see to what stands in front. */
static bool is_digit(struct view text, size_t at)
{
	return pii_is(pii_byte(text, at), PII_DIGIT);
}

static bool is_alnum(struct view text, size_t at)
{
	return pii_is(pii_byte(text, at), PII_ALNUM);
}

static bool digits_at(struct view text, size_t at, size_t count)
{
	return pii_run(text, at, PII_DIGIT, count) == count;
}

/* "0.4111": the digits behind a decimal point. */
static bool is_fraction(struct view text, size_t at)
{
	return at > 1 && text.at[at - 1] == '.' && is_digit(text, at - 2);
}

/* "f.llvm.12345": the compiler's suffix of a symbol. */
static bool is_suffix(struct view text, size_t at)
{
	return PII_WORD_BEFORE(text, at, ".llvm.");
}

/* Is what ends here only the front of something longer? "-1", ".1" */
static bool goes_on(struct view text, size_t at, bool dash)
{
	uint8_t back = pii_byte(text, at);
	return (back == '.' || (dash && back == '-')) && is_digit(text, at + 1);
}

/* Four numbers up to 255 with the same separator; where they end, 0: they are none. */
static size_t four_numbers(struct view text, size_t i, uint8_t gap)
{
	for (int part = 0; part < 4; part++) {
		unsigned number = 0;
		size_t n = 0;
		if (part && pii_byte(text, i++) != gap)
			return 0;
		for (; n < 3 && is_digit(text, i + n); n++)
			number = number * 10 + (text.at[i + n] - '0');
		if (!n || number > 255)
			return 0;
		i += n;
	}
	return i;
}

/* "libfoo-3.21.12.0.so": a version, behind the name of what has it, and in front of more of the
 * name. */
static bool is_named_version(struct view text, size_t at, size_t end)
{
	static const char *const endings[] = { "so",  "dylib", "dll", "jar", "whl", "egg", "deb",
					       "rpm", "gem",   "tar", "tgz", "zip", "exe" };
	if (at < 2 || !pii_is(text.at[at - 1], PII_DASH | PII_UNDERSCORE) ||
	    !(pii_is(text.at[at - 2], PII_ALNUM) || text.at[at - 2] == '+'))
		return false;
	uint8_t back = pii_byte(text, end);
	for (size_t i = 0; back == '.' && i < sizeof endings / sizeof *endings; i++) {
		size_t len = strlen(endings[i]);
		if (pii_has_at(text, end + 1, endings[i], len) && !is_alnum(text, end + 1 + len))
			return true;
	}
	return back == '/' || back == '-' || back == '_';
}

/* "Version=4.0.0.0" of an assembly, "Chrome/120.0.0.0" of a browser. */
static bool is_labelled_version(struct view text, size_t at)
{
	uint8_t mark = pii_byte(text, at - 1);
	if (mark == '=')
		return PII_WORD_BEFORE(text, at - 1, "ersion");
	return mark == '/' &&
	       (PII_WORD_BEFORE(text, at - 1, "Chrome") ||
		PII_WORD_BEFORE(text, at - 1, "Chromium") ||
		PII_WORD_BEFORE(text, at - 1, " Edg") || PII_WORD_BEFORE(text, at - 1, " OPR"));
}

/* "C:\Program Files\jvm\17.0.2.8\": below the name of what is installed. */
static bool is_installed_version(struct view text, size_t at, size_t end)
{
	if (pii_byte(text, at - 1) != '\\' || pii_byte(text, end) != '\\')
		return false;
	size_t name = pii_run_back(text, at - 1, PII_NAME, 64), front = at - 1 - name;
	return name && (PII_WORD_BEFORE(text, front, "\\Program Files\\") ||
			PII_WORD_BEFORE(text, front, "\\Program Files (x86)\\"));
}

static bool is_version(struct view text, size_t at, size_t end)
{
	return is_named_version(text, at, end) || is_labelled_version(text, at) ||
	       is_installed_version(text, at, end);
}

/* Not part of a longer dotted number. */
bool pii_find_ipv4(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
		   struct regex_span *span)
{
	(void)rule, (void)from;
	size_t end = four_numbers(text, at, '.');
	return end && !is_alnum(text, end) && !goes_on(text, end, false) &&
	       !is_version(text, at, end) && pii_hit(span, at, end);
}

/* The name of a host in a cloud, in small letters or capitals: what stands in front of its numbers;
 * its length, 0: it is none. */
static size_t host_front(struct view text, size_t dash)
{
	uint8_t last = pii_byte(text, dash - 1) | 0x20, first = pii_byte(text, dash - 2) | 0x20;
	if (last == 'p' && first == 'i')
		return 2;
	return pii_byte(text, dash - 1) == '2' && first == 'c' &&
			       (pii_byte(text, dash - 3) | 0x20) == 'e'
		       ? 3
		       : 0;
}

/* ip-10-1-2-3, ec2-203-0-113-25, at the first dash */
bool pii_find_ipv4_host(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
			struct regex_span *span)
{
	(void)rule, (void)from;
	size_t front = host_front(text, at), start = at + 1;
	if (!front || (at > front && is_alnum(text, at - front - 1)))
		return false;
	size_t end = four_numbers(text, start, '-');
	return end && !is_alnum(text, end) && !goes_on(text, end, true) &&
	       pii_hit(span, start, end);
}

/* Issuer ranges in the order of their first four digits (ISO/IEC 7812), with the lengths that are
 * given there. */
static bool is_issued(const uint8_t *first, size_t count)
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
	unsigned four = 0;
	for (int i = 0; i < 4; i++)
		four = four * 10 + (first[i] - '0');
	for (size_t i = 0; i < sizeof ranges / sizeof *ranges && four >= ranges[i].from; i++)
		if (four <= ranges[i].to && count >= ranges[i].shortest &&
		    count <= ranges[i].longest)
			return true;
	return false;
}

/*
 * Digits with at most one separator between two of them, in which several cards may begin: each is
 * read once. Luhn's sums are those of all digits before one, with every other digit doubled: in the
 * lower half those of odd index.
 */
#define CHAIN_MAX 64
#define CARD_MAX 19 /* digits */

struct chain {
	size_t count;
	bool open; /* there may be more of it */
	/* a bit of each digit with a separator before it, and of the end, if a number may end there
	 */
	uint64_t marks;
	uint32_t sums[CHAIN_MAX + 1];
	uint8_t places[CHAIN_MAX + 1]; /* of the digits and the end, from the start on */
};

static void read_chain(struct view text, size_t at, struct chain *chain)
{
	/* 65536 of the one half, and the other. */
	static const uint32_t weights[2][10] = {
		{ 0x00000, 0x20001, 0x40002, 0x60003, 0x80004, 0x10005, 0x30006, 0x50007, 0x70008,
		  0x90009 },
		{ 0x00000, 0x10002, 0x20004, 0x30006, 0x40008, 0x50001, 0x60003, 0x70005, 0x80007,
		  0x90009 },
	};
	size_t i = at, count = 0;
	chain->marks = 0;
	chain->sums[0] = 0;
	for (; count < CHAIN_MAX && i < text.len; count++, i++) {
		if (!pii_is(text.at[i], PII_DIGIT)) {
			if ((text.at[i] != ' ' && text.at[i] != '-') || !is_digit(text, i + 1))
				break;
			chain->marks |= 1ull << count;
			i++;
		}
		chain->places[count] = (uint8_t)(i - at);
		chain->sums[count + 1] = chain->sums[count] + weights[count & 1][text.at[i] - '0'];
	}
	chain->count = count;
	chain->open = count == CHAIN_MAX;
	chain->places[count] = (uint8_t)(i - at);
	if (!chain->open && !is_alnum(text, i))
		chain->marks |= 1ull << count;
}

#define MARK(digits) (1ull << (digits))

/* Is there a card of that number of digits, from digit `first` on? */
static bool is_card(const uint8_t *text, const struct chain *chain, size_t first, size_t count)
{
	size_t end = first + count;
	uint32_t sums = chain->sums[end] - chain->sums[first];
	if (!(chain->marks >> end & 1) || (end & 1 ? sums & 0xffff : sums >> 16) % 10 != 0)
		return false;
	uint8_t four[4];
	for (size_t i = 0; i < 4; i++)
		four[i] = text[chain->places[first + i]];
	return is_issued(four, count);
}

/* Every other digit, from the last but one on, is doubled. */
static bool luhn(const uint8_t *digits, size_t count)
{
	unsigned sum = 0;
	for (size_t i = 1; i <= count; i++) {
		unsigned digit = digits[count - i] - (unsigned)'0';
		sum += i & 1 ? digit : digit > 4 ? 2 * digit - 9 : 2 * digit;
	}
	return sum % 10 == 0;
}

/* Where the digits end that begin behind `front` of a number: at a separator, or after max; of
 * `left` digits. */
static size_t group_end(uint64_t marks, size_t front, size_t max, size_t left)
{
	uint64_t ends = (marks & ~((MARK(front) << 1) - 1)) | MARK(front + max);
	size_t end = (size_t)__builtin_ctzll(ends);
	return end < left ? end : left;
}

/*
 * The digits of the longest card that begins with digit `first`, for another number may follow; 0:
 * none. It is written in groups of 4, 6 and 4 or 5 digits, if a number may end there, or in three
 * of four, one of up to four and one of up to three.
 */
static size_t card_at(const uint8_t *text, const struct chain *chain, size_t first)
{
	const uint64_t fifteen = (MARK(14) - 2) & ~(MARK(4) | MARK(10)),
		       fours = (MARK(13) - 2) & ~(MARK(4) | MARK(8) | MARK(12));
	size_t left = chain->count - first;
	uint64_t marks = chain->marks >> first;
	if (text[chain->places[first]] == '3' && left >= 14 && !(marks & fifteen)) {
		size_t count = group_end(marks, 13, 2, left);
		if (marks >> count & 1)
			return is_card(text, chain, first, count) ? count : 0;
	}
	if (left < 13 || marks & fours)
		return 0;
	size_t max = group_end(marks, 12, 4, left),
	       more = max < left ? group_end(marks, max, 3, left) : max;
	if (more > max && is_card(text, chain, first, more))
		return more;
	return is_card(text, chain, first, max) ? max : 0;
}

/* The next digit behind a separator. */
static size_t next_start(const struct chain *chain, size_t digit)
{
	uint64_t marks = chain->marks & ~((MARK(digit) << 1) - 1);
	return marks ? (size_t)__builtin_ctzll(marks) : CHAIN_MAX;
}

bool pii_find_card(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
		   struct regex_span *span)
{
	struct chain chain;
	(void)rule;
	read_chain(text, at, &chain);
	size_t known = chain.open ? CHAIN_MAX - CARD_MAX : chain.count,
	       last = chain.open ? CHAIN_MAX - 1 : chain.count;
	bool other = is_fraction(text, at) || is_suffix(text, at);
	size_t first = other ? next_start(&chain, 0) : 0;
	for (; first < known; first = next_start(&chain, first)) {
		size_t start = at + chain.places[first];
		size_t count = text.at[start] >= '2' && text.at[start] <= '8'
				       ? card_at(text.at + at, &chain, first)
				       : 0;
		if (count)
			return pii_hit(span, start, at + chain.places[first + count - 1] + 1);
	}
	/* All that was read is settled. */
	*from = at + chain.places[first < last ? first : last];
	return false;
}

/* IBAN (ISO 13616): the length of each country's. */
static size_t iban_length(const uint8_t *country)
{
	static const char lengths[] =
		"AD24AE23AL28AT20AZ28BA20BE16BG22BH22BR29BY28CH21CR22CY28CZ24DE22DK18DO28EE20EG29"
		"ES24FI18FO18FR27GB22GE22GI23GL18GR27GT28HR21HU28IE22IL23IQ23IS26IT27JO30KW30KZ20"
		"LB28LC32LI21LT20LU20LV21LY25MC27MD24ME22MK19MR27MT31MU30NL18NO15PK24PL28PS29PT25"
		"QA29RO24RS22SA24SC31SE24SI19SK24SM27ST25SV28TL23TN24TR26UA29VA22VG24XK20";
	for (size_t i = 0; i + 4 < sizeof lengths; i += 4)
		if (lengths[i] == (char)country[0] && lengths[i + 1] == (char)country[1])
			return (size_t)(lengths[i + 2] - '0') * 10 + (size_t)(lengths[i + 3] - '0');
	return 0;
}

/* The remainder of 97 of all characters, the first four last; letters count as 10 to 35. */
static bool is_iban(const uint8_t *characters, size_t len)
{
	unsigned rest = 0;
	for (size_t i = 4; i < len + 4; i++) {
		uint8_t c = characters[i < len ? i : i - len];
		rest = c >= 'A' ? (rest * 100 + c - 'A' + 10) % 97 : (rest * 10 + c - '0') % 97;
	}
	return rest == 1;
}

/* What stands behind each four characters: a blank, as such or escaped, or a dash; its length. */
static size_t iban_gap(struct view text, size_t at)
{
	uint8_t byte = pii_byte(text, at);
	return byte == ' ' || byte == '-' || byte == '+' ? 1 : PII_WORD_AT(text, at, "%20") ? 3 : 0;
}

/* In one piece, or in groups with the same separator. */
bool pii_find_iban(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
		   struct regex_span *span)
{
	uint8_t characters[34];
	(void)rule, (void)from;
	if ((at && is_alnum(text, at - 1)) || !pii_is(text.at[at], PII_UPPER) ||
	    !digits_at(text, at + 2, 2))
		return false;
	size_t want = iban_length(text.at + at), i = at, gap = iban_gap(text, at + 4);
	for (size_t n = 0; n < want; n++, i++) {
		if (gap && n && n % 4 == 0) {
			if (pii_byte(text, i) != text.at[at + 4] || iban_gap(text, i) != gap)
				return false;
			i += gap;
		}
		if (!pii_is(pii_byte(text, i), PII_DIGIT | PII_UPPER))
			return false;
		characters[n] = text.at[i];
	}
	return want && !is_alnum(text, i) && is_iban(characters, want) && pii_hit(span, at, i);
}

/* The separator of groups of digits, but those of chains; its length, 0: there is none. */
static size_t card_gap(struct view text, size_t at)
{
	uint8_t byte = pii_byte(text, at);
	return byte == '.' || byte == '_' || byte == '+' ? 1 : PII_WORD_AT(text, at, "%20") ? 3 : 0;
}

/* Digits in groups with the same separator: of 4, 4, 4 and up to 4 and 3 digits, or of 4, 6 and 5.
 */
struct card_groups {
	uint8_t digits[CARD_MAX];
	size_t count, end;
};

static void read_card_groups(struct view text, size_t at, struct card_groups *card)
{
	static const size_t fours[] = { 4, 4, 4, 4, 3, 0 }, six[] = { 4, 6, 5, 0 };
	size_t gap = card_gap(text, at + 4);
	uint8_t mark = pii_byte(text, at + 4);
	const size_t *group = gap && digits_at(text, at + 4 + gap, 5) ? six : fours;
	*card = (struct card_groups){ .end = at };
	for (size_t i = at; *group; group++) {
		size_t len = pii_run(text, i, PII_DIGIT, *group);
		if (!len)
			return;
		memcpy(card->digits + card->count, text.at + i, len);
		card->count += len;
		card->end = i + len;
		if (len < *group || pii_byte(text, card->end) != mark)
			return;
		i = card->end + card_gap(text, card->end);
	}
}

/* 4111.1111.1111.1111 */
bool pii_find_card_groups(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
			  struct regex_span *span)
{
	struct card_groups card;
	(void)rule, (void)from;
	if (is_fraction(text, at))
		return false;
	read_card_groups(text, at, &card);
	size_t more = card_gap(text, card.end);
	if (is_alnum(text, card.end) || (more && is_digit(text, card.end + more)))
		return false;
	return card.count >= 13 && is_issued(card.digits, card.count) &&
	       luhn(card.digits, card.count) && pii_hit(span, at, card.end);
}

/* Area 000, 666, 9xx, group 00 and serial 0000 are never given (SSA, since 2011). */
bool pii_find_ssn(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
		  struct regex_span *span)
{
	(void)rule, (void)from;
	if (pii_byte(text, at + 3) != '-' || pii_byte(text, at + 6) != '-' ||
	    !digits_at(text, at, 3) || !digits_at(text, at + 4, 2) || !digits_at(text, at + 7, 4))
		return false;
	if (PII_WORD_AT(text, at, "000") || PII_WORD_AT(text, at, "666") || text.at[at] == '9' ||
	    PII_WORD_AT(text, at + 4, "00") || PII_WORD_AT(text, at + 7, "0000"))
		return false;
	return !is_alnum(text, at + 11) && pii_byte(text, at + 11) != '-' &&
	       pii_hit(span, at, at + 11);
}

/* A separator in a phone number; its length. In a URL, blanks and brackets are escaped. */
static size_t phone_gap(struct view text, size_t at, bool escaped)
{
	uint8_t byte = pii_byte(text, at), last = pii_byte(text, at + 2);
	if (byte == ' ' || byte == '.' || byte == '(' || byte == ')' || byte == '-')
		return 1;
	if (!escaped || (byte != '%' && byte != '+'))
		return 0;
	return byte == '+'                                                                    ? 1
	       : pii_byte(text, at + 1) == '2' && (last == '0' || last == '8' || last == '9') ? 3
											      : 0;
}

/* Where a phone number ends, with its extension; 0: something longer goes on. */
static size_t phone_end(struct view text, size_t end)
{
	size_t extension = pii_byte(text, end) == 'x' ? pii_run(text, end + 1, PII_DIGIT, 6) : 0;
	end += extension ? 1 + extension : 0;
	return is_alnum(text, end) || goes_on(text, end, true) ? 0 : end;
}

/* + or %2B, then 8 to 15 digits (E.164), with up to two separators between them but in the
 * country's code. */
bool pii_find_phone(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
		    struct regex_span *span)
{
	(void)from;
	size_t start = at + rule->back + 1;
	size_t country = pii_run(text, start, PII_DIGIT, 3);
	if (!country || text.at[start] == '0' || (rule->back && text.at[at] != '%'))
		return false;
	size_t count = country, end = start + country;
	for (; count < country + 14; count++) {
		size_t i = end;
		for (int gaps = 0; gaps < 2; gaps++)
			i += phone_gap(text, i, rule->back);
		if (!is_digit(text, i))
			break;
		end = i + 1;
	}
	return count >= 8 && count <= 15 && pii_hit(span, at, phone_end(text, end));
}

static bool is_dialled(struct view text, size_t at)
{
	uint8_t first = pii_byte(text, at);
	return first >= '2' && first <= '9' && digits_at(text, at + 1, 2);
}

static bool is_phone_gap(uint8_t byte)
{
	return byte == '-' || byte == '.' || byte == ' ';
}

/* Where a North American number ends: (202) 555-0143, 202-555-0143; 0: it is none. */
static size_t nanp_end(struct view text, size_t at)
{
	size_t i = at;
	if (pii_byte(text, at) == '(') {
		if (pii_byte(text, at + 4) != ')' || !is_dialled(text, at + 1))
			return 0;
		i += pii_byte(text, at + 5) == ' ' ? 6 : 5;
	} else {
		if (!is_phone_gap(pii_byte(text, at + 3)) || !is_dialled(text, at))
			return 0;
		i += 4;
	}
	if (!is_dialled(text, i) || !is_phone_gap(pii_byte(text, i + 3)) ||
	    !digits_at(text, i + 4, 4))
		return 0;
	return phone_end(text, i + 8);
}

bool pii_find_phone_nanp(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
			 struct regex_span *span)
{
	(void)rule, (void)from;
	return pii_hit(span, at, nanp_end(text, at));
}

/* 1-202-555-0143 */
bool pii_find_phone_trunk(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
			  struct regex_span *span)
{
	(void)rule, (void)from;
	if (at &&
	    (pii_is(text.at[at - 1], PII_ALNUM | PII_DOT | PII_DASH) || text.at[at - 1] == '+'))
		return false;
	return pii_hit(span, at, nanp_end(text, at + 2));
}

/* Three letters, the kind of holder, a letter, four digits, a letter. */
bool pii_find_pan(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
		  struct regex_span *span)
{
	(void)rule, (void)from;
	if (pii_run(text, at, PII_UPPER, 6) != 5 || !strchr("ABCFGHJLPT", text.at[at + 3]) ||
	    !digits_at(text, at + 5, 4) || !pii_is(pii_byte(text, at + 9), PII_UPPER))
		return false;
	return !is_alnum(text, at + 10) && pii_hit(span, at, at + 10);
}

/*
 * The check digit of Aadhaar numbers (Verhoeff): each digit, turned by its place, is multiplied in
 * the dihedral group D5. Four digits that end at `last`, in places that begin with an even multiple
 * of four or an odd one; 255: they are none.
 */
static unsigned verhoeff(unsigned check, const uint8_t *last, bool odd)
{
	static const uint8_t turn[8][16] = {
		{ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 }, { 1, 5, 7, 6, 2, 8, 3, 0, 9, 4 },
		{ 5, 8, 0, 3, 7, 9, 6, 1, 4, 2 }, { 8, 9, 1, 6, 0, 4, 3, 5, 2, 7 },
		{ 9, 4, 5, 3, 1, 2, 6, 8, 7, 0 }, { 4, 2, 8, 6, 5, 7, 3, 9, 0, 1 },
		{ 2, 7, 9, 3, 8, 0, 6, 4, 1, 5 }, { 7, 0, 4, 6, 9, 1, 3, 2, 5, 8 },
	};
	static const uint8_t product[10][16] = {
		{ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 }, { 1, 2, 3, 4, 0, 6, 7, 8, 9, 5 },
		{ 2, 3, 4, 0, 1, 7, 8, 9, 5, 6 }, { 3, 4, 0, 1, 2, 8, 9, 5, 6, 7 },
		{ 4, 0, 1, 2, 3, 9, 5, 6, 7, 8 }, { 5, 9, 8, 7, 6, 0, 4, 3, 2, 1 },
		{ 6, 5, 9, 8, 7, 1, 0, 4, 3, 2 }, { 7, 6, 5, 9, 8, 2, 1, 0, 4, 3 },
		{ 8, 7, 6, 5, 9, 3, 2, 1, 0, 4 }, { 9, 8, 7, 6, 5, 4, 3, 2, 1, 0 },
	};
	const uint8_t(*row)[16] = turn + 4 * odd;
	for (const uint8_t *front = last - 4; last > front; last--, row++) {
		unsigned digit = *last - (unsigned)'0';
		if (digit > 9)
			return 255;
		check = product[check][(*row)[digit]];
	}
	return check;
}

/* Twelve digits, or three groups of four with the same separator. */
bool pii_find_aadhaar(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
		      struct regex_span *span)
{
	(void)rule, (void)from;
	uint8_t gap = pii_byte(text, at + 4);
	size_t step = gap == ' ' || gap == '-' ? 5 : 4, end = at + 2 * step + 4;
	if (pii_byte(text, at + 2 * step - 1) != gap && step == 5)
		return false;
	if (is_alnum(text, end) || pii_byte(text, end) == '-' || is_fraction(text, at) ||
	    is_suffix(text, at))
		return false;
	if (end > text.len)
		return false;
	unsigned check = 0;
	for (size_t group = 0; group < 3 && check < 10; group++)
		check = verhoeff(check, text.at + end - 1 - group * step, group == 1);
	return check == 0 && pii_hit(span, at, end);
}

bool pii_find_uuid(const struct pii_rule *rule, struct view text, size_t at, size_t *from,
		   struct regex_span *span)
{
	static const uint8_t lengths[] = { 8, 4, 4, 4, 12 };
	(void)rule, (void)from;
	size_t i = at;
	if (pii_byte(text, at + 8) != '-')
		return false;
	for (size_t part = 0; part < sizeof lengths; part++) {
		if (part && pii_byte(text, i++) != '-')
			return false;
		if (pii_run(text, i, PII_HEX, lengths[part]) < lengths[part])
			return false;
		i += lengths[part];
	}
	return !is_alnum(text, i) && pii_hit(span, at, i);
}
