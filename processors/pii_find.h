/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROCESSORS_PII_FIND_H
#define PROCESSORS_PII_FIND_H

#include "processors/pii_detectors.h"

/*
 * The grammars of the detectors, one function each. A function decides whether there is a match
 * whose anchor (pii_detectors.h) is at `at`, and sets the span that is masked. A match, which may
 * be wider than its span, must not begin before seen->from. A function that finds that nothing can
 * match before some position raises it to that.
 *
 * The cost is bounded: each function examines a few bytes, bytes that end where the function would
 * be called next, or a run that is measured once for all functions (pii_run_end).
 * tests/processors/test_pii_cost.py counts instructions.
 */
static inline bool pii_hit(struct regex_span *span, size_t start, size_t end)
{
	*span = (struct regex_span){ start, end, true };
	return end > start;
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

pii_find_function pii_find_ipv4, pii_find_ipv4_host, pii_find_ipv6, pii_find_loopback, pii_find_mac,
	pii_find_mac_dotted;
pii_find_function pii_find_card, pii_find_card_groups, pii_find_iban, pii_find_ssn, pii_find_phone,
	pii_find_phone_nanp, pii_find_phone_trunk, pii_find_pan, pii_find_aadhaar, pii_find_uuid;
pii_find_function pii_find_email, pii_find_email_percent, pii_find_email_html,
	pii_find_email_literal, pii_find_email_wide, pii_find_jwt, pii_find_bearer, pii_find_basic;
pii_find_function pii_find_url, pii_find_query; /* begin at the :// and at the ? */
pii_find_function pii_find_userinfo, pii_find_assigned, pii_find_assigned_escaped,
	pii_find_json_value, pii_find_option_value, pii_find_header_value;
/* Keys. pii_find_run: the rule's literal, then a run of the rule's kinds. pii_find_key: the same
 * with no letter or digit before it. */
pii_find_function pii_find_run, pii_find_key, pii_find_key_aws, pii_find_key_github,
	pii_find_key_stripe, pii_find_key_slack, pii_find_key_openai, pii_find_key_openai_old,
	pii_find_key_sendgrid, pii_find_key_azure, pii_find_secret_azure, pii_find_pem,
	pii_find_key_vault, pii_find_key_shopify, pii_find_key_digitalocean,
	pii_find_key_databricks, pii_find_key_twilio, pii_find_key_atlassian;
pii_find_function pii_find_home, pii_find_home_windows, pii_find_home_escaped;
/* Workspaces. pii_find_project: the rule's literal, then two segments of a path. */
pii_find_function pii_find_project, pii_find_project_builds, pii_find_project_home,
	pii_find_project_windows, pii_find_workspace, pii_find_agent_work, pii_find_bazel,
	pii_find_go_build;
/* Of detectors that are off unless an operator enables them. */
pii_find_function pii_find_directory, pii_find_sql_string, pii_find_sql_number, pii_find_arguments,
	pii_find_user_name;

#endif
