/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_DELIVERY_STATUS_MESSAGE_H
#define PIPELINE_DELIVERY_STATUS_MESSAGE_H

#include "pipeline/component.h"

/*
 * What the status of a gRPC call, or a google.rpc.Status in an HTTP response, says of a failure:
 * its code and its message. The message is classified and never logged, because it can quote the
 * data.
 */

/* "invalid_argument" for 3; codes that do not exist are "unknown". Code 0 is "ok". */
const char *status_message_word(int64_t code);

/* Does the message, as the libraries of servers word it, say that the request was too large? A
 * status of its own for that does not exist. Then the verdict is SEND_TOO_LARGE, with the limit if
 * the message names it. */
bool status_message_too_large(const char *message, struct send_result *verdict);

#endif
