/* SPDX-License-Identifier: Apache-2.0 */
#include "processors/pii_find.h"

#include <arpa/inet.h>

/* IPv6 and MAC addresses. */

/*
 * "c10::ff" and "be::ad" are names of C++ too: a shortened address counts only if it begins as
 * those do that hosts have (2000::/3, fc00::/7, fe80::/10), with four digits.
 */
static bool looks_assigned(const uint8_t *first)
{
	uint8_t a = first[0] | 0x20, b = first[1] | 0x20;
	return first[0] == '2' || first[0] == '3' ||
	       (a == 'f' && (b == 'c' || b == 'd' || b == 'e'));
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

/* What has been read of an address: groups of up to four digits, empty ones too, and the colons
 * before them. */
struct groups {
	size_t end, filled, last; /* last: digits of the last group */
	unsigned colons, pairs;   /* pairs: times that a colon follows another */
	/* where the next group stands that looks as if an address began; 0: nowhere yet */
	size_t assigned;
};

/* A shortened address that may end here: one "::", which stands for a group at least. With a second
 * one behind it, it is a name ("fe80::add::f"). */
static bool is_shortened(struct view text, const struct groups *g)
{
	return g->pairs == 1 && g->filled <= 7 && (g->last || text.at[g->end - 2] == ':') &&
	       !PII_WORD_AT(text, g->end, "::");
}

/* Three more numbers of an IPv4 address behind the last group; 0: none. */
static size_t dotted_end(struct view text, size_t at)
{
	for (int part = 0; part < 3; part++) {
		size_t n = pii_at(text, at) == '.' ? pii_run(text, at + 1, PII_DIGIT, 3) : 0;
		if (!n)
			return 0;
		at += 1 + n;
	}
	return at;
}

/* Where an address ends that was read as far as its grammar goes; 0: it is none. */
static size_t whole_end(struct view text, size_t at, const struct groups *g)
{
	if (!g->pairs && g->colons < 6)
		return 0;
	size_t dotted = dotted_end(text, g->end), end = dotted ? dotted : g->end;
	uint8_t back = pii_at(text, end);
	if (pii_is(back, PII_ALNUM) || back == '_')
		return 0;
	if (!g->pairs && g->colons != (dotted ? 6 : 7))
		return 0;
	if (dotted)
		return parses_as_ipv6((struct view){ text.at + at, end - at }) ? end : 0;
	return is_shortened(text, g) || (!g->pairs && g->last) ? end : 0;
}

/* The digits of a group; 5: too many. */
static inline size_t group_length(const uint8_t *at)
{
	size_t n = 0;
	while (n < 5 && pii_is(at[n], PII_HEX))
		n++;
	return n;
}

#define EFFORT_COLON 45
#define EFFORT_COLONS_BYTE 8
#define EFFORT_PAIR 15
#define EFFORT_DOTTED_MAC 130
#define EFFORT_DOTTED 600 /* the system's parser */

/* Reads on until no address can follow; where the longest shortened one ends that a colon follows,
 * 0: nowhere. */
static inline size_t read_groups(struct view text, struct groups *g, bool assigned)
{
	const uint8_t *at = text.at + g->end;
	unsigned colons = 0, pairs = 0;
	size_t shortened = 0, last = g->last, filled = 1;
	for (; *at == ':' && colons < 7 && pairs <= assigned; at += last) {
		if (pairs == 1 && filled <= 7 && (last || at[-2] == ':') && at[1] != ':')
			shortened = (size_t)(at - text.at);
		pairs += colons && !last;
		colons++;
		last = group_length(++at);
		last -= last == 5;
		filled += last > 0;
		if (last == 4 && looks_assigned(at) && !g->assigned)
			g->assigned = (size_t)(at - text.at);
	}
	*g = (struct groups){ (size_t)(at - text.at), filled, last, colons, pairs, g->assigned };
	return assigned ? shortened : 0;
}

static bool is_pair(struct view text, size_t at)
{
	return pii_is_at(text, at, PII_HEX) && pii_is_at(text, at + 1, PII_HEX);
}

/* Does a word of two digits stand in front of this separator? */
static bool pair_before(struct view text, size_t at)
{
	return pii_run_back(text, at, PII_ALNUM, 3) == 2 && is_pair(text, at - 2);
}

/* The pairs with colons between them from `at` on. */
static size_t pairs_at(struct view text, size_t at)
{
	size_t n = 0;
	while (is_pair(text, at) && !pii_is_at(text, at + 2, PII_ALNUM)) {
		n++;
		if (pii_at(text, at + 2) != ':')
			break;
		at += 3;
	}
	return n;
}

/* "67:3B:41:98:5D:BD:7C:AE:C2": a fingerprint, which is a longer row of pairs than an address. All
 * starts of eight pairs in it are known to be none. */
static bool is_fingerprint(struct view text, size_t at, size_t end, struct pii_seen *seen)
{
	if (end - at != 23 || pii_run(text, at, PII_HEX, 3) != 2)
		return false;
	size_t pairs = pairs_at(text, at);
	pii_spend(&seen->runs, EFFORT_PAIR * pairs);
	if (pairs < 8 ||
	    (pairs == 8 && !(at && text.at[at - 1] == ':' && pair_before(text, at - 1))))
		return false;
	seen->from = at + 3 * (pairs - 7);
	return true;
}

/* Too few groups, or the last one belongs to a word: so it is for each later start. */
static bool breaks_off(struct view text, const struct groups *g)
{
	if (g->colons < 6)
		return true;
	if (dotted_end(text, g->end))
		return false;
	return g->colons < 7 || pii_is_at(text, g->end, PII_ALNUM | PII_UNDERSCORE);
}

/* What broke off after too few groups does so for each later start too; so does what has a "::", or
 * an empty group at its end, until a start for which a "::" counts. */
static void pass_over(struct view text, const struct groups *g, bool assigned,
		      struct pii_seen *seen)
{
	if (g->pairs ? !assigned : !g->last)
		seen->from = g->assigned ? g->assigned : g->end;
	else if (!g->pairs && breaks_off(text, g))
		seen->from = g->end;
}

/* A name or a port may have been taken for the last group, so the longest shortened address in
 * front of a colon counts where the whole is none. */
static bool find_at(struct view text, size_t at, struct pii_seen *seen, struct regex_span *span)
{
	size_t first = group_length(text.at + at);
	if (!first || first > 4 || pii_at(text, at + first) != ':')
		return false;
	/* "a:b.c": most words have no second colon; "a::b": none begins behind two of them. */
	size_t second = group_length(text.at + at + first + 1);
	if (second > 4 || pii_at(text, at + first + 1 + second) != ':')
		return false;
	bool assigned = first == 4 && looks_assigned(text.at + at);
	if (!second && !assigned) {
		seen->from = at + first + 3;
		return false;
	}
	struct groups g = { .end = at + first, .filled = 1, .last = first };
	size_t end = read_groups(text, &g, assigned);
	bool dotted = (g.pairs || g.colons >= 6) && pii_at(text, g.end) == '.';
	if (!pii_spend(&seen->runs, EFFORT_COLON * g.colons + EFFORT_COLONS_BYTE * (g.end - at) +
					    (dotted ? EFFORT_DOTTED : 0)))
		return false;
	size_t whole = g.colons > 1 && g.pairs <= assigned ? whole_end(text, at, &g) : 0;
	pass_over(text, &g, assigned, seen);
	if (whole && !g.pairs && is_fingerprint(text, at, whole, seen))
		return false;
	return pii_hit(span, at, whole ? whole : end);
}

/* Where a row of "1::" ends that begins here, or after one of them. */
static size_t shortened_row_end(struct view text, size_t at)
{
	size_t n;
	while ((n = group_length(text.at + at)) && PII_WORD_AT(text, at + n, "::"))
		at += n + 2;
	return at;
}

/* One colon in front is a separator ("peer:2001:db8::1"), two are an address's own or a name's,
 * also for the later groups of a row. */
bool pii_find_ipv6(const struct pii_rule *rule, struct view text, size_t at, struct pii_seen *seen,
		   struct regex_span *span)
{
	(void)rule;
	uint8_t front = at ? text.at[at - 1] : 0;
	if (front == ':' && pii_at(text, at - 2) == ':') {
		seen->from = shortened_row_end(text, at);
		pii_spend(&seen->runs, EFFORT_COLON / 2 * (seen->from - at));
		return false;
	}
	if (find_at(text, at, seen, span))
		return true;
	/* "%5B": what is behind it begins anew, if none of that was read to no end. */
	return front == '%' && seen->from <= at && pii_run(text, at, PII_HEX, 3) == 3 &&
	       find_at(text, at + 2, seen, span);
}

/* May "::1" stand behind this byte? */
static bool is_loopback_front(uint8_t byte)
{
	switch (byte) {
	case ' ':
	case '\t':
	case '[':
	case '(':
	case '=':
	case ',':
	case ';':
	case '"':
	case '\'':
	case '/':
	case '@':
		return true;
	default:
		return false;
	}
}

/* "::1" stands alone: "a::1" and "<T>::1" are names. */
bool pii_find_loopback(const struct pii_rule *rule, struct view text, size_t at,
		       struct pii_seen *seen, struct regex_span *span)
{
	(void)rule, (void)seen;
	uint8_t front = at ? text.at[at - 1] : ' ', back = pii_at(text, at + 3);
	if (!is_loopback_front(front) || pii_is(back, PII_ALNUM | PII_UNDERSCORE) || back == ':')
		return false;
	return !(back == '.' && pii_is_at(text, at + 4, PII_ALNUM)) && pii_hit(span, at, at + 3);
}

/* Nobody's: that of every host and that of none. */
static bool is_nobody(const uint8_t *mac, size_t len)
{
	bool same = true;
	for (size_t i = 0; i < len; i++)
		same = same && (i % 3 == 2 || (mac[i] | 0x20) == (mac[0] | 0x20));
	return same && (mac[0] == '0' || (mac[0] | 0x20) == 'f');
}

/* "24-11-22-10-05-06": a time, to the second. */
static bool is_time(const uint8_t *mac)
{
	static const unsigned highest[] = { 12, 31, 23, 59, 59 };
	for (size_t i = 0; i < 17; i++)
		if (i % 3 != 2 && !pii_is(mac[i], PII_DIGIT))
			return false;
	for (size_t i = 0; i < 5; i++) {
		const uint8_t *two = mac + 3 * (i + 1);
		if ((two[0] - '0') * 10u + (two[1] - '0') > highest[i])
			return false;
	}
	return true;
}

/* Six pairs of digits with the same separator, or eight (EUI-64), and not part of more of them. No
 * address begins at the other pairs of a row. Behind an escaped character, they have colons. */
bool pii_find_mac(const struct pii_rule *rule, struct view text, size_t at, struct pii_seen *seen,
		  struct regex_span *span)
{
	uint8_t gap = text.at[at + 2], front = at ? text.at[at - 1] : 0;
	size_t end = at + 3;
	if (rule->escaped && (gap != ':' || !is_pair(text, at)))
		return false;
	while (is_pair(text, end) && text.at[end - 1] == gap)
		end += 3;
	seen->from = --end;
	size_t pairs = (end - at) / 3 + 1;
	pii_spend(&seen->runs, EFFORT_PAIR * pairs);
	if ((pairs != 6 && pairs != 8) || pii_is_at(text, end, PII_ALNUM | PII_UNDERSCORE) ||
	    (front == gap && pair_before(text, at - 1)))
		return false;
	const uint8_t *mac = text.at + at;
	return !is_nobody(mac, end - at) && !(pairs == 6 && gap == '-' && is_time(mac)) &&
	       pii_hit(span, at, end);
}

/* 0011.22aa.4455, with a digit and a letter: else it may be a version or a name. */
bool pii_find_mac_dotted(const struct pii_rule *rule, struct view text, size_t at,
			 struct pii_seen *seen, struct regex_span *span)
{
	(void)rule;
	uint32_t kinds = 0;
	if (pii_at(text, at + 4) != '.' || pii_at(text, at + 9) != '.')
		return false;
	pii_spend(&seen->runs, EFFORT_DOTTED_MAC);
	for (size_t i = 0; i < 14; i++) {
		uint8_t byte = pii_at(text, at + i);
		if (i % 5 != 4 && !pii_is(byte, PII_HEX))
			return false;
		kinds |= pii_kinds[byte];
	}
	uint8_t back = pii_at(text, at + 14), next = pii_at(text, at + 15);
	return kinds & PII_DIGIT && kinds & PII_LETTER &&
	       !pii_is(back, PII_ALNUM | PII_UNDERSCORE) &&
	       !(back == '.' && pii_is(next, PII_ALNUM)) && pii_hit(span, at, at + 14);
}
