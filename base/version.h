/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_VERSION_H
#define BASE_VERSION_H

#define PORTCULLIS_VERSION "0.1.0"

#endif
