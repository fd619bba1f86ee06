/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_HOST_PORT_H
#define NET_HOST_PORT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* "host:port", "[v6]:port" or ":port", as configurations have them. */
struct host_port {
	const char *host; /* in the string, without brackets */
	size_t host_len;
	const char *port; /* to the end of the string; decimal digits */
	unsigned number;
};

/* False: the error begins with "KEY: " and says what to write, and repeats nothing of the string.
 * min_port: 1 for a destination, 0 where the system may choose. */
bool host_port_parse(const char *key, const char *text, unsigned min_port, struct host_port *out,
		     struct error *err);

#endif
