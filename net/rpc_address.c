/* SPDX-License-Identifier: Apache-2.0 */
#include "net/rpc_private.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define UNIX_PREFIX "unix:"

static bool starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool add_address(struct rpc_addresses *out, const char *format, const char *host,
			const char *port)
{
	if (out->count == RPC_ADDRESSES_MAX)
		return false;
	int used = snprintf(out->at[out->count], sizeof out->at[0], format, host, port);
	if (used < 0 || (size_t)used >= sizeof out->at[0])
		return false;
	out->count++;
	return true;
}

static bool resolve_unix(const char *path, struct rpc_addresses *out, struct error *err)
{
	size_t len = strlen(path);
	if (!len || len >= sizeof((struct sockaddr_un *)0)->sun_path)
		return error_set(err, ERROR_CONFIG, "listen unix: the path must have 1 to 107 bytes");
	return add_address(out, UNIX_PREFIX "%s%s", path, "") ||
	       error_set(err, ERROR_CONFIG, "listen unix: the path is too long");
}

/* Splits "host:port", "[host]:port" or ":port"; the host is empty in the last. */
static bool split(const char *endpoint, char *host, size_t room, const char **port)
{
	const char *colon = strrchr(endpoint, ':');
	if (!colon)
		return false;
	size_t len = (size_t)(colon - endpoint);
	bool bracketed = len >= 2 && endpoint[0] == '[' && colon[-1] == ']';
	if (bracketed) {
		endpoint++;
		len -= 2;
	}
	if (len >= room || (!bracketed && memchr(endpoint, ':', len)))
		return false;
	memcpy(host, endpoint, len);
	host[len] = '\0';
	*port = colon + 1;
	char *end;
	unsigned long number = strtoul(*port, &end, 10);
	return **port >= '0' && **port <= '9' && !*end && number <= 65535;
}

static bool is_wildcard(const char *host)
{
	return !*host || strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
}

static bool add_numeric(struct rpc_addresses *out, const struct addrinfo *found, const char *port)
{
	char host[NI_MAXHOST];
	if (getnameinfo(found->ai_addr, found->ai_addrlen, host, sizeof host, NULL, 0,
			NI_NUMERICHOST) != 0)
		return false;
	return add_address(out, found->ai_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
}

static bool resolve_name(const char *host, const char *port, int family, struct rpc_addresses *out,
			 struct error *err)
{
	struct addrinfo hints = { .ai_family = family, .ai_socktype = SOCK_STREAM,
				  .ai_flags = AI_PASSIVE };
	struct addrinfo *found = NULL;
	int code = getaddrinfo(host, port, &hints, &found);
	if (code != 0)
		return error_set(err, ERROR_CONFIG, "listen tcp: lookup %s: %s", host,
				 gai_strerror(code));
	for (const struct addrinfo *f = found; f; f = f->ai_next)
		add_numeric(out, f, port);
	freeaddrinfo(found);
	return out->count || error_set(err, ERROR_CONFIG, "listen tcp: %s has no address", host);
}

bool rpc_address_resolve(const char *endpoint, const char *transport, struct rpc_addresses *out,
			 struct error *err)
{
	*out = (struct rpc_addresses){ 0 };
	if (starts_with(endpoint, UNIX_PREFIX))
		return resolve_unix(endpoint + strlen(UNIX_PREFIX), out, err);
	if (transport && strcmp(transport, "unix") == 0)
		return resolve_unix(endpoint, out, err);
	char host[256];
	const char *port;
	if (!split(endpoint, host, sizeof host, &port))
		return error_set(err, ERROR_CONFIG, "listen tcp: endpoint %s is not host:port",
				 endpoint);
	out->any_port = strtoul(port, NULL, 10) == 0;
	int family = !transport || strcmp(transport, "tcp") == 0 ? AF_UNSPEC :
		     strcmp(transport, "tcp4") == 0		 ? AF_INET :
								   AF_INET6;
	if (!is_wildcard(host))
		return resolve_name(host, port, family, out, err);
	if (family != AF_UNSPEC)
		return error_set(err, ERROR_CONFIG,
				 "transport %s cannot be kept for all interfaces, where both "
				 "families are served: name an address", transport);
	return add_address(out, "%s:%s", "[::]", port);
}

/* A socket file with nobody behind it is left over from a crash; core removes it. */
static bool probe_unix(const char *path, struct error *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return error_set(err, ERROR_CONFIG, "listen unix %s: %s", path, strerror(errno));
	int result = connect(fd, (struct sockaddr *)&address, sizeof address);
	bool taken = result == 0 || errno == EAGAIN || errno == EINPROGRESS;
	close(fd);
	return !taken || error_set(err, ERROR_CONFIG,
				   "listen unix %s: bind: address already in use", path);
}

static bool try_bind(const struct addrinfo *to)
{
	int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	int yes = 1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes); /* past TIME_WAIT only */
	bool ok = bind(fd, to->ai_addr, to->ai_addrlen) == 0;
	int why = errno;
	close(fd);
	errno = why;
	return ok;
}

static bool probe_tcp(const char *address, struct error *err)
{
	char host[256];
	const char *port;
	if (!split(address, host, sizeof host, &port))
		return error_set(err, ERROR_INTERNAL, "listen tcp %s: not an address", address);
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_PASSIVE };
	struct addrinfo *to = NULL;
	if (getaddrinfo(host, port, &hints, &to) != 0)
		return error_set(err, ERROR_INTERNAL, "listen tcp %s: not an address", address);
	bool ok = try_bind(to) || errno == EAFNOSUPPORT; /* no IPv6 here: core falls back */
	int why = errno;
	freeaddrinfo(to);
	return ok || error_set(err, ERROR_CONFIG, "listen tcp %s: bind: %s", address,
			       why == EADDRINUSE ? "address already in use" : strerror(why));
}

bool rpc_address_probe(const struct rpc_addresses *addresses, struct error *err)
{
	for (size_t i = 0; i < addresses->count; i++) {
		const char *at = addresses->at[i];
		bool ok = starts_with(at, UNIX_PREFIX) ? probe_unix(at + strlen(UNIX_PREFIX), err) :
							 probe_tcp(at, err);
		if (!ok)
			return false;
	}
	return true;
}
