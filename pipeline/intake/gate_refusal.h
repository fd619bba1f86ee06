/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_INTAKE_GATE_REFUSAL_H
#define PIPELINE_INTAKE_GATE_REFUSAL_H

#include "pipeline/budget.h"
#include "pipeline/intake/workers.h"

/* Part of the gate: why a request is refused for now. Each function sets in->refusal, and the
 * error with a retry hint, and returns false. The reason is counted when the request ends. [any
 * thread] */

/* One to two seconds, at random, so that refused senders do not return at the same time. */
uint32_t gate_refusal_retry_ms(void);
bool gate_refusal_busy(struct inbound *in, struct error *err, enum refusal reason,
		       const char *text);
/* The workers' queue is full, or the peer has used its share of it. */
bool gate_refusal_waiting(struct workers *workers, struct inbound *in, struct error *err);
/* The request needs `needed` bytes in total, `more` of which it could not get. If they could never
 * be had, the error is ERROR_TOO_LARGE. */
bool gate_refusal_memory(struct budget *budget, struct inbound *in, int64_t needed, int64_t more,
			 struct error *err);

#endif
