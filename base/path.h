/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_PATH_H
#define BASE_PATH_H

/* The path without what says nothing: "./x/../a//b/" is "a/b". Looks at the text alone, not at the disk (links are names
 * like others). The caller frees it. */
char *path_normal(const char *path);

#endif
