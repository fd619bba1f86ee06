/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROCESSORS_PII_FIND_H
#define PROCESSORS_PII_FIND_H

#include "processors/pii_detectors.h"

/*
 * The detectors' grammars, one function each. A function decides whether there is a hit whose
 * anchor (pii_detectors.h) stands at `at`, and gives the span that is masked. A match, which may be
 * wider than its span, must not begin before *from; a function that has seen that nothing can match
 * before some place raises it.
 *
 * What they cost is bounded: each looks at a bounded number of bytes, or at a run of bytes that
 * ends at the next place where it would be tried, or that it skips.
 * tests/processors/test_pii_cost.py counts.
 */
static inline bool pii_hit(struct regex_span *span, size_t start, size_t end)
{
	*span = (struct regex_span){ start, end, true };
	return end > start;
}

pii_find_function pii_find_ipv4, pii_find_ipv6;
pii_find_function pii_find_card, pii_find_ssn, pii_find_phone, pii_find_phone_nanp, pii_find_pan,
	pii_find_aadhaar, pii_find_uuid;
pii_find_function pii_find_email, pii_find_jwt, pii_find_bearer;
pii_find_function pii_find_url, pii_find_query; /* begin at the :// and at the ? */
/* Keys: pii_find_run is the rule's literal and a run of the rule's kinds; pii_find_key no letter or
 * digit before it. */
pii_find_function pii_find_run, pii_find_key, pii_find_key_aws, pii_find_key_github,
	pii_find_key_stripe, pii_find_key_slack, pii_find_key_openai, pii_find_key_openai_old,
	pii_find_key_sendgrid, pii_find_key_azure, pii_find_secret_azure, pii_find_pem;
pii_find_function pii_find_home, pii_find_home_windows;
/* Of workspaces: pii_find_project is the rule's literal and two segments of a path. */
pii_find_function pii_find_project, pii_find_project_builds, pii_find_project_home,
	pii_find_project_windows, pii_find_workspace, pii_find_agent_work, pii_find_bazel,
	pii_find_go_build;

#endif
