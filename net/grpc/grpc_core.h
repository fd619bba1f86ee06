/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_GRPC_GRPC_CORE_H
#define NET_GRPC_GRPC_CORE_H

/*
 * The gRPC C core's life in the process. [any thread]
 *
 * The first grpc_core_init also switches off the deadlock detector that Debian's libabsl runs in
 * every lock (12 % of the instructions; left on if the library has no such switch), and takes over
 * core's log: a line may hold a peer's bytes, so what reaches our log is the library, the source
 * location and a count.
 *
 * After it a child of fork() cannot use gRPC; fork and exec is fine.
 */
void grpc_core_init(void);
void grpc_core_shutdown(void); /* each init wants one */

#endif
