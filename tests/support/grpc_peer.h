/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SUPPORT_GRPC_PEER_H
#define TESTS_SUPPORT_GRPC_PEER_H

#include <sys/types.h>

/* A running tests/support/grpc_peer.py, which documents its commands. Tests must run in the root of
 * the tree. */
struct grpc_peer {
	pid_t pid;
	int to; /* closing it ends the peer */
	int port;
	char endpoint[64]; /* "127.0.0.1:port" */
};

/* arguments: of the script, NULL-terminated. The port is known on return (asserted). */
void grpc_peer_start(struct grpc_peer *peer, const char *const *arguments);
#define grpc_peer_run(peer, ...) \
	grpc_peer_start((peer), (const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })
void grpc_peer_kill(struct grpc_peer *peer); /* SIGKILL; also ends a stopped one */

/* A directory with ca.pem, other-ca.pem, server.pem/.key (localhost, 127.0.0.1), client.pem/.key
 * (CN=sensor). */
char *certificates_make(void);
void certificates_remove(char **directory);

#endif
