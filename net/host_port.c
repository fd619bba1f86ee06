/* SPDX-License-Identifier: Apache-2.0 */
#include "net/host_port.h"

#include <string.h>

enum { PORT_MAX = 65535 };

/* More than PORT_MAX if it is no port. */
static unsigned port_number(const char *text)
{
	unsigned number = 0;
	for (const char *at = text; *at; at++) {
		if (*at < '0' || *at > '9' || number > PORT_MAX)
			return PORT_MAX + 1;
		number = number * 10 + (unsigned)(*at - '0');
	}
	return *text ? number : PORT_MAX + 1;
}

static bool refuse(const char *key, const char *fault, struct error *err)
{
	return error_set(err, ERROR_CONFIG, "%s: must be host:port%s", key, fault);
}

bool host_port_parse(const char *key, const char *text, unsigned min_port, struct host_port *out,
		     struct error *err)
{
	const char *colon = strrchr(text, ':');
	if (strstr(text, "://"))
		return refuse(key, ", without a scheme such as http://", err);
	if (strchr(text, '/'))
		return refuse(key, ", without a path", err);
	if (!colon || (*text == '[' && strchr(text, ']') && strchr(text, ']') > colon))
		return refuse(key,
			      port_number(text) <= PORT_MAX
				      ? "; the host is missing, as in localhost:4317"
				      : "; the port is missing",
			      err);
	*out = (struct host_port){ text, (size_t)(colon - text), colon + 1,
				   port_number(colon + 1) };
	if (out->number > PORT_MAX || out->number < min_port)
		return error_set(err, ERROR_CONFIG,
				 "%s: must be host:port; the port must be a number from %u to %d",
				 key, min_port, (int)PORT_MAX);
	bool bracketed = out->host_len >= 2 && *text == '[' && colon[-1] == ']';
	if (bracketed) {
		out->host++;
		out->host_len -= 2;
	} else if (memchr(text, ':', out->host_len)) {
		return refuse(key, "; an IPv6 address must be in brackets, as [::1]:4317", err);
	}
	return !strpbrk(text, " \t") || refuse(key, ", without blanks", err);
}
