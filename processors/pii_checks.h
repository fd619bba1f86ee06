/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROCESSORS_PII_CHECKS_H
#define PROCESSORS_PII_CHECKS_H

#include "processors/regex.h"

/*
 * Confirm what a pattern of pii_detectors.c found: the structure that a regular expression cannot see. Each
 * may move the ends of the span and returns false if it is no hit. The span is never empty.
 */
bool pii_check_alone(struct view text, struct regex_span *span);  /* no letter or digit beside it */
bool pii_check_prefix(struct view text, struct regex_span *span); /* none before it */
bool pii_check_to_end(struct view text, struct regex_span *span); /* takes all that follows */
bool pii_check_email(struct view text, struct regex_span *span);  /* begins at the @ */
bool pii_check_ipv4(struct view text, struct regex_span *span);
bool pii_check_ipv6(struct view text, struct regex_span *span);
bool pii_check_jwt(struct view text, struct regex_span *span);    /* is inside the header */
bool pii_check_aws(struct view text, struct regex_span *span);
bool pii_check_card(struct view text, struct regex_span *span);
bool pii_check_ssn(struct view text, struct regex_span *span);
bool pii_check_phone(struct view text, struct regex_span *span);
bool pii_check_aadhaar(struct view text, struct regex_span *span);
bool pii_check_bearer(struct view text, struct regex_span *span);

#endif
