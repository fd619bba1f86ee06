/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATEWAY_FILES_H
#define GATEWAY_FILES_H

#include "base/bytes.h"
#include "base/error.h"

/* Whole files for the commands. The bytes keep their slack. files_read reads standard input for the
 * path "-". */
bool files_read(const char *path, struct bytes *out, struct error *err);
bool files_write(const char *path, struct view bytes, struct error *err);

#endif
