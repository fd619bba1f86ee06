/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/shell.h"

#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int shell(const char *format, ...)
{
	char command[4096];
	va_list args;
	va_start(args, format);
	int len = vsnprintf(command, sizeof command, format, args);
	va_end(args);
	const char *const argv[] = { "/bin/sh", "-c", command, NULL };
	pid_t pid;
	int status;
	if (len < 0 || len >= (int)sizeof command ||
	    posix_spawn(&pid, argv[0], NULL, NULL, (char *const *)argv, environ) ||
	    waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}
