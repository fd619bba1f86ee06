/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RECEIVERS_OTLP_HTTP_H
#define RECEIVERS_OTLP_HTTP_H

#include "pipeline/intake/http_intake.h"
#include "pipeline/intake/otlp_documents.h"
#include "receivers/otlp_config.h"

/*
 * OTLP over HTTP (opentelemetry.io/docs/specs/otlp, "OTLP/HTTP"): the part of the otlp receiver
 * that depends on this transport. The Content-Type of a request says whether it is protobuf or
 * JSON, and its response has the same encoding.
 *
 * Where the specification is silent, the responses are those of the Collector. A request that was
 * accepted completely is answered with an empty partial_success (bytes 0A 00), which the protocol
 * defines as equivalent to none. Responses of the server itself (404, 405, 408, 431) are plain
 * text.
 */
struct otlp_http;

/* `documents` and `config` are borrowed until otlp_http_free. */
struct otlp_http *otlp_http_new(const struct host *host, struct otlp_documents *documents,
				const struct otlp_http_config *config);
struct http_intake *otlp_http_intake(struct otlp_http *http);
void otlp_http_free(struct otlp_http *http);

#endif
