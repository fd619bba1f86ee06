/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_GRPC_GRPC_CORE_H
#define NET_GRPC_GRPC_CORE_H

/*
 * The lifetime of the gRPC C core in the process. [any thread]
 *
 * The first grpc_core_init also disables the deadlock detector of Debian's libabsl, which runs in
 * every lock (12 % of the instructions). If the library has no such switch, the detector stays
 * enabled. It also replaces core's log function: a line may contain bytes of a peer, so our log
 * gets only the library, the source location and a count.
 *
 * After it, a child of fork() cannot use gRPC; fork followed by exec is safe.
 */
void grpc_core_init(void);
void grpc_core_shutdown(void); /* once for each grpc_core_init */

#endif
