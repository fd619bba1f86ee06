/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GATEWAY_VERSION_H
#define GATEWAY_VERSION_H

#define PORTCULLIS_VERSION "0.1.0"

#endif
