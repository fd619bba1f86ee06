/* SPDX-License-Identifier: Apache-2.0 */
#include "processors/pii_find.h"

/* E-mail addresses, tokens, and what stands in a URL's query. */

/* "v1.2", "1.2-rc": what stands behind the @ of a module or a package; "2x.png": of a picture;
 * "0x1234.bar": of a symbol. */
static bool is_module_version(struct view domain)
{
	size_t i = pii_byte(domain, 0) == 'v', digits = pii_run(domain, i, PII_DIGIT, SIZE_MAX);
	i += digits;
	if (!digits)
		return false;
	if (pii_byte(domain, i) == '.')
		return pii_is(pii_byte(domain, i + 1), PII_DIGIT);
	size_t hex = pii_run(domain, i + 1, PII_HEX, SIZE_MAX);
	return i == 1 && pii_byte(domain, i) == 'x' && pii_byte(domain, i + 1 + hex) == '.';
}

/* "user@1000.service" is a unit of systemd. */
static bool is_unit(struct view domain)
{
	size_t len = pii_run_back(domain, domain.len, PII_LOWER, 10), at = domain.len - len;
	if (pii_byte(domain, at - 1) != '.')
		return false;
	switch (len) {
	case 5:
		return PII_WORD_IN(domain, at, "slice") || PII_WORD_IN(domain, at, "scope") ||
		       PII_WORD_IN(domain, at, "timer") || PII_WORD_IN(domain, at, "mount");
	case 6:
		return PII_WORD_IN(domain, at, "socket") || PII_WORD_IN(domain, at, "target") ||
		       PII_WORD_IN(domain, at, "device");
	case 7:
		return PII_WORD_IN(domain, at, "service");
	case 9:
		return PII_WORD_IN(domain, at, "automount");
	default:
		return false;
	}
}

/* The longest domain: up to eight labels with a dot each, then two letters or more. `end` is 0 if
 * there is none. */
struct domain {
	size_t start, end, first, last, dots; /* first, last: the lengths of these labels */
};

#define EFFORT_LABEL 35
#define EFFORT_LABEL_BYTE 10
#define EFFORT_LOCAL 50
#define EFFORT_LOCAL_BYTE 4
#define EFFORT_EMAIL 110 /* what has both parts */
#define EFFORT_OBJECT 180
#define EFFORT_CLASS_BYTE 6

static inline void read_domain(struct pii_seen *seen, const uint8_t *at, const uint8_t *end,
			       struct domain *domain)
{
	const uint8_t *label = at;
	domain->end = 0;
	for (size_t labels = 0;; labels++) {
		const uint8_t *max = end - label < 63 ? end : label + 63, *byte = label;
		while (byte < max && pii_is(*byte, PII_LETTER | PII_HIGH))
			byte++;
		size_t letters = byte - label < 24 ? (size_t)(byte - label) : 24;
		if (labels && letters >= 2) {
			domain->end = domain->start + (size_t)(label - at) + letters;
			domain->last = letters;
			domain->dots = labels;
		}
		while (byte < max && pii_is(*byte, PII_ALNUM | PII_DASH | PII_HIGH))
			byte++;
		if (!pii_spend(&seen->runs,
			       EFFORT_LABEL + EFFORT_LABEL_BYTE * (size_t)(byte - label)) ||
		    byte >= end || *byte != '.' || byte == label || *label == '-' || labels == 8)
			return;
		if (!labels)
			domain->first = (size_t)(byte - label);
		label = byte + 1;
	}
}

/* The last label of most mail hosts: two letters, or one of the oldest others. */
static bool is_common_end(struct view label)
{
	static const char *const ends[PII_WORD_MAX + 1] = {
		[3] = "com"
		      "org"
		      "net"
		      "edu"
		      "gov"
		      "biz",
		[4] = "info",
	};
	return label.len == 2 || pii_is_word(label, ends);
}

/* Is the local part a class: in a package ("com.acme.Session"), in another class (behind "Pool$"),
 * or, with a hash that is surely one, alone? */
static bool is_class(struct view local, uint8_t front, bool sure)
{
	size_t class = local.len - pii_run_back(local, local.len, PII_ALNUM | PII_UNDERSCORE, 64);
	if (!pii_is(pii_byte(local, class), PII_UPPER))
		return false;
	return class ? local.at[class - 1] == '.' && pii_is(local.at[0], PII_LOWER)
		     : front == '$' || sure;
}

/* "com.acme.Session@6d06d69c.close": a Java object, by its class and its hash, and a method. */
static bool is_object(struct pii_seen *seen, struct view local, uint8_t front, struct view domain)
{
	size_t hash = pii_run(domain, 0, PII_DIGIT | PII_LOWER, 9), behind = hash + 1;
	if (hash < 5 || hash > 8 || pii_run(domain, 0, PII_HEX, hash) < hash ||
	    pii_byte(domain, hash) != '.' || memchr(domain.at + behind, '.', domain.len - behind))
		return false;
	if (!pii_spend(&seen->runs, EFFORT_OBJECT + EFFORT_CLASS_BYTE * local.len))
		return true;
	bool sure = hash >= 7 && pii_run(domain, 0, PII_DIGIT, hash) < hash &&
		    pii_run(domain, 0, PII_LOWER, hash) < hash;
	return is_class(local, front, sure) &&
	       !is_common_end((struct view){ domain.at + behind, domain.len - behind });
}

/* "Base.@node.inner": a macro in a module of Julia. Some old addresses end with a dot too, at hosts
 * of three labels. */
static bool is_macro(struct view local, struct view domain)
{
	if (local.at[local.len - 1] != '.' || !pii_is(local.at[0], PII_UPPER))
		return false;
	const uint8_t *dot = memchr(domain.at, '.', domain.len);
	return dot && !memchr(dot + 1, '.', (size_t)(domain.at + domain.len - dot) - 1);
}

/* Does the local part end scheme://user:password, which url_credentials matches? */
#define USERINFO_MAX 128

static bool ends_userinfo(struct view text, size_t local, size_t at)
{
	if (!pii_is_at(text, local - 1, PII_USERINFO))
		return false;
	size_t len = pii_run_back(text, at, PII_USERINFO, USERINFO_MAX + 1), start = at - len;
	return len <= USERINFO_MAX &&
	       (PII_WORD_BEFORE(text, start, "://") || PII_WORD_BEFORE(text, start, ":\\/\\/")) &&
	       memchr(text.at + start, ':', len);
}

/* Is it something else that has an @ and a dot? What the lengths of the labels rule out is not
 * looked at. */
static bool is_no_email(struct pii_seen *seen, struct view text, struct view local,
			const struct domain *d)
{
	struct view domain = { text.at + d->start, d->end - d->start };
	uint8_t front = pii_at(text, (size_t)(local.at - text.at) - 1);
	return ((pii_is(domain.at[0], PII_DIGIT) || domain.at[0] == 'v') &&
		is_module_version(domain)) ||
	       (d->last >= 5 && d->last <= 9 && is_unit(domain)) ||
	       (d->dots == 1 && d->first >= 5 && d->first <= 8 &&
		is_object(seen, local, front, domain)) ||
	       (d->dots == 1 && is_macro(local, domain));
}

/* The length of the local part. Behind an @, no byte belongs to two of them. */
static inline size_t local_before(struct pii_seen *seen, struct view text, size_t at,
				  size_t separator)
{
	if (separator == 1)
		return pii_run_back(text, at, PII_LOCAL, 64);
	size_t len = at - pii_run_start(&seen->runs, text, at, PII_LOCAL);
	return len < 64 ? len : 64;
}

static inline bool email_at(struct pii_seen *seen, struct view text, size_t at,
			    const struct domain *domain, struct regex_span *span)
{
	size_t separator = domain->start - at;
	bool looks = domain->end && pii_spend(&seen->runs, EFFORT_LOCAL);
	size_t before = looks ? local_before(seen, text, at, separator) : 0;
	if (!before || !pii_spend(&seen->runs, EFFORT_LOCAL_BYTE * before + EFFORT_EMAIL) ||
	    is_no_email(seen, text, (struct view){ text.at + at - before, before }, domain))
		return false;
	return !(separator == 1 && ends_userinfo(text, at - before, at)) &&
	       pii_hit(span, at - before, domain->end);
}

/* The rule's literal, or @, stands between the parts. */
bool pii_find_email(const struct pii_rule *rule, struct view text, size_t at, struct pii_seen *seen,
		    struct regex_span *span)
{
	size_t separator = rule->literal ? rule->literal_len : 1;
	struct domain domain = { .start = at + separator };
	read_domain(seen, text.at + domain.start, text.at + text.len, &domain);
	return email_at(seen, text, at, &domain, span);
}

/* An @ that is escaped, from `at` on up to `end`. */
static bool escaped_email(struct pii_seen *seen, struct view text, size_t at, size_t end,
			  struct regex_span *span)
{
	struct domain domain = { .start = end };
	if (!end)
		return false;
	read_domain(seen, text.at + end, text.at + text.len, &domain);
	return email_at(seen, text, at, &domain, span);
}

/* %40, or %2540: the % is escaped as often as the string was. */
bool pii_find_email_percent(const struct pii_rule *rule, struct view text, size_t at,
			    struct pii_seen *seen, struct regex_span *span)
{
	(void)rule;
	size_t digits = at + 1;
	while (PII_WORD_AT(text, digits, "25"))
		digits += 2;
	return escaped_email(seen, text, at, PII_WORD_AT(text, digits, "40") ? digits + 2 : 0,
			     span);
}

static size_t zeros_end(struct view text, size_t at)
{
	while (pii_at(text, at) == '0')
		at++;
	return at;
}

/* &#64; or &#x40; with any number of zeros, at the & */
bool pii_find_email_html(const struct pii_rule *rule, struct view text, size_t at,
			 struct pii_seen *seen, struct regex_span *span)
{
	(void)rule;
	bool hex = (pii_at(text, at + 2) | 0x20) == 'x';
	size_t digits = zeros_end(text, at + 2 + hex);
	bool found = hex ? PII_WORD_AT(text, digits, "40;") : PII_WORD_AT(text, digits, "64;");
	return escaped_email(seen, text, at, found ? digits + 3 : 0, span);
}

/* Where an @ in a string literal ends: \u0040, \U00000040, \u{40}, \x40; 0: it is another
 * character. */
static size_t literal_end(struct view text, size_t at)
{
	if (PII_WORD_AT(text, at, "\\x40"))
		return at + 4;
	if (PII_WORD_AT(text, at, "\\u0040") || PII_WORD_AT(text, at, "\\u{40}"))
		return at + 6;
	return PII_WORD_AT(text, at, "\\U00000040") ? at + 10 : 0;
}

/* A literal in a literal has more backslashes: all but the last belong to the separator. */
bool pii_find_email_literal(const struct pii_rule *rule, struct view text, size_t at,
			    struct pii_seen *seen, struct regex_span *span)
{
	(void)rule;
	size_t start = at;
	for (int i = 0; i < 7 && start && text.at[start - 1] == '\\'; i++)
		start--;
	return escaped_email(seen, text, start, literal_end(text, at), span);
}

#define EFFORT_WIDE_BYTE 24

/* In full-width characters, the dots too. The domain ends where the next address's begins. */
bool pii_find_email_wide(const struct pii_rule *rule, struct view text, size_t at,
			 struct pii_seen *seen, struct regex_span *span)
{
	static const uint8_t lead = 0xef; /* of all these characters */
	size_t separator = rule->literal_len, start = at + separator, end = start, behind = 0;
	bool dot = false;
	for (; pii_is_at(text, end, PII_ALNUM | PII_DASH | PII_DOT | PII_HIGH) &&
	       pii_spend(&seen->runs, EFFORT_WIDE_BYTE);
	     end++) {
		if (text.at[end] == lead && pii_has_at(text, end, rule->literal, separator))
			break;
		dot = dot || end == behind;
		if (text.at[end] == lead && end > start && PII_WORD_AT(text, end, "\xef\xbc\x8e"))
			behind = end + 3;
	}
	struct domain domain = { .start = start };
	read_domain(seen, text.at + start, text.at + end, &domain);
	if (dot) /* all is looked at */
		domain = (struct domain){ start, end, .first = 5, .last = 5, .dots = 1 };
	return email_at(seen, text, at, &domain, span);
}

/* {", { " and a brace at the end of a line, in base64 */
static bool begins_json(struct view text, size_t at)
{
	return PII_WORD_AT(text, at, "eyJ") || PII_WORD_AT(text, at, "eyA") ||
	       PII_WORD_AT(text, at, "ewo");
}

#define EFFORT_JWT 100

/* Inside the header. What is glued to its front goes with it; so do the parts that follow. Without
 * a signature, the second part must begin as JSON does. */
bool pii_find_jwt(const struct pii_rule *rule, struct view text, size_t at, struct pii_seen *seen,
		  struct regex_span *span)
{
	(void)rule;
	struct pii_runs *runs = &seen->runs;
	size_t header = pii_run_end(runs, text, at, PII_BASE64URL);
	seen->from = header;
	if (pii_at(text, header) != '.')
		return false;
	if (!pii_spend(runs, EFFORT_JWT))
		return false;
	size_t end = pii_run_end(runs, text, header + 1, PII_BASE64URL);
	if (pii_at(text, end) == '.')
		end = pii_run_end(runs, text, end, PII_BASE64URL | PII_DOT);
	else if (!begins_json(text, header + 1))
		return false;
	return pii_hit(span, pii_run_start(runs, text, at, PII_BASE64URL), end);
}

/* "index.js?abcd", "x.css?v=1.2": a file of a bundle, and the digest or the version of its content.
 */
static bool is_bundle(struct view text, size_t query, size_t end)
{
	static const char *const files[PII_WORD_MAX + 1] = {
		[2] = "js"
		      "ts",
		[3] = "mjs"
		      "cjs"
		      "jsx"
		      "tsx"
		      "css"
		      "vue",
		[6] = "svelte",
	};
	size_t start = query + 1, name = pii_run_back(text, query, PII_LOWER, 7);
	if (pii_at(text, query - name - 1) != '.' ||
	    !pii_is_word((struct view){ text.at + query - name, name }, files))
		return false;
	if (PII_WORD_AT(text, start, "v=") || PII_WORD_AT(text, start, "t="))
		start += 2;
	else if (PII_WORD_AT(text, start, "ver="))
		start += 4;
	uint32_t kinds = PII_ALNUM | (start > query + 1 ? PII_DOT : 0);
	return end - start <= 32 && pii_run(text, start, kinds, 32) >= end - start;
}

/* Where a switch, "name=true", ends; 0: there is none. */
static size_t switch_end(struct view text, size_t at)
{
	static const char *const values[] = { "true", "false" };
	size_t name = pii_run(text, at, PII_QUERY_NAME, 64), value = at + name + 1;
	if (!name || pii_at(text, value - 1) != '=')
		return 0;
	for (size_t i = 0; i < 2; i++) {
		size_t n = 0;
		while (values[i][n] && (pii_at(text, value + n) | 0x20) == values[i][n])
			n++;
		if (!values[i][n])
			return value + n;
	}
	return 0;
}

/* "?debug=true&raw=false" */
static bool is_switches(struct view text, size_t query, size_t end)
{
	if ((text.at[end - 1] | 0x20) != 'e')
		return false;
	for (size_t at = query + 1; (at = switch_end(text, at)) && at <= end; at++)
		if (at == end)
			return true;
		else if (text.at[at] != '&')
			return false;
	return false;
}

/* Is a query, from its ? to its end, about no one? */
#define EFFORT_NOTHING 90
#define EFFORT_QUERY_BYTE 2

static bool says_nothing(struct pii_seen *seen, struct view text, size_t query, size_t end)
{
	pii_spend(&seen->runs, EFFORT_NOTHING + EFFORT_QUERY_BYTE * (end - query));
	return is_bundle(text, query, end) || is_switches(text, query, end);
}

/* From the name behind the ? on. "x?.y=z" is JavaScript. */
bool pii_find_query(const struct pii_rule *rule, struct view text, size_t at, struct pii_seen *seen,
		    struct regex_span *span)
{
	(void)rule;
	size_t name = pii_run(text, at + 1, PII_QUERY_NAME, 64), value = at + 1 + name + 1;
	if (!name || text.at[at + 1] == '.' || pii_at(text, value - 1) != '=')
		return false;
	size_t end = pii_run_end(&seen->runs, text, value, PII_QUERY);
	return end > value && !says_nothing(seen, text, at, end) && pii_hit(span, at + 1, end);
}

bool pii_find_url(const struct pii_rule *rule, struct view text, size_t at, struct pii_seen *seen,
		  struct regex_span *span)
{
	(void)rule;
	size_t query = pii_run_end(&seen->runs, text, at + 3, PII_URL);
	if (query == at + 3 || PII_WORD_BEFORE(text, at, "webpack") ||
	    PII_WORD_BEFORE(text, at, "webpack-internal"))
		return false;
	seen->from = query;
	if (pii_at(text, query) != '?')
		return false;
	size_t end = pii_run_end(&seen->runs, text, query + 1, PII_QUERY);
	return end > query + 1 && !says_nothing(seen, text, query, end) &&
	       pii_hit(span, query + 1, end);
}
