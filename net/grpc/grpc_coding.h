/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_GRPC_GRPC_CODING_H
#define NET_GRPC_GRPC_CODING_H

#include "base/coding.h"
#include "base/error.h"

/*
 * The codings that a client can announce in grpc-encoding. The gRPC C core 1.51 knows gzip and
 * deflate. It replaces every other value by `identity`, in requests and in responses. Two functions
 * of core translate between the names and their numbers. The program's own functions precede them,
 * as the dynamic linker arranges for any symbol of the executable. They have two more names.
 */
/* The value of a call's metadatum grpc-encoding that has core announce the coding. NULL: it cannot
 * be announced. [any thread] */
const char *grpc_coding_metadata(enum coding coding);
/* Can it be announced? ERROR_CONFIG: no, because core does not call our functions, as a release of
 * it whose symbols have other names. [any thread] */
bool grpc_coding_check(enum coding coding, struct error *err);

#endif
