/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SUPPORT_SHELL_H
#define TESTS_SUPPORT_SHELL_H

/* Runs a command line with /bin/sh (never fork alone: gRPC does not survive it); its exit status,
 * -1 for none. */
int shell(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
