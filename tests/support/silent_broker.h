/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SUPPORT_SILENT_BROKER_H
#define TESTS_SUPPORT_SILENT_BROKER_H

#define SILENT_BROKER_SIZE 32

/* Takes connections, and never answers. Writes its `host:port`. The caller closes the descriptor.
 */
int silent_broker_open(char broker[SILENT_BROKER_SIZE]);

#endif
