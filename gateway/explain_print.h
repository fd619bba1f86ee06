/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATEWAY_EXPLAIN_PRINT_H
#define GATEWAY_EXPLAIN_PRINT_H

#include "gateway/explain_report.h"

/* What the print of one report and that of a comparison have in common. Text is made safe for a
 * terminal: keys may come from a sender. */

/* Pointers to all verdicts, by site and key; NULL ends. The caller frees the array. */
const struct explain_verdict **explain_sorted(const struct explain_verdicts *verdicts);

void explain_text_column(struct bytes *out, const char *text, size_t width);
void explain_text_rule(struct bytes *out, const struct explain_verdict *verdict);
void explain_text_input(struct bytes *out, const struct explain_report *report);

/* A member of an object; the members that name site, key and rule; the first member of the whole,
 * and the beginning of the second. */
void explain_json_text(struct bytes *out, const char *name, const char *text);
void explain_json_place(struct bytes *out, const struct explain_verdict *verdict);
void explain_json_input(struct bytes *out, const struct explain_report *report);
/* The end of the output: whether ways are left out. */
void explain_text_end(struct bytes *out, bool more);
void explain_json_end(struct bytes *out, bool more);

#endif
