/* SPDX-License-Identifier: Apache-2.0 */
#include "processors/pii_find.h"

/* Keys of services, which have a prefix of their own. */
#define EFFORT_KEY_BYTE 6

/* A run of at least min bytes at `tail`. */
static bool run_from(struct pii_seen *seen, struct view text, size_t start, size_t tail,
		     uint32_t kinds, size_t min, struct regex_span *span)
{
	size_t end = pii_run_end(&seen->runs, text, tail, kinds);
	return end - tail >= min && pii_hit(span, start, end);
}

bool pii_find_run(const struct pii_rule *rule, struct view text, size_t at, struct pii_seen *seen,
		  struct regex_span *span)
{
	return run_from(seen, text, at, at + rule->literal_len, rule->kinds, rule->min, span);
}

bool pii_find_key(const struct pii_rule *rule, struct view text, size_t at, struct pii_seen *seen,
		  struct regex_span *span)
{
	return !pii_is_glued(text, at) && pii_find_run(rule, text, at, seen, span);
}

static bool is_aws_prefix(struct view text, size_t at)
{
	static const char prefixes[][5] = { "AKIA", "ASIA", "AGPA", "AIDA", "AROA",
					    "AIPA", "ANPA", "ANVA", "ABIA", "ACCA" };
	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
		if (pii_has_at(text, at, prefixes[i], 4))
			return true;
	return PII_WORD_AT(text, at, "A3T");
}

/* A word of twenty capitals and digits. */
bool pii_find_key_aws(const struct pii_rule *rule, struct view text, size_t at,
		      struct pii_seen *seen, struct regex_span *span)
{
	(void)rule;
	bool part = at && pii_is(text.at[at - 1], PII_UPPER | PII_DIGIT);
	size_t len = pii_run(text, at, PII_UPPER | PII_DIGIT, 21);
	pii_spend(&seen->runs, EFFORT_KEY_BYTE * len);
	return len == 20 && is_aws_prefix(text, at) && !(part && !pii_ends_escape(text, at)) &&
	       pii_hit(span, at, at + 20);
}

static bool one_of(struct view text, size_t at, const char *bytes)
{
	uint8_t byte = pii_at(text, at);
	return byte && strchr(bytes, byte);
}

/* ghp_..., at the "gh"; the anchor has the four bytes. */
bool pii_find_key_github(const struct pii_rule *rule, struct view text, size_t at,
			 struct pii_seen *seen, struct regex_span *span)
{
	(void)rule;
	return !pii_is_glued(text, at) && run_from(seen, text, at, at + 4, PII_ALNUM, 36, span);
}

/* sk_live_..., at the "k_" */
bool pii_find_key_stripe(const struct pii_rule *rule, struct view text, size_t at,
			 struct pii_seen *seen, struct regex_span *span)
{
	(void)rule;
	return at > seen->from && (text.at[at - 1] == 's' || text.at[at - 1] == 'r') &&
	       !pii_is_glued(text, at - 1) &&
	       (PII_WORD_AT(text, at + 2, "live_") || PII_WORD_AT(text, at + 2, "test_")) &&
	       run_from(seen, text, at - 1, at + 7, PII_ALNUM, 20, span);
}

/* xoxb-..., at the "xox"; the anchor has the four bytes. */
bool pii_find_key_slack(const struct pii_rule *rule, struct view text, size_t at,
			struct pii_seen *seen, struct regex_span *span)
{
	(void)rule;
	return pii_at(text, at + 4) == '-' && !pii_is_glued(text, at) &&
	       run_from(seen, text, at, at + 5, PII_ALNUM | PII_DASH, 10, span);
}

/* A slash, as such, escaped for JSON or percent-encoded; its length. */
static size_t slash_at(struct view text, size_t at)
{
	return pii_at(text, at) == '/'                                        ? 1
	       : PII_WORD_AT(text, at, "\\/")                                 ? 2
	       : PII_WORD_AT(text, at, "%2F") || PII_WORD_AT(text, at, "%2f") ? 3
									      : 0;
}

/* A webhook, at its host */
bool pii_find_slack_hook(const struct pii_rule *rule, struct view text, size_t at,
			 struct pii_seen *seen, struct regex_span *span)
{
	size_t path = at + rule->literal_len, end = path, part = slash_at(text, path);
	if (pii_is_glued(text, at) || !part)
		return false;
	while (part) {
		end += part;
		part = pii_is_at(text, end, PII_BASE64) ? 1 : slash_at(text, end);
	}
	pii_spend(&seen->runs, EFFORT_KEY_BYTE * (end - path));
	return end - path > 20 && pii_hit(span, at, end);
}

/* glpat-... and the like, at the "gl" */
bool pii_find_key_gitlab(const struct pii_rule *rule, struct view text, size_t at,
			 struct pii_seen *seen, struct regex_span *span)
{
	/* Of persons, triggers, jobs, mail, runners, deployments, feeds, SCIM and agents. */
	static const char *const kinds[PII_WORD_MAX + 1] = { [4] = "glrt"
								   "gldt"
								   "glft",
							     [5] = "glpat"
								   "glptt"
								   "glcbt"
								   "glimt",
							     [6] = "glsoat",
							     [7] = "glagent" };
	(void)rule;
	size_t len = pii_run(text, at, PII_LOWER, 8);
	return pii_at(text, at + len) == '-' &&
	       pii_is_word((struct view){ text.at + at, len }, kinds) && !pii_is_glued(text, at) &&
	       run_from(seen, text, at, at + len + 1, PII_BASE64URL, 20, span);
}

/* sk-proj-..., at the "sk-" */
bool pii_find_key_openai(const struct pii_rule *rule, struct view text, size_t at,
			 struct pii_seen *seen, struct regex_span *span)
{
	(void)rule;
	size_t kind = PII_WORD_AT(text, at + 3, "ant-")       ? 4
		      : PII_WORD_AT(text, at + 3, "proj-")    ? 5
		      : PII_WORD_AT(text, at + 3, "svcacct-") ? 8
		      : PII_WORD_AT(text, at + 3, "admin-")   ? 6
							      : 0;
	return kind && !pii_is_glued(text, at) &&
	       run_from(seen, text, at, at + 3 + kind, PII_BASE64URL, 20, span);
}

bool pii_find_key_openai_old(const struct pii_rule *rule, struct view text, size_t at,
			     struct pii_seen *seen, struct regex_span *span)
{
	(void)rule, (void)seen;
	return !pii_is_glued(text, at) && pii_run(text, at + 3, PII_ALNUM, 49) == 48 &&
	       pii_hit(span, at, at + 51);
}

/* SG., 22 bytes, a dot, 43 bytes */
bool pii_find_key_sendgrid(const struct pii_rule *rule, struct view text, size_t at,
			   struct pii_seen *seen, struct regex_span *span)
{
	(void)rule, (void)seen;
	return !pii_is_glued(text, at) && pii_at(text, at + 25) == '.' &&
	       pii_run(text, at + 3, PII_BASE64URL, 22) == 22 &&
	       pii_run(text, at + 26, PII_BASE64URL, 43) == 43 && pii_hit(span, at, at + 69);
}

/* "Account" and "Access" in front of "Key="; the length, 0: it is another name. */
static size_t azure_name(struct view text, size_t at)
{
	if (!PII_WORD_AT(text, at, "Key="))
		return 0;
	return PII_WORD_BEFORE(text, at, "Account")  ? 7
	       : PII_WORD_BEFORE(text, at, "Access") ? 6
						     : 0;
}

/* AccountKey=..., at the "Key=". The next one may be glued to it. */
bool pii_find_key_azure(const struct pii_rule *rule, struct view text, size_t at,
			struct pii_seen *seen, struct regex_span *span)
{
	(void)rule;
	if (!azure_name(text, at) || !run_from(seen, text, at + 4, at + 4, PII_BASE64, 32, span))
		return false;
	size_t next = azure_name(text, span->end - 3);
	if (next)
		return pii_hit(span, span->start, span->end - 3 - next);
	for (int i = 0; i < 2 && pii_at(text, span->end) == '='; i++)
		span->end++;
	return true;
}

/* A client secret, at its "Q~". Its front may have been taken for the end of another one. */
bool pii_find_secret_azure(const struct pii_rule *rule, struct view text, size_t at,
			   struct pii_seen *seen, struct regex_span *span)
{
	static const uint32_t kinds = PII_BASE64URL | PII_DOT | PII_TILDE;
	(void)rule, (void)seen;
	if (at < 4 || !pii_is(text.at[at - 1], PII_DIGIT) ||
	    pii_run_back(text, at - 1, kinds, 3) < 3)
		return false;
	size_t len = pii_run(text, at + 2, kinds, 34);
	return len >= 31 && pii_hit(span, at - 4, at + 2 + len);
}

/* A blank between the words of PEM, as such or escaped; its length. */
static size_t pem_gap(struct view text, size_t at)
{
	uint8_t byte = pii_at(text, at);
	return byte == ' ' || byte == '+' ? 1 : PII_WORD_AT(text, at, "%20") ? 3 : 0;
}

static bool is_private_key(struct view text, size_t at)
{
	size_t gap = at + sizeof "PRIVATE" - 1;
	return PII_WORD_AT(text, at, "PRIVATE") && pem_gap(text, gap) &&
	       PII_WORD_AT(text, gap + pem_gap(text, gap), "KEY");
}

/* A private key in PEM takes all that follows. */
bool pii_find_pem(const struct pii_rule *rule, struct view text, size_t at, struct pii_seen *seen,
		  struct regex_span *span)
{
	(void)seen;
	size_t name = at + rule->literal_len;
	size_t step = pem_gap(text, name);
	for (int i = 0; i <= 32 && step; i++) {
		name += step;
		if (is_private_key(text, name))
			return pii_hit(span, at, text.len);
		step = pii_is_at(text, name, PII_UPPER) ? 1 : pem_gap(text, name);
	}
	return false;
}

/* hvs., hvb., hvr., at the "hv"; the anchor has the four bytes. */
bool pii_find_key_vault(const struct pii_rule *rule, struct view text, size_t at,
			struct pii_seen *seen, struct regex_span *span)
{
	(void)rule;
	return !pii_is_glued(text, at) && run_from(seen, text, at, at + 4, PII_BASE64URL, 24, span);
}

/* shpat_ and the like, at the "shp" */
bool pii_find_key_shopify(const struct pii_rule *rule, struct view text, size_t at,
			  struct pii_seen *seen, struct regex_span *span)
{
	(void)rule;
	bool kind = PII_WORD_AT(text, at + 3, "at_") || PII_WORD_AT(text, at + 3, "ca_") ||
		    PII_WORD_AT(text, at + 3, "pa_") || PII_WORD_AT(text, at + 3, "ss_");
	return kind && !pii_is_glued(text, at) &&
	       run_from(seen, text, at, at + 6, PII_HEX, 32, span);
}

/* dop_v1_ and the like, at the "_v1_" */
bool pii_find_key_digitalocean(const struct pii_rule *rule, struct view text, size_t at,
			       struct pii_seen *seen, struct regex_span *span)
{
	(void)rule;
	return at >= seen->from + 3 && one_of(text, at - 1, "opr") &&
	       PII_WORD_BEFORE(text, at - 1, "do") && !pii_is_glued(text, at - 3) &&
	       run_from(seen, text, at - 3, at + 4, PII_HEX, 64, span);
}

/* 32 digits and no more behind a prefix; where they end, 0: they are others. */
static size_t hex_32(struct view text, size_t at)
{
	return pii_run(text, at, PII_HEX, 33) == 32 && !pii_is_at(text, at + 32, PII_ALNUM)
		       ? at + 32
		       : 0;
}

/* dapi..., perhaps with "-2" at its end */
bool pii_find_key_databricks(const struct pii_rule *rule, struct view text, size_t at,
			     struct pii_seen *seen, struct regex_span *span)
{
	(void)seen;
	size_t end = pii_is_glued(text, at) ? 0 : hex_32(text, at + rule->literal_len);
	if (end && pii_at(text, end) == '-' && pii_is_at(text, end + 1, PII_DIGIT))
		end += 2;
	return pii_hit(span, at, end);
}

/* SK... and AC... */
bool pii_find_key_twilio(const struct pii_rule *rule, struct view text, size_t at,
			 struct pii_seen *seen, struct regex_span *span)
{
	(void)rule, (void)seen;
	bool prefix = PII_WORD_AT(text, at, "SK") || PII_WORD_AT(text, at, "AC");
	return prefix && !pii_is_glued(text, at) && pii_hit(span, at, hex_32(text, at + 2));
}

/* ATATT3..., with a checksum behind = at its end */
bool pii_find_key_atlassian(const struct pii_rule *rule, struct view text, size_t at,
			    struct pii_seen *seen, struct regex_span *span)
{
	if (!pii_find_key(rule, text, at, seen, span))
		return false;
	if (pii_at(text, span->end) == '=' && pii_run(text, span->end + 1, PII_ALNUM, 9) == 8 &&
	    pii_run(text, span->end + 1, PII_HEX, 8) == 8)
		span->end += 9;
	return true;
}
