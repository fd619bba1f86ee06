/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/grpc_peer.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "tests/support/shell.h"

enum { ARGUMENTS_MAX = 16 };

static int read_port(int from)
{
	int port = 0;
	FILE *out = fdopen(from, "r");
	assert_non_null(out);
	assert_int_equal(fscanf(out, "port %d", &port), 1);
	fclose(out);
	return port;
}

static pid_t spawn(char *const *argv, int in, int out)
{
	pid_t pid;
	posix_spawn_file_actions_t actions;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in, 0);
	posix_spawn_file_actions_adddup2(&actions, out, 1);
	assert_int_equal(posix_spawn(&pid, argv[0], &actions, NULL, argv, environ), 0);
	posix_spawn_file_actions_destroy(&actions);
	return pid;
}

void grpc_peer_start(struct grpc_peer *peer, const char *const *arguments)
{
	const char *argv[ARGUMENTS_MAX + 4] = { "/usr/bin/python3", "tests/support/grpc_peer.py" };
	int to[2], from[2], count = 2;
	while (*arguments && count < ARGUMENTS_MAX)
		argv[count++] = *arguments++;
	assert_int_equal(pipe2(to, O_CLOEXEC), 0);
	assert_int_equal(pipe2(from, O_CLOEXEC), 0);
	peer->pid = spawn((char *const *)argv, to[0], from[1]);
	close(to[0]);
	close(from[1]);
	peer->to = to[1];
	peer->port = read_port(from[0]);
	snprintf(peer->endpoint, sizeof peer->endpoint, "127.0.0.1:%d", peer->port);
}

void grpc_peer_kill(struct grpc_peer *peer)
{
	if (!peer->pid)
		return;
	kill(peer->pid, SIGKILL);
	waitpid(peer->pid, NULL, 0);
	close(peer->to);
	*peer = (struct grpc_peer){ 0 };
}

char *certificates_make(void)
{
	char *directory = memory_text("/tmp/portcullis-certificates-XXXXXX");
	assert_non_null(mkdtemp(directory));
	assert_int_equal(shell("cd '%s' && exec 2>/dev/null && new='-newkey ec -pkeyopt "
			       "ec_paramgen_curve:P-256 -nodes' && for n in ca other-ca; do "
			       "openssl req -x509 $new -days 2 -subj /CN=$n -keyout $n.key -out "
			       "$n.pem || exit 1; done && printf "
			       "'subjectAltName=DNS:localhost,IP:127.0.0.1\\n' >server.ext && : "
			       ">client.ext && for n in server:localhost client:sensor; do "
			       "f=${n%%:*}; openssl req $new -subj /CN=${n#*:} -keyout $f.key "
			       "-out $f.csr && openssl x509 -req -in $f.csr -CA ca.pem -CAkey "
			       "ca.key -CAcreateserial -days 2 -extfile $f.ext -out $f.pem || "
			       "exit 1; done",
			       directory),
			 0);
	return directory;
}

void certificates_remove(char **directory)
{
	assert_int_equal(shell("rm -rf '%s'", *directory), 0);
	memory_free(*directory);
	*directory = NULL;
}
