/* SPDX-License-Identifier: Apache-2.0 */
#include "net/h2/private.h"
#include "net/host_port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#define UNIX_PREFIX "unix:"

static const char *unix_path(const char *endpoint, const char *transport)
{
	if (strncmp(endpoint, UNIX_PREFIX, strlen(UNIX_PREFIX)) == 0)
		return endpoint + strlen(UNIX_PREFIX);
	return transport && strcmp(transport, "unix") == 0 ? endpoint : NULL;
}

static bool resolve_unix(const char *path, struct h2_addresses *out, struct error *err)
{
	struct sockaddr_un *to = (struct sockaddr_un *)&out->at[0].at;
	size_t len = strlen(path);
	if (!len || len >= sizeof to->sun_path)
		return error_set(err, ERROR_CONFIG,
				 "endpoint: a socket path must be 1 to 107 bytes long");
	to->sun_family = AF_UNIX;
	memcpy(to->sun_path, path, len + 1);
	out->at[0].len = sizeof *to;
	out->unix_path = path;
	out->count = 1;
	return true;
}

static void add(struct h2_addresses *out, const struct sockaddr *at, socklen_t len, bool only_v6)
{
	if (out->count == H2_ADDRESSES_MAX)
		return;
	struct h2_address *to = &out->at[out->count++];
	memcpy(&to->at, at, len);
	to->len = len;
	to->only_v6 = only_v6;
}

/* All interfaces: one socket for both families, if the system supports both and the transport
 * allows it. */
static void add_wildcard(struct h2_addresses *out, int family, uint16_t port)
{
	int probe = family == AF_INET ? -1 : socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (probe >= 0 || family == AF_INET6) {
		struct sockaddr_in6 any = { .sin6_family = AF_INET6,
					    .sin6_addr = in6addr_any,
					    .sin6_port = port };
		add(out, (struct sockaddr *)&any, sizeof any, family == AF_INET6);
	} else {
		struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = port };
		add(out, (struct sockaddr *)&any, sizeof any, false);
	}
	if (probe >= 0)
		close(probe);
}

static bool resolve_name(const char *host, const char *port, int family, struct h2_addresses *out,
			 struct error *err)
{
	struct addrinfo hints = { .ai_family = family,
				  .ai_socktype = SOCK_STREAM,
				  .ai_flags = AI_PASSIVE };
	struct addrinfo *found = NULL;
	int code = getaddrinfo(host, port, &hints, &found);
	if (code != 0)
		return error_set(err, ERROR_CONFIG, "endpoint: cannot resolve the host: %s",
				 gai_strerror(code));
	for (const struct addrinfo *f = found; f; f = f->ai_next)
		add(out, f->ai_addr, f->ai_addrlen, f->ai_family == AF_INET6);
	freeaddrinfo(found);
	return out->count || error_set(err, ERROR_CONFIG, "endpoint: the host has no address");
}

static int family_of(const char *transport)
{
	if (transport && strcmp(transport, "tcp4") == 0)
		return AF_INET;
	return transport && strcmp(transport, "tcp6") == 0 ? AF_INET6 : AF_UNSPEC;
}

static bool is_wildcard(const char *host)
{
	return !*host || strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
}

bool h2_address_check(const char *endpoint, const char *transport, struct error *err)
{
	const char *path = unix_path(endpoint, transport);
	struct h2_addresses unused = { 0 };
	struct host_port parts;
	return path ? resolve_unix(path, &unused, err)
		    : host_port_parse("endpoint", endpoint, 0, &parts, err);
}

bool h2_address_resolve(const char *endpoint, const char *transport, struct h2_addresses *out,
			struct error *err)
{
	char host[256];
	const char *path = unix_path(endpoint, transport);
	struct host_port parts;
	*out = (struct h2_addresses){ 0 };
	if (path)
		return resolve_unix(path, out, err);
	if (!host_port_parse("endpoint", endpoint, 0, &parts, err))
		return false;
	if (parts.host_len >= sizeof host)
		return error_set(err, ERROR_CONFIG, "endpoint: the host is longer than 255 bytes");
	memcpy(host, parts.host, parts.host_len);
	host[parts.host_len] = '\0';
	out->any_port = !parts.number;
	if (!is_wildcard(host))
		return resolve_name(host, parts.port, family_of(transport), out, err);
	add_wildcard(out, family_of(transport), htons((uint16_t)parts.number));
	return true;
}

static void text_of(const struct h2_address *address, int port, char *out, size_t room)
{
	char host[NI_MAXHOST] = "?";
	if (address->at.ss_family == AF_UNIX) {
		snprintf(out, room, "%s", ((const struct sockaddr_un *)&address->at)->sun_path);
		return;
	}
	getnameinfo((const struct sockaddr *)&address->at, address->len, host, sizeof host, NULL, 0,
		    NI_NUMERICHOST);
	snprintf(out, room, address->at.ss_family == AF_INET6 ? "[%s]:%d" : "%s:%d", host, port);
}

/* A socket file without a listener is left over from a crash: it is removed. */
static bool clear_unix(const struct sockaddr_un *at, struct error *err)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return error_set(err, ERROR_CONFIG, "endpoint: cannot listen on %s: %s",
				 at->sun_path, strerror(errno));
	int result = connect(fd, (const struct sockaddr *)at, sizeof *at), why = errno;
	close(fd);
	if (result == 0 || why == EAGAIN || why == EINPROGRESS)
		return error_set(err, ERROR_CONFIG,
				 "endpoint: cannot listen on %s: Address already in use",
				 at->sun_path);
	if (why == ECONNREFUSED)
		unlink(at->sun_path);
	return true;
}

static bool bind_and_listen(int fd, const struct h2_address *address,
			    const struct sockaddr_storage *to)
{
	int yes = 1, only_v6 = address->only_v6;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes); /* only to ignore TIME_WAIT */
	if (to->ss_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only_v6, sizeof only_v6);
	return bind(fd, (const struct sockaddr *)to, address->len) == 0 &&
	       listen(fd, SOCKETS_BACKLOG) == 0;
}

static in_port_t *port_of(struct sockaddr_storage *at)
{
	return at->ss_family == AF_INET6 ? &((struct sockaddr_in6 *)at)->sin6_port
					 : &((struct sockaddr_in *)at)->sin_port;
}

int h2_address_port(int fd)
{
	struct sockaddr_storage at;
	socklen_t len = sizeof at;
	return getsockname(fd, (struct sockaddr *)&at, &len) == 0 ? ntohs(*port_of(&at)) : 0;
}

int h2_address_listen(const struct h2_address *address, int *port, struct error *err)
{
	struct sockaddr_storage to = address->at;
	bool local = to.ss_family == AF_UNIX;
	if (local && !clear_unix((const struct sockaddr_un *)&to, err))
		return -1;
	if (!local && *port)
		*port_of(&to) = htons((uint16_t)*port);
	int fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && bind_and_listen(fd, address, &to)) {
		*port = local ? 0 : h2_address_port(fd);
		return fd;
	}
	char text[320];
	int why = errno;
	text_of(address, local ? 0 : ntohs(*port_of(&to)), text, sizeof text);
	if (fd >= 0)
		close(fd);
	error_set(err, ERROR_CONFIG, "endpoint: cannot listen on %s: %s", text, strerror(why));
	errno = why;
	return -1;
}

void h2_address_host(const struct sockaddr_storage *from, char *out, size_t room)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)from;
	*out = '\0';
	if (from->ss_family == AF_INET)
		inet_ntop(AF_INET, &((const struct sockaddr_in *)from)->sin_addr, out,
			  (socklen_t)room);
	else if (from->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&six->sin6_addr))
		inet_ntop(AF_INET, six->sin6_addr.s6_addr + 12, out, (socklen_t)room);
	else if (from->ss_family == AF_INET6)
		inet_ntop(AF_INET6, &six->sin6_addr, out, (socklen_t)room);
}

bool h2_listen_probe(const char *endpoint, const char *transport, struct error *err)
{
	struct h2_addresses found;
	bool ok = h2_address_resolve(endpoint, transport, &found, err);
	for (size_t i = 0; ok && i < found.count; i++) {
		int port = 0, fd = h2_address_listen(&found.at[i], &port, err);
		ok = fd >= 0;
		if (ok)
			close(fd);
		if (ok && found.unix_path)
			unlink(found.unix_path);
	}
	return ok;
}
