/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROCESSORS_PII_FIND_H
#define PROCESSORS_PII_FIND_H

#include "processors/pii_detectors.h"

/*
 * The grammars of the detectors, one function each. A function decides whether there is a match
 * whose anchor (pii_detectors.h) is at `at`, and sets the span that is masked. No anchor begins
 * before seen->from, but what stands in front of it may belong to an earlier match. A function that
 * finds that nothing can match before some position raises seen->from to that.
 *
 * The string stands between margins (PII_MARGIN), so a function may look around without asking
 * where it ends.
 *
 * The cost is bounded: each function examines a few bytes, bytes that end where the function would
 * be called next, or a run that is measured once for all functions (pii_run_end). A call is charged
 * with its rule's effort (pii_table.h); what depends on the string, the function takes itself
 * (pii_spend), as measured. tests/processors/test_pii_cost.py counts instructions.
 */
static inline bool pii_hit(struct regex_span *span, size_t start, size_t end)
{
	*span = (struct regex_span){ start, end, true };
	return end > start;
}

/* "%3D", "\\n", "\\u003d", "\\x3d": does an escaped character end here? */
static inline bool pii_ends_escape(struct view text, size_t at)
{
	size_t digits = pii_run_back(text, at, PII_HEX, 4), escape = at - digits;
	if (digits >= 2 && at >= 3 && text.at[at - 3] == '%')
		return true;
	if (digits >= 2 && at >= 4 && text.at[at - 3] == 'x' && text.at[at - 4] == '\\')
		return true;
	if (digits == 4 && escape >= 2 && text.at[escape - 1] == 'u' && text.at[escape - 2] == '\\')
		return true;
	return at >= 2 && text.at[at - 2] == '\\' && memchr("nrt", text.at[at - 1], 3);
}

/* Is what begins here the end of a word? */
static inline bool pii_is_glued(struct view text, size_t at)
{
	return pii_is_at(text, at - 1, PII_ALNUM) && !pii_ends_escape(text, at);
}

/* A quotation mark, or one behind a backslash; its length. */
static inline size_t pii_quote_at(struct view text, size_t at)
{
	size_t escape = pii_at(text, at) == '\\';
	uint8_t mark = pii_at(text, at + escape);
	return mark == '"' || mark == '\'' ? 1 + escape : 0;
}

/* Where what a quotation mark began, which ends at `at`, ends: at the same mark, escaped as the
 * first is; or with the string. */
size_t pii_quoted_end(struct pii_seen *seen, struct view text, size_t at);

/* Where a token ends as generators draw them: a word of sixteen bytes or more with digits in two
 * places; 0: there is none. */
size_t pii_drawn_end(struct pii_seen *seen, struct view text, size_t at);

/* Does the rule's directory stand in itself, as in "/tmp/tmp/a/"? Then the inner one counts. */
static inline bool pii_is_repeated(const struct pii_rule *rule, struct view text, size_t at)
{
	size_t len = rule->literal_len;
	return pii_has_at(text, at + len - 1, rule->literal, len);
}

/* All four at once: below '0' or above '9', one of the halves of a byte changes. */
static inline bool pii_four_digits(const uint8_t *at)
{
	uint32_t bytes;
	memcpy(&bytes, at, sizeof bytes);
	return ((bytes & 0xf0f0f0f0) | ((bytes + 0x06060606) >> 4 & 0x0f0f0f0f)) == 0x33333333;
}

/* "0.4111": the digits behind a decimal point. */
static inline bool pii_is_fraction(struct view text, size_t at)
{
	return at > 1 && text.at[at - 1] == '.' && pii_is(text.at[at - 2], PII_DIGIT);
}

/* The same, or "f.llvm.12345": the compiler's suffix of a symbol. */
static inline bool pii_is_part(struct view text, size_t at)
{
	return pii_is_fraction(text, at) || PII_WORD_BEFORE(text, at, ".llvm.");
}

pii_find_function pii_find_escaped; /* the rule's other function, behind an escaped character */
pii_find_function pii_find_ipv4, pii_find_ipv4_host, pii_find_ipv6, pii_find_loopback, pii_find_mac,
	pii_find_mac_dotted;
pii_find_function pii_find_card, pii_find_card_groups, pii_find_card_any, pii_find_iban,
	pii_find_ssn, pii_find_phone, pii_find_phone_nanp, pii_find_phone_trunk,
	pii_find_phone_national, pii_find_pan, pii_find_aadhaar, pii_find_uuid;
pii_find_function pii_find_email, pii_find_email_percent, pii_find_email_html,
	pii_find_email_literal, pii_find_email_wide, pii_find_jwt, pii_find_bearer, pii_find_basic,
	pii_find_authorization, pii_find_curl_user, pii_find_curl_options;
pii_find_function pii_find_url, pii_find_query; /* begin at the :// and at the ? */
pii_find_function pii_find_userinfo, pii_find_sqlplus, pii_find_oracle, pii_find_assigned,
	pii_find_assigned_escaped, pii_find_json_value, pii_find_spaced_value,
	pii_find_option_value, pii_find_header_value, pii_find_element;
/* Keys. pii_find_run: the rule's literal, then a run of the rule's kinds. pii_find_key: the same
 * with no letter or digit before it. */
pii_find_function pii_find_run, pii_find_key, pii_find_key_aws, pii_find_key_github,
	pii_find_key_stripe, pii_find_key_slack, pii_find_key_openai, pii_find_key_openai_old,
	pii_find_key_sendgrid, pii_find_key_azure, pii_find_secret_azure, pii_find_pem,
	pii_find_key_vault, pii_find_key_shopify, pii_find_key_digitalocean,
	pii_find_key_databricks, pii_find_key_twilio, pii_find_key_atlassian, pii_find_key_gitlab,
	pii_find_slack_hook;
pii_find_function pii_find_home, pii_find_home_windows, pii_find_home_escaped;
/* Workspaces. pii_find_project: the rule's literal, then two segments of a path. */
pii_find_function pii_find_project, pii_find_project_agent, pii_find_project_builds,
	pii_find_project_home, pii_find_project_windows, pii_find_workspace, pii_find_agent_work,
	pii_find_bazel, pii_find_go_build;
/* Of detectors that are off unless an operator enables them. */
pii_find_function pii_find_directory, pii_find_sql_string, pii_find_sql_number, pii_find_arguments,
	pii_find_user_name;

#endif
