/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_DELIVERY_OTLP_ANSWER_H
#define PIPELINE_DELIVERY_OTLP_ANSWER_H

#include "net/http/http_client.h"
#include "pipeline/component.h"

/*
 * What the responses of OTLP servers say besides the status of the transport (OTLP specification,
 * "Partial Success" and "OTLP/HTTP Response"). Their messages are never logged, because they can
 * quote the data. [any thread]
 */

/* The number of Profiles that an accepted request lost, at most `profiles`: the partial_success of
 * an ExportProfilesServiceResponse in protobuf, which is also logged. A response that cannot be
 * read says nothing. */
uint64_t otlp_answer_rejected(const struct log *log, struct view response, uint64_t profiles);

/* Completes the verdict of http_sender_judge. An accepted request: its rejected Profiles. A
 * rejected one: the reason, from the google.rpc.Status in the body, and whether it was too large.
 * Both are read in the encoding that Content-Type names, protobuf or JSON. */
void otlp_answer_judge(const struct log *log, const struct http_result *result, uint64_t profiles,
		       struct send_result *verdict);

#endif
