/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROCESSORS_PII_PAGE_H
#define PROCESSORS_PII_PAGE_H

#include "base/bytes.h"

/* Prints the table of detectors as docs/POLICY.md. The page ends with an empty section of measured
 * figures, which `make bench-pii` fills. */
void pii_page(struct bytes *out);

#endif
