/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORTERS_PYROSCOPE_ANSWER_H
#define EXPORTERS_PYROSCOPE_ANSWER_H

#include "net/http/http_client.h"
#include "pipeline/delivery/delivery.h"

/* A store takes nothing at once that is larger than its burst, 2 MiB where nobody has changed it;
 * it tells so by a 429 that no waiting heals. What it counts is a little more than what is sent. */
#define PYROSCOPE_BURST (UINT64_C(1920) << 10)

/*
 * What an answer to a push of so many bytes (not compressed) means. As the Collector's HTTP
 * exporters do: 429, 502, 503 and 504 are tried again, and what has no answer. What is too large is
 * known by the texts of Pyroscope 1.12 to 2.2 (pkg/validation, pkg/distributor), which name the
 * limit.
 */
struct send_result pyroscope_judge(const struct http_result *result, uint64_t bytes);

#endif
