/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTERS_PYROSCOPE_ANSWER_H
#define EXPORTERS_PYROSCOPE_ANSWER_H

#include "net/http/http_client.h"
#include "pipeline/delivery/delivery.h"

/*
 * Recognises the answers to a push of `bytes` bytes (uncompressed) that mean "too large", by status
 * or by the messages of Pyroscope 1.12 to 2.2 (pkg/validation, pkg/distributor), which name the
 * limit; and a 429 to a request larger than the burst of the rate limit, which no retry can
 * satisfy. Other verdicts of http_sender_judge stay as they are.
 */
void pyroscope_judge(const struct http_result *result, uint64_t bytes, struct send_result *verdict);

/* Is this how the store answers to a push without series? As an invalid one, in the form of Connect
 * (connectrpc.com, "Error End-Stream"; pkg/distributor). */
bool pyroscope_found_nothing(const struct http_result *result);

#endif
