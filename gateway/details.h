/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATEWAY_DETAILS_H
#define GATEWAY_DETAILS_H

#include "gateway/service.h"

/*
 * What the operator should know about a program that is ready: the result of the last reload, the
 * state of each storage, and of the circuit of each destination. A JSON array of objects:
 *
 *   {"component":"exporters::otlp","state":"open","detail":"the destination does not ..."}
 *
 * `all`: also components that are as they should be; they have no `detail`. [any thread]
 */
void details_write(const struct service *service, bool all, struct bytes *json);

#endif
