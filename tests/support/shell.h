/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SUPPORT_SHELL_H
#define TESTS_SUPPORT_SHELL_H

/* Runs a command line with /bin/sh (never use fork alone: gRPC does not survive it). Returns its
 * exit status, or -1 if there is none. */
int shell(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
