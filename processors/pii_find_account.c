/* SPDX-License-Identifier: Apache-2.0 */
#include "processors/pii_find.h"

/* Numbers of accounts: payment cards and IBANs. The anchors see to what stands in front. */

/* The lengths of the card numbers that begin with these digits, numbers or characters (ISO/IEC
 * 7812); a bit for each. */
static uint32_t issued_lengths(const uint8_t *digits)
{
#define LENGTHS(shortest, longest) ((2u << (longest)) - (1u << (shortest)))
	/* By the first two digits; the next two are in a range. */
	static const struct {
		uint32_t lengths;
		uint8_t from, to;
	} issuers[100] = {
		[22] = { LENGTHS(16, 16), 21, 99 },
		[23 ... 26] = { LENGTHS(16, 16), 0, 99 },
		[27] = { LENGTHS(16, 16), 0, 20 },
		[30] = { LENGTHS(14, 19), 0, 59 },
		[34] = { LENGTHS(15, 15), 0, 99 },
		[35] = { LENGTHS(16, 19), 28, 89 },
		[36] = { LENGTHS(14, 19), 0, 99 },
		[37] = { LENGTHS(15, 15), 0, 99 },
		[38] = { LENGTHS(14, 19), 0, 99 },
		[40 ... 49] = { LENGTHS(13, 13) | LENGTHS(16, 16) | LENGTHS(19, 19), 0, 99 },
		[50] = { LENGTHS(16, 19), 0, 99 },
		[51 ... 55] = { LENGTHS(16, 16), 0, 99 },
		[56 ... 69] = { LENGTHS(16, 19), 0, 99 },
		[81] = { LENGTHS(16, 19), 0, 71 },
	};
	unsigned two = (digits[0] & 15) * 10u + (digits[1] & 15),
		 next = (digits[2] & 15) * 10u + (digits[3] & 15);
	return next >= issuers[two].from && next <= issuers[two].to ? issuers[two].lengths : 0;
}

/*
 * Digits with at most one separator between two of them, in which several cards may begin: each is
 * read once. Luhn's sums are those of all digits before one, with every other digit doubled: in the
 * lower half those of odd index.
 */
#define CHAIN_MAX 64
#define EFFORT_START 90 /* for each digit at which one may begin */
#define EFFORT_CARD 100 /* and for one that begins as a card does */
#define EFFORT_DIGIT 18
#define EFFORT_GROUPED_DIGIT 13
#define EFFORT_LUHN 12   /* a digit */
#define EFFORT_GROUP 110 /* of characters in a row */
#define CARD_MAX 19      /* digits */

struct chain {
	size_t count, next; /* next: the position of what was not read yet */
	bool ended;
	/* a bit of each digit with a separator before it, and of the end, if a number may end there
	 */
	uint64_t marks;
	uint32_t sums[CHAIN_MAX + 1]; /* where there is a mark */
};

/* Reads on until there are `want` digits, or the chain ends. */
static void read_chain(struct view text, struct chain *chain, size_t want, struct pii_runs *runs)
{
	/* 65536 of the one half, and the other. */
	static const uint32_t weights[10][2] = {
		{ 0x00000, 0x00000 }, { 0x20001, 0x10002 }, { 0x40002, 0x20004 },
		{ 0x60003, 0x30006 }, { 0x80004, 0x40008 }, { 0x10005, 0x50001 },
		{ 0x30006, 0x60003 }, { 0x50007, 0x70005 }, { 0x70008, 0x80007 },
		{ 0x90009, 0x90009 },
	};
	size_t i = chain->next, count = chain->count;
	uint32_t sums = chain->sums[count];
	while (count < want && !chain->ended) {
		size_t max = text.len - i < want - count ? text.len - i : want - count;
		const uint8_t *start = text.at + i, *byte = start, *end = start + max;
		for (unsigned digit; byte < end && (digit = *byte - (unsigned)'0') <= 9; byte++)
			sums += weights[digit][count++ & 1];
		i += (size_t)(byte - start);
		chain->sums[count] = sums;
		if (count == want)
			break;
		uint8_t gap = pii_at(text, i);
		chain->ended = (gap != ' ' && gap != '-') || !pii_is_at(text, i + 1, PII_DIGIT);
		if (!chain->ended) {
			chain->marks |= 1ull << count;
			i++;
		}
	}
	pii_spend(runs, EFFORT_DIGIT * (count - chain->count));
	chain->count = count;
	chain->next = i;
	if (chain->ended && !pii_is_at(text, i, PII_ALNUM))
		chain->marks |= 1ull << count;
}

#define MARK(digits) (1ull << (digits))

/* Is there a card of that number of digits, from digit `first` on? */
static bool is_card(const struct chain *chain, size_t first, size_t count)
{
	size_t end = first + count;
	uint32_t sums = chain->sums[end] - chain->sums[first];
	return (end & 1 ? sums & 0xffff : sums >> 16) % 10 == 0;
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
static size_t card_at(const struct chain *chain, size_t first, const uint8_t *digits,
		      struct pii_runs *runs)
{
	const uint64_t four = MARK(1) | MARK(2) | MARK(3),
		       fifteen = (MARK(14) - 2) & ~(MARK(4) | MARK(10)),
		       fours = (MARK(13) - 2) & ~(MARK(4) | MARK(8) | MARK(12));
	size_t left = chain->count - first;
	uint64_t marks = chain->marks >> first;
	if (left < 13 || marks & four)
		return 0;
	/* Where a number of one of its issuer's lengths may end. */
	uint64_t ends = marks & issued_lengths(digits);
	if (!ends || !pii_spend(runs, EFFORT_CARD))
		return 0;
	if (*digits == '3' && left >= 14 && !(marks & fifteen)) {
		size_t count = group_end(marks, 13, 2, left);
		if (marks >> count & 1)
			return ends >> count & 1 && is_card(chain, first, count) ? count : 0;
	}
	if (marks & fours)
		return 0;
	size_t max = group_end(marks, 12, 4, left),
	       more = max < left ? group_end(marks, max, 3, left) : max;
	if (more > max && ends >> more & 1 && is_card(chain, first, more))
		return more;
	return ends >> max & 1 && is_card(chain, first, max) ? max : 0;
}

/* Reads what a card that begins with digit `first` may need; is that all of it? */
static bool reads_card(struct view text, struct chain *chain, size_t first, struct pii_runs *runs)
{
	size_t want = (first + CARD_MAX + 16) & ~(size_t)15;
	if (chain->count <= first + CARD_MAX && !chain->ended)
		read_chain(text, chain, want < CHAIN_MAX ? want : CHAIN_MAX, runs);
	return first < chain->count && (chain->ended || chain->count > first + CARD_MAX);
}

/* The next digit behind a separator, or the end. */
static size_t next_start(struct view text, struct chain *chain, size_t digit, struct pii_runs *runs)
{
	uint64_t behind = ~((MARK(digit) << 1) - 1);
	if (!(chain->marks & behind) && !chain->ended)
		read_chain(text, chain, CHAIN_MAX, runs);
	uint64_t marks = chain->marks & behind;
	return marks ? (size_t)__builtin_ctzll(marks) : CHAIN_MAX;
}

/* The separators between these digits. */
static size_t gaps_between(const struct chain *chain, size_t first, size_t last)
{
	uint64_t marks = chain->marks & ((MARK(last) << 1) - 1);
	return (size_t)__builtin_popcountll(marks >> first >> 1);
}

bool pii_find_card(const struct pii_rule *rule, struct view text, size_t at, struct pii_seen *seen,
		   struct regex_span *span)
{
	struct chain chain;
	struct pii_runs *runs = &seen->runs;
	(void)rule;
	/* Where the first separator of a card may be; a longer group has none. */
	static const uint32_t groups = 1 << 4 | 1 << 8 | 1 << 10 | 1 << 12;
	if (!(groups >> pii_run(text, at, PII_DIGIT, 12) & 1))
		return false;
	chain.count = chain.marks = chain.sums[0] = 0;
	chain.ended = false;
	chain.next = at;
	bool other = pii_is_part(text, at);
	size_t first = other ? next_start(text, &chain, 0, runs) : 0, gaps = other;
	for (; pii_spend(runs, EFFORT_START) && reads_card(text, &chain, first, runs); gaps++) {
		size_t start = at + first + gaps,
		       count = card_at(&chain, first, text.at + start, runs), last = count - 1;
		if (count)
			return pii_hit(span, start,
				       start + count + gaps_between(&chain, first, first + last));
		first = next_start(text, &chain, first, runs);
	}
	/* All that was read is settled. */
	if (chain.ended)
		seen->from = chain.next;
	else
		seen->from =
			at + (first < CHAIN_MAX - 1
				      ? first + gaps
				      : CHAIN_MAX - 1 + gaps_between(&chain, 0, CHAIN_MAX - 1));
	return false;
}

/* The separator of groups of digits, but those of chains; its length, 0: there is none. */
static size_t card_gap(struct view text, size_t at)
{
	uint8_t byte = pii_at(text, at);
	return byte == '.' || byte == '_' || byte == '+' ? 1 : PII_WORD_AT(text, at, "%20") ? 3 : 0;
}

/* Digits in groups with the same separator: of 4, 4, 4 and up to 4 and 3 digits, or of 4, 6 and 5.
 */
struct card_groups {
	uint8_t digits[CARD_MAX];
	size_t count, end;
};

/* Up to `max` digits; how many there are. */
static size_t read_group(const uint8_t *at, size_t max, uint8_t *digits)
{
	size_t len = 0;
	if (max == 4 && pii_four_digits(at)) {
		for (; len < 4; len++)
			digits[len] = at[len];
		return len;
	}
	for (; len < max && pii_is(at[len], PII_DIGIT); len++)
		digits[len] = at[len];
	return len;
}

static void read_card_groups(struct view text, size_t at, struct card_groups *card)
{
	static const size_t fours[] = { 4, 4, 4, 4, 3, 0 }, six[] = { 4, 6, 5, 0 };
	size_t gap = card_gap(text, at + 4);
	uint8_t mark = pii_at(text, at + 4);
	const size_t *group = gap && pii_run(text, at + 4 + gap, PII_DIGIT, 5) == 5 ? six : fours;
	card->count = 0;
	card->end = at;
	for (size_t i = at; *group; group++) {
		size_t len = read_group(text.at + i, *group, card->digits + card->count);
		card->count += len;
		if (!len)
			return;
		card->end = i + len;
		if (len < *group || pii_at(text, card->end) != mark)
			return;
		i = card->end + card_gap(text, card->end);
	}
}

/* Of a row of more groups of four, only the last may begin a card: where the fifth from the end
 * begins, if the row goes on. */
static size_t last_groups(struct view text, size_t at, struct pii_runs *runs)
{
	size_t gap = card_gap(text, at + 4), groups = 0;
	uint8_t mark = pii_at(text, at + 4);
	while (pii_run(text, at, PII_DIGIT, 5) == 4 && pii_at(text, at + 4) == mark &&
	       card_gap(text, at + 4) == gap && pii_is_at(text, at + 4 + gap, PII_DIGIT)) {
		at += 4 + gap;
		groups++;
		pii_spend(runs, EFFORT_GROUP);
	}
	return at - (groups > 4 ? 4 : groups) * (4 + gap);
}

/* 4111.1111.1111.1111 */
bool pii_find_card_groups(const struct pii_rule *rule, struct view text, size_t at,
			  struct pii_seen *seen, struct regex_span *span)
{
	struct card_groups card;
	(void)rule;
	if (pii_is_fraction(text, at))
		return false;
	read_card_groups(text, at, &card);
	pii_spend(&seen->runs, EFFORT_GROUPED_DIGIT * card.count);
	size_t more = card_gap(text, card.end);
	if (pii_is_at(text, card.end, PII_ALNUM) ||
	    (more && pii_is_at(text, card.end + more, PII_DIGIT))) {
		if (card.count == CARD_MAX)
			seen->from = last_groups(text, at, &seen->runs);
		return false;
	}
	return card.count >= 13 && pii_spend(&seen->runs, EFFORT_LUHN * card.count) &&
	       issued_lengths(card.digits) >> card.count & 1 && luhn(card.digits, card.count) &&
	       pii_hit(span, at, card.end);
}

/* Of either form. */
bool pii_find_card_any(const struct pii_rule *rule, struct view text, size_t at,
		       struct pii_seen *seen, struct regex_span *span)
{
	uint8_t behind = pii_at(text, at + 4);
	if (text.at[at] < '2' || text.at[at] > '8')
		return false;
	if (pii_is(behind, PII_DIGIT) || behind == ' ' || behind == '-')
		return pii_find_card(rule, text, at, seen, span);
	return card_gap(text, at + 4) && pii_find_card_groups(rule, text, at, seen, span);
}

/* IBAN (ISO 13616): the length of each country's. */
static size_t iban_length(const uint8_t *country)
{
#define COUNTRY(first, second, length) [(first - 'A') * 26 + second - 'A'] = length
	static const uint8_t lengths[26 * 26] = {
		COUNTRY('A', 'D', 24), COUNTRY('A', 'E', 23), COUNTRY('A', 'L', 28),
		COUNTRY('A', 'T', 20), COUNTRY('A', 'Z', 28), COUNTRY('B', 'A', 20),
		COUNTRY('B', 'E', 16), COUNTRY('B', 'G', 22), COUNTRY('B', 'H', 22),
		COUNTRY('B', 'R', 29), COUNTRY('B', 'Y', 28), COUNTRY('C', 'H', 21),
		COUNTRY('C', 'R', 22), COUNTRY('C', 'Y', 28), COUNTRY('C', 'Z', 24),
		COUNTRY('D', 'E', 22), COUNTRY('D', 'K', 18), COUNTRY('D', 'O', 28),
		COUNTRY('E', 'E', 20), COUNTRY('E', 'G', 29), COUNTRY('E', 'S', 24),
		COUNTRY('F', 'I', 18), COUNTRY('F', 'O', 18), COUNTRY('F', 'R', 27),
		COUNTRY('G', 'B', 22), COUNTRY('G', 'E', 22), COUNTRY('G', 'I', 23),
		COUNTRY('G', 'L', 18), COUNTRY('G', 'R', 27), COUNTRY('G', 'T', 28),
		COUNTRY('H', 'R', 21), COUNTRY('H', 'U', 28), COUNTRY('I', 'E', 22),
		COUNTRY('I', 'L', 23), COUNTRY('I', 'Q', 23), COUNTRY('I', 'S', 26),
		COUNTRY('I', 'T', 27), COUNTRY('J', 'O', 30), COUNTRY('K', 'W', 30),
		COUNTRY('K', 'Z', 20), COUNTRY('L', 'B', 28), COUNTRY('L', 'C', 32),
		COUNTRY('L', 'I', 21), COUNTRY('L', 'T', 20), COUNTRY('L', 'U', 20),
		COUNTRY('L', 'V', 21), COUNTRY('L', 'Y', 25), COUNTRY('M', 'C', 27),
		COUNTRY('M', 'D', 24), COUNTRY('M', 'E', 22), COUNTRY('M', 'K', 19),
		COUNTRY('M', 'R', 27), COUNTRY('M', 'T', 31), COUNTRY('M', 'U', 30),
		COUNTRY('N', 'L', 18), COUNTRY('N', 'O', 15), COUNTRY('P', 'K', 24),
		COUNTRY('P', 'L', 28), COUNTRY('P', 'S', 29), COUNTRY('P', 'T', 25),
		COUNTRY('Q', 'A', 29), COUNTRY('R', 'O', 24), COUNTRY('R', 'S', 22),
		COUNTRY('S', 'A', 24), COUNTRY('S', 'C', 31), COUNTRY('S', 'E', 24),
		COUNTRY('S', 'I', 19), COUNTRY('S', 'K', 24), COUNTRY('S', 'M', 27),
		COUNTRY('S', 'T', 25), COUNTRY('S', 'V', 28), COUNTRY('T', 'L', 23),
		COUNTRY('T', 'N', 24), COUNTRY('T', 'R', 26), COUNTRY('U', 'A', 29),
		COUNTRY('V', 'A', 22), COUNTRY('V', 'G', 24), COUNTRY('X', 'K', 20)
	};
	return lengths[(country[0] - 'A') * 26 + country[1] - 'A'];
}

/* Characters of an IBAN as a number, letters as 10 to 35: its remainder of 97, and that of the
 * power of ten by which the number before it is multiplied. */
struct iban_part {
	uint8_t rest, power;
};

static inline bool read_part(struct view text, size_t at, size_t len, struct iban_part *part)
{
	uint32_t rest = 0, power = 1;
	for (size_t i = at; i < at + len; i++) {
		unsigned c = pii_at(text, i), digit = c - '0', letter = c - 'A';
		if (digit > 9 && letter > 25)
			return false;
		unsigned factor = digit > 9 ? 100 : 10;
		rest = rest * factor + (digit > 9 ? letter + 10 : digit);
		power *= factor;
	}
	*part = (struct iban_part){ (uint8_t)(rest % 97), (uint8_t)(power % 97) };
	return true;
}

static unsigned append_part(unsigned rest, const struct iban_part *part)
{
	return (rest * part->power + part->rest) % 97;
}

/* What stands behind each four characters: a blank, as such or escaped, or a dash; its length. */
static size_t iban_gap(struct view text, size_t at)
{
	uint8_t byte = pii_at(text, at);
	return byte == ' ' || byte == '-' || byte == '+' ? 1 : PII_WORD_AT(text, at, "%20") ? 3 : 0;
}

/* A row of groups of four characters with `gap` bytes between, in which several IBANs may begin:
 * each is read once. */
#define IBAN_GROUPS 9   /* at most, of one */
#define EFFORT_IBAN 225 /* for each group at which one may begin */

struct iban_row {
	size_t at, gap, count;
	bool ended;
	struct iban_part groups[4 * IBAN_GROUPS];
};

static size_t group_place(const struct iban_row *row, size_t group)
{
	return row->at + group * (4 + row->gap);
}

/* Does the row's separator end here? */
static bool has_gap(struct view text, const struct iban_row *row, size_t end)
{
	return !row->gap || (pii_at(text, end - row->gap) == text.at[row->at + 4] &&
			     iban_gap(text, end - row->gap) == row->gap);
}

static void read_row(struct view text, struct iban_row *row, size_t want, struct pii_runs *runs)
{
	for (; row->count < want && !row->ended && pii_spend(runs, EFFORT_GROUP);
	     row->count += !row->ended) {
		size_t place = group_place(row, row->count);
		row->ended = (row->count && !has_gap(text, row, place)) ||
			     !read_part(text, place, 4, &row->groups[row->count]);
	}
}

/* The length of the IBAN that begins with this group; 0: none can. */
static size_t length_at(struct view text, const struct iban_row *row, size_t first)
{
	const uint8_t *country = text.at + group_place(row, first);
	return pii_is(country[0], PII_UPPER) && pii_is(country[1], PII_UPPER) &&
			       pii_is(country[2], PII_DIGIT) && pii_is(country[3], PII_DIGIT)
		       ? iban_length(country)
		       : 0;
}

/* Where the IBAN of this length ends that begins with this group; 0: it is none. The first four
 * characters count last. */
static size_t iban_end(struct view text, const struct iban_row *row, size_t first, size_t len)
{
	struct iban_part tail = { 0, 1 };
	size_t end = first + len / 4, place = group_place(row, end);
	if (!len || end > row->count)
		return 0;
	if (len % 4 == 0)
		place -= row->gap;
	else if (!has_gap(text, row, place) || !read_part(text, place, len % 4, &tail))
		return 0;
	if (pii_is_at(text, place + len % 4, PII_ALNUM))
		return 0;
	unsigned rest = 0;
	for (size_t group = first + 1; group < end; group++)
		rest = append_part(rest, &row->groups[group]);
	rest = append_part(rest, &tail);
	return append_part(rest, &row->groups[first]) == 1 ? place + len % 4 : 0;
}

/* In one piece, or in groups with the same separator. */
bool pii_find_iban(const struct pii_rule *rule, struct view text, size_t at, struct pii_seen *seen,
		   struct regex_span *span)
{
	struct iban_row row;
	(void)rule;
	if (pii_is_glued(text, at) || !pii_is(text.at[at], PII_UPPER))
		return false;
	row.at = at;
	row.gap = iban_gap(text, at + 4);
	row.count = 0;
	row.ended = false;
	size_t first = 0, starts = row.gap == 1 ? 3 * IBAN_GROUPS : 1;
	for (; first < starts; first++) {
		if (first && !has_gap(text, &row, group_place(&row, first + 1)))
			break;
		size_t len = length_at(text, &row, first);
		read_row(text, &row, first + (len ? len / 4 : 1), &seen->runs);
		if (!pii_spend(&seen->runs, len ? EFFORT_IBAN : EFFORT_GROUP))
			break;
		size_t end = iban_end(text, &row, first, len);
		if (end)
			return pii_hit(span, group_place(&row, first), end);
		if (first >= row.count)
			break;
	}
	seen->from = group_place(&row, first);
	return false;
}
