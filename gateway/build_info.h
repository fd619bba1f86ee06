/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATEWAY_BUILD_INFO_H
#define GATEWAY_BUILD_INFO_H

/* The commit of the sources, and its date; "unknown" if the build could not find them. The build
 * writes the definitions (docker/build-info.sh), and only the program itself has them. */
extern const char build_info_commit[], build_info_date[];

#endif
