/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTERS_PYROSCOPE_ANSWER_H
#define EXPORTERS_PYROSCOPE_ANSWER_H

#include "net/http/http_client.h"
#include "pipeline/delivery/delivery.h"

/* A store rejects any request larger than its burst, by default 2 MiB, with a 429 that no retry can
 * satisfy. It counts a little more than the bytes that are sent. */
#define PYROSCOPE_BURST (UINT64_C(1920) << 10)

/*
 * Recognises the answers to a push of `bytes` bytes (uncompressed) that mean "too large", by status
 * or by the messages of Pyroscope 1.12 to 2.2 (pkg/validation, pkg/distributor), which name the
 * limit. Other verdicts of http_sender_judge stay as they are.
 */
void pyroscope_judge(const struct http_result *result, uint64_t bytes, struct send_result *verdict);

#endif
